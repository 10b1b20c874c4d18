//! Weighted max-min fairness in two levels, over several resources (progressive filling, Bertsekas and Gallager 1992
//! section 6.5).
//!
//! All groups are filled at once: the rate of a group grows in proportion to its weight, and is divided among its
//! active members in proportion to theirs. A member leaves when it has all its room, or when a resource that it uses is
//! exhausted. Then the other members of its group grow faster, the group as fast as before. With one resource this is
//! max-min fairness among groups and then among the members of each.
//!
//! ```text
//! rate of member i of group g, while active:  dx_i / dl = W_g w_i / (sum of w_j of g's active members)
//! ```
//!
//! Example: 12 to share, two groups of equal weight; A has one member with room 2, B has two with room 9 each. A gets
//! 2, B's members 5 each.
//!
//! Cost: O(log groups + resources) for each member that gets all its room, O(active members + resources x their groups)
//! for each resource that is exhausted.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

/// The resources that every member uses, by their places: those of carriers come first.
pub(super) const TCP: usize = 0;
pub(super) const DATAGRAMS: usize = 1;
pub(super) const COMBINED: usize = 2;
pub(super) const CPU: usize = 3;
/// The place of the first interface.
pub(super) const INTERFACES: usize = 4;

/// Members of one user.
#[derive(Clone, Debug)]
pub(super) struct Group {
    pub weight: f64,
    /// Members, sorted by `room / weight`.
    pub members: Range<usize>,
}

/// A flow that shares.
#[derive(Clone, Copy, Debug)]
pub(super) struct Member {
    pub weight: f64,
    /// The most that it takes.
    pub room: f64,
    /// The level at which it has that: `room / weight`.
    pub level: f64,
    /// CPU time for a bit per second.
    pub cpu: f64,
    /// Place of the carrier's ceiling.
    pub carrier: usize,
    /// Place of the interface.
    pub interface: Option<usize>,
}

/// Outcome for a member.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Filled {
    pub rate: f64,
    /// The resource that was exhausted; `None` if the member has all its room.
    pub limited_by: Option<usize>,
}

impl Member {
    /// Calls a function for each resource that it uses, with the amount for a bit per second.
    #[inline]
    fn for_each_use(&self, mut call: impl FnMut(usize, f64)) {
        call(self.carrier, 1.0);
        call(COMBINED, 1.0);
        if self.cpu > 0.0 {
            call(CPU, self.cpu);
        }
        if let Some(place) = self.interface {
            call(place, 1.0);
        }
    }

    /// The amount that it uses of a resource for a bit per second.
    fn amount(&self, place: usize) -> f64 {
        match place {
            CPU => self.cpu,
            _ if place == COMBINED || place == self.carrier || Some(place) == self.interface => 1.0,
            _ => 0.0,
        }
    }
}

/// State of a group.
#[derive(Clone, Debug, Default)]
struct Growing {
    /// Sum of the weights of active members.
    weight: f64,
    active: usize,
    /// Growth of the rate of a member of weight 1 with the common level.
    factor: f64,
    /// Rate of a member of weight 1.
    level: f64,
    /// The common level at which `level` was computed.
    at: f64,
    /// The next member that may get all its room.
    next: usize,
    /// The common level at which it has, as bits.
    due: u64,
}

/// Fills all members, of which none begins with anything, up to `left` of each resource.
pub(super) fn fill(groups: &[Group], members: &[Member], left: &[f64]) -> Vec<Filled> {
    let mut filling = Filling::new(groups, members, left);
    filling.run();
    filling.filled
}

struct Filling<'a> {
    groups: &'a [Group],
    members: &'a [Member],
    left: &'a [f64],
    growing: Vec<Growing>,
    /// Groups with active members, and those whose last one has got all its room since a resource was exhausted.
    unfinished: Vec<usize>,
    is_active: Vec<bool>,
    filled: Vec<Filled>,
    /// By group and resource: the sum of weight x amount of active members.
    loads: Vec<f64>,
    used: Vec<f64>,
    /// Growth of `used`.
    slopes: Vec<f64>,
    /// Active members by resource.
    users: Vec<usize>,
    common: f64,
    /// Groups by the common level at which their next member has all its room. Levels are never negative, so their bits
    /// are in order.
    queue: BinaryHeap<Reverse<(u64, usize)>>,
}

impl<'a> Filling<'a> {
    fn new(groups: &'a [Group], members: &'a [Member], left: &'a [f64]) -> Self {
        let resources = left.len();
        let mut filling = Self {
            groups,
            members,
            left,
            growing: Vec::with_capacity(groups.len()),
            unfinished: (0..groups.len()).collect(),
            is_active: vec![true; members.len()],
            filled: vec![Filled::default(); members.len()],
            loads: vec![0.0; groups.len() * resources],
            used: vec![0.0; resources],
            slopes: vec![0.0; resources],
            users: vec![0; resources],
            common: 0.0,
            queue: BinaryHeap::with_capacity(groups.len()),
        };
        for (at, group) in groups.iter().enumerate() {
            let mut weight = 0.0;
            let loads = &mut filling.loads[at * resources..][..resources];
            for member in &members[group.members.clone()] {
                weight += member.weight;
                member.for_each_use(|place, amount| {
                    loads[place] += member.weight * amount;
                    filling.users[place] += 1;
                });
            }
            let active = group.members.len();
            let next = group.members.start;
            filling.growing.push(Growing { weight, active, next, ..Growing::default() });
            filling.add_slopes(at);
            filling.find_due(at);
        }
        filling.schedule_all();
        filling
    }

    fn run(&mut self) {
        while let Some(Reverse((bits, group))) = self.queue.pop() {
            let due = f64::from_bits(bits);
            if let Some((place, level)) = self.exhausted_before(due) {
                self.advance(level);
                self.exhaust(place);
                continue;
            }
            self.advance(due);
            self.catch_up(group);
            let next = self.growing[group].next;
            let member = &self.members[next];
            self.filled[next] = Filled { rate: member.room, limited_by: None };
            self.growing[group].level = member.level;
            self.take_slopes(group);
            self.retire(group, next);
            self.add_slopes(group);
            self.find_due(group);
            if self.growing[group].active > 0 {
                self.queue.push(Reverse((self.growing[group].due, group)));
            }
        }
    }

    /// The resource that is exhausted first before a common level, and the level of that.
    fn exhausted_before(&self, due: f64) -> Option<(usize, f64)> {
        let growth = due - self.common;
        let mut first: Option<(usize, f64)> = None;
        for place in 0..self.left.len() {
            let (room, slope) = (self.left[place] - self.used[place], self.slopes[place]);
            if self.users[place] > 0 && slope * growth > room {
                let level = self.common + (room / slope).max(0.0);
                if first.is_none_or(|(_, earliest)| level < earliest) {
                    first = Some((place, level));
                }
            }
        }
        first
    }

    fn advance(&mut self, common: f64) {
        let growth = common - self.common;
        for (used, slope) in self.used.iter_mut().zip(&self.slopes) {
            *used += slope * growth;
        }
        self.common = common;
    }

    fn catch_up(&mut self, group: usize) {
        let growing = &mut self.growing[group];
        growing.level += (self.common - growing.at) * growing.factor;
        growing.at = self.common;
    }

    /// Ends the growth of all members that use a resource.
    fn exhaust(&mut self, place: usize) {
        let resources = self.left.len();
        let unfinished = std::mem::take(&mut self.unfinished);
        for &group in &unfinished {
            if self.growing[group].active == 0 || self.loads[group * resources + place] <= 0.0 {
                continue;
            }
            self.catch_up(group);
            self.take_slopes(group);
            let level = self.growing[group].level;
            for at in self.growing[group].next..self.groups[group].members.end {
                let member = &self.members[at];
                if self.is_active[at] && member.amount(place) > 0.0 {
                    let rate = (member.weight * level).min(member.room);
                    self.filled[at] = Filled { rate, limited_by: Some(place) };
                    self.retire(group, at);
                }
            }
            self.loads[group * resources + place] = 0.0;
            self.add_slopes(group);
            self.find_due(group);
        }
        self.unfinished = unfinished;
        self.schedule_all();
        (self.users[place], self.slopes[place]) = (0, 0.0);
    }

    /// Takes a member out of its group, whose slopes do not count meanwhile.
    fn retire(&mut self, group: usize, at: usize) {
        let resources = self.left.len();
        let loads = &mut self.loads[group * resources..][..resources];
        let member = &self.members[at];
        self.is_active[at] = false;
        self.growing[group].weight -= member.weight;
        self.growing[group].active -= 1;
        member.for_each_use(|place, amount| {
            loads[place] -= member.weight * amount;
            self.users[place] -= 1;
        });
    }

    /// Adds the group's part of the slopes.
    fn add_slopes(&mut self, group: usize) {
        let growing = &mut self.growing[group];
        growing.factor = if growing.active > 0 { self.groups[group].weight / growing.weight } else { 0.0 };
        self.change_slopes(group, self.growing[group].factor);
    }

    /// Takes the group's part of the slopes away, which was added last.
    fn take_slopes(&mut self, group: usize) {
        self.change_slopes(group, -self.growing[group].factor);
    }

    fn change_slopes(&mut self, group: usize, factor: f64) {
        let resources = self.left.len();
        let loads = &self.loads[group * resources..][..resources];
        for (slope, load) in self.slopes.iter_mut().zip(loads) {
            *slope += factor * load;
        }
    }

    /// Queues all groups with active members again.
    fn schedule_all(&mut self) {
        let mut queued = std::mem::take(&mut self.queue).into_vec();
        queued.clear();
        self.unfinished.retain(|group| self.growing[*group].active > 0);
        queued.extend(self.unfinished.iter().map(|group| Reverse((self.growing[*group].due, *group))));
        self.queue = BinaryHeap::from(queued);
    }

    /// Finds the next active member of a group, if it has one, and the common level at which that gets all its room.
    fn find_due(&mut self, group: usize) {
        let growing = &mut self.growing[group];
        if growing.active == 0 {
            return;
        }
        while !self.is_active[growing.next] {
            growing.next += 1;
        }
        let growth = (self.members[growing.next].level - growing.level).max(0.0);
        let due = (growing.at + growth / growing.factor).max(self.common);
        growing.due = due.to_bits();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn member(weight: f64, room: f64) -> Member {
        Member { weight, room, level: room / weight, cpu: 0.0, carrier: TCP, interface: None }
    }

    fn groups(sizes: &[(f64, usize)]) -> Vec<Group> {
        let mut start = 0;
        let group = |(weight, size): &(f64, usize)| {
            let members = start..start + size;
            start += size;
            Group { weight: *weight, members }
        };
        sizes.iter().map(group).collect()
    }

    fn rates(filled: &[Filled]) -> Vec<f64> {
        filled.iter().map(|filled| (filled.rate * 1e6).round() / 1e6).collect()
    }

    const OPEN: f64 = f64::INFINITY;

    /// The example of the header, and that of Bertsekas and Gallager 1992 section 6.5: what one leaves is shared by the others.
    #[test]
    fn groups_come_before_their_members() {
        let members = [member(1.0, 2.0), member(1.0, 9.0), member(1.0, 9.0)];
        let left = [12.0, OPEN, OPEN, OPEN];
        let filled = fill(&groups(&[(1.0, 1), (1.0, 2)]), &members, &left);
        assert_eq!(rates(&filled), [2.0, 5.0, 5.0]);
        assert_eq!(filled[0].limited_by, None);
        assert_eq!(filled[1].limited_by, Some(TCP));
        let members = [member(1.0, 90.0), member(1.0, 90.0), member(1.0, 90.0)];
        assert_eq!(rates(&fill(&groups(&[(1.0, 1), (1.0, 2)]), &members, &left)), [6.0, 3.0, 3.0]);
        assert_eq!(rates(&fill(&groups(&[(1.0, 1), (3.0, 2)]), &members, &left)), [3.0, 4.5, 4.5]);
    }

    #[test]
    fn a_member_that_is_stopped_leaves_its_groups_growth_to_the_others() {
        // Interface 4 has 2; B's other member uses interface 5 and takes over B's growth.
        let members = [
            Member { interface: Some(5), ..member(1.0, 100.0) },
            Member { interface: Some(4), ..member(1.0, 100.0) },
            Member { interface: Some(5), ..member(1.0, 100.0) },
        ];
        let left = [OPEN, OPEN, OPEN, OPEN, 2.0, 16.0];
        let filled = fill(&groups(&[(1.0, 1), (1.0, 2)]), &members, &left);
        assert_eq!(rates(&filled), [9.0, 2.0, 7.0], "A has 9, B has 2 + 7");
    }

    #[test]
    fn the_cpu_limits_flows_that_need_it() {
        let members = [Member { cpu: 0.5, ..member(1.0, 10.0) }, member(1.0, 10.0)];
        let filled = fill(&groups(&[(1.0, 1), (1.0, 1)]), &members, &[OPEN, OPEN, 14.0, 2.0]);
        assert_eq!(rates(&filled), [4.0, 10.0]);
        assert_eq!(filled[0].limited_by, Some(CPU));
    }

    fn any_case() -> impl Strategy<Value = (Vec<Group>, Vec<Member>, Vec<f64>)> {
        let member = (1_u32..9, 0_u32..1000, 0_u32..3, 0_usize..2, prop::option::of(0_usize..2));
        let group = (1_u32..5, prop::collection::vec(member, 1..8));
        let left =
            prop::collection::vec(prop_oneof![1 => Just(OPEN), 3 => (0_u32..2000).prop_map(f64::from)], 6);
        (prop::collection::vec(group, 1..6), left).prop_map(|(described, left)| {
            let (mut groups, mut members) = (Vec::new(), Vec::new());
            for (weight, own) in described {
                let start = members.len();
                let mut own: Vec<Member> = (own.into_iter())
                    .map(|(weight, room, cpu, carrier, interface)| Member {
                        weight: f64::from(weight),
                        room: f64::from(room),
                        level: f64::from(room) / f64::from(weight),
                        cpu: f64::from(cpu) / 4.0,
                        carrier,
                        interface: interface.map(|interface| INTERFACES + interface),
                    })
                    .collect();
                own.sort_by(|one, other| one.level.total_cmp(&other.level));
                members.extend(own);
                groups.push(Group { weight: f64::from(weight), members: start..members.len() });
            }
            (groups, members, left)
        })
    }

    proptest! {
        /// Nothing is exceeded, and a member without all its room uses a resource that is exhausted, of which no member
        /// of its group has more for its weight, and no other group has more for its weight unless the resource stopped
        /// nothing there.
        #[test]
        fn the_fill_is_max_min_fair((groups, members, left) in any_case()) {
            let filled = fill(&groups, &members, &left);
            let mut used = vec![0.0; left.len()];
            for (member, filled) in members.iter().zip(&filled) {
                prop_assert!(filled.rate >= 0.0 && filled.rate <= member.room);
                member.for_each_use(|place, amount| used[place] += amount * filled.rate);
            }
            for (used, left) in used.iter().zip(&left) {
                prop_assert!(*used <= left + 1e-6, "{used} of {left}");
            }
            for group in &groups {
                for at in group.members.clone() {
                    let Some(place) = filled[at].limited_by else {
                        prop_assert_eq!(filled[at].rate, members[at].room);
                        continue;
                    };
                    prop_assert!(members[at].amount(place) > 0.0);
                    prop_assert!(left[place] - used[place] < 1e-6, "{} of {}", used[place], left[place]);
                    let level = filled[at].rate / members[at].weight;
                    for other in group.members.clone().filter(|other| members[*other].amount(place) > 0.0) {
                        prop_assert!(filled[other].rate / members[other].weight <= level + 1e-6);
                    }
                }
            }
            // With one resource, groups are max-min fair among each other.
            let one = vec![left[2], OPEN, OPEN, OPEN];
            let plain: Vec<Member> = members.iter().map(|m| Member { cpu: 0.0, carrier: TCP, interface: None, ..*m }).collect();
            let filled = fill(&groups, &plain, &one);
            let total = |group: &Group| group.members.clone().map(|at| filled[at].rate).sum::<f64>();
            let is_short = |group: &Group| group.members.clone().any(|at| filled[at].limited_by.is_some());
            for group in groups.iter().filter(|group| is_short(group)) {
                for other in &groups {
                    prop_assert!(total(other) / other.weight <= total(group) / group.weight + 1e-6);
                }
            }
        }
    }
}
