//! A store with places that are used again: the packets of a queue, and the waiting packets of all FIFO links.
//!
//! The places are in chunks, so that a store that grows copies nothing and has few places too many. The free places are a list through
//! these places. After a burst, places are given back: those from a limit on are not taken again, and when the last of them has been left,
//! all of them are given back. So a queue does not keep the memory of its slow start.

use std::ops::{Index, IndexMut};

/// No place.
pub(crate) const NONE: u32 = u32::MAX;
/// The number of places in a chunk.
pub(crate) const CHUNK: u32 = 32;
/// This number of places is never given back.
const KEPT: u32 = 8 * CHUNK;

/// An item of a store. While its place is free, it has the link of the list of free places.
pub(crate) trait Linked: Copy {
    /// Returns the link.
    fn link(&self) -> u32;

    /// Sets the link.
    fn set_link(&mut self, link: u32);
}

/// A store; see the module's documentation. The place of an item is its handle.
pub(crate) struct Places<T> {
    chunks: Vec<Box<[T; CHUNK as usize]>>,
    /// The number of places that are taken.
    taken: u32,
    /// The place below the limit that was left last, which links to the one that was left before it; [`NONE`] if all are taken.
    free: u32,
    /// The first place that is not taken again, that of a chunk; [`NONE`] most of the time.
    limit: u32,
    /// The place from the limit on that was left last, as `free`, and the number of these places.
    beyond: u32,
    beyond_count: u32,
}

impl<T> Default for Places<T> {
    fn default() -> Self {
        Self { chunks: Vec::new(), taken: 0, free: NONE, limit: NONE, beyond: NONE, beyond_count: 0 }
    }
}

impl<T> Index<u32> for Places<T> {
    type Output = T;

    #[inline]
    fn index(&self, place: u32) -> &T {
        &self.chunks[(place / CHUNK) as usize][(place % CHUNK) as usize]
    }
}

impl<T> IndexMut<u32> for Places<T> {
    #[inline]
    fn index_mut(&mut self, place: u32) -> &mut T {
        &mut self.chunks[(place / CHUNK) as usize][(place % CHUNK) as usize]
    }
}

impl<T: Linked> Places<T> {
    /// Stores an item and returns its place.
    #[inline]
    pub(crate) fn put(&mut self, item: T) -> u32 {
        let free = self.free;
        self.taken += 1;
        if let Some(chunk) = self.chunks.get_mut((free / CHUNK) as usize) {
            let place = &mut chunk[(free % CHUNK) as usize];
            self.free = place.link();
            *place = item;
            return free;
        }
        self.put_in_new_place(item)
    }

    /// Stores an item where no place is free below the limit. Then no place is given back.
    #[cold]
    #[inline(never)]
    fn put_in_new_place(&mut self, item: T) -> u32 {
        let place = if self.beyond == NONE { self.add_chunk(item) } else { self.beyond };
        (self.limit, self.beyond, self.beyond_count) = (NONE, NONE, 0);
        self.free = self[place].link();
        self[place] = item;
        place
    }

    /// Adds a chunk of free places, which have copies of this item. Returns the first of their list.
    fn add_chunk(&mut self, item: T) -> u32 {
        let first = self.len();
        let mut chunk = Box::new([item; CHUNK as usize]);
        for (place, next) in chunk.iter_mut().zip(first + 1..) {
            place.set_link(if next == first + CHUNK { NONE } else { next });
        }
        self.chunks.push(chunk);
        first
    }

    /// Returns the item at a place; `None` if there is no such place.
    #[inline]
    pub(crate) fn get(&self, place: u32) -> Option<&T> {
        self.chunks.get((place / CHUNK) as usize).map(|chunk| &chunk[(place % CHUNK) as usize])
    }

    /// Removes an item.
    #[inline]
    pub(crate) fn take(&mut self, place: u32) -> T {
        self.taken -= 1;
        let (free, is_beyond) = (self.free, place >= self.limit);
        let left = &mut self[place];
        let item = *left;
        if is_beyond {
            self.leave_beyond(place);
        } else {
            left.set_link(free);
            self.free = place;
        }
        item
    }

    /// Begins to give places back if half of them are free. Returns whether it has begun.
    #[inline]
    pub(crate) fn give_back(&mut self) -> bool {
        let begins = self.len() / 2 > self.taken.max(KEPT) && self.limit == NONE;
        if begins {
            self.set_limit();
        }
        begins
    }

    /// Sets the limit, which leaves half as many places more as are taken now.
    #[cold]
    #[inline(never)]
    fn set_limit(&mut self) {
        let taken = self.taken.max(KEPT);
        self.limit = (taken + taken / 2).next_multiple_of(CHUNK);
        let mut place = std::mem::replace(&mut self.free, NONE);
        while place != NONE {
            let (next, free) = (self[place].link(), self.free);
            if place >= self.limit {
                self.leave_beyond(place);
            } else {
                self[place].set_link(free);
                self.free = place;
            }
            place = next;
        }
    }

    /// Leaves a place from the limit on. The last one gives all of them back.
    #[cold]
    #[inline(never)]
    fn leave_beyond(&mut self, place: u32) {
        let before = std::mem::replace(&mut self.beyond, place);
        self[place].set_link(before);
        self.beyond_count += 1;
        if self.limit + self.beyond_count == self.len() {
            self.chunks.truncate((self.limit / CHUNK) as usize);
            self.chunks.shrink_to_fit();
            (self.limit, self.beyond, self.beyond_count) = (NONE, NONE, 0);
        }
    }

    /// Returns the number of places.
    pub(crate) fn len(&self) -> u32 {
        self.chunks.len() as u32 * CHUNK
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Copy)]
    struct Item {
        number: u32,
        link: u32,
    }

    impl Item {
        const fn new(number: u32) -> Self {
            Self { number, link: 0 }
        }
    }

    impl Linked for Item {
        fn link(&self) -> u32 {
            self.link
        }

        fn set_link(&mut self, link: u32) {
            self.link = link;
        }
    }

    proptest! {
        /// Against a list: bursts of items that leave in any order, while places are given back.
        #[test]
        fn items_stay_in_their_places_while_others_are_given_back(
            bursts in prop::collection::vec((0usize..3000, 0usize..3000, any::<usize>()), 1..12),
        ) {
            let mut places = Places::default();
            let mut model: Vec<(u32, u32)> = Vec::new();
            let mut number = 0;
            for (arrive, leave, order) in bursts {
                for _ in 0..arrive {
                    number += 1;
                    model.push((places.put(Item::new(number)), number));
                }
                for step in 0..leave.min(model.len()) {
                    let (place, number) = model.swap_remove(order.wrapping_mul(step + 1) % model.len());
                    prop_assert_eq!(places.take(place).number, number);
                    if step.is_multiple_of(64) {
                        places.give_back();
                    }
                }
                prop_assert_eq!(places.taken as usize, model.len());
                prop_assert!(model.iter().all(|(place, number)| places[*place].number == *number));
            }
            let mut taken: Vec<u32> = model.iter().map(|(place, _)| *place).collect();
            taken.sort_unstable();
            taken.dedup();
            prop_assert_eq!(taken.len(), model.len(), "each item has its own place");
        }
    }

    #[test]
    fn a_burst_gives_its_memory_back() {
        let mut places = Places::default();
        let all: Vec<u32> = (0..10_000).map(|number| places.put(Item::new(number))).collect();
        let (staying, leaving) = all.split_at(300);
        for place in leaving {
            places.take(*place);
            places.give_back();
        }
        assert!(places.len() <= 700, "{} places", places.len());
        for place in staying {
            assert_eq!(places.take(*place).number, *place);
        }
        assert_eq!(places.taken, 0);
    }

    #[test]
    fn places_from_the_limit_on_are_taken_again_before_new_ones() {
        let mut places = Places::default();
        let all: Vec<u32> = (0..3000).map(|number| places.put(Item::new(number))).collect();
        let len = places.len();
        assert_eq!(len, 3000_u32.next_multiple_of(CHUNK));
        // The last one stays, so no place is given back.
        for place in &all[..2999] {
            places.take(*place);
            places.give_back();
        }
        assert_eq!((places.len(), places.limit == NONE), (len, false));
        for number in 0..2999 {
            places.put(Item::new(number));
        }
        assert_eq!((places.len(), places.limit == NONE), (len, true));
    }
}
