//! Output that never blocks the caller: a bounded queue, and a thread that writes.
//!
//! A pipe without a reader, a full disk or a stopped terminal blocks the thread, or writing fails. Items that find the
//! queue full or cannot be written are dropped and counted. Control characters for terminals are escaped. Lines are written completely or not at all, except the line
//! during which writing fails. The line after that starts on a new line.
//!
//! [`Outlet`] belongs to the part of a service that ends it ([`Outlet::finish`]); a [`Pen`] passes items on for any thread.

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

/// A queue of `T`, which a thread renders and writes.
#[derive(Debug)]
pub struct Outlet<T> {
    pen: Pen<T>,
    ended: Receiver<io::Result<()>>,
}

/// A way to an outlet's queue.
#[derive(Debug)]
pub struct Pen<T> {
    /// Items, and `None` after the last one.
    queue: SyncSender<Option<T>>,
    dropped: Arc<AtomicU64>,
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
/// Interval of checks for the end of a wait.
const LOOK: std::time::Duration = std::time::Duration::from_millis(10);

impl<T: Send + 'static> Outlet<T> {
    /// Returns an outlet to an open file, such as stdout. `render` returns the lines of an item.
    pub fn new(file: impl AsFd, screen: Screen, render: impl FnMut(T) -> String + Send + 'static) -> Self {
        Self::with_room(QUEUE, file, screen, render)
    }

    /// The same with a queue for so many items.
    pub fn with_room(
        room: usize,
        file: impl AsFd,
        screen: Screen,
        render: impl FnMut(T) -> String + Send + 'static,
    ) -> Self {
        let ((queue, waiting), (end, ended)) = (sync_channel(room), sync_channel(1));
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
        Self { pen: Pen { queue, dropped }, ended }
    }

    /// Returns a way to the queue for another thread. Items that it passes on after the outlet was finished are dropped.
    pub fn pen(&self) -> Pen<T> {
        self.pen.clone()
    }

    /// Passes an item to the thread if there is room. Returns whether there was.
    pub fn give(&self, what: T) -> bool {
        self.pen.give(what)
    }

    /// Returns how many were dropped.
    pub fn dropped(&self) -> u64 {
        self.pen.dropped()
    }

    /// Passes the last item and waits until everything is written, at most for `patience`. Also returns the number of dropped items.
    pub fn finish(self, last: Option<T>, patience: Duration) -> (Written, u64) {
        let until = now() + patience;
        self.finish_unless(last, || now() >= until)
    }

    /// Passes the last item and waits until everything is written, or the caller gives up. Also returns the number of dropped items.
    pub fn finish_unless(self, last: Option<T>, mut gives_up: impl FnMut() -> bool) -> (Written, u64) {
        let Self { pen: Pen { queue, dropped }, ended } = self;
        let count = || dropped.load(Ordering::Relaxed);
        for what in [last.map(Some), Some(None)].into_iter().flatten() {
            let mut what = Some(what);
            while let Some(item) = what.take() {
                match queue.try_send(item) {
                    Err(TrySendError::Full(item)) if !gives_up() => {
                        what = Some(item);
                        thread::park_timeout(LOOK);
                    }
                    Err(TrySendError::Full(item)) => {
                        dropped.fetch_add(u64::from(item.is_some()), Ordering::Relaxed);
                        return (Written::Waiting, count());
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
                Ok(Ok(())) => break Written::Done,
                Ok(Err(error)) => break Written::Failed(error),
                Err(RecvTimeoutError::Timeout) if gives_up() => break Written::Waiting,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    break Written::Failed(io::Error::other("it has no thread"));
                }
            }
        };
        (written, count())
    }
}

impl<T> Pen<T> {
    /// Passes an item to the thread if there is room. Returns whether there was.
    pub fn give(&self, what: T) -> bool {
        let is_taken = self.queue.try_send(Some(what)).is_ok();
        self.dropped.fetch_add(u64::from(!is_taken), Ordering::Relaxed);
        is_taken
    }

    /// Returns how many were dropped.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

impl<T> Clone for Pen<T> {
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
    for what in waiting.iter().map_while(|what| what) {
        let text = screen.escaped(&render(what)).into_owned();
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
    fn everything_is_written_where_somebody_reads() {
        let (mut reader, writer) = pipe().unwrap();
        let outlet = Outlet::new(&writer, PLAIN, line);
        drop(writer);
        assert!((0..QUEUE as u32).all(|number| outlet.give(number)));
        assert!(matches!(outlet.finish(Some(999), PATIENCE), (Written::Done, 0)));
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, (0..QUEUE as u32).chain([999]).map(line).collect::<String>());
    }

    #[test]
    fn a_pipe_that_nobody_reads_keeps_nobody_waiting() {
        let (_reader, writer) = pipe().unwrap();
        let outlet = Outlet::new(&writer, PLAIN, |(): ()| "x".repeat(100_000));
        // One is being written, and the queue is full.
        let given = (0..QUEUE as u64 + 11).filter(|_| outlet.give(())).count();
        assert!(given <= QUEUE + 1);
        assert!(outlet.dropped() >= 10);
        assert!(matches!(outlet.finish(Some(()), Duration::from_millis(50)), (Written::Waiting, 10..)));
    }

    /// A pen may outlive its outlet, such as with a thread that hangs.
    #[test]
    fn an_outlet_is_finished_although_somebody_has_a_pen() {
        let (mut reader, writer) = pipe().unwrap();
        let outlet = Outlet::new(&writer, PLAIN, line);
        drop(writer);
        let pen = outlet.pen();
        assert!(pen.give(1));
        assert!(matches!(outlet.finish(None, PATIENCE), (Written::Done, 0)));
        assert!(!pen.give(2) && pen.dropped() == 1);
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, line(1));
    }

    /// A caller that waits for a slow reader gets all of its output out, whatever room the queue has.
    #[test]
    fn a_slow_reader_is_waited_for_unless_the_caller_gives_up() {
        let (mut reader, writer) = pipe().unwrap();
        let outlet = Outlet::new(&writer, PLAIN, |(): ()| "x".repeat(1 << 20));
        drop(writer);
        assert!((0..20).all(|_| outlet.give(())));
        let slow = thread::spawn(move || {
            let mut all = 0;
            while let Ok(length @ 1..) = reader.read(&mut vec![0; 1 << 16]) {
                all += length;
                thread::yield_now();
            }
            all
        });
        assert!(matches!(outlet.finish_unless(Some(()), || false), (Written::Done, 0)));
        assert_eq!(slow.join().unwrap(), 21 << 20);
    }

    #[test]
    fn what_cannot_be_written_is_counted() {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let outlet = Outlet::new(&full, PLAIN, line);
        assert!((0..5).all(|number| outlet.give(number)));
        let (written, dropped) = outlet.finish(None, PATIENCE);
        assert!(matches!(written, Written::Failed(error) if error.kind() == ErrorKind::StorageFull));
        assert_eq!(dropped, 5);
        let (reader, writer) = pipe().unwrap();
        drop(reader);
        let outlet = Outlet::new(&writer, PLAIN, line);
        assert!(outlet.give(1));
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
        (0..5).for_each(|number| queue.send(Some(number)).unwrap());
        drop(queue);
        let dropped = AtomicU64::new(0);
        let result = write_all(&waiting, &mut disk, PLAIN, line, &dropped);
        assert_eq!(result.unwrap_err().kind(), ErrorKind::StorageFull);
        assert_eq!(String::from_utf8(disk.text).unwrap(), "00\n001\n003\n004\n");
        assert_eq!(dropped.into_inner(), 2);
    }
}
