//! Shares of time-shared flows, from the state of the accounts alone, independent of its history.

use super::fill::{Filled, Group, INTERFACES, Member, fill};
use super::{AllocationCause, Flow, FlowId, ResourceManager};
use std::cmp::Ordering;

/// Place of a time-shared flow among those of its user: by the level at which its demand is met.
#[derive(Clone, Copy, Debug)]
pub(super) struct SharePosition {
    /// Rate that it can use beside its minimum, bit/s.
    room: u64,
    weight: u32,
    id: FlowId,
    pub slot: usize,
}

impl SharePosition {
    pub fn new(flow: &Flow, slot: usize) -> Self {
        Self { room: flow.most() - flow.minimum(), weight: flow.request.weight, id: flow.id, slot }
    }
}

/// By `room / weight`, exactly; then by age.
impl Ord for SharePosition {
    fn cmp(&self, other: &Self) -> Ordering {
        let product = |one: &Self, other: &Self| u128::from(one.room) * u128::from(other.weight);
        product(self, other).cmp(&product(other, self)).then(self.id.cmp(&other.id))
    }
}

impl PartialOrd for SharePosition {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for SharePosition {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for SharePosition {}

/// The part of a capacity that rounding errors of the arithmetic may exceed.
const ROUNDING: f64 = 1e-9;

impl ResourceManager {
    /// Recomputes the shares after a change.
    pub(super) fn settle(&mut self) {
        if let Some(cause) = self.stale.take() {
            if self.has_room_for_all() {
                self.share_all(cause);
            } else {
                self.share_fairly(cause);
            }
        }
    }

    /// Computes the shares if that of this flow matters now; those of real-time flows do not depend on others.
    pub(super) fn settle_for(&mut self, slot: usize) {
        if !self.flows[slot].is_real_time() {
            self.settle();
        }
    }

    fn has_room_for_all(&self) -> bool {
        let mut places = 0..self.ledger.bounds.len();
        places.all(|place| {
            self.ledger.left_to_share(place).is_none_or(|left| self.ledger.wanted[place] <= left)
        })
    }

    fn sharers(&self) -> Vec<usize> {
        self.users.values().flat_map(|user| user.sharers.iter().map(|position| position.slot)).collect()
    }

    fn share_all(&mut self, cause: AllocationCause) {
        for slot in self.sharers() {
            let most = self.flows[slot].most();
            self.share(slot, most, None, cause);
        }
    }

    /// Divides the capacity that real-time flows and minima leave.
    fn share_fairly(&mut self, cause: AllocationCause) {
        let (mut groups, mut members, mut slots) = (Vec::new(), Vec::new(), Vec::new());
        for (id, user) in self.users.iter().filter(|(_, user)| !user.sharers.is_empty()) {
            let start = members.len();
            for position in &user.sharers {
                let flow = &self.flows[position.slot];
                let (desired, cpu) = (flow.request.desired.as_bps(), flow.request.cpu.as_millionths());
                members.push(Member {
                    weight: f64::from(position.weight),
                    room: position.room as f64,
                    cpu: cpu as f64 / desired as f64,
                    carrier: flow.places.carrier,
                    interface: flow.places.interface,
                });
                slots.push(position.slot);
            }
            groups.push(Group { weight: f64::from(self.policy(*id).weight), members: start..members.len() });
        }
        let mut left: Vec<Option<u64>> = (0..self.ledger.bounds.len())
            .map(|place| Some(self.ledger.left_to_share(place)?.saturating_sub(self.ledger.minima[place])))
            .collect();
        // A flow's CPU time is rounded up, so each may take one more.
        let slack = |place: usize| if place < INTERFACES { members.len() as f64 } else { 0.0 };
        let limits: Vec<f64> = (left.iter().enumerate())
            .map(|(place, left)| {
                left.map_or(f64::INFINITY, |left| (left as f64 * (1.0 - ROUNDING) - slack(place)).max(0.0))
            })
            .collect();
        let filled = fill(&groups, &members, &limits);
        for (slot, Filled { rate, limited_by }) in slots.into_iter().zip(filled) {
            let flow = &self.flows[slot];
            let (minimum, most) = (flow.minimum(), flow.most());
            let share = match limited_by {
                None => most,
                Some(_) => {
                    steady(flow.granted, minimum + rate as u64, self.params.share_digits).clamp(minimum, most)
                }
            };
            let share = if take(&mut left, flow, share) { share } else { minimum };
            self.share(slot, share, limited_by, cause);
        }
    }

    fn share(&mut self, slot: usize, bps: u64, limited_by: Option<usize>, cause: AllocationCause) {
        let flow = &mut self.flows[slot];
        flow.limited_by = limited_by;
        let cause = flow.own_cause.take().unwrap_or(cause);
        self.grant(slot, bps, cause);
    }
}

/// Takes the amount that a flow uses beside its minimum, exactly. Returns false, and takes nothing, if there is not enough.
fn take(left: &mut [Option<u64>], flow: &Flow, bps: u64) -> bool {
    let extra = || {
        flow.charges(bps).zip(flow.charges(flow.minimum())).map(|((place, all), (_, had))| (place, all - had))
    };
    let fits = extra().all(|(place, amount)| left[place].is_none_or(|left| amount <= left));
    if fits {
        for (place, amount) in extra() {
            if let Some(left) = &mut left[place] {
                *left -= amount;
            }
        }
    }
    fits
}

/// Rounds down to significant binary digits.
const fn round_down(number: u64, digits: u32) -> u64 {
    number >> below(number, digits) << below(number, digits)
}

/// Number of binary digits below the significant ones.
const fn below(number: u64, digits: u32) -> u32 {
    (u64::BITS - number.leading_zeros()).saturating_sub(digits)
}

/// The share of a flow that has one, for the share that is exact now: the same as before, if that is not more, and at
/// most two steps of the last significant digit less. So a flow that comes and goes does not change the shares of all
/// others each time.
const fn steady(had: u64, exact: u64, digits: u32) -> u64 {
    if had <= exact && exact - had <= 2 << below(exact, digits) { had } else { round_down(exact, digits) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_keeps_the_first_digits() {
        assert_eq!([0, 1, 31, 32, 63, 1000].map(|number| round_down(number, 5)), [0, 1, 31, 32, 62, 992]);
        assert_eq!(round_down(31_250_000, 6), 30_932_992, "the example of the manager's documentation");
        assert_eq!(round_down(123_456_789, 53), 123_456_789);
    }

    #[test]
    fn a_share_changes_only_by_more_than_two_steps_or_downwards() {
        assert_eq!([999, 1000, 1100, 1200].map(|exact| steady(1000, exact, 5)), [992, 1000, 1000, 1152]);
        assert_eq!(steady(992, 1000, 5), 992, "it does not come back at once");
    }
}
