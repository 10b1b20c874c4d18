//! Unsent output of a client.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

/// Unsent output.
#[derive(Debug, Default)]
pub(super) struct Output {
    parts: VecDeque<OutputPart>,
    /// Sent bytes of the first part.
    sent: usize,
}

#[derive(Debug)]
enum OutputPart {
    Own(Vec<u8>),
    Shared(Arc<[u8]>),
}

impl Output {
    /// Appends bytes.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        match self.parts.back_mut() {
            _ if bytes.is_empty() => {}
            Some(OutputPart::Own(last)) => last.extend(bytes),
            _ => self.parts.push_back(OutputPart::Own(bytes.to_owned())),
        }
    }

    /// Appends bytes without copying them.
    pub(super) fn push_shared(&mut self, bytes: Arc<[u8]>) {
        self.parts.push_back(OutputPart::Shared(bytes));
    }

    /// Returns the shared parts.
    pub(super) fn shared(&self) -> impl Iterator<Item = &Arc<[u8]>> {
        self.parts.iter().filter_map(|part| match part {
            OutputPart::Shared(bytes) => Some(bytes),
            OutputPart::Own(_) => None,
        })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Returns the unsent bytes that are not shared.
    pub(super) fn own(&self) -> usize {
        let lengths = self.parts.iter().enumerate().map(|(index, part)| match part {
            OutputPart::Own(bytes) if index == 0 => bytes.len() - self.sent,
            OutputPart::Own(bytes) => bytes.len(),
            OutputPart::Shared(_) => 0,
        });
        lengths.sum()
    }

    /// Returns the bytes of memory that are held for output that is not shared.
    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        let of_part = |part: &OutputPart| match part {
            OutputPart::Own(bytes) => bytes.capacity(),
            OutputPart::Shared(_) => 0,
        };
        self.parts.iter().map(of_part).sum()
    }

    /// Writes until the stream accepts no more, and removes the written bytes.
    pub(super) fn write(&mut self, mut to: impl io::Write) -> io::Result<()> {
        while let Some(part) = self.parts.front() {
            let bytes = match part {
                OutputPart::Own(bytes) => &bytes[self.sent..],
                OutputPart::Shared(bytes) => &bytes[self.sent..],
            };
            match to.write(bytes) {
                Ok(0) if !bytes.is_empty() => return Err(io::ErrorKind::WriteZero.into()),
                Ok(length) if length == bytes.len() => {
                    self.parts.pop_front();
                    self.sent = 0;
                }
                Ok(length) => self.sent += length,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if is_temporary(&error) => break,
                Err(error) => return Err(error),
            }
        }
        if let Some(OutputPart::Own(bytes)) = self.parts.front_mut() {
            bytes.drain(..self.sent);
            self.sent = 0;
        }
        Ok(())
    }
}

/// Returns whether the call that has met an error can be repeated.
pub(super) fn is_temporary(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}
