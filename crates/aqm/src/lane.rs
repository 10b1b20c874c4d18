//! One FIFO lane: a ring buffer in two columns, which is sorted by weight and can be searched.
//!
//! Every packet has a *position* that never changes: the number of packets that entered the lane before it. So
//! a place can be remembered while packets come and go. The keys, which a search reads, are a column of their
//! own, four to a cache line. The ring grows by doubling and never shrinks: once it has held its largest
//! backlog it allocates no more.

use cutline_units::Instant;
use std::hint::black_box;

/// What a search reads of a waiting packet.
#[derive(Clone, Copy, Debug)]
struct Key {
    weight: Instant,
    /// The bytes that entered the lane before this packet.
    bytes_before: u64,
}

/// The rest of a waiting packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stored<P> {
    pub(crate) arrived: Instant,
    /// How many packets entered any lane before this one.
    pub(crate) number: u64,
    pub(crate) size: u32,
    pub(crate) packet: P,
}

/// Packets of one hint, first in, first out.
#[derive(Clone, Debug)]
pub(crate) struct Lane<P> {
    /// A power of two of slots, or none; `stored` has as many.
    keys: Vec<Key>,
    stored: Vec<Stored<P>>,
    /// The position of the first packet, and of the next to come.
    head: u64,
    tail: u64,
    /// The bytes that ever entered.
    bytes_entered: u64,
}

/// The slots of a lane that holds its first packet.
const FIRST_SLOTS: usize = 16;

/// How far ahead of the first packet the slots are brought into the cache.
const AHEAD: u64 = 3;

impl<P: Copy> Lane<P> {
    /// An empty lane that has allocated nothing.
    pub(crate) const fn new() -> Self {
        Self { keys: Vec::new(), stored: Vec::new(), head: 0, tail: 0, bytes_entered: 0 }
    }

    #[inline]
    pub(crate) const fn is_empty(&self) -> bool {
        self.head == self.tail
    }

    /// Adds a packet that weighs no less than the last one.
    #[inline]
    pub(crate) fn push(&mut self, weight: Instant, stored: Stored<P>) {
        let key = Key { weight, bytes_before: self.bytes_entered };
        if self.tail - self.head == self.keys.len() as u64 {
            self.grow(key, stored);
        }
        let slot = self.slot(self.tail);
        self.keys[slot] = key;
        self.stored[slot] = stored;
        self.tail += 1;
        self.bytes_entered += u64::from(stored.size);
    }

    /// Takes the first packet.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<(Instant, Stored<P>)> {
        if self.is_empty() {
            return None;
        }
        let slot = self.slot(self.head);
        self.head += 1;
        self.touch(self.head + AHEAD);
        Some((self.keys[slot].weight, self.stored[slot]))
    }

    /// Weight and number of the first packet.
    #[inline]
    pub(crate) fn head(&self) -> Option<(Instant, u64)> {
        let slot = self.slot(self.head);
        (!self.is_empty()).then(|| (self.keys[slot].weight, self.stored[slot].number))
    }

    /// The bytes of the packets that weigh more than `w`, of which there is one at least. The search starts at
    /// the cursor, which is not beyond the first of them, and moves it there.
    #[inline]
    pub(crate) fn bytes_behind(&self, w: Instant, cursor: &mut u64) -> u64 {
        *cursor = self.first_above((*cursor).max(self.head), w);
        self.bytes_entered - self.keys[self.slot(*cursor)].bytes_before
    }

    /// The position of the first packet from `start` on that weighs more than `w`; the last one does.
    ///
    /// Most of the time it is one of the next few. They are counted without a branch, as how many there are is
    /// anybody's guess.
    #[inline]
    fn first_above(&self, start: u64, w: Instant) -> u64 {
        const FEW: u64 = 4;
        let is_passed = |at| {
            let lighter = self.keys[self.slot(at)].weight <= w;
            u64::from(at < self.tail) & u64::from(lighter)
        };
        let passed: u64 = (start..start + FEW).map(is_passed).sum();
        if passed < FEW { start + passed } else { self.search_above(start + FEW, w) }
    }

    /// [`Lane::first_above`] by doubling steps from `start`, then halving ones.
    fn search_above(&self, start: u64, w: Instant) -> u64 {
        let weight = |position| self.keys[self.slot(position)].weight;
        let last = self.tail - 1;
        let (mut low, mut step) = (start, 1);
        while low + step < last && weight(low + step) <= w {
            low += step;
            step *= 2;
        }
        let mut high = (low + step).min(last);
        while low < high {
            let middle = low.midpoint(high);
            if weight(middle) > w {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        low
    }

    #[inline]
    fn slot(&self, position: u64) -> usize {
        position as usize & self.keys.len().wrapping_sub(1)
    }

    /// Brings a slot into the cache. Nobody waits for what is read.
    #[inline]
    fn touch(&self, position: u64) {
        let slot = self.slot(position);
        black_box((self.keys[slot].weight, self.stored[slot].number));
    }

    /// Twice the slots; the unused ones hold whatever is at hand.
    #[cold]
    fn grow(&mut self, key: Key, stored: Stored<P>) {
        let slots = (self.keys.len() * 2).max(FIRST_SLOTS);
        let (mut keys, mut all_stored) = (vec![key; slots], vec![stored; slots]);
        for position in self.head..self.tail {
            let (from, to) = (self.slot(position), position as usize & (slots - 1));
            (keys[to], all_stored[to]) = (self.keys[from], self.stored[from]);
        }
        (self.keys, self.stored) = (keys, all_stored);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    fn stored(number: u64) -> Stored<u32> {
        Stored { arrived: Instant::ZERO, number, size: 1, packet: 0 }
    }

    #[test]
    fn it_is_a_queue_through_every_growth() {
        let (mut lane, mut model) = (Lane::new(), VecDeque::new());
        for i in 0..1000 {
            lane.push(Instant::from_nanos(i), stored(i));
            model.push_back(i);
            // Two of three stay, so that the ring grows while its head is somewhere in the middle.
            if i % 3 == 0 {
                assert_eq!(lane.pop().map(|(_, stored)| stored.number), model.pop_front());
            }
        }
        while let Some(expected) = model.pop_front() {
            assert_eq!(lane.head(), Some((Instant::from_nanos(expected), expected)));
            assert_eq!(lane.pop().map(|(_, stored)| stored.number), Some(expected));
        }
        assert!(lane.pop().is_none() && lane.head().is_none() && lane.is_empty());
    }

    #[test]
    fn the_first_heavier_is_found_from_wherever_the_search_starts() {
        let mut lane = Lane::new();
        // Leftovers of lighter packets must not be taken for waiting ones.
        (0..50).for_each(|i| lane.push(Instant::ZERO, stored(i)));
        while lane.pop().is_some() {}
        // 0 0 0 1 1 1 2 2 2 ...: every weight three times.
        (0..90).for_each(|i| lane.push(Instant::from_nanos(i / 3), stored(i)));
        for w in 0..29 {
            let first = 50 + (w + 1) * 3;
            for mut cursor in 0..=first {
                let behind = lane.bytes_behind(Instant::from_nanos(w), &mut cursor);
                assert_eq!((cursor, behind), (first, 140 - first));
            }
        }
    }
}
