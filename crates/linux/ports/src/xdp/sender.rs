//! The sending side of a socket, and the time at which a frame counts as sent.
//!
//! *With zero copy* the driver takes frames out of the ring when it can, and a frame in the ring counts as sent.
//!
//! *With copies* the kernel takes frames while it is woken, at most 32 with one call, and stops when the interface accepts
//! no more. A frame is reported when the kernel has taken it. Those that it leaves in the ring are pending: they are
//! reported later, when the caller offers them again. There are never more than 32 of these.
//!
//! A frame in the ring cannot be taken back. When the interface goes down, those in it count as sent, and are sent when
//! it comes up; frames offered meanwhile are lost.

use cutline_sys::xdp::{MAX_SENT, TransmitQueue};
use rustix::io::Errno;
use std::iter::Peekable;

/// Answer of the kernel to a wake-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Woken {
    /// All frames were taken.
    Taken,
    /// Frames were taken, and the interface has lost the last of them.
    Lost,
    /// No more frames are taken for the moment.
    Busy,
    /// The interface is down.
    Down,
}

/// State of the frames that have been reported.
pub(crate) struct Sender {
    /// The index behind the last frame that was reported to the caller.
    reported: u32,
    is_zero_copy: bool,
    /// True if the interface was down at the last wake-up.
    is_down: bool,
}

/// The most frames that the kernel copies with one call (`TX_BATCH_SIZE`).
const BATCH: u32 = 32;

impl Sender {
    /// A sender for this queue.
    pub(crate) fn new(queue: &impl TransmitQueue, is_zero_copy: bool) -> Self {
        Self { reported: queue.pushed(), is_zero_copy, is_down: false }
    }

    /// Sends by this queue: [`cutline_router::Port::send`].
    pub(crate) fn send(
        &mut self,
        queue: &mut impl TransmitQueue,
        frames: &mut dyn Iterator<Item = &'_ [u8]>,
        each: &mut dyn FnMut(bool),
    ) {
        // The first are in the ring already.
        let mut frames = frames.skip(self.pending(queue) as usize).peekable();
        if self.is_down {
            self.is_down = wake(queue) == Woken::Down;
        }
        while !self.is_down && (self.pending(queue) > 0 || frames.peek().is_some()) {
            let reported = self.reported;
            self.push(queue, &mut frames, each);
            let woken = self.hand_over(queue, each);
            self.is_down = woken == Woken::Down;
            if woken == Woken::Busy || self.reported == reported {
                break;
            }
        }
        if self.is_down {
            frames.for_each(|_| each(false));
        }
    }

    /// Returns the number of frames in the ring that have not been reported.
    fn pending(&self, queue: &impl TransmitQueue) -> u32 {
        queue.pushed().wrapping_sub(self.reported)
    }

    /// Puts the next frames into the ring, as many as the kernel takes at once.
    fn push<'f>(
        &self,
        queue: &mut impl TransmitQueue,
        frames: &mut Peekable<impl Iterator<Item = &'f [u8]>>,
        each: &mut dyn FnMut(bool),
    ) {
        queue.reap();
        while self.pending(queue) < BATCH {
            let Some(frame) = frames.peek() else { break };
            if frame.len() > MAX_SENT {
                // Frames are reported in order.
                if self.pending(queue) > 0 {
                    break;
                }
                each(false);
            } else if !queue.push(frame) {
                break;
            }
            frames.next();
        }
        queue.submit();
    }

    /// Lets the kernel take the frames in the ring, and reports them.
    fn hand_over(&mut self, queue: &impl TransmitQueue, each: &mut dyn FnMut(bool)) -> Woken {
        if self.is_zero_copy {
            // Without a chunk for another frame, waking shows whether the interface is there at all.
            let is_needed = queue.needs_wakeup() || !queue.has_free_chunk();
            let is_down = is_needed && wake(queue) == Woken::Down;
            self.report_all(queue, each);
            return if is_down { Woken::Down } else { Woken::Taken };
        }
        for _ in 0..=BATCH {
            let woken = wake(queue);
            self.report(queue, woken, each);
            match woken {
                Woken::Down => {
                    self.report_all(queue, each);
                    return woken;
                }
                Woken::Busy => return woken,
                Woken::Taken | Woken::Lost if self.pending(queue) == 0 => return Woken::Taken,
                // It has other frames behind the lost one.
                Woken::Lost => {}
                Woken::Taken => break,
            }
        }
        Woken::Busy
    }

    /// Reports the frames that the kernel has taken.
    fn report(&mut self, queue: &impl TransmitQueue, woken: Woken, each: &mut dyn FnMut(bool)) {
        let outcome = outcome(self.reported, queue.taken(), self.pending(queue), woken);
        (0..outcome.sent).for_each(|_| each(true));
        (0..outcome.lost).for_each(|_| each(false));
        self.reported = self.reported.wrapping_add(outcome.sent + outcome.lost);
    }

    /// Reports all that is in the ring as sent.
    fn report_all(&mut self, queue: &impl TransmitQueue, each: &mut dyn FnMut(bool)) {
        (0..self.pending(queue)).for_each(|_| each(true));
        self.reported = queue.pushed();
    }
}

/// The outcome of the next frames to report: first those that were sent, then the lost one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Outcome {
    sent: u32,
    lost: u32,
}

/// The outcome after the kernel was woken, with `taken` as its index. It writes this index only after a frame that was not
/// lost, so that a lost one may be reported before, and then the index is behind `reported`.
fn outcome(reported: u32, taken: u32, pending: u32, woken: Woken) -> Outcome {
    let moved = taken.wrapping_sub(reported) as i32;
    let settled = u32::try_from(moved).unwrap_or(0).min(pending);
    match woken {
        Woken::Lost if pending == 0 => Outcome { sent: 0, lost: 0 },
        Woken::Lost => Outcome { sent: settled.saturating_sub(1), lost: 1 },
        _ => Outcome { sent: settled, lost: 0 },
    }
}

/// Wakes the kernel. With `EBUSY` a copying one reports that the interface has lost a frame.
fn wake(queue: &impl TransmitQueue) -> Woken {
    match queue.wake().as_ref().map_err(Errno::from_io_error) {
        Ok(()) => Woken::Taken,
        Err(Some(Errno::BUSY)) => Woken::Lost,
        Err(Some(Errno::NETDOWN | Errno::NXIO | Errno::NODEV)) => Woken::Down,
        Err(_) => Woken::Busy,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    /// A queue whose kernel takes frames when the test says so, and says of every waking that it went well.
    #[derive(Default)]
    struct Fake {
        free_chunks: usize,
        completed: usize,
        /// The lengths of all frames that were pushed.
        lengths: Vec<usize>,
        submitted: usize,
        taken: usize,
    }

    impl TransmitQueue for Fake {
        fn push(&mut self, frame: &[u8]) -> bool {
            if self.free_chunks == 0 {
                return false;
            }
            self.free_chunks -= 1;
            self.lengths.push(frame.len());
            true
        }

        fn submit(&mut self) {
            self.submitted = self.lengths.len();
        }

        fn reap(&mut self) {
            self.free_chunks += std::mem::take(&mut self.completed);
        }

        fn has_free_chunk(&self) -> bool {
            self.free_chunks > 0
        }

        fn pushed(&self) -> u32 {
            self.lengths.len() as u32
        }

        fn taken(&self) -> u32 {
            self.taken as u32
        }

        fn needs_wakeup(&self) -> bool {
            false
        }

        fn wake(&self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Fake {
        fn new(free_chunks: usize) -> Self {
            Self { free_chunks, ..Self::default() }
        }

        /// The kernel takes so many frames; returns their lengths.
        fn take(&mut self, count: usize) -> &[usize] {
            let from = self.taken;
            self.taken += count;
            assert!(self.taken <= self.submitted, "the kernel sees only what was submitted");
            &self.lengths[from..self.taken]
        }
    }

    /// Offers frames of these lengths; returns the reported ones.
    fn send(sender: &mut Sender, queue: &mut Fake, lengths: &[usize]) -> Vec<bool> {
        let frames: Vec<Vec<u8>> = lengths.iter().map(|&length| vec![0; length]).collect();
        let mut reported = Vec::new();
        sender.send(queue, &mut frames.iter().map(Vec::as_slice), &mut |sent| reported.push(sent));
        reported
    }

    #[test]
    fn with_zero_copy_frames_are_sent_once_they_are_in_the_ring_and_wait_for_chunks() {
        let mut queue = Fake::new(40);
        let mut sender = Sender::new(&queue, true);
        assert_eq!(send(&mut sender, &mut queue, &[60; 45]), [true; 40], "five have no chunk");
        assert_eq!(queue.take(40), [60; 40]);
        assert!(send(&mut sender, &mut queue, &[60; 5]).is_empty());
        queue.completed = 2;
        assert_eq!(send(&mut sender, &mut queue, &[61, 62, 63]), [true; 2]);
        assert_eq!(queue.take(2), [61, 62]);
    }

    #[test]
    fn with_copies_frames_are_reported_when_the_kernel_has_taken_them_and_pushed_once() {
        let mut queue = Fake::new(64);
        let mut sender = Sender::new(&queue, false);
        assert!(send(&mut sender, &mut queue, &[60; 40]).is_empty(), "the kernel has taken none");
        assert_eq!(sender.pending(&queue), BATCH);
        assert!(send(&mut sender, &mut queue, &[60; 40]).is_empty(), "the same are offered again");
        assert_eq!(queue.take(20), [60; 20]);
        assert_eq!(send(&mut sender, &mut queue, &[60; 40]), [true; 20]);
        // Twelve are in the ring still.
        let twelve = [&[60; 12][..], &[70; 30]].concat();
        assert!(send(&mut sender, &mut queue, &twelve[..12]).is_empty());
        assert_eq!(queue.take(12), [60; 12]);
        assert_eq!(send(&mut sender, &mut queue, &twelve), [true; 12]);
        assert_eq!(sender.pending(&queue), BATCH - 12, "of those offered behind them as many as had room");
    }

    #[test]
    fn a_frame_that_fits_no_chunk_is_lost_in_its_turn() {
        let mut queue = Fake::new(8);
        let mut sender = Sender::new(&queue, false);
        assert_eq!(send(&mut sender, &mut queue, &[5000, 60, 5000, 61]), [false]);
        assert_eq!(queue.take(1), [60]);
        assert_eq!(send(&mut sender, &mut queue, &[60, 5000, 61]), [true, false]);
        assert_eq!(queue.take(1), [61]);
        assert_eq!(send(&mut sender, &mut queue, &[61]), [true]);
        assert!(send(&mut sender, &mut queue, &[]).is_empty());
    }

    #[test]
    fn frames_taken_by_the_kernel_are_sent_except_a_lost_last_one() {
        let sent = |sent, lost| Outcome { sent, lost };
        assert_eq!(outcome(10, 15, 8, Woken::Taken), sent(5, 0));
        assert_eq!(outcome(10, 15, 8, Woken::Busy), sent(5, 0));
        assert_eq!(outcome(10, 15, 8, Woken::Lost), sent(4, 1));
        assert_eq!(outcome(u32::MAX, 2, 3, Woken::Taken), sent(3, 0), "over the wrap");
        assert_eq!(outcome(10, 10, 0, Woken::Taken), sent(0, 0));
    }

    #[test]
    fn a_lost_frame_is_reported_once_when_the_index_moves_later() {
        let lost = outcome(10, 10, 3, Woken::Lost);
        assert_eq!(lost, Outcome { sent: 0, lost: 1 });
        assert_eq!(outcome(11, 10, 2, Woken::Taken), Outcome { sent: 0, lost: 0 });
        assert_eq!(outcome(11, 13, 2, Woken::Taken), Outcome { sent: 2, lost: 0 });
        assert_eq!(outcome(13, 12, 0, Woken::Lost), Outcome { sent: 0, lost: 0 });
    }
}
