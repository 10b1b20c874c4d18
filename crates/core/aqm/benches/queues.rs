//! Cost of a packet in each queue: nanoseconds of CPU time per enqueue and dequeue together.
//!
//! ```text
//! cargo bench -p cutline-aqm                     a table
//! cargo bench -p cutline-aqm -- --json FILE      also [{id, value, unit, peer, peer_value, ratio}]
//! ```
//!
//! The backlog stands still: at every packet time of a 10 Gbit/s link one packet of 1000 B leaves and one
//! arrives. Hints are uniform over 1..16, or 16 with one 6 in twenty. Every figure is the median of many short
//! runs, after every packet of the first filling has left. The peers keep no counters and know no limit, which
//! is in their favour.
//!
//! - `tsq.lanes`: TSQ while the AQM's p is 0, so that q' is not needed.
//! - `tsq.rank`: the same, and q' is requested at every arrival.
//! - `tsq.drop`: p = 1 %, q' where the draw leaves it open.
//! - FIFO ring, skip list with byte ranks (the paper's), sorted list (short backlogs only).
//! - `aqm.NAME`: every queue of the registry with its defaults, as the simulator builds it, at a backlog of 100
//!   packets of 100 flows, each between hosts of its own; `aqm.NAME.tsq` with TSQ on it. All packets can be marked; of those that are dropped
//!   all the same, one a step is replaced.
//! - `aqm.NAME.flows.N`: FQ-CoDel, CAKE and Sieve, this also with hosts before flows (`sieve.hosts`), with so many flows in turn.

#![allow(clippy::print_stdout, reason = "a benchmark prints its table")]

#[path = "peers/skip_list.rs"]
mod skip_list;
#[path = "peers/sorted_list.rs"]
mod sorted_list;

use cutline_aqm::sieve::Key;
use cutline_aqm::{
    AnyQueue, AqmSpec, Arrival, Backlog, DrainRate, DropProbability, Entry, Fifo, Limit, NoEarlyDrop, Queue,
    QueueSpec, SieveParams, Tsq, TsqParams, registry, tsq::weight,
};
use cutline_units::{Duration, Hint, HintBits, Instant, Probability, RandomStream, Rate, Streams};
use rustix::time::{ClockId, clock_gettime};
use skip_list::SkipList;
use sorted_list::SortedList;
use std::hint::black_box;

const RATE: Rate = Rate::from_mbps(10_000);
const SIZE: u32 = 1000;
const PACKET_TIME: Duration = Duration::from_nanos(800);
const BACKLOGS: [u32; 6] = [10, 100, 1_000, 10_000, 100_000, 1_000_000];
/// The sorted list is given up beyond this.
const LONGEST_SORTED_LIST: u32 = 1_000;

/// A queue under test.
trait Contender {
    fn arrive(&mut self, now: Instant, hint: Hint);
    fn depart(&mut self, now: Instant);
}

/// The product: any queue, asked for q' or not.
struct Product<Q, const RANK: bool> {
    queue: Q,
    random: RandomStream,
}

/// The paper's queue in another order: the same weights, another way to sort.
struct Peer<O> {
    order: O,
    drain: DrainRate,
    bytes: u64,
    service_ends: Instant,
}

/// p always the same; 0 for never.
#[derive(Clone, Copy)]
struct Always(f64);

impl DropProbability for Always {
    #[inline]
    fn advance(&mut self, _now: Instant, _backlog: Backlog) {}
    #[inline]
    fn arrive(&mut self, _now: Instant, _arrival: Arrival, _backlog: Backlog) -> Probability {
        Probability::clamped(self.0)
    }
    fn probability(&self) -> Option<Probability> {
        Some(Probability::clamped(self.0))
    }
    fn reset(&mut self, _now: Instant) {}
}

/// Something that sorts packets and knows the bytes ahead of a new one.
trait Order {
    fn push(&mut self, lane: usize, entry: Entry<u32>) -> u64;
    fn pop(&mut self) -> Option<Entry<u32>>;
}

impl Order for SkipList {
    fn push(&mut self, _lane: usize, entry: Entry<u32>) -> u64 {
        self.push(entry)
    }
    fn pop(&mut self) -> Option<Entry<u32>> {
        self.pop()
    }
}

impl Order for SortedList<u32> {
    fn push(&mut self, lane: usize, entry: Entry<u32>) -> u64 {
        let ahead = self.bytes_ahead(entry.weight);
        self.push(lane, entry);
        ahead
    }
    fn pop(&mut self) -> Option<Entry<u32>> {
        self.pop()
    }
}

impl<const RANK: bool, A: DropProbability> Contender for Product<Tsq<u32, A>, RANK> {
    #[inline]
    fn arrive(&mut self, now: Instant, hint: Hint) {
        if RANK {
            black_box(self.queue.offer(now, hint).q_prime);
        }
        let arrival = Arrival { ecn_capable: true, ..Arrival::new(SIZE, hint) };
        black_box(self.queue.enqueue(now, arrival, 7, &mut self.random));
    }
    #[inline]
    fn depart(&mut self, now: Instant) {
        black_box(self.queue.dequeue(now));
    }
}

impl<A: DropProbability> Contender for Product<Fifo<u32, A>, false> {
    #[inline]
    fn arrive(&mut self, now: Instant, hint: Hint) {
        let arrival = Arrival { ecn_capable: true, ..Arrival::new(SIZE, hint) };
        black_box(self.queue.enqueue(now, arrival, 7, &mut self.random));
    }
    #[inline]
    fn depart(&mut self, now: Instant) {
        black_box(self.queue.dequeue(now));
    }
}

impl<O: Order> Contender for Peer<O> {
    #[inline]
    fn arrive(&mut self, now: Instant, hint: Hint) {
        let in_service = self.service_ends.saturating_since(now);
        let weight = weight(HintBits::PAPER, hint.lane(), self.drain.time(self.bytes) + in_service, now);
        let entry = Entry { weight, arrived: now, size: SIZE, packet: 7 };
        black_box(self.drain.time(self.order.push(hint.lane(), entry)) + in_service);
        self.bytes += u64::from(SIZE);
    }
    #[inline]
    fn depart(&mut self, now: Instant) {
        if let Some(entry) = black_box(self.order.pop()) {
            self.service_ends = now + self.drain.time(u64::from(entry.size));
            self.bytes -= u64::from(entry.size);
        }
    }
}

/// Any queue of the registry.
struct Registered {
    queue: AnyQueue<u32>,
    random: RandomStream,
    flow: u32,
    flows: u32,
}

impl Registered {
    fn new(name: &str, tsq: Option<TsqParams>) -> Self {
        Self::of(AqmSpec::from_values(name, []).expect("the defaults are allowed"), tsq, REGISTERED_BACKLOG)
    }

    fn of(aqm: AqmSpec, tsq: Option<TsqParams>, flows: u32) -> Self {
        let spec = QueueSpec { limit: Limit::Packets(100_000), ecn: true, aqm, tsq, rate: RATE };
        Self {
            queue: spec.build().expect("the defaults are allowed"),
            random: stream("drop"),
            flow: 0,
            flows,
        }
    }

    #[inline]
    fn offer(&mut self, now: Instant, hint: Hint) {
        self.flow = (self.flow + 1) % self.flows;
        let hosts = [self.flow; 2];
        let arrival = Arrival { ecn_capable: true, flow: self.flow, hosts, ..Arrival::new(SIZE, hint) };
        black_box(self.queue.enqueue(now, arrival, 7, &mut self.random));
        while black_box(self.queue.shed()).is_some() {}
    }
}

impl Contender for Registered {
    #[inline]
    fn arrive(&mut self, now: Instant, hint: Hint) {
        self.offer(now, hint);
        if self.queue.backlog().packets < REGISTERED_BACKLOG {
            self.offer(now, hint);
        }
    }
    #[inline]
    fn depart(&mut self, now: Instant) {
        black_box(self.queue.dequeue(now));
        while black_box(self.queue.shed()).is_some() {}
    }
}

/// The backlog, and the number of flows, at which the queues of the registry are measured.
const REGISTERED_BACKLOG: u32 = 100;

/// Every queue of the registry; with TSQ on it where that can be.
fn registered() -> Vec<String> {
    println!(
        "\nevery AQM with its defaults, {REGISTERED_BACKLOG} packets of as many flows: ns of CPU per packet"
    );
    println!("{:>16} {:>10} {:>10}", "", "alone", "under TSQ");
    let of = |name, tsq| measure(Registered::new(name, tsq), Mix::Uniform, REGISTERED_BACKLOG, STEPS);
    let drop_tail = of("drop-tail", None);
    let mut objects = Vec::new();
    for about in registry::describe() {
        let name = about.name;
        let alone = of(name, None);
        objects.push(object(&format!("aqm.{name}"), alone, "drop-tail", drop_tail));
        let tsq = about.takes_tsq.then(|| of(name, Some(TsqParams::default())));
        objects.extend(tsq.map(|ns| object(&format!("aqm.{name}.tsq"), ns, "drop-tail", drop_tail)));
        let tsq = tsq.map_or("-".to_owned(), |ns| format!("{ns:.1}"));
        println!("{name:>16} {alone:>10.1} {tsq:>10}");
    }
    objects
}

/// The queues that tell flows apart, by the number of flows.
fn by_flows() -> Vec<String> {
    let hosts = AqmSpec::Sieve(SieveParams { key: Key::SourceThenFlow, ..SieveParams::default() });
    let by_name = ["fq-codel", "cake", "sieve"]
        .map(|name| (name, AqmSpec::from_values(name, []).expect("the defaults are allowed")));
    println!("\nby the number of flows, {REGISTERED_BACKLOG} packets waiting: ns of CPU per packet");
    println!("{:>16} {:>10} {:>10} {:>10}", "", FLOWS[0], FLOWS[1], FLOWS[2]);
    let mut objects = Vec::new();
    let mut peer = [0.0; FLOWS.len()];
    for (name, aqm) in by_name.into_iter().chain([("sieve.hosts", hosts)]) {
        let times = FLOWS.map(|flows| {
            measure(Registered::of(aqm.clone(), None, flows), Mix::Uniform, REGISTERED_BACKLOG, STEPS)
        });
        if name == "fq-codel" {
            peer = times;
        }
        for ((flows, ns), peer) in FLOWS.iter().zip(times).zip(peer) {
            objects.push(object(&format!("aqm.{name}.flows.{flows}"), ns, "fq-codel", peer));
        }
        println!("{name:>16} {:>10.1} {:>10.1} {:>10.1}", times[0], times[1], times[2]);
    }
    objects
}

const FLOWS: [u32; 3] = [10, 1_000, 10_000];

fn stream(purpose: &str) -> RandomStream {
    Streams::new(1).stream("bench", purpose)
}

fn tsq<const RANK: bool>(p: f64) -> Product<Tsq<u32, Always>, RANK> {
    let queue = Tsq::new(&TsqParams::default(), Limit::Packets(u32::MAX), true, RATE, Always(p));
    Product { queue: queue.expect("the paper's parameters are allowed"), random: stream("drop") }
}

fn fifo() -> Product<Fifo<u32, NoEarlyDrop>, false> {
    Product { queue: Fifo::new(Limit::Packets(u32::MAX), true, NoEarlyDrop), random: stream("drop") }
}

fn peer<O: Order>(order: O) -> Peer<O> {
    Peer { order, drain: DrainRate::new(RATE), bytes: 0, service_ends: Instant::ZERO }
}

/// Mix of the hints that arrive.
#[derive(Clone, Copy)]
enum Mix {
    Uniform,
    FewSixes,
}

impl Mix {
    /// Enough hints to go round and round.
    fn hints(self) -> Vec<Hint> {
        let mut random = stream("hints");
        let mut draw = |n: u16| 1 + (random.uniform() * f64::from(n)) as u16;
        let mut level = || match self {
            Self::Uniform => draw(16),
            Self::FewSixes => [16, 6][usize::from(draw(20) == 1)],
        };
        (0..HINTS).map(|_| Hint::from_level(level())).collect()
    }

    const fn suffix(self) -> &'static str {
        match self {
            Self::Uniform => "",
            Self::FewSixes => ".few",
        }
    }
}

/// The median time of a packet, ns of CPU.
fn measure(mut queue: impl Contender, mix: Mix, backlog: u32, steps: u32) -> f64 {
    let hints = mix.hints();
    let (mut now, mut turn) = (Instant::ZERO, 0);
    let mut arrive = |queue: &mut _, now| {
        Contender::arrive(queue, now, hints[turn]);
        turn = (turn + 1) % HINTS;
    };
    // Filled at once, then turned over twice, so that weights lie as they do in a standing queue.
    (0..backlog).for_each(|_| arrive(&mut queue, now));
    let mut run = |steps: u32| {
        let start = cpu_nanos();
        for _ in 0..steps {
            queue.depart(now);
            now += PACKET_TIME;
            arrive(&mut queue, now);
        }
        (cpu_nanos() - start) as f64 / f64::from(steps)
    };
    run(steps.max(2 * backlog));
    let mut times: Vec<f64> = (0..RUNS).map(|_| run(steps)).collect();
    times.sort_by(f64::total_cmp);
    times[RUNS / 2]
}

/// Short runs, so that few of them are disturbed.
const RUNS: usize = 51;
const STEPS: u32 = 10_000;
/// Hints drawn beforehand, and used again and again.
const HINTS: usize = 1 << 16;

fn cpu_nanos() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The times of every queue at one backlog and mix.
struct Row {
    backlog: u32,
    mix: Mix,
    fifo: f64,
    lanes: f64,
    rank: f64,
    drop: f64,
    skip_list: f64,
    sorted_list: Option<f64>,
}

impl Row {
    fn measure(backlog: u32, mix: Mix) -> Self {
        let short = backlog <= LONGEST_SORTED_LIST;
        Self {
            backlog,
            mix,
            fifo: measure(fifo(), mix, backlog, STEPS),
            lanes: measure(tsq::<false>(0.0), mix, backlog, STEPS),
            rank: measure(tsq::<true>(0.0), mix, backlog, STEPS),
            drop: measure(tsq::<false>(0.01), mix, backlog, STEPS),
            skip_list: measure(peer(SkipList::new(stream("heights"))), mix, backlog, STEPS),
            sorted_list: short.then(|| measure(peer(SortedList::new()), mix, backlog, 100)),
        }
    }

    fn print(&self) {
        let Self { backlog, fifo, lanes, rank, drop, skip_list, .. } = self;
        let sorted = self.sorted_list.map_or("-".to_owned(), |ns| format!("{ns:.1}"));
        println!(
            "{backlog:>9} {fifo:>10.1} {lanes:>10.1} {rank:>10.1} {drop:>10.1} {skip_list:>10.1} {sorted:>12}"
        );
    }

    /// The JSON objects of this row; the backlog of 1,000 also goes without its number.
    fn json(&self) -> Vec<String> {
        let suffix = self.mix.suffix();
        let figures = [("tsq.lanes", self.lanes), ("tsq.rank", self.rank), ("tsq.drop", self.drop)];
        let mut objects = Vec::new();
        for (id, value) in figures {
            let of = |id: &str| object(id, value, "skip list with ranks", self.skip_list);
            objects.push(of(&format!("{id}{suffix}.{}", self.backlog)));
            if self.backlog == 1_000 {
                objects.push(of(&format!("{id}{suffix}")));
            }
        }
        objects
    }
}

fn object(id: &str, value: f64, peer: &str, peer_value: f64) -> String {
    let ratio = peer_value / value;
    format!(
        r#"  {{"id": "{id}", "value": {value:.2}, "unit": "ns", "peer": "{peer}", "peer_value": {peer_value:.2}, "ratio": {ratio:.2}}}"#
    )
}

fn table(mix: Mix) -> Vec<String> {
    let name = match mix {
        Mix::Uniform => "hints uniform over 1..16",
        Mix::FewSixes => "hint 16, one in twenty 6",
    };
    println!("\n{name}: ns of CPU per enqueue + dequeue");
    println!(
        "{:>9} {:>10} {:>10} {:>10} {:>10} {:>10} {:>12}",
        "backlog", "FIFO ring", "tsq.lanes", "tsq.rank", "tsq.drop", "skip list", "sorted list"
    );
    let mut objects = Vec::new();
    for backlog in BACKLOGS {
        let row = Row::measure(backlog, mix);
        row.print();
        objects.extend(row.json());
    }
    objects
}

/// The file after `--json`; arguments that cargo adds are ignored.
fn json_file() -> Option<String> {
    let mut args = std::env::args().skip_while(|arg| arg != "--json");
    args.next()?;
    Some(args.next().expect("--json is followed by the name of a file"))
}

fn main() {
    let file = json_file();
    let objects = [registered(), by_flows(), table(Mix::Uniform), table(Mix::FewSixes)].concat();
    if let Some(file) = file {
        let text = format!("[\n{}\n]\n", objects.join(",\n"));
        std::fs::write(&file, text).unwrap_or_else(|error| panic!("{file} cannot be written: {error}"));
    }
}
