//! Fetching a web page of S kbit: a class that TSQ leaves to the future, by its response time.
//!
//! **Shape**: logarithmic. ITU-T G.1030 (02/2014) and the experiments behind it ("Quantification and prediction of
//! end-user perceived web-browsing quality", 2008) find that people's opinion of a web session falls with the
//! logarithm of its duration, from 5 at a shortest to 1 at a longest expected one. **Ends**: Nielsen's limits (Usability Engineering, 1993, chapter 5; after Miller 1968): up to
//! 0.1 s an answer is felt to be instantaneous, 10 s is as long as attention holds. So, with t in s:
//!
//! ```text
//! q(t) = 1 - ln(t / 0.1) / ln(10 / 0.1), cut off to 0..1
//! ```
//!
//! Nielsen's third limit, 1 s, where the flow of thought breaks, gets 0.5: a MOS of 3, "fair".
//!
//! The response time is the sum of a part for delay and a part for throughput, which TSQ eq. 1 judges separately:
//!
//! ```text
//! Qd(d) = q(2 d n)      n round trips: 2, one to open the connection and one for request and answer
//! Qt(T) = q(S / T)      S of 800 kbit where no size is given: the mean page in the years of the TSQ paper
//! ```
//!
//! Worked: d = 25 ms has Qd 1, d = 150 ms Qd 0.611; a page of 800 kbit at 800 kbit/s has Qt 0.5.
//!
//! Not modelled: parallel connections, caches, name look-ups, TCP's slow start (a simulated page fetch has them
//! in its measured throughput), and G.1030's correction for a user's expectation of the link.

use crate::curve::falling_log;
use cutline_units::{Duration, Rate};

/// Nielsen 1993: felt as instantaneous, s.
const INSTANT_S: f64 = 0.1;
/// Nielsen 1993: attention is lost, s.
const LOST_S: f64 = 10.0;
/// The TCP handshake, and the request with its answer.
const ROUND_TRIPS: f64 = 2.0;

/// The quality of the page's round trips.
pub(crate) fn delay_quality(delay: Duration) -> f64 {
    response_quality(2.0 * delay.as_secs_f64() * ROUND_TRIPS)
}

/// The quality of the page's transfer.
pub(crate) fn throughput_quality(throughput: Rate, page_kbit: u64) -> f64 {
    if page_kbit == 0 {
        return 1.0;
    }
    response_quality(page_kbit as f64 / throughput.as_kbps_f64())
}

/// The logarithmic opinion of G.1030 between Nielsen's limits.
fn response_quality(seconds: f64) -> f64 {
    falling_log(seconds, INSTANT_S, LOST_S)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nielsen_s_three_limits() {
        for (seconds, q) in [(0.05, 1.0), (0.1, 1.0), (1.0, 0.5), (10.0, 0.0), (100.0, 0.0)] {
            let got = response_quality(seconds);
            assert!((got - q).abs() < 1e-12, "{seconds} s gives {got}, not {q}");
        }
    }

    #[test]
    fn two_round_trips_and_one_page() {
        let delay = |ms| delay_quality(Duration::from_millis(ms));
        assert_eq!([0, 25].map(delay), [1.0, 1.0]);
        assert!((delay(150) - 0.610_924).abs() < 1e-6, "{}", delay(150));
        assert_eq!(delay(2_500), 0.0);
        let rate = |kbps| throughput_quality(Rate::from_kbps(kbps), 800);
        for (kbps, q) in [(0, 0.0), (80, 0.0), (800, 0.5), (8_000, 1.0), (80_000, 1.0)] {
            assert!((rate(kbps) - q).abs() < 1e-12, "{kbps} kbit/s gives {}, not {q}", rate(kbps));
        }
        assert_eq!(throughput_quality(Rate::ZERO, 0), 1.0);
    }
}
