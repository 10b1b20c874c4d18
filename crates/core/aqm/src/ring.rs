//! A first-in first-out list in chunks: one that grows copies nothing and has few places too many.
//!
//! A chunk whose last item has been taken serves again behind the others, so a list that has been as long before allocates nothing.

use std::collections::VecDeque;

/// The number of items in a chunk.
const CHUNK: usize = 32;

/// A list of items that leave in the order of their arrival.
#[derive(Clone, Debug)]
pub(crate) struct Ring<T> {
    /// The chunks with items, and then those without any.
    chunks: VecDeque<Box<[T; CHUNK]>>,
    /// The place of the first item in the first chunk.
    first: usize,
    len: usize,
}

impl<T> Default for Ring<T> {
    fn default() -> Self {
        Self { chunks: VecDeque::new(), first: 0, len: 0 }
    }
}

impl<T: Copy> Ring<T> {
    /// Appends an item.
    #[inline]
    pub(crate) fn push(&mut self, item: T) {
        let place = self.first + self.len;
        self.len += 1;
        if self.chunks.len() < chunks_for(self.len) {
            self.add_chunk(item);
        }
        self.chunks[place / CHUNK][place % CHUNK] = item;
    }

    /// Adds a chunk, filled with this item.
    #[cold]
    #[inline(never)]
    fn add_chunk(&mut self, item: T) {
        self.chunks.push_back(Box::new([item; CHUNK]));
    }

    /// Takes the first item.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<T> {
        self.len = self.len.checked_sub(1)?;
        let item = self.chunks[0][self.first];
        self.first += 1;
        if self.first == CHUNK {
            self.first = 0;
            // The chunk is behind the others now.
            self.chunks.rotate_left(1);
        }
        Some(item)
    }

    /// Gives memory back: leaves room for half as many items more as there are now, and for some hundred items.
    pub(crate) fn give_back(&mut self) {
        const KEPT: usize = 256;
        let room = (self.len + self.len / 2).max(KEPT);
        self.chunks.truncate(chunks_for(room));
    }

    /// Returns the number of items for which there is memory.
    #[cfg(test)]
    pub(crate) fn room(&self) -> usize {
        self.chunks.len() * CHUNK
    }
}

/// Returns the number of chunks for this number of items, wherever in the first chunk they begin.
const fn chunks_for(items: usize) -> usize {
    (items + CHUNK - 2) / CHUNK + 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against a double-ended queue: bursts of items that arrive and leave, with memory given back in between.
        #[test]
        fn items_leave_in_the_order_of_their_arrival(
            bursts in prop::collection::vec((0usize..600, 0usize..600, any::<bool>()), 1..12),
        ) {
            let (mut ring, mut model, mut number) = (Ring::default(), VecDeque::new(), 0);
            for (arrive, leave, gives_back) in bursts {
                for _ in 0..arrive {
                    number += 1;
                    ring.push(number);
                    model.push_back(number);
                }
                for _ in 0..leave {
                    prop_assert_eq!(ring.pop(), model.pop_front());
                }
                if gives_back {
                    ring.give_back();
                }
                prop_assert_eq!(ring.len, model.len());
            }
        }
    }

    #[test]
    fn a_list_that_grows_has_few_places_too_many_and_gives_memory_back() {
        let mut ring = Ring::default();
        (0..5001).for_each(|item| ring.push(item));
        let room = ring.room();
        assert!(room <= 5001 + 2 * CHUNK, "{room} places");
        for item in 5001..50_000 {
            ring.pop();
            ring.push(item);
        }
        assert_eq!(ring.room(), room, "a list that has been as long before");
        (0..4901).for_each(|_| assert!(ring.pop().is_some()));
        ring.give_back();
        assert!(ring.room() <= 256 + CHUNK, "{} places", ring.room());
        assert!((49_900..50_000).eq(std::iter::from_fn(|| ring.pop())));
    }
}
