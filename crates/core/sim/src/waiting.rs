//! The packets that wait at FIFO links, in one store for all links.
//!
//! A large network has four FIFO links for each flow, and packets wait at few of them at a time. A store with a list for each link takes
//! the memory of the packets that wait, where a buffer for each link takes that of the longest queue that each link ever had. A list is a
//! circle, so that its owner only has the place of the last packet.

use crate::places::{Linked, NONE, Places};
use cutline_units::Instant;

/// The places of waiting packets.
#[derive(Default)]
pub(crate) struct WaitingPackets {
    places: Places<Place>,
}

/// A packet that waits: the start of its transmission, its size in bytes, and the place of the packet behind it. Behind the last packet is
/// the first one.
#[derive(Clone, Copy)]
struct Place {
    starts: Instant,
    size: u32,
    next: u32,
}

/// A queue in the store. The owner knows the number of its packets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WaitingList {
    /// The place of the last packet; [`EMPTY`] if there is none any longer, [`NONE`] if there never was one.
    last: u32,
}

/// The place of the last packet of a list that is empty again.
const EMPTY: u32 = NONE - 1;

impl Default for WaitingList {
    fn default() -> Self {
        Self { last: NONE }
    }
}

impl WaitingList {
    /// Returns whether a packet has ever waited.
    pub(crate) const fn was_used(self) -> bool {
        self.last != NONE
    }

    /// Returns the place of the last packet.
    #[inline]
    pub(crate) const fn last(self) -> u32 {
        self.last
    }

    /// Returns whether no packet waits.
    pub(crate) const fn is_empty(self) -> bool {
        self.last >= EMPTY
    }
}

impl Linked for Place {
    fn link(&self) -> u32 {
        self.next
    }

    fn set_link(&mut self, link: u32) {
        self.next = link;
    }
}

impl WaitingPackets {
    /// Appends a packet to a queue.
    pub(crate) fn push(&mut self, list: &mut WaitingList, starts: Instant, size: u32) {
        let place = self.places.put(Place { starts, size, next: NONE });
        let first =
            if list.is_empty() { place } else { std::mem::replace(&mut self.places[list.last].next, place) };
        self.places[place].next = first;
        list.last = place;
    }

    /// Returns the place behind a place, for reading ahead; [`NONE`] behind a place that does not exist.
    #[inline]
    pub(crate) fn behind(&self, place: u32) -> u32 {
        self.places.get(place).map_or(NONE, |place| place.next)
    }

    /// Removes the first packet of a queue if its transmission has started by `now`. Returns the start and the size.
    pub(crate) fn pop_started(&mut self, list: &mut WaitingList, now: Instant) -> Option<(Instant, u32)> {
        if list.is_empty() {
            return None;
        }
        let first = self.places[list.last].next;
        if self.places[first].starts > now {
            return None;
        }
        let Place { starts, size, next } = self.places.take(first);
        if first == list.last {
            list.last = EMPTY;
        } else {
            self.places[list.last].next = next;
        }
        self.places.give_back();
        Some((starts, size))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::places::CHUNK;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        /// Against a queue for each list.
        #[test]
        fn lists_share_the_places(steps in prop::collection::vec((0usize..3, any::<bool>(), 0u64..3), 0..300)) {
            let mut store = WaitingPackets::default();
            let mut lists = [WaitingList::default(); 3];
            let mut model: [VecDeque<(Instant, u32)>; 3] = Default::default();
            let (mut most, mut time) = (0, 0);
            for (number, (list, is_push, ahead)) in steps.into_iter().enumerate() {
                if is_push {
                    time += ahead;
                    let (starts, size) = (Instant::from_nanos(time), number as u32);
                    store.push(&mut lists[list], starts, size);
                    model[list].push_back((starts, size));
                } else {
                    let now = Instant::from_nanos(time.saturating_sub(ahead));
                    let expected = model[list].pop_front_if(|(starts, _)| *starts <= now);
                    prop_assert_eq!(store.pop_started(&mut lists[list], now), expected);
                }
                most = most.max(model.iter().map(VecDeque::len).sum());
                prop_assert_eq!(lists.map(WaitingList::is_empty), [0, 1, 2].map(|list| model[list].is_empty()));
            }
            // So few places are never given back, and they are the first ones.
            prop_assert_eq!(store.places.len(), (most as u32).next_multiple_of(CHUNK));
        }
    }
}
