//! The exchange between stages: packets and timers by windows of time.
//!
//! Time is cut into windows of 2^shift nanoseconds. An entry that is due in one of the coming windows is appended to that window's list, in a
//! ring. Later entries wait in a map. When a window begins, its packets are put into one list, which is sorted if it is not in order. Most
//! packets are, because a link sends its packets one after the other. Until then the packets of a window are in short lists of one length. A
//! window has lists from its first packet on, and takes those of earlier windows, so that few places of lists are unused. The packets of a
//! window that has a single short list stay in it.

use crate::packet::Packet;
use crate::tight::push_tightly;
use cutline_units::Instant;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// A packet on its way to a stage.
#[derive(Clone, Copy)]
pub(super) struct Parcel {
    /// Time of its arrival.
    pub(super) at: Instant,
    pub(super) packet: Packet,
}

impl Parcel {
    /// Returns the place among the packets of a window. Packets with the same place stay in the order of sending.
    #[inline]
    fn order(&self) -> (Instant, u32) {
        (self.at, self.packet.position)
    }
}

// A long network has many of them.
const _: () = assert!(size_of::<Parcel>() <= 40, "a packet on its way to a stage has 40 bytes");

/// The length of the lists of a coming window.
const LIST: usize = 64;
/// The places of a list's first packets. A list that is full has twice as many afterwards.
const FEWEST_PLACES: usize = 4;
/// This number of empty lists is never given back.
const KEPT_LISTS: usize = 8;

/// The packets on their way to a stage.
///
/// Packets of the same time arrive in the order of their positions, and those of the same position in the order of sending.
pub(super) struct Inbox {
    shift: u32,
    /// The number of the window that is open.
    number: u64,
    /// The window that is open, in order, and the first of its packets that has not been handled.
    open: Vec<Parcel>,
    next: usize,
    /// An empty list for an open window of several short ones, while the open window has a short one.
    long: Vec<Parcel>,
    /// The coming windows, each at its number modulo the length, which is a power of two.
    ring: Vec<Batch>,
    /// Windows beyond the ring, by number.
    far: BTreeMap<u64, Vec<Parcel>>,
    /// Empty lists of coming windows.
    spare: Vec<Vec<Parcel>>,
}

/// The packets of a coming window.
#[derive(Default)]
struct Batch {
    /// The last packets, up to [`LIST`] of them; empty if there are no packets at all.
    parcels: Vec<Parcel>,
    /// The packets before these, in full lists.
    full: Vec<Vec<Parcel>>,
    /// The arrival of the last packet.
    last: Instant,
    /// True if a packet does not arrive after the one before it.
    is_disordered: bool,
}

impl Inbox {
    /// Creates an empty inbox with `windows` windows in its ring, a power of two.
    pub(super) fn new(shift: u32, windows: usize) -> Self {
        assert!(windows.is_power_of_two(), "the place of a window is found by a mask");
        let ring = std::iter::repeat_with(Batch::default).take(windows).collect();
        Self {
            shift,
            number: 0,
            open: Vec::new(),
            next: 0,
            long: Vec::new(),
            ring,
            far: BTreeMap::new(),
            spare: Vec::new(),
        }
    }

    /// Appends a packet that arrives in one of the coming windows.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "inlined, a packet is written field by field, and not copied from the stack"
    )]
    pub(super) fn push(&mut self, at: Instant, packet: Packet) {
        let number = at.as_nanos() >> self.shift;
        let mask = self.ring.len() - 1;
        if number.wrapping_sub(self.number + 1) >= mask as u64 {
            return self.push_far(number, Parcel { at, packet });
        }
        let batch = &mut self.ring[number as usize & mask];
        batch.is_disordered |= at <= batch.last;
        batch.last = at;
        if batch.parcels.len() == batch.parcels.capacity() {
            return push_to_full(batch, &mut self.spare, Parcel { at, packet });
        }
        batch.parcels.push(Parcel { at, packet });
    }

    #[cold]
    #[inline(never)]
    fn push_far(&mut self, number: u64, parcel: Parcel) {
        assert!(number > self.number, "a link to another stage is at least as long as a window");
        push_tightly(self.far.entry(number).or_default(), parcel);
    }

    /// Opens the window with this number, the one after the window that is open.
    pub(super) fn open(&mut self, number: u64) {
        debug_assert!(self.next == self.open.len(), "a window is finished before the next one");
        self.number = number;
        self.next = 0;
        self.open.clear();
        let place = number as usize & (self.ring.len() - 1);
        let far = if self.far.is_empty() { None } else { self.far.remove(&number) };
        if self.ring[place].parcels.is_empty() && far.is_none() {
            return;
        }
        let Batch { parcels, full, is_disordered, .. } = std::mem::take(&mut self.ring[place]);
        let far = far.unwrap_or_default();
        let is_disordered = is_disordered || !far.is_empty();
        if self.open.capacity() > LIST {
            self.long = std::mem::take(&mut self.open);
        } else if self.open.capacity() > 0 {
            self.spare.push(std::mem::take(&mut self.open));
        }
        if full.is_empty() && far.is_empty() {
            self.open = parcels;
            self.spare.truncate(KEPT_LISTS);
        } else {
            self.gather(far, full, parcels);
        }
        if is_disordered {
            sort_nearly_sorted(&mut self.open);
        }
    }

    /// Puts the packets of a window into one list. Those of `far` were sent first.
    fn gather(&mut self, far: Vec<Parcel>, full: Vec<Vec<Parcel>>, parcels: Vec<Parcel>) {
        self.open = std::mem::take(&mut self.long);
        make_room(&mut self.open, far.len() + full.len() * LIST + parcels.len());
        self.open.extend(far);
        let most_spare = KEPT_LISTS.max(2 * full.len());
        for mut list in full.into_iter().chain([parcels]) {
            self.open.append(&mut list);
            if list.capacity() > 0 {
                self.spare.push(list);
            }
        }
        self.spare.truncate(most_spare);
    }

    /// Exchanges the packets of the window that has just been opened for an empty list: they are those of a stage in another shard.
    pub(super) fn export(&mut self, list: &mut Vec<Parcel>) {
        debug_assert!(self.next == 0 && list.is_empty(), "a window is exported as a whole");
        std::mem::swap(&mut self.open, list);
    }

    /// Takes packets of the open window that another shard has sent, in order, and leaves an empty list.
    pub(super) fn import(&mut self, list: &mut Vec<Parcel>) {
        debug_assert!(self.next == 0, "a window is imported before it is handled");
        if self.open.is_empty() {
            std::mem::swap(&mut self.open, list);
        } else if !list.is_empty() {
            self.open.append(list);
            // Packets of the same position come from one stage, and so from one shard.
            self.open.sort_by_key(Parcel::order);
        }
    }

    /// Takes the open window, and the place of its first packet that has not been handled.
    #[inline]
    pub(super) fn take(&mut self) -> (Vec<Parcel>, usize) {
        (std::mem::take(&mut self.open), self.next)
    }

    /// Puts the open window back, of which the packets before `next` have been handled.
    #[inline]
    pub(super) fn put_back(&mut self, open: Vec<Parcel>, next: usize) {
        (self.open, self.next) = (open, next);
    }

    /// Returns the time of the next arrival; [`Instant::FAR_FUTURE`] without one.
    pub(super) fn next_arrival(&self) -> Instant {
        let open = self.open[self.next..].iter();
        let coming = self.ring.iter().flat_map(|batch| batch.full.iter().flatten().chain(&batch.parcels));
        let all = open.chain(coming).chain(self.far.values().flatten());
        all.map(|parcel| parcel.at).min().unwrap_or(Instant::FAR_FUTURE)
    }
}

/// Appends to a window whose last list is full, or has no room yet.
#[cold]
#[inline(never)]
fn push_to_full(batch: &mut Batch, spare: &mut Vec<Vec<Parcel>>, parcel: Parcel) {
    if batch.parcels.len() >= LIST {
        let list = spare.pop().unwrap_or_else(|| Vec::with_capacity(LIST));
        batch.full.push(std::mem::replace(&mut batch.parcels, list));
    } else if batch.parcels.is_empty() {
        batch.parcels = spare.pop().unwrap_or_default();
    }
    let places = batch.parcels.capacity();
    if batch.parcels.len() == places {
        batch.parcels.reserve_exact(places.max(FEWEST_PLACES).min(LIST - places));
    }
    batch.parcels.push(parcel);
}

/// Sorts the packets of a window. Most of them are in order already: a sender's burst waits at its first link, while packets of others do
/// not. So each packet is moved to its place by itself, unless there are many to move.
fn sort_nearly_sorted(parcels: &mut [Parcel]) {
    const MOVES: usize = 8;
    let mut moves_left = MOVES * parcels.len();
    for number in 1..parcels.len() {
        let (parcel, before) = (parcels[number], &parcels[..number]);
        if before[number - 1].order() <= parcel.order() {
            continue;
        }
        let place = before.iter().rposition(|other| other.order() <= parcel.order()).map_or(0, |at| at + 1);
        if number - place > moves_left {
            parcels.sort_by_key(Parcel::order);
            return;
        }
        moves_left -= number - place;
        parcels.copy_within(place..number, place + 1);
        parcels[place] = parcel;
    }
}

/// Makes room for the packets of a window in an empty list. A list that was needed for a burst gives its memory back.
fn make_room(open: &mut Vec<Parcel>, packets: usize) {
    const KEPT: usize = 64;
    if open.capacity() < packets || open.capacity() > KEPT.max(2 * packets) {
        // A new one: a list that grows would copy its old packets.
        *open = Vec::with_capacity(packets + packets / 8);
    }
}

/// The place of a timer: the time, and the kind of its event with the flow.
pub(super) type Timer = (Instant, u32);
/// The same of a coming window: the time since its beginning, ns. A long network has one or two of them for each flow.
type ComingTimer = (u32, u32);

/// The timers of a stage, in the order of time, kind and flow.
pub(super) struct Timers {
    shift: u32,
    number: u64,
    /// Timers of the open window.
    open: BinaryHeap<Reverse<Timer>>,
    /// The time of the first one in the open window; [`Instant::FAR_FUTURE`] without one.
    next: Instant,
    /// The coming windows, each at its number modulo the length, which is a power of two.
    ring: Vec<Vec<ComingTimer>>,
    /// Windows beyond the ring, by number.
    far: BTreeMap<u64, Vec<ComingTimer>>,
}

impl Timers {
    /// Creates an empty set of timers, with `windows` windows in the ring, a power of two.
    pub(super) fn new(shift: u32, windows: usize) -> Self {
        assert!(windows.is_power_of_two(), "the place of a window is found by a mask");
        assert!(shift <= u32::BITS, "the time since the beginning of a window has 32 bits");
        Self {
            shift,
            number: 0,
            open: BinaryHeap::new(),
            next: Instant::FAR_FUTURE,
            ring: vec![Vec::new(); windows],
            far: BTreeMap::new(),
        }
    }

    /// Adds a timer.
    pub(super) fn push(&mut self, at: Instant, tag: u32) {
        let number = at.as_nanos() >> self.shift;
        if number <= self.number {
            self.open.push(Reverse((at, tag)));
            self.next = self.next.min(at);
            return;
        }
        let timer = ((at.as_nanos() - (number << self.shift)) as u32, tag);
        if number - self.number < self.ring.len() as u64 {
            let place = number as usize & (self.ring.len() - 1);
            self.ring[place].push(timer);
        } else {
            push_tightly(self.far.entry(number).or_default(), timer);
        }
    }

    /// Returns the time of a timer of the window with this number.
    fn time(&self, number: u64, (since_beginning, _): ComingTimer) -> Instant {
        Instant::from_nanos((number << self.shift) + u64::from(since_beginning))
    }

    /// Opens the window with this number, the one after the window that is open.
    pub(super) fn open(&mut self, number: u64) {
        debug_assert!(self.open.is_empty(), "a window is finished before the next one");
        self.number = number;
        let place = number as usize & (self.ring.len() - 1);
        let far = if self.far.is_empty() { None } else { self.far.remove(&number) };
        if self.ring[place].is_empty() && far.is_none() {
            self.next = Instant::FAR_FUTURE;
            return;
        }
        let mut coming = std::mem::take(&mut self.ring[place]);
        let mut timers = std::mem::take(&mut self.open).into_vec();
        let all = coming.drain(..).chain(far.unwrap_or_default());
        timers.extend(all.map(|timer| Reverse((self.time(number, timer), timer.1))));
        self.ring[place] = coming;
        self.open = BinaryHeap::from(timers);
        self.find_next();
    }

    /// Returns the time of the first timer of the open window; [`Instant::FAR_FUTURE`] without one.
    #[inline]
    pub(super) fn next(&self) -> Instant {
        self.next
    }

    /// Removes the first timer of the open window.
    pub(super) fn pop(&mut self) -> Option<Timer> {
        let Reverse(timer) = self.open.pop()?;
        self.find_next();
        Some(timer)
    }

    fn find_next(&mut self) {
        self.next = self.open.peek().map_or(Instant::FAR_FUTURE, |Reverse((at, _))| *at);
    }

    /// Returns the time of the first timer of all windows; [`Instant::FAR_FUTURE`] without one.
    pub(super) fn first(&self) -> Instant {
        let numbers = self.number + 1..self.number + self.ring.len() as u64;
        let in_ring = numbers.map(|number| (number, &self.ring[number as usize & (self.ring.len() - 1)]));
        let far = self.far.iter().map(|(number, timers)| (*number, timers));
        let first = |(number, timers): (u64, &Vec<ComingTimer>)| {
            timers.iter().map(|timer| self.time(number, *timer)).min()
        };
        in_ring.chain(far).filter_map(first).chain([self.next]).min().unwrap_or(Instant::FAR_FUTURE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutline_units::Hint;
    use proptest::prelude::*;

    const SHIFT: u32 = 4;

    fn packet(position: u32, size: u32) -> Packet {
        Packet::without_header(size, position, Hint::LEAST_DELAY)
    }

    proptest! {
        /// Against a list that is sorted as a whole, stably.
        #[test]
        fn packets_arrive_by_time_and_position_and_as_they_were_sent(
            sent in prop::collection::vec((1u64..40, 0u64..400, 0u32..3), 1..300),
        ) {
            let mut inbox = Inbox::new(SHIFT, 8);
            let (mut expected, mut found) = (Vec::new(), Vec::new());
            let mut sent = sent.iter().enumerate().peekable();
            for number in 0..200 {
                inbox.open(number);
                let (open, next) = inbox.take();
                found.extend(open[next..].iter().map(|parcel| (parcel.at, parcel.packet.position, parcel.packet.size())));
                prop_assert!(open.iter().all(|parcel| parcel.at.as_nanos() >> SHIFT == number));
                let all = open.len();
                inbox.put_back(open, all);
                for _ in 0..7 {
                    if let Some((size, &(ahead, within, position))) = sent.next() {
                        let at = Instant::from_nanos(((number + 1) << SHIFT) + (ahead << SHIFT) / 4 + within / 10);
                        inbox.push(at, packet(position, size as u32));
                        expected.push((at, position, size as u32));
                    }
                }
            }
            expected.sort_by_key(|(at, position, _)| (*at, *position));
            prop_assert_eq!(found, expected);
        }

        /// Windows with more packets than a list has places, from several senders.
        #[test]
        fn packets_of_full_lists_stay_in_their_order(
            sent in prop::collection::vec((1u64..4, 0u64..16, 0u32..3), 0..400),
        ) {
            let mut inbox = Inbox::new(SHIFT, 8);
            let mut expected = Vec::new();
            for (size, &(window, within, position)) in sent.iter().enumerate() {
                let at = Instant::from_nanos((window << SHIFT) + within);
                inbox.push(at, packet(position, size as u32));
                expected.push((at, position, size as u32));
            }
            expected.sort_by_key(|(at, position, _)| (*at, *position));
            let first = expected.first().map_or(Instant::FAR_FUTURE, |sent| sent.0);
            prop_assert_eq!(inbox.next_arrival(), first);
            let mut found = Vec::new();
            for number in 1..5 {
                inbox.open(number);
                let (open, next) = inbox.take();
                found.extend(open[next..].iter().map(|parcel| (parcel.at, parcel.packet.position, parcel.packet.size())));
                let all = open.len();
                inbox.put_back(open, all);
            }
            prop_assert_eq!(found, expected);
        }

        /// Against a sorted set, with timers that are set while others expire.
        #[test]
        fn timers_expire_by_time_and_tag(set in prop::collection::vec((0u64..600, 0u32..5), 1..300)) {
            let mut timers = Timers::new(SHIFT, 8);
            let mut model = std::collections::BTreeSet::new();
            let mut set = set.iter();
            let mut add = |now: u64, timers: &mut Timers, model: &mut std::collections::BTreeSet<_>| {
                if let Some(&(ahead, tag)) = set.next() {
                    let at = Instant::from_nanos(now + ahead);
                    // A set has each timer once.
                    if model.insert((at, tag)) {
                        timers.push(at, tag);
                    }
                }
            };
            add(0, &mut timers, &mut model);
            for number in 0..200 {
                if number > 0 {
                    timers.open(number);
                }
                let end = Instant::from_nanos((number + 1) << SHIFT);
                prop_assert_eq!(timers.first(), model.first().map_or(Instant::FAR_FUTURE, |timer| timer.0));
                while timers.next() < end {
                    let timer = timers.pop().unwrap();
                    prop_assert_eq!(Some(timer), model.pop_first());
                    add(timer.0.as_nanos(), &mut timers, &mut model);
                    add(timer.0.as_nanos(), &mut timers, &mut model);
                }
                add(end.as_nanos(), &mut timers, &mut model);
            }
            prop_assert!(model.first().is_none_or(|timer| timer.0.as_nanos() >= 200 << SHIFT));
        }
    }

    #[test]
    fn few_packets_out_of_order_are_sorted_as_many_are() {
        // Of 200 packets in order, every `step`-th arrives `late` later than it was sent, and two arrive at the same time each.
        for (step, late) in [(1, 0), (7, 3), (40, 25), (3, 50), (2, 300), (1, 500)] {
            let parcel = |number: u64| {
                let at = number / 2 + if number.is_multiple_of(step) { late } else { 0 };
                Parcel { at: Instant::from_nanos(at), packet: packet(number as u32 % 5, number as u32) }
            };
            let mut parcels: Vec<Parcel> = (0..200).map(parcel).collect();
            let mut expected = parcels.clone();
            expected.sort_by_key(Parcel::order);
            sort_nearly_sorted(&mut parcels);
            let sizes = |parcels: &[Parcel]| parcels.iter().map(|it| it.packet.size()).collect::<Vec<_>>();
            assert_eq!(sizes(&parcels), sizes(&expected), "each {step}-th is late by {late}");
        }
    }

    /// Opens the windows one after the other, with so many packets in each, whose arrivals are in order.
    fn open_windows(inbox: &mut Inbox, numbers: std::ops::Range<u64>, packets: u64) {
        for number in numbers {
            for within in 0..packets {
                let at = ((number + 1) << SHIFT) + (within << SHIFT) / packets;
                inbox.push(Instant::from_nanos(at), packet(0, 40));
            }
            inbox.open(number + 1);
            let (open, _) = inbox.take();
            assert_eq!(open.len() as u64, packets);
            inbox.put_back(open, packets as usize);
        }
    }

    #[test]
    fn a_burst_gives_its_lists_back() {
        let mut inbox = Inbox::new(SHIFT, 8);
        open_windows(&mut inbox, 0..3, 1000);
        assert!(inbox.open.capacity() >= 1000 && inbox.spare.len() > KEPT_LISTS);
        open_windows(&mut inbox, 3..20, 20);
        let places: usize = inbox.spare.iter().map(Vec::capacity).sum();
        assert!(places <= KEPT_LISTS * LIST, "{places} places");
        assert!(inbox.open.capacity() <= 64, "{} places", inbox.open.capacity());
    }

    #[test]
    fn a_window_takes_the_lists_of_windows_before() {
        let mut inbox = Inbox::new(SHIFT, 8);
        open_windows(&mut inbox, 0..50, 100);
        // 100 packets need four lists.
        assert!(inbox.spare.len() <= 8, "{} lists", inbox.spare.len());
        assert!(inbox.spare.iter().all(|list| list.capacity() <= LIST));
    }
}
