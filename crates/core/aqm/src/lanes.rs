//! The order of TSQ's queue: 2^n FIFO lanes, of which the head with the least weight goes next.
//!
//! The paper sorts the queue by weight `w = d td / 2^n + ta` (TSQ eq. 2) with a skip list. But packets of one hint never
//! change order: while a time t passes, the drain time td falls by at most t, so w of one hint never falls. One FIFO lane
//! per hint is therefore sorted. Merging the lanes by their heads gives the paper's order exactly, without a tree of
//! packets and without an allocation per packet.
//!
//! - **Next out**: a tree of minima over the lanes' heads, n levels deep. Equal weights leave in the order of
//!   arrival, so a key is (weight, arrival number, lane) in 128 bits.
//! - **Bytes ahead** of a new weight, the q' of TSQ. Lanes whose last weight is not above the new one count with all
//!   bytes; as long as the rate does not change, these are the lanes of the same and of smaller hints. In each other lane
//!   the place of the new weight is found, and the difference of two running byte counts is the number of bytes behind it. The place
//!   only moves towards the tail of a lane, so one *cursor* per pair of lanes remembers it. A search starts at the cursor:
//!   the next few packets at once, then doubling steps. Nothing is computed unless it is needed.
//!
//! A changed rate or rounding can yield a weight below the last one of its lane. It is raised to that one
//! ([`Lanes::fit`]): order within a hint comes before order between hints. A weight below the one that the cursors were
//! moved for sends them back to the start.
//!
//! **Memory**: a lane grows by doubling and keeps its room. A sender that fills one lane after another would make them as
//! large together as 2^n queues. So when a lane grows, the others free their unused room if the room of all lanes
//! would exceed four times the largest backlog. Between two such times at least that backlog enters, and the cost of a
//! packet stays constant. A packet for which a lane cannot grow is refused.

use crate::Backlog;
use crate::lane::{Entry, FIRST_SLOTS, Lane};
use cutline_units::{HintBits, Instant};

/// A queue of packets sorted by weight, in which packets of one lane keep their order.
#[derive(Clone, Debug)]
pub struct Lanes<P> {
    fifos: Box<[Lane<P>]>,
    heads: LeastHead,
    /// The weight of each lane's last packet; zero for an empty lane.
    last: Box<[Instant]>,
    cursors: Cursors,
    /// The number of the next packet to enter.
    next_number: u64,
    backlog: Backlog,
    /// The largest backlog with which a lane has grown, packets.
    largest: usize,
}

/// The room of all lanes together, in units of the largest backlog, above which they free their unused room.
const MOST_ROOM: usize = 4;

impl<P: Copy> Lanes<P> {
    /// 2^n empty lanes.
    pub fn new(bits: HintBits) -> Self {
        let n = usize::from(bits.levels());
        Self {
            fifos: vec![Lane::new(); n].into(),
            heads: LeastHead::new(n),
            last: vec![Instant::ZERO; n].into(),
            cursors: Cursors::new(n),
            next_number: 0,
            backlog: Backlog::default(),
            largest: 0,
        }
    }

    /// The weight that a packet of weight `w` gets in a lane: not below that of the lane's last packet.
    #[inline]
    pub fn fit(&self, lane: usize, w: Instant) -> Instant {
        w.max(self.last[lane])
    }

    /// The bytes that would leave before a packet of weight `w` in `lane`: those of all packets whose weight
    /// is not above `w`. Weights of one lane should not fall from call to call; it costs a search if they do.
    pub fn bytes_ahead(&mut self, lane: usize, w: Instant) -> u64 {
        let cursors = self.cursors.row(lane, w);
        let mut behind = 0;
        for (other, (&last, cursor)) in self.last.iter().zip(cursors).enumerate() {
            if last > w {
                behind += self.fifos[other].bytes_behind(w, cursor);
            }
        }
        self.backlog.bytes - behind
    }

    /// Adds a packet at the end of its lane, behind equal weights elsewhere. Its weight is made to
    /// [`fit`](Self::fit). Returns false, and adds nothing, if there is no memory for it.
    #[inline]
    #[must_use]
    pub fn push(&mut self, lane: usize, entry: Entry<P>) -> bool {
        if self.fifos[lane].is_full() {
            return self.grow_and_push(lane, entry);
        }
        self.push_into_room(lane, entry);
        true
    }

    #[cold]
    #[inline(never)]
    fn grow_and_push(&mut self, lane: usize, entry: Entry<P>) -> bool {
        let has_grown = self.grow(lane, entry.packet);
        if has_grown {
            self.push_into_room(lane, entry);
        }
        has_grown
    }

    #[inline]
    fn push_into_room(&mut self, lane: usize, mut entry: Entry<P>) {
        entry.weight = self.fit(lane, entry.weight);
        let number = self.next_number;
        self.next_number += 1;
        if self.fifos[lane].is_empty() {
            self.heads.set(lane, head_of(entry.weight, number, lane));
        }
        self.last[lane] = entry.weight;
        self.fifos[lane].push(number, entry);
        self.backlog.add(entry.size);
    }

    /// Makes room for more packets in a lane that is full, if there is memory for it. Unused room holds `filler`.
    fn grow(&mut self, lane: usize, filler: P) -> bool {
        self.largest = self.largest.max(self.backlog.packets as usize);
        let after = self.room() - self.fifos[lane].room() + self.fifos[lane].next_room();
        let is_too_much = after > MOST_ROOM * self.largest + FIRST_SLOTS * self.len();
        if is_too_much {
            self.shrink();
        }
        self.fifos[lane].grow(filler) || {
            self.shrink();
            self.fifos[lane].grow(filler)
        }
    }

    fn shrink(&mut self) {
        self.fifos.iter_mut().for_each(Lane::shrink);
    }

    /// Returns the capacity of all lanes, in packets.
    fn room(&self) -> usize {
        self.fifos.iter().map(Lane::room).sum()
    }

    /// Takes the packet of least weight, and of those the one that came first.
    #[inline]
    pub fn pop(&mut self) -> Option<Entry<P>> {
        let lane = self.heads.lane()?;
        let fifo = &mut self.fifos[lane];
        let entry = fifo.pop()?;
        if let Some((weight, number)) = fifo.head() {
            self.heads.set(lane, head_of(weight, number, lane));
        } else {
            self.heads.set(lane, NO_HEAD);
            self.last[lane] = Instant::ZERO;
        }
        self.backlog.remove(entry.size);
        Some(entry)
    }

    /// Returns the backlog of all lanes.
    #[inline]
    pub const fn backlog(&self) -> Backlog {
        self.backlog
    }

    /// The number of lanes.
    #[inline]
    pub const fn len(&self) -> usize {
        self.last.len()
    }

    /// Returns whether all lanes are empty.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.backlog.packets == 0
    }
}

/// For every lane that a packet may join, the place of its weight in every lane.
#[derive(Clone, Debug)]
struct Cursors {
    /// Positions, a row per joining lane.
    places: Box<[u64]>,
    /// The weight for which each row was last moved.
    moved_for: Box<[Instant]>,
}

impl Cursors {
    fn new(lanes: usize) -> Self {
        Self { places: vec![0; lanes * lanes].into(), moved_for: vec![Instant::ZERO; lanes].into() }
    }

    /// The places for packets that join `lane`, none of them beyond the place of `w`.
    #[inline]
    fn row(&mut self, lane: usize, w: Instant) -> &mut [u64] {
        let lanes = self.moved_for.len();
        let row = &mut self.places[lane * lanes..(lane + 1) * lanes];
        if w < self.moved_for[lane] {
            row.fill(0);
        }
        self.moved_for[lane] = w;
        row
    }
}

/// The least of the lanes' heads: a complete binary tree of minima in an array, root at 1, leaves from
/// `lanes` on (as in a tournament; Knuth, TAOCP vol. 3, 5.4.1).
#[derive(Clone, Debug)]
struct LeastHead {
    minima: Box<[Head]>,
}

/// Weight, arrival number and lane of a lane's head, from the highest bits to the lowest.
type Head = u128;

/// The head of an empty lane: behind all others.
const NO_HEAD: Head = Head::MAX;

/// Bits of a head that hold the lane.
const LANE_BITS: u32 = 8;

/// The arrival number has 56 bits, which last for two years at a packet per nanosecond.
#[inline]
fn head_of(weight: Instant, number: u64, lane: usize) -> Head {
    (Head::from(weight.as_nanos()) << 64) | Head::from(number << LANE_BITS | lane as u64)
}

impl LeastHead {
    fn new(lanes: usize) -> Self {
        Self { minima: vec![NO_HEAD; 2 * lanes].into() }
    }

    /// Sets a lane's head and carries the minimum up to the root.
    #[inline]
    fn set(&mut self, lane: usize, head: Head) {
        match self.minima.len() {
            4 => self.carry_up::<4>(lane, head),
            8 => self.carry_up::<8>(lane, head),
            16 => self.carry_up::<16>(lane, head),
            32 => self.carry_up::<32>(lane, head),
            64 => self.carry_up::<64>(lane, head),
            128 => self.carry_up::<128>(lane, head),
            256 => self.carry_up::<256>(lane, head),
            _ => self.carry_up::<512>(lane, head),
        }
    }

    /// [`LeastHead::set`] in a tree of `SIZE` places. A known size lets the compiler unroll the way up, and only
    /// outside of a loop does it choose without a branch, which would be guessed wrong every other time.
    #[inline]
    fn carry_up<const SIZE: usize>(&mut self, lane: usize, head: Head) {
        let minima: &mut [Head; SIZE] = self.minima.first_chunk_mut().expect("the tree has this size");
        let mut at = (SIZE / 2) | (lane & (SIZE / 2 - 1));
        let mut first = head;
        minima[at] = head;
        for _ in 1..SIZE.ilog2() {
            first = first.min(minima[at ^ 1]);
            at /= 2;
            minima[at] = first;
        }
    }

    /// The lane whose head is least, if any lane has one.
    #[inline]
    fn lane(&self) -> Option<usize> {
        let first = self.minima[1];
        (first != NO_HEAD).then_some(first as usize & ((1 << LANE_BITS) - 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(weight: u64, size: u32, packet: u32) -> Entry<u32> {
        Entry { weight: Instant::from_nanos(weight), arrived: Instant::ZERO, size, packet }
    }

    fn push(lanes: &mut Lanes<u32>, lane: usize, entry: Entry<u32>) {
        assert!(lanes.push(lane, entry));
    }

    fn order(lanes: &mut Lanes<u32>) -> Vec<u32> {
        std::iter::from_fn(|| lanes.pop()).map(|entry| entry.packet).collect()
    }

    #[test]
    fn the_least_weight_leaves_first_and_equal_ones_as_they_came() {
        let mut lanes = Lanes::new(HintBits::PAPER);
        let arrivals = [(15, 90), (3, 50), (0, 50), (8, 10), (3, 50), (15, 95), (15, 90)];
        for (packet, (lane, weight)) in (0..).zip(arrivals) {
            push(&mut lanes, lane, entry(weight, 100, packet));
        }
        // The last one's 90 is raised to the 95 before it.
        assert_eq!(order(&mut lanes), [3, 1, 2, 4, 0, 5, 6]);
        assert_eq!(lanes.backlog(), Backlog::default());
    }

    #[test]
    fn bytes_ahead_are_those_of_no_more_weight() {
        let mut lanes = Lanes::new(HintBits::PAPER);
        for (lane, weight, size) in [(15, 10, 1), (15, 20, 20), (15, 30, 300), (7, 20, 4000)] {
            push(&mut lanes, lane, entry(weight, size, 0));
        }
        let mut ahead = |w| lanes.bytes_ahead(0, Instant::from_nanos(w));
        assert_eq!([9, 10, 19, 20, 29, 30].map(&mut ahead), [0, 1, 1, 4021, 4021, 4321]);
        // And back again: the cursors have to be found again.
        assert_eq!([20, 9].map(ahead), [4021, 0]);
    }

    /// One lane after the other holds all that may wait, and leaves ten packets behind.
    #[test]
    fn the_room_of_all_lanes_is_bounded_by_the_largest_backlog() {
        const MOST: u32 = 3000;
        let mut lanes = Lanes::new(HintBits::PAPER);
        let bound = MOST_ROOM * MOST as usize + FIRST_SLOTS * lanes.len();
        let mut largest = 0;
        for round in 0..5 {
            for lane in 0..lanes.len() {
                let mut number = 0;
                while lanes.backlog().packets < MOST {
                    push(&mut lanes, lane, entry(number, 1, 0));
                    number += 1;
                    largest = largest.max(lanes.room());
                    assert!(largest <= bound, "round {round}, lane {lane}: room for {largest}");
                }
                while lanes.backlog().packets > 10 * (lane as u32 + 1) {
                    assert!(lanes.pop().is_some());
                }
            }
            while lanes.pop().is_some() {}
        }
        assert!(largest > 2 * MOST as usize, "it is used: {largest}");
    }

    #[test]
    fn two_hundred_and_fifty_six_lanes_are_distinguished() {
        let mut lanes = Lanes::new(HintBits::new(8).unwrap());
        (0..256).rev().for_each(|lane| push(&mut lanes, lane, entry(lane as u64, 1, lane as u32)));
        assert_eq!(order(&mut lanes), (0..256).collect::<Vec<u32>>());
    }
}
