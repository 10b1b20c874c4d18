//! Shares of time-shared flows, from the state of the accounts alone, independent of its history.

use super::fill::{COMBINED, CPU, Filled, Group, INTERFACES, Member, fill};
use super::request::UserId;
use super::{AllocationCause, Flow, FlowId, ResourceManager};
use slab::Slab;
use std::cmp::Ordering;

/// Time-shared flows in the order in which they are filled: by user, and then by the level at which their demands are
/// met. The three columns have an element for each flow, at the same position.
///
/// A decision passes over all of them, so the columns hold all values that are read, and only flows whose shares change are looked
/// up.
#[derive(Clone, Debug, Default)]
pub(super) struct Sharers {
    positions: Vec<Position>,
    members: Vec<Member>,
    shares: Vec<Share>,
}

/// Position of a time-shared flow.
#[derive(Clone, Copy, Debug)]
struct Position {
    user: UserId,
    weight: u32,
    /// Rate that it can use beside its minimum, bit/s.
    room: u64,
    id: FlowId,
    slot: usize,
}

/// Share of a time-shared flow.
#[derive(Clone, Copy, Debug)]
struct Share {
    minimum: u64,
    outcome: Outcome,
    /// True if the outcome is that of the flow; it is not yet when the flow has just been counted.
    is_settled: bool,
}

/// Outcome of the division for a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Outcome {
    /// Rate that it may use, bit/s.
    bps: u64,
    /// CPU time beside that for its minimum, in millionths of one CPU.
    cpu: u64,
    /// The resource that limits it.
    limited_by: Option<usize>,
}

impl Sharers {
    /// The time-shared ones of all flows.
    pub fn of(flows: &Slab<Flow>) -> Self {
        let mut positions: Vec<Position> = (flows.iter())
            .filter(|(_, flow)| !flow.is_real_time())
            .map(|(slot, flow)| Position::new(flow, slot))
            .collect();
        positions.sort_unstable();
        let members = positions.iter().map(|position| Member::new(&flows[position.slot])).collect();
        let shares = positions.iter().map(|position| Share::new(&flows[position.slot])).collect();
        Self { positions, members, shares }
    }

    /// Adds a flow.
    pub fn insert(&mut self, flow: &Flow, slot: usize) {
        let position = Position::new(flow, slot);
        let at = self.positions.partition_point(|other| *other < position);
        self.positions.insert(at, position);
        self.members.insert(at, Member::new(flow));
        self.shares.insert(at, Share::new(flow));
    }

    /// Removes a flow, which has not been changed since it was added.
    pub fn remove(&mut self, flow: &Flow, slot: usize) {
        let position = Position::new(flow, slot);
        let at = self.positions.partition_point(|other| *other < position);
        debug_assert_eq!(self.positions[at].id, flow.id, "a flow is where it was added");
        self.positions.remove(at);
        self.members.remove(at);
        self.shares.remove(at);
    }

    /// Flows of each user, with the weight of the user.
    fn groups(&self, weight: impl Fn(UserId) -> u32) -> Vec<Group> {
        let mut groups = Vec::new();
        let mut start = 0;
        for same in self.positions.chunk_by(|one, other| one.user == other.user) {
            let members = start..start + same.len();
            start = members.end;
            groups.push(Group { weight: f64::from(weight(same[0].user)), members });
        }
        groups
    }
}

impl Position {
    fn new(flow: &Flow, slot: usize) -> Self {
        let room = flow.most() - flow.minimum();
        Self { user: flow.request.user, weight: flow.request.weight, room, id: flow.id, slot }
    }
}

/// By user; then by `room / weight`, exactly; then by age.
impl Ord for Position {
    fn cmp(&self, other: &Self) -> Ordering {
        let product = |one: &Self, other: &Self| u128::from(one.room) * u128::from(other.weight);
        let level = || product(self, other).cmp(&product(other, self));
        self.user.cmp(&other.user).then_with(level).then(self.id.cmp(&other.id))
    }
}

impl PartialOrd for Position {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Position {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Position {}

impl Member {
    fn new(flow: &Flow) -> Self {
        let (desired, cpu) = (flow.request.desired.as_bps(), flow.request.cpu.as_millionths());
        let (weight, room) = (f64::from(flow.request.weight), (flow.most() - flow.minimum()) as f64);
        Self {
            weight,
            room,
            level: room / weight,
            cpu: cpu as f64 / desired as f64,
            carrier: flow.places.carrier,
            interface: flow.places.interface,
        }
    }

    /// Returns whether amounts of a rate and of CPU time are left.
    fn fits(&self, left: &[u64], bps: u64, cpu: u64) -> bool {
        let has_rate = |place: usize| bps <= left[place];
        let has_interface = self.interface.is_none_or(has_rate);
        has_rate(self.carrier) && has_rate(COMBINED) && has_interface && cpu <= left[CPU]
    }

    /// Takes amounts of a rate and of CPU time.
    fn take(&self, left: &mut [u64], bps: u64, cpu: u64) {
        left[self.carrier] -= bps;
        left[COMBINED] -= bps;
        left[CPU] -= cpu;
        if let Some(place) = self.interface {
            left[place] -= bps;
        }
    }
}

/// The part of a capacity that rounding errors of the arithmetic may exceed.
const ROUNDING: f64 = 1e-9;

/// Amount of a resource that nothing limits. Flows never use it up: the rates of all flows together, as their CPU time,
/// are less than `MOST_RATE` times the highest number of flows.
const UNLIMITED: u64 = u64::MAX;

impl ResourceManager {
    /// Recomputes the shares after a change.
    pub(super) fn settle(&mut self) {
        if let Some(cause) = self.stale.take() {
            // Flows are changed while the columns are read.
            let mut sharers = std::mem::take(&mut self.sharers);
            if self.has_room_for_all() {
                self.share_all(&mut sharers, cause);
            } else {
                self.share_fairly(&mut sharers, cause);
            }
            self.sharers = sharers;
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

    fn share_all(&mut self, sharers: &mut Sharers, cause: AllocationCause) {
        for (position, share) in sharers.positions.iter().zip(&mut sharers.shares) {
            share.read(&self.flows, position.slot);
            let bps = share.minimum + position.room;
            let cpu = share.cpu_for(&self.flows, position.slot, bps);
            self.share(position.slot, share, Outcome { bps, cpu, limited_by: None }, cause);
        }
    }

    /// Divides the capacity that real-time flows and minima leave.
    fn share_fairly(&mut self, sharers: &mut Sharers, cause: AllocationCause) {
        let mut left: Vec<u64> = (0..self.ledger.bounds.len())
            .map(|place| match self.ledger.left_to_share(place) {
                Some(left) => left.saturating_sub(self.ledger.minima[place]),
                None => UNLIMITED,
            })
            .collect();
        // A flow's CPU time is rounded up, so each may take one more.
        let slack = |place: usize| if place < INTERFACES { sharers.members.len() as f64 } else { 0.0 };
        let limits: Vec<f64> = (left.iter().enumerate())
            .map(|(place, left)| match *left {
                UNLIMITED => f64::INFINITY,
                left => (left as f64 * (1.0 - ROUNDING) - slack(place)).max(0.0),
            })
            .collect();
        let groups = sharers.groups(|user| self.policy(user).weight);
        let filled = fill(&groups, &sharers.members, &limits);
        let columns = sharers.positions.iter().zip(&sharers.members).zip(&mut sharers.shares);
        for (((position, member), share), Filled { rate, limited_by }) in columns.zip(filled) {
            share.read(&self.flows, position.slot);
            let (minimum, most) = (share.minimum, share.minimum + position.room);
            let bps = match limited_by {
                None => most,
                Some(_) => steady(share.outcome.bps, minimum + rate as u64, self.params.share_digits)
                    .clamp(minimum, most),
            };
            let cpu = share.cpu_for(&self.flows, position.slot, bps);
            let outcome = if member.fits(&left, bps - minimum, cpu) {
                member.take(&mut left, bps - minimum, cpu);
                Outcome { bps, cpu, limited_by }
            } else {
                Outcome { bps: minimum, cpu: 0, limited_by }
            };
            self.share(position.slot, share, outcome, cause);
        }
    }

    /// Lets a flow use its share, if that is another one than before.
    fn share(&mut self, slot: usize, share: &mut Share, outcome: Outcome, cause: AllocationCause) {
        if share.is_settled && share.outcome == outcome {
            return;
        }
        (share.outcome, share.is_settled) = (outcome, true);
        let flow = &mut self.flows[slot];
        flow.limited_by = outcome.limited_by;
        let cause = flow.own_cause.take().unwrap_or(cause);
        self.grant(slot, outcome.bps, cause);
    }
}

impl Share {
    /// The share of a flow that has just been counted.
    fn new(flow: &Flow) -> Self {
        Self { minimum: flow.minimum(), outcome: Outcome::default(), is_settled: false }
    }

    /// Reads the rate of a flow that has just been counted.
    fn read(&mut self, flows: &Slab<Flow>, slot: usize) {
        if !self.is_settled {
            self.outcome.bps = flows[slot].granted;
        }
    }

    /// Returns the CPU time at a rate, beside that for the minimum.
    fn cpu_for(&self, flows: &Slab<Flow>, slot: usize, bps: u64) -> u64 {
        if self.is_settled && self.outcome.bps == bps {
            return self.outcome.cpu;
        }
        let request = &flows[slot].request;
        request.cpu_at(bps) - request.cpu_at(self.minimum)
    }
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
