//! The system calls of a stream's data. In tests they can be cut short, interrupted or refused at any byte.

use rustix::io::Result;
use rustix::net::{RecvAncillaryBuffer, RecvFlags, SendAncillaryBuffer, SendFlags, recvmsg, sendmsg};
use std::io::{IoSlice, IoSliceMut};
use std::net::TcpStream;

/// Receives as many bytes as there are and there is room for.
pub fn receive(socket: &TcpStream, to: &mut [u8], flags: RecvFlags) -> Result<usize> {
    let most = limit(to.len())?;
    Ok(rustix::net::recv(socket, &mut to[..most], flags)?.0)
}

/// As [`receive`], into two places.
pub fn receive_parts(socket: &TcpStream, [one, other]: [&mut [u8]; 2], flags: RecvFlags) -> Result<usize> {
    let most = limit(one.len() + other.len())?;
    let first = one.len().min(most);
    let parts = &mut [IoSliceMut::new(&mut one[..first]), IoSliceMut::new(&mut other[..most - first])];
    Ok(recvmsg(socket, parts, &mut RecvAncillaryBuffer::default(), flags)?.bytes)
}

/// Sends as much of two parts as there is room for.
pub fn send(socket: &TcpStream, [one, other]: [&[u8]; 2], flags: SendFlags) -> Result<usize> {
    let most = limit(one.len() + other.len())?;
    let first = one.len().min(most);
    let parts = [IoSlice::new(&one[..first]), IoSlice::new(&other[..most - first])];
    sendmsg(socket, &parts, &mut SendAncillaryBuffer::default(), flags | SendFlags::NOSIGNAL)
}

/// Returns the number of bytes that the next call may transfer.
#[cfg(not(test))]
#[expect(clippy::unnecessary_wraps, reason = "in tests it fails")]
#[inline]
const fn limit(bytes: usize) -> Result<usize> {
    Ok(bytes)
}

#[cfg(test)]
pub use faults::{inject, limit};

#[cfg(test)]
mod faults {
    use super::Result;
    use cutline_units::RandomStream;
    use rustix::io::Errno;
    use std::cell::RefCell;

    thread_local! {
        static FAULTS: RefCell<Option<RandomStream>> = const { RefCell::new(None) };
    }

    /// From now on half of the calls of this thread are cut short, interrupted, or refused.
    pub fn inject(random: RandomStream) {
        FAULTS.set(Some(random));
    }

    pub fn limit(bytes: usize) -> Result<usize> {
        FAULTS.with_borrow_mut(|faults| {
            let Some(random) = faults else { return Ok(bytes) };
            match (random.uniform() * 8.0) as u32 {
                0 => Err(Errno::INTR),
                1 => Err(Errno::AGAIN),
                2 | 3 => Ok(bytes.min(1)),
                4 | 5 => Ok((bytes as f64 * random.uniform()).ceil() as usize),
                _ => Ok(bytes),
            }
        })
    }
}
