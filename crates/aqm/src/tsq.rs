//! TSQ, the traffic-sensitive queue: delay-sensitive packets cut in line and pay for it with drops.
//!
//! Source: the TSQ paper, section 3 and figure 6. On the arrival at `ta` of a packet of hint `d` (1 = as little
//! delay as possible, 2^n = throughput only), with `q` waiting, `C` the link's rate, and `p` what the AQM
//! underneath says:
//!
//! ```text
//! td = q / C                                 drain time (figure 6)
//! w  = d td / 2^n + ta                       weight; the queue is kept in its order (eq. 2)
//! q' = what stands ahead of the insertion point, as a delay
//! p' = min(1, ((l + q) / (l + q'))^2 p)      drop probability (eq. 5)
//! ```
//!
//! In p', q and q' are delays. (Where section 3.2 says that a hint of 1 gives q' = q, it means 2^n.) The square
//! comes from the throughput of TCP (eq. 3), `T = K / (r sqrt(p))`: who gets a shorter round-trip time r pays with a
//! p that leaves T as it was. With d = 2^n, q' = q and p' = p.
//!
//! Worked numbers: 100 packets of 1000 B wait at 15 Mbit/s, td = 53.33 ms; hint 6 weighs 20 ms more than its
//! arrival time (`six_sixteenths_of_the_drain_time`). With l = 40 ms, hint 1 and 400 ms in front of it, q' is
//! about 25 ms and p' = ((40 + 400) / (40 + 25))^2 p = 45.8 p (`the_charge_is_steep_behind_a_long_queue`).
//!
//! **Whom the law starves.** The charge grows with the square of the queue that is jumped. Behind 53 ms, hint 1
//! pays 4.5 times p; behind 400 ms, 46 times: at p = 2 % that is nine packets of ten. A small hint is meant for
//! short queues, or for sources that send little. `max-ratio` bounds p' / p where that is not wanted; the price
//! is that lying then pays, for whoever is beyond the bound.
//!
//! **No starvation by order.** A packet waits at most until `w`, after which no newcomer gets ahead of it, and
//! then behind what was there: at most d td / 2^n + (the limit + a packet in service) / C in all.
//!
//! Where we say more than the paper:
//! - td counts the waiting bytes and what is left of the packet in service; q and q' do too. Only then does
//!   the weight of one hint never fall, which is what `lanes.rs` builds on.
//! - Equal weights leave in the order of arrival.
//! - The draw comes before q': p' cannot exceed its value at an empty q', so most arrivals pass without q'
//!   being looked for. The verdicts are those of the law, bit for bit.
//! - A changed rate changes td, q and q' from then on. Weights that are given stay; a packet that would get a
//!   smaller one than its predecessor of the same hint gets the same. The largest hint always pays p.
//! - Full queue: the newcomer is dropped, whatever its hint.
//! - With ECN, p' marks a packet that can be marked instead of dropping it.
//!
//! Hints that change hop by hop with the delay already suffered are the link's business: `cutline_units::HintBudget`.
//!
//! # Validation
//!
//! - The equations by hand: `six_sixteenths_of_the_drain_time`, `q_prime_counts_what_is_ahead_and_in_service`,
//!   `the_charge_is_steep_behind_a_long_queue`.
//! - The lanes against a list kept in order of w, with random operations: `tests/oracle.rs`.
//! - Over every law that may drop early: `tsq_leaves_the_largest_hint_what_every_law_gives_it`,
//!   `whoever_cuts_in_line_pays_more_over_every_law`.
//! - The paper's evaluation: `cutline reproduce tsq` measures each of its claims.
//! - No other engine has it. The traffic around it is compared with ns-2 without TSQ (docs/validation/ns2.md).

use crate::lanes::{Entry, Lanes};
use crate::{
    Arrival, Backlog, Departure, DrainRate, DropProbability, DropReason, Limit, Queue, QueueStats, Readings,
    Verdict,
};
use cutline_params::{ParameterError, Parameters};
use cutline_units::{Duration, Hint, HintBits, Instant, Probability, RandomStream, Rate};

/// What can be set.
#[derive(Clone, Copy, Debug, PartialEq, Parameters)]
pub struct TsqParams {
    /// n: the number of hint bits; hints are 1 to 2^n.
    #[param(default = 4, range = (1, 8), source = "TSQ section 3.2")]
    pub bits: u64,
    /// The delay outside the queue that the charge for cutting in line assumes.
    #[param(
        default = Duration::from_millis(40),
        range = (Duration::from_millis(1), Duration::from_secs(1)),
        source = "TSQ section 3.3; 40 ms to 100 ms is sensible"
    )]
    pub l: Duration,
    /// The largest p'/p allowed.
    #[param(default = None, range = (1.0, 1e6), source = "off: the paper's law has no bound")]
    pub max_ratio: Option<f64>,
}

/// What an arriving packet is offered: its place, and what stands ahead of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// The lane of its hint.
    pub lane: usize,
    /// q: all that waits and what is left of the packet in service, as a delay. The same as td.
    pub q: Duration,
    /// w.
    pub weight: Instant,
    /// q': what would stand ahead of it, as a delay.
    pub q_prime: Duration,
}

/// The place of an arriving packet, before q' is looked for.
#[derive(Clone, Copy, Debug)]
struct Place {
    lane: usize,
    q: Duration,
    weight: Instant,
    /// What is left of the packet in service: the least that q' can be.
    in_service: Duration,
}

/// TSQ on top of an AQM.
#[derive(Clone, Debug)]
pub struct Tsq<P, A> {
    limit: Limit,
    ecn: bool,
    bits: HintBits,
    l: Duration,
    /// Infinite where there is no bound.
    max_ratio: f64,
    drain: DrainRate,
    aqm: A,
    lanes: Lanes<P>,
    /// When the packet in service will have left.
    service_ends: Instant,
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
        aqm: A,
    ) -> Result<Self, ParameterError> {
        params.validate()?;
        let bits = HintBits::new(params.bits).expect("the range of bits has been checked");
        Ok(Self {
            limit,
            ecn,
            bits,
            l: params.l,
            max_ratio: params.max_ratio.unwrap_or(f64::INFINITY),
            drain: DrainRate::new(rate),
            aqm,
            lanes: Lanes::new(bits),
            service_ends: Instant::ZERO,
            stats: QueueStats::default(),
        })
    }

    /// The law underneath.
    pub const fn aqm(&self) -> &A {
        &self.aqm
    }

    /// What a packet of that hint would be offered now.
    pub fn offer(&mut self, now: Instant, hint: Hint) -> Offer {
        let place = self.place(now, hint);
        let Place { lane, q, weight, .. } = place;
        let q_prime = if self.pays_p(lane) { q } else { self.q_prime(&place) };
        Offer { lane, q, weight, q_prime }
    }

    #[inline]
    fn place(&self, now: Instant, hint: Hint) -> Place {
        let lane = hint.lane().min(self.lanes.len() - 1);
        let in_service = self.service_ends.saturating_since(now);
        let q = self.drain.time(self.lanes.backlog().bytes) + in_service;
        let weight = self.lanes.fit(lane, weight(self.bits, lane, q, now));
        Place { lane, q, weight, in_service }
    }

    #[inline]
    fn judge(&mut self, now: Instant, arrival: Arrival, place: &Place, random: &mut RandomStream) -> Verdict {
        let backlog = self.lanes.backlog();
        let p = self.aqm.arrive(now, arrival, backlog);
        if !self.limit.admits(backlog, arrival.size) {
            return Verdict::Drop(DropReason::Overflow);
        }
        let hit = self.hits(p, place, random);
        Verdict::from_hit(hit, hit && self.ecn && arrival.ecn_capable && self.aqm.may_mark())
    }

    /// Whether a draw of probability p' comes up.
    #[inline]
    fn hits(&mut self, p: Probability, place: &Place, random: &mut RandomStream) -> bool {
        if p == Probability::ZERO || self.pays_p(place.lane) {
            return random.chance(p);
        }
        let drawn = random.uniform();
        let at_most = charge(p, self.l, place.q, place.in_service, self.max_ratio);
        drawn < at_most.get() && {
            let q_prime = self.q_prime(place);
            drawn < charge(p, self.l, place.q, q_prime, self.max_ratio).get()
        }
    }

    /// Whether a lane is that of the largest hint, which cuts in front of nobody.
    #[inline]
    const fn pays_p(&self, lane: usize) -> bool {
        lane + 1 == self.lanes.len()
    }

    #[inline]
    fn q_prime(&mut self, place: &Place) -> Duration {
        self.drain.time(self.lanes.bytes_ahead(place.lane, place.weight)) + place.in_service
    }
}

impl<P: Copy, A: DropProbability> Queue<P> for Tsq<P, A> {
    #[inline]
    fn enqueue(&mut self, now: Instant, arrival: Arrival, packet: P, random: &mut RandomStream) -> Verdict {
        self.aqm.advance(now, self.lanes.backlog());
        let place = self.place(now, arrival.hint);
        let verdict = self.judge(now, arrival, &place, random);
        self.aqm.judged(now, arrival, verdict);
        self.stats.count_arrival(verdict, arrival.size);
        if !matches!(verdict, Verdict::Drop(_)) {
            let Place { lane, weight, .. } = place;
            self.lanes.push(lane, Entry { weight, arrived: now, size: arrival.size, packet });
        }
        verdict
    }

    #[inline]
    fn dequeue(&mut self, now: Instant) -> Option<Departure<P>> {
        self.aqm.advance(now, self.lanes.backlog());
        let Entry { arrived, size, packet, .. } = self.lanes.pop()?;
        self.service_ends = now.saturating_add(self.drain.time(u64::from(size)));
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
        self.drain = DrainRate::new(rate);
    }

    fn reset(&mut self, now: Instant, discard: &mut dyn FnMut(P)) {
        while let Some(entry) = self.lanes.pop() {
            self.stats.flushed.add(entry.size);
            discard(entry.packet);
        }
        self.service_ends = now;
        self.aqm.reset(now);
    }

    fn stats(&self) -> &QueueStats {
        &self.stats
    }
}

/// w of TSQ eq. 2, rounded down to the nanosecond. Lane k holds hint d = k + 1.
#[inline]
pub fn weight(bits: HintBits, lane: usize, td: Duration, ta: Instant) -> Instant {
    let d = lane as u64 + 1;
    let td = td.as_nanos().min(DrainRate::LONGEST.as_nanos());
    ta.saturating_add(Duration::from_nanos((d * td) >> bits.get()))
}

/// p' of TSQ eq. 5, with p' / p at most `max_ratio`. Never falls as q' does.
#[inline]
pub fn charge(p: Probability, l: Duration, q: Duration, q_prime: Duration, max_ratio: f64) -> Probability {
    let [l, q, q_prime] = [l, q, q_prime].map(|delay| delay.as_nanos() as f64);
    let ratio = (l + q) / (l + q_prime);
    Probability::clamped((ratio * ratio).min(max_ratio) * p.get())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NoEarlyDrop;
    use cutline_units::Streams;

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
    fn q_prime_counts_what_is_ahead_and_in_service() {
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
