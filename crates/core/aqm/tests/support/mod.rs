//! Items that the tests share: the link of the conformance suite, and laws for tests.

#![allow(dead_code, reason = "every test binary uses a part")]

pub use cutline_aqm::conformance::Link;

use cutline_aqm::{Arrival, Backlog, DropProbability};
use cutline_units::{Instant, Probability};

/// A law whose probability changes every millisecond, and is 0 and 1 now and then.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wave {
    p: f64,
}

impl DropProbability for Wave {
    fn advance(&mut self, now: Instant, _backlog: Backlog) {
        const WAVE: [f64; 8] = [0.0, 0.02, 0.4, 0.001, 1.0, 0.1, 0.0, 0.7];
        self.p = WAVE[(now.as_nanos() / 1_000_000 % 8) as usize];
    }

    fn arrive(&mut self, _now: Instant, _arrival: Arrival, _backlog: Backlog) -> Probability {
        Probability::clamped(self.p)
    }

    fn probability(&self) -> Option<Probability> {
        Some(Probability::clamped(self.p))
    }

    fn reset(&mut self, _now: Instant) {}
}

/// The same probability always.
#[derive(Clone, Copy, Debug)]
pub struct Always(pub f64);

impl DropProbability for Always {
    fn advance(&mut self, _now: Instant, _backlog: Backlog) {}

    fn arrive(&mut self, _now: Instant, _arrival: Arrival, _backlog: Backlog) -> Probability {
        Probability::clamped(self.0)
    }

    fn probability(&self) -> Option<Probability> {
        Some(Probability::clamped(self.0))
    }

    fn reset(&mut self, _now: Instant) {}
}
