//! Links that lose, reorder and delay: every packet is accounted for, nothing else changes, TCP slows down as its formula says.

use crate::common::{Plan, audio, bulk};
use cutline_aqm::{Limit, QueueSpec};
use cutline_sim::impairment::JitterDistribution;
use cutline_sim::{
    FlowSpec, ImpairmentParams, LinkSpec, Network, SimulationOutcome, SimulationSettings, Window, run,
};
use cutline_transport::endpoint::TransportParams;
use cutline_transport::{app, tcp, udp};
use cutline_units::{Bytes, Duration, Hint, Instant, Rate};
use std::sync::Arc;

/// All of the run is measured.
fn settings(seconds: u64, seed: u64) -> SimulationSettings {
    let duration = Duration::from_secs(seconds);
    let window = Window { from: Instant::ZERO, until: Instant::ZERO + duration };
    SimulationSettings { seed, duration, window, interval: Duration::from_millis(300) }
}

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// Losses, reordering and jitter together.
fn all() -> ImpairmentParams {
    ImpairmentParams {
        to_bad: 0.005,
        to_good: 0.3,
        loss_in_good: 0.002,
        reorder: 0.02,
        reorder_delay: ms(4),
        jitter: ms(3),
        jitter_distribution: JitterDistribution::Normal,
        jitter_reorders: true,
        ..ImpairmentParams::default()
    }
}

/// TCP, TFRC and UDP over two links in a row, with the same impairment in each direction.
fn line(
    flows: &[(TransportParams, app::Params, Hint)],
    rate: Rate,
    impairment: Option<&ImpairmentParams>,
) -> Network {
    let mut network = Network::new();
    let nodes = ["a", "b", "c"].map(|name| network.add_node(name));
    let mut link = |from: usize, to: usize| {
        network.add_link(LinkSpec {
            impairment: impairment.cloned().map(Box::new),
            ..LinkSpec::new(
                nodes[from],
                nodes[to],
                rate,
                ms(20),
                QueueSpec::drop_tail(Limit::Packets(1000), rate),
            )
        })
    };
    let routes = [vec![link(0, 1), link(1, 2)], vec![link(2, 1), link(1, 0)]];
    let group = network.add_group("flows");
    for (number, (transport, app, hint)) in flows.iter().enumerate() {
        let name = format!("flow.{number}");
        let flow = FlowSpec {
            hint: *hint,
            start: (Instant::ZERO, Instant::ZERO + ms(100)),
            series: true,
            ..FlowSpec::new(name, group, routes.clone(), transport.clone(), app.clone())
        };
        network.add_flow(flow).unwrap();
    }
    network
}

fn datagrams() -> (TransportParams, app::Params, Hint) {
    let cbr = app::CbrParams::new(Rate::from_mbps(1), Bytes::new(500));
    (TransportParams::Udp(Arc::new(udp::Params::default())), app::Params::Cbr(cbr), Hint::from_level(1))
}

fn mixed() -> Vec<(TransportParams, app::Params, Hint)> {
    [bulk(3), vec![audio(6), datagrams()]].concat()
}

fn assert_accounted_for(outcome: &SimulationOutcome) -> [u64; 3] {
    let totals = || outcome.flows.iter().map(|flow| flow.record.totals);
    let sums = [
        totals().map(|t| t.sent).sum(),
        totals().map(|t| t.received).sum(),
        totals().map(|t| t.dropped).sum(),
    ];
    let [sent, received, dropped]: [u64; 3] = sums;
    assert_eq!(sent, received + dropped + outcome.work.under_way);
    sums
}

#[test]
fn every_packet_is_accounted_for() {
    let outcome = run(&line(&mixed(), Rate::from_mbps(10), Some(&all())), &settings(30, 1)).unwrap();
    let [sent, _, dropped] = assert_accounted_for(&outcome);
    assert!(outcome.work.under_way < 1000, "{} packets are still under way", outcome.work.under_way);
    // What flows have lost is what queues have dropped and what links have lost, on the links of the data.
    let there = &outcome.links[..2];
    let lost: u64 = there.iter().map(|link| link.impairment.unwrap().lost).sum();
    let in_queues: u64 = there.iter().map(|link| link.counts.dropped).sum();
    assert_eq!(dropped, lost + in_queues);
    assert!(lost * 200 > sent, "{lost} of {sent} lost");
    assert!(outcome.links.iter().all(|link| link.impairment.unwrap().reordered > 0));
    // A queue passes on packets that it has not dropped, whether the link loses it or not.
    for link in &outcome.links {
        assert!(link.counts.arrived - link.counts.dropped - link.counts.sent <= 1000);
        assert!(link.counts.sent >= link.impairment.unwrap().lost);
    }
}

#[test]
fn links_that_lose_everything_deliver_nothing() {
    let lossy = ImpairmentParams { loss: 1.0, ..ImpairmentParams::default() };
    let outcome = run(&line(&mixed(), Rate::from_mbps(10), Some(&lossy)), &settings(5, 1)).unwrap();
    let [sent, received, dropped] = assert_accounted_for(&outcome);
    assert!(received == 0 && sent > 1000 && sent - dropped <= 2, "{sent} sent, {dropped} lost");
}

/// The wire follows the queue: a lost packet has used the link.
#[test]
fn lost_packets_occupy_the_link() {
    let lossy = ImpairmentParams { loss: 0.5, ..ImpairmentParams::default() };
    let flows = [datagrams()];
    let with = run(&line(&flows, Rate::from_mbps(10), Some(&lossy)), &settings(5, 1)).unwrap();
    let without = run(&line(&flows, Rate::from_mbps(10), None), &settings(5, 1)).unwrap();
    assert_eq!(with.links[0].counts, without.links[0].counts);
    let half = without.links[1].counts.sent as f64 / 2.0;
    let behind = with.links[1].counts.sent as f64;
    assert!((behind - half).abs() < 5.0 * (half / 2.0).sqrt(), "{behind} of {half} expected");
}

/// An impairment that does nothing draws nothing that another draws, and changes no packet's time.
#[test]
fn an_impairment_of_nothing_changes_nothing() {
    let plan = |impairment: Option<ImpairmentParams>| {
        let mut plan = Plan::paper(8);
        plan.impairments.forward.clone_from(&impairment);
        plan.impairments.reverse.clone_from(&impairment);
        plan.impairments.access = impairment;
        run(&plan.network(), &settings(10, 1)).unwrap()
    };
    let (with, without) = (plan(Some(ImpairmentParams::default())), plan(None));
    assert_eq!(format!("{:?}", with.flows), format!("{:?}", without.flows));
    let counts =
        |outcome: &SimulationOutcome| outcome.links.iter().map(|link| link.counts).collect::<Vec<_>>();
    assert_eq!(counts(&with), counts(&without));
    assert!(with.links.iter().all(|link| link.impairment.is_some_and(|c| c.lost + c.reordered == 0)));
}

/// Behind a link that reorders, packets do not come in the order in which they were sent, so that folding must stop there. With
/// jitter in order packets of several flows may arrive at the same time, whose order folding leaves open; so there is one.
#[test]
fn folding_changes_nothing_behind_a_link_that_reorders() {
    for (flows, forward) in
        [(12, all()), (1, ImpairmentParams { jitter: ms(5), ..ImpairmentParams::default() })]
    {
        let mut plan = Plan { access_queue_packets: 3, ..Plan::paper(flows) };
        plan.impairments.forward = Some(forward.clone());
        plan.impairments.reverse = Some(forward);
        let served = Plan { serve_every_link: true, ..plan.clone() };
        let (folded, served) = (
            run(&plan.network(), &settings(20, 1)).unwrap(),
            run(&served.network(), &settings(20, 1)).unwrap(),
        );
        assert!(folded.work.events < served.work.events && folded.work.data_packets > 300);
        for (one, other) in folded.flows.iter().zip(&served.flows) {
            assert_eq!(one.record.totals, other.record.totals);
            assert_eq!(one.delays, other.delays);
        }
        for (one, other) in folded.links.iter().zip(&served.links) {
            assert_eq!(one.impairment, other.impairment);
        }
    }
}

#[test]
fn the_seed_determines_the_run() {
    let network = line(&mixed(), Rate::from_mbps(10), Some(&all()));
    let with_seed = |seed| format!("{:?}", run(&network, &settings(10, seed)).unwrap().flows);
    assert_eq!(with_seed(1), with_seed(1));
    assert_ne!(with_seed(1), with_seed(2));
}

#[test]
fn a_parameter_outside_its_range_is_refused() {
    let wrong = ImpairmentParams { jitter: ms(21), ..ImpairmentParams::default() };
    let error =
        run(&line(&mixed(), Rate::from_mbps(10), Some(&wrong)), &settings(1, 1)).unwrap_err().to_string();
    assert!(error.starts_with("link `a->b`: impairment: jitter = 21 ms"), "{error}");
}

/// The square-root formula (Mathis et al. 1997): MSS / RTT * sqrt(3 / 2p) with an acknowledgement for every segment. It holds for
/// small p, without timeouts and without a queue. The band, set beforehand, is 20 %.
#[test]
fn tcp_over_a_lossy_link_follows_the_square_root_formula() {
    for p in [0.0005, 0.001, 0.002, 0.005] {
        let lossy = ImpairmentParams { loss: p, ..ImpairmentParams::default() };
        let params = tcp::Params {
            mss: 1000,
            header_bytes: 0,
            sack: true,
            max_window: None,
            ..tcp::Params::default()
        };
        let flow = (TransportParams::Tcp(Arc::new(params)), app::Params::BULK, Hint::from_level(16));
        let rate = Rate::from_mbps(1000);
        let mut network = line(&[flow], rate, None);
        // Only the first link loses, so that acknowledgements are safe.
        network.impair(cutline_sim::LinkId(0), lossy);
        // Some hundred losses, so that their chance is small beside the band.
        let seconds = 1600;
        let outcome = run(&network, &settings(seconds, 1)).unwrap();
        let measured = outcome.flows[0].record.delivered_bytes as f64 / seconds as f64;
        let formula = 1000.0 / 0.080 * (1.5 / p).sqrt();
        let ratio = measured / formula;
        assert!((0.8..1.2).contains(&ratio), "p = {p}: {ratio} of the formula's {formula} B/s");
    }
}
