//! Recent rate of each flow, in memory of fixed size.
//!
//! A flow's bytes decay: bytes sent a time t ago count e^(-t / tau). So a flow that sends at a steady rate r has r tau
//! bytes, and its rate needs no window that moves.
//!
//! The table is set-associative. A salted hash of the flow chooses a set of eight cells, in two cache lines, and a
//! fingerprint of 16 bits tells the flows of a set apart. A flow that is not in its set takes the cell with the fewest
//! bytes, and inherits them (Metwally, Agrawal, El Abbadi 2005, "space saving"). So no flow ever counts less than it has sent
//! since it came, and a large flow is not forgotten because many small ones pass by. In a table with room the fewest bytes of
//! a set are next to none, because those of flows that have ended decay. In a table without room small flows share cells, and
//! count together.
//!
//! A flow that takes a cell is a newcomer for a while, unless it has been here in the last seconds: an eighth of the memory
//! records the flows that have taken a cell ([`Visitors`]). Otherwise small
//! flows that take each other's cells would be newcomers forever.
//!
//! An attacker who knows the salt can find flows that share a set, or even a fingerprint in it. With the fingerprint of a victim they count as one
//! flow with it; with eight flows in its set they take its cell, and it inherits the bytes of the least of them. The [`Salt`] changes
//! every minute, and flows move with their state. So an attack by a salt that has become known ends with it, and the inherited bytes of the victim are forgotten
//! after 16 tau more (`who_shares_a_cell_by_a_known_salt_does_not_by_the_next`).
//!
//! Times are counted in ticks of about a millisecond, in 32 bits, and compared by their difference. They wrap after 52 days: a
//! flow that has been silent for exactly that long may be taken for one that has just sent.

use crate::salt::Salt;
use crate::visitors::Visitors;
use cutline_units::{Duration, Instant, RandomStream, mix};

/// Cells of a set: two cache lines.
const WAYS: usize = 8;
/// One byte in so many records recent visitors.
const MEMORIES: usize = 8;
/// 2^20 ns are a tick.
const TICK_BITS: u32 = 20;
/// A tick, s.
pub(super) const TICK: f64 = (1_u64 << TICK_BITS) as f64 * 1e-9;
/// 2^4 ticks are the unit of a flow's age.
const AGE_BITS: u32 = 4;
/// The bit of a newcomer.
const NEW: u16 = 1 << 15;
/// The units of a surcharge's logarithm.
const SURCHARGE_UNITS: f64 = 4096.0;
/// The largest logarithm of a surcharge.
pub(super) const LARGEST_SURCHARGE: f64 = 8.0;
/// Number of times tau after which the bytes of a flow have decayed to nothing.
const FORGOTTEN: f32 = 16.0;

/// State of one flow.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(16))]
struct Cell {
    /// 0 only if the cell is unused.
    fingerprint: u16,
    /// Of a newcomer [`NEW`] and when it was seen first, in units of its age; of others the logarithm of the surcharge, in units
    /// of 1 / [`SURCHARGE_UNITS`].
    standing: u16,
    /// As of `at`.
    bytes: f32,
    /// Time of its last packet, ticks.
    at: u32,
    /// The largest weight of its packets in the lanes, ticks.
    last_weight: u32,
}

/// Cells whose flows have the same hash.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(64))]
struct Set([Cell; WAYS]);

/// Place of a flow at its previous packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// In the same cell.
    Here,
    /// In none: it has just taken its cell.
    Nowhere,
    /// In the cell of this number, where the salt before had put it.
    Moved(usize),
}

/// Answer of the table for a packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Seen {
    /// Place of the flow in the table.
    at: (u32, u8),
    origin: Origin,
    /// Recent bytes of the flow, this packet included.
    pub(super) bytes: f64,
    /// True if the flow was first seen less than the age of newcomers ago.
    pub(super) is_new: bool,
    /// The logarithm of its surcharge, and by how much that has fallen since its packet before this one.
    pub(super) surcharge: f64,
    pub(super) fallen: f64,
    /// The largest weight of its packets in the lanes, ticks.
    last_weight: u32,
    /// Time of its previous packet, ticks.
    came: u32,
}

/// The rates of all flows.
#[derive(Clone, Debug)]
pub(super) struct Rates {
    sets: Box<[Set]>,
    visitors: Visitors,
    salt: Salt,
    /// tau, ticks.
    tau: f32,
    /// The age from which a flow is no newcomer, in units of age.
    grown_up: u16,
}

impl Rates {
    /// A table of `memory` bytes, at least one set.
    pub(super) fn new(memory: u64, tau: Duration, newcomer_age: Duration) -> Self {
        Self::of_cells(memory, 0, tau, newcomer_age)
    }

    /// A table of `memory` bytes of which the caller needs `more` for every cell.
    pub(super) fn of_cells(memory: u64, more: usize, tau: Duration, newcomer_age: Duration) -> Self {
        let memory = memory as usize;
        let sets = ((memory - memory / MEMORIES) / (size_of::<Set>() + WAYS * more)).max(1);
        let age = newcomer_age.as_nanos() >> (TICK_BITS + AGE_BITS);
        Self {
            sets: vec![Set::default(); sets].into(),
            visitors: Visitors::new(memory / MEMORIES),
            salt: Salt::default(),
            tau: (tau.as_nanos() as f64 / f64::from(1_u32 << TICK_BITS)) as f32,
            grown_up: age.min(u64::from(NEW / 2)) as u16,
        }
    }

    /// Forgets every flow.
    pub(super) fn reset(&mut self) {
        self.sets.fill(Set::default());
        self.visitors.clear();
        self.salt = Salt::default();
    }

    /// Returns the number of cells.
    pub(super) const fn cells(&self) -> usize {
        self.sets.len() * WAYS
    }

    /// The share of the cells whose flows have sent within tau.
    pub(super) fn load(&self, now: Instant) -> f64 {
        let (now, tau) = (ticks(now), self.tau as u32);
        let live = |cell: &&Cell| cell.fingerprint != 0 && now.wrapping_sub(cell.at) <= tau;
        let cells = self.sets.iter().flat_map(|set| &set.0);
        cells.filter(live).count() as f64 / self.cells() as f64
    }

    /// Counts a packet of `flow`, and returns the state of the flow. The logarithm of its surcharge falls by `falling` a second.
    #[inline]
    pub(super) fn count(
        &mut self,
        now: Instant,
        flow: u32,
        size: u32,
        least_weight: Option<Instant>,
        falling: f64,
        random: &mut RandomStream,
    ) -> Seen {
        if self.salt.is_due(now) {
            self.renew_salt(now, random);
        }
        let salt = self.salt.now().expect("the first packet draws it");
        let tick = ticks(now);
        let (set, fingerprint) = self.place(flow, salt);
        let ways = &self.sets[set].0;
        let found = ways.iter().position(|cell| cell.fingerprint == fingerprint);
        let (way, came, origin) = match found {
            Some(way) => (way, ways[way].at, Origin::Here),
            None => self.move_in(now, flow, (set, fingerprint), least_weight),
        };
        let tau = self.tau;
        let cell = &mut self.sets[set].0[way];
        cell.bytes = cell.decayed(tick, tau) + size as f32;
        cell.at = tick;
        let is_new =
            cell.standing & NEW != 0 && age_units(tick).wrapping_sub(cell.standing) & !NEW < self.grown_up;
        if cell.standing & NEW != 0 && !is_new {
            cell.standing = 0;
        }
        let before = if is_new { 0 } else { cell.standing };
        let mut surcharge = before;
        if before > 0 {
            let silent = f64::from(tick.wrapping_sub(came)) * TICK;
            surcharge = changed(now, before, -falling * silent);
            cell.standing = surcharge;
        }
        Seen {
            at: (set as u32, way as u8),
            origin,
            bytes: cell.bytes.into(),
            is_new,
            surcharge: f64::from(surcharge) / SURCHARGE_UNITS,
            fallen: f64::from(before.saturating_sub(surcharge)) / SURCHARGE_UNITS,
            last_weight: cell.last_weight,
            came,
        }
    }

    /// Adds to the surcharge of a flow, as a logarithm. Newcomers have none.
    #[inline]
    pub(super) fn charge(&mut self, now: Instant, seen: &Seen, logarithm: f64) {
        let (set, way) = seen.at;
        if !seen.is_new {
            let cell = &mut self.sets[set as usize].0[usize::from(way)];
            cell.standing = changed(now, cell.standing, logarithm);
        }
    }

    /// Notes that a packet of the flow is in the lanes with that weight.
    #[inline]
    pub(super) fn stands(&mut self, seen: &Seen, weight: Instant) {
        let (set, way) = seen.at;
        let cell = &mut self.sets[set as usize].0[usize::from(way)];
        // Rounded up; a rounded value does not change: a lane whose packets each weighed a tick more than the one before would run
        // ahead of the clock, and of the other lanes.
        let weight = ticks(weight.saturating_add(Duration::from_nanos((1 << TICK_BITS) - 1)));
        if weight.wrapping_sub(cell.last_weight).cast_signed() > 0 {
            cell.last_weight = weight;
        }
    }

    #[cold]
    fn renew_salt(&mut self, now: Instant, random: &mut RandomStream) {
        let forgotten = Duration::from_nanos((f64::from(self.tau * FORGOTTEN)) as u64) * (1 << TICK_BITS);
        self.salt.draw(now, forgotten, random);
    }

    /// Takes a cell for a flow that is not in its set, with its state under the previous salt. Answers also when the flow, or the
    /// one whose cell it was, came last, ticks, and where the flow was.
    #[cold]
    #[inline(never)]
    fn move_in(
        &mut self,
        now: Instant,
        flow: u32,
        (set, fingerprint): (usize, u16),
        least_weight: Option<Instant>,
    ) -> (usize, u32, Origin) {
        let (tick, tau) = (ticks(now), self.tau);
        let known = if self.salt.is_changing(now) { self.move_out(flow) } else { None };
        let stands = |cell: &Cell| is_waiting(cell.last_weight, least_weight);
        let ways = &mut self.sets[set].0;
        // Each once: most of the time that a packet takes in a full table is that of the exponentials.
        let ranks = ways.map(|cell| (stands(&cell), cell.decayed(tick, tau)));
        let least =
            |one: &usize, other: &usize| ranks[*one].partial_cmp(&ranks[*other]).expect("bytes are numbers");
        let way = (0..WAYS).min_by(least).expect("a set has cells");
        let cell = &mut ways[way];
        let inherited = Cell { bytes: ranks[way].1, at: tick, ..*cell };
        let (taken, came, origin) = if let Some((known, before)) = known {
            let bytes = known.decayed(tick, tau) + inherited.bytes;
            let last_weight = later(known.last_weight, inherited.last_weight);
            (
                Cell { fingerprint, bytes, last_weight, at: tick, ..known },
                later(known.at, cell.at),
                Origin::Moved(before),
            )
        } else {
            let hash = mix(u64::from(flow) ^ self.salt.now().unwrap_or_default());
            let standing = if self.visitors.note(now, hash) { 0 } else { age_units(tick) };
            (Cell { fingerprint, standing, ..inherited }, cell.at, Origin::Nowhere)
        };
        *cell = taken;
        (way, came, origin)
    }

    /// Removes a flow from where the salt before had put it; answers also the number of that cell.
    fn move_out(&mut self, flow: u32) -> Option<(Cell, usize)> {
        let (set, fingerprint) = self.place(flow, self.salt.before());
        let ways = &mut self.sets[set].0;
        let way = ways.iter().position(|cell| cell.fingerprint == fingerprint)?;
        Some((std::mem::take(&mut ways[way]), set * WAYS + way))
    }

    /// Flows that an attacker who knows the salt would take: those in the set of `victim`, or even in its cell.
    #[cfg(test)]
    pub(super) fn collisions(&self, victim: u32, in_cell: bool) -> impl Iterator<Item = u32> {
        let place = |flow| self.place(flow, self.salt.now().expect("the first packet draws it"));
        let (set, fingerprint) = place(victim);
        (victim + 1..).filter(move |&flow| {
            let other = place(flow);
            other.0 == set && (other.1 == fingerprint) == in_cell
        })
    }

    /// The set of a flow, and its fingerprint there.
    #[inline]
    fn place(&self, flow: u32, salt: u64) -> (usize, u16) {
        let hash = mix(u64::from(flow) ^ salt);
        let set = ((hash >> 32) * self.sets.len() as u64) >> 32;
        (set as usize, (hash as u16).max(1))
    }
}

impl Seen {
    /// The number of the flow's cell.
    #[inline]
    pub(super) const fn place(&self) -> usize {
        self.at.0 as usize * WAYS + self.at.1 as usize
    }

    /// Returns the time of the previous packet, ticks.
    #[inline]
    pub(super) const fn came(&self) -> u32 {
        self.came
    }

    /// Returns the place of the flow at its previous packet.
    #[inline]
    pub(super) const fn origin(&self) -> Origin {
        self.origin
    }

    /// Returns whether a packet of the flow may still be in lanes whose least weight is `least`.
    #[inline]
    pub(super) fn stands(&self, least: Option<Instant>) -> bool {
        is_waiting(self.last_weight, least)
    }

    /// The largest weight of the flow's packets in the lanes, rounded up to ticks; `now` tells which of the times that look alike.
    #[inline]
    pub(super) fn last_weight(&self, now: Instant) -> Instant {
        let ahead = self.last_weight.wrapping_sub(ticks(now)).cast_signed().max(0);
        Instant::from_nanos(((now.as_nanos() >> TICK_BITS) + u64::from(ahead.cast_unsigned())) << TICK_BITS)
    }

    /// Returns whether the flow's previous packet arrived at `since` or later.
    #[inline]
    pub(super) fn came_since(&self, since: Option<Instant>) -> bool {
        since.is_some_and(|since| self.came.wrapping_sub(ticks(since)).cast_signed() >= 0)
    }
}

impl Cell {
    /// Its bytes as of `tick`.
    #[inline]
    fn decayed(&self, tick: u32, tau: f32) -> f32 {
        let age = tick.wrapping_sub(self.at) as f32 / tau;
        if age > FORGOTTEN { 0.0 } else { self.bytes * (-age).exp() }
    }
}

/// A sum of bytes that decays as those of a flow.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Decaying {
    bytes: f64,
    at: Instant,
}

impl Decaying {
    /// Adds a packet and answers the sum.
    #[inline]
    pub(super) fn add(&mut self, now: Instant, size: u32, tau: Duration) -> f64 {
        let age = now.saturating_since(self.at).as_nanos() as f64 / tau.as_nanos() as f64;
        self.bytes = self.bytes * (-age).exp() + f64::from(size);
        self.at = now;
        self.bytes
    }
}

/// Times of the table begin at 2, so that 0 is before all of them.
#[inline]
pub(super) fn ticks(at: Instant) -> u32 {
    ((at.as_nanos() >> TICK_BITS) as u32).wrapping_add(2)
}

/// A time in units of a flow's age, as newcomers have it.
#[inline]
const fn age_units(tick: u32) -> u16 {
    (tick >> AGE_BITS) as u16 | NEW
}

#[inline]
fn is_waiting(last_weight: u32, least: Option<Instant>) -> bool {
    least.is_some_and(|least| last_weight.wrapping_sub(ticks(least)).cast_signed() >= 0)
}

/// A surcharge after a change of its logarithm.
#[inline]
fn changed(now: Instant, surcharge: u16, change: f64) -> u16 {
    // Most changes are less than a unit, so rounding up or down must be random.
    let dither = (mix(now.as_nanos()) >> 40) as f64 / f64::from(1 << 24);
    let changed = (f64::from(surcharge) + change * SURCHARGE_UNITS + dither).floor();
    changed.clamp(0.0, (LARGEST_SURCHARGE * SURCHARGE_UNITS).min(f64::from(NEW - 1))) as u16
}

/// The later of two times in ticks.
fn later(one: u32, other: u32) -> u32 {
    if one.wrapping_sub(other).cast_signed() >= 0 { one } else { other }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutline_units::Streams;

    const TAU: Duration = Duration::from_millis(250);
    const AGE: Duration = Duration::from_millis(200);

    fn stream() -> RandomStream {
        Streams::new(1).stream("queue", "drop")
    }

    fn at_ms(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn a_set_is_two_cache_lines() {
        assert_eq!((size_of::<Cell>(), size_of::<Set>()), (16, 128));
    }

    #[test]
    fn surcharges_grow_and_fall() {
        let (mut rates, mut random) = (Rates::new(65_536, TAU, AGE), stream());
        // Ten packets a millisecond, and one each 20 ms: for four seconds 0.02 more a second than it falls, and then nothing more.
        for (flow, every_us) in [(1, 100), (2, 20_000)] {
            let mut last = 0.0;
            for number in 0..8_000_000 / every_us {
                let now = Instant::ZERO + Duration::from_micros(number * every_us);
                let seen = rates.count(now, flow, 100, None, 0.01, &mut random);
                last = seen.surcharge;
                if number * every_us < 4_000_000 {
                    rates.charge(now, &seen, 0.03 * every_us as f64 * 1e-6);
                } else if number * every_us == 4_000_000 {
                    assert!((last - 0.08).abs() < 0.025, "{last}");
                }
            }
            assert!((last - 0.04).abs() < 0.025, "{last}");
        }
        let seen = rates.count(at_ms(8000), 3, 100, None, 0.0, &mut random);
        rates.charge(at_ms(8000), &seen, 1.0);
        let seen = rates.count(at_ms(8010), 3, 100, None, 0.0, &mut random);
        assert_eq!(seen.surcharge, 0.0, "a newcomer has none");
    }

    #[test]
    fn bytes_decay() {
        let (mut rates, mut random) = (Rates::new(65_536, TAU, AGE), stream());
        rates.count(at_ms(0), 7, 1000, None, 0.0, &mut random);
        let seen = rates.count(at_ms(250), 7, 0, None, 0.0, &mut random);
        // 1000 / e, with times in ticks of 1.05 ms
        assert!((seen.bytes - 367.9).abs() < 3.0, "{}", seen.bytes);
        // A steady 1 MB/s is tau MB.
        for ms in 250..3000 {
            rates.count(at_ms(ms), 8, 1000, None, 0.0, &mut random);
        }
        let steady = rates.count(at_ms(3000), 8, 0, None, 0.0, &mut random).bytes;
        assert!((steady / 250_000.0 - 1.0).abs() < 0.01, "{steady}");
    }

    #[test]
    fn a_table_that_is_full_never_counts_too_little() {
        // 56 cells for 200 flows, of which flow 0 sends a hundred times as much as each other one.
        let (mut rates, mut random) = (Rates::new(1024, TAU, AGE), stream());
        let mut sums = vec![Decaying::default(); 200];
        for i in 0..200_000_u32 {
            let now = Instant::ZERO + Duration::from_micros(20) * u64::from(i);
            let flow = if i % 3 == 0 { 0 } else { i * 7 % 199 + 1 };
            let least = sums[flow as usize].add(now, 100, TAU);
            let counted = rates.count(now, flow, 100, None, 0.0, &mut random).bytes;
            assert!(counted > 0.98 * least - 100.0, "flow {flow}: {counted} of {least}");
            if flow == 0 && i > 100_000 {
                assert!(counted < 1.1 * least, "the large one has a cell of its own: {counted}, {least}");
            }
        }
    }

    #[test]
    fn salts_change_without_forgetting() {
        let (mut rates, mut random) = (Rates::new(65_536, TAU, AGE), stream());
        let mut places = Vec::new();
        // 130 s: two changes of the salt.
        for i in 0..13_000 {
            let seen = rates.count(at_ms(10 * i), 5, 1000, None, 0.0, &mut random);
            let steady = 1000.0 / (1.0 - (-10.0_f64 / 250.0).exp());
            assert!(i < 200 || (seen.bytes / steady - 1.0).abs() < 0.05, "{i}: {} {steady}", seen.bytes);
            // 200 ms are eleven units of age, a little less.
            assert_eq!(seen.is_new, i < 19, "{i}");
            places.push(seen.at);
        }
        places.dedup();
        assert_eq!(places.len(), 3, "it moved twice");
    }

    /// A victim's bytes, over its own recent bytes, in each second of an attack from flows that were chosen by the first salt.
    fn victim_of(attackers: impl Fn(&Rates) -> Vec<u32>) -> Vec<f64> {
        let (mut rates, mut random) = (Rates::new(65_536, TAU, AGE), stream());
        let (mut own, mut ratios) = (Decaying::default(), Vec::new());
        rates.count(at_ms(0), 1, 0, None, 0.0, &mut random);
        let attackers = attackers(&rates);
        for ms in 1..90_000 {
            for &flow in &attackers {
                rates.count(at_ms(ms), flow, 1000, None, 0.0, &mut random);
            }
            if ms % 20 == 0 {
                let sent = own.add(at_ms(ms), 200, TAU);
                let counted = rates.count(at_ms(ms), 1, 200, None, 0.0, &mut random).bytes;
                if ms % 1000 == 0 {
                    ratios.push(counted / sent);
                }
            }
        }
        ratios
    }

    #[test]
    fn who_shares_a_cell_by_a_known_salt_does_not_by_the_next() {
        let in_cell = |rates: &Rates| rates.collisions(1, true).take(1).collect();
        let in_set = |rates: &Rates| rates.collisions(1, false).take(8).collect();
        for ratios in [victim_of(in_cell), victim_of(in_set)] {
            // 1 MB/s of each attacker, 10 kB/s of the victim; the salt is drawn again after 60 s, and 16 tau are 4 s.
            assert!(ratios[10..59].iter().all(|&ratio| ratio > 50.0), "{ratios:?}");
            assert!(ratios[65..].iter().all(|&ratio| ratio < 1.05), "{ratios:?}");
        }
    }

    #[test]
    fn who_was_here_lately_is_no_newcomer() {
        // 448 cells for 1000 flows, which take each other's.
        let (mut rates, mut random) = (Rates::new(8192, TAU, AGE), stream());
        let new = |rates: &mut Rates, random: &mut RandomStream, ms: u64| {
            (0..1000).filter(|&flow| rates.count(at_ms(ms), flow, 100, None, 0.0, random).is_new).count()
        };
        assert!(new(&mut rates, &mut random, 0) > 750, "but for those that look like others");
        assert!(new(&mut rates, &mut random, 1000) < 10);
        assert!(new(&mut rates, &mut random, 3000) < 10, "the older filter still knows them");
        assert!(new(&mut rates, &mut random, 10_000) > 500, "those without a cell are forgotten");
    }

    #[test]
    fn packets_behind_each_other_do_not_run_ahead_of_the_clock() {
        let (mut rates, mut random) = (Rates::new(65_536, TAU, AGE), stream());
        // A burst of packets, each of which weighs 33 ms more than the time, but at least as much as the one before.
        let weight = at_ms(33);
        for number in 0..1000 {
            let now = Instant::ZERO + Duration::from_nanos(number);
            let seen = rates.count(now, 1, 1000, None, 0.0, &mut random);
            let last = seen.last_weight(now);
            assert!(last <= weight + Duration::from_millis(2), "packet {number}: {last:?}");
            rates.stands(&seen, weight.max(last));
        }
    }

    #[test]
    fn what_stands_in_the_lanes_is_known_until_it_has_left() {
        let (mut rates, mut random) = (Rates::new(65_536, TAU, AGE), stream());
        let seen = rates.count(at_ms(0), 1, 1000, None, 0.0, &mut random);
        rates.stands(&seen, at_ms(80));
        rates.stands(&seen, at_ms(60));
        let seen = rates.count(at_ms(10), 1, 1000, None, 0.0, &mut random);
        assert!(seen.stands(Some(at_ms(80))) && seen.stands(Some(at_ms(20))));
        assert!(!seen.stands(Some(at_ms(83))) && !seen.stands(None));
        assert!(!rates.count(at_ms(10), 2, 1000, None, 0.0, &mut random).stands(Some(at_ms(0))));
    }
}
