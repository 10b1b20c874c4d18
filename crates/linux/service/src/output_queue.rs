//! Output that never blocks the caller: a bounded queue, and a thread that writes.
//!
//! A pipe without a reader, a full disk or a stopped terminal blocks the thread, or writing fails. Items that find the
//! queue full or cannot be written are dropped and counted. Control characters for terminals are escaped. Lines are written completely or not at all, except the line
//! during which writing fails. The line after that starts on a new line.
//!
//! [`OutputQueue`] belongs to the part of a service that ends it ([`OutputQueue::finish`]); any thread may add items through an
//! [`OutputSender`].

use cutline_sys::now;
use cutline_text::Screen;
use cutline_units::Duration;
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread;

/// A bounded queue of `T`, which a thread renders and writes.
#[derive(Debug)]
pub struct OutputQueue<T> {
    sender: OutputSender<T>,
    ended: Receiver<io::Result<()>>,
}

/// A handle that adds items to an [`OutputQueue`].
#[derive(Debug)]
pub struct OutputSender<T> {
    /// Items, and `None` after the last one.
    queue: SyncSender<Option<T>>,
    dropped: Arc<AtomicU64>,
}

/// The result of writing the rest of a queue.
#[derive(Debug)]
pub enum FlushResult {
    /// Everything that was not dropped is written, or the reader has closed the output.
    Complete,
    /// Writing has failed, at least once.
    Failed(io::Error),
    /// Writing has not ended in time.
    Incomplete,
}

/// The default capacity of a queue.
const CAPACITY: usize = 64;
/// Interval of checks for the end of a wait.
const LOOK: std::time::Duration = std::time::Duration::from_millis(10);

impl<T: Send + 'static> OutputQueue<T> {
    /// Returns a queue of output to an open file, such as stdout. `render` returns the lines of an item.
    pub fn new(file: impl AsFd, screen: Screen, render: impl FnMut(T) -> String + Send + 'static) -> Self {
        Self::with_capacity(CAPACITY, file, screen, render)
    }

    /// The same with room for `capacity` items.
    pub fn with_capacity(
        capacity: usize,
        file: impl AsFd,
        screen: Screen,
        render: impl FnMut(T) -> String + Send + 'static,
    ) -> Self {
        let ((queue, waiting), (end, ended)) = (sync_channel(capacity), sync_channel(1));
        let dropped = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&dropped);
        let file = file.as_fd().try_clone_to_owned().map(|file: OwnedFd| File::from(file));
        let write = move || {
            let written = file.and_then(|file| write_all(&waiting, file, screen, render, &count));
            // Items passed on from now on are dropped.
            drop(waiting);
            // The channel is only closed if the caller does not wait for the end.
            drop(end.send(written));
        };
        // Without a thread the queue is closed, and all is dropped.
        drop(thread::Builder::new().name("output".to_owned()).spawn(write));
        Self { sender: OutputSender { queue, dropped }, ended }
    }

    /// Returns a sender for another thread. Items that it sends after the queue was finished are dropped.
    pub fn sender(&self) -> OutputSender<T> {
        self.sender.clone()
    }

    /// Adds an item if the queue has room. Returns whether it had.
    pub fn try_send(&self, item: T) -> bool {
        self.sender.try_send(item)
    }

    /// Returns the number of dropped items.
    pub fn dropped(&self) -> u64 {
        self.sender.dropped()
    }

    /// Passes the last item and waits until everything is written, at most for `patience`. Also returns the number of dropped items.
    pub fn finish(self, last: Option<T>, patience: Duration) -> (FlushResult, u64) {
        let until = now() + patience;
        self.finish_unless(last, || now() >= until)
    }

    /// Passes the last item and waits until everything is written, or the caller gives up. Also returns the number of dropped items.
    pub fn finish_unless(self, last: Option<T>, mut gives_up: impl FnMut() -> bool) -> (FlushResult, u64) {
        let Self { sender: OutputSender { queue, dropped }, ended } = self;
        let count = || dropped.load(Ordering::Relaxed);
        for item in [last.map(Some), Some(None)].into_iter().flatten() {
            let mut unsent = Some(item);
            while let Some(item) = unsent.take() {
                match queue.try_send(item) {
                    Err(TrySendError::Full(item)) if !gives_up() => {
                        unsent = Some(item);
                        thread::park_timeout(LOOK);
                    }
                    Err(TrySendError::Full(item)) => {
                        dropped.fetch_add(u64::from(item.is_some()), Ordering::Relaxed);
                        return (FlushResult::Incomplete, count());
                    }
                    Err(TrySendError::Disconnected(item)) => {
                        dropped.fetch_add(u64::from(item.is_some()), Ordering::Relaxed);
                    }
                    Ok(()) => {}
                }
            }
        }
        let written = loop {
            match ended.recv_timeout(LOOK) {
                Ok(Ok(())) => break FlushResult::Complete,
                Ok(Err(error)) => break FlushResult::Failed(error),
                Err(RecvTimeoutError::Timeout) if gives_up() => break FlushResult::Incomplete,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    break FlushResult::Failed(io::Error::other("it has no thread"));
                }
            }
        };
        (written, count())
    }
}

impl<T> OutputSender<T> {
    /// Adds an item if the queue has room. Returns whether it had.
    pub fn try_send(&self, item: T) -> bool {
        let is_taken = self.queue.try_send(Some(item)).is_ok();
        self.dropped.fetch_add(u64::from(!is_taken), Ordering::Relaxed);
        is_taken
    }

    /// Returns the number of dropped items.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

impl<T> Clone for OutputSender<T> {
    fn clone(&self) -> Self {
        Self { queue: self.queue.clone(), dropped: Arc::clone(&self.dropped) }
    }
}

/// Writes until the last item. Returns the first error, unless the reader has closed the output.
fn write_all<T>(
    waiting: &Receiver<Option<T>>,
    mut file: impl Write,
    screen: Screen,
    mut render: impl FnMut(T) -> String,
    dropped: &AtomicU64,
) -> io::Result<()> {
    let (mut first, mut is_torn) = (Ok(()), false);
    for item in waiting.iter().map_while(|item| item) {
        let text = screen.escaped(&render(item)).into_owned();
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

    const PLAIN: Screen = Screen { styles: &[] };
    const PATIENCE: Duration = Duration::from_secs(60);

    fn line(number: u32) -> String {
        format!("{number:03}\n")
    }

    #[test]
    fn all_lines_are_written_to_a_pipe_that_is_read() {
        let (mut reader, writer) = pipe().unwrap();
        let queue = OutputQueue::new(&writer, PLAIN, line);
        drop(writer);
        assert!((0..CAPACITY as u32).all(|number| queue.try_send(number)));
        assert!(matches!(queue.finish(Some(999), PATIENCE), (FlushResult::Complete, 0)));
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, (0..CAPACITY as u32).chain([999]).map(line).collect::<String>());
    }

    #[test]
    fn an_unread_pipe_does_not_block_the_caller() {
        let (_reader, writer) = pipe().unwrap();
        let queue = OutputQueue::new(&writer, PLAIN, |(): ()| "x".repeat(100_000));
        // One is being written, and the queue is full.
        let given = (0..CAPACITY as u64 + 11).filter(|_| queue.try_send(())).count();
        assert!(given <= CAPACITY + 1);
        assert!(queue.dropped() >= 10);
        assert!(matches!(queue.finish(Some(()), Duration::from_millis(50)), (FlushResult::Incomplete, 10..)));
    }

    /// A sender may outlive its queue, such as with a thread that hangs.
    #[test]
    fn a_queue_is_finished_although_a_sender_is_left() {
        let (mut reader, writer) = pipe().unwrap();
        let queue = OutputQueue::new(&writer, PLAIN, line);
        drop(writer);
        let sender = queue.sender();
        assert!(sender.try_send(1));
        assert!(matches!(queue.finish(None, PATIENCE), (FlushResult::Complete, 0)));
        assert!(!sender.try_send(2) && sender.dropped() == 1);
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, line(1));
    }

    /// A caller that waits for a slow reader gets all of its output out, whatever room the queue has.
    #[test]
    fn the_queue_waits_for_a_slow_reader_until_the_deadline() {
        let (mut reader, writer) = pipe().unwrap();
        let queue = OutputQueue::new(&writer, PLAIN, |(): ()| "x".repeat(1 << 20));
        drop(writer);
        assert!((0..20).all(|_| queue.try_send(())));
        let slow = thread::spawn(move || {
            let mut all = 0;
            while let Ok(length @ 1..) = reader.read(&mut vec![0; 1 << 16]) {
                all += length;
                thread::yield_now();
            }
            all
        });
        assert!(matches!(queue.finish_unless(Some(()), || false), (FlushResult::Complete, 0)));
        assert_eq!(slow.join().unwrap(), 21 << 20);
    }

    #[test]
    fn unwritten_lines_are_counted() {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let queue = OutputQueue::new(&full, PLAIN, line);
        assert!((0..5).all(|number| queue.try_send(number)));
        let (written, dropped) = queue.finish(None, PATIENCE);
        assert!(matches!(written, FlushResult::Failed(error) if error.kind() == ErrorKind::StorageFull));
        assert_eq!(dropped, 5);
        let (reader, writer) = pipe().unwrap();
        drop(reader);
        let queue = OutputQueue::new(&writer, PLAIN, line);
        assert!(queue.try_send(1));
        assert!(
            matches!(queue.finish(None, PATIENCE), (FlushResult::Complete, 1)),
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
        (0..5).for_each(|number| queue.send(Some(number)).unwrap());
        drop(queue);
        let dropped = AtomicU64::new(0);
        let result = write_all(&waiting, &mut disk, PLAIN, line, &dropped);
        assert_eq!(result.unwrap_err().kind(), ErrorKind::StorageFull);
        assert_eq!(String::from_utf8(disk.text).unwrap(), "00\n001\n003\n004\n");
        assert_eq!(dropped.into_inner(), 2);
    }
}
