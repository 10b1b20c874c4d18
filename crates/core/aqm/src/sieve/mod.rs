//! Sieve: flows below their fair share are served first and lose nothing. Flows above it wait in TSQ's lanes: the faster they send,
//! and the more packets they overtake, the more of their packets are dropped.
//!
//! TSQ believes hints and charges for them, so a sparse flow that cuts in line is charged like a greedy one. Queues for every flow serve
//! sparse flows first. They need state for each flow, know no hints, and are hard on a flow that needs a little more than
//! its share. Sieve finds sparse flows without hints, in memory of fixed size.
//!
//! ```text
//! f = fair share of the link C, from the sum of min(r, f) over all flows       share.rs
//! x = (recent bytes - size / 2) / (tau f)                                      rates.rs
//!
//! first:   x <= 1, nothing of the flow in the lanes, less than `first-delay` waiting there; no charge
//!          x <= 1/4 goes before the others
//! lanes:   TSQ's order, with td = lanes' backlog / (C - rate of the first queues)
//!          p' = p g(x) m ((l + q) / (l + q'))^2,  g = x^2 for x <= 1, x above
//!          m = M / mean M,  ln M = `surcharge` times the excess of the flow above 0.9 f that was let through, in seconds of its share; M >= 1
//!          q' is at least the real recent waiting time of packets of the same hint
//!          for x > 1 at most 1 - 1 / max(x, 1 + ln M), which leaves the flow its share, but never below p, or p' for x = 1 if that is less
//!          x <= 1/4 and behind its own packets there: right behind them, whatever its hint
//! next:    the first queues, but one byte in `lanes-share` is reserved for the lanes
//! ```
//!
//! p is the answer of the AQM below for the lanes' backlog, at the rate that is left to them. By default that is PI2, with a target and gains
//! for the round-trip time `rtt`. `below = { aqm = "pie", target = "15 ms" }` is any other AQM that answers a probability.
//!
//! **Why lying gains nothing, and honesty loses nothing.** The hint does not decide which flow is served first. In the lanes TSQ's law
//! charges a lower hint, and it charges a flow that sends more than the others more: g(x) leads back to the share. TSQ charges by
//! the bytes ahead on arrival. Packets that cut in later make a packet wait longer than it was charged for: if most flows lie, the
//! honest ones lose 8 % of their throughput (docs/studies/cheaters.md). So q' is at least the mean wait of the lane, and the charge of flows that wait
//! longer than the queue falls below p. A sender with many flows gets many shares, as with every queue that knows
//! flows only.
//!
//! **Hosts.** With `key = "source"` or `"destination"` all flows of a host are one, and its sparse flows wait with its others. With
//! `"source-then-flow"` or `"destination-then-flow"` a host has one share f, and x of a flow is over phi, its part of that: of each host's flows all together send f
//! if each sends at most phi (hosts.rs). So a host with ten transfers gets one share, each of them a tenth, and its call is still served first. No flow
//! has a smaller surcharge than its host. New flows count against their host's share: together they get an eighth of its f, or phi.
//!
//! **Why the price rises below the share, too.** Without g there is a second equilibrium: f as large as the link, no flow above it, all
//! of the lanes free of charge for the flows that fill them, and flows that respond to loss starved.
//!
//! **Why the price rises with time.** g alone is gentle: a flow whose round trip is short, all flows of a host that has many, and a sender
//! that does not respond would stay above the share. M, the surcharge, is a bucket: each packet in the lanes fills it by its part of a
//! second's share, and it empties at nine tenths of the share. So the flows that fill the link converge to the same rate,
//! whatever their paths and their response, also if they pulse. A flow that is above its share for a second is charged hardly
//! more. For a TCP, whose rate is as 1 / sqrt(p'), a difference shrinks with a time constant of 3 / `surcharge` = 3 s. Only
//! differences between flows matter: the price has M over its geometric mean in the lanes, so p keeps its gain.
//! Where all flows that fill the link are above nine tenths of f, all surcharges grow and no charge changes. All of them lose 0.01 of
//! the square of that mean, which keeps them in their range. (Nine tenths, because x fluctuates: f, which counts min(r, f), is above the rate that
//! each gets if all get the same.) Packets of the first queues fill no bucket, but keep one from emptying.
//!
//! **New flows.** A new flow has not sent much yet, so its x is small. A sender that uses a new flow for every
//! packet would always be served first. All flows that were first seen less than `newcomer-age` ago share one allowance,
//! `newcomers` of the link (or f, if that is more): x is at least their total rate over it. So they all together are
//! at most one flow that sends too much. They have one surcharge, too.
//!
//! **Marks.** With ECN, packets that can be marked are marked instead of dropped, while p' is at most `mark-until`. Beyond it they
//! are dropped, because a flow that ignores marks would lose nothing. Scalable ones are marked by a larger p, as the law says; they are dropped while
//! the p' of others in their place would be above `mark-until` (as RFC 9332 section 4.2.1 has it; 25 % is `p_Cmax` of appendix A.1). Once a surcharge
//! has grown, that holds for all flows that ignore marks, whatever they claim.
//!
//! **Defaults** depend on the link and on `rtt` alone: the target is a third of `rtt`, but never less than three packets of 1500 B; PI2's
//! gains are those of RFC 9332 appendix A.1 for a round trip of `rtt` and the target together.
//!
//! **Memory** does not grow: 16 B for each of the flows that have sent recently, and an eighth of `memory` for recent visitors. With hosts before
//! flows, a quarter of it is theirs, 36 B for each. Of the queue's limit an eighth is kept for the first queues.
//! Twice as many cells as flows are enough; with as many, some sets of eight have more flows than cells (docs/studies/sieve.md).
//!
//! **A salt that has become known** lets an attacker choose flows that share a victim's cell: a call counts with a flood then, and loses as it does. It
//! ends when the salt is drawn again, after at most 60 s, and 16 tau later all that the victim has inherited is forgotten. Salts come from the
//! queue's random numbers: in the router from the kernel's, in the simulator from the seed.
//!
//! Worked numbers: of ten flows that send 2 Mbit/s each over 10 Mbit/s, f = 0.95 Mbit/s and x = 2.1; each loses at most
//! 1 - 1 / 2.1 = 52 % to the price. For `rtt` = 300 ms the target is 100 ms, and PI2's alpha and beta are 0.01 and 0.75
//! (`gains_follow_the_round_trip`).
//!
//! `without` removes a part of the design, to show its effect.
//!
//! # Validation
//!
//! - Order within a flow, whichever way its packets go: `a_flow_keeps_its_order`, and every other test.
//! - Order of service: `the_sparse_go_first_whatever_their_hint`, `the_lanes_are_sure_of_their_share`.
//! - Pulses below tau: `pulses_gain_nothing`.
//! - Dropped packets: `who_sends_more_loses_more`, `a_flow_that_does_not_respond_keeps_its_share`, `marks_are_no_way_to_stay`.
//! - New flows: `new_flows_share_an_allowance`.
//! - Weights: `packets_behind_each_other_do_not_run_ahead_of_the_clock`.
//! - Hosts first: `a_host_has_one_share_and_its_flows_a_fair_part_of_it`, `new_flows_of_a_host_have_its_share`,
//!   `the_flows_of_a_host_share_what_it_may_send`, `what_a_host_may_send_moves_with_it`.
//! - A salt that has become known: `who_shares_a_cell_by_a_known_salt_does_not_by_the_next`, `an_attack_by_a_known_salt_ends_with_it`.
//! - The table: `a_table_that_is_full_never_counts_too_little`, `salts_change_without_forgetting`,
//!   `who_was_here_lately_is_no_newcomer`.
//! - The surcharge: `surcharges_grow_and_fall`, `who_stays_above_the_share_is_led_back`.
//! - The loop of f: `it_is_what_max_min_fairness_gives`, `on_a_full_link_it_is_at_once_where_it_matters`.
//! - No other engine has Sieve. `cutline reproduce sieve` compares it with the other queues, mix by mix.

mod hosts;
mod rates;
mod share;

use crate::delay_control::DelayControlParams;
use crate::pi2::Pi2Params;
use crate::sample_clock::SampleClock;
use crate::{
    AnyAqm, Aqm as _, AqmSpec, Arrival, Backlog, ChargedLanes, Count, Departure, Discipline, DrainRate,
    DropProbability, DropReason, Entry, InsertionPoint, Limit, Pi2, Queue, QueueStats, Readings,
    SieveReadings, TsqParams, Verdict,
};
use cutline_params::{Choice, ParameterError, Parameters};
use cutline_units::{Duration, HintBits, Instant, Probability, RandomStream, Rate};
use hosts::{Host, Hosts};
use rates::{Decaying, LARGEST_SURCHARGE, Rates, Seen};
use share::{FairShare, Gains};
use std::collections::VecDeque;

const OURS: &str = "ours: docs/studies/sieve.md";
const CSFQ: &str = "ours, after Stoica et al. 1998";

/// Parameters of Sieve.
#[derive(Clone, Copy, Debug, PartialEq, Parameters)]
pub struct SieveParams {
    /// The round-trip time, without queues, of most flows that fill the link.
    #[param(
        default = Duration::from_millis(100),
        range = (Duration::from_millis(1), Duration::from_secs(10)),
        source = "RFC 8289 section 4.1: suits paths of 10 ms to 300 ms"
    )]
    pub rtt: Duration,
    /// The delay of those above their share that PI2 holds; off: from `rtt` and the link's rate.
    #[param(default = None, range = (Duration::from_micros(100), Duration::from_secs(10)), source = OURS)]
    pub target: Option<Duration>,
    /// Memory for the state of flows.
    #[param(default = 65_536, range = (64, 1 << 30), unit = "B", source = OURS)]
    pub memory: u64,
    /// Unit whose rate counts: a flow, all flows of a host, or first a host and then each of its flows.
    #[param(default = Key::Flow, source = OURS)]
    pub key: Key,
    /// tau: the bytes of a flow count e^(-t / tau) after a time t.
    #[param(
        default = Duration::from_millis(250),
        range = (Duration::from_millis(10), Duration::from_secs(100)),
        source = CSFQ
    )]
    pub tau: Duration,
    /// The part of the link that all flows together should fill with at most a fair share each.
    #[param(default = 0.95, range = (0.1, 1.1), source = OURS)]
    pub eta: f64,
    /// The exponent with which the fair share falls.
    #[param(default = 0.2, range = (0.001, 1.0), source = OURS)]
    pub falling: f64,
    /// The exponent with which the fair share rises.
    #[param(default = 0.05, range = (0.001, 1.0), source = OURS)]
    pub rising: f64,
    /// The time between updates of the fair share.
    #[param(
        default = Duration::from_millis(50),
        range = (Duration::from_millis(1), Duration::from_secs(1)),
        source = OURS
    )]
    pub update: Duration,
    /// Largest waiting time in the first queues.
    #[param(
        default = Duration::from_millis(20),
        range = (Duration::ZERO, Duration::from_secs(1)),
        source = OURS
    )]
    pub first_delay: Duration,
    /// One byte in so many is sure to be the lanes' if both wait.
    #[param(default = 8, range = (2, 1000), source = OURS)]
    pub lanes_share: u64,
    /// The part of the link that all flows that have just come may have together without paying.
    #[param(default = 0.125, range = (0.001, 1.0), source = OURS)]
    pub newcomers: f64,
    /// Age below which a flow counts as new.
    #[param(
        default = Duration::from_millis(200),
        range = (Duration::ZERO, Duration::from_secs(100)),
        source = OURS
    )]
    pub newcomer_age: Duration,
    /// Increase of the logarithm of a flow's surcharge per second of its share that is let through in excess;
    /// 0: no surcharges.
    #[param(default = 1.0, range = (0.0, 10.0), source = OURS)]
    pub surcharge: f64,
    /// The largest p' at which packets that can be marked are marked.
    #[param(default = 0.25, range = (0.0, 1.0), source = "RFC 9332 appendix A.1: p_Cmax")]
    pub mark_until: f64,
    /// A part of the design that is left out, to show its effect.
    #[param(default = Without::Nothing, source = OURS)]
    pub without: Without,
    /// TSQ's own.
    #[group]
    pub tsq: TsqParams,
}

/// Unit whose rate counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum Key {
    /// Each flow's.
    Flow,
    /// All flows from the same host, so that several flows gain nothing.
    Source,
    /// All flows to the same host.
    Destination,
    /// All flows from the same host, and then each of these flows.
    SourceThenFlow,
    /// All flows to the same host, and then each of these flows.
    DestinationThenFlow,
}

/// A part of the design.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum Without {
    /// None: all of it is there.
    Nothing,
    /// No packet is served first.
    First,
    /// p' does not depend on x.
    RatePrice,
    /// The surcharge of every flow is 1.
    Surcharge,
    /// p' may leave a flow less than its share.
    Cap,
    /// The lanes are one: every packet has the largest hint.
    Order,
    /// p' does not depend on the place in the lanes.
    PlacePrice,
}

/// Sieve over a law other than its own.
#[derive(Clone, Debug, PartialEq)]
pub struct SieveSpec {
    /// Its parameters.
    pub sieve: SieveParams,
    /// The law.
    pub below: Box<AqmSpec>,
}

impl SieveSpec {
    /// An empty queue of this description.
    ///
    /// # Errors
    /// When a parameter was set in code to a value that is not allowed, or the AQM below is no law.
    pub(crate) fn build<P: Copy>(
        &self,
        limit: Limit,
        ecn: bool,
        rate: Rate,
    ) -> Result<Sieve<P, AnyAqm>, ParameterError> {
        let law = self.below.law(rate)?;
        let law = law.ok_or_else(|| {
            ParameterError::new("below", self.below.name(), "an AQM that answers a probability")
        })?;
        Sieve::over(&self.sieve, limit, ecn, rate, law)
    }
}

/// A packet of the first queues.
#[derive(Clone, Copy, Debug)]
struct First<P> {
    packet: P,
    size: u32,
    arrived: Instant,
}

/// Mean logarithm of the surcharges of the bytes in the lanes.
#[derive(Clone, Copy, Debug, Default)]
struct MeanSurcharge {
    mean: f64,
    bytes: f64,
    sum: f64,
}

impl MeanSurcharge {
    #[inline]
    fn count(&mut self, size: u32, surcharge: f64) {
        self.bytes += f64::from(size);
        self.sum += f64::from(size) * surcharge;
    }

    /// The update after `period`.
    fn update(&mut self, period: Duration) {
        /// The time constant of the mean, s.
        const SMOOTHED: f64 = 0.2;
        let (bytes, sum) = (std::mem::take(&mut self.bytes), std::mem::take(&mut self.sum));
        if bytes > 0.0 {
            self.mean += (sum / bytes - self.mean) * (period.as_secs_f64() / SMOOTHED).min(1.0);
        }
    }
}

/// All flows that have just come, which are one flow to the price.
#[derive(Clone, Copy, Debug, Default)]
struct Newcomers {
    /// Bytes sent recently, decaying.
    sent: Decaying,
    /// The logarithm of their surcharge as of `at`.
    surcharge: f64,
    at: Instant,
}

impl Newcomers {
    /// The logarithm of their surcharge, which falls by `falling` a second.
    #[inline]
    fn surcharge(&mut self, now: Instant, falling: f64) -> f64 {
        let silent = now.saturating_since(self.at).as_secs_f64();
        self.surcharge = (self.surcharge - falling * silent).clamp(0.0, LARGEST_SURCHARGE);
        self.at = now;
        self.surcharge
    }
}

/// State of the sender of a packet.
#[derive(Clone, Copy, Debug)]
struct Sender {
    seen: Seen,
    /// Its host, if that counts before the flow.
    host: Option<Host>,
    /// Rate in multiples of its share.
    x: f64,
}

/// Packets that are served first, in the order of their arrival.
#[derive(Clone, Debug)]
struct FirstQueue<P> {
    packets: VecDeque<First<P>>,
    bytes: u64,
}

impl<P: Copy> FirstQueue<P> {
    const fn new() -> Self {
        Self { packets: VecDeque::new(), bytes: 0 }
    }

    #[inline]
    fn push(&mut self, packet: First<P>) {
        self.bytes += u64::from(packet.size);
        self.packets.push_back(packet);
    }

    #[inline]
    fn pop(&mut self) -> Option<First<P>> {
        let packet = self.packets.pop_front()?;
        self.bytes -= u64::from(packet.size);
        Some(packet)
    }

    /// Returns whether a packet of `size` may join. One may always wait.
    #[inline]
    fn admits(&self, size: u32, limit: u64) -> bool {
        self.packets.is_empty() || self.bytes + u64::from(size) <= limit
    }

    /// Returns the time at which the next packet arrived.
    #[inline]
    fn next_arrived(&self) -> Option<Instant> {
        self.packets.front().map(|packet| packet.arrived)
    }
}

/// Sieve over a law.
#[derive(Clone, Debug)]
pub struct Sieve<P, A = Pi2> {
    params: SieveParams,
    limit: Limit,
    ecn: bool,
    rate: Rate,
    law: A,
    rates: Rates,
    hosts: Option<Hosts>,
    share: FairShare,
    surcharges: MeanSurcharge,
    newcomers: Newcomers,
    clock: SampleClock,
    /// Queues that are served first: of flows up to a quarter of their share, and of the other flows below
    /// it.
    first: [FirstQueue<P>; 2],
    /// Limit of each of these queues, B.
    first_limit: u64,
    /// True if a packet found no room in these queues since the last update.
    is_crowded: bool,
    /// Bytes served first since the last update, and their mean rate, B/s.
    first_sent: u64,
    first_rate: f64,
    lanes: ChargedLanes<P>,
    /// The mean wait of the packets of each lane.
    waits: Box<[Duration]>,
    /// Bytes that the lanes may send while the first queues are not empty.
    credit: u64,
    went_first: Count,
    paid: Count,
    /// Time of the last call.
    now: Instant,
    stats: QueueStats,
}

impl SieveParams {
    /// The delay of the lanes that PI2 holds in front of a link of `rate`.
    pub fn target(&self, rate: Rate) -> Duration {
        let least = DrainRate::new(rate).time(3 * MTU);
        self.target.unwrap_or_else(|| self.rtt.mul_f64(1.0 / 3.0).max(least).min(Duration::from_secs(10)))
    }

    /// PI2 with the default parameters of Sieve.
    pub fn pi2(&self, rate: Rate) -> Pi2Params {
        let target = self.target(rate);
        let longest = (self.rtt + target).as_secs_f64();
        let t_update = Duration::from_millis(16);
        Pi2Params {
            control: DelayControlParams {
                target,
                t_update,
                alpha: 0.1 * t_update.as_secs_f64() / (longest * longest),
                beta: 0.3 / longest,
            },
            ..Pi2Params::default()
        }
    }
}

/// Decay of all surcharges, as a part of the square of their mean logarithm.
const LEAK: f64 = 0.01;

/// The x above which a surcharge grows.
const AT_REST: f64 = 0.9;

/// Flows up to this part of their share go before all others.
const SPARSE: f64 = 0.25;

impl Key {
    /// Returns the flow key whose rate counts.
    #[inline]
    pub(crate) const fn of(self, arrival: &Arrival) -> u32 {
        match self {
            Self::Flow | Self::SourceThenFlow | Self::DestinationThenFlow => arrival.flow,
            Self::Source => arrival.hosts[0],
            Self::Destination => arrival.hosts[1],
        }
    }

    /// Returns the host key whose rate counts before that of the flow.
    #[inline]
    pub(crate) const fn host_of(self, arrival: &Arrival) -> Option<u32> {
        match self {
            Self::Flow | Self::Source | Self::Destination => None,
            Self::SourceThenFlow => Some(arrival.hosts[0]),
            Self::DestinationThenFlow => Some(arrival.hosts[1]),
        }
    }

    /// Returns whether hosts count before flows.
    pub(crate) const fn has_hosts(self) -> bool {
        matches!(self, Self::SourceThenFlow | Self::DestinationThenFlow)
    }

    /// The table of hosts, if there is one.
    fn hosts(params: &SieveParams, gains: Gains) -> Option<Hosts> {
        let memory = Hosts::memory_of(params.memory);
        params
            .key
            .has_hosts()
            .then(|| Hosts::new(memory, params.tau, params.newcomer_age, gains, params.update))
    }
}

/// A large packet, B.
const MTU: u64 = 1500;

impl<P: Copy> Discipline for Sieve<P> {
    type Params = SieveParams;
    const NAME: &'static str = "sieve";
    const TITLE: &'static str = "Sieve";
    const SOURCE: &'static str = "ours, from TSQ and CSFQ (Stoica, Shenker, Zhang, SIGCOMM 1998)";

    fn build(params: &SieveParams, limit: Limit, ecn: bool, rate: Rate) -> Result<Self, ParameterError> {
        params.validate()?;
        let law = Pi2::build(&params.pi2(rate), rate)?;
        Sieve::over(params, limit, ecn, rate, law)
    }
}

impl<P: Copy, A: DropProbability> Sieve<P, A> {
    /// An empty queue over `law`.
    ///
    /// # Errors
    /// When a parameter is outside its range.
    pub fn over(
        params: &SieveParams,
        limit: Limit,
        ecn: bool,
        rate: Rate,
        mut law: A,
    ) -> Result<Self, ParameterError> {
        params.validate()?;
        law.reorders();
        let gains = Gains { eta: params.eta, falling: params.falling, rising: params.rising };
        let hosts = Key::hosts(params, gains);
        let of_flows = params.memory - hosts.as_ref().map_or(0, |_| Hosts::memory_of(params.memory));
        let mut sieve = Self {
            params: *params,
            limit,
            ecn,
            rate,
            law,
            rates: Rates::new(of_flows, params.tau, params.newcomer_age),
            hosts,
            share: FairShare::new(gains, rate),
            surcharges: MeanSurcharge::default(),
            newcomers: Newcomers::default(),
            clock: SampleClock::new(Instant::ZERO, params.update),
            first: [FirstQueue::new(), FirstQueue::new()],
            first_limit: 0,
            is_crowded: false,
            first_sent: 0,
            first_rate: 0.0,
            lanes: ChargedLanes::new(&params.tsq, rate)?,
            waits: vec![Duration::ZERO; 1 << params.tsq.bits].into(),
            credit: 0,
            went_first: Count::default(),
            paid: Count::default(),
            now: Instant::ZERO,
            stats: QueueStats::default(),
        };
        sieve.follow_rate(Instant::ZERO);
        Ok(sieve)
    }

    /// The law below.
    pub const fn law(&self) -> &A {
        &self.law
    }

    /// Takes the updates of the law and of the fair share that are due.
    #[inline]
    fn catch_up(&mut self, now: Instant) {
        self.now = now;
        self.law.advance(now, self.lanes.backlog());
        let mut updated = false;
        let Self { clock, share, surcharges, is_crowded, first_sent, first_rate, params, .. } = self;
        clock.catch_up(now, || {
            updated = true;
            let sent = std::mem::take(first_sent) as f64 / params.update.as_secs_f64();
            let before = *first_rate;
            // The rate falls at once: a flow of the first queues may be in the lanes a moment later, which then have the whole link.
            *first_rate = sent.min(*first_rate + (sent - *first_rate) / 8.0);
            surcharges.update(params.update);
            share.update(params.update, std::mem::take(is_crowded)) || (before - *first_rate).abs() > 1.0
        });
        if updated {
            self.follow_rate(now);
        }
    }

    /// Derives the rate of the lanes from the link's rate and the rate of the first queues.
    #[cold]
    fn follow_rate(&mut self, now: Instant) {
        let link = self.rate.as_bps() as f64;
        let least = link / self.params.lanes_share as f64;
        let left = Rate::from_bps((link - 8.0 * self.first_rate).max(least).max(1.0) as u64);
        self.lanes.set_rate(left);
        self.law.set_rate(now, left);
        self.first_limit = (link / 8.0 * self.params.first_delay.as_secs_f64()) as u64;
    }

    /// Returns the allowance of all new flows together, B/s.
    #[inline]
    fn allowance(&self) -> f64 {
        let link = self.rate.as_bps() as f64 / 8.0;
        (self.params.newcomers * link).max(self.share.get())
    }

    /// Returns the rate of a packet's sender in multiples of its share, which is `part` of f.
    #[inline]
    fn times_its_share(&self, size: u32, seen: &Seen, part: f64) -> f64 {
        let tau = self.params.tau.as_secs_f64();
        (seen.bytes - f64::from(size) / 2.0) / (tau * self.share.get() * part)
    }

    /// Returns the rate of all new flows in multiples of their allowance, with this packet of one of them.
    #[inline]
    fn times_their_allowance(&mut self, now: Instant, size: u32) -> f64 {
        let together = self.newcomers.sent.add(now, size, self.params.tau) - f64::from(size) / 2.0;
        together / (self.params.tau.as_secs_f64() * self.allowance())
    }

    /// Counts a packet and returns the state of its sender.
    #[inline]
    fn look_up(&mut self, now: Instant, arrival: &Arrival, random: &mut RandomStream) -> Sender {
        let (size, falling) = (arrival.size, self.falling());
        let (flow, least) = (self.params.key.of(arrival), self.lanes.least_weight());
        let share = self.share.get();
        let host = self
            .hosts
            .as_mut()
            .zip(self.params.key.host_of(arrival))
            .map(|(hosts, host)| hosts.count(now, host, size, (falling, share), random));
        let mut seen = self.rates.count(now, flow, size, least, falling, random);
        let part = host.map_or(1.0, |host| host.part);
        let mut x = self.times_its_share(size, &seen, part);
        let mut x_first = host.map_or(x, |host| self.times_its_share(size, &host.seen, 1.0));
        match host {
            // The allowance of a new flow is its host's if that is known. No flow is charged less than its host.
            Some(host) if !host.seen.is_new => {
                seen.surcharge = seen.surcharge.max(host.seen.surcharge);
                if let Some(hosts) = self.hosts.as_mut().filter(|_| seen.is_new) {
                    let together = hosts.count_fresh(&host, size) - f64::from(size) / 2.0;
                    let allowance = share * part.max(self.params.newcomers);
                    x = x.max(together / (self.params.tau.as_secs_f64() * allowance));
                }
            }
            _ if seen.is_new => {
                seen.surcharge = self.newcomers.surcharge(now, falling);
                let together = self.times_their_allowance(now, size);
                (x, x_first) = (x.max(together), x_first.max(together));
            }
            _ => {}
        }
        self.share.count(size, x_first);
        if let (Some(hosts), Some(host)) = (&mut self.hosts, &host) {
            hosts.count_flow(host, size, x);
        }
        Sender { seen, host, x }
    }

    /// Decrease of the logarithms of all surcharges in a second.
    #[inline]
    fn falling(&self) -> f64 {
        self.params.surcharge * (AT_REST + LEAK * self.surcharges.mean.powi(2))
    }

    /// Adds to a sender's surcharge for a packet that was not dropped. Packets that are served first only keep a surcharge from falling.
    #[inline]
    fn charge(&mut self, now: Instant, size: u32, sender: &Sender, goes_first: bool) {
        if matches!(self.params.without, Without::RatePrice | Without::Surcharge) {
            return;
        }
        let Sender { seen, host, .. } = sender;
        let charge = self.params.surcharge * f64::from(size);
        let known_host = host.as_ref().filter(|host| !host.seen.is_new);
        if seen.is_new && known_host.is_none() {
            self.newcomers.surcharge += if goes_first { 0.0 } else { charge / self.allowance() };
            return;
        }
        let charge = charge / self.share.get();
        let of = |charge: f64, seen: &Seen| if goes_first { charge.min(seen.fallen) } else { charge };
        if let (Some(host), Some(hosts)) = (known_host, &mut self.hosts) {
            hosts.charge(now, host, of(charge, &host.seen));
        }
        let part = host.as_ref().map_or(1.0, |host| host.part);
        let charge = of(charge / part, seen);
        if charge > 0.0 {
            self.rates.charge(now, seen, charge);
        }
    }

    /// p' of a packet at `point` whose flow sends x times its share and has this logarithm of its surcharge, where the law says p.
    fn price(&mut self, p: Probability, (x, surcharge): (f64, f64), point: &InsertionPoint) -> Probability {
        if p == Probability::ZERO {
            return p;
        }
        let g = match (self.params.without, x <= 1.0) {
            (Without::RatePrice, _) => 1.0,
            (_, true) => x * x,
            (_, false) => x,
        };
        let place = if self.params.without == Without::PlacePrice {
            1.0
        } else {
            let wait = self.lanes.ahead(point).max(self.waits[point.lane()]);
            self.lanes.charge_ratio(point, wait)
        };
        let full = p.get() * g * (surcharge - self.surcharges.mean).exp() * place;
        Probability::clamped(if x > 1.0 && self.params.without != Without::Cap {
            full.min((1.0 - 1.0 / x.max(1.0 + surcharge)).max(p.get() * place.min(1.0)))
        } else {
            full
        })
    }

    /// Returns the first queue for a flow that sends x times its share; `None` for the lanes.
    #[inline]
    fn place_first(&mut self, arrival: Arrival, x: f64, seen: &Seen) -> Option<usize> {
        let has_sent_less = x <= 1.0 && self.params.without != Without::First;
        if !has_sent_less
            || seen.stands(self.lanes.least_weight())
            || !self.limit.admits(self.backlog(), arrival.size)
        {
            return None;
        }
        let is_behind = x > SPARSE || seen.came_since(self.first[1].next_arrived());
        let place = usize::from(is_behind);
        let has_room = self.first[place].admits(arrival.size, self.first_limit);
        self.is_crowded |= !has_room;
        has_room.then_some(place)
    }

    /// A packet of the lanes, if it is not dropped.
    fn stand(
        &mut self,
        now: Instant,
        mut arrival: Arrival,
        packet: P,
        sender: &Sender,
        random: &mut RandomStream,
    ) -> Verdict {
        let Sender { x, ref seen, .. } = *sender;
        if self.params.without == Without::Order {
            arrival.hint = self.largest_hint();
        }
        // A flow far below the share that waits only because its own packets wait joins these, and not the end: otherwise it would never leave the lanes.
        let point = match seen.stands(self.lanes.least_weight()).then(|| seen.last_weight(now)) {
            Some(last) if x <= SPARSE && self.params.without != Without::First => {
                self.lanes.insertion_point_behind(now, last)
            }
            last => {
                let point = self.lanes.insertion_point(now, arrival.hint, arrival.waited);
                last.map_or(point, |last| point.behind(last))
            }
        };
        let p = self.law.arrive(now, arrival, self.lanes.backlog());
        let verdict = if self.lanes_admit(arrival.size) {
            let price = self.price(p, (x, seen.surcharge), &point);
            let is_hit = random.chance(price);
            Verdict::from_hit(is_hit, is_hit && self.may_mark(arrival, price, (x, seen.surcharge), &point))
        } else {
            Verdict::Drop(DropReason::Overflow)
        };
        self.law.judged(now, arrival, verdict);
        if matches!(verdict, Verdict::Drop(_)) {
            return verdict;
        }
        if !self.lanes.push(now, &point, arrival.size, packet) {
            return Verdict::Drop(DropReason::Overflow);
        }
        self.rates.stands(seen, point.weight());
        self.charge(now, arrival.size, sender, false);
        verdict
    }

    /// Returns whether a packet that p' has hit may be marked. A sender that claims to be scalable is marked
    /// by a larger p; whether it may stay is decided by the p' that others would have in its place, or a
    /// claim would be a way to ignore all marks.
    fn may_mark(
        &mut self,
        arrival: Arrival,
        price: Probability,
        sender: (f64, f64),
        point: &InsertionPoint,
    ) -> bool {
        if !self.ecn || !arrival.ecn_capable || !self.law.may_mark() {
            return false;
        }
        let of_others = self.law.probability().filter(|_| arrival.scalable);
        let price = of_others.map_or(price, |p| self.price(p, sender, point));
        price.get() <= self.params.mark_until
    }

    /// Returns whether the lanes may hold a further packet: an eighth of the limit is kept for the first
    /// queues.
    #[inline]
    fn lanes_admit(&self, size: u32) -> bool {
        let kept = match self.limit {
            Limit::Packets(most) => Limit::Packets((most - most / 8).max(1)),
            Limit::Bytes(most) => Limit::Bytes(most - most / 8),
        };
        kept.admits(self.lanes.backlog(), size) && self.limit.admits(self.backlog(), size)
    }

    fn largest_hint(&self) -> cutline_units::Hint {
        HintBits::new(self.params.tsq.bits).expect("the range of bits has been checked").largest()
    }

    fn take_first(&mut self, now: Instant) -> Option<Departure<P>> {
        let First { packet, size, arrived } = self.first.iter_mut().find_map(FirstQueue::pop)?;
        self.first_sent += u64::from(size);
        if self.lanes.backlog().packets > 0 {
            // Unused service is not saved for long.
            let most = 2 * (self.params.lanes_share - 1) * MTU;
            self.credit = (self.credit + u64::from(size)).min(most);
        } else {
            self.credit = 0;
        }
        self.lanes.serve(now, size);
        Some(Departure { packet, size, arrived, marked: false })
    }

    fn take_from_lanes(&mut self, now: Instant) -> Option<Departure<P>> {
        let lane = self.lanes.next_lane()?;
        let Entry { arrived, size, packet, .. } = self.lanes.pop(now)?;
        self.note_wait(lane, now.saturating_since(arrived));
        let cost = (self.params.lanes_share - 1) * u64::from(size);
        self.credit = self.credit.saturating_sub(cost);
        self.law.departed(now, size, arrived, self.lanes.backlog());
        Some(Departure { packet, size, arrived, marked: false })
    }

    /// Averages how long packets of a lane really wait.
    #[inline]
    fn note_wait(&mut self, lane: usize, waited: Duration) {
        let mean = &mut self.waits[lane];
        *mean = Duration::from_nanos((15 * mean.as_nanos() + waited.as_nanos()) / 16);
    }

    /// Returns whether the lanes are served next although the first queues are not empty. Their packet must
    /// have come before all of that: a flow that has begun to send more than its share may still have packets
    /// there.
    #[inline]
    fn lanes_are_due(&self) -> bool {
        if self.credit < (self.params.lanes_share - 1) * MTU {
            return false;
        }
        let came = |queue: &FirstQueue<P>| queue.next_arrived();
        let first = self.first.iter().filter_map(came).min();
        let standing = self.lanes.next_arrived();
        standing.is_some_and(|standing| first.is_none_or(|first| standing < first))
    }
}

impl<P: Copy, A: DropProbability> Queue<P> for Sieve<P, A> {
    fn enqueue(&mut self, now: Instant, arrival: Arrival, packet: P, random: &mut RandomStream) -> Verdict {
        self.catch_up(now);
        let size = arrival.size;
        let sender = self.look_up(now, &arrival, random);
        let verdict = if let Some(place) = self.place_first(arrival, sender.x, &sender.seen) {
            self.first[place].push(First { packet, size, arrived: now });
            self.went_first.add(size);
            self.charge(now, size, &sender, true);
            Verdict::Pass
        } else {
            self.paid.add(size);
            self.surcharges.count(size, sender.seen.surcharge);
            self.stand(now, arrival, packet, &sender, random)
        };
        self.stats.count_arrival(verdict, size);
        verdict
    }

    fn dequeue(&mut self, now: Instant) -> Option<Departure<P>> {
        self.catch_up(now);
        let departure = if self.lanes_are_due() {
            self.take_from_lanes(now)
        } else {
            self.take_first(now).or_else(|| self.take_from_lanes(now))
        }?;
        self.stats.dequeued.add(departure.size);
        Some(departure)
    }

    fn backlog(&self) -> Backlog {
        let Backlog { packets, bytes } = self.lanes.backlog();
        let [sparse, other] = &self.first;
        let first = (sparse.packets.len() + other.packets.len()) as u32;
        Backlog { packets: packets + first, bytes: bytes + sparse.bytes + other.bytes }
    }

    fn probability(&self) -> Option<Probability> {
        self.law.probability()
    }

    fn readings(&self) -> Readings {
        let sieve = SieveReadings {
            went_first: self.went_first,
            paid: self.paid,
            fair_share: Rate::from_bps((8.0 * self.share.get()) as u64),
            load: self.rates.load(self.now),
        };
        Readings { sieve: Some(sieve), ..self.law.readings() }
    }

    fn advance(&mut self, now: Instant) {
        self.catch_up(now);
    }

    fn set_rate(&mut self, now: Instant, rate: Rate) {
        self.catch_up(now);
        self.rate = rate;
        self.share.set_rate(rate);
        self.follow_rate(now);
    }

    fn reset(&mut self, now: Instant, discard: &mut dyn FnMut(P)) {
        while let Some(First { packet, size, .. }) = self.first.iter_mut().find_map(FirstQueue::pop) {
            self.stats.flushed.add(size);
            discard(packet);
        }
        self.lanes.reset(now, |entry| {
            self.stats.flushed.add(entry.size);
            discard(entry.packet);
        });
        (self.first_sent, self.first_rate, self.credit) = (0, 0.0, 0);
        self.is_crowded = false;
        self.newcomers = Newcomers::default();
        self.waits.fill(Duration::ZERO);
        self.rates.reset();
        self.hosts.iter_mut().for_each(Hosts::reset);
        self.share.reset();
        self.surcharges = MeanSurcharge::default();
        self.law.reset(now);
        self.clock.restart(now);
        self.follow_rate(now);
    }

    fn stats(&self) -> &QueueStats {
        &self.stats
    }
}

#[cfg(test)]
mod tests;
