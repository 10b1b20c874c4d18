//! Whole networks: every packet is accounted for, folding changes nothing, the seed decides everything.

use crate::common::{Plan, audio, bulk};
use cutline_aqm::{AqmSpec, registry};
use cutline_sim::{FlowOutcome, Simulation, SimulationSettings, Window, run};
use cutline_transport::endpoint::TransportParams;
use cutline_transport::{app, tfrc};
use cutline_units::{Duration, Hint, Instant, Rate};
use std::sync::Arc;

fn settings(seconds: u64) -> SimulationSettings {
    let duration = Duration::from_secs(seconds);
    let window =
        Window { from: Instant::ZERO + Duration::from_secs(seconds / 5), until: Instant::ZERO + duration };
    SimulationSettings { seed: 1, duration, window, interval: Duration::from_millis(300) }
}

#[test]
fn every_packet_is_accounted_for() {
    let outcome = run(&Plan::paper(20).network(), &settings(30)).unwrap();
    let (mut sent, mut ended) = (0, 0);
    for flow in &outcome.flows {
        let totals = flow.record.totals;
        assert!(totals.sent >= totals.received + totals.dropped);
        sent += totals.sent;
        ended += totals.received + totals.dropped;
    }
    assert_eq!(sent, ended + outcome.work.under_way);
    let in_flight = Rate::from_mbps(15).bytes_in(Duration::from_secs(1)).get() / 1000;
    assert!(outcome.work.under_way < in_flight, "{} packets are still under way", outcome.work.under_way);
}

/// Also those that a queue has stored and thrown away since.
#[test]
fn every_packet_is_accounted_for_in_every_queue() {
    for about in registry::describe() {
        let aqm = Some(AqmSpec::from_values(about.name, []).unwrap());
        let flows = [bulk(20), vec![audio(6); 4]].concat();
        let rate = Rate::from_mbps(3);
        let plan = Plan { aqm, flows, rate, tsq: about.takes_tsq, ..Plan::paper(20) };
        let outcome = run(&plan.network(), &settings(20)).unwrap();
        let sum = |part: fn(&FlowOutcome) -> u64| outcome.flows.iter().map(part).sum::<u64>();
        let (received, dropped) =
            (sum(|flow| flow.record.totals.received), sum(|flow| flow.record.totals.dropped));
        assert_eq!(
            sum(|flow| flow.record.totals.sent),
            received + dropped + outcome.work.under_way,
            "{}",
            about.name
        );
        assert!(dropped > 0 && received > 5000, "{}: {received} received, {dropped} dropped", about.name);
        assert!(outcome.links[0].utilisation > 0.8, "{}: {}", about.name, outcome.links[0].utilisation);
    }
}

#[test]
fn a_saturated_bottleneck_is_fully_used() {
    let outcome = run(&Plan::paper(100).network(), &settings(60)).unwrap();
    let bottleneck = &outcome.links[0];
    assert!(bottleneck.utilisation > 0.98, "utilisation {}", bottleneck.utilisation);
    let goodput: u64 = outcome.flows.iter().map(|flow| flow.record.delivered_bytes).sum();
    let share = goodput as f64 * 8.0 / 48.0 / 15e6;
    // A hole that closes at the window's beginning delivers bytes that crossed the link before it.
    assert!((0.93..1.005).contains(&share), "the flows together get {share} of the link");
}

/// The same network with every link served packet by packet instead of folded: same packets at the same times.
#[test]
fn folding_changes_nothing() {
    let folded = Plan { access_queue_packets: 3, ..Plan::paper(12) };
    let served = Plan { serve_every_link: true, ..folded.clone() };
    let (folded, served) = (folded.network(), served.network());
    let (folded, served) = (run(&folded, &settings(40)).unwrap(), run(&served, &settings(40)).unwrap());
    assert!(folded.work.events < served.work.events, "folding saves events");
    for (one, other) in folded.flows.iter().zip(&served.flows) {
        assert_eq!(one.record.totals, other.record.totals);
        assert_eq!(one.delays, other.delays);
        assert_eq!(one.transport, other.transport);
    }
    for (one, other) in folded.links.iter().zip(&served.links) {
        assert_eq!(
            (one.counts.sent_bytes, one.counts.dropped),
            (other.counts.sent_bytes, other.counts.dropped)
        );
        let close = |a: f64, b: f64| (a - b).abs() <= 1e-9 * a.abs().max(1.0);
        assert!(close(one.backlog.mean_packets, other.backlog.mean_packets), "{one:?} {other:?}");
        assert!(close(one.backlog.deviation_packets, other.backlog.deviation_packets));
        assert_eq!(one.backlog.max_packets, other.backlog.max_packets);
    }
}

#[test]
fn a_run_in_steps_is_the_run_at_once() {
    let network = Plan::paper(8).network();
    let whole = run(&network, &settings(10)).unwrap();
    let mut stepped = Simulation::new(&network, &settings(10)).unwrap();
    for step in 1..=100 {
        stepped.advance(Instant::ZERO + Duration::from_millis(100 * step));
    }
    let stepped = stepped.finish();
    assert_eq!(format!("{:?}", whole.flows), format!("{:?}", stepped.flows));
    assert_eq!(whole.work, stepped.work);
}

#[test]
fn the_seed_determines_the_run() {
    let network = Plan::paper(8).network();
    let with_seed =
        |seed| format!("{:?}", run(&network, &SimulationSettings { seed, ..settings(10) }).unwrap());
    assert_eq!(with_seed(1), with_seed(1));
    assert_ne!(with_seed(1), with_seed(2));
}

#[test]
fn a_smaller_hint_waits_less_and_loses_more() {
    let with_hint = |hint| {
        let plan = Plan { flows: [bulk(99), vec![audio(hint)]].concat(), ..Plan::paper(0) };
        let outcome = run(&plan.network(), &settings(100)).unwrap();
        let audio = outcome.flows.last().unwrap();
        let delay = audio.delays.as_ref().unwrap().queuing.mean().unwrap();
        (delay, audio.record.dropped_packets as f64 / audio.record.sent_packets as f64)
    };
    let (cut, fair) = (with_hint(1), with_hint(16));
    assert!(cut.0 < fair.0 / 2, "hint 1 waits {}, hint 16 {}", cut.0, fair.0);
    assert!(cut.1 > fair.1, "hint 1 loses {}, hint 16 {}", cut.1, fair.1);
}

#[test]
fn a_rate_change_moves_the_goodput() {
    let mut plan = Plan::paper(20);
    plan.rate_changes = vec![(Instant::ZERO + Duration::from_secs(40), Rate::from_mbps(5))];
    let outcome = run(&plan.network(), &settings(80)).unwrap();
    let series = outcome.links[0].series.as_ref().unwrap();
    let mbps = |range: std::ops::Range<usize>| {
        let seconds = range.len() as f64 * 0.3;
        series[range].iter().map(|interval| interval.sent_bytes).sum::<u64>() as f64 * 8e-6 / seconds
    };
    assert!((14.0..15.1).contains(&mbps(80..130)), "{}", mbps(80..130));
    assert!((4.9..5.1).contains(&mbps(160..260)), "{}", mbps(160..260));
}

/// Written data are still delivered after the stop time; an unlimited supply ends.
#[test]
fn a_bulk_transfer_stops_at_its_stop_time() {
    let tfrc = TransportParams::Tfrc(Arc::new(tfrc::Params::default()));
    let flows = [bulk(2), vec![(tfrc, app::Params::BULK, Hint::from_level(16)); 2]].concat();
    let stop = Instant::ZERO + Duration::from_secs(10);
    let network = Plan { flows, stop, ..Plan::paper(4) }.network();
    let short = run(&network, &settings(20)).unwrap();
    let long = run(&network, &settings(60)).unwrap();
    assert_eq!((short.work.under_way, long.work.under_way), (0, 0));
    for (short, long) in short.flows.iter().zip(&long.flows) {
        assert!(short.record.totals.received > 100, "they have sent: {:?}", short.record.totals);
        assert_eq!(short.record.totals, long.record.totals, "and after 20 s at the latest no more");
    }
}
