//! A flow that was admitted, with its promise, its limit and its rate, and a user with flows.

use super::events::AllocationCause;
use super::fill::CPU;
use super::ledger::Places;
use super::request::{FlowId, FlowRequest, SchedulingClass};
use cutline_units::Instant;

/// Event that a flow is to be notified by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Notice {
    None,
    Fall,
    Rise,
}

/// A flow that was admitted.
#[derive(Clone, Debug)]
pub(super) struct Flow {
    pub id: FlowId,
    pub request: FlowRequest,
    pub places: Places,
    /// Promise, bit/s: the rate of a real-time flow, the minimum of a time-shared one.
    pub committed: u64,
    /// Limit of the path's feedback, bit/s.
    pub limit: u64,
    /// Rate that it may use, bit/s.
    pub granted: u64,
    /// Rate that it was notified of.
    pub reported: Option<u64>,
    pub notice: Notice,
    pub cause: AllocationCause,
    /// Cause of the next change of its share, if it is not that of all shares.
    pub own_cause: Option<AllocationCause>,
    /// The resource that limits its share.
    pub limited_by: Option<usize>,
    pub lease: Instant,
}

impl Flow {
    /// The most that it may use, bit/s.
    pub fn most(&self) -> u64 {
        self.limited(self.request.desired.as_bps())
    }

    /// A rate within the limit. A limit below the minimum counts as the minimum.
    pub fn limited(&self, bps: u64) -> u64 {
        bps.min(self.limit.max(self.minimum()))
    }

    pub fn minimum(&self) -> u64 {
        self.request.minimum.as_bps()
    }

    pub fn is_real_time(&self) -> bool {
        self.request.class == SchedulingClass::RealTime
    }

    pub fn charges(&self, bps: u64) -> impl Iterator<Item = (usize, u64)> + use<> {
        self.places.charges(&self.request, bps)
    }

    /// The charge at a place.
    pub fn charge(&self, place: usize, bps: u64) -> u64 {
        self.charges(bps).find(|(used, _)| *used == place).map_or(0, |(_, amount)| amount)
    }

    /// The highest rate with this charge at a place, at most the desired one.
    pub fn bps_with(&self, place: usize, amount: u64) -> u64 {
        if place == CPU { self.request.bps_with(amount) } else { amount.min(self.request.desired.as_bps()) }
    }
}

/// A user with flows.
#[derive(Clone, Debug, Default)]
pub(super) struct User {
    pub flows: u32,
    /// Promises by place.
    pub committed: Vec<u64>,
}
