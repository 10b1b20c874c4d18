//! The window of TCP Prague: `DCTCP`'s response to the share of marks, made fit for the Internet.
//!
//! Source: draft-briscoe-iccrg-prague-congestion-control.
//!
//! ```text
//! vrtt  = max(srtt, 25 ms)
//! alpha = (1 - g) alpha + g M                       each vrtt, g = 1/16, M = share of marked segments
//! cwnd += unmarked mss / cwnd (srtt / vrtt)^2       with each acknowledgement, also after a reduction
//! cwnd -= cwnd alpha / 2                            at marks, at most once per vrtt and window of data
//! cwnd /= 2                                         at a loss
//! pacing_rate = cwnd / srtt                         twice that in slow start
//! ```
//!
//! *Less dependence on the round-trip time*: growth and reductions are those of a flow whose round trip is vrtt. Flows with 5 and with 25 ms
//! then have about the same rate, where `DCTCP`'s rates are inversely proportional to the round trips, or worse.
//!
//! *Accurate ECN*: each acknowledgement has the count of marked segments ([`Ack::marked`](super::Ack)), so the share is exact when
//! acknowledgements are delayed or lost. RFC 9768 has three bits of that count in the header, and more in an option.
//!
//! Alpha is 0 before the first mark, and that mark sets it to 1: it halves the window and ends slow start.
//!
//! Worked: at a round trip of 5 ms, the window grows by (5 / 25)^2 = 1/25 segment in each, and by a fifth of a segment in 25 ms; a flow
//! with 25 ms grows by a whole one, and has five times the window at the same rate (`growth_is_that_of_a_round_trip_of_25_ms`).
//!
//! Departures from the draft: windows have two segments at least, not fractions of one; there is no fall-back at queues that mark all flows
//! alike, which the draft leaves to further work.

use super::congestion::{Acked, CongestionAlgorithm, CongestionControl, NoParams, Window};
use super::{LossState, Params, RateSample};
use cutline_units::{Duration, Instant, Rate};

/// The gain g.
const GAIN: f64 = 1.0 / 16.0;
/// The least virtual round-trip time.
const LEAST_VIRTUAL: Duration = Duration::from_millis(25);
/// Pacing in slow start, to the window in a round trip.
const SLOW_START_PACING: f64 = 2.0;
/// Round trip that is assumed before the first sample.
const ASSUMED_RTT: Duration = Duration::from_millis(1);
/// The lowest and the highest pacing rate, bit/s.
const RATES: (f64, f64) = (1e3, 1e12);

/// An interval of a virtual round trip and of a window of data.
#[derive(Clone, Copy, Debug)]
struct Interval {
    from: Instant,
    /// Count of delivered bytes when it began.
    delivered: u64,
}

impl Interval {
    fn begin(sample: &RateSample) -> Self {
        Self { from: sample.now, delivered: sample.total_delivered }
    }

    /// Returns whether a virtual round trip has passed, and a segment is delivered that left after its beginning.
    fn has_passed(&self, sample: &RateSample, virtual_rtt: Duration) -> bool {
        let has_round = sample.prior_delivered.is_some_and(|prior| prior >= self.delivered);
        has_round && sample.now.saturating_since(self.from) >= virtual_rtt
    }
}

/// The state of the algorithm.
#[derive(Clone, Copy, Debug)]
pub struct Prague {
    mss: f64,
    /// The window with fractions of bytes, and its threshold.
    cwnd: f64,
    ssthresh: f64,
    /// The estimate of the share of marks; `None` before the first mark.
    alpha: Option<f64>,
    observed: Interval,
    /// Bytes delivered and bytes marked in the interval.
    counts: (u64, u64),
    /// The interval in which marks do not reduce the window again.
    reduced: Option<Interval>,
    /// A recovery or a timeout has begun.
    has_loss: bool,
    pacing_rate: f64,
}

impl CongestionAlgorithm for Prague {
    type Params = NoParams;

    const NAME: &'static str = "prague";
    const TITLE: &'static str = "TCP Prague";
    const SOURCE: &'static str = "draft-briscoe-iccrg-prague-congestion-control";
    const SCALABLE: bool = true;
    const PACED: bool = true;

    fn begin(_params: &NoParams, tcp: &Params) -> Self {
        let cwnd = tcp.initial_window_bytes() as f64;
        Self {
            mss: f64::from(tcp.mss),
            cwnd,
            ssthresh: f64::INFINITY,
            alpha: None,
            observed: Interval { from: Instant::ZERO, delivered: 0 },
            counts: (0, 0),
            reduced: None,
            has_loss: false,
            pacing_rate: SLOW_START_PACING * cwnd / ASSUMED_RTT.as_secs_f64(),
        }
    }
}

impl CongestionControl for Prague {
    /// Does nothing: `delivered` sets the window.
    fn avoid(&mut self, _window: &mut Window, _acked: &Acked, _mss: u64) {}

    /// Halves the threshold, because a recovery begins or the timer has expired. The sender's own threshold stays.
    fn congested(&mut self, window: &Window, _flight: u64, _mss: u64) -> u64 {
        self.ssthresh = (self.cwnd / 2.0).max(2.0 * self.mss);
        self.has_loss = true;
        window.ssthresh
    }

    /// Leaves the response to `delivered`, which has the count of marks.
    fn marked(&mut self, window: &Window, _flight: u64, _mss: u64) -> u64 {
        window.ssthresh
    }

    fn delivered(&mut self, window: &mut Window, sample: &RateSample) {
        let virtual_rtt = sample.srtt.max(LEAST_VIRTUAL);
        self.observe(sample, virtual_rtt);
        if std::mem::take(&mut self.has_loss) || sample.state == LossState::Timeout {
            // After a timeout, the sender has set the window, and slow start follows.
            self.cwnd = if sample.state == LossState::Timeout { window.cwnd as f64 } else { self.ssthresh };
        }
        if sample.state != LossState::Recovery && !sample.is_app_limited {
            self.grow(sample, virtual_rtt);
        }
        if self.reduced.is_some_and(|reduced| reduced.has_passed(sample, virtual_rtt)) {
            self.reduced = None;
        }
        if sample.newly_marked > 0 && self.reduced.is_none() && sample.state == LossState::Open {
            self.cwnd -= self.cwnd * self.alpha.unwrap_or(1.0) / 2.0;
            self.cwnd = self.cwnd.max(2.0 * self.mss);
            self.ssthresh = self.cwnd;
            self.reduced = Some(Interval::begin(sample));
        }
        let least = if sample.state == LossState::Timeout { self.mss } else { 2.0 * self.mss };
        self.cwnd = self.cwnd.max(least);
        window.cwnd = self.cwnd as u64;
        if !sample.srtt.is_zero() {
            let gain = if self.cwnd < self.ssthresh { SLOW_START_PACING } else { 1.0 };
            self.pacing_rate = gain * self.cwnd / sample.srtt.as_secs_f64();
        }
    }

    fn pacing_rate(&self) -> Option<Rate> {
        Some(Rate::from_bps((self.pacing_rate * 8.0).clamp(RATES.0, RATES.1) as u64))
    }
}

impl Prague {
    /// Counts delivered and marked bytes, and updates alpha once in a virtual round trip.
    fn observe(&mut self, sample: &RateSample, virtual_rtt: Duration) {
        self.counts.0 += sample.newly_delivered;
        self.counts.1 += sample.newly_marked;
        if sample.newly_marked > 0 && self.alpha.is_none() {
            self.alpha = Some(1.0);
            (self.observed, self.counts) = (Interval::begin(sample), (0, 0));
        }
        if self.counts.0 > 0 && self.observed.has_passed(sample, virtual_rtt) {
            let share = (self.counts.1 as f64 / self.counts.0 as f64).min(1.0);
            self.alpha = self.alpha.map(|alpha| alpha + GAIN * (share - alpha));
            (self.observed, self.counts) = (Interval::begin(sample), (0, 0));
        }
    }

    fn grow(&mut self, sample: &RateSample, virtual_rtt: Duration) {
        let unmarked = sample.newly_delivered.saturating_sub(sample.newly_marked) as f64;
        if self.cwnd < self.ssthresh {
            self.cwnd = (self.cwnd + unmarked).min(self.ssthresh.max(self.cwnd));
            return;
        }
        let scale = sample.srtt.as_secs_f64() / virtual_rtt.as_secs_f64();
        self.cwnd += unmarked * self.mss / self.cwnd * scale * scale;
    }
}

#[cfg(test)]
mod tests {
    use super::super::bbr::sample;
    use super::*;

    const MSS: u64 = 1000;

    fn prague(cwnd: u64) -> (Prague, Window) {
        let tcp = Params { algorithm: crate::tcp::Algorithm::Prague, ..Params::default() };
        let begun = Prague { cwnd: cwnd as f64, ssthresh: 0.0, ..Prague::begin(&NoParams {}, &tcp) };
        (begun, Window { cwnd, ssthresh: u64::MAX })
    }

    /// An acknowledgement of a segment in a flow with this round trip, in milliseconds.
    fn ack(ms: u64, rtt: u64, newly_marked: u64) -> RateSample {
        let srtt = Duration::from_millis(rtt);
        let total_delivered = ms * MSS;
        let prior_delivered = Some(total_delivered.saturating_sub(rtt * MSS));
        RateSample {
            newly_delivered: MSS,
            newly_marked,
            total_delivered,
            prior_delivered,
            srtt,
            ..sample(ms)
        }
    }

    #[test]
    fn growth_is_that_of_a_round_trip_of_25_ms() {
        // draft-briscoe-iccrg-prague-congestion-control, RTT independence: 100 segments are a window of each flow.
        for (rtt, growth) in [(5, 0.04), (25, 1.0), (100, 1.0)] {
            let (mut prague, mut window) = prague(100 * MSS);
            (0..100).for_each(|n| prague.delivered(&mut window, &ack(1000 + n, rtt, 0)));
            let grown = prague.cwnd / MSS as f64 - 100.0;
            assert!((grown - growth).abs() < 0.01 * growth, "{rtt} ms: {grown} segments");
            let rate = prague.cwnd / (rtt as f64 / 1000.0);
            assert!((prague.pacing_rate - rate).abs() < 1.0, "{} {rate}", prague.pacing_rate);
        }
    }

    #[test]
    fn the_first_mark_halves_the_window_and_later_ones_by_half_of_alpha() {
        let (mut prague, mut window) = prague(100 * MSS);
        prague.delivered(&mut window, &ack(1000, 25, MSS));
        assert_eq!((prague.alpha, window.cwnd), (Some(1.0), 50 * MSS));
        // Within the virtual round trip, marks reduce nothing, and the marked segments do not grow the window.
        (1..25).for_each(|n| prague.delivered(&mut window, &ack(1000 + n, 25, MSS)));
        assert_eq!(window.cwnd, 50 * MSS);
        // After it, alpha is still 1 as all were marked; without marks it then falls by a sixteenth each 25 ms.
        prague.delivered(&mut window, &ack(1025, 25, 0));
        let alpha = prague.alpha.unwrap();
        assert!((alpha - (1.0 - GAIN / 25.0)).abs() < 1e-9, "{alpha}");
        (1..=25).for_each(|n| prague.delivered(&mut window, &ack(1025 + n, 25, 0)));
        let fallen = prague.alpha.unwrap();
        assert!((fallen - alpha * (1.0 - GAIN)).abs() < 1e-9, "{fallen}");
        let before = prague.cwnd;
        prague.delivered(&mut window, &ack(1060, 25, MSS));
        assert!((prague.cwnd - before * (1.0 - fallen / 2.0)).abs() < 1.0, "{} {before}", prague.cwnd);
    }

    #[test]
    fn a_loss_halves_the_window_once_and_recovery_does_not_grow_it() {
        let (mut prague, mut window) = prague(100 * MSS);
        assert_eq!(prague.congested(&window, 0, MSS), u64::MAX);
        for n in 0..10 {
            let sample = RateSample { state: LossState::Recovery, ..ack(1000 + n, 25, 0) };
            prague.delivered(&mut window, &sample);
            assert_eq!(window.cwnd, 50 * MSS);
        }
    }

    #[test]
    fn after_a_timeout_slow_start_leads_to_half_the_window() {
        let (mut prague, mut window) = prague(100 * MSS);
        prague.congested(&window, 0, MSS);
        window.cwnd = MSS;
        for n in 0..200 {
            prague.delivered(&mut window, &RateSample { state: LossState::Timeout, ..ack(1000 + n, 25, 0) });
        }
        assert!((50 * MSS..58 * MSS).contains(&window.cwnd), "{}", window.cwnd);
    }
}
