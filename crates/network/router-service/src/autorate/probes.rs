//! The thread that sends echo requests to reflectors, one after the other, and hands the times of their replies to the loop that forwards.

use super::delays::EVERY;
use cutline_sys::address::ZonedIp;
use cutline_sys::ping::Echo;
use cutline_sys::reactor::{PollFd, PollFlags, wait};
use cutline_sys::{SysError, now};
use cutline_units::Duration;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

/// The stack of the thread, bytes.
const STACK: usize = 256 * 1024;

/// Open sockets to the reflectors.
#[derive(Debug)]
pub struct Sockets(Vec<Echo>);

/// The running thread. It ends when this is dropped.
#[derive(Debug)]
pub struct Probes {
    replies: Receiver<(usize, Duration)>,
    requests: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Sockets {
    /// Opens a socket to each reflector.
    ///
    /// # Errors
    /// When there is no route to one, or the process lacks `CAP_NET_RAW`.
    pub fn open(reflectors: &[ZonedIp]) -> Result<Self, SysError> {
        reflectors.iter().map(|reflector| Echo::open(*reflector)).collect::<Result<_, _>>().map(Self)
    }

    /// The number of reflectors.
    pub const fn count(&self) -> usize {
        self.0.len()
    }

    /// Starts echo requests.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn start(self) -> Result<Probes, SysError> {
        let (sender, replies) = channel();
        let (requests, stop) = (Arc::<AtomicU64>::default(), Arc::<AtomicBool>::default());
        let (counted, stopped) = (Arc::clone(&requests), Arc::clone(&stop));
        let thread = thread::Builder::new()
            .name("autorate".to_owned())
            .stack_size(STACK)
            .spawn(move || ask(self.0, &sender, &counted, &stopped))
            .map_err(|error| SysError::new("the thread of autorate cannot be started", error))?;
        Ok(Probes { replies, requests, stop, thread: Some(thread) })
    }
}

impl Probes {
    /// Takes the replies since the last call: the reflector's number, and the round-trip time.
    pub fn replies(&self) -> impl Iterator<Item = (usize, Duration)> + '_ {
        self.replies.try_iter()
    }

    /// The number of requests so far.
    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }
}

impl Drop for Probes {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was printed when it happened.
            drop(thread.join());
        }
    }
}

fn ask(mut echoes: Vec<Echo>, replies: &Sender<(usize, Duration)>, requests: &AtomicU64, stop: &AtomicBool) {
    let mut next = now();
    let mut turn = 0;
    while !stop.load(Ordering::Relaxed) {
        if now() >= next {
            echoes[turn].request();
            requests.fetch_add(1, Ordering::Relaxed);
            turn = (turn + 1) % echoes.len();
            next = (next + EVERY).max(now());
        }
        let mut fds: Vec<PollFd<'_>> = echoes.iter().map(|echo| PollFd::new(echo, PollFlags::IN)).collect();
        if wait(&mut fds, next.saturating_since(now())).is_err() {
            // Only without memory. The next look may have some.
            thread::park_timeout(std::time::Duration::from_millis(50));
        }
        for (reflector, echo) in echoes.iter_mut().enumerate() {
            echo.take(&mut |time| {
                // The receiver ends after this thread.
                let _is_ended = replies.send((reflector, time));
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// This host replies and the thread ends, if the process may send echo requests.
    #[test]
    fn this_host_replies_and_the_thread_ends() {
        let Ok(sockets) = Sockets::open(&["127.0.0.1".parse().unwrap(), "127.0.0.2".parse().unwrap()]) else {
            return;
        };
        let probes = sockets.start().unwrap();
        let mut seen = [0; 2];
        let end = now() + Duration::from_secs(60);
        while seen.contains(&0) && now() < end {
            probes.replies().for_each(|(reflector, _)| seen[reflector] += 1);
            thread::park_timeout(std::time::Duration::from_millis(10));
        }
        assert!(!seen.contains(&0) && probes.requests() >= 2, "{seen:?}");
    }
}
