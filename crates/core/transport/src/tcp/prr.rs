//! Proportional rate reduction (RFC 6937): the number of bytes that leave with each acknowledgement in fast recovery.
//!
//! The window falls to its threshold over the round trip of a recovery, in proportion to the delivered data, instead of
//! at once. Then a sender keeps sending in recovery, and a recovery with many losses does not end in silence.
//!
//! While the pipe exceeds `ssthresh`, `sndcnt = ceil(prr_delivered * ssthresh / RecoverFS) - prr_out` may leave. Below it, as much as was
//! delivered may leave, and a segment more while the acknowledgements show progress: the bound of slow start (RFC 6937 section 3.1).
//!
//! Worked: 20 segments of 1000 B in flight and a threshold of 10 segments; each acknowledgement of a segment releases half of one:
//! after 4 of them, `ceil(4000 * 10,000 / 20,000)` = 2000 B have left.
//!
//! As in Linux: `RecoverFS` is the window before the reduction, and the extra segment below the threshold needs an acknowledgement that
//! advances and brings no new loss to light (the heuristic that RFC 6937 section 3.1 leaves to the implementation).

/// The state of one recovery. Everything is in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reduction {
    /// `RecoverFS`.
    before: u64,
    /// `prr_delivered`: data delivered in this recovery.
    delivered: u64,
    /// `prr_out`: data sent in this recovery.
    out: u64,
}

/// An acknowledgement in recovery.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Delivery {
    /// Newly acknowledged or `SACKed` data, bytes.
    pub(crate) bytes: u64,
    /// True if it advances, and no further loss was found with it.
    pub(crate) is_progress: bool,
}

impl Reduction {
    /// Begins a recovery with this window before it.
    pub(crate) fn begin(window: u64) -> Self {
        Self { before: window.max(1), delivered: 0, out: 0 }
    }

    /// Counts sent data.
    pub(crate) fn sent(&mut self, bytes: u64) {
        self.out += bytes;
    }

    /// Returns the window after an acknowledgement, with `pipe` bytes in the network.
    pub(crate) fn window(&mut self, delivery: Delivery, pipe: u64, ssthresh: u64, mss: u64) -> u64 {
        self.delivered += delivery.bytes;
        let allowed = if pipe > ssthresh {
            let share = u128::from(self.delivered) * u128::from(ssthresh);
            (share.div_ceil(u128::from(self.before)) as u64).saturating_sub(self.out)
        } else {
            let limit = self.delivered.saturating_sub(self.out).max(delivery.bytes);
            (limit + if delivery.is_progress { mss } else { 0 }).min(ssthresh - pipe)
        };
        // The first retransmission leaves whatever the window is.
        pipe + if self.out == 0 { allowed.max(mss) } else { allowed }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1000;

    fn delivery(segments: u64) -> Delivery {
        Delivery { bytes: segments * MSS, is_progress: false }
    }

    /// Each acknowledgement sends the segments that the window then allows above the pipe. Returns the total sent, segments.
    fn run(reduction: &mut Reduction, mut pipe: u64, ssthresh: u64, acknowledgements: u64) -> (u64, u64) {
        let mut left = 0;
        for _ in 0..acknowledgements {
            pipe -= MSS;
            let window = reduction.window(delivery(1), pipe, ssthresh, MSS);
            while pipe + MSS <= window {
                pipe += MSS;
                left += 1;
                reduction.sent(MSS);
            }
        }
        (left, pipe)
    }

    #[test]
    fn half_as_much_leaves_as_is_delivered() {
        let mut reduction = Reduction::begin(20 * MSS);
        // The first retransmission leaves at once, and then every second acknowledgement releases a segment.
        assert_eq!(run(&mut reduction, 20 * MSS, 10 * MSS, 4), (2, 18 * MSS));
        let (left, pipe) = run(&mut reduction, 18 * MSS, 10 * MSS, 16);
        assert_eq!((left, pipe), (8, 10 * MSS), "the pipe ends at the threshold");
    }

    #[test]
    fn below_the_threshold_what_is_delivered_leaves_and_progress_adds_a_segment() {
        let mut reduction = Reduction::begin(20 * MSS);
        reduction.sent(MSS);
        // 15 of 20 segments were lost: 4 are in the pipe.
        assert_eq!(reduction.window(delivery(1), 4 * MSS, 10 * MSS, MSS), 5 * MSS);
        let progress = Delivery { bytes: MSS, is_progress: true };
        assert_eq!(reduction.window(progress, 4 * MSS, 10 * MSS, MSS), 6 * MSS);
        assert_eq!(
            reduction.window(delivery(3), 9 * MSS, 10 * MSS, MSS),
            10 * MSS,
            "never above the threshold"
        );
    }
}
