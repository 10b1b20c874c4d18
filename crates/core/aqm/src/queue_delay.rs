//! The length of a queue as a delay, estimated in one of three ways (PIE, PI2).
//!
//! Source: RFC 8033 sections 4.3 and 5.2.
//!
//! - `link-rate`: the backlog, divided by the link's rate.
//! - `timestamp`: the sojourn time of the packet that left last; none once the queue is empty.
//! - `departure-rate`: the backlog, divided by a measured rate (section 5.2): while 16 KiB or more wait, the time
//!   that 16 KiB need to leave is taken, and averaged with a weight of 1/4.
//!
//! Under TSQ a sojourn time depends on the packet's hint. There, the other two are right. `auto` is `timestamp` in a
//! FIFO, and `link-rate` under TSQ.

use crate::{Backlog, DrainRate};
use cutline_params::Choice;
use cutline_units::{Instant, Rate};

/// Estimate of the queuing delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum DelayEstimate {
    /// The last packet's sojourn time in a FIFO, the backlog at the link's rate under TSQ.
    Auto,
    /// Backlog over the link's rate.
    LinkRate,
    /// The last packet's sojourn time.
    Timestamp,
    /// Backlog over the measured departure rate.
    DepartureRate,
}

/// `DQ_THRESHOLD` of RFC 8033 section 5.2, B.
const THRESHOLD: u64 = 1 << 14;
/// The weight of a measurement: `DQ_THRESHOLD` / 2^16.
const WEIGHT: f64 = THRESHOLD as f64 / 65_536.0;

/// An estimate of the queuing delay.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QueueDelay {
    estimate: DelayEstimate,
    drain: DrainRate,
    /// The last sojourn time, s.
    sojourn: f64,
    /// Begin of the measurement of departures, and the bytes that have left since then.
    measuring: Option<(Instant, u64)>,
    /// The mean time that 16 KiB need to leave, s; 0 until it is known.
    dq_time: f64,
}

impl QueueDelay {
    pub(crate) fn new(estimate: DelayEstimate, rate: Rate) -> Self {
        let drain = DrainRate::new(rate);
        Self { estimate, drain, sojourn: 0.0, measuring: None, dq_time: 0.0 }
    }

    /// The packets leave in another order than they come.
    pub(crate) fn reorders(&mut self) {
        if self.estimate == DelayEstimate::Auto {
            self.estimate = DelayEstimate::LinkRate;
        }
    }

    pub(crate) fn set_rate(&mut self, rate: Rate) {
        self.drain = DrainRate::new(rate);
    }

    pub(crate) fn reset(&mut self) {
        (self.sojourn, self.measuring, self.dq_time) = (0.0, None, 0.0);
    }

    /// The delay of the queue that now is `backlog`, s.
    pub(crate) fn estimate(&self, backlog: Backlog) -> f64 {
        match self.estimate {
            DelayEstimate::LinkRate => self.drain.time(backlog.bytes).as_secs_f64(),
            DelayEstimate::Auto | DelayEstimate::Timestamp => self.sojourn,
            DelayEstimate::DepartureRate => backlog.bytes as f64 * self.dq_time / THRESHOLD as f64,
        }
    }

    #[inline]
    pub(crate) fn departed(&mut self, now: Instant, size: u32, arrived: Instant, backlog: Backlog) {
        match self.estimate {
            DelayEstimate::LinkRate => (),
            DelayEstimate::Auto | DelayEstimate::Timestamp => {
                let sojourn = now.saturating_since(arrived).as_secs_f64();
                self.sojourn = if backlog.packets == 0 { 0.0 } else { sojourn };
            }
            DelayEstimate::DepartureRate => self.measure(now, size, backlog),
        }
    }

    /// RFC 8033 section 5.2.
    fn measure(&mut self, now: Instant, size: u32, backlog: Backlog) {
        if let Some((since, bytes)) = &mut self.measuring {
            *bytes += u64::from(size);
            if *bytes >= THRESHOLD {
                let time = now.saturating_since(*since).as_secs_f64();
                let known = self.dq_time > 0.0;
                self.dq_time = if known { WEIGHT * time + (1.0 - WEIGHT) * self.dq_time } else { time };
                self.measuring = None;
            }
        }
        if self.measuring.is_none() && backlog.bytes >= THRESHOLD {
            self.measuring = Some((now, 0));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutline_units::Duration;

    /// 8 Mbit/s: a packet of 1024 B every 1.024 ms, behind which 20 of them wait.
    fn after_departures(estimate: DelayEstimate, packets: u64) -> QueueDelay {
        let mut delay = QueueDelay::new(estimate, Rate::from_mbps(8));
        for i in 0..packets {
            let now = Instant::from_nanos(1_024_000 * i);
            delay.departed(now, 1024, now - Duration::from_nanos(1_024_000 * i.min(20)), waiting());
        }
        delay
    }

    fn waiting() -> Backlog {
        Backlog { packets: 20, bytes: 20 * 1024 }
    }

    #[test]
    fn all_three_agree_on_a_standing_queue() {
        for &estimate in DelayEstimate::ALL {
            let mut queue = after_departures(estimate, 100);
            let delay = queue.estimate(waiting());
            assert!((delay - 0.020_48).abs() < 1e-9, "{estimate:?} {delay}");
            let now = Instant::from_nanos(102_400_000);
            queue.departed(now, 1024, now - Duration::from_millis(1), Backlog::default());
            assert_eq!(queue.estimate(Backlog::default()), 0.0, "{estimate:?}");
        }
    }

    #[test]
    fn sojourn_times_are_not_taken_of_packets_that_change_places() {
        let estimates = |estimate| {
            let mut queue = QueueDelay::new(estimate, Rate::from_mbps(8));
            let fifo = queue.estimate(waiting());
            queue.reorders();
            (fifo, queue.estimate(waiting()))
        };
        assert_eq!(estimates(DelayEstimate::Timestamp), (0.0, 0.0), "nothing has left yet");
        assert_eq!(estimates(DelayEstimate::Auto), (0.0, 0.020_48));
    }

    #[test]
    fn a_rate_is_measured_over_sixteen_kibibytes() {
        // RFC 8033 section 5.2.
        assert_eq!(
            after_departures(DelayEstimate::DepartureRate, 16).estimate(waiting()),
            0.0,
            "not known yet"
        );
        assert!(after_departures(DelayEstimate::DepartureRate, 17).estimate(waiting()) > 0.0);
        let mut delay = after_departures(DelayEstimate::DepartureRate, 17);
        // The next 16 KiB take twice as long, and count a quarter: 16.384 ms x 1.25.
        for i in 1..=16 {
            let now = Instant::from_nanos(1_024_000 * 16 + 2_048_000 * i);
            delay.departed(now, 1024, now, waiting());
        }
        assert!((delay.dq_time - 0.020_48).abs() < 1e-12, "{}", delay.dq_time);
    }
}
