//! TSQ, the traffic-sensitive queue: delay-sensitive packets cut in line and are dropped more often in return.
//!
//! Source: the TSQ paper, section 3 and figure 6. On the arrival at `ta` of a packet of hint `d` (1 = as little
//! delay as possible, 2^n = throughput only), with `q` waiting, `C` the link's rate, and `p` the answer of the AQM
//! underneath:
//!
//! ```text
//! td = q / C                                 drain time (figure 6)
//! w  = d td / 2^n + ta                       weight; the queue is kept in its order (eq. 2)
//! q' = backlog ahead of the insertion point, as a delay
//! p' = min(1, ((l + q) / (l + q'))^2 p)      drop probability (eq. 5)
//! ```
//!
//! In p', q and q' are delays. (Where section 3.2 says that a hint of 1 gives q' = q, it means 2^n.) The square comes from
//! the throughput of TCP (eq. 3), `T = K / (r sqrt(p))`: a flow that gets a shorter round-trip time r is charged a larger
//! p, so that T does not change. With d = 2^n, q' = q and p' = p.
//!
//! Worked numbers: 100 packets of 1000 B wait at 15 Mbit/s, td = 53.33 ms; hint 6 weighs 20 ms more than its
//! arrival time (`six_sixteenths_of_the_drain_time`). With l = 40 ms, hint 1 and 400 ms in front of it, q' is
//! about 25 ms and p' = ((40 + 400) / (40 + 25))^2 p = 45.8 p (`the_charge_is_steep_behind_a_long_queue`).
//!
//! **The charge behind a long queue.** The charge grows with the square of the queue that a packet overtakes. Behind 53
//! ms, hint 1 is charged 4.5 times p; behind 400 ms, 46 times, which at p = 2 % drops nine packets of ten. A small hint
//! is meant for short queues, or for sources that send little. `max-ratio` bounds p' / p. Beyond the bound, a false
//! hint gains.
//!
//! **No packet waits forever.** No newcomer gets ahead of a packet after `w`, and the packets ahead by then drain: a packet
//! waits at most d td / 2^n + (the limit + a packet in service) / C in all.
//!
//! Choices that the paper leaves open:
//! - td, q and q' count the waiting bytes and the rest of the packet in service. Only then does the weight of one hint
//!   never fall, which `lanes.rs` depends on.
//! - Equal weights leave in the order of arrival.
//! - The draw comes before q'. p' is at most its value at an empty q', so most arrivals pass before q' is needed. The
//!   verdicts are the same, bit for bit.
//! - A changed rate changes td, q and q' from then on. Weights that are given stay. A packet that would get a smaller
//!   weight than its predecessor of the same hint gets the same weight. The largest hint is always charged p.
//! - A full queue drops the newcomer, whatever its hint. A queue for which there is no memory is full.
//! - With ECN, p' marks a packet that can be marked instead of dropping it.
//!
//! Order and charge can be used without this queue, in a discipline: [`ChargedLanes`].
//!
//! Hints that change at each hop with the delay already suffered belong to the link: `cutline_units::HintBudget`.
//!
//! # Validation
//!
//! - The equations by hand: `six_sixteenths_of_the_drain_time`, `q_prime_counts_packets_ahead_and_in_service`,
//!   `the_charge_is_steep_behind_a_long_queue`.
//! - The lanes against a list kept in order of w, with random operations: `tests/oracle.rs`.
//! - Over every law that may drop early: `tsq_keeps_the_probability_of_the_law_for_the_largest_hint`,
//!   `packets_that_overtake_have_a_higher_probability_over_every_law`.
//! - The paper's evaluation: `cutline reproduce tsq` measures each of its claims.
//! - The parts of it in a discipline: `packets_that_overtake_are_charged_in_a_discipline_too`.
//! - No other engine has TSQ. The traffic in the paper's scenarios is compared with ns-2 without TSQ (docs/validation/ns2.md).

mod charged_lanes;

use crate::lane::Entry;
use crate::{
    Arrival, Backlog, Departure, DropProbability, DropReason, Limit, Queue, QueueStats, Readings, Verdict,
};
use cutline_params::ParameterError;
use cutline_units::{Hint, Instant, Probability, RandomStream, Rate};

pub use charged_lanes::{ChargedLanes, InsertionPoint, Offer, TsqParams, charge, weight};

/// TSQ on top of an AQM.
#[derive(Clone, Debug)]
pub struct Tsq<P, A> {
    limit: Limit,
    ecn: bool,
    aqm: A,
    lanes: ChargedLanes<P>,
    stats: QueueStats,
}

impl<P: Copy, A: DropProbability> Tsq<P, A> {
    /// An empty queue in front of a link of rate `rate`. With `ecn` a packet that can be marked is marked where
    /// it would be dropped early.
    ///
    /// # Errors
    /// When a parameter is outside its range.
    pub fn new(
        params: &TsqParams,
        limit: Limit,
        ecn: bool,
        rate: Rate,
        mut aqm: A,
    ) -> Result<Self, ParameterError> {
        aqm.reorders();
        let lanes = ChargedLanes::new(params, rate)?;
        Ok(Self { limit, ecn, aqm, lanes, stats: QueueStats::default() })
    }

    /// The law underneath.
    pub const fn aqm(&self) -> &A {
        &self.aqm
    }

    /// Returns the offer to a packet of that hint that arrives now.
    pub fn offer(&mut self, now: Instant, hint: Hint) -> Offer {
        self.lanes.offer(now, hint)
    }

    /// Drops a packet that has been counted as stored, and for which there is no memory.
    #[cold]
    fn turn_away(&mut self, size: u32) -> Verdict {
        self.stats.count_shed(DropReason::Overflow, size);
        Verdict::Drop(DropReason::Overflow)
    }

    #[inline]
    fn judge(
        &mut self,
        now: Instant,
        arrival: Arrival,
        point: &InsertionPoint,
        random: &mut RandomStream,
    ) -> Verdict {
        let backlog = self.lanes.backlog();
        let p = self.aqm.arrive(now, arrival, backlog);
        if !self.limit.admits(backlog, arrival.size) {
            return Verdict::Drop(DropReason::Overflow);
        }
        let hit = self.lanes.hits(p, point, random);
        Verdict::from_hit(hit, hit && self.ecn && arrival.ecn_capable && self.aqm.may_mark())
    }
}

impl<P: Copy, A: DropProbability> Queue<P> for Tsq<P, A> {
    #[inline]
    fn enqueue(&mut self, now: Instant, arrival: Arrival, packet: P, random: &mut RandomStream) -> Verdict {
        self.aqm.advance(now, self.lanes.backlog());
        let point = self.lanes.insertion_point(now, arrival.hint, arrival.waited);
        let verdict = self.judge(now, arrival, &point, random);
        self.aqm.judged(now, arrival, verdict);
        self.stats.count_arrival(verdict, arrival.size);
        if !matches!(verdict, Verdict::Drop(_)) && !self.lanes.push(now, &point, arrival.size, packet) {
            return self.turn_away(arrival.size);
        }
        verdict
    }

    #[inline]
    fn dequeue(&mut self, now: Instant) -> Option<Departure<P>> {
        self.aqm.advance(now, self.lanes.backlog());
        let Entry { arrived, size, packet, .. } = self.lanes.pop(now)?;
        self.aqm.departed(now, size, arrived, self.lanes.backlog());
        self.stats.dequeued.add(size);
        Some(Departure { packet, size, arrived, marked: false })
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.lanes.backlog()
    }

    fn probability(&self) -> Option<Probability> {
        self.aqm.probability()
    }

    fn readings(&self) -> Readings {
        self.aqm.readings()
    }

    fn advance(&mut self, now: Instant) {
        self.aqm.advance(now, self.lanes.backlog());
    }

    fn set_rate(&mut self, now: Instant, rate: Rate) {
        self.aqm.advance(now, self.lanes.backlog());
        self.aqm.set_rate(now, rate);
        self.lanes.set_rate(rate);
    }

    fn reset(&mut self, now: Instant, discard: &mut dyn FnMut(P)) {
        self.lanes.reset(now, |entry| {
            self.stats.flushed.add(entry.size);
            discard(entry.packet);
        });
        self.aqm.reset(now);
    }

    fn stats(&self) -> &QueueStats {
        &self.stats
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DrainRate, NoEarlyDrop};
    use cutline_params::Parameters as _;
    use cutline_units::{Duration, HintBits, Streams};

    const L: Duration = Duration::from_millis(40);

    fn charge_ratio(q_ms: u64, q_prime_ms: u64, max_ratio: f64) -> f64 {
        let p = Probability::clamped(1e-3);
        let [q, q_prime] = [q_ms, q_prime_ms].map(Duration::from_millis);
        charge(p, L, q, q_prime, max_ratio).get() / p.get()
    }

    /// 100 packets of 1000 B waiting at 15 Mbit/s, none in service.
    fn a_hundred_packets() -> Tsq<u32, NoEarlyDrop> {
        let (limit, rate) = (Limit::Packets(800), Rate::from_mbps(15));
        let mut tsq = Tsq::new(&TsqParams::default(), limit, false, rate, NoEarlyDrop).unwrap();
        let arrival = Arrival::new(1000, HintBits::PAPER.largest());
        let mut random = Streams::new(1).stream("queue", "drop");
        (0..100).for_each(|packet| {
            tsq.enqueue(Instant::ZERO, arrival, packet, &mut random);
        });
        tsq
    }

    #[test]
    fn six_sixteenths_of_the_drain_time() {
        let offer = a_hundred_packets().offer(Instant::from_nanos(5), Hint::from_level(6));
        assert_eq!(offer.q.as_nanos(), 53_333_333);
        // TSQ eq. 2: 6 x 53,333,333 / 16 = 19,999,999.9
        assert_eq!(offer.weight.as_nanos(), 19_999_999 + 5);
    }

    #[test]
    fn q_prime_counts_packets_ahead_and_in_service() {
        let mut tsq = a_hundred_packets();
        // The k-th packet weighs k packet times; hint 1's 53.33 / 16 = 3.33 ms are behind 7 of them.
        let offer = tsq.offer(Instant::ZERO, Hint::LEAST_DELAY);
        assert_eq!(offer.q_prime, DrainRate::new(Rate::from_mbps(15)).time(7_000));
        // Half of a packet in service, 98.5 packet times, 1/16 of which passes packets 1 to 6.
        tsq.dequeue(Instant::ZERO);
        let half = Duration::from_nanos(266_666);
        let offer = tsq.offer(Instant::ZERO + half, Hint::LEAST_DELAY);
        let ahead = DrainRate::new(Rate::from_mbps(15)).time(6_000);
        assert_eq!(offer.q_prime, ahead + Duration::from_nanos(533_333) - half);
        assert_eq!(tsq.offer(Instant::ZERO + half, Hint::from_level(16)).q_prime, offer.q);
    }

    #[test]
    fn the_charge_is_steep_behind_a_long_queue() {
        // TSQ eq. 5: (440 / 65)^2 = 45.8
        assert!((charge_ratio(400, 25, f64::INFINITY) - 45.822).abs() < 1e-3);
        assert!((charge_ratio(400, 25, 10.0) - 10.0).abs() < 1e-12);
        assert_eq!(charge_ratio(400, 400, f64::INFINITY), 1.0);
    }

    #[test]
    fn the_charge_is_a_probability() {
        let p = Probability::clamped(0.5);
        assert_eq!(charge(p, L, Duration::from_secs(10), Duration::ZERO, f64::INFINITY), Probability::ONE);
        assert_eq!(charge(Probability::ZERO, L, L, Duration::ZERO, f64::INFINITY), Probability::ZERO);
    }

    #[test]
    fn a_packet_overtakes_by_its_age_and_is_charged_for_its_hint() {
        let params = TsqParams { age_credit: true, ..TsqParams::default() };
        let mut lanes = ChargedLanes::new(&params, Rate::from_mbps(15)).unwrap();
        let largest = HintBits::PAPER.largest();
        for packet in 0..100 {
            let point = lanes.insertion_point(Instant::ZERO, largest, Duration::ZERO);
            assert!(lanes.push(Instant::ZERO, &point, 1000, packet));
        }
        let p = Probability::clamped(1e-3);
        let mut of = |ms: u64| {
            let point = lanes.insertion_point(
                Instant::from_nanos(50_000_000),
                Hint::from_level(12),
                Duration::from_millis(ms),
            );
            (point.weight(), lanes.p_prime(p, &point))
        };
        let (young, old) = (of(0), of(30));
        assert_eq!(young.0 - old.0, Duration::from_millis(30));
        assert_eq!(young.1, old.1);
    }

    #[test]
    fn parameters_outside_their_range_are_refused() {
        let refused = |params: TsqParams| params.validate().unwrap_err().to_string();
        let paper = TsqParams::default();
        assert_eq!(
            refused(TsqParams { bits: 9, ..paper }),
            "bits = 9: allowed is a whole number from 1 to 8"
        );
        assert_eq!(
            refused(TsqParams { l: Duration::ZERO, ..paper }),
            "l = 0 ns: allowed is a time from 1 ms to 1 s"
        );
        assert_eq!(
            refused(TsqParams { max_ratio: Some(0.5), ..paper }),
            "max-ratio = 0.5: allowed is a number from 1 to 1000000, or off"
        );
    }
}
