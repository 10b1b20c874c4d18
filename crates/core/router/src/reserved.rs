//! Reserved flows of one direction: controlled load (RFC 2211) beside the queue.
//!
//! ```text
//! arriving frame ── filter ── policer ── conforms: reserved class, served first
//!                      └──────────┴───── anything else: the queue, like any packet
//! ```
//!
//! A reservation has a token bucket and filters that name its packets. Bytes are counted from the IP header (RFC 2211 section 5). A
//! packet that conforms goes into the *reserved class*, a FIFO in front of the queue. Any other packet of the flow is *excess*: it goes
//! into the queue with its hint, as if nothing were reserved (RFC 2211 section 7, requirement 3).
//!
//! **Why the delay of conforming packets is bounded.** On the link, packets are longer than their datagrams. The worst ratio over the
//! sizes that the reservation allows turns its r and b into r' and b'. Admission keeps the sum of all r' below 9/10 of the link's rate
//! C. So in any time T the reserved class receives at most sum(r') T + sum(b') bytes, and the link could send C T, which is more. The
//! class is served before the queue, but a frame on the link is not interrupted. The longest wait is therefore (sum(b') + L) / C,
//! where L is the longest frame on the link. The remaining tenth of C, and the unused part of reservations, are left to the queue.
//!
//! **Why the rest is not starved.** Frames leave as reserved only if they conformed. Over any interval T these are at most
//! sum(r T + b) bytes of datagrams, whatever the senders do (RFC 2211 section 7, requirement 2).
//!
//! **Order.** Within the conforming packets of a flow, and within its excess, the order is kept. A conforming packet may overtake excess
//! that was sent before it. The RFC permits to sort a flow's packets into a conforming and a nonconforming set and to serve them
//! differently (RFC 2211 section 7).
//!
//! The bound assumes that the link is served on time. If the port holds the link, or the process is stopped, more waits. The class has
//! room for sum(b') and the arrivals in [`SLACK`]; a packet that finds no room is excess.

use crate::flow_filter::{self, FilterTable};
use crate::frames::Slot;
use crate::overhead::{Overhead, ip_length};
use cutline_aqm::{Count, Policer};
use cutline_flow::{FlowSelector, TrafficSpec};
use cutline_params::ParameterError;
use cutline_units::{Bytes, Duration, Instant, IpVersion, Rate};
use cutline_wire::{ETHERNET, Headers, Ip};
use std::collections::{BTreeMap, VecDeque};
use std::ops::RangeInclusive;

/// The number of a reservation: its owner, and its number among the owner's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReservationId {
    /// The owner. All reservations of an owner can be removed together.
    pub owner: u64,
    /// The number that the owner has given it.
    pub number: u64,
}

/// A reservation and its counters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountedReservation {
    /// Its number.
    pub id: ReservationId,
    /// Its token bucket.
    pub bucket: TrafficSpec,
    /// Its filters.
    pub filters: Vec<FlowSelector>,
    /// Its counters.
    pub counters: ReservationCounters,
}

/// The counters of a reservation, in frames and in bytes as the port shows them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReservationCounters {
    /// Frames that conformed.
    pub conforming: Count,
    /// Frames that exceeded their token bucket, or found no room in the reserved class, and went into the queue.
    pub excess: Count,
    /// Conforming frames that were lost, because there was no memory for them.
    pub dropped: Count,
}

/// Reason why a reservation cannot be made or changed. Nothing has changed then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReservationError {
    /// A value is not allowed.
    Value(ParameterError),
    /// No reservation of this number.
    Unknown(u64),
    /// A reservation of this number exists already.
    Exists(u64),
}

/// The reserved class of one direction.
#[derive(Clone, Debug)]
pub(crate) struct ReservedClass {
    /// The most reservations.
    limit: usize,
    table: FilterTable,
    entries: Vec<Entry>,
    /// Entries without a reservation.
    free: Vec<u32>,
    numbers: BTreeMap<ReservationId, u32>,
    /// Share of the link that all reservations together use.
    charge: Charge,
    waiting: VecDeque<Waiting>,
    /// Bytes on the link of the waiting frames, and at most.
    waiting_bytes: u64,
    room: u64,
}

#[derive(Clone, Debug)]
struct Entry {
    policer: Policer,
    counters: ReservationCounters,
    charge: Charge,
    filters: Vec<FlowSelector>,
}

/// Share of the link that a reservation uses, with the link's overhead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Charge {
    bps: u64,
    bytes: u64,
}

/// A conforming frame that waits for the link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiting {
    pub(crate) slot: Slot,
    /// Its size on the link, bytes.
    pub(crate) size: u32,
    pub(crate) arrived: Instant,
}

/// Treatment of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Judgement {
    /// The frame belongs to no reservation.
    BestEffort,
    /// The frame exceeds its reservation.
    Excess,
    /// The frame conforms to the bucket of this entry.
    Reserved(u32),
}

/// The time for which the reserved class has room beyond its buckets.
const SLACK: Duration = Duration::from_millis(100);
/// The share of the link's rate that can be reserved, in tenths.
const SHARE: u128 = 9;
/// Number of sizes above the smallest one that are tried for the largest overhead. Cells have 48 B and code
/// blocks 64 B, and from one to the next the ratio of the sizes becomes smaller.
const SIZES: u32 = 65;

/// The allowed numbers of reservations that a direction can be limited to.
pub const RESERVATION_LIMITS: RangeInclusive<usize> = 1..=100_000;
/// The most filters of a direction, for each reservation that is allowed.
const FILTERS_EACH: usize = 4;

impl ReservedClass {
    /// Creates a class without reservations; `salt` enters the hash of flows.
    pub(crate) const fn new(limit: usize, salt: u64) -> Self {
        Self {
            limit,
            table: FilterTable::new(salt, limit * FILTERS_EACH),
            entries: Vec::new(),
            free: Vec::new(),
            numbers: BTreeMap::new(),
            charge: Charge { bps: 0, bytes: 0 },
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            room: 0,
        }
    }

    /// Judges a frame that arrived at `at` and has this size on the link. Counts it for its reservation.
    #[inline]
    pub(crate) fn judge(&mut self, at: Instant, frame: &[u8], ip: Ip, size: u32) -> Judgement {
        let Some(place) = self.table.find(frame, ip) else { return Judgement::BestEffort };
        let has_room =
            self.waiting_bytes + u64::from(size) <= self.room && self.waiting.try_reserve(1).is_ok();
        let entry = &mut self.entries[place as usize];
        if has_room && entry.policer.conforms(at, policed_size(frame, ip)) {
            entry.counters.conforming.add(frame.len() as u32);
            return Judgement::Reserved(place);
        }
        entry.counters.excess.add(frame.len() as u32);
        Judgement::Excess
    }

    /// Stores a frame that was judged to be reserved.
    #[inline]
    pub(crate) fn push(&mut self, waiting: Waiting) {
        self.waiting_bytes += u64::from(waiting.size);
        self.waiting.push_back(waiting);
    }

    /// Counts the loss of a conforming frame.
    #[cold]
    pub(crate) fn lose(&mut self, place: u32, length: u32) {
        self.entries[place as usize].counters.dropped.add(length);
    }

    /// Returns the next frame for the link.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Waiting> {
        let next = self.waiting.pop_front()?;
        self.waiting_bytes -= u64::from(next.size);
        Some(next)
    }

    /// Returns the number of waiting frames.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Returns the number of reservations.
    pub(crate) fn len(&self) -> usize {
        self.numbers.len()
    }

    /// Returns the rate of all reservations together on the link.
    pub(crate) const fn rate(&self) -> Rate {
        Rate::from_bps(self.charge.bps)
    }

    /// Makes a reservation with a full bucket on a link.
    pub(crate) fn add(
        &mut self,
        link: &Link,
        id: ReservationId,
        bucket: TrafficSpec,
        filters: &[FlowSelector],
    ) -> Result<(), ReservationError> {
        if self.numbers.contains_key(&id) {
            return Err(ReservationError::Exists(id.number));
        }
        if self.numbers.len() >= self.limit {
            let (count, limit) = (self.numbers.len() + 1, self.limit);
            return Err(value("reservations", count, format!("at most {limit} in a direction")));
        }
        let policer = Policer::new(bucket)?;
        let charge = self.admit(link, &bucket, Charge::default())?;
        for (place, filter) in filters.iter().enumerate() {
            self.check_filter(filter, place)?;
            if filters[..place].contains(filter) {
                return Err(value("filters", filter, "each filter once"));
            }
        }
        let entry =
            Entry { policer, counters: ReservationCounters::default(), charge, filters: filters.to_vec() };
        let place = self.place(entry);
        for (number, filter) in filters.iter().enumerate() {
            if !self.table.add(filter, place) {
                filters[..number].iter().for_each(|filter| self.table.remove(filter));
                self.free.push(place);
                return Err(value("filters", filter, "one for which there is memory"));
            }
        }
        self.numbers.insert(id, place);
        self.set_charge(self.charge.plus(charge));
        Ok(())
    }

    fn set_charge(&mut self, charge: Charge) {
        self.charge = charge;
        let slack = Rate::from_bps(charge.bps).bytes_in(SLACK).get();
        self.room = charge.bytes.saturating_add(slack);
    }

    /// Puts an entry into a free place.
    fn place(&mut self, entry: Entry) -> u32 {
        if let Some(place) = self.free.pop() {
            self.entries[place as usize] = entry;
            return place;
        }
        self.entries.push(entry);
        self.entries.len() as u32 - 1
    }

    /// Checks a filter that is to become one of `more` further ones.
    fn check_filter(&self, filter: &FlowSelector, more: usize) -> Result<(), ReservationError> {
        let most = self.limit * FILTERS_EACH;
        flow_filter::check(filter)?;
        if self.table.has(filter) {
            return Err(value("filter", filter, "a filter that no other reservation has"));
        }
        if self.table.len() + more >= most {
            let count = self.table.len() + more + 1;
            return Err(value("filters", count, format!("at most {most} in a direction")));
        }
        Ok(())
    }

    /// Returns the rate of a reservation on the link, if all reservations together may take it; `had` is its present rate.
    fn admit(&self, link: &Link, bucket: &TrafficSpec, had: Charge) -> Result<Charge, ReservationError> {
        let largest = link.largest_packet;
        if bucket.max_packet > Bytes::new(largest.into()) {
            let longest =
                format!("at most {largest} B, the longest packet that the outgoing interface takes");
            return Err(value("max-packet", bucket.max_packet, longest));
        }
        let charge = Charge::of(link.overhead, bucket);
        let others = self.charge.minus(had);
        let most = (u128::from(link.rate.as_bps()) * SHARE / 10) as u64;
        let shrinks = charge.bps <= had.bps;
        if u128::from(others.bps) + u128::from(charge.bps) > most.into() && !shrinks {
            let left = Rate::from_bps(most.saturating_sub(others.bps));
            let given = format!("{} ({} on the link)", bucket.rate, Rate::from_bps(charge.bps));
            return Err(value(
                "rate",
                given,
                format!("at most {left} on the link, of the 9/10 of {} that can be reserved", link.rate),
            ));
        }
        if charge.bytes > had.bytes && charge.bytes > u64::MAX / 4 - others.bytes {
            return Err(value("bucket", bucket.bucket, "a sum of all buckets below 2^62 B"));
        }
        Ok(charge)
    }

    /// Changes the bucket of a reservation at `now`. Its tokens stay, as far as they fit.
    pub(crate) fn change(
        &mut self,
        now: Instant,
        link: &Link,
        id: ReservationId,
        bucket: TrafficSpec,
    ) -> Result<(), ReservationError> {
        let place = self.find(id)?;
        let had = self.entries[place].charge;
        bucket.check()?;
        let charge = self.admit(link, &bucket, had)?;
        let entry = &mut self.entries[place];
        entry.policer.change(now, bucket)?;
        entry.charge = charge;
        self.set_charge(self.charge.minus(had).plus(charge));
        Ok(())
    }

    /// Adds a filter to a reservation.
    pub(crate) fn add_filter(
        &mut self,
        id: ReservationId,
        filter: FlowSelector,
    ) -> Result<(), ReservationError> {
        let place = self.find(id)?;
        self.check_filter(&filter, 0)?;
        if !self.table.add(&filter, place as u32) {
            return Err(value("filter", filter, "one for which there is memory"));
        }
        self.entries[place].filters.push(filter);
        Ok(())
    }

    /// Removes a filter from a reservation.
    pub(crate) fn remove_filter(
        &mut self,
        id: ReservationId,
        filter: &FlowSelector,
    ) -> Result<(), ReservationError> {
        let place = self.find(id)?;
        let filters = &mut self.entries[place].filters;
        let Some(at) = filters.iter().position(|has| has == filter) else {
            return Err(value("filter", filter, "a filter of the reservation"));
        };
        filters.swap_remove(at);
        self.table.remove(filter);
        Ok(())
    }

    /// Removes a reservation. Its frames that wait have conformed and are sent.
    pub(crate) fn remove(&mut self, id: ReservationId) -> Result<(), ReservationError> {
        let place = self.find(id)?;
        self.numbers.remove(&id);
        let entry = &mut self.entries[place];
        let filters = std::mem::take(&mut entry.filters);
        for filter in &filters {
            self.table.remove(filter);
        }
        let charge = self.charge.minus(entry.charge);
        self.set_charge(charge);
        self.free.push(place as u32);
        Ok(())
    }

    /// Returns the first reservation of an owner.
    pub(crate) fn first_of(&self, owner: u64) -> Option<ReservationId> {
        let (least, most) = (ReservationId { owner, number: 0 }, ReservationId { owner, number: u64::MAX });
        self.numbers.range(least..=most).next().map(|(id, _)| *id)
    }

    /// Returns the reservations after `after` in the order of their numbers, or from the first.
    pub(crate) fn list(&self, after: Option<ReservationId>) -> impl Iterator<Item = CountedReservation> {
        use std::ops::Bound::{Excluded, Unbounded};
        let numbers = self.numbers.range((after.map_or(Unbounded, Excluded), Unbounded));
        numbers.map(|(&id, &place)| {
            let Entry { policer, counters, filters, .. } = &self.entries[place as usize];
            CountedReservation { id, bucket: *policer.spec(), filters: filters.clone(), counters: *counters }
        })
    }

    /// Computes the rates of reservations on a link whose overhead has changed.
    pub(crate) fn set_overhead(&mut self, overhead: Overhead) {
        let mut sum = Charge::default();
        for &place in self.numbers.values() {
            let entry = &mut self.entries[place as usize];
            entry.charge = Charge::of(overhead, entry.policer.spec());
            sum = sum.plus(entry.charge);
        }
        self.set_charge(sum);
    }

    fn find(&self, id: ReservationId) -> Result<usize, ReservationError> {
        self.numbers.get(&id).map(|&place| place as usize).ok_or(ReservationError::Unknown(id.number))
    }
}

/// Properties of the link that admission needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    pub(crate) rate: Rate,
    pub(crate) overhead: Overhead,
    /// The longest IP packet that the outgoing port accepts, bytes.
    pub(crate) largest_packet: u32,
}

impl Charge {
    /// Returns the rate of a bucket on a link: the size on the link of a packet that has the largest overhead for its length.
    fn of(overhead: Overhead, bucket: &TrafficSpec) -> Self {
        // Values of a checked bucket, below 2^17.
        let [least, most] = [bucket.min_policed, bucket.max_packet].map(|size| size.get() as u32);
        let sizes = least..=most.min(least.saturating_add(SIZES));
        let on_link = |length: u32| u64::from(size_on_link(overhead, length));
        let longer = |one: &u32, other: &u32| {
            (on_link(*one) * u64::from(*other)).cmp(&(on_link(*other) * u64::from(*one)))
        };
        let length = sizes.max_by(longer).unwrap_or(least);
        let scaled = |value: u64| {
            let product = u128::from(value) * u128::from(on_link(length));
            u64::try_from(product.div_ceil(length.into())).unwrap_or(u64::MAX)
        };
        Self { bps: scaled(bucket.rate.as_bps()), bytes: scaled(bucket.bucket.get()) }
    }

    const fn plus(self, other: Self) -> Self {
        Self { bps: self.bps.saturating_add(other.bps), bytes: self.bytes.saturating_add(other.bytes) }
    }

    const fn minus(self, other: Self) -> Self {
        Self { bps: self.bps.saturating_sub(other.bps), bytes: self.bytes.saturating_sub(other.bytes) }
    }
}

/// Returns the bytes of a packet that count against its bucket: the datagram, and the bytes after it in the frame beyond Ethernet's
/// padding. Otherwise long frames with short datagrams would take more of the link than was reserved.
#[inline]
fn policed_size(frame: &[u8], ip: Ip) -> u32 {
    ip_length(frame.len() as u32, ip)
}

/// Returns the size on the link of an untagged frame with an IP packet of this length.
fn size_on_link(overhead: Overhead, length: u32) -> u32 {
    let at = ETHERNET as u16;
    let ip = Ip { at, version: IpVersion::V4, traffic_class: 0, length };
    overhead.size(ETHERNET as u32 + length, &Headers { payload: at, ip: Some(ip), ..Headers::default() })
}

impl From<ParameterError> for ReservationError {
    fn from(error: ParameterError) -> Self {
        Self::Value(error)
    }
}

fn value(name: &str, value: impl std::fmt::Display, allowed: impl Into<String>) -> ReservationError {
    ParameterError::new(name, value, allowed).into()
}

impl std::fmt::Display for ReservationError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Value(error) => error.fmt(f),
            Self::Unknown(number) => write!(f, "reservation = {number}: there is none of this number"),
            Self::Exists(number) => write!(f, "reservation = {number}: there is one of this number"),
        }
    }
}

impl std::error::Error for ReservationError {}
