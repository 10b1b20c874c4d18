//! The calendar: what happens next.
//!
//! A calendar queue (Brown 1988) with a bitmap over its days. Events are chained, in the order of (time, order of
//! scheduling), into slots of a fixed width; the slots of the coming "year" lie in a ring, and what is further
//! away waits in a heap. The slot's width follows the observed spacing of events, so that a slot holds about one,
//! and the ring grows until hardly anything goes through the heap. The order in which events come out does not
//! depend on either, so retuning never changes a result.
//!
//! An event is an entry of a slab, named by its handle, with a payload of the caller's (a packet). The handle
//! travels unchanged through queues, so a payload is written once and never copied. An entry with a payload of up
//! to 48 bytes is one cache line: an event out of millions costs one miss.

use cutline_units::Instant;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A place in the slab: one event with its payload.
pub type Handle = u32;

const NONE: Handle = Handle::MAX;
const FIRST_SLOTS: usize = 1 << 12;
const MOST_SLOTS: usize = 1 << 22;
/// The first width of a slot: 2^14 ns = 16 us.
const FIRST_SHIFT: u32 = 14;
/// How many events lie between two looks at the slots' width.
const RETUNE_AFTER: u64 = 1 << 14;

#[derive(Clone, Copy)]
#[repr(align(64))]
struct Entry<P> {
    at: u64,
    /// The next of its slot's chain, or of the free ones.
    next: Handle,
    tag: u32,
    payload: P,
}

#[derive(Clone, Copy)]
struct Slot {
    head: Handle,
    tail: Handle,
}

const EMPTY: Slot = Slot { head: NONE, tail: NONE };

/// What comes next, and when; see the module's text.
pub struct Calendar<P> {
    blank: P,
    entries: Vec<Entry<P>>,
    free: Handle,
    slots: Vec<Slot>,
    occupied: Vec<u64>,
    /// A slot is 2^shift nanoseconds wide.
    shift: u32,
    /// The slot (counted from time zero) where the search for the next event begins.
    today: u64,
    near: usize,
    /// What lies beyond the year, by time and order of scheduling. All of a slot's comes back from here before
    /// anything is scheduled into the slot itself, so nothing else has to know its order.
    far: BinaryHeap<Reverse<(u64, u64, Handle)>>,
    /// How many events ever went to the heap: the order of the next one.
    sent_far: u64,
    popped: u64,
    /// The slot from which on the heap's first is within the year.
    bring_near_at: u64,
    /// When (in events popped) to look at the slots' width again.
    retune_at: u64,
    /// At the last look: events sent to the heap, time.
    tuned_far: u64,
    tuned_at: u64,
}

impl<P: Copy> Calendar<P> {
    /// An empty calendar at time zero; `blank` is the payload of an entry before its first use.
    pub fn new(blank: P) -> Self {
        Self {
            blank,
            entries: Vec::new(),
            free: NONE,
            slots: vec![EMPTY; FIRST_SLOTS],
            occupied: vec![0; FIRST_SLOTS / 64],
            shift: FIRST_SHIFT,
            today: 0,
            near: 0,
            far: BinaryHeap::new(),
            sent_far: 0,
            popped: 0,
            bring_near_at: u64::MAX,
            retune_at: RETUNE_AFTER,
            tuned_far: 0,
            tuned_at: 0,
        }
    }

    /// Takes a handle that is in no use. Its payload is whatever it was last.
    #[inline]
    pub fn allocate(&mut self) -> Handle {
        let handle = self.free;
        if let Some(entry) = self.entries.get(handle as usize) {
            self.free = entry.next;
            return handle;
        }
        self.add_entry()
    }

    #[cold]
    fn add_entry(&mut self) -> Handle {
        let handle = self.entries.len() as Handle;
        assert!(handle < NONE, "four thousand million events at once are too many");
        self.entries.push(Entry { at: 0, next: NONE, tag: 0, payload: self.blank });
        handle
    }

    /// Gives a handle back; it must not be scheduled.
    #[inline]
    pub fn release(&mut self, handle: Handle) {
        self.entries[handle as usize].next = self.free;
        self.free = handle;
    }

    /// What a handle stands for.
    #[inline]
    pub fn payload(&self, handle: Handle) -> &P {
        &self.entries[handle as usize].payload
    }

    /// What a handle stands for, to change it.
    #[inline]
    pub fn payload_mut(&mut self, handle: Handle) -> &mut P {
        &mut self.entries[handle as usize].payload
    }

    /// How many handles exist, in use or free.
    pub fn capacity(&self) -> usize {
        self.entries.len()
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
        let entry = &mut self.entries[handle as usize];
        (entry.at, entry.next, entry.tag) = (at, NONE, tag);
        self.place(at, handle);
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
        let Entry { at, next, tag, .. } = self.entries[handle as usize];
        if at > until.as_nanos() {
            return None;
        }
        self.today = slot_number;
        self.slots[index].head = next;
        if next == NONE {
            self.occupied[index / 64] &= !(1 << (index % 64));
        }
        self.near -= 1;
        self.popped += 1;
        self.read_ahead();
        if slot_number >= self.bring_near_at {
            self.bring_near();
        }
        if self.popped >= self.retune_at {
            self.retune(at);
        }
        Some((Instant::from_nanos(at), handle, tag))
    }

    /// Fetches the event after the one just taken, so that it comes out of memory while that one is handled.
    #[inline]
    fn read_ahead(&self) {
        if self.near > 0 {
            let index = self.next_occupied() as usize & (self.slots.len() - 1);
            std::hint::black_box(self.entries[self.slots[index].head as usize].tag);
        }
    }

    /// Into its slot if that lies within the coming year, else into the heap.
    #[inline]
    fn place(&mut self, at: u64, handle: Handle) {
        let slot_number = at >> self.shift;
        debug_assert!(slot_number >= self.today, "an event cannot be scheduled into the past");
        if slot_number - self.today < self.slots.len() as u64 {
            self.chain(at, handle, slot_number as usize & (self.slots.len() - 1));
        } else {
            self.send_far(at, handle, slot_number);
        }
    }

    /// Into the chain of a slot, behind everything of its own time.
    #[inline]
    fn chain(&mut self, at: u64, handle: Handle, index: usize) {
        self.near += 1;
        let slot = &mut self.slots[index];
        if slot.head == NONE {
            *slot = Slot { head: handle, tail: handle };
            self.occupied[index / 64] |= 1 << (index % 64);
            return;
        }
        let last = &mut self.entries[slot.tail as usize];
        if last.at <= at {
            last.next = handle;
            slot.tail = handle;
            return;
        }
        self.chain_before_tail(at, handle, index);
    }

    #[inline(never)]
    fn chain_before_tail(&mut self, at: u64, handle: Handle, index: usize) {
        let mut before = NONE;
        let mut after = self.slots[index].head;
        while self.entries[after as usize].at <= at {
            before = after;
            after = self.entries[after as usize].next;
        }
        self.entries[handle as usize].next = after;
        if before == NONE {
            self.slots[index].head = handle;
        } else {
            self.entries[before as usize].next = handle;
        }
    }

    #[cold]
    fn send_far(&mut self, at: u64, handle: Handle, slot_number: u64) {
        self.far.push(Reverse((at, self.sent_far, handle)));
        self.sent_far += 1;
        self.bring_near_at = self.bring_near_at.min(self.first_day_before(slot_number));
    }

    /// The first day whose year reaches a slot.
    fn first_day_before(&self, slot_number: u64) -> u64 {
        slot_number.saturating_sub(self.slots.len() as u64 - 1)
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
        self.bring_near_at = u64::MAX;
        while let Some(&Reverse((at, _, handle))) = self.far.peek() {
            let slot_number = at >> self.shift;
            if slot_number >= end {
                self.bring_near_at = self.first_day_before(slot_number);
                break;
            }
            self.far.pop();
            self.chain(at, handle, slot_number as usize & (self.slots.len() - 1));
        }
    }

    /// Sets the slots' width to the spacing seen since the last look, and widens the ring if the heap was busy.
    #[cold]
    fn retune(&mut self, now: u64) {
        let spacing = ((now - self.tuned_at) / RETUNE_AFTER).max(1);
        let shift = spacing.ilog2();
        let crowded = self.sent_far - self.tuned_far > RETUNE_AFTER / 32 && self.slots.len() < MOST_SLOTS;
        let slots = if crowded { self.slots.len() * 2 } else { self.slots.len() };
        if shift.abs_diff(self.shift) > 1 || crowded {
            self.rebuild(shift, slots, now);
        }
        (self.retune_at, self.tuned_at, self.tuned_far) = (self.popped + RETUNE_AFTER, now, self.sent_far);
    }

    fn rebuild(&mut self, shift: u32, slots: usize, now: u64) {
        let scheduled = self.in_order();
        self.far.clear();
        self.slots = vec![EMPTY; slots];
        self.occupied = vec![0; slots / 64];
        (self.shift, self.today, self.near, self.bring_near_at) = (shift, now >> shift, 0, u64::MAX);
        for handle in scheduled {
            let entry = &mut self.entries[handle as usize];
            entry.next = NONE;
            let at = entry.at;
            self.place(at, handle);
        }
    }

    /// All that is scheduled, in the order in which it will come out: the ring from today on, then the heap.
    fn in_order(&mut self) -> Vec<Handle> {
        let mut scheduled = Vec::with_capacity(self.near + self.far.len());
        let today = self.today as usize & (self.slots.len() - 1);
        for slot in self.slots[today..].iter().chain(&self.slots[..today]) {
            let mut next = slot.head;
            while next != NONE {
                scheduled.push(next);
                next = self.entries[next as usize].next;
            }
        }
        let mut far = std::mem::take(&mut self.far).into_vec();
        far.sort_unstable_by_key(|&Reverse(key)| key);
        scheduled.extend(far.into_iter().map(|Reverse((.., handle))| handle));
        scheduled
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NEVER: Instant = Instant::FAR_FUTURE;

    #[test]
    fn ties_come_out_in_the_order_of_scheduling() {
        let mut calendar = Calendar::new(());
        for tag in 0..100 {
            let handle = calendar.allocate();
            calendar.schedule(Instant::from_nanos(5), handle, tag);
        }
        let tags: Vec<u32> = std::iter::from_fn(|| calendar.pop(NEVER).map(|event| event.2)).collect();
        assert_eq!(tags, (0..100).collect::<Vec<_>>());
    }

    #[test]
    fn nothing_comes_out_before_its_time() {
        let mut calendar = Calendar::new(());
        let handle = calendar.allocate();
        calendar.schedule(Instant::from_nanos(10), handle, 0);
        assert!(calendar.pop(Instant::from_nanos(9)).is_none());
        assert!(calendar.pop(Instant::from_nanos(10)).is_some());
        assert!(calendar.pop(NEVER).is_none());
    }

    #[test]
    fn a_released_handle_is_used_again() {
        let mut calendar = Calendar::new(());
        let first = calendar.allocate();
        calendar.release(first);
        assert_eq!(calendar.allocate(), first);
        assert_eq!(calendar.capacity(), 1);
    }

    /// The same schedule through the calendar and through a plain sorted set, over spacings from 1 ns to 1 s, so
    /// that the ring is retuned and the heap is used on the way.
    fn agrees_with_a_sorted_set(steps: &[(u64, u32)], population: usize) {
        let mut calendar = Calendar::new(());
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
