//! One FIFO lane: a ring buffer that is sorted by weight and can be searched.
//!
//! Every packet has a *position* that never changes: the number of packets that entered the lane before it. So a place can
//! be remembered while packets come and go. The ring grows by doubling, and shrinks only on request.
//!
//! There is one array, not a second one with the fields that a search reads. Sixteen lanes are read and written at sixteen places
//! each, and a processor prefetches for about that many. A second array makes an enqueue and dequeue 4 ns slower (34
//! instead of 30 at a backlog of 1,000). It would pay only for q' behind 100,000 packets and more.

use cutline_units::Instant;
use std::hint::black_box;

/// A waiting packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<P> {
    /// w: the order in which packets leave, least first.
    pub weight: Instant,
    /// Time at which the packet was enqueued.
    pub arrived: Instant,
    /// Bytes on the wire.
    pub size: u32,
    /// The caller's handle.
    pub packet: P,
}

/// A waiting packet with its place.
#[derive(Clone, Copy, Debug)]
struct Stored<P> {
    entry: Entry<P>,
    /// Number of packets that entered any lane before this one.
    number: u64,
    /// The bytes that entered this lane before this packet.
    bytes_before: u64,
}

/// Packets of one hint, first in, first out.
#[derive(Clone, Debug)]
pub(crate) struct Lane<P> {
    /// A power of two of slots, or none.
    slots: Vec<Stored<P>>,
    /// The position of the first packet, and of the next to come.
    head: u64,
    tail: u64,
    /// The bytes that ever entered.
    bytes_entered: u64,
}

/// The slots of a lane that holds its first packet.
pub(crate) const FIRST_SLOTS: usize = 16;

/// Distance ahead of the first packet at which slots are prefetched: a cache line and a half.
const AHEAD: u64 = 2;

impl<P: Copy> Lane<P> {
    /// An empty lane that has allocated nothing.
    pub(crate) const fn new() -> Self {
        Self { slots: Vec::new(), head: 0, tail: 0, bytes_entered: 0 }
    }

    #[inline]
    pub(crate) const fn is_empty(&self) -> bool {
        self.head == self.tail
    }

    /// Returns whether the lane has to grow before the next packet.
    #[inline]
    pub(crate) const fn is_full(&self) -> bool {
        self.tail - self.head == self.slots.len() as u64
    }

    /// Returns the capacity in packets.
    pub(crate) const fn room(&self) -> usize {
        self.slots.len()
    }

    /// Returns the capacity after the next growth, in packets.
    pub(crate) const fn next_room(&self) -> usize {
        if self.slots.is_empty() { FIRST_SLOTS } else { self.slots.len() * 2 }
    }

    /// Adds a packet that weighs no less than the last one; `number` have entered any lane before it. The lane is not full.
    #[inline]
    pub(crate) fn push(&mut self, number: u64, entry: Entry<P>) {
        let slot = self.slot(self.tail);
        self.slots[slot] = Stored { entry, number, bytes_before: self.bytes_entered };
        self.tail += 1;
        self.bytes_entered += u64::from(entry.size);
    }

    /// Takes the first packet.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Entry<P>> {
        if self.is_empty() {
            return None;
        }
        let entry = self.at(self.head).entry;
        self.head += 1;
        // Brings the slot into the cache for the packets after this one; the value is not used.
        black_box(self.at(self.head + AHEAD).number);
        Some(entry)
    }

    /// Weight and number of the first packet.
    #[inline]
    pub(crate) fn head(&self) -> Option<(Instant, u64)> {
        if self.is_empty() {
            return None;
        }
        let first = self.at(self.head);
        Some((first.entry.weight, first.number))
    }

    /// The bytes of the packets that weigh more than `w`, of which there is one at least. The search starts at
    /// the cursor, which is not beyond the first of them, and moves it there.
    #[inline]
    pub(crate) fn bytes_behind(&self, w: Instant, cursor: &mut u64) -> u64 {
        *cursor = self.first_above((*cursor).max(self.head), w);
        self.bytes_entered - self.at(*cursor).bytes_before
    }

    /// The position of the first packet from `start` on that weighs more than `w`; the last one does.
    ///
    /// Most of the time it is one of the next few. They are counted without a branch, because a branch on how
    /// many there are could not be predicted.
    #[inline]
    fn first_above(&self, start: u64, w: Instant) -> u64 {
        const FEW: u64 = 4;
        let is_passed = |at| {
            let lighter = self.at(at).entry.weight <= w;
            u64::from(at < self.tail) & u64::from(lighter)
        };
        let passed: u64 = (start..start + FEW).map(is_passed).sum();
        if passed < FEW { start + passed } else { self.search_above(start + FEW, w) }
    }

    /// [`Lane::first_above`] by doubling steps from `start`, then halving ones. Seldom called, and kept out of the loop
    /// over the lanes, which is 6 % slower with it.
    #[inline(never)]
    fn search_above(&self, start: u64, w: Instant) -> u64 {
        let weight = |position| self.at(position).entry.weight;
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

    /// Returns the content of the slot of a position, waiting or left over. There must be slots.
    #[inline]
    fn at(&self, position: u64) -> &Stored<P> {
        &self.slots[self.slot(position)]
    }

    #[inline]
    fn slot(&self, position: u64) -> usize {
        position as usize & self.slots.len().wrapping_sub(1)
    }

    /// Twice the slots; the unused ones hold `filler`. Returns false if there is no memory for them.
    #[cold]
    pub(crate) fn grow(&mut self, filler: P) -> bool {
        let never = Instant::ZERO;
        let entry = Entry { weight: never, arrived: never, size: 0, packet: filler };
        self.move_to(self.next_room(), Stored { entry, number: 0, bytes_before: 0 })
    }

    /// Frees the slots that the waiting packets do not need, if there is memory for the move.
    #[cold]
    pub(crate) fn shrink(&mut self) {
        if self.is_empty() {
            self.slots = Vec::new();
            return;
        }
        let needed = ((self.tail - self.head) as usize).next_power_of_two().max(FIRST_SLOTS);
        if needed < self.slots.len() {
            self.move_to(needed, *self.at(self.head));
        }
    }

    /// Moves to so many slots, a power of two.
    fn move_to(&mut self, count: usize, filler: Stored<P>) -> bool {
        let mut slots = Vec::new();
        if slots.try_reserve_exact(count).is_err() {
            return false;
        }
        slots.resize(count, filler);
        for position in self.head..self.tail {
            slots[position as usize & (count - 1)] = *self.at(position);
        }
        self.slots = slots;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    fn entry(weight: u64) -> Entry<u32> {
        Entry { weight: Instant::from_nanos(weight), arrived: Instant::ZERO, size: 1, packet: weight as u32 }
    }

    fn push(lane: &mut Lane<u32>, number: u64, entry: Entry<u32>) {
        assert!(!lane.is_full() || lane.grow(entry.packet));
        lane.push(number, entry);
    }

    #[test]
    fn the_order_is_kept_through_every_growth() {
        let (mut lane, mut model) = (Lane::new(), VecDeque::new());
        for i in 0..1000 {
            push(&mut lane, i, entry(i));
            model.push_back(i);
            // Two of three stay, so that the ring grows while its head is somewhere in the middle.
            if i % 3 == 0 {
                assert_eq!(lane.pop(), model.pop_front().map(entry));
            }
        }
        assert_eq!(lane.room(), 1024);
        // And through every shrinking, wherever the head is.
        while model.len() > 5 {
            assert_eq!(lane.pop(), model.pop_front().map(entry));
            lane.shrink();
            assert_eq!(lane.room(), model.len().next_power_of_two().max(FIRST_SLOTS));
        }
        while let Some(expected) = model.pop_front() {
            assert_eq!(lane.head(), Some((Instant::from_nanos(expected), expected)));
            assert_eq!(lane.pop(), Some(entry(expected)));
        }
        assert!(lane.pop().is_none() && lane.head().is_none() && lane.is_empty());
        lane.shrink();
        assert_eq!(lane.room(), 0);
        push(&mut lane, 1000, entry(7));
        assert_eq!(lane.pop(), Some(entry(7)));
    }

    #[test]
    fn the_first_heavier_is_found_from_any_start() {
        let mut lane = Lane::new();
        // Leftovers of lighter packets must not be taken for waiting ones.
        (0..50).for_each(|i| push(&mut lane, i, entry(0)));
        while lane.pop().is_some() {}
        // 0 0 0 1 1 1 2 2 2 ...: every weight three times.
        (0..90).for_each(|i| push(&mut lane, 50 + i, entry(i / 3)));
        for w in 0..29 {
            let first = 50 + (w + 1) * 3;
            for mut cursor in 0..=first {
                let behind = lane.bytes_behind(Instant::from_nanos(w), &mut cursor);
                assert_eq!((cursor, behind), (first, 140 - first));
            }
        }
    }
}
