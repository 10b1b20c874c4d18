//! The TCP throughput equation (RFC 5348 section 3.1, after J. Padhye, V. Firoiu, D. Towsley and J. Kurose, "Modeling TCP
//! Throughput"; September 1998):
//!
//! ```text
//!                                  s
//! X = ----------------------------------------------------------
//!     R sqrt(2 b p / 3) + t_RTO (3 sqrt(3 b p / 8) p (1 + 32 p^2))
//! ```
//!
//! X is in bytes per second, s is the segment size in bytes, R the round-trip time and `t_RTO = 4 R` in seconds, p the
//! loss event rate, and b = 1 the number of segments that an acknowledgement covers.
//!
//! Worked: s = 1000 B, R = 100 ms, p = 0.01 gives 112,332 B/s: 11.2 packets a round trip.

use cutline_units::Duration;

/// Returns the rate of a TCP flow, bytes per second (RFC 5348 section 3.1). `s` is in bytes; `r` and `p` must be above 0.
pub fn throughput(s: f64, r: Duration, p: f64) -> f64 {
    s / (r.as_secs_f64() * round_trips_per_segment(p))
}

/// The same with the timeout `t_rto` instead of 4 R. If `is_bounded`, its factor 3 sqrt(3 b p / 8) is at most 1.
pub fn throughput_with_timeout(s: f64, r: Duration, t_rto: Duration, p: f64, is_bounded: bool) -> f64 {
    let bound = if is_bounded { 1.0 } else { f64::INFINITY };
    s / (r.as_secs_f64() * fast_retransmits(p) + t_rto.as_secs_f64() * timeouts(p, bound))
}

/// Returns the `p` at which the equation gives `x` bytes per second: its inverse, by bisection, to 1e-9 of p.
pub fn loss_event_rate(s: f64, r: Duration, x: f64) -> f64 {
    let wanted = s / (r.as_secs_f64() * x);
    let (mut low, mut high) = (1e-12_f64, 1.0_f64);
    // The scale is logarithmic, because rates span many decades.
    for _ in 0..64 {
        let middle = (low * high).sqrt();
        if round_trips_per_segment(middle) < wanted { low = middle } else { high = middle }
    }
    high
}

/// Returns the denominator of the equation with `R = 1` and `t_RTO = 4 R`.
fn round_trips_per_segment(p: f64) -> f64 {
    fast_retransmits(p) + 4.0 * timeouts(p, f64::INFINITY)
}

/// Returns the factor of R: sqrt(2 b p / 3).
fn fast_retransmits(p: f64) -> f64 {
    (2.0 * p / 3.0).sqrt()
}

/// Returns the factor of `t_RTO`: 3 sqrt(3 b p / 8) p (1 + 32 p^2), of which the root's part is at most `bound`.
fn timeouts(p: f64, bound: f64) -> f64 {
    (3.0 * (3.0 * p / 8.0).sqrt()).min(bound) * p * (1.0 + 32.0 * p * p)
}

#[cfg(test)]
mod tests {
    use super::*;

    const R: Duration = Duration::from_millis(100);

    #[test]
    fn the_worked_value() {
        // RFC 5348 section 3.1: 0.0816497 + 4 * 3 * 0.0612372 * 0.01 * 1.0032 = 0.0890217 round trips per segment.
        assert!((throughput(1000.0, R, 0.01) - 112_332.0).abs() < 1.0);
        // Everything is lost: sqrt(2/3) + 12 sqrt(3/8) 33 = 243.32 round trips per segment.
        assert!((throughput(1000.0, R, 1.0) - 41.098).abs() < 0.01);
    }

    #[test]
    fn a_shorter_timeout_allows_a_higher_rate() {
        let with = |t_rto| throughput_with_timeout(1000.0, R, t_rto, 0.01, false);
        assert!((with(R * 4) - throughput(1000.0, R, 0.01)).abs() < 1e-6);
        // 1000 / (0.1 * 0.0816497 + 0.2 * 0.00184300)
        assert!((with(R * 2) - 117_184.3).abs() < 1.0, "{}", with(R * 2));
    }

    #[test]
    fn the_bound_matters_from_a_loss_of_0_3_on() {
        let bounded = |p, is_bounded| throughput_with_timeout(1000.0, R, R * 4, p, is_bounded);
        // 9 * 3 p / 8 = 1 at p = 8 / 27.
        assert_eq!(bounded(0.29, true), bounded(0.29, false));
        // At p = 0.4: 1000 / (0.1 * 0.516398 + 0.4 * 0.4 * 6.12), and 3 sqrt(0.15) = 1.16190 without the bound.
        assert!((bounded(0.4, true) - 970.1).abs() < 0.1, "{}", bounded(0.4, true));
        assert!((bounded(0.4, false) - 840.8).abs() < 0.1, "{}", bounded(0.4, false));
    }

    #[test]
    fn loss_event_rate_inverts_the_equation() {
        for p in [1e-6, 1e-4, 0.003, 0.05, 0.4, 1.0] {
            let found = loss_event_rate(1000.0, R, throughput(1000.0, R, p));
            assert!((found / p - 1.0).abs() < 1e-6, "{p}: {found}");
        }
    }
}
