//! Accepting connections, also when no descriptor is left.

use rustix::io::Errno;
use std::os::unix::net::{UnixListener, UnixStream};

/// Accepts connections of a listener that does not wait. It holds a spare descriptor: without a free one, a connection could neither be
/// accepted nor refused, and a listener that stays readable would keep the event loop busy.
#[derive(Debug, Default)]
pub struct Accepter {
    spare: Option<UnixListener>,
}

/// A connection that has come.
#[derive(Debug)]
pub enum AcceptedStream {
    /// A connection to serve.
    Stream(UnixStream),
    /// A connection in the place of the spare descriptor, to be refused and closed at once.
    Excess(UnixStream),
}

impl Accepter {
    /// Returns the next connection; `None` if none waits.
    pub fn accept(&mut self, listener: &UnixListener) -> Option<AcceptedStream> {
        self.spare = self.spare.take().or_else(|| listener.try_clone().ok());
        match listener.accept() {
            Ok((stream, _)) => Some(AcceptedStream::Stream(stream)),
            Err(error) => {
                let has_none_left = matches!(Errno::from_io_error(&error), Some(Errno::MFILE | Errno::NFILE));
                self.spare.take_if(|_| has_none_left)?;
                listener.accept().ok().map(|(stream, _)| AcceptedStream::Excess(stream))
            }
        }
    }
}
