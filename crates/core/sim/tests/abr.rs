//! Connections of ATM with an available bit rate: they follow the marks of a switch.

use cutline_aqm::{Limit, QueueSpec};
use cutline_sim::{
    Aal5Params, FlowSpec, ImpairmentParams, LinkId, LinkSpec, Network, SimulationOutcome, SimulationSettings,
    Window, run,
};
use cutline_transport::endpoint::TransportParams;
use cutline_transport::{abr, app, tcp, udp};
use cutline_units::{Bytes, Duration, Instant, Rate};
use std::sync::Arc;

/// A source: its transport, application and start.
type Source = (TransportParams, app::Params, u64);

/// Sources with links of 100 Mbit/s to a switch, and a link from there to the sinks, all of ATM.
///
/// ```text
/// source 0 ---\
/// source 1 ---- switch ---- sinks
/// ```
struct Star {
    network: Network,
    shared: LinkId,
}

impl Star {
    /// The shared link has this rate, delay, queue and threshold of EFCI.
    fn new(
        rate: Rate,
        delay: Duration,
        (limit_bytes, efci): (u64, u32),
        sources: Vec<Source>,
        back: Option<ImpairmentParams>,
    ) -> Self {
        let mut network = Network::new();
        let [switch, sinks] = ["switch", "sinks"].map(|name| network.add_node(name));
        let group = network.add_group("all");
        let (access, near) = (Rate::from_mbps(100), Duration::from_micros(100));
        let queue = |rate| QueueSpec::drop_tail(Limit::Bytes(limit_bytes), rate);
        let shared = network.add_link(LinkSpec::new(switch, sinks, rate, delay, queue(rate)));
        let returning = LinkSpec {
            impairment: back.map(Box::new),
            ..LinkSpec::new(sinks, switch, rate, delay, queue(rate))
        };
        let returning = network.add_link(returning);
        for (number, (transport, app, start)) in sources.into_iter().enumerate() {
            let source = network.add_node(format!("source {number}"));
            let [there, back] = [(source, switch), (switch, source)]
                .map(|(from, to)| network.add_link(LinkSpec::new(from, to, access, near, queue(access))));
            let start = Instant::ZERO + Duration::from_secs(start);
            let routes = [vec![there, shared], vec![returning, back]];
            let flow = FlowSpec::new(format!("flow {number}"), group, routes, transport, app);
            let flow = FlowSpec { start: (start, start), ..flow };
            network.add_flow(flow).unwrap();
        }
        for link in network.link_ids() {
            let efci = (link == shared).then_some(efci);
            network.set_cells(link, Aal5Params { encapsulation: Bytes::ZERO, efci, ..Aal5Params::default() });
        }
        Self { network, shared }
    }

    /// Runs for 20 s and measures the last 10 s.
    fn run(&self) -> SimulationOutcome {
        let duration = Duration::from_secs(20);
        let window =
            Window { from: Instant::ZERO + Duration::from_secs(10), until: Instant::ZERO + duration };
        let settings = SimulationSettings { seed: 1, duration, window, interval: Duration::from_millis(500) };
        run(&self.network, &settings).unwrap()
    }
}

/// An endless source with packets of 1000 B and this peak rate.
fn bulk(pcr: Rate, start: u64) -> Source {
    let params = abr::Params { rif: 1.0 / 64.0, rdf: 1.0 / 32.0, ..small(pcr) };
    (TransportParams::Abr(Arc::new(params)), app::Params::BULK, start)
}

fn small(pcr: Rate) -> abr::Params {
    abr::Params { packet_size: 1000, pcr, ..abr::Params::default() }
}

/// Payload that a rate of cells carries, Mbit/s: 21 cells for 1000 B, and one in 32 is an RM cell.
fn payload_mbps(rate: Rate) -> f64 {
    rate.as_bps() as f64 / 1e6 * 8000.0 / (21.0 * 424.0 * 32.0 / 31.0)
}

/// Payload delivered to each sink over the 10 s of the window, Mbit/s.
fn goodputs(outcome: &SimulationOutcome) -> Vec<f64> {
    outcome.flows.iter().map(|flow| flow.record.delivered_bytes as f64 * 8.0 / 10.0 / 1e6).collect()
}

const TEN: Rate = Rate::from_mbps(10);
const MS: Duration = Duration::from_millis(1);

/// A source that is alone rises to its peak rate without a mark, also if this is the rate of the link.
#[test]
fn a_source_alone_reaches_its_peak_rate() {
    for pcr in [Rate::from_mbps(5), TEN] {
        let star = Star::new(TEN, MS, (200_000, 200), vec![bulk(pcr, 0)], None);
        let outcome = star.run();
        let (goodput, expected) = (goodputs(&outcome)[0], payload_mbps(pcr));
        assert!((goodput / expected - 1.0).abs() < 0.01, "{pcr}: {goodput} instead of {expected} Mbit/s");
        let record = &outcome.flows[0].record;
        assert_eq!((record.marked_packets, record.totals.dropped), (0, 0), "{pcr}");
    }
}

/// A source whose peak rate is twice that of the link uses the link, and its queue stays bounded. The control is of the kind that
/// oscillates: the link is idle for a part of each cycle.
#[test]
fn a_source_alone_follows_the_marks_of_a_slower_link() {
    let star = Star::new(TEN, MS, (200_000, 200), vec![bulk(Rate::from_mbps(20), 0)], None);
    let outcome = star.run();
    let share = goodputs(&outcome)[0] / payload_mbps(TEN);
    assert!((0.8..=1.01).contains(&share), "{share}");
    let record = &outcome.flows[0].record;
    assert!(record.marked_packets > 0 && record.totals.dropped == 0, "{record:?}");
    let backlog = outcome.links[star.shared.0 as usize].backlog;
    assert!(backlog.max_bytes < 100_000, "{backlog:?}");
}

#[test]
fn two_sources_share_a_link_fairly_with_a_bounded_queue() {
    let pcr = Rate::from_mbps(20);
    let star = Star::new(TEN, MS, (200_000, 200), vec![bulk(pcr, 0), bulk(pcr, 5)], None);
    let outcome = star.run();
    let goodputs = goodputs(&outcome);
    let sum: f64 = goodputs.iter().sum();
    assert!((0.85..=1.01).contains(&(sum / payload_mbps(TEN))), "{goodputs:?}");
    assert!(goodputs.iter().all(|goodput| (0.4..=0.6).contains(&(goodput / sum))), "{goodputs:?}");
    let backlog = outcome.links[star.shared.0 as usize].backlog;
    assert!(backlog.max_bytes < 100_000, "{backlog:?}");
    assert!(outcome.flows.iter().all(|flow| flow.record.totals.dropped == 0));
}

/// All RM cells are lost on their way back.
#[test]
fn a_source_without_feedback_falls_to_its_minimum_rate() {
    let lost = ImpairmentParams { loss: 1.0, ..ImpairmentParams::default() };
    let mcr = Rate::from_kbps(100);
    let params = abr::Params { crm: 20, mcr, icr: Some(Rate::from_mbps(5)), ..small(TEN) };
    let source = (TransportParams::Abr(Arc::new(params)), app::Params::BULK, 0);
    let star = Star::new(TEN, MS, (200_000, 200), vec![source], Some(lost));
    let outcome = star.run();
    let (goodput, expected) = (goodputs(&outcome)[0], payload_mbps(mcr));
    assert!((goodput / expected - 1.0).abs() < 0.05, "{goodput} instead of {expected} Mbit/s");
    assert!(outcome.flows[0].transport.timeouts > 0);
}

/// QUANTA figure 6: a TCP connection of 45 Mbit/s beside two direct connections of 35 Mbit/s on 100 Mbit/s. Direct connections that do not
/// respond leave it less than half of its load. Those with an available bit rate take the rest of the link.
#[test]
fn beside_connections_that_respond_tcp_gets_its_load() {
    let cbr = |mbps| {
        let params = app::CbrParams::new(Rate::from_mbps(mbps), Bytes::new(8192));
        app::Params::Cbr(params)
    };
    let tcp = tcp::Params { mss: 8192, max_window: Some(4), send_buffer: Some(8), ..tcp::Params::default() };
    let goodputs_beside = |direct: TransportParams| {
        let sources = vec![
            (TransportParams::Tcp(Arc::new(tcp.clone())), cbr(45), 0),
            (direct.clone(), cbr(35), 0),
            (direct, cbr(35), 0),
        ];
        let near = Duration::from_micros(100);
        goodputs(&Star::new(Rate::from_mbps(100), near, (128_000, 200), sources, None).run())
    };
    let udp = udp::Params { max_datagram: 8192, header_bytes: 0, ..udp::Params::default() };
    let unresponsive = goodputs_beside(TransportParams::Udp(Arc::new(udp)));
    assert!(unresponsive[0] < 22.5, "{unresponsive:?}");
    let abr = abr::Params { pcr: Rate::from_mbps(45), rif: 1.0 / 64.0, ..abr::Params::default() };
    let responsive = goodputs_beside(TransportParams::Abr(Arc::new(abr)));
    assert!(responsive[0] > 40.0, "{responsive:?}");
    assert!(responsive[1..].iter().all(|goodput| *goodput > 10.0), "{responsive:?}");
}
