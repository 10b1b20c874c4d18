//! Transfer of a file of S kbit: TSQ section 2.3, figure 5.
//!
//! Delay: `Qd = 1` up to 1000 ms. The paper goes no further and says that "tens of seconds" would matter, so
//! **decided**: a straight line from 1 at 1 s to 0 at 10 s.
//!
//! Throughput: `Qt = min(1, T / S)`: best when the file is there in one second. Worked: a file of 10 Mbit at
//! 10 Mbit/s has 1, at 150 kbit/s 0.015; one of 10 kbit needs 10 kbit/s. A file of size 0 is always there.

use crate::curve::lines_through;
use cutline_units::{Duration, Rate};

/// (ms, quality).
const DELAY_POINTS: [(f64, f64); 2] = [(1_000.0, 1.0), (10_000.0, 0.0)];

/// TSQ section 2.3.1.
pub(crate) fn delay_quality(delay: Duration) -> f64 {
    lines_through(&DELAY_POINTS, delay.as_millis_f64())
}

/// TSQ section 2.3.2, figure 5.
pub(crate) fn throughput_quality(throughput: Rate, size_kbit: u64) -> f64 {
    if size_kbit == 0 {
        return 1.0;
    }
    (throughput.as_kbps_f64() / size_kbit as f64).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delay_counts_from_one_second_on() {
        // TSQ section 2.3.1.
        for (ms, q) in [(0, 1.0), (150, 1.0), (1_000, 1.0), (5_500, 0.5), (10_000, 0.0), (60_000, 0.0)] {
            let got = delay_quality(Duration::from_millis(ms));
            assert!((got - q).abs() < 1e-12, "{ms} ms gives {got}, not {q}");
        }
    }

    #[test]
    fn figure_5_is_best_when_the_file_takes_one_second() {
        // TSQ section 2.3.2.
        let at = |kbps, kbit| throughput_quality(Rate::from_kbps(kbps), kbit);
        assert_eq!(at(10_000, 10_000), 1.0);
        assert_eq!(at(10, 10), 1.0);
        assert_eq!(at(20, 10), 1.0);
        assert_eq!(at(150, 10_000), 0.015);
        assert_eq!(at(200, 400), 0.5);
        assert_eq!(at(0, 10), 0.0);
        assert_eq!(at(0, 0), 1.0);
    }
}
