//! The calendar: what happens next.
//!
//! A calendar queue (Brown 1988) with a bitmap over its days. Events are chained, in the order of (time, order of
//! scheduling), into slots of a fixed width; the slots of the coming "year" lie in a ring, and what is further
//! away waits in a heap. The slot's width follows the observed spacing of events, so that a slot holds about one,
//! and the ring grows until hardly anything goes through the heap. The order in which events come out does not
//! depend on either, so retuning never changes a result.
//!
//! An event is a handle into a slab. The same handle indexes whatever the caller keeps beside it (a packet), and
//! travels unchanged through queues: a packet is written once and never copied.

use cutline_units::Instant;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A place in the slab: one event or packet.
pub type Handle = u32;

const NONE: Handle = Handle::MAX;
const FIRST_SLOTS: usize = 1 << 12;
const MOST_SLOTS: usize = 1 << 22;
/// The first width of a slot: 2^14 ns = 16 us.
const FIRST_SHIFT: u32 = 14;
/// How many events lie between two looks at the slots' width.
const RETUNE_AFTER: u64 = 1 << 14;

#[derive(Clone, Copy)]
struct Key {
    at: u64,
    order: u64,
    next: Handle,
    tag: u32,
}

#[derive(Clone, Copy)]
struct Slot {
    head: Handle,
    tail: Handle,
}

const EMPTY: Slot = Slot { head: NONE, tail: NONE };

/// What comes next, and when; see the module's text.
pub struct Calendar {
    keys: Vec<Key>,
    free: Handle,
    slots: Vec<Slot>,
    occupied: Vec<u64>,
    /// A slot is 2^shift nanoseconds wide.
    shift: u32,
    /// The slot (counted from time zero) where the search for the next event begins.
    today: u64,
    near: usize,
    far: BinaryHeap<Reverse<(u64, u64, Handle)>>,
    /// The first slot that holds something of the heap's.
    far_from: u64,
    order: u64,
    popped: u64,
    /// At the last retuning: events popped, events sent to the heap since, time.
    tuned_popped: u64,
    far_since: u64,
    tuned_at: u64,
}

impl Default for Calendar {
    fn default() -> Self {
        Self::new()
    }
}

impl Calendar {
    /// An empty calendar at time zero.
    pub fn new() -> Self {
        Self {
            keys: Vec::new(),
            free: NONE,
            slots: vec![EMPTY; FIRST_SLOTS],
            occupied: vec![0; FIRST_SLOTS / 64],
            shift: FIRST_SHIFT,
            today: 0,
            near: 0,
            far: BinaryHeap::new(),
            far_from: u64::MAX,
            order: 0,
            popped: 0,
            tuned_popped: 0,
            far_since: 0,
            tuned_at: 0,
        }
    }

    /// Takes a handle that is in no use.
    #[inline]
    pub fn allocate(&mut self) -> Handle {
        if self.free != NONE {
            let handle = self.free;
            self.free = self.keys[handle as usize].next;
            return handle;
        }
        let handle = self.keys.len() as Handle;
        assert!(handle < NONE, "four thousand million events at once are too many");
        self.keys.push(Key { at: 0, order: 0, next: NONE, tag: 0 });
        handle
    }

    /// Gives a handle back; it must not be scheduled.
    #[inline]
    pub fn release(&mut self, handle: Handle) {
        self.keys[handle as usize].next = self.free;
        self.free = handle;
    }

    /// How many handles exist, in use or free.
    pub fn capacity(&self) -> usize {
        self.keys.len()
    }

    /// How many events have come out so far.
    pub fn popped(&self) -> u64 {
        self.popped
    }

    /// Schedules `handle` with the caller's `tag` at `at`, which must not lie before the last event popped.
    /// Events of the same time come out in the order in which they were scheduled.
    #[inline]
    pub fn schedule(&mut self, at: Instant, handle: Handle, tag: u32) {
        let at = at.as_nanos();
        self.order += 1;
        self.keys[handle as usize] = Key { at, order: self.order, next: NONE, tag };
        self.place(handle);
    }

    /// The next event no later than `until`: its time, handle and tag.
    #[inline]
    pub fn pop(&mut self, until: Instant) -> Option<(Instant, Handle, u32)> {
        if self.near == 0 && !self.open_next_year(until) {
            return None;
        }
        let slot_number = self.next_occupied();
        let index = slot_number as usize & (self.slots.len() - 1);
        let handle = self.slots[index].head;
        let key = self.keys[handle as usize];
        if key.at > until.as_nanos() {
            return None;
        }
        self.today = slot_number;
        self.slots[index].head = key.next;
        if key.next == NONE {
            self.slots[index].tail = NONE;
            self.occupied[index / 64] &= !(1 << (index % 64));
        }
        self.near -= 1;
        self.popped += 1;
        if self.today + self.slots.len() as u64 > self.far_from {
            self.bring_near();
        }
        if self.popped - self.tuned_popped >= RETUNE_AFTER {
            self.retune(key.at);
        }
        Some((Instant::from_nanos(key.at), handle, key.tag))
    }

    /// Into its slot if that lies within the coming year, else into the heap.
    #[inline]
    fn place(&mut self, handle: Handle) {
        let key = self.keys[handle as usize];
        let slot_number = key.at >> self.shift;
        debug_assert!(slot_number >= self.today, "an event cannot be scheduled into the past");
        if slot_number - self.today < self.slots.len() as u64 {
            self.chain(handle, key, slot_number as usize & (self.slots.len() - 1));
        } else {
            self.far.push(Reverse((key.at, key.order, handle)));
            self.far_from = self.far_from.min(slot_number);
            self.far_since += 1;
        }
    }

    /// Into the chain of a slot, in the order of (time, order).
    #[inline]
    fn chain(&mut self, handle: Handle, key: Key, index: usize) {
        self.near += 1;
        let slot = self.slots[index];
        if slot.head == NONE {
            self.occupied[index / 64] |= 1 << (index % 64);
            self.slots[index] = Slot { head: handle, tail: handle };
            return;
        }
        let last = self.keys[slot.tail as usize];
        if (last.at, last.order) < (key.at, key.order) {
            self.keys[slot.tail as usize].next = handle;
            self.slots[index].tail = handle;
            return;
        }
        self.chain_before_tail(handle, key, index);
    }

    #[inline(never)]
    fn chain_before_tail(&mut self, handle: Handle, key: Key, index: usize) {
        let mut before = NONE;
        let mut at = self.slots[index].head;
        while at != NONE {
            let other = self.keys[at as usize];
            if (other.at, other.order) > (key.at, key.order) {
                break;
            }
            before = at;
            at = other.next;
        }
        self.keys[handle as usize].next = at;
        if before == NONE {
            self.slots[index].head = handle;
        } else {
            self.keys[before as usize].next = handle;
        }
    }

    /// The first slot from today on that holds something; there must be one.
    #[inline]
    fn next_occupied(&self) -> u64 {
        let mask = self.slots.len() - 1;
        let start = self.today as usize & mask;
        let mut word = start / 64;
        let mut bits = self.occupied[word] & (!0 << (start % 64));
        while bits == 0 {
            word = (word + 1) & (self.occupied.len() - 1);
            bits = self.occupied[word];
        }
        let index = word * 64 + bits.trailing_zeros() as usize;
        self.today + (index.wrapping_sub(start) & mask) as u64
    }

    /// Nothing is near: begins the year at the heap's first event. False when the heap has none up to `until`.
    #[cold]
    fn open_next_year(&mut self, until: Instant) -> bool {
        let Some(&Reverse((at, ..))) = self.far.peek() else { return false };
        if at > until.as_nanos() {
            return false;
        }
        self.today = at >> self.shift;
        self.bring_near();
        true
    }

    /// Moves from the heap what lies within the year that begins today.
    #[cold]
    fn bring_near(&mut self) {
        let end = self.today + self.slots.len() as u64;
        self.far_from = u64::MAX;
        while let Some(&Reverse((at, _, handle))) = self.far.peek() {
            let slot_number = at >> self.shift;
            if slot_number >= end {
                self.far_from = slot_number;
                break;
            }
            self.far.pop();
            let key = Key { next: NONE, ..self.keys[handle as usize] };
            self.keys[handle as usize] = key;
            self.chain(handle, key, slot_number as usize & (self.slots.len() - 1));
        }
    }

    /// Sets the slots' width to the spacing seen since the last look, and widens the ring if the heap was busy.
    #[cold]
    fn retune(&mut self, now: u64) {
        let seen = self.popped - self.tuned_popped;
        let spacing = ((now - self.tuned_at) / seen).max(1);
        let shift = spacing.ilog2();
        let crowded = self.far_since > seen / 32 && self.slots.len() < MOST_SLOTS;
        let slots = if crowded { self.slots.len() * 2 } else { self.slots.len() };
        (self.tuned_popped, self.tuned_at, self.far_since) = (self.popped, now, 0);
        if shift.abs_diff(self.shift) > 1 || crowded {
            self.rebuild(shift, slots, now);
        }
    }

    fn rebuild(&mut self, shift: u32, slots: usize, now: u64) {
        let mut scheduled: Vec<Handle> = Vec::with_capacity(self.near + self.far.len());
        for slot in &self.slots {
            let mut at = slot.head;
            while at != NONE {
                scheduled.push(at);
                at = self.keys[at as usize].next;
            }
        }
        scheduled.extend(self.far.drain().map(|Reverse((.., handle))| handle));
        // Sorted, every insertion below is an appending one.
        scheduled.sort_unstable_by_key(|&handle| {
            (self.keys[handle as usize].at, self.keys[handle as usize].order)
        });
        self.slots = vec![EMPTY; slots];
        self.occupied = vec![0; slots / 64];
        (self.shift, self.today, self.near, self.far_from) = (shift, now >> shift, 0, u64::MAX);
        for handle in scheduled {
            self.keys[handle as usize].next = NONE;
            self.place(handle);
        }
        self.far_since = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NEVER: Instant = Instant::FAR_FUTURE;

    #[test]
    fn ties_come_out_in_the_order_of_scheduling() {
        let mut calendar = Calendar::new();
        for tag in 0..100 {
            let handle = calendar.allocate();
            calendar.schedule(Instant::from_nanos(5), handle, tag);
        }
        let tags: Vec<u32> = std::iter::from_fn(|| calendar.pop(NEVER).map(|event| event.2)).collect();
        assert_eq!(tags, (0..100).collect::<Vec<_>>());
    }

    #[test]
    fn nothing_comes_out_before_its_time() {
        let mut calendar = Calendar::new();
        let handle = calendar.allocate();
        calendar.schedule(Instant::from_nanos(10), handle, 0);
        assert!(calendar.pop(Instant::from_nanos(9)).is_none());
        assert!(calendar.pop(Instant::from_nanos(10)).is_some());
        assert!(calendar.pop(NEVER).is_none());
    }

    #[test]
    fn a_released_handle_is_used_again() {
        let mut calendar = Calendar::new();
        let first = calendar.allocate();
        calendar.release(first);
        assert_eq!(calendar.allocate(), first);
        assert_eq!(calendar.capacity(), 1);
    }

    /// The same schedule through the calendar and through a plain sorted set, over spacings from 1 ns to 1 s, so
    /// that the ring is retuned and the heap is used on the way.
    fn agrees_with_a_sorted_set(steps: &[(u64, u32)], population: usize) {
        let mut calendar = Calendar::new();
        let mut model = std::collections::BTreeSet::new();
        let mut order = 0u64;
        let mut now = 0u64;
        let mut steps = steps.iter().cycle();
        for _ in 0..40_000 {
            while model.len() < population {
                let &(gap, shift) = steps.next().unwrap();
                let at = now + (gap >> shift);
                let handle = calendar.allocate();
                calendar.schedule(Instant::from_nanos(at), handle, order as u32);
                model.insert((at, order));
                order += 1;
            }
            let (at, handle, tag) = calendar.pop(NEVER).unwrap();
            let expected = model.pop_first().unwrap();
            assert_eq!((at.as_nanos(), u64::from(tag)), expected);
            now = at.as_nanos();
            calendar.release(handle);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(12))]
        #[test]
        fn the_calendar_is_a_sorted_set(
            steps in prop::collection::vec((0u64..1_000_000_000, 0u32..30), 1..200),
            population in 1usize..2000,
        ) {
            agrees_with_a_sorted_set(&steps, population);
        }
    }
}
