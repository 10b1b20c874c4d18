//! What a socket sends by: a ring of frames for the kernel, a ring of empty chunks that come back, and the chunks.
//!
//! *With zero copy* the driver takes frames out of the ring when it can, and a frame in the ring is as good as sent.
//!
//! *With copies* the kernel takes them while it is woken, at most 32 with one call, and goes no further when the interface
//! takes no more. A frame is told of when the kernel has taken it; those that it leaves in the ring are told of later,
//! when the caller offers them again. There are never more than 32 of these.
//!
//! A frame in the ring cannot be taken back. When the interface goes down, those in it count as sent, and are sent when
//! it comes up; what is offered meanwhile is lost.
#![expect(unsafe_code, reason = "memory that is shared with the kernel")]

use super::rings::{Consumer, Producer};
use super::umem::{CHUNK, Umem};
use rustix::fd::BorrowedFd;
use rustix::io::Errno;
use rustix::net::{SendFlags, send};
use std::iter::Peekable;

/// The sending half of a socket.
pub(crate) struct Sender {
    ring: Producer<libc::xdp_desc>,
    completed: Consumer<u64>,
    /// Chunks that hold no frame.
    free: Vec<u64>,
    /// The index behind what the caller has been told of.
    told: u32,
    zero_copy: bool,
    /// Whether the interface was down when we last looked.
    down: bool,
}

/// How many frames the kernel copies with one call (`TX_BATCH_SIZE`).
const BATCH: u32 = 32;

/// What the kernel says when it is woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Woken {
    /// It has taken what was there.
    Taken,
    /// It has taken frames, and the interface has lost the last of them.
    Lost,
    /// It takes no more for the moment.
    Busy,
    /// The interface is down.
    Down,
}

impl Sender {
    /// By these rings, with these chunks.
    pub(crate) fn new(ring: Producer<libc::xdp_desc>, completed: Consumer<u64>, free: Vec<u64>) -> Self {
        let told = ring.next();
        Self { ring, completed, free, told, zero_copy: false, down: false }
    }

    /// Whether the driver takes frames of itself.
    pub(crate) const fn set_zero_copy(&mut self, zero_copy: bool) {
        self.zero_copy = zero_copy;
    }

    /// Sends by this socket from this memory: [`cutline_router::Port::send`].
    pub(crate) fn send(
        &mut self,
        socket: BorrowedFd<'_>,
        memory: &mut Umem,
        frames: &mut dyn Iterator<Item = &'_ [u8]>,
        each: &mut dyn FnMut(bool),
    ) {
        // The first are in the ring already.
        let mut frames = frames.skip(self.untold() as usize).peekable();
        if self.down {
            self.down = wake(socket) == Woken::Down;
        }
        while !self.down && (self.untold() > 0 || frames.peek().is_some()) {
            let told = self.told;
            self.put(memory, &mut frames, each);
            let woken = self.hand_over(socket, each);
            self.down = woken == Woken::Down;
            if woken == Woken::Busy || self.told == told {
                break;
            }
        }
        if self.down {
            frames.for_each(|_| each(false));
        }
    }

    /// How many frames in the ring the caller does not know of.
    const fn untold(&self) -> u32 {
        self.ring.next().wrapping_sub(self.told)
    }

    /// Puts the next frames into the ring, as many as the kernel takes at once.
    fn put<'f>(
        &mut self,
        memory: &mut Umem,
        frames: &mut Peekable<impl Iterator<Item = &'f [u8]>>,
        each: &mut dyn FnMut(bool),
    ) {
        self.reap();
        while self.untold() < BATCH {
            let Some(frame) = frames.peek() else { break };
            if frame.len() > CHUNK as usize {
                // Frames are told of in order.
                if self.untold() > 0 {
                    break;
                }
                each(false);
            } else {
                let Some(chunk) = self.free.pop() else { break };
                // SAFETY: chunks that are free are known to nobody else.
                unsafe { memory.write(chunk, frame) };
                let entry = libc::xdp_desc { addr: chunk, len: frame.len() as u32, options: 0 };
                if !self.ring.push(entry) {
                    self.free.push(chunk);
                    break;
                }
            }
            frames.next();
        }
        self.ring.publish();
    }

    /// Takes back the chunks whose frames have been sent.
    fn reap(&mut self) {
        while let Some(address) = self.completed.pop() {
            self.free.push(Umem::chunk_of(address));
        }
        self.completed.release();
    }

    /// Lets the kernel take what is in the ring, and tells of it.
    fn hand_over(&mut self, socket: BorrowedFd<'_>, each: &mut dyn FnMut(bool)) -> Woken {
        if self.zero_copy {
            // Without a chunk to put a frame into, it is asked whether the interface is there at all.
            let is_needed = self.ring.needs_wakeup() || self.free.is_empty();
            let is_down = is_needed && wake(socket) == Woken::Down;
            self.tell_all(each);
            return if is_down { Woken::Down } else { Woken::Taken };
        }
        for _ in 0..=BATCH {
            let woken = wake(socket);
            self.tell(woken, each);
            match woken {
                Woken::Down => {
                    self.tell_all(each);
                    return woken;
                }
                Woken::Busy => return woken,
                Woken::Taken | Woken::Lost if self.untold() == 0 => return Woken::Taken,
                // It has other frames behind the lost one.
                Woken::Lost => {}
                Woken::Taken => break,
            }
        }
        Woken::Busy
    }

    /// Tells of what the kernel has taken.
    fn tell(&mut self, woken: Woken, each: &mut dyn FnMut(bool)) {
        let outcome = outcome(self.told, self.ring.taken(), self.untold(), woken);
        (0..outcome.sent).for_each(|_| each(true));
        (0..outcome.lost).for_each(|_| each(false));
        self.told = self.told.wrapping_add(outcome.sent + outcome.lost);
    }

    /// Tells of all that is in the ring as sent.
    fn tell_all(&mut self, each: &mut dyn FnMut(bool)) {
        (0..self.untold()).for_each(|_| each(true));
        self.told = self.ring.next();
    }
}

/// What has become of the next frames to tell of: first those sent, then the lost one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Outcome {
    sent: u32,
    lost: u32,
}

/// After the kernel was woken, `taken` being its index. It writes this index only after a frame that was not lost, so
/// that a lost one may be told of before, and then the index is behind `told`.
fn outcome(told: u32, taken: u32, untold: u32, woken: Woken) -> Outcome {
    let moved = taken.wrapping_sub(told) as i32;
    let settled = u32::try_from(moved).unwrap_or(0).min(untold);
    match woken {
        Woken::Lost if untold == 0 => Outcome { sent: 0, lost: 0 },
        Woken::Lost => Outcome { sent: settled.saturating_sub(1), lost: 1 },
        _ => Outcome { sent: settled, lost: 0 },
    }
}

/// Lets the kernel send. With `EBUSY` a copying one says that the interface has lost a frame.
fn wake(socket: BorrowedFd<'_>) -> Woken {
    match send(socket, &[], SendFlags::DONTWAIT) {
        Ok(_) => Woken::Taken,
        Err(Errno::BUSY) => Woken::Lost,
        Err(Errno::NETDOWN | Errno::NXIO | Errno::NODEV) => Woken::Down,
        Err(_) => Woken::Busy,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fd::{AsFd as _, OwnedFd};
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    /// A sender with `chunks`, and a socket that says of every waking that it went well.
    struct Bed {
        sender: Sender,
        memory: Umem,
        socket: OwnedFd,
        _peer: OwnedFd,
    }

    impl Bed {
        fn new(chunks: u32, zero_copy: bool) -> Self {
            let flags = SocketFlags::CLOEXEC;
            let (socket, peer) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
            let free = (0..chunks).map(Umem::address).collect();
            let mut sender = Sender::new(Producer::of_tests(64), Consumer::of_tests(64), free);
            sender.set_zero_copy(zero_copy);
            Self { sender, memory: Umem::new(chunks).unwrap(), socket, _peer: peer }
        }

        /// Offers frames of these lengths; answers what was told.
        fn send(&mut self, lengths: &[usize]) -> Vec<bool> {
            let frames: Vec<Vec<u8>> = lengths.iter().map(|&length| vec![length as u8; length]).collect();
            let mut told = Vec::new();
            let Self { sender, memory, socket, .. } = self;
            let mut frames = frames.iter().map(Vec::as_slice);
            sender.send(socket.as_fd(), memory, &mut frames, &mut |sent| told.push(sent));
            told
        }

        /// What the kernel finds in the ring: lengths, and whether the bytes are there.
        fn taken(&self, count: u32) -> Vec<u32> {
            let entries = self.sender.ring.take(count);
            for entry in &entries {
                // SAFETY: there is no kernel, and nothing is written while this is looked at.
                let bytes = unsafe { self.memory.frame(entry.addr, entry.len) }.unwrap();
                assert!(bytes.iter().all(|&byte| byte == entry.len as u8));
            }
            entries.iter().map(|entry| entry.len).collect()
        }
    }

    #[test]
    fn with_zero_copy_frames_are_sent_once_they_are_in_the_ring_and_wait_for_chunks() {
        let mut bed = Bed::new(40, true);
        assert_eq!(bed.send(&[60; 45]), [true; 40], "five have no chunk");
        assert_eq!(bed.taken(40), [60; 40]);
        assert!(bed.send(&[60; 5]).is_empty());
        for chunk in [3, 7] {
            bed.sender.completed.offer(Umem::address(chunk));
        }
        assert_eq!(bed.send(&[61, 62, 63]), [true; 2]);
        assert_eq!(bed.taken(2), [61, 62]);
    }

    #[test]
    fn with_copies_frames_are_told_of_when_the_kernel_has_taken_them_and_put_in_once() {
        let mut bed = Bed::new(64, false);
        assert!(bed.send(&[60; 40]).is_empty(), "the kernel has taken none");
        assert_eq!(bed.sender.untold(), BATCH);
        assert!(bed.send(&[60; 40]).is_empty(), "the same are offered again");
        assert_eq!(bed.taken(20), [60; 20]);
        assert_eq!(bed.send(&[60; 40]), [true; 20]);
        // Twelve are in the ring still.
        let twelve = [&[60; 12][..], &[70; 30]].concat();
        assert!(bed.send(&twelve[..12]).is_empty());
        assert_eq!(bed.taken(12), [60; 12]);
        assert_eq!(bed.send(&twelve), [true; 12]);
        assert_eq!(bed.sender.untold(), BATCH - 12, "of those offered behind them as many as had room");
    }

    #[test]
    fn a_frame_that_fits_no_chunk_is_lost_in_its_turn() {
        let mut bed = Bed::new(8, false);
        assert_eq!(bed.send(&[5000, 60, 5000, 61]), [false]);
        assert_eq!(bed.taken(1), [60]);
        assert_eq!(bed.send(&[60, 5000, 61]), [true, false]);
        assert_eq!(bed.taken(1), [61]);
        assert_eq!(bed.send(&[61]), [true]);
        assert!(bed.send(&[]).is_empty());
    }

    #[test]
    fn what_the_kernel_has_taken_is_sent_but_for_the_last_where_that_was_lost() {
        let sent = |sent, lost| Outcome { sent, lost };
        assert_eq!(outcome(10, 15, 8, Woken::Taken), sent(5, 0));
        assert_eq!(outcome(10, 15, 8, Woken::Busy), sent(5, 0));
        assert_eq!(outcome(10, 15, 8, Woken::Lost), sent(4, 1));
        assert_eq!(outcome(u32::MAX, 2, 3, Woken::Taken), sent(3, 0), "over the wrap");
        assert_eq!(outcome(10, 10, 0, Woken::Taken), sent(0, 0));
    }

    #[test]
    fn a_lost_frame_is_told_once_when_the_index_comes_later() {
        let lost = outcome(10, 10, 3, Woken::Lost);
        assert_eq!(lost, Outcome { sent: 0, lost: 1 });
        assert_eq!(outcome(11, 10, 2, Woken::Taken), Outcome { sent: 0, lost: 0 });
        assert_eq!(outcome(11, 13, 2, Woken::Taken), Outcome { sent: 2, lost: 0 });
        assert_eq!(outcome(13, 12, 0, Woken::Lost), Outcome { sent: 0, lost: 0 });
    }
}
