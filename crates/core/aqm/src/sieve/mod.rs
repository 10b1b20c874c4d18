//! Sieve: a flow that has recently used less of its share is served before others, and its drop probability follows from its own wait.
//!
//! Every flow has one number, the finish of its last packet in virtual time. The order of service follows from it, and
//! so does the price, which is the drop probability. Hints are not trusted, and no control loop estimates a share: the
//! measure is a flow's own lag behind its share.
//!
//! ```text
//! V      = start of the packet in service, as in start-time fair queueing; f = dV/dt over tau is the fair share
//! F      = max(F, min(V - f tau, bytes waiting)): the floor, below which no packet starts. An unused share is kept for tau
//! start  = max(F, finish of the flow),  finish = start + size;  the least finish is served next
//! w      = (start - V) / f: the wait that the flow's own packets cause, known on arrival
//! p'     = (w - t - g) / (2 rtt),  t = max(hint / 16 * rtt / 3, size / f);  dropped or marked with p'^2
//! g      = rtt for two rtt after a drop or a mark, else 0: excess that a sender could not yet react to is not counted
//! ```
//!
//! A flow below its share starts at the floor: it waits for the packets of other such flows alone, and its w is 0. A
//! flow above its share has a w that grows, whatever others do. Only this flow waits longer, and its price makes it
//! reduce its rate. The order alone gives every flow its share (Goyal, Vin, Cheng 1996). The price only keeps queues
//! short, so it needs neither state nor an integral: a sender that does not respond fills its own queue and no other
//! one.
//!
//! **Hints.** A hint is a flow's own target: a lower one waits less and loses more. It changes nothing for others, and gives no flow a larger share.
//!
//! **Marks.** With ECN, packets that can be marked are marked instead of dropped while p'^2 is at most 25 % (`p_Cmax`
//! of RFC 9332 appendix A.1). Scalable ones are marked also by a ramp on w, from 1.3 ms on, 1.5 large packets at f, or
//! the longest pause of the link in about tau, to twice that. While other flows wait, a second ramp counts: on the w
//! that the flow would have if no unused share were kept for it, over the next 10 ms, or 5 large packets. So a
//! scalable sender is marked when its rate passes its share. A mark when the kept share is used up would come a round
//! trip too late for its wait. A sender that has used less than an eighth of tau of an unused share is below its
//! share, and the second ramp does not mark it. A pause is a time for which the link takes no packet although one
//! waits, as between two slots of a radio link.
//!
//! Slow start of a scalable sender is treated as that of any other sender, and ends by the price: a sender that is paced
//! at twice its rate waits already at half its share, and the first mark halves its window. The ramps begin when the two
//! rtt after its first mark or drop have passed. From then on g is 0, t is at most the end of the first ramp, and p'
//! grows six times as fast, because the ramps have marked the sender's packets before.
//!
//! In a tunnel, or with hosts as flows, a scalable sender may share its account with others, whose packets it waits for.
//! As long as one of the last 63 packets was theirs, it has no ramps and the ordinary price, and is marked with 4 p', as
//! in a coupled queue (RFC 9332 section 2.1): its rate is then about that of the others.
//!
//! **Rates.** f is scaled with C when the rate is set, unless C alternates: it has fallen and risen again within tau, less
//! than 2 tau ago. Then f follows the packets that leave.
//!
//! **New flows.** A flow that has just begun is below any share, and a sender could use a new flow for every packet.
//! Therefore flows that were first seen less than `newcomer-age` ago share two accounts, one for those that have been
//! at the floor by themselves, and one for those that have been behind it. A call that begins therefore does not wait
//! for ten slow starts that begin. Each account has the share of a flow, or an eighth of the link if that is more.
//!
//! **Hosts.** With `key = "source"` or `"destination"` all flows of a host are one. With `"source-then-flow"` or `"destination-then-flow"` a packet of a
//! host counts as many times as flows of the host have packets waiting: so each host has a share f, and each of its flows an equal part of
//! it. A busy host's call still starts at the floor. New flows of a known host have an account of their own, as one of its flows.
//!
//! **A full queue** pushes out the packet with the largest finish. **An idle link** lets V run at the rate of the share, which grows by e in tau up to
//! the link's rate. V falls to the served bytes when nothing has reached it for `rtt`: then the flows are below it.
//!
//! **Memory** does not grow: 24 B for each of the flows that have sent recently (accounts.rs), and the calendar of
//! packets (calendar.rs). With hosts before flows, a quarter of `memory` is theirs. A flow without a cell is a guest:
//! it shares the account of another flow. Its price has no grace and assumes the largest hint, because the wait is not
//! its own.
//!
//! Worked numbers: three flows that send 3.2, 4.8 and 9.6 Mbit/s over 8 Mbit/s get a third of it each, and lose 17, 44 and 72 %
//! (`flows_with_higher_rates_lose_more`). On a link of 8 Mbit/s with two others, a flow that does not respond waits until p'^2 is the part that it sends
//! too much: for 72 % at `rtt` = 100 ms, 33 + 100 + 200 * 0.85 = 303 ms.
//!
//! # Validation
//!
//! - Order within a flow: `a_flow_keeps_its_order`, `flows_that_share_an_account_keep_their_order`, and every other test;
//!   `flows_keep_their_order` of the calendar.
//! - Order of service: `sparse_flows_are_served_first_at_any_hint`, `the_calendar_is_a_sorted_list_to_the_width_of_a_slot`.
//! - Start-time fairness, the largest wait of a sparse flow, and the gain of a false hint:
//!   `backlogged_flows_get_the_same_to_two_packets`, `a_sparse_flow_waits_for_sparse_flows_alone`,
//!   `no_claim_gains_a_share`.
//! - Pulses around tau: `pulses_gain_no_share`.
//! - Dropped packets: `flows_with_higher_rates_lose_more`, `a_flow_that_does_not_respond_keeps_its_share`, `a_hint_is_a_target`, `a_flow_that_ignores_marks_is_held_to_its_share`.
//! - New flows: `new_flows_share_an_allowance`, `calls_that_begin_do_not_wait_for_slow_starts`.
//! - Hosts: `a_host_that_splits_its_traffic_gains_only_where_flows_count`, `a_host_has_one_share_and_its_flows_a_fair_part_of_it`,
//!   `new_flows_of_a_host_have_its_share`.
//! - An attacker that knows the salt: `an_attack_by_a_known_salt_ends_with_it`.
//! - Scalable senders: `a_scalable_sender_is_marked_when_its_rate_passes_its_share_and_soon_no_longer`,
//!   `slow_start_of_a_scalable_sender_ends_by_the_price`, `a_scalable_sender_that_ignores_marks_waits_briefly`,
//!   `pauses_of_the_link_are_not_a_scalable_senders_own_wait`, `a_scalable_sender_in_a_tunnel_has_the_price_of_the_others`.
//! - A surge: `the_effect_of_a_surge_ends_soon`. A rate that falls: `sparse_flows_are_served_first_after_a_fall_of_the_rate`. One
//!   that alternates: `a_rate_of_a_moment_causes_no_drop`.
//! - No other engine has Sieve. `experiments/suites` compares it with FQ-CoDel, CAKE and DualPI2, cell by cell.

mod accounts;
mod calendar;
mod pauses;
mod salt;
mod visitors;

use crate::{
    Arrival, Backlog, Count, Departure, Discipline, DropReason, Limit, Queue, QueueStats, Readings, Shed,
    SieveReadings, Verdict,
};
use accounts::{Accounts, Place, nearer};
use calendar::{Calendar, Entry, Owner};
use cutline_params::{Choice, ParameterError, Parameters};
use cutline_units::{Duration, Instant, Probability, RandomStream, Rate};
use pauses::Pauses;

const OURS: &str = "ours: docs/internals/sieve.md";

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
    /// tau: time for which an unused share is kept.
    #[param(
        default = Duration::from_millis(150),
        range = (Duration::from_millis(10), Duration::from_secs(100)),
        source = OURS
    )]
    pub tau: Duration,
    /// Unit that has a share: a flow, all flows of a host, or first a host and then each of its flows.
    #[param(default = Key::Flow, source = OURS)]
    pub key: Key,
    /// Memory for the state of flows.
    #[param(default = 65_536, range = (64, 1 << 30), unit = "B", source = OURS)]
    pub memory: u64,
    /// Age below which a flow counts as new.
    #[param(
        default = Duration::from_millis(200),
        range = (Duration::ZERO, Duration::from_secs(30)),
        source = OURS
    )]
    pub newcomer_age: Duration,
}

impl SieveParams {
    /// Returns a limit that early drops keep the backlog below on a link of this rate, packets of 1500 B: four times those that leave in the
    /// time that transfers wait free of charge.
    pub fn usual_limit(&self, rate: Rate) -> u32 {
        let waiting = rate.as_bps() as f64 / 8.0 * self.rtt.as_secs_f64() * TARGET / MTU;
        (4.0 * waiting) as u32
    }
}

/// Returns the replacement of a parameter that Sieve had before its law by accounts, in words that follow the parameter's name.
pub fn former_parameter(name: &str) -> Option<&'static str> {
    match name {
        "target" => Some("has been replaced by \"rtt\": the wait of transfers is a third of it"),
        "below" => {
            Some("has no replacement: the price follows from a flow's own wait, and no law is below it")
        }
        "eta" | "falling" | "rising" | "update" => {
            Some("has no replacement: the fair share is read from the packets that leave, and not estimated")
        }
        "first-delay" | "lanes-share" => Some("has no replacement: there is one order for all packets"),
        "newcomers" => Some("has no replacement: new flows have an eighth of the link together, or a share"),
        "surcharge" => Some("has no replacement: the order of service gives each flow its share"),
        "mark-until" => {
            Some("has no replacement: packets are marked while their probability is at most 25 %")
        }
        "without" => Some("has no replacement: there are no parts that can be left out"),
        "bits" | "l" | "max-ratio" | "age-credit" => {
            Some("has no replacement: there are no lanes, and a hint is a flow's own target")
        }
        _ => None,
    }
}

/// Unit that has a share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum Key {
    /// Each flow.
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

impl Key {
    /// Returns the key of the flow, or of the host that counts as one.
    #[inline]
    const fn of(self, arrival: &Arrival) -> u32 {
        match self {
            Self::Flow | Self::SourceThenFlow | Self::DestinationThenFlow => arrival.flow,
            Self::Source => arrival.hosts[0],
            Self::Destination => arrival.hosts[1],
        }
    }

    /// Returns the key of the host that counts before the flow.
    #[inline]
    const fn host_of(self, arrival: &Arrival) -> Option<u32> {
        match self {
            Self::Flow | Self::Source | Self::Destination => None,
            Self::SourceThenFlow => Some(arrival.hosts[0]),
            Self::DestinationThenFlow => Some(arrival.hosts[1]),
        }
    }

    /// Returns whether hosts count before flows.
    const fn has_hosts(self) -> bool {
        matches!(self, Self::SourceThenFlow | Self::DestinationThenFlow)
    }
}

/// Size of a large packet, B.
const MTU: f64 = 1500.0;
/// The part of the link, or of a host's share, that new flows have together at least.
const NEWCOMERS: f64 = 0.125;
/// The part of the round trip that a flow's own packets may make it wait free of charge.
const TARGET: f64 = 1.0 / 3.0;
/// The largest p' at which packets are marked instead of dropped: `p_Cmax` of RFC 9332 appendix A.1.
const MARK_UNTIL: f64 = 0.25;
/// The wait at which scalable senders are marked first, s.
const RAMP: f64 = 0.0013;
/// The same in large packets at the fair share.
const RAMP_PACKETS: f64 = 1.5;
/// The width of the second ramp, s: that on the wait without a kept share.
const SECOND_RAMP: f64 = 0.01;
/// The same in large packets at the fair share.
const SECOND_RAMP_PACKETS: f64 = 5.0;
/// The part of tau of which a flow must have used an unused share for the second ramp to count.
const SPARED: f64 = 0.875;
/// The part of the round trip in which p' grows to 1.
const SLOPE: f64 = 2.0;
/// The probability of a mark over p' for a scalable sender that shares its account with others: twice the coupling factor of RFC 9332 section 2.1,
/// because no packet of the account is hit during a grace.
const COUPLING: f64 = 4.0;
/// The weight of the excess of a scalable sender after its slow start: its p' grows to 1 in a third of the round trip.
const SCALABLE_WEIGHT: f64 = 6.0;
/// The largest hint with its full delay.
const LEVELS: f64 = 16.0;
/// The smallest fair share, as a part of the link.
const LEAST_SHARE: f64 = 1e-6;
/// The least factor between the rates of a link that alternates.
const ALTERNATION: f64 = 4.0;
/// One byte in so many of the memory is for hosts.
const HOSTS: u64 = 4;

/// The queue.
#[derive(Clone, Debug)]
pub struct Sieve<P> {
    params: SieveParams,
    limit: Limit,
    ecn: bool,
    /// C, B/s.
    link: f64,
    flows: Accounts,
    hosts: Option<Accounts>,
    /// The virtual time at which the next packet of a new flow may start.
    newcomers: [f64; 2],
    calendar: Calendar<P>,
    backlog: Backlog,
    /// V: start of the packet in service.
    v: f64,
    /// The largest V.
    largest: f64,
    /// Time at which V was reached last.
    reached: Instant,
    /// F: no packet starts before it.
    floor: f64,
    /// f, B/s.
    share: f64,
    /// The weight of new flows when the packets were sorted last.
    sorted_weight: f64,
    /// The range of f for which the slots of the calendar are wide enough, and narrow enough.
    sorted_for: (f64, f64),
    /// rtt and tau, s; one over tau, and over the part of rtt in which p' grows to 1, 1/s.
    rtt: f64,
    tau: f64,
    per_tau: f64,
    per_slope: f64,
    /// Time of the last call.
    now: Instant,
    /// The time until which a rise of C ends a pause, and that until which C counts as alternating.
    fell_until: Instant,
    alternates_until: Instant,
    pauses: Pauses,
    below: Count,
    above: Count,
    shed: Vec<Shed<P>>,
    stats: QueueStats,
}

impl<P: Copy> Discipline for Sieve<P> {
    type Params = SieveParams;
    const NAME: &'static str = "sieve";
    const TITLE: &'static str = "Sieve";
    const SOURCE: &'static str = "ours: docs/internals/sieve.md";

    fn build(params: &Self::Params, limit: Limit, ecn: bool, rate: Rate) -> Result<Self, ParameterError> {
        params.validate()?;
        let of_hosts = if params.key.has_hosts() { params.memory / HOSTS } else { 0 };
        let link = (rate.as_bps() as f64 / 8.0).max(1.0);
        let mut new = Self {
            params: *params,
            limit,
            ecn,
            link,
            flows: Accounts::new(params.memory - of_hosts, params.newcomer_age),
            hosts: (of_hosts > 0).then(|| Accounts::new(of_hosts, params.newcomer_age)),
            newcomers: [0.0; 2],
            calendar: Calendar::new(1.0),
            backlog: Backlog::default(),
            v: 0.0,
            largest: 0.0,
            reached: Instant::ZERO,
            floor: 0.0,
            share: link,
            sorted_weight: 1.0,
            sorted_for: (0.0, 0.0),
            rtt: params.rtt.as_secs_f64(),
            tau: params.tau.as_secs_f64(),
            per_tau: 1.0 / params.tau.as_secs_f64(),
            per_slope: 1.0 / (SLOPE * params.rtt.as_secs_f64()),
            now: Instant::ZERO,
            fell_until: Instant::ZERO,
            alternates_until: Instant::ZERO,
            pauses: Pauses::new(params.tau),
            below: Count::default(),
            above: Count::default(),
            shed: Vec::new(),
            stats: QueueStats::default(),
        };
        new.forget();
        Ok(new)
    }
}

/// Virtual times at which a packet may start.
#[derive(Clone, Copy, Debug)]
struct Starts {
    /// By its order.
    own: f64,
    /// The same if no unused share were kept for its flow; of packets of scalable senders.
    second: f64,
}

/// State of the sender of a packet.
#[derive(Clone, Copy, Debug)]
struct Sender {
    place: Place,
    /// The place of its host, if hosts count before flows.
    host: Place,
    is_new: bool,
    /// True if the flow has no cell, and shares the account of another one.
    is_guest: bool,
    host_is_known: bool,
    /// Flows that share the share: those of the host that have packets waiting, this one included.
    flows: f64,
}

impl<P: Copy> Sieve<P> {
    /// An unused share that is kept, B: f in tau, but no more than the link sends, or four packets.
    #[inline]
    fn kept(&self) -> f64 {
        (self.share.min(self.link) * self.tau).max(4.0 * MTU)
    }

    /// One over the time over which f is taken, which is tau, or the time of four packets at f; 1/s.
    #[inline]
    fn per_tau(&self) -> f64 {
        const PER_KEPT: f64 = 1.0 / (4.0 * MTU);
        self.per_tau.min(self.share * PER_KEPT)
    }

    /// Forgets all that was learnt.
    fn forget(&mut self) {
        self.flows.reset();
        self.hosts.iter_mut().for_each(Accounts::reset);
        self.share = self.link;
        // The state after a long silence of all flows.
        self.v = self.kept();
        (self.largest, self.floor, self.newcomers) = (self.v, 0.0, [0.0; 2]);
        (self.fell_until, self.alternates_until) = (Instant::ZERO, Instant::ZERO);
        self.pauses = Pauses::new(self.params.tau);
        self.sorted_weight = 1.0;
        self.sort();
    }

    /// Weight of a byte of a new flow: an eighth of the link is the share of all of them.
    #[inline]
    fn newcomers_weight(&self) -> f64 {
        (self.share / (NEWCOMERS * self.link)).min(1.0)
    }

    /// Sorts the packets into slots that suit f.
    #[cold]
    fn sort(&mut self) {
        let range = 2.0 * (self.kept() + 4.0 * self.share * self.rtt);
        let weight = self.newcomers_weight();
        let part = weight / self.sorted_weight;
        if part < 1.0 {
            // New flows have an eighth of the link together, also those that waited when a share was more than that.
            self.flows.bring_nearer(self.v, part);
            self.newcomers = self.newcomers.map(|finish| nearer(finish, self.v, part));
            self.calendar.bring_nearer((self.v, part), self.floor, range);
        } else {
            self.calendar.resort(self.floor, range);
        }
        self.sorted_weight = weight;
        self.sorted_for = (self.share / 2.0, self.share * 2.0);
    }

    /// Moves V, and f with it, from the largest V on.
    #[inline]
    fn advance_virtual(&mut self, to: f64) {
        self.v = to;
        let above = to - self.largest;
        if above > 0.0 {
            self.largest = to;
            self.share += above * self.per_tau();
        }
    }

    /// Lets time pass. On an idle link a flow could have had all of it.
    #[inline]
    fn catch_up(&mut self, now: Instant) {
        let elapsed = now.saturating_since(self.now).as_secs_f64();
        if elapsed <= 0.0 {
            return;
        }
        self.now = now;
        // e^x and e^-x, to the third order.
        let x = elapsed * self.per_tau();
        let growth = 1.0 + x + 0.5 * x * x;
        let decay = if x < 0.25 { 1.0 - x + 0.5 * x * x } else { 1.0 / growth };
        let before = self.share;
        if self.backlog.packets > 0 {
            self.share = (before * decay).max(self.link * LEAST_SHARE);
        } else {
            // A short pause is little evidence about the share: it grows by e in tau, up to C. While C alternates it may be above C.
            self.share = if before > self.link {
                (before * decay).max(self.link)
            } else {
                (before * growth).min(self.link)
            };
            self.v = self.v.max(self.largest) + 0.5 * (before + self.share) * elapsed;
            self.largest = self.v;
            self.reached = now;
        }
        if self.share < self.sorted_for.0 || self.share > self.sorted_for.1 {
            self.sort();
        }
    }

    /// Notes that C becomes `link`, and returns whether it has alternated before: it has fallen and risen again within tau, less than
    /// 2 tau ago. Its value of a moment says little about f then, which follows the packets that leave.
    fn alternates(&mut self, now: Instant, link: f64) -> bool {
        let alternates = now < self.alternates_until;
        if link * ALTERNATION <= self.link {
            self.fell_until = now.saturating_add(self.params.tau);
        } else if link >= self.link * ALTERNATION && now < self.fell_until {
            self.alternates_until = now.saturating_add(self.params.tau * 2);
        }
        alternates
    }

    /// Finds the accounts of a packet's flow and host.
    #[inline]
    fn look_up(&mut self, now: Instant, arrival: &Arrival, random: &mut RandomStream) -> Sender {
        let id = self.params.key.of(arrival);
        let (place, is_new) = self.flows.find(now, id, self.floor, random);
        let is_guest = self.flows.name(place) != id;
        let Some((hosts, id)) = self.hosts.as_mut().zip(self.params.key.host_of(arrival)) else {
            return Sender { place, host: 0, is_new, is_guest, host_is_known: false, flows: 1.0 };
        };
        let (host, host_is_new) = hosts.find(now, id, self.floor, random);
        let others = hosts.at(host).waiting.saturating_sub(u16::from(self.flows.at(place).is_counted()));
        Sender { place, host, is_new, is_guest, host_is_known: !host_is_new, flows: f64::from(others) + 1.0 }
    }

    /// Notes that a packet of a sender waits. Answers the names of the accounts that it is charged to.
    #[inline]
    fn note_waiting(&mut self, sender: &Sender) -> Owner {
        let Sender { place, host, .. } = *sender;
        let (id, begins) = self.flows.note_waiting(place);
        let host_id = self.hosts.as_mut().map_or(0, |hosts| {
            hosts.at(host).waiting += u16::from(begins);
            hosts.name(host)
        });
        Owner { place, id, host, host_id }
    }

    /// Returns the price of a packet, p'^2, for an excess of its flow's own wait, s.
    #[inline]
    fn price(&self, excess: f64) -> f64 {
        let p = (excess * self.per_slope).clamp(0.0, 1.0);
        p * p
    }

    /// Returns the beginnings and the ends of the two ramps of a scalable sender, of which a byte waits for `per_byte`; s.
    #[inline]
    fn ramps(&self, per_byte: f64) -> [(f64, f64); 2] {
        let begin = RAMP.max(RAMP_PACKETS * MTU * per_byte).max(self.pauses.longest());
        [(begin, 2.0 * begin), (begin, begin + SECOND_RAMP.max(SECOND_RAMP_PACKETS * MTU * per_byte))]
    }

    /// Returns the start of a packet of a scalable sender if no unused share were kept for it. It is at most where the second ramp
    /// ends: when the sender slows down, its marks soon end.
    #[inline]
    fn second_start(&mut self, sender: &Sender) -> f64 {
        let [_, (_, end)] = self.ramps(sender.flows / self.share);
        self.flows.at(sender.place).second_finish().max(self.v).min(self.v + end * self.share)
    }

    /// Returns the probability of a mark by the ramps.
    #[inline]
    fn ramp(&mut self, sender: &Sender, starts: &Starts) -> f64 {
        let [first, second] = self.ramps(sender.flows / self.share);
        let wait = |start: f64| (start - self.v) / self.share;
        let on = |(begin, end): (f64, f64), start| (wait(start) - begin) / (end - begin);
        // While no other flow waits, a mark would leave the link unused. A sender with most of an unused share is below its share.
        let others_wait = self.backlog.packets > u32::from(self.flows.at(sender.place).waiting);
        let counts = others_wait && wait(starts.own) > -SPARED * self.tau;
        on(first, starts.own).max(if counts { on(second, starts.second) } else { 0.0 })
    }

    /// Decides on a packet whose own flow makes it start at `starts`.
    #[inline]
    fn judge(
        &mut self,
        now: Instant,
        arrival: &Arrival,
        sender: &Sender,
        starts: &Starts,
        random: &mut RandomStream,
    ) -> Verdict {
        let per_share = 1.0 / self.share;
        let (wait, per_byte) = ((starts.own - self.v).max(0.0) * per_share, sender.flows * per_share);
        // A guest's wait is that of an account that several flows share: it is not its own choice, and some flow of them is always warned.
        let hint = if sender.is_guest { 1.0 } else { f64::from(arrival.hint.level()).min(LEVELS) / LEVELS };
        let target = (hint * TARGET * self.rtt).max(f64::from(arrival.size) * per_byte);
        let [(_, ramp_end), _] = self.ramps(per_byte);
        let account = self.flows.at(sender.place);
        let is_warned = !sender.is_guest && account.is_warned(now, self.params.rtt * 2);
        // The wait is not that of its own packets: no ramp counts.
        let is_shared = self.ecn && account.is_shared_by(arrival.scalable) && !sender.is_guest;
        let was_warned = account.was_warned();
        // Until the end of the grace after its first hit, a scalable sender is treated as any other one: it is in slow start.
        let is_scalable =
            self.ecn && arrival.scalable && (sender.is_guest || was_warned && !is_warned && !is_shared);
        let p = self.price(if is_scalable && !sender.is_guest {
            SCALABLE_WEIGHT * (wait - target.min(ramp_end))
        } else {
            wait - target - if is_warned { self.rtt } else { 0.0 }
        });
        let may_mark = self.ecn && arrival.ecn_capable && p <= MARK_UNTIL;
        let mut is_hit = random.chance(Probability::clamped(p));
        if is_hit && !is_warned && !is_scalable && !sender.is_guest {
            self.flows.at(sender.place).warn(now, self.params.rtt * 2);
        }
        if may_mark && is_scalable {
            is_hit |= random.chance(Probability::clamped(self.ramp(sender, starts)));
        } else if may_mark && is_shared && was_warned {
            is_hit |= random.chance(Probability::clamped(COUPLING * p.sqrt()));
        }
        Verdict::from_hit(is_hit, may_mark)
    }

    /// Notes that a packet has left the calendar: its flow may have none that waits.
    #[inline]
    fn note_left(&mut self, entry: &Entry<P>) {
        let Owner { place, id, host, host_id } = entry.owner;
        if self.flows.note_left(place, id)
            && let Some(hosts) = &mut self.hosts
            && let Some(host) = hosts.look(host, host_id)
        {
            host.waiting = host.waiting.saturating_sub(1);
        }
    }

    /// Drops the packet with the largest start.
    #[cold]
    fn push_out(&mut self) {
        let Some(entry) = self.calendar.pop_last() else { return };
        self.backlog.remove(entry.size);
        self.note_left(&entry);
        if let Some(account) = self.flows.look(entry.owner.place, entry.owner.id) {
            account.finish -= entry.due - entry.start;
        }
        self.stats.count_shed(DropReason::Overflow, entry.size);
        self.shed.push(Shed { packet: entry.packet, size: entry.size, reason: DropReason::Overflow });
    }
}

impl<P: Copy> Queue<P> for Sieve<P> {
    fn enqueue(&mut self, now: Instant, arrival: Arrival, packet: P, random: &mut RandomStream) -> Verdict {
        self.catch_up(now);
        if self.backlog.packets == 0 {
            self.pauses.begin(now);
        }
        let size = f64::from(arrival.size);
        let oldest = self.v - self.kept();
        self.floor = self.floor.max(self.calendar.first_slot().map_or(oldest, |first| first.min(oldest)));
        let sender = self.look_up(now, &arrival, random);
        let (behind, own) = self.flows.at(sender.place).finishes();
        let (mut start, own) = (behind.max(self.floor), own.max(self.floor));
        let mut class = 0;
        if sender.is_new {
            class = usize::from(self.flows.at(sender.place).is_behind(own > self.floor));
            let together = match &mut self.hosts {
                Some(hosts) if sender.host_is_known => hosts.at(sender.host).finish,
                _ => self.newcomers[class],
            };
            start = start.max(together);
        }
        let is_scalable = self.ecn && arrival.scalable;
        let starts =
            Starts { own: start, second: if is_scalable { self.second_start(&sender) } else { start } };
        let fits = self.limit.admits(self.backlog, arrival.size);
        let is_last = !fits && self.calendar.last().is_none_or(|last| start >= last.start);
        let verdict = if is_last {
            Verdict::Drop(DropReason::Overflow)
        } else {
            self.judge(now, &arrival, &sender, &starts, random)
        };
        if start > self.v {
            self.above.add(arrival.size);
        } else {
            self.below.add(arrival.size);
        }
        self.stats.count_arrival(verdict, arrival.size);
        if matches!(verdict, Verdict::Drop(_)) {
            return verdict;
        }
        let charge = size * sender.flows;
        let account = self.flows.at(sender.place);
        account.set_finish(start + charge, start - own);
        if is_scalable {
            account.set_second_finish(starts.second + charge);
        }
        let is_new = account.has_lag();
        let owner = self.note_waiting(&sender);
        if sender.is_new {
            match &mut self.hosts {
                Some(hosts) if sender.host_is_known => {
                    hosts.at(sender.host).finish = start + size * sender.flows.min(1.0 / NEWCOMERS);
                }
                _ => self.newcomers[class] = start + size * self.newcomers_weight(),
            }
        }
        self.backlog.add(arrival.size);
        let entry =
            Entry { packet, size: arrival.size, arrived: now, start, due: start + charge, is_new, owner };
        self.calendar.push(self.floor, entry);
        while !self.limit.holds(self.backlog) {
            self.push_out();
        }
        verdict
    }

    fn dequeue(&mut self, now: Instant) -> Option<Departure<P>> {
        self.catch_up(now);
        let entry = self.calendar.pop_first()?;
        let Entry { packet, size, arrived, start, .. } = entry;
        self.pauses.end(now);
        self.backlog.remove(size);
        self.note_left(&entry);
        if start > self.v {
            self.advance_virtual(start);
            self.reached = now;
        } else if now.saturating_since(self.reached) > self.params.rtt {
            // Buckets that are served for long are those of the flows.
            let x = f64::from(size) / self.link * self.per_tau();
            self.v += (start - self.v) * (x / (1.0 + x));
            self.largest = self.v;
        }
        self.stats.dequeued.add(size);
        Some(Departure { packet, size, arrived, marked: false })
    }

    fn shed(&mut self) -> Option<Shed<P>> {
        self.shed.pop()
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn readings(&self) -> Readings {
        let sieve = SieveReadings {
            below: self.below,
            above: self.above,
            fair_share: Rate::from_bps((8.0 * self.share) as u64),
            load: self.flows.load(self.now, self.params.tau),
        };
        Readings { sieve: Some(sieve), ..Readings::default() }
    }

    fn set_rate(&mut self, now: Instant, rate: Rate) {
        self.catch_up(now);
        let link = (rate.as_bps() as f64 / 8.0).max(1.0);
        if !self.alternates(now, link) {
            self.share = (self.share * (link / self.link)).min(link);
        }
        self.link = link;
        self.share = self.share.max(link * LEAST_SHARE);
        self.sort();
    }

    fn reset(&mut self, now: Instant, discard: &mut dyn FnMut(P)) {
        while let Some(Entry { packet, size, .. }) = self.calendar.pop_first() {
            self.stats.flushed.add(size);
            self.backlog.remove(size);
            discard(packet);
        }
        self.now = now;
        self.reached = now;
        self.forget();
    }

    fn stats(&self) -> &QueueStats {
        &self.stats
    }
}

#[cfg(test)]
mod tests;
