//! The deadlines of an engine, in order. Each has a slot in the state that it belongs to, and a slot has one deadline at most, so there are never
//! more deadlines than state.

use super::keys::{NeighbourKey, PathKey, SessionId, UpKey};
use cutline_units::Instant;
use std::collections::BTreeMap;

/// Action at a deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Timer {
    PathRefresh(SessionId, PathKey),
    PathCleanup(SessionId, PathKey),
    ResvRefresh(SessionId, UpKey),
    ResvCleanup(SessionId),
    /// A message that is not acknowledged.
    Retransmit(u32),
    /// Acknowledgements for a neighbour.
    Acknowledge(NeighbourKey),
    /// The summary of refreshes for a neighbour.
    Summary(NeighbourKey),
}

/// The place of a deadline; none if nothing is to happen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Slot(Option<(Instant, u64)>);

impl Slot {
    pub const EMPTY: Self = Self(None);

    pub const fn at(self) -> Option<Instant> {
        match self.0 {
            Some((at, _)) => Some(at),
            None => None,
        }
    }
}

/// All deadlines.
#[derive(Debug, Default)]
pub(super) struct Timers {
    queue: BTreeMap<(Instant, u64), Timer>,
    next: u64,
}

impl Timers {
    /// Sets a slot's deadline instead of the one that it has.
    pub fn set(&mut self, slot: &mut Slot, at: Instant, timer: Timer) {
        self.cancel(slot);
        self.next += 1;
        self.queue.insert((at, self.next), timer);
        slot.0 = Some((at, self.next));
    }

    pub fn cancel(&mut self, slot: &mut Slot) {
        if let Some(place) = slot.0.take() {
            self.queue.remove(&place);
        }
    }

    pub fn deadline(&self) -> Instant {
        self.queue.first_key_value().map_or(Instant::FAR_FUTURE, |((at, _), _)| *at)
    }

    /// Takes the next due deadline.
    pub fn pop(&mut self, now: Instant) -> Option<Timer> {
        let first = self.queue.first_entry().filter(|first| first.key().0 <= now)?;
        Some(first.remove())
    }

    pub fn len(&self) -> usize {
        self.queue.len()
    }
}
