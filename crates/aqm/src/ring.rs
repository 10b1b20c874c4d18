//! A ring buffer that remembers how many entries ever went through it.
//!
//! Every entry has a *position* that never changes: the number of entries pushed before it. So a place in the
//! ring can be remembered while others come and go (the cursors of `lanes.rs` do). It grows by doubling and
//! never shrinks: once it has held its largest backlog it allocates no more.

/// A first-in first-out buffer of small values.
#[derive(Clone, Debug)]
pub struct Ring<T> {
    /// A power of two of slots, or none.
    slots: Vec<T>,
    /// The position of the oldest entry.
    head: u64,
    /// The position of the next entry to come.
    tail: u64,
}

/// The slots of a ring that holds its first entry.
const FIRST_SLOTS: usize = 16;

impl<T: Copy> Ring<T> {
    /// An empty ring that has allocated nothing.
    pub const fn new() -> Self {
        Self { slots: Vec::new(), head: 0, tail: 0 }
    }

    /// The position of the oldest entry.
    #[inline]
    pub const fn head(&self) -> u64 {
        self.head
    }

    /// The position after the newest entry.
    #[inline]
    pub const fn tail(&self) -> u64 {
        self.tail
    }

    /// Whether there is no entry.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.head == self.tail
    }

    /// The entry at a position between head and tail.
    #[inline]
    pub fn at(&self, position: u64) -> &T {
        debug_assert!((self.head..self.tail).contains(&position), "no entry is at position {position}");
        &self.slots[self.slot(position)]
    }

    /// The oldest entry.
    #[inline]
    pub fn front(&self) -> Option<&T> {
        (!self.is_empty()).then(|| self.at(self.head))
    }

    /// Adds an entry behind all others.
    #[inline]
    pub fn push(&mut self, entry: T) {
        if self.tail - self.head == self.slots.len() as u64 {
            self.grow(entry);
        }
        let slot = self.slot(self.tail);
        self.slots[slot] = entry;
        self.tail += 1;
    }

    /// Takes the oldest entry.
    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        let entry = *self.front()?;
        self.head += 1;
        Some(entry)
    }

    #[inline]
    fn slot(&self, position: u64) -> usize {
        position as usize & self.slots.len().wrapping_sub(1)
    }

    /// Twice the slots; `filler` is what the unused ones hold.
    #[cold]
    fn grow(&mut self, filler: T) {
        let mut slots = vec![filler; (self.slots.len() * 2).max(FIRST_SLOTS)];
        let mask = slots.len() - 1;
        for position in self.head..self.tail {
            slots[position as usize & mask] = *self.at(position);
        }
        self.slots = slots;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    #[test]
    fn it_is_a_queue_through_every_growth() {
        let (mut ring, mut model) = (Ring::new(), VecDeque::new());
        for i in 0..1000_u64 {
            ring.push(i);
            model.push_back(i);
            // Two of three stay, so that the ring grows while its head is somewhere in the middle.
            if i % 3 == 0 {
                assert_eq!(ring.pop(), model.pop_front());
            }
        }
        assert_eq!((ring.tail() - ring.head()) as usize, model.len());
        while let Some(expected) = model.pop_front() {
            assert_eq!(ring.pop(), Some(expected));
        }
        assert_eq!((ring.pop(), ring.is_empty()), (None, true));
    }

    #[test]
    fn positions_outlive_growth() {
        let mut ring = Ring::new();
        (0..10_u64).for_each(|i| ring.push(i));
        ring.pop();
        (10..100).for_each(|i| ring.push(i));
        assert!((1..100).all(|position| *ring.at(position) == position));
    }
}
