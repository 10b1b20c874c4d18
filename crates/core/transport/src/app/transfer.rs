//! A single transfer: a number of bytes from the start on, and nothing after them.
//!
//! The flows of data-centre studies are of this kind. The latency of its only completion is the flow completion time: the time from the
//! write to the last byte in order at the receiver.
//!
//! Worked number: 100,000 B over an idle link of 10 Mbit/s with packets of 1000 B of payload and 40 B of headers, and a window that
//! never limits, take 100 transmissions of 0.832 ms, which are 83.2 ms, and the propagation delay.

use super::ranges::FILES;
use super::{Application, Completion, TrafficSource, Write};
use cutline_params::Parameters;
use cutline_units::{Distribution, Instant, RandomStream};

/// The parameters of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Parameters)]
pub struct TransferParams {
    /// Size of the transfer; a draw below 1 B counts as 1 B.
    #[param(example = Distribution::Fixed(100_000.0), range = FILES, unit = "B")]
    pub size: Distribution,
}

/// A running transfer.
#[derive(Clone, Copy, Debug)]
pub struct Transfer {
    bytes: u64,
    started: Instant,
    /// [`Instant::FAR_FUTURE`] after the write.
    deadline: Instant,
    is_complete: bool,
}

impl Application for Transfer {
    type Params = TransferParams;

    const NAME: &'static str = "transfer";
    const TITLE: &'static str = "A single transfer";
    const SOURCE: &'static str = "flows of data-centre studies, such as Alizadeh et al. 2010";
    const WAITS_FOR_DELIVERY: bool = true;

    fn start(params: &TransferParams, at: Instant, random: &mut RandomStream) -> Self {
        let bytes = (params.size.sample(random).round() as u64).max(1);
        Self { bytes, started: at, deadline: at, is_complete: false }
    }
}

impl TrafficSource for Transfer {
    /// Time of the write; [`Instant::FAR_FUTURE`] after it.
    #[inline]
    fn deadline(&self) -> Instant {
        self.deadline
    }

    fn poll(&mut self, now: Instant, _random: &mut RandomStream) -> Option<Write> {
        if now < self.deadline {
            return None;
        }
        self.started = now;
        self.deadline = Instant::FAR_FUTURE;
        Some(Write::Bytes(self.bytes))
    }

    fn on_delivered(&mut self, now: Instant, total: u64) -> Option<Completion> {
        if self.deadline != Instant::FAR_FUTURE || self.is_complete || total < self.bytes {
            return None;
        }
        self.is_complete = true;
        Some(Completion { started: self.started, latency: now - self.started, bytes: self.bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutline_units::{Duration, Streams};

    #[test]
    fn a_transfer_is_written_and_completed_once() {
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        let mut random = Streams::new(1).stream("transfer", "test");
        let params = TransferParams { size: Distribution::Fixed(100_000.0) };
        let mut transfer = Transfer::start(&params, at(5), &mut random);
        assert_eq!((transfer.deadline(), transfer.poll(at(4), &mut random)), (at(5), None));
        assert_eq!(transfer.poll(at(5), &mut random), Some(Write::Bytes(100_000)));
        assert_eq!((transfer.deadline(), transfer.poll(at(9), &mut random)), (Instant::FAR_FUTURE, None));
        assert_eq!(transfer.on_delivered(at(10), 99_999), None);
        let latency = Duration::from_millis(83);
        let done = Completion { started: at(5), latency, bytes: 100_000 };
        assert_eq!(transfer.on_delivered(at(88), 100_000), Some(done));
        assert_eq!(transfer.on_delivered(at(89), 100_000), None);
    }

    #[test]
    fn a_transfer_has_at_least_a_byte() {
        let mut random = Streams::new(1).stream("transfer", "test");
        let params = TransferParams { size: Distribution::Lognormal { median: 1.0, sigma: 10.0 } };
        let sizes = (0..100).map(|_| Transfer::start(&params, Instant::ZERO, &mut random).bytes);
        assert!(sizes.into_iter().all(|bytes| bytes >= 1));
    }
}
