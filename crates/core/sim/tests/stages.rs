//! Stages against the event loop: the same outcome to the last bit, on random networks.

use crate::common::Plan as Dumbbell;
use cutline_aqm::{AqmSpec, Limit, QueueSpec, TsqParams, codel, fq_codel, pi, pie, red};
use cutline_sim::impairment::LossUnit;
use cutline_sim::{
    Aal5Params, Deliveries, Distributions, EndedShard, FlowSpec, ImpairmentParams, LinkSpec, Mail, Network,
    NodeId, Shard, ShardPlan, Simulation, SimulationOutcome, SimulationSettings, StageObstacle, StagePlan,
    Window,
};
use cutline_transport::endpoint::TransportParams;
use cutline_transport::tcp::Algorithm;
use cutline_transport::{abr, app, nada, tcp, tfrc, udp};
use cutline_units::{Bytes, Distribution, Duration, Ecn, Hint, HintBits, HintBudget, Instant, Rate};
use proptest::prelude::*;
use std::sync::Arc;

/// The links between two neighbours in a row of routers.
#[derive(Clone, Debug)]
struct Middle {
    kbps: u64,
    delay_us: u64,
    queue: usize,
    packets: u32,
    impairment: usize,
    extra: usize,
    series: bool,
}

/// A flow from a router to another one.
#[derive(Clone, Debug)]
struct Pair {
    from: usize,
    to: usize,
    protocol: usize,
    app: usize,
    level: u16,
    access_us: u64,
    access_kbps: u64,
    access_packets: u32,
    /// True if it shares its first link with the flow before it.
    shares: bool,
    series: bool,
    own: bool,
}

fn middle() -> impl Strategy<Value = Middle> {
    let rate = 200u64..20_000;
    (rate, 1u64..30_000, 0usize..9, 1u32..60, 0usize..7, 0usize..8, any::<bool>()).prop_map(
        |(kbps, delay_us, queue, packets, impairment, extra, series)| Middle {
            kbps,
            delay_us,
            queue,
            packets,
            impairment,
            extra,
            series,
        },
    )
}

fn pair(routers: usize) -> impl Strategy<Value = Pair> {
    let access = (1u64..40_000, 500u64..60_000, 2u32..100);
    let ends = (0..routers, 0..routers);
    (ends, 0usize..14, 0usize..8, 1u16..17, access, any::<(bool, bool, bool)>()).prop_map(
        move |((from, to), protocol, app, level, access, flags)| Pair {
            from,
            to: if from == to { (to + 1) % routers } else { to },
            protocol,
            app,
            level,
            access_us: access.0,
            access_kbps: access.1,
            access_packets: access.2,
            shares: flags.0,
            series: flags.1,
            own: flags.2,
        },
    )
}

fn networks() -> impl Strategy<Value = (Vec<Middle>, Vec<Pair>, bool)> {
    (2usize..5).prop_flat_map(|routers| {
        let middles = prop::collection::vec(middle(), 2 * (routers - 1));
        (middles, prop::collection::vec(pair(routers), 1..9), any::<bool>())
    })
}

fn tcp(change: impl FnOnce(&mut tcp::Params)) -> TransportParams {
    let mut params = tcp::Params { mss: 1000, header_bytes: 40, ..tcp::Params::default() };
    change(&mut params);
    TransportParams::Tcp(Arc::new(params))
}

fn paced(algorithm: Algorithm, ecn: Ecn) -> TransportParams {
    tcp(|params| {
        (params.sack, params.rack) = (true, true);
        (params.algorithm, params.ecn) = (algorithm, ecn);
    })
}

fn transport(number: usize) -> TransportParams {
    match number {
        0 => tcp(|_| {}),
        1 => tcp(|params| params.sack = true),
        2 => tcp(|params| (params.sack, params.rack) = (true, true)),
        3 => tcp(|params| (params.algorithm, params.ecn) = (Algorithm::Cubic, Ecn::Ect0)),
        4 => tcp(|params| (params.algorithm, params.ecn) = (Algorithm::Dctcp, Ecn::Ect1)),
        5 => tcp(|params| (params.delayed_ack, params.sack) = (Some(Duration::from_millis(40)), true)),
        6 => TransportParams::Tcp(Arc::new(tcp::Params::ns2())),
        7 => TransportParams::Tfrc(Arc::new(tfrc::Params::default())),
        9 => paced(Algorithm::Bbr, Ecn::NotEct),
        10 => paced(Algorithm::Bbr3, Ecn::Ect0),
        11 => paced(Algorithm::Prague, Ecn::Ect1),
        12 => TransportParams::Nada(Arc::new(nada::Params { ecn: true, ..nada::Params::default() })),
        13 => {
            let pcr = Rate::from_mbps(2);
            TransportParams::Abr(Arc::new(abr::Params { packet_size: 1000, pcr, ..abr::Params::default() }))
        }
        _ => TransportParams::Udp(Arc::new(udp::Params::default())),
    }
}

fn application(number: usize, transport: &TransportParams) -> app::Params {
    let cbr = app::CbrParams::new(Rate::from_kbps(100), Bytes::new(500));
    let (rate, fixed) = (Rate::from_kbps(150), Distribution::Fixed);
    match number {
        0 | 1 if transport.adapts() => app::Params::BULK,
        2 if transport.is_reliable() => app::Params::Files(app::FilesParams {
            size: fixed(20_000.0),
            think_time: Distribution::Exponential { mean: 0.1 },
        }),
        3 if transport.is_reliable() => app::Params::RequestResponse(app::RequestResponseParams {
            object: Distribution::Exponential { mean: 6000.0 },
            embedded: fixed(3.0),
            think_time: fixed(0.05),
            request_delay: Duration::from_millis(3),
        }),
        4 => app::Params::OnOff(app::OnOffParams {
            rate,
            size: Bytes::new(160),
            on: Distribution::Exponential { mean: 0.3 },
            off: Distribution::Exponential { mean: 0.2 },
        }),
        5 => app::Params::Poisson(app::PoissonParams { rate, size: fixed(700.0) }),
        6 => app::Params::Cbr(app::CbrParams { random_phase: false, ..cbr }),
        _ => app::Params::Cbr(cbr),
    }
}

fn queue(number: usize, packets: u32, rate: Rate) -> QueueSpec {
    let plain = QueueSpec::drop_tail(Limit::Packets(packets), rate);
    let aqm = |aqm| QueueSpec { aqm, ..plain.clone() };
    match number {
        1 => aqm(AqmSpec::Pi(pi::PiParams::default())),
        2 => aqm(AqmSpec::Red(red::RedParams::default())),
        3 => aqm(AqmSpec::Pie(pie::PieParams::default())),
        4 => aqm(AqmSpec::CoDel(codel::CoDelParams::default())),
        5 => aqm(AqmSpec::FqCoDel(fq_codel::FqCoDelParams::default())),
        6 => QueueSpec { tsq: Some(TsqParams::default()), ..aqm(AqmSpec::Pi(pi::PiParams::default())) },
        _ => plain,
    }
}

fn impairment(number: usize) -> Option<ImpairmentParams> {
    let usual = ImpairmentParams::default;
    match number {
        1 => Some(ImpairmentParams { loss: 0.02, ..usual() }),
        2 => Some(ImpairmentParams { reorder: 0.05, reorder_delay: Duration::from_millis(7), ..usual() }),
        3 => Some(ImpairmentParams { jitter: Duration::from_micros(300), jitter_reorders: true, ..usual() }),
        4 => Some(ImpairmentParams { jitter: Duration::from_micros(900), to_bad: 0.01, ..usual() }),
        5 => Some(ImpairmentParams { loss: 0.001, unit: LossUnit::Cell, ..usual() }),
        _ => None,
    }
}

impl Middle {
    fn has_cells(&self) -> bool {
        self.extra == 4
    }

    fn link(&self, from: NodeId, to: NodeId) -> LinkSpec {
        let (rate, second) = (Rate::from_kbps(self.kbps), Duration::from_secs(1));
        let delay = Duration::from_micros(self.delay_us);
        let at = |tenths: u64| Instant::ZERO + second * tenths / 10;
        let suits = |params: &ImpairmentParams| {
            params.jitter <= delay && (params.unit == LossUnit::Packet || self.has_cells())
        };
        let wire = impairment(self.impairment).filter(suits);
        LinkSpec {
            from,
            to,
            rate,
            delay,
            queue: queue(self.queue, self.packets, rate).into(),
            rate_changes: if self.extra == 1 {
                vec![(at(7), Rate::from_kbps(self.kbps * 2)), (at(13), rate)]
            } else {
                Vec::new()
            },
            deliveries: (self.extra == 2).then(|| Arc::new(Deliveries::new(vec![1, 4, 4, 9, 20]))),
            pass_on: (self.extra == 3).then_some(HintBudget {
                bits: HintBits::PAPER,
                step: HintBudget::STEP,
                largest: true,
            }),
            impairment: wire.map(Box::new),
            series: self.series,
        }
    }
}

fn network((middles, pairs, access_in_step): &(Vec<Middle>, Vec<Pair>, bool)) -> Network {
    let mut network = Network::new();
    let routers: Vec<NodeId> =
        (0..=middles.len() / 2).map(|number| network.add_node(format!("r{number}"))).collect();
    for (number, two) in middles.chunks(2).enumerate() {
        let ends = [routers[number], routers[number + 1]];
        for (middle, [from, to]) in two.iter().zip([ends, [ends[1], ends[0]]]) {
            let link = network.add_link(middle.link(from, to));
            if middle.has_cells() {
                network.set_cells(link, Aal5Params { efci: Some(40), ..Aal5Params::default() });
            }
        }
    }
    let group = network.add_group("flows");
    let mut last: Option<(usize, NodeId)> = None;
    for (number, pair) in pairs.iter().enumerate() {
        // With equal access links, packets of several flows arrive at the same times.
        let (us, kbps) = if *access_in_step { (2000, 8000) } else { (pair.access_us, pair.access_kbps) };
        let mut host = |name: &str, router: NodeId| {
            let node = network.add_node(format!("{name}{number}"));
            let rate = Rate::from_kbps(kbps);
            for (from, to) in [(node, router), (router, node)] {
                network.add_link(LinkSpec::new(
                    from,
                    to,
                    rate,
                    Duration::from_micros(us),
                    queue(0, pair.access_packets, rate),
                ));
            }
            node
        };
        let source = match last {
            Some((router, host)) if pair.shares && router == pair.from => host,
            _ => host("s", routers[pair.from]),
        };
        let sink = host("d", routers[pair.to]);
        last = Some((pair.from, source));
        let transport = transport(pair.protocol);
        let app = application(pair.app, &transport);
        let route = network.route(source, sink).expect("routers are in a row");
        let return_route = network.route(sink, source).expect("routers are in a row");
        let flow = FlowSpec {
            host: pair.shares.then_some(pair.from as u32),
            hint: Hint::from_level(pair.level),
            start: if *access_in_step {
                (Instant::ZERO, Instant::ZERO)
            } else {
                (Instant::ZERO, Instant::from_nanos(500_000_000))
            },
            stop: if pair.series { Instant::from_nanos(1_700_000_000) } else { Instant::FAR_FUTURE },
            series: pair.series,
            distributions: if pair.own { Distributions::PerFlow } else { Distributions::PerGroup },
            ..FlowSpec::new(format!("flow.{number}"), group, [route, return_route], transport, app)
        };
        network.add_flow(flow).expect("the flow is sound");
    }
    network
}

fn settings(seed: u64) -> SimulationSettings {
    let at = |ms: u64| Instant::ZERO + Duration::from_millis(ms);
    SimulationSettings {
        seed,
        duration: Duration::from_millis(2345),
        window: Window { from: at(400), until: at(2000) },
        interval: Duration::from_millis(150),
    }
}

/// Every measure, with all digits.
fn print(outcome: &SimulationOutcome) -> String {
    format!("{outcome:#?}")
}

fn finish(mut simulation: Simulation, steps: &[u64]) -> SimulationOutcome {
    let mut until = Instant::ZERO;
    for step in steps {
        until += Duration::from_micros(*step);
        simulation.advance(until);
    }
    simulation.advance(Instant::FAR_FUTURE);
    simulation.finish()
}

/// Runs a simulation in shards, one after the other. Returns the outcome, with the number of shards.
fn in_shards(
    network: &Network,
    settings: &SimulationSettings,
    plan: &StagePlan,
    most: usize,
) -> (SimulationOutcome, usize) {
    let plan = ShardPlan::of(network, plan.clone(), most);
    let shards = plan.shards();
    let mut all: Vec<Shard> =
        (0..shards).map(|number| Shard::new(network, settings, &plan, number).unwrap()).collect();
    let mut mail: Vec<Mail> = (0..shards * shards).map(|_| Mail::default()).collect();
    loop {
        let goes_on: Vec<bool> = all.iter_mut().map(Shard::run_window).collect();
        assert!(goes_on.iter().all(|own| *own == goes_on[0]), "all end together");
        if !goes_on[0] {
            return (EndedShard::outcome(all.into_iter().map(Shard::end).collect()), shards);
        }
        for (from, shard) in all.iter_mut().enumerate() {
            shard.open_window();
            (0..shards).filter(|to| *to != from).for_each(|to| shard.post(to, &mut mail[from * shards + to]));
        }
        for (to, shard) in all.iter_mut().enumerate() {
            (0..shards)
                .filter(|from| *from != to)
                .for_each(|from| shard.receive(&mut mail[from * shards + to]));
        }
    }
}

/// The first line in which two texts differ, for a failure that can be read.
fn difference(one: &str, other: &str) -> Option<String> {
    let lines = one.lines().zip(other.lines()).enumerate();
    let mut different = lines.filter(|(_, (one, other))| one != other);
    different.next().map(|(number, (one, other))| format!("line {number}: {one} against {other}"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn stages_and_the_event_loop_have_the_same_outcome(
        shape in networks(),
        seed in 0u64..1000,
        steps in prop::collection::vec(1u64..400_000, 0..8),
        shards in 2usize..6,
    ) {
        let network = network(&shape);
        let plan = StagePlan::cut(&network);
        prop_assume!(plan.is_ok());
        let (plan, settings) = (plan.unwrap(), settings(seed));
        let stages = finish(Simulation::in_stages(&network, &settings, &plan).unwrap(), &steps);
        let events = finish(Simulation::with_event_loop(&network, &settings).unwrap(), &[]);
        prop_assert_eq!(difference(&print(&stages), &print(&events)), None, "{:?}", plan);
        let (parts, shards) = in_shards(&network, &settings, &plan, shards);
        prop_assert_eq!(difference(&print(&parts), &print(&stages)), None, "{} shards", shards);
    }
}

/// With many flows the stages read ahead, and packets cross FIFO links in blocks.
#[test]
fn many_flows_have_the_same_outcome() {
    for tsq in [false, true] {
        let mut plan = Dumbbell { tsq, access_queue_packets: 3, ..Dumbbell::scaled(350) };
        for (number, flow) in plan.flows.iter_mut().enumerate().filter(|(number, _)| number % 3 > 0) {
            *flow = if number % 3 == 1 {
                // NewReno with SACK, BBR, BBRv3 and Prague.
                (transport([1, 9, 10, 11][number / 3 % 4]), app::Params::BULK, flow.2)
            } else {
                crate::common::audio(2)
            };
        }
        let network = plan.network();
        let plan = StagePlan::new(&network).expect("the papers' dumbbell is cut into stages");
        assert_eq!((plan.stages, plan.lookahead), (4, Duration::from_millis(50)));
        let settings = SimulationSettings { duration: Duration::from_secs(6), ..settings(1) };
        let stages = finish(Simulation::new(&network, &settings).unwrap(), &[1_234_567]);
        let events = finish(Simulation::with_event_loop(&network, &settings).unwrap(), &[]);
        for (most, expected) in [(1, 1), (2, 2), (3, 3), (4, 3), (9, 4)] {
            let (parts, shards) = in_shards(&network, &settings, &plan, most);
            assert_eq!((difference(&print(&parts), &print(&stages)), shards), (None, expected));
        }
        let dropped: u64 = stages.flows.iter().map(|flow| flow.record.totals.dropped).sum();
        assert!(stages.work.data_packets > 10_000 && dropped > 100, "{:?}, {dropped}", stages.work);
        assert_eq!(difference(&print(&stages), &print(&events)), None);
    }
}

fn obstacle(network: &Network) -> String {
    StagePlan::new(network).unwrap_err().to_string()
}

#[test]
fn the_reason_against_stages_is_given() {
    let dumbbell = || Dumbbell::paper(4).network();
    let mut watched = dumbbell();
    watched.watch(cutline_sim::LinkId(0));
    assert_eq!(StagePlan::new(&watched), Err(StageObstacle::Watched));
    let mut external = dumbbell();
    external.use_external_endpoints();
    assert_eq!(StagePlan::new(&external), Err(StageObstacle::External));
    let mut observed = dumbbell();
    observed.observe(2);
    assert_eq!(StagePlan::new(&observed), Err(StageObstacle::Agents));
    assert_eq!(StagePlan::new(&Network::new()), Err(StageObstacle::NoFlows));
    let every_link_is_a_queue = Dumbbell { serve_every_link: true, ..Dumbbell::paper(4) }.network();
    assert_eq!(
        obstacle(&every_link_is_a_queue),
        "a flow begins at link `s1->r1`, whose queue decides packet by packet"
    );
}

/// Two hosts at one router, by links of this delay; a flow each way, so that the first link of the data of one is the first link of the
/// replies of the other.
fn pair_of_hosts(delay: Duration) -> Network {
    pair_of_hosts_at(Rate::from_mbps(8), delay)
}

/// The same with links of this rate.
fn pair_of_hosts_at(rate: Rate, delay: Duration) -> Network {
    let mut network = Network::new();
    let [left, router, right] = ["a", "r", "b"].map(|name| network.add_node(name));
    for (from, to) in [(left, router), (router, right), (right, router), (router, left)] {
        network.add_link(LinkSpec::new(from, to, rate, delay, queue(0, 20, rate)));
    }
    let group = network.add_group("flows");
    for (number, (from, to)) in [(left, right), (right, left)].into_iter().enumerate() {
        let routes = [network.route(from, to).unwrap(), network.route(to, from).unwrap()];
        let flow = FlowSpec::new(format!("flow.{number}"), group, routes, transport(0), app::Params::BULK);
        let flow = FlowSpec { series: true, ..flow };
        network.add_flow(flow).unwrap();
    }
    network
}

#[test]
fn a_cycle_of_links_without_delay_is_simulated_event_by_event() {
    let obstacle = obstacle(&pair_of_hosts(Duration::ZERO));
    assert_eq!(obstacle, "the latency of 0 ns behind link `a->r` is too short for a window");
    let outcome = cutline_sim::run(&pair_of_hosts(Duration::ZERO), &settings(1)).unwrap();
    assert!(outcome.flows.iter().all(|flow| flow.record.totals.received > 100));
}

#[test]
fn a_window_has_at_most_four_seconds() {
    // The lookahead is 40 s, and 512 packets of 8 kbit take 41 s.
    let network = pair_of_hosts_at(Rate::from_kbps(100), Duration::from_secs(20));
    let plan = StagePlan::new(&network).unwrap();
    assert_eq!((plan.lookahead, plan.window()), (Duration::from_secs(40), Duration::from_nanos(1 << 32)));
    let at = |seconds: u64| Instant::ZERO + Duration::from_secs(seconds);
    let duration = Duration::from_secs(300);
    let window = Window { from: at(10), until: at(290) };
    let settings = SimulationSettings { seed: 1, duration, window, interval: Duration::from_secs(1) };
    let stages = finish(Simulation::new(&network, &settings).unwrap(), &[777]);
    let events = finish(Simulation::with_event_loop(&network, &settings).unwrap(), &[]);
    assert_eq!(difference(&print(&stages), &print(&events)), None);
    assert!(stages.flows.iter().all(|flow| flow.record.totals.received > 1), "{:?}", stages.work);
}

#[test]
fn a_link_with_the_data_of_one_host_and_its_replies_joins_sources_and_sinks() {
    let network = pair_of_hosts(Duration::from_millis(3));
    // All links are folded or first links, so sources and sinks are all there is.
    let plan = StagePlan::cut(&network).unwrap();
    assert_eq!((plan.stages, plan.lookahead), (1, Duration::from_millis(6)));
    // A window of 4 ms has four packets of 1 ms.
    assert_eq!(obstacle(&network), "the latency of 6 ms behind link `a->r` is too short for a window");
    let stages = finish(Simulation::in_stages(&network, &settings(1), &plan).unwrap(), &[777]);
    let events = finish(Simulation::with_event_loop(&network, &settings(1)).unwrap(), &[]);
    assert_eq!(difference(&print(&stages), &print(&events)), None);
    assert!(stages.work.data_packets > 500);
}
