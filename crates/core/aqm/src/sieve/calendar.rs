//! A calendar of FIFOs: packets in the order of the times at which they are due, to the width of a slot.
//!
//! A slot holds the packets that are due in one interval of virtual time, in the order of their arrival. The slots are a ring over the
//! virtual time from the floor on, below which no packet starts. Two levels of bits mark the slots that have packets, so the first and
//! the last packet are found by three look-ups, however many wait.
//!
//! A flow's packets are due one after the other, so they never change places: a later packet is in the same slot, behind, or in a later one.
//! Packets of different flows that are due within the width of a slot may.
//!
//! When the fair share has changed much, or a packet is due beyond the ring, the packets are sorted again into slots of another width. That
//! takes a time in proportion to the packets that wait, and happens no more often than the share changes by a factor, or the range
//! doubles.

use super::accounts::{Place, nearer};
use cutline_units::Instant;

/// Slots of the ring: 64 words of bits, and a word that marks those that are not 0.
const SLOTS: u64 = 64 * 64;
const NIL: u32 = u32::MAX;

/// A packet that waits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry<P> {
    pub(super) packet: P,
    pub(super) size: u32,
    pub(super) arrived: Instant,
    /// Virtual time at which its service may start, B.
    pub(super) start: f64,
    /// Virtual time by which packets leave, B.
    pub(super) due: f64,
    /// True if `due` follows from the bytes of all new flows.
    pub(super) is_new: bool,
    pub(super) owner: Owner,
}

/// The accounts that a packet is charged to: their names, and their places when it came.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Owner {
    pub(super) place: Place,
    pub(super) id: u32,
    pub(super) host: Place,
    pub(super) host_id: u32,
}

#[derive(Clone, Copy, Debug)]
struct Node<P> {
    entry: Entry<P>,
    next: u32,
    previous: u32,
}

/// First and last packet of a slot.
#[derive(Clone, Copy, Debug)]
struct Slot {
    head: u32,
    tail: u32,
}

impl Slot {
    const EMPTY: Self = Self { head: NIL, tail: NIL };
}

/// The packets that wait.
#[derive(Clone, Debug)]
pub(super) struct Calendar<P> {
    nodes: Vec<Node<P>>,
    /// The first node that is not in use.
    free: u32,
    slots: Box<[Slot]>,
    /// The slots that are not empty, and the words of `bits` that are not 0.
    bits: [u64; 64],
    words: u64,
    /// Number of the first slot of the ring, counted from virtual time 0.
    base: u64,
    /// Width of a slot, B of virtual time, and its inverse.
    width: f64,
    per_byte: f64,
}

impl<P: Copy> Calendar<P> {
    /// An empty calendar that covers `range` bytes of virtual time.
    pub(super) fn new(range: f64) -> Self {
        let mut new = Self {
            nodes: Vec::new(),
            free: NIL,
            slots: vec![Slot::EMPTY; SLOTS as usize].into(),
            bits: [0; 64],
            words: 0,
            base: 0,
            width: 1.0,
            per_byte: 1.0,
        };
        new.set_range(range);
        new
    }

    /// Width of a slot, B of virtual time.
    #[cfg(test)]
    pub(super) const fn width(&self) -> f64 {
        self.width
    }

    /// Returns whether no packet waits.
    #[inline]
    pub(super) const fn is_empty(&self) -> bool {
        self.words == 0
    }

    /// Virtual time from which on the first packet's slot lies; `None` if no packet waits.
    #[inline]
    pub(super) fn first_slot(&self) -> Option<f64> {
        let slot = self.first()?;
        Some((self.base + (slot as u64).wrapping_sub(self.base) % SLOTS) as f64 * self.width)
    }

    /// Adds a packet. `floor` is a time below which no packet starts, neither one that waits nor one that comes.
    #[inline]
    pub(super) fn push(&mut self, floor: f64, entry: Entry<P>) {
        let first = (floor * self.per_byte) as u64;
        // The ring moves on, but never past a packet: rounding could.
        self.base = if self.is_empty() { first } else { first.max(self.base) };
        let mut number = (entry.due * self.per_byte) as u64;
        if number >= self.base + SLOTS {
            self.resort(floor, 2.0 * (entry.due - floor));
            number = (entry.due * self.per_byte) as u64;
        }
        let index = self.take_node(entry);
        self.append((number.max(self.base) % SLOTS) as usize, index);
    }

    /// Takes the packet that is due first.
    #[inline]
    pub(super) fn pop_first(&mut self) -> Option<Entry<P>> {
        let slot = self.first()?;
        let index = self.slots[slot].head;
        let Node { entry, next, .. } = self.nodes[index as usize];
        self.slots[slot].head = next;
        if next == NIL {
            self.clear(slot);
        } else {
            self.nodes[next as usize].previous = NIL;
        }
        self.give_back(index);
        Some(entry)
    }

    /// The packet that [`pop_last`](Self::pop_last) would take.
    pub(super) fn last(&self) -> Option<&Entry<P>> {
        let slot = self.last_slot()?;
        Some(&self.nodes[self.slots[slot].tail as usize].entry)
    }

    /// Takes the packet that is due last. It is the last one of its flow.
    pub(super) fn pop_last(&mut self) -> Option<Entry<P>> {
        let slot = self.last_slot()?;
        let index = self.slots[slot].tail;
        let Node { entry, previous, .. } = self.nodes[index as usize];
        self.slots[slot].tail = previous;
        if previous == NIL {
            self.clear(slot);
        } else {
            self.nodes[previous as usize].next = NIL;
        }
        self.give_back(index);
        Some(entry)
    }

    /// Brings the packets of new flows nearer to `v`, to `part` of their distance, and sorts all packets again.
    #[cold]
    pub(super) fn bring_nearer(&mut self, (v, part): (f64, f64), floor: f64, range: f64) {
        for slot in 0..SLOTS as usize {
            let mut next = self.slots[slot].head;
            while next != NIL {
                let Node { entry, next: behind, .. } = &mut self.nodes[next as usize];
                if entry.is_new {
                    entry.start = nearer(entry.start, v, part);
                    entry.due = nearer(entry.due, v, part);
                }
                next = *behind;
            }
        }
        self.resort(floor, range);
    }

    /// Sorts all packets into slots that cover at least `range` bytes of virtual time from `floor` on.
    #[cold]
    pub(super) fn resort(&mut self, floor: f64, range: f64) {
        let (mut first, mut last) = (NIL, NIL);
        let mut end = floor + range;
        while let Some(slot) = self.first() {
            let Slot { head, tail } = self.slots[slot];
            if last == NIL {
                first = head;
            } else {
                self.nodes[last as usize].next = head;
            }
            last = tail;
            self.clear(slot);
        }
        let mut next = first;
        while next != NIL {
            let node = &self.nodes[next as usize];
            end = end.max(floor + 1.25 * (node.entry.due - floor));
            next = node.next;
        }
        self.set_range(end - floor);
        self.base = (floor * self.per_byte) as u64;
        while first != NIL {
            let Node { entry, next, .. } = self.nodes[first as usize];
            let number = ((entry.due * self.per_byte) as u64).clamp(self.base, self.base + SLOTS - 1);
            self.append((number % SLOTS) as usize, first);
            first = next;
        }
    }

    fn set_range(&mut self, range: f64) {
        self.width = (range / SLOTS as f64).max(1.0);
        self.per_byte = 1.0 / self.width;
    }

    #[inline]
    fn take_node(&mut self, entry: Entry<P>) -> u32 {
        let node = Node { entry, next: NIL, previous: NIL };
        if self.free == NIL {
            self.nodes.push(node);
            return self.nodes.len() as u32 - 1;
        }
        let index = self.free;
        self.free = self.nodes[index as usize].next;
        self.nodes[index as usize] = node;
        index
    }

    #[inline]
    fn give_back(&mut self, index: u32) {
        self.nodes[index as usize].next = self.free;
        self.free = index;
    }

    /// Adds a node at the end of a slot.
    #[inline]
    fn append(&mut self, slot: usize, index: u32) {
        let Slot { head, tail } = &mut self.slots[slot];
        let before = std::mem::replace(tail, index);
        let node = &mut self.nodes[index as usize];
        (node.next, node.previous) = (NIL, before);
        if before == NIL {
            *head = index;
            self.bits[slot / 64] |= 1 << (slot % 64);
            self.words |= 1 << (slot / 64);
        } else {
            self.nodes[before as usize].next = index;
        }
    }

    /// Notes that a slot has become empty.
    #[inline]
    fn clear(&mut self, slot: usize) {
        self.slots[slot] = Slot::EMPTY;
        let word = &mut self.bits[slot / 64];
        *word &= !(1 << (slot % 64));
        if *word == 0 {
            self.words &= !(1 << (slot / 64));
        }
    }

    /// The first slot that is not empty, from `base` on around the ring.
    #[inline]
    fn first(&self) -> Option<usize> {
        let base = (self.base % SLOTS) as usize;
        let (word, bit) = (base / 64, base % 64);
        let here = self.bits[word] & (u64::MAX << bit);
        if here != 0 {
            return Some(word * 64 + here.trailing_zeros() as usize);
        }
        let behind = self.words & (u64::MAX << word) & !(1 << word);
        // The rest of the word of `base` is the end of the ring.
        let word = match (behind, self.words) {
            (_, 0) => return None,
            (0, words) => words.trailing_zeros(),
            (behind, _) => behind.trailing_zeros(),
        } as usize;
        Some(word * 64 + self.bits[word].trailing_zeros() as usize)
    }

    /// The last slot that is not empty, from the end of the ring backwards.
    fn last_slot(&self) -> Option<usize> {
        let base = (self.base % SLOTS) as usize;
        let (word, bit) = (base / 64, base % 64);
        let here = self.bits[word] & !(u64::MAX << bit);
        if here != 0 {
            return Some(word * 64 + 63 - here.leading_zeros() as usize);
        }
        let before = self.words & !(u64::MAX << word);
        let word = match (before, self.words) {
            (_, 0) => return None,
            (0, words) => words.leading_zeros(),
            (before, _) => before.leading_zeros(),
        };
        let word = 63 - word as usize;
        Some(word * 64 + 63 - self.bits[word].leading_zeros() as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutline_units::Streams;

    fn entry(flow: u32, start: f64) -> Entry<u32> {
        Entry {
            packet: flow,
            size: 1,
            arrived: Instant::ZERO,
            start,
            due: start,
            is_new: false,
            owner: Owner { id: flow, ..Owner::default() },
        }
    }

    #[test]
    fn packets_leave_by_their_due_times() {
        let mut calendar = Calendar::new(4096.0);
        for start in [900.0, 20.0, 4000.0, 21.5, 20.5, 3000.0] {
            calendar.push(0.0, entry(0, start));
        }
        let starts: Vec<f64> = std::iter::from_fn(|| calendar.pop_first()).map(|entry| entry.start).collect();
        assert_eq!(starts, [20.0, 20.5, 21.5, 900.0, 3000.0, 4000.0]);
        assert!(calendar.is_empty() && calendar.pop_last().is_none());
    }

    /// Against a sorted list: the packet that is due first leaves first, and the one that is due last is pushed out, to the width of a slot, while the floor moves and the
    /// packets are sorted again.
    #[test]
    fn the_calendar_is_a_sorted_list_to_the_width_of_a_slot() {
        let mut random = Streams::new(3).stream("calendar", "test");
        let mut calendar = Calendar::new(8192.0);
        let (mut starts, mut floor, mut range) = (Vec::<f64>::new(), 0.0, 8192.0);
        for step in 0..60_000 {
            let draw = random.uniform();
            if draw < 0.5 {
                let start = floor + random.uniform() * 7000.0;
                calendar.push(floor, entry(step, start));
                starts.push(start);
            } else if let Some(found) = if draw < 0.9 { calendar.pop_first() } else { calendar.pop_last() } {
                starts.sort_by(f64::total_cmp);
                let expected = if draw < 0.9 { starts[0] } else { *starts.last().unwrap() };
                let differs = (found.start - expected).abs();
                assert!(
                    differs <= calendar.width && calendar.width < 8.0,
                    "step {step}: {} instead of {expected}",
                    found.start
                );
                let at = starts.iter().position(|start| *start == found.start).unwrap();
                starts.remove(at);
            } else {
                assert!(starts.is_empty());
            }
            floor = calendar.first_slot().map_or(floor, |first| first.max(floor));
            assert!(starts.iter().all(|start| *start >= floor), "step {step}: the floor is {floor}");
            if step % 5000 == 4999 {
                range = if range > 4096.0 { 1024.0 } else { 8192.0 };
                calendar.resort(floor, range);
            }
        }
    }

    #[test]
    fn flows_keep_their_order() {
        let mut random = Streams::new(4).stream("calendar", "test");
        let mut calendar = Calendar::new(4096.0);
        let (mut finish, mut number, mut floor) = ([0.0_f64; 8], 0, 0.0);
        let mut last = [0_u32; 8];
        for step in 0..50_000 {
            if random.uniform() < 0.55 {
                let flow = (random.uniform() * 8.0) as u32;
                number += 1;
                let start = finish[flow as usize].max(floor);
                finish[flow as usize] = start + random.uniform() * 300.0;
                calendar.push(floor, Entry { packet: number, ..entry(flow, start) });
            } else if let Some(found) = calendar.pop_first() {
                let last = &mut last[found.owner.id as usize];
                assert!(*last < found.packet, "step {step}: flow {} is reordered", found.owner.id);
                *last = found.packet;
            }
            floor = calendar.first_slot().map_or(floor, |first| first.max(floor));
            if step % 999 == 0 {
                let range = [1024.0, 4096.0, 65_536.0][step / 999 % 3];
                calendar.resort(floor, range);
            }
        }
    }
}
