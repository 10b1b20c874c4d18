//! The calendar: the queue of future events.
//!
//! This is a calendar queue (Brown 1988) that sorts late. The events of a day form a chain, the last scheduled first, and
//! the day is sorted when it begins. Days have a fixed width. The days of the coming "year" are in a ring; later events
//! wait in a heap. The width follows the observed spacing of events, so that a day has a handful of events. The ring grows
//! until hardly any event goes through the heap. Events are popped in the order of time. Events of the same time are popped
//! by tag, those of the same tag by the rank of their payload, and those of the same rank in the order of scheduling. This does
//! not depend on the width, so retuning never changes a result.
//!
//! An event is an entry of a slab with a payload of the caller (a packet). Its handle is the index of the entry. The handle
//! passes unchanged through queues, so a payload is written once and never copied. An entry with a payload of up to 48
//! bytes is one cache line, and scheduling touches this line and one word of the ring. So an event out of millions costs
//! one cache miss. This miss is hidden by reading ahead: with every event of today that is popped, one of tomorrow's
//! events is read.

use cutline_units::Instant;
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// The index of an entry in the slab: one event with its payload.
pub type EventHandle = u32;

const NONE: EventHandle = EventHandle::MAX;
const FIRST_DAYS: usize = 1 << 10;
const MOST_DAYS: usize = 1 << 22;
/// The first width of a day: 2^16 ns = 66 us.
const FIRST_SHIFT: u32 = 16;
/// The largest mean number of events per day that the width aims at; the smallest is half of it.
const EVENTS_A_DAY: u64 = 8;
/// The number of events between two checks of the days' width; fewer after a day with many events.
const RETUNE_AFTER: u64 = 1 << 14;
const RETUNE_SOON_AFTER: u64 = 1 << 10;
const LONG_DAY: usize = 64;

/// The payload of an event.
pub trait Payload: Copy {
    /// Returns the place of the event among the events of the same time and tag: the lowest is first.
    fn rank(&self) -> u32;
}

impl Payload for () {
    fn rank(&self) -> u32 {
        0
    }
}

#[derive(Clone, Copy)]
#[repr(align(64))]
struct Entry<P> {
    at: u64,
    /// The next entry of its day's chain, or of the free list.
    next: EventHandle,
    tag: u32,
    payload: P,
}

/// An entry as it is sorted.
#[derive(Clone, Copy)]
struct Event {
    at: u64,
    handle: EventHandle,
    tag: u32,
}

/// A queue of events; see the module's documentation.
pub struct Calendar<P> {
    blank: P,
    entries: Vec<Entry<P>>,
    free: EventHandle,
    /// Today's events in order; those from `next` on are pending. Includes events scheduled since today began for an earlier
    /// day.
    today: Vec<Event>,
    next: usize,
    /// The part of tomorrow's events that has been read, the last scheduled first, and the next entry to read.
    tomorrow: Vec<Event>,
    unread: EventHandle,
    /// For each day of the year, the event scheduled last. Includes events scheduled for tomorrow since today began.
    days: Vec<EventHandle>,
    /// Today, counted in days from time zero.
    day: u64,
    /// A day is 2^shift nanoseconds wide.
    shift: u32,
    /// Number of events of the days after today.
    waiting: usize,
    /// Events beyond the year, by time and order of scheduling. All events of a day return from the heap before any event
    /// is scheduled for the day directly, so the order needs to be known only here.
    far: BinaryHeap<Reverse<(u64, u64, EventHandle)>>,
    /// Number of events that ever went to the heap, which is the order of the next one.
    sent_far: u64,
    /// The day from which on the heap's first event is within the year.
    bring_near_at: u64,
    popped: u64,
    /// The number of popped events at which the days' width is checked again.
    retune_at: u64,
    tuned: Tuned,
}

/// The last check of the days' width: the events popped and sent to the heap until then, and its time.
#[derive(Clone, Copy)]
struct Tuned {
    popped: u64,
    sent_far: u64,
    at: u64,
}

impl<P: Payload> Calendar<P> {
    /// Creates an empty calendar at time zero; `blank` is the payload of an entry before its first use.
    pub fn new(blank: P) -> Self {
        Self {
            blank,
            entries: Vec::new(),
            free: NONE,
            today: Vec::new(),
            next: 0,
            tomorrow: Vec::new(),
            unread: NONE,
            days: vec![NONE; FIRST_DAYS],
            day: 0,
            shift: FIRST_SHIFT,
            waiting: 0,
            far: BinaryHeap::new(),
            sent_far: 0,
            bring_near_at: u64::MAX,
            popped: 0,
            retune_at: RETUNE_AFTER,
            tuned: Tuned { popped: 0, sent_far: 0, at: 0 },
        }
    }

    /// Takes an unused handle. Its payload is that of its last use.
    #[inline]
    pub fn allocate(&mut self) -> EventHandle {
        let handle = self.free;
        if let Some(entry) = self.entries.get(handle as usize) {
            self.free = entry.next;
            return handle;
        }
        self.add_entry()
    }

    #[cold]
    fn add_entry(&mut self) -> EventHandle {
        let handle = self.entries.len() as EventHandle;
        assert!(handle < NONE, "four thousand million events at once are too many");
        self.entries.push(Entry { at: 0, next: NONE, tag: 0, payload: self.blank });
        handle
    }

    /// Releases a handle, which must not be scheduled.
    #[inline]
    pub fn release(&mut self, handle: EventHandle) {
        self.entries[handle as usize].next = self.free;
        self.free = handle;
    }

    /// Returns the payload of a handle.
    #[inline]
    pub fn payload(&self, handle: EventHandle) -> &P {
        &self.entries[handle as usize].payload
    }

    /// Returns the payload of a handle for modification.
    #[inline]
    pub fn payload_mut(&mut self, handle: EventHandle) -> &mut P {
        &mut self.entries[handle as usize].payload
    }

    /// Returns the number of handles, in use or free.
    pub fn capacity(&self) -> usize {
        self.entries.len()
    }

    /// Returns the number of events popped so far.
    pub fn popped(&self) -> u64 {
        self.popped
    }

    /// Schedules `handle` with the caller's `tag` at `at`, which must not lie before the last event popped.
    /// Events of the same time, tag and rank are popped in the order in which they were scheduled.
    #[inline]
    pub fn schedule(&mut self, at: Instant, handle: EventHandle, tag: u32) {
        let at = at.as_nanos();
        let day = at >> self.shift;
        let mask = self.days.len() - 1;
        let last = &mut self.days[day as usize & mask];
        let entry = &mut self.entries[handle as usize];
        (entry.at, entry.next, entry.tag) = (at, *last, tag);
        // Tomorrow is 0; today and earlier, wrapped around, are beyond any year.
        if day.wrapping_sub(self.day + 1) < mask as u64 {
            *last = handle;
            self.waiting += 1;
        } else {
            self.place_apart(day, Event { at, handle, tag });
        }
    }

    /// Removes the next event no later than `until`. Returns its time, handle and tag.
    #[inline]
    pub fn pop(&mut self, until: Instant) -> Option<(Instant, EventHandle, u32)> {
        let event = match self.today.get(self.next) {
            Some(event) => *event,
            None => self.begin_day(until)?,
        };
        if event.at > until.as_nanos() {
            return None;
        }
        self.next += 1;
        self.popped += 1;
        if self.unread != NONE {
            self.read_one();
        }
        if self.popped >= self.retune_at {
            self.retune(event.at);
        }
        Some((Instant::from_nanos(event.at), event.handle, event.tag))
    }

    /// Returns the time of the next event, however far away; `None` without any event.
    pub fn peek(&mut self) -> Option<Instant> {
        let event = match self.today.get(self.next) {
            Some(event) => *event,
            None => self.begin_day(Instant::FAR_FUTURE)?,
        };
        Some(Instant::from_nanos(event.at))
    }

    /// Reads one more of tomorrow's events.
    #[inline]
    fn read_one(&mut self) {
        let Entry { at, next, tag, .. } = self.entries[self.unread as usize];
        self.tomorrow.push(Event { at, handle: self.unread, tag });
        self.unread = next;
    }

    /// Places an event that is not within the ring: into today's order, or into the heap.
    #[cold]
    fn place_apart(&mut self, day: u64, event: Event) {
        if day > self.day {
            self.far.push(Reverse((event.at, self.sent_far, event.handle)));
            self.sent_far += 1;
            self.bring_near_at = self.bring_near_at.min(self.first_day_before(day));
            return;
        }
        let pending = self.today[self.next..].iter().rev();
        let later = pending.take_while(|other| order(&self.entries, other, &event).is_gt()).count();
        self.today.insert(self.today.len() - later, event);
    }

    /// Returns the first day whose year contains a day.
    fn first_day_before(&self, day: u64) -> u64 {
        day.saturating_sub(self.days.len() as u64 - 1)
    }

    /// Begins the next day that has events and returns its first event; `None` if there is none, or none up to `until`.
    #[inline(never)]
    fn begin_day(&mut self, until: Instant) -> Option<Event> {
        self.next = 0;
        self.today.clear();
        if self.waiting == 0 {
            self.open_next_year(until);
            return self.today.first().copied();
        }
        self.day += 1;
        self.finish_tomorrow();
        while self.today.is_empty() {
            self.day += 1;
            self.unread = self.take_day(self.day);
            self.finish_tomorrow();
        }
        self.waiting -= self.today.len();
        sort(&mut self.today, &self.entries);
        self.unread = self.take_day(self.day + 1);
        if self.day >= self.bring_near_at {
            self.bring_near();
        }
        if self.today.len() > LONG_DAY {
            self.retune_at = self.retune_at.min(self.tuned.popped + RETUNE_SOON_AFTER);
        }
        self.today.first().copied()
    }

    /// Takes the chain of a day out of the ring.
    #[inline]
    fn take_day(&mut self, day: u64) -> EventHandle {
        let mask = self.days.len() - 1;
        std::mem::replace(&mut self.days[day as usize & mask], NONE)
    }

    /// Reads the rest of the day that has begun, and makes its events today's, in the order of scheduling.
    #[inline]
    fn finish_tomorrow(&mut self) {
        while self.unread != NONE {
            self.read_one();
        }
        std::mem::swap(&mut self.today, &mut self.tomorrow);
        self.today.reverse();
        self.unread = self.take_day(self.day);
        if self.unread != NONE {
            while self.unread != NONE {
                self.read_one();
            }
            self.today.extend(self.tomorrow.iter().rev());
            self.tomorrow.clear();
        }
    }

    /// Begins the year at the heap's first event, if that is due by `until`. No day of the ring has events.
    #[cold]
    fn open_next_year(&mut self, until: Instant) {
        if let Some(&Reverse((at, ..))) = self.far.peek()
            && at <= until.as_nanos()
        {
            self.day = at >> self.shift;
            self.bring_near();
        }
    }

    /// Moves the events within the year that begins today from the heap to the ring.
    #[cold]
    fn bring_near(&mut self) {
        let end = self.day + self.days.len() as u64;
        self.bring_near_at = u64::MAX;
        while let Some(&Reverse((at, _, handle))) = self.far.peek() {
            let day = at >> self.shift;
            if day >= end {
                self.bring_near_at = self.first_day_before(day);
                break;
            }
            self.far.pop();
            self.schedule(Instant::from_nanos(at), handle, self.entries[handle as usize].tag);
        }
    }

    /// Sets the days' width to the spacing seen since the last check, and lengthens the year if the heap was busy.
    #[cold]
    fn retune(&mut self, now: u64) {
        let passed = self.popped - self.tuned.popped;
        let shift = ((now - self.tuned.at) * EVENTS_A_DAY / passed).max(1).ilog2();
        let crowded = self.sent_far - self.tuned.sent_far > passed / 32 && self.days.len() < MOST_DAYS;
        let days = if crowded { self.days.len() * 2 } else { self.days.len() };
        if shift.abs_diff(self.shift) > 1 || crowded {
            self.rebuild(shift, days, now);
        }
        self.retune_at = self.popped + RETUNE_AFTER;
        self.tuned = Tuned { popped: self.popped, sent_far: self.sent_far, at: now };
    }

    fn rebuild(&mut self, shift: u32, days: usize, now: u64) {
        let scheduled = self.in_order();
        self.days.clear();
        self.days.resize(days, NONE);
        (self.shift, self.day, self.bring_near_at) = (shift, now >> shift, u64::MAX);
        for Event { at, handle, tag } in scheduled {
            self.schedule(Instant::from_nanos(at), handle, tag);
        }
    }

    /// Takes all that is scheduled, those of the same time in the order of scheduling: today, the days, the heap.
    fn in_order(&mut self) -> Vec<Event> {
        let mut scheduled = self.today.split_off(self.next);
        for _ in 0..self.days.len() {
            self.today.clear();
            self.day += 1;
            self.finish_tomorrow();
            scheduled.append(&mut self.today);
        }
        (self.next, self.waiting) = (0, 0);
        let mut far = std::mem::take(&mut self.far).into_vec();
        far.sort_unstable_by_key(|&Reverse(key)| key);
        let event = |Reverse((at, _, handle))| Event { at, handle, tag: self.entries[handle as usize].tag };
        scheduled.extend(far.into_iter().map(event));
        scheduled
    }
}

/// Sorts events by time, tag and rank, and leaves those with the same ones as they are: by insertion, which a handful of events
/// is best sorted by.
#[inline]
fn sort<P: Payload>(events: &mut [Event], entries: &[Entry<P>]) {
    const HANDFUL: usize = 20;
    if events.len() > HANDFUL {
        events.sort_by(|one, other| order(entries, one, other));
        return;
    }
    for place in 1..events.len() {
        let event = events[place];
        let mut hole = place;
        while hole > 0 && order(entries, &events[hole - 1], &event).is_gt() {
            events[hole] = events[hole - 1];
            hole -= 1;
        }
        events[hole] = event;
    }
}

#[inline]
fn order<P: Payload>(entries: &[Entry<P>], one: &Event, other: &Event) -> Ordering {
    match one.at.cmp(&other.at) {
        Ordering::Equal => order_at_once(entries, one, other),
        order => order,
    }
}

/// The order of two events of the same time.
#[cold]
fn order_at_once<P: Payload>(entries: &[Entry<P>], one: &Event, other: &Event) -> Ordering {
    let rank = |event: &Event| entries[event.handle as usize].payload.rank();
    one.tag.cmp(&other.tag).then_with(|| rank(one).cmp(&rank(other)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NEVER: Instant = Instant::FAR_FUTURE;

    /// A payload with a rank, and a number that tells events apart.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    struct Ranked(u32, u32);

    impl Payload for Ranked {
        fn rank(&self) -> u32 {
            self.0
        }
    }

    #[test]
    fn events_of_the_same_time_are_popped_by_tag_and_rank_and_then_in_the_order_of_scheduling() {
        // A handful, which is sorted by insertion, and more.
        for count in [12, 300] {
            let mut calendar = Calendar::new(Ranked(0, 0));
            let mut expected = Vec::new();
            for number in 0..count {
                let (tag, rank) = (number * 7 % 3, number * 5 % 2);
                let handle = calendar.allocate();
                *calendar.payload_mut(handle) = Ranked(rank, number);
                calendar.schedule(Instant::from_nanos(5), handle, tag);
                expected.push((tag, Ranked(rank, number)));
            }
            expected.sort_by_key(|(tag, payload)| (*tag, payload.0));
            let popped = std::iter::from_fn(|| calendar.pop(NEVER));
            let popped: Vec<_> = popped.map(|(_, handle, tag)| (tag, handle)).collect();
            let popped: Vec<_> =
                popped.into_iter().map(|(tag, handle)| (tag, *calendar.payload(handle))).collect();
            assert_eq!(popped, expected);
        }
    }

    #[test]
    fn an_event_at_the_present_time_takes_its_place_among_those_that_are_pending() {
        let mut calendar = Calendar::new(());
        let at = Instant::from_nanos(5);
        let schedule = |calendar: &mut Calendar<()>, tag| {
            let handle = calendar.allocate();
            calendar.schedule(at, handle, tag);
        };
        for tag in [1, 3, 5] {
            schedule(&mut calendar, tag);
        }
        assert_eq!(calendar.pop(NEVER).map(|event| event.2), Some(1));
        for tag in [4, 0] {
            schedule(&mut calendar, tag);
        }
        let tags: Vec<u32> = std::iter::from_fn(|| calendar.pop(NEVER).map(|event| event.2)).collect();
        assert_eq!(tags, [0, 3, 4, 5]);
    }

    #[test]
    fn no_event_is_returned_before_its_time() {
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

    /// Looking for an event may begin a day that is not reached yet; entries scheduled before it then come first.
    #[test]
    fn an_event_before_a_day_that_was_begun_early_is_first() {
        let mut calendar = Calendar::new(());
        for (at, tag) in [(1 << 20, 1), (7, 3), (5, 2)] {
            assert!(calendar.pop(Instant::from_nanos(3)).is_none());
            let handle = calendar.allocate();
            calendar.schedule(Instant::from_nanos(at), handle, tag);
        }
        let tags: Vec<u32> = std::iter::from_fn(|| calendar.pop(NEVER).map(|event| event.2)).collect();
        assert_eq!(tags, [2, 3, 1]);
    }

    #[test]
    fn peeking_removes_nothing_and_permits_earlier_events() {
        let mut calendar = Calendar::new(());
        assert_eq!(calendar.peek(), None);
        for (at, tag) in [(1 << 40, 1), (1 << 20, 2), (7, 3)] {
            let handle = calendar.allocate();
            calendar.schedule(Instant::from_nanos(at), handle, tag);
            assert_eq!(calendar.peek(), Some(Instant::from_nanos(at)));
        }
        let tags: Vec<u32> = std::iter::from_fn(|| calendar.pop(NEVER).map(|event| event.2)).collect();
        assert_eq!(tags, [3, 2, 1]);
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
