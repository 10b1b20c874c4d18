//! CAKE: shares the link among hosts and then among their flows, by class of traffic; each flow has COBALT.
//!
//! Source: T. Høiland-Jørgensen, D. Täht, J. Morton, "Piece of CAKE: a comprehensive queue management solution for home
//! gateways", IEEE LANMAN 2018. Where the paper leaves a choice open, this queue follows Linux's `cake`.
//!
//! ```text
//! arrival:    the class by the hint; in it the flow's place in a table of 1024 in sets of eight (places.rs)
//!             an empty flow is sparse, and goes to the new ones with quantum / (bulk flows of its host)
//! departure:  the class that is due; in it a decaying flow, else a new one, else an old one
//!             out of credit: quantum / (bulk flows of its host) more, bulk from now on, to the end of the old ones
//!             COBALT drops, marks or sends (cobalt.rs); the last packet of a flow is always sent
//!             empty: decays until COBALT is at rest
//! too full:   the flow with most bytes loses its head
//! ```
//!
//! `isolation` selects the hosts that share the link. With `triple-isolate`, the default, a flow belongs to the host at
//! the end where more flows have a backlog. In a scenario every flow has hosts of its own unless `host` names one; the
//! router takes them from addresses.
//!
//! `tins` is the number of classes. The queue does not see code points, so the class comes from the hint, which the
//! router takes from the code point: hints 1 to 8 are voice (EF, VA, CS4 to CS7), 9 to 15 video (AF21 to AF33, CS2,
//! CS3), 16 is best effort. Voice may take a quarter of the link before others, video half; above that they are served
//! like best effort. A class is due when its own rate would let it send; of those that are due the highest is served
//! first.
//!
//! Worked number: `rtt` = 100 ms gives an interval of 100 ms and a target of 5 ms; at 1 Mbit/s a packet of 1514 B takes 12.1 ms, and
//! the target is one and a half times that.
//!
//! Linux counts the memory of a packet, not its length, against its limit of usually 4 MiB, and so does this queue: 2304 B for a packet of
//! 1000 B that has just been copied (`memory_is_counted_as_linux_does`). It is more with drivers that receive into whole pages.
//!
//! Differences from Linux: AF41 to AF43 have the hint of EF and are voice here, where Linux has them with video (and in its `diffserv3` with
//! best effort); LE, CS1 and AF11 to AF13 have the hint of unmarked packets, so nothing comes to Linux's bulk class; a flow's part of its host's
//! turn is rounded down to whole bytes, which Linux rounds up or down at random; a packet that finds its set full shares a place
//! without a change of that place's hosts. COBALT is computed with real square roots.
//!
//! Not implemented: the shaper (the link is one); the filter of acknowledgements; `ingress` mode; compensation of
//! overheads (the router has it); washing of code points (`--remark` of the router does it).
//!
//! # Validation
//!
//! - Places: `far_fewer_flows_share_a_place_than_in_fq_codel`. Hosts: `hosts_share_before_flows_do`.
//! - Sparse flows first: `a_sparse_flow_is_served_first`. Classes: `voice_keeps_its_priority_up_to_a_quarter`,
//!   `classes_are_those_of_the_code_points`, `a_class_of_empty_flows_does_not_hold_up_the_others`.
//! - COBALT: `drops_come_as_codel_s`, `a_late_return_of_the_queue_is_hit_at_once`, `blue_grows_while_the_queue_is_full`,
//!   `short_sojourn_times_are_not_hit_and_the_count_decays`.
//! - Room: `a_full_queue_drops_from_the_fattest_flow`, `memory_is_counted_as_linux_does`.
//! - Against Linux's own, in a virtual machine: `docs/validation/linux.md`.

mod cobalt;
mod places;
#[cfg(test)]
mod tests;

use crate::pool::{Held, List, Pool};
use crate::queue_core::QueueCore;
use crate::queue_core::forward_to_core;
use crate::{Arrival, Backlog, Departure, Discipline, DrainRate, DropReason, Limit, Queue, Verdict};
use cobalt::{Cobalt, Outcome, Times};
use cutline_params::{Choice, ParameterError, Parameters};
use cutline_units::{Duration, Hint, Instant, RandomStream, Rate, Streams, mix};
use places::{Hosts, PLACES};
use std::collections::VecDeque;

const CAKE: &str = "Linux's cake";
/// The most that a flow may send in a turn, B.
const LARGEST_QUANTUM: u64 = 1514;

/// Parameters of CAKE.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Parameters)]
pub struct CakeParams {
    /// Round-trip time of most flows: COBALT's interval is equal to it, and the target is a twentieth of it.
    #[param(
        default = Duration::from_millis(100),
        range = (Duration::from_micros(100), Duration::from_secs(10)),
        source = CAKE
    )]
    pub rtt: Duration,
    /// Unit that has a share of the link: a flow, a pair of hosts, or a host and then each of its flows.
    #[param(default = Isolation::TripleIsolate, source = CAKE)]
    pub isolation: Isolation,
    /// Classes of traffic; the class of a packet follows from its hint.
    #[param(default = Tins::Besteffort, source = "ours: Linux has diffserv3")]
    pub tins: Tins,
    /// Size of a full packet; the target is at least one and a half times its transmission time on the link.
    #[param(default = 1514, range = (1, 1_000_000), unit = "B", source = "Linux: the MTU and the Ethernet header")]
    pub mtu: u64,
    /// Memory limit of waiting packets; off for four times the bytes that the link sends in `rtt`, and at least 4 MiB.
    #[param(default = None, range = (1_000, 1 << 40), unit = "B", source = "Linux's memlimit")]
    pub memory_limit: Option<u64>,
}

/// Unit that has a share of the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum Isolation {
    /// Flows.
    Flows,
    /// Pairs of hosts.
    Hosts,
    /// The hosts where flows come from, then their flows.
    DualSrchost,
    /// The hosts where flows go to, then their flows.
    DualDsthost,
    /// The hosts at the end where a flow's host has more, then their flows.
    TripleIsolate,
}

/// The classes of traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum Tins {
    /// One for all.
    Besteffort,
    /// Best effort and voice.
    Diffserv3,
    /// Best effort, video and voice.
    Diffserv4,
}

/// State of a flow in the round robin of its class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// In no list.
    Idle,
    /// Among the new flows.
    Sparse,
    /// Among the old flows and empty: still counted as sparse.
    SparseWait,
    /// Among the old flows.
    Bulk,
    /// Empty, until COBALT is at rest.
    Decaying,
}

/// A flow, or those that share a place.
#[derive(Clone, Debug)]
struct Flow {
    tag: u32,
    list: List,
    cobalt: Cobalt,
    state: State,
    /// Bytes that the flow may still send.
    credit: i64,
    /// Its hosts in the tables of its class.
    hosts: Option<[u16; 2]>,
    /// Number of the flow's valid place in the lists.
    entry: u32,
}

/// A place in a list of flows; it counts only if the flow's entry is the same.
#[derive(Clone, Copy, Debug)]
struct Ticket {
    flow: u32,
    entry: u32,
}

/// A class.
#[derive(Clone, Debug)]
struct Tin {
    /// Divisor of the link's rate up to which the tin has priority.
    share: u64,
    drain: DrainRate,
    flows: Vec<Flow>,
    new: VecDeque<Ticket>,
    old: VecDeque<Ticket>,
    decaying: VecDeque<Ticket>,
    hosts: [Hosts; 2],
    /// Flows that are sparse or bulk.
    active: u32,
    times: Times,
    quantum: i64,
    /// Time of the next packet by the tin's own rate.
    next: Instant,
    backlog: Backlog,
}

/// CAKE.
#[derive(Clone, Debug)]
pub struct Cake<P> {
    params: CakeParams,
    tins: Vec<Tin>,
    drain: DrainRate,
    /// Time of the next packet by the link's rate.
    next: Instant,
    /// The memory limit of waiting packets, and the memory that they use, B.
    memory_limit: u64,
    memory: u64,
    salt: u64,
    random: Option<RandomStream>,
    pool: Pool<P>,
    core: QueueCore<P>,
}

impl Flow {
    const EMPTY: Self = Self {
        tag: 0,
        list: List::EMPTY,
        cobalt: Cobalt::NEW,
        state: State::Idle,
        credit: 0,
        hosts: None,
        entry: 0,
    };
}

impl Tins {
    /// One in how many bytes each class may send before others, from the lowest class on.
    const fn shares(self) -> &'static [u64] {
        match self {
            Self::Besteffort => &[1],
            Self::Diffserv3 => &[1, 4],
            Self::Diffserv4 => &[1, 2, 4],
        }
    }

    const fn of(self, hint: Hint) -> usize {
        match (self, hint.level()) {
            (Self::Diffserv3, 1..=8) | (Self::Diffserv4, 9..=15) => 1,
            (Self::Diffserv4, 1..=8) => 2,
            _ => 0,
        }
    }
}

impl Tin {
    fn new(share: u64, params: &CakeParams, rate: Rate) -> Self {
        let mut tin = Self {
            share,
            drain: DrainRate::new(rate),
            flows: vec![Flow::EMPTY; PLACES],
            new: VecDeque::new(),
            old: VecDeque::new(),
            decaying: VecDeque::new(),
            hosts: [Hosts::new(), Hosts::new()],
            active: 0,
            times: Times { target: Duration::ZERO, interval: params.rtt, mtu_time: Duration::ZERO },
            quantum: 0,
            next: Instant::ZERO,
            backlog: Backlog::default(),
        };
        tin.set_rate(params, rate);
        tin
    }

    fn set_rate(&mut self, params: &CakeParams, link: Rate) {
        let rate = Rate::from_bps((link.as_bps() / self.share).max(1));
        self.drain = DrainRate::new(rate);
        let mtu_time = self.drain.time(params.mtu);
        let usual = Duration::from_nanos(params.rtt.as_nanos() / 20);
        let target = usual.max(mtu_time.mul_f64(1.5));
        let interval = (params.rtt + target.saturating_sub(usual)).max(target * 2);
        self.times = Times { target, interval, mtu_time };
        // 1/4096 s of the link, within these bounds.
        self.quantum = (rate.as_bps() / 8 / 4096).clamp(300, LARGEST_QUANTUM) as i64;
    }

    /// The place of a flow between these hosts.
    fn find(&mut self, key: u32, hosts: [u32; 2]) -> usize {
        let at = places::find(key, |at| self.flows[at].tag, |at| self.flows[at].state == State::Idle);
        let flow = &mut self.flows[at];
        if flow.state == State::Idle {
            flow.tag = key;
            for (end, host) in flow.hosts.take().into_iter().flat_map(|hosts| hosts.into_iter().enumerate()) {
                self.hosts[end].leave(host);
            }
            flow.hosts = Some([self.hosts[0].join(hosts[0]), self.hosts[1].join(hosts[1])]);
        }
        at
    }

    /// Returns the quantum of a flow.
    fn turn(&self, flow: usize, isolation: Isolation) -> i64 {
        let bulk = |end: usize| self.flows[flow].hosts.map_or(0, |hosts| self.hosts[end].bulk(hosts[end]));
        let among = match isolation {
            Isolation::Flows | Isolation::Hosts => 1,
            Isolation::DualSrchost => bulk(0),
            Isolation::DualDsthost => bulk(1),
            Isolation::TripleIsolate => bulk(0).max(bulk(1)),
        };
        (self.quantum / i64::from(among.max(1))).max(1)
    }

    /// Changes the state of a flow, and the counts that depend on it.
    fn set(&mut self, flow: usize, state: State) {
        let before = self.flows[flow].state;
        let is_active = |state| matches!(state, State::Sparse | State::SparseWait | State::Bulk);
        self.active = self.active + u32::from(is_active(state)) - u32::from(is_active(before));
        if (before == State::Bulk) != (state == State::Bulk) {
            for (end, host) in self.flows[flow].hosts.into_iter().flatten().enumerate() {
                self.hosts[end].change_bulk(host, state == State::Bulk);
            }
        }
        self.flows[flow].state = state;
    }

    /// A ticket for a flow, which makes those that it had before invalid.
    fn ticket(&mut self, flow: usize) -> Ticket {
        let entry = self.flows[flow].entry.wrapping_add(1);
        self.flows[flow].entry = entry;
        Ticket { flow: flow as u32, entry }
    }

    /// A packet of the flow has been stored.
    fn arrived(&mut self, flow: usize, isolation: Isolation) {
        match self.flows[flow].state {
            State::Idle | State::Decaying => {
                self.set(flow, State::Sparse);
                self.flows[flow].credit = self.turn(flow, isolation);
                let ticket = self.ticket(flow);
                self.new.push_back(ticket);
            }
            State::SparseWait => self.set(flow, State::Bulk),
            State::Sparse | State::Bulk => {}
        }
    }

    /// Returns the next flow; decaying flows count only in the first look. `None` if all lists are empty.
    fn next_flow(&mut self, is_first: bool) -> Option<usize> {
        let Self { flows, new, old, decaying, .. } = self;
        let lists = if is_first { [decaying, new, old] } else { [new, old, decaying] };
        for list in lists {
            while let Some(ticket) = list.front() {
                if flows[ticket.flow as usize].entry == ticket.entry {
                    return Some(ticket.flow as usize);
                }
                list.pop_front();
            }
        }
        None
    }

    /// The flow is out of credit: it waits for its next turn among the old flows.
    fn next_turn(&mut self, flow: usize, isolation: Isolation) {
        if self.flows[flow].state == State::Sparse {
            let has_backlog = !self.flows[flow].list.is_empty();
            self.set(flow, if has_backlog { State::Bulk } else { State::SparseWait });
        }
        self.flows[flow].credit += self.turn(flow, isolation);
        let ticket = self.ticket(flow);
        self.old.push_back(ticket);
    }

    /// The flow was empty in its turn.
    fn was_empty(&mut self, now: Instant, flow: usize) {
        let times = self.times;
        let cobalt = &mut self.flows[flow].cobalt;
        cobalt.was_empty(now, &times);
        let is_at_rest = cobalt.is_at_rest(now);
        let ticket = self.ticket(flow);
        if is_at_rest {
            self.set(flow, State::Idle);
        } else {
            self.set(flow, State::Decaying);
            self.decaying.push_back(ticket);
        }
    }
}

impl<P: Copy> Discipline for Cake<P> {
    type Params = CakeParams;
    const NAME: &'static str = "cake";
    const TITLE: &'static str = "CAKE";
    const SOURCE: &'static str = "Høiland-Jørgensen, Täht, Morton 2018";

    fn build(params: &CakeParams, limit: Limit, ecn: bool, rate: Rate) -> Result<Self, ParameterError> {
        params.validate()?;
        let tins = params.tins.shares().iter().map(|&share| Tin::new(share, params, rate)).collect();
        Ok(Self {
            params: *params,
            tins,
            drain: DrainRate::new(rate),
            next: Instant::ZERO,
            memory_limit: params.memory_limit(rate),
            memory: 0,
            salt: 0,
            random: None,
            pool: Pool::new(),
            core: QueueCore::new(limit, ecn),
        })
    }
}

impl CakeParams {
    /// Four times the bytes that the link sends in an interval, at least 4 MiB, unless it is set.
    fn memory_limit(&self, rate: Rate) -> u64 {
        let usual = (rate.as_bps() as f64 / 8.0 * self.rtt.as_secs_f64() * 4.0) as u64;
        self.memory_limit.unwrap_or(usual.max(4 << 20))
    }
}

/// The memory that a packet takes in Linux: its buffer and the 256 B of `sk_buff`. The buffer has the packet, some room before it
/// and the 320 B of `skb_shared_info` behind it, and its size is a power of two.
const fn memory_of(size: u32) -> u64 {
    (size as u64 + 64 + 320).next_power_of_two() + 256
}

impl<P: Copy> Cake<P> {
    /// Returns the keys that distinguish flows and their hosts, salted.
    fn keys(&mut self, arrival: &Arrival, random: &mut RandomStream) -> (u32, [u32; 2]) {
        if self.random.is_none() {
            self.salt = (random.uniform() * (1_u64 << 53) as f64) as u64;
            self.random = Some(Streams::new(self.salt).stream("cake", "blue"));
        }
        // No key is 0, which is the tag of a place that was never used.
        let hash = |value: u64| (mix(value ^ self.salt) >> 32).max(1) as u32;
        let hosts = arrival.hosts.map(|host| hash(u64::from(host)));
        let key = match self.params.isolation {
            Isolation::Hosts => hash(u64::from(arrival.hosts[0]) << 32 | u64::from(arrival.hosts[1])),
            _ => hash(u64::from(arrival.flow) | 1 << 32),
        };
        (key, hosts)
    }

    fn is_too_full(&self) -> bool {
        !self.core.limit.holds(self.core.backlog) || self.memory > self.memory_limit
    }

    /// The heads of the fattest flows leave until all is within the limits.
    #[cold]
    fn make_room(&mut self, now: Instant) {
        while self.is_too_full() {
            let fattest = (0..self.tins.len())
                .flat_map(|tin| (0..PLACES).map(move |flow| (tin, flow)))
                .max_by_key(|&(tin, flow)| self.tins[tin].flows[flow].list.backlog.bytes);
            let (tin, flow) = fattest.expect("there is at least one flow");
            let tin = &mut self.tins[tin];
            let times = tin.times;
            let Flow { list, cobalt, .. } = &mut tin.flows[flow];
            cobalt.was_full(now, &times);
            let Some(held) = self.pool.pop(list) else { return };
            tin.backlog.remove(held.size);
            self.memory -= memory_of(held.size);
            self.core.count_shed(held, DropReason::Overflow);
        }
    }

    /// The class whose turn it is: of those that are due the highest, else that which is due first.
    fn due_tin(&self, now: Instant) -> Option<usize> {
        let mut best: Option<(Instant, usize)> = None;
        for (index, tin) in self.tins.iter().enumerate().filter(|(_, tin)| tin.active > 0) {
            if tin.next <= now || best.is_none_or(|(next, _)| tin.next <= next) {
                best = Some((tin.next, index));
            }
        }
        best.map(|(_, index)| index)
    }

    /// The next packet of a class; `None` if it has none. `is_first` is true if no flow has been examined for this departure.
    fn take(&mut self, now: Instant, index: usize, is_first: &mut bool) -> Option<Departure<P>> {
        let tin = &mut self.tins[index];
        loop {
            let flow = tin.next_flow(std::mem::take(is_first))?;
            if tin.flows[flow].credit <= 0 {
                tin.next_turn(flow, self.params.isolation);
                continue;
            }
            let Flow { list, cobalt, .. } = &mut tin.flows[flow];
            let mut sent = None;
            while let Some(held) = self.pool.pop(list) {
                tin.backlog.remove(held.size);
                self.memory -= memory_of(held.size);
                let random = self.random.as_mut().expect("the first packet has drawn it");
                let sojourn = now.saturating_since(held.arrived);
                let outcome = cobalt.judge(now, sojourn, held.may_mark, &tin.times, random);
                if outcome != Outcome::Dropped || list.is_empty() {
                    sent = Some(held.leave(outcome == Outcome::Marked));
                    break;
                }
                self.core.count_shed(held, DropReason::Early);
            }
            let Some(departure) = sent else {
                tin.was_empty(now, flow);
                if tin.backlog.packets == 0 {
                    return None;
                }
                continue;
            };
            tin.flows[flow].credit -= i64::from(departure.size);
            self.advance_rates(now, index, departure.size);
            return Some(self.core.count_departure(departure));
        }
    }

    /// The times at which class and link may send again.
    fn advance_rates(&mut self, now: Instant, index: usize, size: u32) {
        let tin = &mut self.tins[index];
        let takes = tin.drain.time(u64::from(size));
        tin.next = if tin.next < self.next { tin.next + takes } else { tin.next.max(now + takes) };
        self.next += self.drain.time(u64::from(size));
    }
}

impl<P: Copy> Queue<P> for Cake<P> {
    fn enqueue(&mut self, now: Instant, arrival: Arrival, packet: P, random: &mut RandomStream) -> Verdict {
        let Arrival { size, ecn_capable, .. } = arrival;
        let (key, hosts) = self.keys(&arrival, random);
        if self.core.backlog.packets == 0 {
            self.next = self.next.max(now);
        }
        let tin = &mut self.tins[self.params.tins.of(arrival.hint)];
        if tin.backlog.packets == 0 {
            tin.next = tin.next.max(now);
        }
        let flow = tin.find(key, hosts);
        let may_mark = self.core.ecn && ecn_capable;
        self.pool.push(&mut tin.flows[flow].list, Held { packet, size, arrived: now, may_mark });
        tin.backlog.add(size);
        tin.arrived(flow, self.params.isolation);
        let verdict = self.core.count_arrival(Verdict::Pass, size);
        self.memory += memory_of(size);
        if self.is_too_full() {
            self.make_room(now);
        }
        verdict
    }

    fn dequeue(&mut self, now: Instant) -> Option<Departure<P>> {
        // A class that is due may have nothing but flows that have become empty. Its decaying ones are looked at once: they would stay
        // decaying, and the others would never be found empty.
        let mut is_first = true;
        while self.core.backlog.packets > 0 {
            let index = self.due_tin(now)?;
            if let Some(departure) = self.take(now, index, &mut is_first) {
                return Some(departure);
            }
        }
        None
    }

    forward_to_core!(P);

    fn set_rate(&mut self, _now: Instant, rate: Rate) {
        self.drain = DrainRate::new(rate);
        self.memory_limit = self.params.memory_limit(rate);
        self.tins.iter_mut().for_each(|tin| tin.set_rate(&self.params, rate));
    }

    fn reset(&mut self, now: Instant, discard: &mut dyn FnMut(P)) {
        for tin in &mut self.tins {
            for flow in &mut tin.flows {
                self.pool.drain(&mut flow.list, |held| self.core.count_flushed(held, discard));
            }
            let Tin { flows, new, old, decaying, hosts, active, next, backlog, .. } = tin;
            flows.fill(Flow::EMPTY);
            [new, old, decaying].into_iter().for_each(VecDeque::clear);
            *hosts = [Hosts::new(), Hosts::new()];
            (*active, *next, *backlog) = (0, now, Backlog::default());
        }
        (self.next, self.random, self.memory) = (now, None, 0);
    }
}
