//! ABE-like: green packets get a bounded delay, blue packets the same bandwidth as without green ones.
//!
//! Source: P. Hurley, J. Le Boudec, P. Thiran, M. Kara, "ABE: providing a low-delay service within best effort", IEEE
//! Network, May 2001; P. Hurley, M. Kara, J. Le Boudec, P. Thiran, "A novel scheduler for a low delay service within
//! best-effort", IWQoS 2001 (duplicate scheduling with deadlines, DSD). **The full texts were not available; this
//! follows their abstracts, and is called "ABE-like" for that reason.** It takes from them: two colours chosen by the
//! application; a virtual queue that gives every packet its deadline on arrival; separate queues for green and blue;
//! the deadlines of the two heads decide which goes next; green must not harm blue.
//!
//! ```text
//! arrival at t of a packet of L bytes; V = when the virtual FIFO of all packets will be empty; C = link rate
//!   V - t > limit / C:   dropped, whatever its colour (the duplicate finds the virtual queue full)
//!   blue:   deadline = max(V, t), when a FIFO would have begun to send it
//!   green:  deadline = t + delay; dropped if the green ones ahead alone take longer than that
//!   V = max(V, t) + L / C
//! departure at t
//!   green heads whose deadline has passed are dropped
//!   green first, if the blue head can still begin at its deadline: t + L_green / C <= deadline of blue
//!   else blue first
//! ```
//!
//! Worked numbers: at 8 Mbit/s (1000 B in 1 ms), ten blue packets that arrive at 0 must begin at 0, 1, ... 9 ms. A green
//! packet right after them waits for all ten, because no blue one can spare a millisecond; it goes after 10 ms. Green
//! packets that arrived earlier leave room, and go ahead (`green_is_served_first_if_blue_can_wait`). Green gets ahead only by
//! the service that dropped green packets have saved in the virtual queue: blue is served no later than in a FIFO of all packets
//! (`blue_is_served_no_later_than_in_a_fifo`).
//!
//! The limit is that of the virtual queue, which is kept as a time. A limit in packets means packets of the newcomer's
//! size. The real queue never holds more. Nothing is marked, and no AQM works on the virtual queue (Hurley et al. put RED
//! there).
//!
//! Not implemented: their control of how much green may save up, and admission of green by a drop ratio.
//!
//! # Validation
//!
//! - The promises of the abstracts: `blue_is_served_no_later_than_in_a_fifo`, `green_waits_at_most_its_bound`,
//!   `green_is_served_first_if_blue_can_wait`, `late_green_packets_are_dropped`.
//! - The limit counts the virtual queue: `the_limit_counts_the_duplicate`.
//! - Not compared with the papers' results: their full texts were not available, hence "-like".

use crate::pool::{Held, List, Pool};
use crate::queue_core::QueueCore;
use crate::queue_core::forward_to_core;
use crate::{Arrival, Departure, Discipline, DrainRate, DropReason, Limit, Queue, Verdict, standing};
use cutline_params::{ParameterError, Parameters};
use cutline_units::{Duration, Instant, RandomStream, Rate};

/// Parameters of ABE.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Parameters)]
pub struct AbeParams {
    /// Maximum waiting time of a green packet.
    #[param(
        default = Duration::from_millis(20),
        range = (Duration::from_micros(100), Duration::from_secs(10)),
        source = "Hurley et al. 2001: tens of milliseconds"
    )]
    pub delay: Duration,
    /// Largest hint of a green packet; 0 for none.
    #[param(
        default = 6,
        range = (0, 15),
        source = "ours: the hint that suits audio and video in the TSQ paper"
    )]
    pub green_hints: u64,
}

/// A packet and its deadline: the handle that the lists of this queue keep.
#[derive(Clone, Copy, Debug)]
struct Due<P> {
    packet: P,
    deadline: Instant,
}

/// ABE-like.
#[derive(Clone, Debug)]
pub struct Abe<P> {
    params: AbeParams,
    drain: DrainRate,
    /// Time at which the virtual queue will be empty: V.
    virtual_end: Instant,
    green: List,
    blue: List,
    pool: Pool<Due<P>>,
    core: QueueCore<P>,
}

impl<P: Copy> Discipline for Abe<P> {
    type Params = AbeParams;
    const NAME: &'static str = "abe";
    const TITLE: &'static str = "ABE-like";
    const SOURCE: &'static str = "after Hurley, Le Boudec, Thiran, Kara, IEEE Network 2001";

    fn build(params: &AbeParams, limit: Limit, ecn: bool, rate: Rate) -> Result<Self, ParameterError> {
        params.validate()?;
        Ok(Self {
            params: *params,
            drain: DrainRate::new(rate),
            virtual_end: Instant::ZERO,
            green: List::EMPTY,
            blue: List::EMPTY,
            pool: Pool::new(),
            core: QueueCore::new(limit, ecn),
        })
    }

    fn standing_delay(_params: &AbeParams, limit: Limit, rate: Rate) -> Option<Duration> {
        Some(standing::full(limit, rate))
    }
}

impl<P: Copy> Abe<P> {
    /// Returns whether the duplicate of a packet fits into the virtual queue.
    #[inline]
    fn duplicate_fits(&self, now: Instant, size: u32) -> bool {
        let bytes = match self.core.limit {
            Limit::Packets(most) => u64::from(most) * u64::from(size),
            Limit::Bytes(most) => most,
        };
        let with_it = self.virtual_end.saturating_since(now) + self.drain.time(u64::from(size));
        with_it <= self.drain.time(bytes)
    }

    fn drop_late_green(&mut self, now: Instant) {
        while self.pool.head(&self.green).is_some_and(|held| held.packet.deadline < now) {
            let held = self.pool.pop(&mut self.green).expect("there is a head");
            self.core.count_shed(plain(held), DropReason::Early);
        }
    }

    /// Returns whether a green packet is next.
    #[inline]
    fn green_is_next(&self, now: Instant) -> bool {
        let Some(green) = self.pool.head(&self.green) else { return false };
        let sent = now.saturating_add(self.drain.time(u64::from(green.size)));
        self.pool.head(&self.blue).is_none_or(|blue| sent <= blue.packet.deadline)
    }
}

/// A packet without its deadline.
const fn plain<P: Copy>(held: Held<Due<P>>) -> Held<P> {
    let Held { packet: Due { packet, .. }, size, arrived, may_mark } = held;
    Held { packet, size, arrived, may_mark }
}

impl<P: Copy> Queue<P> for Abe<P> {
    #[inline]
    fn enqueue(&mut self, now: Instant, arrival: Arrival, packet: P, _random: &mut RandomStream) -> Verdict {
        let size = arrival.size;
        if !self.core.admits(size) || !self.duplicate_fits(now, size) {
            return self.core.count_arrival(Verdict::Drop(DropReason::Overflow), size);
        }
        let begins = self.virtual_end.max(now);
        self.virtual_end = begins.saturating_add(self.drain.time(u64::from(size)));
        let is_green = u64::from(arrival.hint.level()) <= self.params.green_hints;
        if is_green && self.drain.time(self.green.backlog.bytes) > self.params.delay {
            return self.core.count_arrival(Verdict::Drop(DropReason::Early), size);
        }
        let deadline = if is_green { now.saturating_add(self.params.delay) } else { begins };
        let list = if is_green { &mut self.green } else { &mut self.blue };
        self.pool.push(list, Held { packet: Due { packet, deadline }, size, arrived: now, may_mark: false });
        self.core.count_arrival(Verdict::Pass, size)
    }

    #[inline]
    fn dequeue(&mut self, now: Instant) -> Option<Departure<P>> {
        self.drop_late_green(now);
        let list = if self.green_is_next(now) { &mut self.green } else { &mut self.blue };
        let held = self.pool.pop(list)?;
        Some(self.core.count_departure(plain(held).leave(false)))
    }

    forward_to_core!(P);

    fn set_rate(&mut self, _now: Instant, rate: Rate) {
        self.drain = DrainRate::new(rate);
    }

    fn reset(&mut self, now: Instant, discard: &mut dyn FnMut(P)) {
        for list in [&mut self.green, &mut self.blue] {
            self.pool.drain(list, |held| self.core.count_flushed(plain(held), discard));
        }
        self.virtual_end = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutline_units::{Hint, Streams};

    const GREEN: u16 = 6;
    const BLUE: u16 = 16;

    /// A packet of 1000 B every millisecond.
    fn abe(limit: u32) -> Abe<u32> {
        Abe::build(&AbeParams::default(), Limit::Packets(limit), false, Rate::from_mbps(8)).unwrap()
    }

    fn ms(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    fn arrive(abe: &mut Abe<u32>, at: u64, level: u16, packet: u32) -> Verdict {
        let mut random = Streams::new(1).stream("queue", "drop");
        abe.enqueue(ms(at), Arrival::new(1000, Hint::from_level(level)), packet, &mut random)
    }

    /// Returns the packets that leave at each millisecond.
    fn order(abe: &mut Abe<u32>, from: u64, to: u64) -> Vec<u32> {
        (from..to).filter_map(|at| abe.dequeue(ms(at))).map(|departure| departure.packet).collect()
    }

    #[test]
    fn green_is_served_first_if_blue_can_wait() {
        let mut abe = abe(100);
        for i in 0..5 {
            arrive(&mut abe, 0, BLUE, i);
        }
        arrive(&mut abe, 0, GREEN, 100);
        assert_eq!(order(&mut abe, 0, 6), [0, 1, 2, 3, 4, 100], "no blue one can spare a millisecond");
        // 30 green ones: those behind 20 ms of green are refused, and their service is saved.
        let verdicts: Vec<Verdict> = (0..30).map(|i| arrive(&mut abe, 10, GREEN, 100 + i)).collect();
        assert_eq!(verdicts.iter().filter(|&&verdict| verdict == Verdict::Pass).count(), 21);
        for i in 0..3 {
            arrive(&mut abe, 10, BLUE, i);
        }
        assert_eq!(order(&mut abe, 10, 31), (100..121).collect::<Vec<_>>());
        arrive(&mut abe, 31, GREEN, 200);
        assert_eq!(order(&mut abe, 31, 34), [200, 0, 1], "there are 9 saved milliseconds to use");
    }

    #[test]
    fn late_green_packets_are_dropped() {
        let mut abe = abe(100);
        for i in 0..40 {
            arrive(&mut abe, 0, BLUE, i);
        }
        arrive(&mut abe, 0, GREEN, 100);
        assert_eq!(order(&mut abe, 0, 41), (0..40).collect::<Vec<_>>());
        assert_eq!(abe.shed().map(|shed| (shed.packet, shed.reason)), Some((100, DropReason::Early)));
    }

    #[test]
    fn blue_is_served_no_later_than_in_a_fifo() {
        let mut abe = abe(60);
        let mut random = Streams::new(3).stream("abe", "test");
        let (mut fifo_end, mut begins, mut late) = (0_u64, vec![None; 4000], 0_u64);
        let mut passed = 0;
        for at in 0..2000 {
            for packet in [2 * at, 2 * at + 1] {
                let green = random.uniform() < 0.5;
                if random.uniform() < 0.55
                    && arrive(&mut abe, at, if green { GREEN } else { BLUE }, packet as u32)
                        != Verdict::Drop(DropReason::Overflow)
                {
                    let begin = fifo_end.max(at);
                    fifo_end = begin + 1;
                    begins[packet as usize] = (!green).then_some(begin);
                }
            }
            let sent = abe.dequeue(ms(at));
            if let Some(begin) = sent.and_then(|departure| begins[departure.packet as usize]) {
                late = late.max(at.saturating_sub(begin));
                passed += 1;
            }
        }
        assert!(passed > 700, "{passed}");
        assert_eq!(late, 0);
    }

    #[test]
    fn green_waits_at_most_its_bound() {
        let mut abe = abe(500);
        for at in 0..3000 {
            arrive(&mut abe, at, if at % 3 == 0 { GREEN } else { BLUE }, at as u32);
            arrive(&mut abe, at, GREEN, at as u32);
            if let Some(departure) = abe.dequeue(ms(at)).filter(|departure| departure.packet % 3 == 0) {
                assert!(ms(at) - departure.arrived <= Duration::from_millis(500));
            }
        }
        let late = std::iter::from_fn(|| abe.shed()).count();
        assert!(late > 0, "the others were dropped");
    }

    #[test]
    fn the_limit_counts_the_duplicate() {
        let mut abe = abe(10);
        (0..10).for_each(|i| assert_eq!(arrive(&mut abe, 0, BLUE, i), Verdict::Pass));
        assert_eq!(arrive(&mut abe, 0, GREEN, 10), Verdict::Drop(DropReason::Overflow));
        order(&mut abe, 0, 1);
        assert_eq!(arrive(&mut abe, 1, GREEN, 11), Verdict::Pass);
    }
}
