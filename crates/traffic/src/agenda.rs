//! Who is due next, and which sockets are ready: the wait of a generator and of a meter.
//!
//! Deadlines lie in a heap. Each member has at most one entry that matters, the earliest: a deadline that moved later
//! costs nothing until the entry comes up and is found not due. So neither a packet nor a wait looks at all members.
//!
//! The wait is `ppoll` on the epoll descriptor: its timeout is in nanoseconds, where `epoll_wait` knows milliseconds.

use crate::TrafficError;
use cutline_sys::now;
use cutline_units::{Duration, Instant};
use rustix::buffer::spare_capacity;
use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::num::NonZeroU64;

pub(crate) use rustix::event::epoll::EventFlags;

/// The longest wait: how late a request to stop may be noticed.
const LONGEST_WAIT: Duration = Duration::from_millis(50);
/// How many ready sockets are told of at once.
const EVENTS: usize = 256;

/// Deadlines of members that are numbered from 0.
#[derive(Debug, Default)]
pub(crate) struct Deadlines {
    heap: BinaryHeap<Reverse<(Instant, u32)>>,
    /// When each member's earliest entry comes up.
    armed: Vec<Instant>,
}

impl Deadlines {
    /// Sees to it that a member is due no later than at `deadline`.
    pub(crate) fn arm(&mut self, member: u32, deadline: Instant) {
        let index = member as usize;
        if index >= self.armed.len() {
            self.armed.resize(index + 1, Instant::FAR_FUTURE);
        }
        if deadline < self.armed[index] {
            self.armed[index] = deadline;
            self.heap.push(Reverse((deadline, member)));
        }
    }

    /// A member whose deadline has come; it has to be armed again.
    pub(crate) fn pop(&mut self, now: Instant) -> Option<u32> {
        while let Some(&Reverse((at, member))) = self.heap.peek().filter(|Reverse((at, _))| *at <= now) {
            self.heap.pop();
            let armed = &mut self.armed[member as usize];
            if *armed == at {
                *armed = Instant::FAR_FUTURE;
                return Some(member);
            }
        }
        None
    }

    /// When the next entry comes up.
    pub(crate) fn next(&self) -> Instant {
        self.heap.peek().map_or(Instant::FAR_FUTURE, |Reverse((at, _))| *at)
    }
}

/// The sockets that are waited for, each with a number.
pub(crate) struct Sockets {
    epoll: OwnedFd,
    ready: Vec<epoll::Event>,
}

impl Sockets {
    pub(crate) fn new() -> Result<Self, TrafficError> {
        // Without it the kernel may let a timer be 50 us late to save wake-ups. A kernel that refuses is only less exact.
        let _exact = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(Into::into);
        let epoll = epoll.map_err(TrafficError::of("sockets cannot be waited for"))?;
        Ok(Self { epoll, ready: Vec::with_capacity(EVENTS) })
    }

    pub(crate) fn add(&self, socket: impl AsFd, number: u32, flags: EventFlags) -> std::io::Result<()> {
        Ok(epoll::add(&self.epoll, socket, epoll::EventData::new_u64(u64::from(number)), flags)?)
    }

    /// Waits until a socket is ready or `deadline` has come; the sockets that are ready.
    pub(crate) fn wait(
        &mut self,
        deadline: Instant,
    ) -> Result<impl Iterator<Item = (u32, EventFlags)> + '_, TrafficError> {
        let left = deadline.saturating_since(now()).min(LONGEST_WAIT).as_nanos();
        let timeout =
            Timespec { tv_sec: (left / 1_000_000_000) as i64, tv_nsec: (left % 1_000_000_000) as _ };
        self.ready.clear();
        let mut fds = [PollFd::from_borrowed_fd(self.epoll.as_fd(), PollFlags::IN)];
        let waited = poll(&mut fds, Some(&timeout));
        let taken = waited.and_then(|count| if count > 0 { self.take() } else { Ok(()) });
        match taken {
            Ok(()) | Err(Errno::INTR) => {}
            Err(errno) => {
                return Err(TrafficError::of("waiting for sockets failed")(errno.into()));
            }
        }
        Ok(self.ready.iter().map(|event| (event.data.u64() as u32, event.flags)))
    }

    fn take(&mut self) -> Result<(), Errno> {
        epoll::wait(&self.epoll, spare_capacity(&mut self.ready), Some(&Timespec::default())).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_come_up_in_order_and_once() {
        let at = Instant::from_nanos;
        let mut deadlines = Deadlines::default();
        for (member, ns) in [(0, 50), (1, 20), (0, 30), (1, 40)] {
            deadlines.arm(member, at(ns));
        }
        assert_eq!((deadlines.next(), deadlines.pop(at(10))), (at(20), None));
        assert_eq!((deadlines.pop(at(100)), deadlines.pop(at(100))), (Some(1), Some(0)));
        assert_eq!((deadlines.pop(at(100)), deadlines.next()), (None, Instant::FAR_FUTURE));
        deadlines.arm(0, at(120));
        assert_eq!(deadlines.pop(at(120)), Some(0));
    }

    #[test]
    fn a_socket_that_is_ready_ends_the_wait() {
        let [a, b] = [0, 1].map(|_| std::net::UdpSocket::bind("127.0.0.1:0").unwrap());
        let mut sockets = Sockets::new().unwrap();
        sockets.add(&b, 7, EventFlags::IN).unwrap();
        assert_eq!(sockets.wait(Instant::ZERO).unwrap().count(), 0);
        a.send_to(b"x", b.local_addr().unwrap()).unwrap();
        let ready: Vec<u32> = sockets.wait(Instant::FAR_FUTURE).unwrap().map(|(number, _)| number).collect();
        assert_eq!(ready, [7]);
    }
}
