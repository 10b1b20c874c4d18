//! Counters of the flows that send most, for people and for `cutline doctor explain`.
//!
//! The table has a fixed size: [`SETS`] sets of [`WAYS`] flows. A flow's hash chooses its set. A frame of a flow that is not listed adds
//! its length to the set's `unlisted` bytes; when these exceed the recent bytes of the set's smallest flow, the newcomer takes its place.
//! Recent bytes and unlisted bytes are halved each second, so flows that have ended make room, and a flow that sends much is listed within a
//! few of its frames. No attack on the hash is feasible: it is salted ([`cutline_wire::FlowKeys`]).
//!
//! A frame costs one look at the keys of a set, which fit into the first cache (2.5 kB in all), and a line of the cache with the counters
//! of its flow. It remembers the [`FlowSlot`] of its flow, so that its departure needs the counters alone, and one of the buckets of its waits
//! behind them. These are halved each second as well. Nothing is allocated after the start.

use crate::flow_filter::selector;
use crate::stats::{HintCounters, WaitCounts};
use cutline_aqm::Count;
use cutline_flow::FlowSelector;
use cutline_units::{Dscp, Duration, Hint, Instant};
use cutline_wire::Ip;
use std::net::Ipv4Addr;

/// Number of sets.
const SETS: usize = 64;
/// Flows in a set.
const WAYS: usize = 4;
const SECOND: u64 = 1_000_000_000;
/// Weight of a frame in its bucket of waits, so that those of a slow flow are not forgotten in the next second: it is halved six times.
const WEIGHT: u32 = 64;

/// Counters of a flow since it was listed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlowCounters {
    /// The flow.
    pub flow: FlowSelector,
    /// Code point of its latest frame, as it arrived.
    pub dscp: Dscp,
    /// Hint of its latest frame.
    pub hint: Hint,
    /// Frames that arrived.
    pub received: Count,
    /// Frames that were marked with CE.
    pub marked: Count,
    /// Frames that left the queue or were dropped by it, and their waits.
    pub queue: HintCounters,
    /// Rate at which it arrives, bit/s: an average over about two seconds.
    pub recent_bps: u64,
    /// Weights of the frames that left the queue, by the buckets of [`WaitCounts`]. They are halved each second: those of the last two
    /// seconds have most of the weight.
    pub recent_waits: [u32; WaitCounts::BUCKETS],
}

/// Keys of a set: all that is read for a frame of another flow.
#[derive(Clone, Copy, Debug, Default)]
struct Set {
    /// Hashes of the flows; 0 for a free place.
    flows: [u32; WAYS],
    /// Bytes of each flow, halved each second.
    recent: [u32; WAYS],
    /// Bytes of flows that are not listed, halved each second.
    unlisted: u32,
    /// The second up to which bytes have been halved.
    second: u32,
}

/// Slot of a flow in the table, which a frame remembers. Another flow may have taken it when the frame leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FlowSlot(u16);

impl FlowSlot {
    /// Slot of the frames of flows that are not listed.
    pub(crate) const NONE: Self = Self(u16::MAX);
}

/// Counters at a place. Fields that change with each frame are in the first cache line.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct Entry {
    /// Hash of the flow; 0 for a free place.
    hash: u32,
    dscp: Dscp,
    hint: Hint,
    received: Count,
    departed: Count,
    waited: Duration,
    longest_wait: Duration,
    dropped: Count,
    marked: Count,
    flow: FlowSelector,
    recent_waits: [u32; WaitCounts::BUCKETS],
}

/// Counters of the flows of a direction that send most.
#[derive(Clone, Debug)]
pub struct TopFlows {
    sets: Box<[Set; SETS]>,
    entries: Box<[Entry]>,
    /// The second of the latest arrival, and its end.
    second: u32,
    ends: Instant,
}

impl Set {
    /// Halves the bytes once for each second since the last time. Returns the number of times.
    fn halve(&mut self, second: u32) -> u32 {
        let shift = second.saturating_sub(self.second).min(31);
        self.recent.iter_mut().for_each(|bytes| *bytes >>= shift);
        self.unlisted >>= shift;
        self.second = second;
        shift
    }

    /// Returns the place of a flow; 0 is the hash of no flow.
    #[inline]
    fn way_of(&self, flow: u32) -> Option<usize> {
        self.flows.iter().position(|&listed| listed == flow && flow != 0)
    }

    fn smallest(&self) -> usize {
        (0..WAYS).min_by_key(|&way| self.recent[way]).unwrap_or_default()
    }
}

impl Default for TopFlows {
    fn default() -> Self {
        Self {
            sets: Box::new([Set::default(); SETS]),
            entries: vec![Entry::new(0, FlowSelector::to(Ipv4Addr::UNSPECIFIED.into())); SETS * WAYS].into(),
            second: 0,
            ends: Instant::ZERO,
        }
    }
}

impl TopFlows {
    /// Counts the arrival of a frame that is IP. Returns the place of its flow.
    #[inline]
    pub(crate) fn arrive(&mut self, now: Instant, flow: u32, hint: Hint, ip: Ip, frame: &[u8]) -> FlowSlot {
        if now >= self.ends {
            self.begin_second(now);
        }
        let number = set_of(flow);
        if self.sets[number].second != self.second {
            self.age(number);
        }
        let length = frame.len() as u32;
        let way = match self.sets[number].way_of(flow) {
            Some(way) => way,
            None => match self.list(number, flow, ip, frame) {
                Some(way) => way,
                None => return FlowSlot::NONE,
            },
        };
        let recent = &mut self.sets[number].recent[way];
        *recent = recent.saturating_add(length);
        let place = number * WAYS + way;
        let entry = &mut self.entries[place];
        (entry.dscp, entry.hint) = (ip.dscp(), hint);
        entry.received.add(length);
        FlowSlot(place as u16)
    }

    #[cold]
    fn begin_second(&mut self, now: Instant) {
        let second = now.as_nanos() / SECOND;
        (self.second, self.ends) = (second as u32, Instant::from_nanos((second + 1).saturating_mul(SECOND)));
    }

    /// Halves the recent bytes and waits of a set, once for each second since the last time.
    #[cold]
    fn age(&mut self, number: usize) {
        let shift = self.sets[number].halve(self.second);
        for entry in &mut self.entries[number * WAYS..][..WAYS] {
            entry.recent_waits.iter_mut().for_each(|weight| *weight >>= shift);
        }
    }

    /// Lists a flow in the way of its set's smallest one, if flows that are not listed have sent more than that. Returns the way.
    fn list(&mut self, number: usize, flow: u32, ip: Ip, frame: &[u8]) -> Option<usize> {
        let set = &mut self.sets[number];
        set.unlisted = set.unlisted.saturating_add(frame.len() as u32);
        let smallest = set.smallest();
        if set.unlisted <= set.recent[smallest] {
            return None;
        }
        let selector = selector(frame, ip)?;
        (set.flows[smallest], set.recent[smallest], set.unlisted) = (flow, 0, 0);
        self.entries[number * WAYS + smallest] = Entry::new(flow, selector);
        Some(smallest)
    }

    /// Counts the start of a frame's transmission after a wait.
    #[inline]
    pub(crate) fn depart(&mut self, (flow, place): (u32, FlowSlot), length: usize, waited: Duration) {
        if let Some(entry) = self.listed(flow, place) {
            entry.departed.add(length as u32);
            entry.waited += waited;
            entry.longest_wait = entry.longest_wait.max(waited);
            let weight = &mut entry.recent_waits[WaitCounts::bucket_of(waited)];
            *weight = weight.saturating_add(WEIGHT);
        }
    }

    /// Counts a frame that was dropped.
    #[inline]
    pub(crate) fn drop_frame(&mut self, (flow, place): (u32, FlowSlot), length: usize) {
        if let Some(entry) = self.listed(flow, place) {
            entry.dropped.add(length as u32);
        }
    }

    /// Counts a frame that was marked.
    #[inline]
    pub(crate) fn mark(&mut self, (flow, place): (u32, FlowSlot), length: usize) {
        if let Some(entry) = self.listed(flow, place) {
            entry.marked.add(length as u32);
        }
    }

    #[inline]
    fn listed(&mut self, flow: u32, place: FlowSlot) -> Option<&mut Entry> {
        let mut place = place.0 as usize;
        if self.entries.get(place).is_none_or(|entry| entry.hash != flow) {
            place = self.find(flow)?;
        }
        Some(&mut self.entries[place])
    }

    /// Returns the place of a flow that was listed, or has another place, since the frame arrived.
    #[inline]
    fn find(&self, flow: u32) -> Option<usize> {
        let number = set_of(flow);
        Some(number * WAYS + self.sets[number].way_of(flow)?)
    }

    /// Returns the flows that have sent in the last seconds before `now`, with their recent rates.
    pub fn active(&self, now: Instant) -> impl Iterator<Item = FlowCounters> {
        let (second, part) = ((now.as_nanos() / SECOND) as u32, now.as_nanos() % SECOND);
        // A steady flow of r B/s has r * (1 + part of the second) bytes: r were left of the seconds before.
        let seconds = 1.0 + part as f64 / SECOND as f64;
        let aged = self.sets.iter().map(move |set| {
            let mut set = *set;
            set.halve(second);
            set
        });
        let recent = aged.flat_map(|set| set.recent);
        let entries = self.entries.iter().zip(recent);
        entries.filter(|(entry, recent)| entry.hash != 0 && *recent > 0).map(move |(entry, recent)| {
            let recent_bps = (f64::from(recent) * 8.0 / seconds) as u64;
            FlowCounters { recent_bps, ..entry.counters() }
        })
    }
}

impl Entry {
    fn new(hash: u32, flow: FlowSelector) -> Self {
        Self {
            hash,
            dscp: Dscp::default(),
            hint: Hint::LEAST_DELAY,
            received: Count::default(),
            departed: Count::default(),
            waited: Duration::ZERO,
            longest_wait: Duration::ZERO,
            dropped: Count::default(),
            marked: Count::default(),
            flow,
            recent_waits: [0; WaitCounts::BUCKETS],
        }
    }

    /// Returns its counters, without a rate.
    const fn counters(&self) -> FlowCounters {
        let &Self {
            dscp,
            hint,
            received,
            departed,
            waited,
            longest_wait,
            dropped,
            marked,
            flow,
            recent_waits,
            ..
        } = self;
        let queue = HintCounters { departed, dropped, waited, longest_wait };
        FlowCounters { flow, dscp, hint, received, marked, queue, recent_bps: 0, recent_waits }
    }
}

const fn set_of(flow: u32) -> usize {
    flow as usize % SETS
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutline_wire::Headers;

    fn frame(number: u16, size: usize) -> Vec<u8> {
        let mut frame = vec![0; 14 + size];
        frame[12..14].copy_from_slice(&[0x08, 0x00]);
        frame[14] = 0x45;
        frame[16..18].copy_from_slice(&(size as u16).to_be_bytes());
        frame[22..24].copy_from_slice(&[64, 17]);
        frame[26..34].copy_from_slice(&[10, 0, 0, 1, 10, 0, 1, 1]);
        frame[34..36].copy_from_slice(&number.to_be_bytes());
        frame[36..38].copy_from_slice(&[0x13, 0x8c]);
        frame
    }

    fn arrive(counts: &mut TopFlows, now: Instant, frame: &[u8]) -> (u32, FlowSlot) {
        let headers = Headers::parse(frame, 7);
        let place = counts.arrive(now, headers.flow, Hint::from_level(16), headers.ip.unwrap(), frame);
        (headers.flow, place)
    }

    /// 20 flows of 100 frames a second among 5000 that send one each: all of them are listed with nearly all of their frames.
    #[test]
    fn flows_that_send_much_are_listed_among_many_that_send_little() {
        let mut counts = TopFlows::default();
        for step in 0..100_u64 {
            let now = Instant::from_nanos(step * SECOND / 100);
            for number in 1..=20 {
                let (flow, place) = arrive(&mut counts, now, &frame(number, 1000));
                counts.depart((flow, place), 1014, Duration::from_millis(5));
            }
            for number in 0..50 {
                arrive(&mut counts, now, &frame(1000 + step as u16 * 50 + number, 1000));
            }
        }
        let now = Instant::from_nanos(SECOND - 1);
        let mut listed: Vec<_> = counts.active(now).collect();
        listed.sort_by_key(|flow| std::cmp::Reverse(flow.recent_bps));
        for flow in &listed[..20] {
            assert!(flow.flow.source_port.unwrap() <= 20 && flow.received.packets >= 95, "{flow:?}");
            assert_eq!(flow.queue.mean_wait(), Duration::from_millis(5));
            assert_eq!((flow.flow.protocol, flow.flow.destination_port), (Some(17), Some(5004)));
        }
    }

    #[test]
    fn the_recent_rate_is_that_of_a_steady_flow_and_falls_after_its_end() {
        let mut counts = TopFlows::default();
        // 100 frames of 1014 B a second are 811.2 kbit/s.
        for step in 0..1000_u64 {
            arrive(&mut counts, Instant::from_nanos(step * SECOND / 100), &frame(1, 1000));
        }
        for at in [9_999, 9_995] {
            let recent = counts.active(Instant::from_nanos(at * SECOND / 1000)).next().unwrap().recent_bps;
            assert!((780_000..840_000).contains(&recent), "{recent}");
        }
        assert_eq!(counts.active(Instant::from_nanos(60 * SECOND)).count(), 0, "it has ended");
    }

    /// A flow that waited for long waits little from now on: its recent waits say so after some seconds, all of its waits do not.
    #[test]
    fn recent_waits_are_those_of_the_last_seconds() {
        let mut counts = TopFlows::default();
        let share = |counts: &TopFlows, now, wait| {
            let flow = counts.active(now).next().unwrap();
            let all: u32 = flow.recent_waits.iter().sum();
            f64::from(flow.recent_waits[WaitCounts::bucket_of(wait)]) / f64::from(all)
        };
        let (long, short) = (Duration::from_millis(100), Duration::from_millis(1));
        for (seconds, wait) in [(0..5, long), (5..9, short)] {
            for step in seconds.start * 10..seconds.end * 10 {
                let now = Instant::from_nanos(step * SECOND / 10);
                let flow = arrive(&mut counts, now, &frame(1, 1000));
                counts.depart(flow, 1014, wait);
            }
        }
        let now = Instant::from_nanos(9 * SECOND - 1);
        // Of frames of four seconds, weights 1, 1/2, 1/4 and 1/8 are of short waits; long ones have 1/16 and less.
        let of_short = share(&counts, now, short);
        assert!((of_short - 1.875 / (1.875 + 0.121)).abs() < 0.01, "{of_short}");
        assert!(share(&counts, now, long) < 0.065);
        // A frame each two seconds is not forgotten before the next one comes.
        for second in (20..30).step_by(2) {
            let flow = arrive(&mut counts, Instant::from_nanos(second * SECOND), &frame(1, 1000));
            counts.depart(flow, 1014, short);
        }
        assert!(share(&counts, Instant::from_nanos(29 * SECOND), short) > 0.99);
    }

    #[test]
    fn drops_and_marks_are_those_of_listed_flows() {
        let mut counts = TopFlows::default();
        let (flow, place) = arrive(&mut counts, Instant::ZERO, &frame(1, 1000));
        counts.drop_frame((flow, place), 1014);
        counts.mark((flow, place), 1014);
        counts.drop_frame((flow + SETS as u32, place), 1014);
        counts.drop_frame((0, FlowSlot::NONE), 1014);
        let listed = counts.active(Instant::ZERO).next().unwrap();
        assert_eq!((listed.queue.dropped.packets, listed.marked.packets), (1, 1));
    }

    /// A frame remembers the place of its flow, which another flow has when it leaves.
    #[test]
    fn a_frame_of_a_replaced_flow_counts_for_its_own_flow() {
        let mut counts = TopFlows::default();
        let (flow, place) = arrive(&mut counts, Instant::ZERO, &frame(1, 1000));
        // Flows of the same set: more of them than it has ways.
        let same = |number: &u16| {
            set_of(Headers::parse(&frame(*number, 1000), 7).flow) == set_of(flow) && *number != 1
        };
        let others: Vec<u16> = (2..5000).filter(same).take(WAYS).collect();
        for _ in 0..20 {
            for number in &others {
                let (other, place) = arrive(&mut counts, Instant::ZERO, &frame(*number, 1000));
                counts.depart((other, place), 1014, Duration::from_millis(1));
            }
        }
        assert!(counts.find(flow).is_none(), "it was listed no more");
        counts.depart((flow, place), 1014, Duration::from_secs(9));
        assert!(counts.active(Instant::ZERO).all(|flow| flow.queue.longest_wait == Duration::from_millis(1)));
        // Listed again, elsewhere or not, it gets what its earlier frames do.
        for _ in 0..50 {
            arrive(&mut counts, Instant::ZERO, &frame(1, 1000));
        }
        counts.depart((flow, FlowSlot::NONE), 1014, Duration::from_secs(9));
        counts.drop_frame((flow, FlowSlot(place.0 ^ 1)), 1014);
        let own = counts.active(Instant::ZERO).find(|flow| flow.flow.source_port == Some(1)).unwrap();
        assert_eq!((own.queue.departed.packets, own.queue.dropped.packets), (1, 1));
    }
}
