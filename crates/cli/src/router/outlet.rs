//! Output that never blocks the caller: a bounded queue, and a thread that writes.
//!
//! A pipe without a reader, a full disk or a stopped terminal blocks the thread, or writing fails. Items that find the
//! queue full or cannot be written are dropped and counted. What a terminal would obey is escaped. Lines are written completely or not at all, except the line
//! during which writing fails. The line after that starts on a new line.

use crate::screen::harmless;
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

/// A queue of `T`, which a thread renders and writes.
pub struct Outlet<T> {
    queue: SyncSender<T>,
    dropped: Arc<AtomicU64>,
    ended: Receiver<Result<(), io::Error>>,
}

/// The result of an outlet's output.
#[derive(Debug)]
pub enum Written {
    /// Everything that was not dropped is written, or the reader has closed the output.
    Done,
    /// Writing has failed, at least once.
    Failed(io::Error),
    /// Writing has not ended in time.
    Waiting,
}

/// The capacity of the queue.
const QUEUE: usize = 64;

impl<T: Send + 'static> Outlet<T> {
    /// Returns an outlet to an open file, such as stdout. `render` returns the lines of an item.
    pub fn new(file: impl AsFd, render: impl FnMut(T) -> String + Send + 'static) -> Self {
        let ((queue, waiting), (end, ended)) = (sync_channel(QUEUE), sync_channel(1));
        let dropped = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&dropped);
        let file = file.as_fd().try_clone_to_owned().map(|file: OwnedFd| File::from(file));
        let write = move || {
            // The channel is only closed if the caller does not wait for the end.
            drop(end.send(file.and_then(|file| write_all(&waiting, file, render, &count))));
        };
        // Without a thread the queue is closed, and all is dropped.
        drop(thread::Builder::new().name("output".to_owned()).spawn(write));
        Self { queue, dropped, ended }
    }

    /// Passes an item to the thread if there is room.
    pub fn give(&self, what: T) {
        drop(self.try_give(what));
    }

    /// Passes an item to the thread. Returns it if the queue is full.
    fn try_give(&self, what: T) -> Option<T> {
        match self.queue.try_send(what) {
            Ok(()) => None,
            Err(error) => {
                self.dropped.fetch_add(1, Ordering::Relaxed);
                if let TrySendError::Full(what) = error { Some(what) } else { None }
            }
        }
    }

    /// Returns how many were dropped.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Passes the last item and waits until everything is written, at most for `patience`. Also returns the number of dropped items.
    pub fn finish(self, last: Option<T>, patience: Duration) -> (Written, u64) {
        let until = Instant::now() + patience;
        let mut last = last;
        while let Some(what) = last.take() {
            last = self.try_give(what);
            if last.is_some() {
                if Instant::now() >= until {
                    return (Written::Waiting, self.dropped());
                }
                self.dropped.fetch_sub(1, Ordering::Relaxed);
                thread::sleep(Duration::from_millis(10));
            }
        }
        let Self { queue, dropped, ended } = self;
        drop(queue);
        let written = match ended.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(Ok(())) => Written::Done,
            Ok(Err(error)) => Written::Failed(error),
            Err(RecvTimeoutError::Timeout) => Written::Waiting,
            Err(RecvTimeoutError::Disconnected) => Written::Failed(io::Error::other("it has no thread")),
        };
        (written, dropped.load(Ordering::Relaxed))
    }
}

/// Writes until the queue is closed. Returns the first error, unless the reader has closed the output.
fn write_all<T>(
    waiting: &Receiver<T>,
    mut file: impl Write,
    mut render: impl FnMut(T) -> String,
    dropped: &AtomicU64,
) -> io::Result<()> {
    let (mut first, mut is_torn) = (Ok(()), false);
    for what in waiting {
        let text = harmless(&render(what)).into_owned();
        let text = if is_torn { format!("\n{text}") } else { text };
        let (written, result) = write(&mut file, text.as_bytes());
        is_torn = if written == 0 { is_torn } else { written < text.len() };
        if let Err(error) = result {
            dropped.fetch_add(1, Ordering::Relaxed);
            if first.is_ok() && error.kind() != ErrorKind::BrokenPipe {
                first = Err(error);
            }
        }
    }
    first
}

/// Writes as much as possible. Returns the number of bytes.
fn write(file: &mut impl Write, bytes: &[u8]) -> (usize, io::Result<()>) {
    let mut written = 0;
    while written < bytes.len() {
        match file.write(&bytes[written..]) {
            Ok(0) => return (written, Err(ErrorKind::WriteZero.into())),
            Ok(more) => written += more,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return (written, Err(error)),
        }
    }
    (written, Ok(()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read as _, pipe};

    const PATIENCE: Duration = Duration::from_secs(60);

    fn line(number: u32) -> String {
        format!("{number:03}\n")
    }

    #[test]
    fn everything_is_written_where_somebody_reads() {
        let (mut reader, writer) = pipe().unwrap();
        let outlet = Outlet::new(&writer, line);
        drop(writer);
        (0..QUEUE as u32).for_each(|number| outlet.give(number));
        assert!(matches!(outlet.finish(Some(999), PATIENCE), (Written::Done, 0)));
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, (0..QUEUE as u32).chain([999]).map(line).collect::<String>());
    }

    #[test]
    fn a_pipe_that_nobody_reads_keeps_nobody_waiting() {
        let (_reader, writer) = pipe().unwrap();
        let outlet = Outlet::new(&writer, |(): ()| "x".repeat(100_000));
        // One is being written, and the queue is full.
        (0..QUEUE as u64 + 11).for_each(|_| outlet.give(()));
        assert!(outlet.dropped() >= 10);
        assert!(matches!(outlet.finish(Some(()), Duration::from_millis(50)), (Written::Waiting, 10..)));
    }

    #[test]
    fn what_cannot_be_written_is_counted() {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let outlet = Outlet::new(&full, line);
        (0..5).for_each(|number| outlet.give(number));
        let (written, dropped) = outlet.finish(None, PATIENCE);
        assert!(matches!(written, Written::Failed(error) if error.kind() == ErrorKind::StorageFull));
        assert_eq!(dropped, 5);
        let (reader, writer) = pipe().unwrap();
        drop(reader);
        let outlet = Outlet::new(&writer, line);
        outlet.give(1);
        assert!(
            matches!(outlet.finish(None, PATIENCE), (Written::Done, 1)),
            "the reader has closed the output"
        );
    }

    /// A disk that sometimes has a limited amount of room.
    struct Disk {
        room: Vec<usize>,
        text: Vec<u8>,
    }

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            match self.room.pop() {
                Some(0) => Err(ErrorKind::StorageFull.into()),
                room => {
                    let written = room.unwrap_or(usize::MAX).min(bytes.len());
                    self.text.extend_from_slice(&bytes[..written]);
                    Ok(written)
                }
            }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_torn_line_spoils_no_other() {
        let mut disk = Disk { room: vec![0, 2, 4, 0, 2], text: Vec::new() };
        let (queue, waiting) = sync_channel(10);
        (0..5).for_each(|number| queue.send(number).unwrap());
        drop(queue);
        let dropped = AtomicU64::new(0);
        let result = write_all(&waiting, &mut disk, line, &dropped);
        assert_eq!(result.unwrap_err().kind(), ErrorKind::StorageFull);
        assert_eq!(String::from_utf8(disk.text).unwrap(), "00\n001\n003\n004\n");
        assert_eq!(dropped.into_inner(), 2);
    }
}
