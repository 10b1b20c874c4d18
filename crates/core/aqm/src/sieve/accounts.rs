//! Accounts of flows and of hosts, in memory of fixed size.
//!
//! An account is a finish: the virtual time at which the next packet of a flow may start. Nothing has to be kept of a flow whose finish is
//! below the floor, because its next packet starts at the floor. So the accounts that matter are those of flows that have sent
//! within tau, and the one that owes least is given up first.
//!
//! The table is set-associative: a salted hash of the flow chooses two sets of eight cells. A flow that is in neither takes a cell
//! that has been unused for some seconds; if there is none, that of the flow without waiting packets that owes least, and inherits its debt
//! (Metwally, Agrawal, El Abbadi 2005, "space saving"). So no flow gains by taking a cell, and a flow that sends much is not forgotten because
//! many small ones pass by. The choice between two sets lets sets of eight fill up evenly (Azar, Broder, Karlin, Upfal 1999): with one set, three
//! in a thousand of 1,000 flows have no cell in 64 kB, and share an account. If packets of all sixteen wait, the flow shares an account
//! with one of them, as flows do that have the same hash in other queues. Its wait is then that of an account, and not its own choice: its hint
//! does not count, and the price has no grace. A flow that takes a cell is new for a while, unless it has been here in the last seconds ([`Visitors`]).
//!
//! An attacker who knows the salt can find sixteen flows that share both sets with a victim, and take its cell. The [`Salt`] changes every
//! minute, and a flow moves with its account, for [`SILENCE`] after the change.

use super::salt::Salt;
use super::visitors::Visitors;
use cutline_units::{Duration, Instant, RandomStream, mix};

/// Cells of a set: three cache lines.
const WAYS: usize = 8;
/// One byte in so many records recent visitors.
const MEMORIES: usize = 8;
/// 2^20 ns are a tick.
const TICK_BITS: u32 = 20;
/// 2^4 ticks are the unit of a flow's age.
const AGE_BITS: u32 = 4;
/// Bits of a cell that is used, and of a flow that has just come; the others are its birth, in units of age.
const USED: u16 = 1 << 15;
const NEW: u16 = 1 << 14;
/// The bit of a flow that its host counts among those that wait.
const COUNTED: u16 = 1 << 13;
/// The bit of a new flow that has been behind the floor once.
const BEHIND: u16 = 1 << 12;
/// The bit of a flow that has been warned since it came.
const WARNED: u16 = 1 << 11;
const BIRTH: u16 = WARNED - 1;
/// The bit of a flow, not new, that has a second finish. It is one of those of the birth, which only new flows have.
const SECOND: u16 = 1;
/// The bits, likewise, of an account that a scalable sender shares with others: the number of packets of scalable senders until it counts
/// as theirs alone. [`OTHERS`] after one of another sender.
const SHARED: u16 = OTHERS << SHARED_BITS;
const SHARED_BITS: u32 = 1;
const OTHERS: u16 = 63;
/// Unit of the distance of another finish, B.
const UNIT: f64 = 1024.0;
/// After so long a silence a flow is forgotten.
const SILENCE: Duration = Duration::from_secs(4);

/// The largest age of a new flow, in units of age. A flow that is silent for [`SILENCE`] more is forgotten before its age wraps.
const OLDEST: u16 = BIRTH - (silence() >> AGE_BITS) as u16 - 1;

/// The account of a flow, or of a host.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(8))]
pub(super) struct Account {
    /// Virtual time at which its next packet may start, B; of a host, the next packet of its new flows.
    pub(super) finish: f64,
    id: u32,
    /// Time of its last packet, ticks.
    at: u32,
    /// Of a new flow, its lag: the part of the finish that is not its own but that of all new flows. Of another flow, the distance
    /// of its second finish, if it has one. In units of [`UNIT`].
    distance: u16,
    /// Time until which it counts as warned, ticks.
    warned_until: u16,
    /// Of a flow, the packets that wait; of a host, its flows that have packets waiting, without new ones.
    pub(super) waiting: u16,
    state: u16,
}

/// Number of an account in its table.
pub(super) type Place = u32;

/// The accounts of all flows, or of all hosts.
#[derive(Clone, Debug)]
pub(super) struct Accounts {
    cells: Box<[Account]>,
    visitors: Visitors,
    salt: Salt,
    /// End of the time in which there may be packets of flows that shared an account because all cells of their set were taken.
    shared_until: Instant,
    /// The salt that was in use when flows began to share accounts. They share the same ones until none does.
    guests_salt: u64,
    /// The age from which a flow is no newcomer, in units of age.
    grown_up: u16,
}

impl Accounts {
    /// A table of `memory` bytes, at least one set.
    pub(super) fn new(memory: u64, newcomer_age: Duration) -> Self {
        let memory = memory as usize;
        let sets = ((memory - memory / MEMORIES) / (WAYS * size_of::<Account>())).max(1);
        let age = newcomer_age.as_nanos() >> (TICK_BITS + AGE_BITS);
        Self {
            cells: vec![Account::default(); sets * WAYS].into(),
            visitors: Visitors::new(memory / MEMORIES),
            salt: Salt::default(),
            shared_until: Instant::ZERO,
            guests_salt: 0,
            grown_up: age.min(u64::from(OLDEST)) as u16,
        }
    }

    /// Forgets every account.
    pub(super) fn reset(&mut self) {
        self.cells.fill(Account::default());
        self.visitors.clear();
        self.salt = Salt::default();
        self.shared_until = Instant::ZERO;
    }

    /// The share of the cells whose flows have sent within `tau`.
    pub(super) fn load(&self, now: Instant, tau: Duration) -> f64 {
        let (now, tau) = (ticks(now), (tau.as_nanos() >> TICK_BITS) as u32);
        let live = |cell: &&Account| cell.state & USED != 0 && now.wrapping_sub(cell.at) <= tau;
        self.cells.iter().filter(live).count() as f64 / self.cells.len() as f64
    }

    /// Moves the finishes that follow from the bytes of all new flows by `part` of their distance to `v`.
    #[cold]
    pub(super) fn bring_nearer(&mut self, v: f64, part: f64) {
        for cell in self.cells.iter_mut().filter(|cell| cell.has_lag()) {
            cell.finish = nearer(cell.finish, v, part);
            cell.distance = (f64::from(cell.distance) * part).ceil() as u16;
        }
    }

    /// The account in a place.
    #[inline]
    pub(super) fn at(&mut self, place: Place) -> &mut Account {
        &mut self.cells[place as usize]
    }

    /// Finds the account of a flow, or takes a cell for it, and notes that a packet of it has come. Answers also whether the flow is new.
    #[inline]
    pub(super) fn find(
        &mut self,
        now: Instant,
        id: u32,
        floor: f64,
        random: &mut RandomStream,
    ) -> (Place, bool) {
        if self.salt.is_due(now) {
            self.salt.draw(now, SILENCE, random);
        }
        let tick = ticks(now);
        let sets = self.sets_of(id, self.salt.now().unwrap_or_default());
        let place = self.in_set(id, sets[0]).unwrap_or_else(|| self.find_elsewhere(now, id, sets, floor));
        let cell = &mut self.cells[place];
        if tick.wrapping_sub(cell.at) > silence() && cell.waiting == 0 {
            cell.state = USED | NEW | birth(tick);
            cell.warned_until = tick as u16;
        }
        cell.at = tick;
        let mut is_new = cell.state & NEW != 0;
        if is_new && birth(tick).wrapping_sub(cell.state) & BIRTH >= self.grown_up {
            cell.state &= !(NEW | BEHIND | BIRTH);
            is_new = false;
        }
        (place as Place, is_new)
    }

    /// The name of the account in a place.
    #[inline]
    pub(super) const fn name(&self, place: Place) -> u32 {
        self.cells[place as usize].id
    }

    /// Notes that a packet waits that was charged to the account in a place. Answers the account's name, and whether its host has to
    /// count it from now on: it is not new, and the host does not yet.
    #[inline]
    pub(super) fn note_waiting(&mut self, place: Place) -> (u32, bool) {
        let cell = &mut self.cells[place as usize];
        cell.waiting = cell.waiting.saturating_add(1);
        let begins = cell.state & (NEW | COUNTED) == 0;
        if begins {
            cell.state |= COUNTED;
        }
        (cell.id, begins)
    }

    /// Notes that a packet has left whose account has this name, and was in this place. Answers whether its host has counted the
    /// account, and has to no longer: no packet waits.
    #[inline]
    pub(super) fn note_left(&mut self, place: Place, id: u32) -> bool {
        let Some(cell) = self.look(place, id) else { return false };
        cell.waiting = cell.waiting.saturating_sub(1);
        let ends = cell.waiting == 0 && cell.state & COUNTED != 0;
        if ends {
            cell.state &= !COUNTED;
        }
        ends
    }

    /// The account of this name in this place. That of a packet that waits is never given up.
    #[inline]
    pub(super) fn look(&mut self, place: Place, id: u32) -> Option<&mut Account> {
        Some(&mut self.cells[place as usize]).filter(|cell| cell.id == id)
    }

    /// The place of an account in a set.
    #[inline]
    fn in_set(&self, id: u32, first: usize) -> Option<usize> {
        let set = &self.cells[first..first + WAYS];
        set.iter().position(|cell| cell.id == id && cell.state & USED != 0).map(|way| first + way)
    }

    /// Finds a flow that is not in its first set: in its second one, or a cell for it.
    #[cold]
    #[inline(never)]
    fn find_elsewhere(&mut self, now: Instant, id: u32, sets: [usize; 2], floor: f64) -> usize {
        self.in_set(id, sets[1]).unwrap_or_else(|| self.move_in(now, id, sets, floor))
    }

    /// Finds a cell for a flow that has none, and answers its place. The flow takes one of which no packets wait, with its account by the salt
    /// before. If packets of all wait, it is a guest: it shares an account.
    fn move_in(&mut self, now: Instant, id: u32, sets: [usize; 2], floor: f64) -> usize {
        let tick = ticks(now);
        let has_guests = now < self.shared_until;
        // As long as the table has no room, flows may have to stay in their cells by the salt before.
        let is_changing = has_guests || self.salt.is_changing(now);
        let sets_before = is_changing.then(|| self.sets_of(id, self.salt.before()));
        let before = sets_before.into_iter().flatten().find_map(|first| self.in_set(id, first));
        if before.is_none() && has_guests {
            // It may have packets that are charged to the account that it shared: it stays behind them.
            let place = self.shared_by(id);
            if self.cells[place].waiting > 0 {
                self.shared_until = now.saturating_add(SILENCE);
                return place;
            }
        }
        // Cells of which packets wait come last, and those of flows that have been silent for long first; then by the smallest debt.
        let rank = |cell: &Account| {
            let is_live = cell.state & USED != 0 && tick.wrapping_sub(cell.at) <= silence();
            u64::from(cell.waiting > 0) << 63 | u64::from(is_live) << 62 | cell.finish.max(0.0).to_bits() >> 2
        };
        let ways = sets.iter().flat_map(|&first| first..first + WAYS);
        let place = ways.min_by_key(|place| rank(&self.cells[*place])).expect("a set has cells");
        let taken = self.cells[place];
        if taken.waiting > 0 {
            return before.unwrap_or_else(|| {
                if !has_guests {
                    self.guests_salt = self.salt.now().unwrap_or_default();
                }
                self.shared_until = now.saturating_add(SILENCE);
                self.shared_by(id)
            });
        }
        let inherited = if taken.finish > floor { taken.finish } else { 0.0 };
        self.cells[place] = if let Some(before) = before {
            // Packets that wait stay with the cell before, until they have left.
            let known = self.cells[before];
            if known.waiting == 0 {
                self.cells[before] = Account::default();
            }
            let finish = known.finish.max(inherited);
            Account { finish, distance: 0, waiting: 0, state: known.state & !COUNTED, ..known }
        } else {
            let hash = mix(u64::from(id) ^ self.salt.now().unwrap_or_default());
            let was_here = self.visitors.note(now, hash);
            let state = if was_here { USED } else { USED | NEW | birth(tick) };
            Account {
                finish: inherited,
                id,
                at: tick,
                distance: 0,
                warned_until: tick as u16,
                waiting: 0,
                state,
            }
        };
        place
    }

    /// The place of the account that a flow without a cell shares.
    fn shared_by(&self, id: u32) -> usize {
        self.sets_of(id, self.guests_salt)[0] + id as usize % WAYS
    }

    /// Returns whether flows share accounts.
    #[cfg(test)]
    pub(super) fn has_guests(&self, now: Instant) -> bool {
        now < self.shared_until
    }

    /// Flows that an attacker who knows the salt would take: those in the set of `victim`.
    #[cfg(test)]
    pub(super) fn collisions(&self, victim: u32) -> impl Iterator<Item = u32> {
        let sets = |flow| self.sets_of(flow, self.salt.now().unwrap_or_default());
        let of_victim = sets(victim);
        (victim + 1..).filter(move |&flow| sets(flow).iter().all(|set| of_victim.contains(set)))
    }

    /// Numbers of the first cells of a flow's two sets.
    #[inline]
    fn sets_of(&self, id: u32, salt: u64) -> [usize; 2] {
        let sets = (self.cells.len() / WAYS) as u64;
        let hash = mix(u64::from(id) ^ salt);
        [hash >> 32, hash & 0xffff_ffff].map(|half| ((half * sets) >> 32) as usize * WAYS)
    }
}

impl Account {
    /// Returns whether its host counts it among the flows that wait.
    #[inline]
    pub(super) const fn is_counted(&self) -> bool {
        self.state & COUNTED != 0
    }

    /// Returns whether the distance is that of a second finish, and no lag.
    #[inline]
    const fn has_second(&self) -> bool {
        self.state & (NEW | SECOND) == SECOND
    }

    /// Virtual times at which the next packet may start: behind those that wait, and if the flow had not been new.
    #[inline]
    pub(super) fn finishes(&mut self) -> (f64, f64) {
        if self.has_second() {
            return (self.finish, self.finish);
        }
        let own = self.finish - f64::from(self.distance) * UNIT;
        if self.waiting == 0 {
            (self.finish, self.distance) = (own, 0);
        }
        (self.finish, own)
    }

    /// Returns the finish that the flow would have if no unused share were kept for it.
    #[inline]
    pub(super) fn second_finish(&self) -> f64 {
        if self.has_second() { self.finish + f64::from(self.distance) * UNIT } else { self.finish }
    }

    /// Sets the second finish, to the unit, unless the flow is new, or was when its waiting packets came. As long as both finishes
    /// advance together, their distance is exact.
    #[inline]
    pub(super) fn set_second_finish(&mut self, second: f64) {
        if self.state & NEW == 0 && !self.has_lag() {
            self.state |= SECOND;
            self.distance = ((second - self.finish) * (1.0 / UNIT)).round() as u16;
        }
    }

    /// Returns whether the flow, which is new, is behind the floor, or has been since it came.
    #[inline]
    pub(super) fn is_behind(&mut self, is_now: bool) -> bool {
        if is_now {
            self.state |= BEHIND;
        }
        self.state & BEHIND != 0
    }

    /// Sets the finish, of which this much is not the flow's own, B. The second finish stays as far away.
    #[inline]
    pub(super) fn set_finish(&mut self, finish: f64, lag: f64) {
        self.finish = finish;
        if !self.has_second() {
            self.distance = (lag * (1.0 / UNIT)).ceil() as u16;
        }
    }

    /// Returns whether packets may wait whose place follows from the bytes of all new flows.
    #[inline]
    pub(super) const fn has_lag(&self) -> bool {
        self.distance > 0 && !self.has_second()
    }

    /// Notes a packet. Returns whether it is one of a scalable sender that shares the account with others: one of the last [`OTHERS`]
    /// packets was theirs. Of a new flow that is not known.
    #[inline]
    pub(super) const fn is_shared_by(&mut self, is_scalable: bool) -> bool {
        if self.state & NEW != 0 {
            return false;
        }
        if !is_scalable {
            self.state |= SHARED;
            return false;
        }
        let is_shared = self.state & SHARED != 0;
        if is_shared {
            self.state -= 1 << SHARED_BITS;
        }
        is_shared
    }

    /// Returns whether the flow has been warned since it came.
    #[inline]
    pub(super) const fn was_warned(&self) -> bool {
        self.state & WARNED != 0
    }

    /// Returns whether the flow was warned less than `round_trip` ago, with which [`Self::warn`] was called.
    #[inline]
    pub(super) fn is_warned(&self, now: Instant, round_trip: Duration) -> bool {
        // The ticks wrap after 69 s: a warning of long ago would seem to lie ahead.
        let left = self.warned_until.wrapping_sub(ticks(now) as u16);
        left > 0 && u64::from(left) <= (round_trip.as_nanos() >> TICK_BITS) + 1
    }

    /// Notes that a packet of the flow is dropped or marked, which it learns of within `round_trip`.
    #[inline]
    pub(super) fn warn(&mut self, now: Instant, round_trip: Duration) {
        self.warned_until = ticks(now.saturating_add(round_trip)) as u16;
        self.state |= WARNED;
    }
}

/// The time of a packet, in ticks. They wrap after 52 days.
#[inline]
const fn ticks(now: Instant) -> u32 {
    (now.as_nanos() >> TICK_BITS) as u32
}

/// [`SILENCE`] in ticks.
const fn silence() -> u32 {
    (SILENCE.as_nanos() >> TICK_BITS) as u32
}

/// A time in units of age.
const fn birth(tick: u32) -> u16 {
    (tick >> AGE_BITS) as u16 & BIRTH
}

/// A virtual time at `part` of its distance to `v`, if it is after `v`.
#[inline]
pub(super) fn nearer(time: f64, v: f64, part: f64) -> f64 {
    if time > v { v + (time - v) * part } else { time }
}
