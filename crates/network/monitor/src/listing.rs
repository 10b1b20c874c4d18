//! Rows that a document lists: a limited number of each kind, with a share for each user.
//!
//! Rows are claims of processes, and any user may publish many, with any traffic. So users take turns: in each, one has a place for the row that
//! matters most of those that it has left, and root and services of the system come before the others.

use crate::document::{HostDocument, RouterEntry, SocketEntry};
use crate::registry::is_system;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The most rows of each kind that a document lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowLimits {
    /// The most sockets: those with violations, then those that carry most.
    pub sockets: usize,
    /// The most programs under `cutline exec`: those that have sent most.
    pub programs: usize,
    /// The most routers: those of the system first.
    pub routers: usize,
}

impl RowLimits {
    /// The limits of a page.
    pub const PAGE: Self = Self { sockets: 100, programs: 100, routers: 32 };
    /// The limits of metrics.
    pub const METRICS: Self = Self { sockets: 1000, programs: 1000, routers: 256 };
}

/// Claim of a row to a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PlaceClaim {
    /// A place in a turn of this user, before all rows of users that are not first.
    First(u32),
    /// A place in a turn of this user.
    Turn(u32),
}

impl PlaceClaim {
    /// Returns the claim of a router of this user. Routers are part of the system, so its own are first.
    pub const fn of_router(owner: u32) -> Self {
        if is_system(owner) { Self::First(owner) } else { Self::Turn(owner) }
    }
}

impl HostDocument {
    /// Leaves the rows that matter most, with a share for each user, and counts the others.
    pub fn shorten(&mut self, most: RowLimits) {
        let violations =
            |entry: &SocketEntry| entry.socket.send.violations.len() + entry.socket.receive.violations.len();
        let carried = |entry: &SocketEntry| {
            let of = |bps: Option<u64>| bps.unwrap_or_default();
            of(entry.socket.send.throughput_bps).saturating_add(of(entry.socket.receive.throughput_bps))
        };
        self.sockets.sort_by_key(|entry| Reverse((violations(entry), carried(entry))));
        self.unlisted_sockets +=
            share_places(&mut self.sockets, most.sockets, |entry| PlaceClaim::Turn(entry.uid));
        if self.programs.len() > most.programs {
            self.programs.sort_by_key(|entry| Reverse(entry.row.bytes));
        }
        self.unlisted_programs +=
            share_places(&mut self.programs, most.programs, |entry| PlaceClaim::Turn(entry.uid));
        let of_router = |entry: &RouterEntry| PlaceClaim::of_router(entry.uid);
        self.unlisted_routers += share_places(&mut self.routers, most.routers, of_router);
    }
}

/// Leaves at most `most` items in their order, in which those that matter more come first. Returns the number of the others.
pub fn share_places<T>(items: &mut Vec<T>, most: usize, claim: impl Fn(&T) -> PlaceClaim) -> u64 {
    let others = items.len().saturating_sub(most);
    if others == 0 {
        return 0;
    }
    let mut turns: BTreeMap<PlaceClaim, usize> = BTreeMap::new();
    let mut places: Vec<(bool, usize, bool, usize)> = Vec::with_capacity(items.len());
    for (place, item) in items.iter().enumerate() {
        let claim = claim(item);
        let turn = turns.entry(claim).or_default();
        *turn += 1;
        let (is_later, user) = match claim {
            PlaceClaim::First(user) => (false, user),
            PlaceClaim::Turn(user) => (true, user),
        };
        places.push((is_later, *turn, !is_system(user), place));
    }
    places.sort_unstable();
    let mut is_kept = vec![false; items.len()];
    for (.., place) in &places[..most] {
        is_kept[*place] = true;
    }
    let mut is_kept = is_kept.into_iter();
    items.retain(|_| is_kept.next().unwrap_or_default());
    others as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::ProgramEntry;
    use cutline_publish::{ProgramRow, SocketRow};
    use proptest::prelude::*;

    const ROOT: u32 = 0;
    const SERVICE: u32 = 61_200;

    fn socket(uid: u32, throughput_bps: u64) -> SocketEntry {
        let mut socket = SocketRow::default();
        socket.send.throughput_bps = Some(throughput_bps);
        SocketEntry { uid, socket: socket.into(), ..SocketEntry::default() }
    }

    fn of(document: &HostDocument, uid: u32) -> usize {
        document.sockets.iter().filter(|entry| entry.uid == uid).count()
    }

    /// One user states that 3000 sockets carry more than all others.
    #[test]
    fn a_user_takes_no_place_of_others() {
        let mut document = HostDocument::default();
        document.sockets.extend((0..3000).map(|number| socket(1000, u64::MAX - number)));
        document.sockets.extend((0..400).map(|number| socket(ROOT, number)));
        document.sockets.extend((0..30).map(|number| socket(1001, number)));
        document.shorten(RowLimits::METRICS);
        assert_eq!([ROOT, 1001, 1000].map(|uid| of(&document, uid)), [400, 30, 570]);
        assert_eq!(document.unlisted_sockets, 2430);
        // A page has fewer, and of each user those that carry most.
        document.shorten(RowLimits::PAGE);
        assert_eq!([ROOT, 1001, 1000].map(|uid| of(&document, uid)), [35, 30, 35]);
        assert_eq!(document.unlisted_sockets, 2430 + 900);
        let least = document
            .sockets
            .iter()
            .filter(|entry| entry.uid == ROOT)
            .map(|entry| entry.socket.send.throughput_bps.unwrap());
        assert_eq!(least.min(), Some(365));
    }

    #[test]
    fn routers_of_the_system_are_first() {
        let routers = [vec![1000; 60], vec![1001; 2], vec![SERVICE; 5], vec![ROOT; 20]].concat();
        let entry = |uid: &u32| RouterEntry { uid: *uid, ..RouterEntry::default() };
        let mut document =
            HostDocument { routers: routers.iter().map(entry).collect(), ..HostDocument::default() };
        document.shorten(RowLimits::PAGE);
        let of = |uid| document.routers.iter().filter(|entry| entry.uid == uid).count();
        assert_eq!([ROOT, SERVICE, 1001, 1000].map(of), [20, 5, 2, 5]);
        assert_eq!(document.unlisted_routers, 55);
        // A service takes no place of root.
        document.routers = [vec![SERVICE; 50], vec![ROOT; 10]].concat().iter().map(entry).collect();
        document.shorten(RowLimits::PAGE);
        let of = |uid| document.routers.iter().filter(|entry| entry.uid == uid).count();
        assert_eq!([ROOT, SERVICE].map(of), [10, 22]);
    }

    #[test]
    fn programs_that_have_sent_most_are_listed() {
        let program = |bytes| {
            let row = ProgramRow { bytes: Some(bytes), ..ProgramRow::default() };
            ProgramEntry { row: row.into(), ..ProgramEntry::default() }
        };
        let mut document =
            HostDocument { programs: (0..150).map(program).collect(), ..HostDocument::default() };
        document.shorten(RowLimits::PAGE);
        assert_eq!((document.programs.len(), document.unlisted_programs), (100, 50));
        assert!(document.programs.iter().all(|entry| entry.row.bytes >= Some(50)));
    }

    proptest! {
        /// With n users, each has the n-th part of the places, or all that it wants.
        #[test]
        fn places_are_shared(owners in prop::collection::vec(1000_u32..1006, 0..80), most in 0_usize..40) {
            let mut items: Vec<(u32, usize)> =
                owners.iter().copied().enumerate().map(|(place, owner)| (owner, place)).collect();
            let others = share_places(&mut items, most, |(owner, _)| PlaceClaim::Turn(*owner));
            prop_assert_eq!(items.len(), owners.len().min(most));
            prop_assert_eq!(items.len() + others as usize, owners.len());
            prop_assert!(items.is_sorted_by_key(|(_, place)| *place));
            let mut users = owners.clone();
            users.sort_unstable();
            users.dedup();
            for user in &users {
                let wanted = owners.iter().filter(|owner| *owner == user).count();
                let had = items.iter().filter(|(owner, _)| owner == user).count();
                prop_assert!(had >= wanted.min(most / users.len()), "{} of {}", had, wanted);
            }
        }
    }
}
