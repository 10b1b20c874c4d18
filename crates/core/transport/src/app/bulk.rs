//! Bulk data: an unlimited supply from the start on.

use super::{Application, TrafficSource, Write};
use cutline_params::Parameters;
use cutline_units::{Instant, RandomStream};

/// Bulk data has no parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Parameters)]
pub struct BulkParams {}

/// An unlimited supply of data.
#[derive(Clone, Copy, Debug)]
pub struct Bulk {
    deadline: Instant,
}

impl Application for Bulk {
    type Params = BulkParams;

    const NAME: &'static str = "bulk";
    const TITLE: &'static str = "Bulk data";
    const SOURCE: &'static str = "a long transfer, as in the papers";
    const ENDLESS: bool = true;

    fn start(_params: &BulkParams, at: Instant, _random: &mut RandomStream) -> Self {
        Self { deadline: at }
    }
}

impl TrafficSource for Bulk {
    #[inline]
    fn deadline(&self) -> Instant {
        self.deadline
    }

    fn poll(&mut self, now: Instant, _random: &mut RandomStream) -> Option<Write> {
        if now < self.deadline {
            return None;
        }
        self.deadline = Instant::FAR_FUTURE;
        Some(Write::Unlimited)
    }
}
