//! The window of LEDBAT (RFC 6817): background traffic that adds a delay of `ledbat-target`, and yields to other traffic.
//!
//! The complete algorithm is RFC 6817 section 2.4.2, and its values are those of section 2.5. With each acknowledgement:
//!
//! ```text
//! queuing_delay = FILTER(current_delays) - MIN(base_delays)
//! off_target    = (TARGET - queuing_delay) / TARGET
//! cwnd          = cwnd + GAIN off_target bytes_newly_acked MSS / cwnd
//! cwnd          = min(cwnd, flightsize + ALLOWED_INCREASE MSS), and at least MIN_CWND MSS
//! ```
//!
//! A loss halves the window (at most once per window of data), and so does a mark. Base delays are the least delays of each of the last
//! ten minutes, and FILTER is the least of the last four samples that are no older than a round trip.
//!
//! Below the target the window grows by at most GAIN segments in a round trip, as `NewReno`'s does; at the target it stands still. Traffic that
//! fills a buffer of more than the target drives the window down to two segments.
//!
//! Worked: with a base delay of 40 ms, a delay of 90 ms is a queuing delay of half the target of 100 ms, so a window of
//! acknowledgements adds half a segment. A delay of 240 ms is a queuing delay of twice the target, and takes a whole segment
//! (`the_window_follows_the_distance_from_the_target`).
//!
//! Departures from the RFC:
//! - *The delay is that of the round trip*, and not of one way: acknowledgements have the time of the sender's clock alone. A queue
//!   of acknowledgements counts as well, and so does the delay of an acknowledgement that waits for a second segment. RFC 9840 measures round
//!   trips, too.
//! - *Slow start* is TCP's, from `initial-window` on (the RFC has two segments). The algorithm of the RFC has none. Here, as in
//!   LEDBAT++ (draft-irtf-iccrg-ledbat-plus-plus), it ends when the queuing delay reaches three quarters of the target.
//! - The window falls only while it limits the sender, if `grow-only-when-limited` is set.
//! - GAIN may be above 1, which RFC 6817 forbids and RFC 7928 section 5.4 recommends for a test.
//!
//! Not implemented: the other filters that the RFC permits, and the slowdowns of LEDBAT++, in which a flow measures its base delay again. The
//! base delay of a flow that begins while others hold a queue includes the delay of that queue.

use super::Params;
use super::congestion::{Acked, Acknowledgement, CongestionAlgorithm, CongestionControl, NoParams, Window};
use cutline_params::Parameters;
use cutline_units::{Duration, Instant};

/// `BASE_HISTORY` (RFC 6817 section 2.5): number of minutes whose least delays are kept.
const BASE_HISTORY: usize = 10;
/// `CURRENT_FILTER` (RFC 6817 section 2.5): number of delays among which the filter chooses.
const CURRENT_FILTER: usize = 4;
/// `ALLOWED_INCREASE` (RFC 6817 section 2.5): number of segments by which the window may exceed the flight.
const ALLOWED_INCREASE: u64 = 1;
/// `MIN_CWND` (RFC 6817 section 2.5), segments.
const MIN_CWND: u64 = 2;
/// Share of the target at which slow start ends (LEDBAT++).
const SLOW_START_END: f64 = 0.75;
const MINUTE: Duration = Duration::from_secs(60);

/// Parameters of LEDBAT. They are keys of TCP.
#[derive(Clone, Copy, Debug, PartialEq, Parameters)]
pub struct LedbatParams {
    /// TARGET of LEDBAT: the queuing delay that it adds. Other controls ignore it.
    #[param(
        name = "ledbat-target",
        default = Duration::from_millis(100),
        range = (Duration::from_millis(1), Duration::from_millis(100)),
        source = "RFC 6817 section 2.5: at most 100 ms; RFC 7928 section 5.4 has 5 ms"
    )]
    pub target: Duration,
    /// GAIN of LEDBAT: growth per round trip far below the target, in segments. Other controls ignore it.
    #[param(
        name = "ledbat-gain",
        default = 1.0,
        range = (0.01, 10.0),
        source = "RFC 6817 section 2.5: at most 1; RFC 7928 section 5.4 has 10"
    )]
    pub gain: f64,
}

/// The state of the algorithm.
#[derive(Clone, Copy, Debug)]
pub struct Ledbat {
    /// TARGET, s.
    target: f64,
    gain: f64,
    mss: u64,
    /// The least delay of each minute that had samples, the present one last.
    base_delays: [Duration; BASE_HISTORY],
    /// The minute of the last sample; `None` before the first.
    minute: Option<u64>,
    /// The last samples, and their times.
    current_delays: [(Instant, Duration); CURRENT_FILTER],
    /// The estimate of the last acknowledgement, s.
    queuing_delay: f64,
    /// Bytes outstanding before the last acknowledgement.
    flight: u64,
    /// Growth of less than a byte that is carried over.
    fraction: f64,
}

impl CongestionAlgorithm for Ledbat {
    type Params = NoParams;

    const NAME: &'static str = "ledbat";
    const TITLE: &'static str = "LEDBAT";
    const SOURCE: &'static str = "RFC 6817";

    fn begin(_params: &NoParams, tcp: &Params) -> Self {
        let LedbatParams { target, gain } = tcp.ledbat;
        Self {
            target: target.as_secs_f64(),
            gain,
            mss: u64::from(tcp.mss),
            base_delays: [Duration::MAX; BASE_HISTORY],
            minute: None,
            current_delays: [(Instant::ZERO, Duration::MAX); CURRENT_FILTER],
            queuing_delay: 0.0,
            flight: 0,
            fraction: 0.0,
        }
    }
}

impl CongestionControl for Ledbat {
    fn acknowledged(&mut self, acknowledgement: &Acknowledgement) {
        let Acknowledgement { now, bytes, una, next, echo, .. } = *acknowledgement;
        self.flight = next - una + bytes;
        self.sample(now, now.saturating_since(echo));
    }

    fn slow_start(&mut self, window: &mut Window, acked: &Acked, most: u64) {
        if self.queuing_delay < SLOW_START_END * self.target {
            window.cwnd += acked.bytes.min(most);
        } else {
            window.cwnd = window.cwnd.max(MIN_CWND * self.mss);
            window.ssthresh = window.cwnd;
        }
    }

    /// Adapts the window to the queuing delay (RFC 6817 section 2.4.2).
    fn avoid(&mut self, window: &mut Window, acked: &Acked, mss: u64) {
        let cwnd = window.cwnd as f64;
        let off_target = (self.target - self.queuing_delay) / self.target;
        let change = self.gain * off_target * acked.bytes as f64 * mss as f64 / cwnd;
        let most = (self.flight + ALLOWED_INCREASE * mss) as f64;
        let adapted = (cwnd + self.fraction + change).min(most).max((MIN_CWND * mss) as f64);
        window.cwnd = adapted as u64;
        self.fraction = adapted - window.cwnd as f64;
        // Below the threshold the sender would be in slow start.
        window.ssthresh = window.ssthresh.min(window.cwnd);
    }

    /// Returns half of the window (RFC 6817 section 2.4.2, data loss).
    fn congested(&mut self, window: &Window, flight: u64, mss: u64) -> u64 {
        self.fraction = 0.0;
        // Duplicates inflate the window of a sender without SACK, but not its flight.
        (window.cwnd.min(flight) / 2).max(MIN_CWND * mss)
    }
}

impl Ledbat {
    /// Takes a sample of the delay, and estimates the queuing delay (RFC 6817 section 2.4.2).
    fn sample(&mut self, now: Instant, delay: Duration) {
        self.update_base_delays(now, delay);
        self.current_delays.rotate_left(1);
        self.current_delays[CURRENT_FILTER - 1] = (now, delay);
        let base = self.base_delays.iter().fold(Duration::MAX, |least, &delay| least.min(delay));
        self.queuing_delay = self.filtered(now, delay).saturating_sub(base).as_secs_f64();
    }

    /// Keeps the least delay of each minute (RFC 6817 section 2.4.2, `update_base_delay`).
    fn update_base_delays(&mut self, now: Instant, delay: Duration) {
        let minute = now.as_nanos() / MINUTE.as_nanos();
        if self.minute != Some(minute) {
            self.minute = Some(minute);
            self.base_delays.rotate_left(1);
            self.base_delays[BASE_HISTORY - 1] = Duration::MAX;
        }
        let last = &mut self.base_delays[BASE_HISTORY - 1];
        *last = (*last).min(delay);
    }

    /// Returns the least of the recent samples. Those that are older than a round trip, which is the latest sample, do not count
    /// (RFC 6817 section 2.5).
    fn filtered(&self, now: Instant, latest: Duration) -> Duration {
        let recent = self.current_delays.iter().filter(|(at, _)| now.saturating_since(*at) <= latest);
        recent.fold(latest, |least, &(_, delay)| least.min(delay))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1000;

    fn ledbat() -> Ledbat {
        Ledbat::begin(&NoParams {}, &Params::default())
    }

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    fn window(segments: u64) -> Window {
        Window { cwnd: segments * MSS, ssthresh: segments * MSS }
    }

    /// Acknowledges a segment of a full window, with this delay, at a time in milliseconds. Returns the input of `avoid`.
    fn acknowledge(ledbat: &mut Ledbat, window: &Window, ms: u64, delay: u64) -> Acked {
        let (now, next) = (at(ms), MSS + window.cwnd);
        let echo = at(ms - delay);
        ledbat.acknowledged(&Acknowledgement { now, bytes: MSS, marked: false, una: 2 * MSS, next, echo });
        Acked { bytes: MSS, now, srtt: Duration::from_millis(delay) }
    }

    /// A window of acknowledgements with this delay, a millisecond apart.
    fn round(ledbat: &mut Ledbat, window: &mut Window, from: u64, delay: u64) {
        for n in 0..window.cwnd / MSS {
            let acked = acknowledge(ledbat, window, from + n, delay);
            ledbat.avoid(window, &acked, MSS);
        }
    }

    #[test]
    fn the_window_follows_the_distance_from_the_target() {
        let (mut ledbat, mut window) = (ledbat(), window(100));
        // RFC 6817 section 2.4.2, with the values of RFC 6817 section 2.5. At the base delay the window grows by GAIN segments.
        round(&mut ledbat, &mut window, 1000, 40);
        assert!(window.cwnd.abs_diff(101_000) < 10, "{}", window.cwnd);
        for (from, delay, change) in [(3000, 90, 500), (5000, 140, 0), (7000, 240, -1000)] {
            let before = window.cwnd as i64;
            round(&mut ledbat, &mut window, from, delay);
            let changed = window.cwnd as i64 - before;
            assert!((changed - change).abs() < 20, "{changed} B with a delay of {delay} ms");
        }
        assert!(window.cwnd >= window.ssthresh, "slow start does not begin again: {window:?}");
    }

    #[test]
    fn the_window_has_two_segments_at_least_and_follows_the_flight() {
        let (mut ledbat, mut window) = (ledbat(), window(10));
        let acked = acknowledge(&mut ledbat, &window, 1000, 40);
        ledbat.avoid(&mut window, &acked, MSS);
        (0..20).for_each(|n| round(&mut ledbat, &mut window, 3000 + 1000 * n, 900));
        assert_eq!((window.cwnd, window.ssthresh), (2 * MSS, 2 * MSS));
        // RFC 6817 section 2.4.2: min(cwnd, flightsize + ALLOWED_INCREASE * MSS), with two segments outstanding.
        window.cwnd = 50 * MSS;
        let full = Window { cwnd: 2 * MSS, ssthresh: 2 * MSS };
        let acked = acknowledge(&mut ledbat, &full, 60_000, 40);
        assert_eq!(ledbat.flight, 2 * MSS);
        ledbat.avoid(&mut window, &acked, MSS);
        assert_eq!(window.cwnd, 3 * MSS);
    }

    #[test]
    fn a_base_delay_is_forgotten_after_ten_minutes() {
        let (mut ledbat, window) = (ledbat(), window(10));
        // RFC 6817 section 2.4.2, update_base_delay; RFC 6817 section 2.5: ten minutes.
        for (minute, delay, queuing) in [(0, 40, 0.0), (1, 60, 0.02), (9, 60, 0.02)] {
            acknowledge(&mut ledbat, &window, 1000 + 60_000 * minute, delay);
            assert!(
                (ledbat.queuing_delay - queuing).abs() < 1e-9,
                "{} in minute {minute}",
                ledbat.queuing_delay
            );
        }
        // Minutes without samples do not count: the least delay of minute 0 is one of the last ten until eight more minutes have passed.
        for minute in 10..17 {
            acknowledge(&mut ledbat, &window, 1000 + 60_000 * minute, 60);
            assert!(
                (ledbat.queuing_delay - 0.02).abs() < 1e-9,
                "{} in minute {minute}",
                ledbat.queuing_delay
            );
        }
        acknowledge(&mut ledbat, &window, 1000 + 60_000 * 17, 60);
        assert_eq!(ledbat.queuing_delay, 0.0);
        // A shorter path counts at once.
        acknowledge(&mut ledbat, &window, 1_030_000, 30);
        acknowledge(&mut ledbat, &window, 1_040_000, 50);
        assert!((ledbat.queuing_delay - 0.02).abs() < 1e-9, "{}", ledbat.queuing_delay);
    }

    #[test]
    fn one_late_sample_is_filtered_and_old_samples_are_not_used() {
        let (mut ledbat, window) = (ledbat(), window(10));
        for (ms, delay, queuing) in [
            (1000, 40, 0.0),
            (1005, 90, 0.0),
            (1010, 90, 0.0),
            (1015, 90, 0.0),
            // The sample of 40 ms is the fifth last.
            (1020, 90, 0.05),
            (1025, 70, 0.03),
            // RFC 6817 section 2.5: samples that are older than a round trip do not count.
            (1200, 90, 0.05),
        ] {
            acknowledge(&mut ledbat, &window, ms, delay);
            assert!((ledbat.queuing_delay - queuing).abs() < 1e-9, "{} at {ms} ms", ledbat.queuing_delay);
        }
    }

    #[test]
    fn slow_start_ends_below_the_target() {
        let mut ledbat = ledbat();
        let mut window = Window { cwnd: 20 * MSS, ssthresh: u64::MAX };
        for (ms, delay) in [(1000, 40), (2000, 114)] {
            let acked = acknowledge(&mut ledbat, &window, ms, delay);
            ledbat.slow_start(&mut window, &acked, MSS);
        }
        assert_eq!(window, Window { cwnd: 22 * MSS, ssthresh: u64::MAX });
        let acked = acknowledge(&mut ledbat, &window, 3000, 116);
        ledbat.slow_start(&mut window, &acked, MSS);
        assert_eq!(window, Window { cwnd: 22 * MSS, ssthresh: 22 * MSS });
        // After a timeout, too, with at least two segments.
        window.cwnd = MSS;
        let acked = acknowledge(&mut ledbat, &window, 4000, 116);
        ledbat.slow_start(&mut window, &acked, MSS);
        assert_eq!(window, Window { cwnd: 2 * MSS, ssthresh: 2 * MSS });
    }

    #[test]
    fn a_loss_halves_the_window() {
        let mut ledbat = ledbat();
        // RFC 6817 section 2.4.2: max(cwnd / 2, MIN_CWND * MSS).
        assert_eq!(ledbat.congested(&window(30), 30 * MSS, MSS), 15 * MSS);
        assert_eq!(ledbat.congested(&window(3), 3 * MSS, MSS), 2 * MSS);
    }
}
