//! The fair share of the link: how much each flow may send so that all of them together just fill it.
//!
//! Source: I. Stoica, S. Shenker, H. Zhang, "Core-stateless fair queueing", SIGCOMM 1998, section 3. A flow of rate r whose share is f
//! counts min(r, f), which is the size of each of its packets times min(1, 1 / x) with x = r / f. The sum over all flows should be eta C:
//!
//! ```text
//! f *= (eta C / what counted, per second)^gamma        every 50 ms
//! ```
//!
//! Eta must be below 1. Flows that respond to loss send little more than the link carries. If the sum should be larger
//! than that, f grows without end, no flow is above it, and the queue charges no flow.
//!
//! On a link with room f grows to C, and no flow is above it. If the link then fills, the counted bytes are all that arrive, hardly more than eta C, and
//! f would take seconds to come down to where it matters, while no flow is charged. So on a full link f is at most the largest recent rate of a flow: all that is
//! above it makes no difference to the sum.
//!
//! On an idle link f is C. When ten thousand flows begin, it must fall by as much, and all of them are below it until then: the counted bytes are those that
//! arrives, a few per cent more than the link carries, so that gamma = 0.2 would take 40 s. When the first queues have had no
//! room for 200 ms, gamma is 1.

use cutline_units::{Duration, Rate};

/// Gains with which f follows the counted bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Gains {
    /// The part of the link that the sum of all min(r, f) should be.
    pub(super) eta: f64,
    /// The exponent with which f falls.
    pub(super) falling: f64,
    /// The exponent with which it rises.
    pub(super) rising: f64,
}

/// Number of updates without room in the first queues after which the share falls at once.
const CROWDED: u8 = 4;

/// The estimate of the fair share.
#[derive(Clone, Copy, Debug)]
pub(super) struct FairShare {
    gains: Gains,
    /// Number of consecutive updates during which the first queues had no room.
    crowded: u8,
    /// C, B/s.
    link: f64,
    /// f, B/s.
    share: f64,
    /// Bytes counted since the last update.
    counted: f64,
    /// The largest recent rate of a flow, B/s.
    largest: f64,
}

/// The time constant with which the largest rate of a flow is forgotten, s.
const LATELY: f64 = 0.25;

/// The smallest share, as a part of the link.
const LEAST: f64 = 1.0 / (1 << 20) as f64;

impl FairShare {
    /// A share as large as the link.
    pub(super) fn new(gains: Gains, rate: Rate) -> Self {
        let link = rate.as_bps() as f64 / 8.0;
        Self { gains, crowded: 0, link, share: link, counted: 0.0, largest: 0.0 }
    }

    pub(super) fn reset(&mut self) {
        (self.share, self.counted, self.largest, self.crowded) = (self.link, 0.0, 0.0, 0);
    }

    /// f, B/s.
    #[inline]
    pub(super) const fn get(&self) -> f64 {
        self.share
    }

    /// The share keeps its part of the link.
    pub(super) fn set_rate(&mut self, rate: Rate) {
        let link = rate.as_bps() as f64 / 8.0;
        self.share *= link / self.link;
        self.link = link;
    }

    /// Counts a packet of a flow that sends x times its share.
    #[inline]
    pub(super) fn count(&mut self, size: u32, x: f64) {
        self.counted += f64::from(size) / x.max(1.0);
        self.largest = self.largest.max(x * self.share);
    }

    /// Updates after `period`; `is_crowded` is true if the first queues had no room. Returns whether anything has
    /// changed.
    pub(super) fn update(&mut self, period: Duration, is_crowded: bool) -> bool {
        let before = self.share;
        let Gains { eta, falling, rising } = self.gains;
        let wanted = eta * self.link * period.as_secs_f64();
        // One packet of a byte where none counted, so that the ratio is a number.
        let ratio = wanted / self.counted.max(1.0);
        self.crowded = if is_crowded { self.crowded.saturating_add(1) } else { 0 };
        let exponent = match ratio < 1.0 {
            // The share is far too large, as when many flows begin on an idle link.
            true if self.crowded >= CROWDED => 1.0,
            true => falling,
            false => rising,
        };
        if ratio < 1.0 {
            self.share = self.share.min(self.largest);
        }
        self.largest *= (-period.as_secs_f64() / LATELY).exp();
        let factor = ratio.powf(exponent);
        self.share = (self.share * factor).clamp(LEAST * self.link, self.link);
        let was_idle = std::mem::take(&mut self.counted) == 0.0;
        !was_idle || self.share != before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD: Duration = Duration::from_millis(50);
    const GAINS: Gains = Gains { eta: 0.9, falling: 0.1, rising: 0.03 };

    /// f after 100 s with flows of these rates, as parts of a link of 1 MB/s.
    fn share_of(rates: &[f64]) -> f64 {
        let mut share = FairShare::new(GAINS, Rate::from_mbps(8));
        for _ in 0..2000 {
            for rate in rates {
                let x = rate * 1e6 / share.get();
                (0..10).for_each(|_| share.count((rate * 5000.0) as u32, x));
            }
            share.update(PERIOD, false);
        }
        share.get() / 1e6
    }

    #[test]
    fn it_is_what_max_min_fairness_gives() {
        // Two flows below the share, three above: 0.1 + 0.1 + 3 f = 0.9.
        assert!((share_of(&[0.1, 0.1, 0.5, 0.8, 2.0]) - 0.7 / 3.0).abs() < 0.002);
        // Ten equal flows that are too fast share 0.9.
        assert!((share_of(&[0.2; 10]) - 0.09).abs() < 0.001);
    }

    #[test]
    fn nobody_is_above_it_on_a_link_with_room() {
        assert_eq!(share_of(&[0.3, 0.4]), 1.0);
        assert_eq!(share_of(&[]), 1.0);
    }

    #[test]
    fn on_a_full_link_it_is_at_once_where_it_matters() {
        let mut share = FairShare::new(GAINS, Rate::from_mbps(8));
        // Four flows fill the link that was idle before; none is above a share as large as the link.
        for _ in 0..4 {
            share.count(12_500, 0.25);
        }
        share.update(PERIOD, false);
        assert!(share.get() < 0.25e6, "{}", share.get());
    }

    #[test]
    fn it_keeps_its_part_of_a_link_that_changes() {
        let mut share = FairShare::new(GAINS, Rate::from_mbps(8));
        share.set_rate(Rate::from_mbps(4));
        assert_eq!(share.get(), 5e5);
    }
}
