//! Links of ATM: packets take the time of their cells, and a lost cell loses its packet.

use cutline_aqm::{Limit, QueueSpec};
use cutline_sim::impairment::LossUnit;
use cutline_sim::{
    Aal5Params, FlowSpec, ImpairmentParams, LinkSpec, Network, NetworkError, SimulationOutcome,
    SimulationSettings, Window, run,
};
use cutline_transport::endpoint::TransportParams;
use cutline_transport::{app, udp};
use cutline_units::{Bytes, Duration, Instant, Rate};
use std::sync::Arc;

/// A "direct" connection: blocks without headers over a link of ATM, at this rate of the application.
fn direct(block: u32, load: Rate, link: Rate, impairments: [Option<ImpairmentParams>; 2]) -> Network {
    let mut network = Network::new();
    let nodes = ["a", "b"].map(|name| network.add_node(name));
    let spec = |from: usize, to: usize, impairment: Option<ImpairmentParams>| LinkSpec {
        impairment: impairment.map(Box::new),
        ..LinkSpec::new(
            nodes[from],
            nodes[to],
            link,
            Duration::from_millis(1),
            QueueSpec::drop_tail(Limit::Bytes(2 * u64::from(block)), link),
        )
    };
    let [there, back] = impairments;
    let route = vec![network.add_link(spec(0, 1, there))];
    let return_route = vec![network.add_link(spec(1, 0, back))];
    network.set_cells(route[0], Aal5Params { encapsulation: Bytes::ZERO, ..Aal5Params::default() });
    let group = network.add_group("blocks");
    let params = udp::Params { max_datagram: block.min(65_507), header_bytes: 0, ..udp::Params::default() };
    let cbr = app::CbrParams { random_phase: false, ..app::CbrParams::new(load, Bytes::new(block.into())) };
    let (transport, app) = (TransportParams::Udp(Arc::new(params)), app::Params::Cbr(cbr));
    let flow = FlowSpec::new("blocks", group, [route, return_route], transport, app);
    network.add_flow(flow).unwrap();
    network
}

fn outcome(network: &Network, seconds: u64) -> SimulationOutcome {
    let duration = Duration::from_secs(seconds);
    let window = Window { from: Instant::ZERO, until: Instant::ZERO + duration };
    run(network, &SimulationSettings { seed: 1, duration, window, interval: Duration::from_millis(500) })
        .unwrap()
}

#[test]
fn a_packet_takes_the_time_of_its_cells() {
    // 9148 B in 191 cells: 10,123 B at 10 Mbit/s take 8.0984 ms.
    let calm = outcome(&direct(9148, Rate::from_mbps(1), Rate::from_mbps(10), [None, None]), 10);
    let totals = &calm.flows[0].record.totals;
    assert_eq!((totals.sent, totals.dropped), (137, 0), "10 s of 73.184 ms each");
    let delay = calm.flows[0].delays.as_ref().unwrap().one_way.mean().unwrap();
    assert_eq!(delay, Duration::from_nanos(8_098_400 + 1_000_000));
}

/// QUANTA tables 1 and 2: a connection of the bandwidth of its load loses blocks, since cells have headers; a little more is enough.
#[test]
fn a_reservation_of_the_load_alone_loses_the_overhead_of_cells() {
    let lost = |percent: u64| {
        let link = Rate::from_kbps(500 * percent / 100);
        let outcome = outcome(&direct(8192, Rate::from_kbps(500), link, [None, None]), 1000);
        let totals = &outcome.flows[0].record.totals;
        totals.dropped as f64 / totals.sent as f64
    };
    // 171 cells of 53 B for 8192 B: 10.63 % more than the load. The excess is lost, except the queue of two blocks.
    let expected = 1.0 - 8192.0 / (171.0 * 53.0);
    assert!((lost(100) - expected).abs() < 0.001, "{} {expected}", lost(100));
    assert!(lost(110) > 0.0, "{}", lost(110));
    assert_eq!(lost(111), 0.0);
}

#[test]
fn a_lost_cell_loses_its_block() {
    let cell_loss = 1e-4;
    let params = ImpairmentParams { loss: cell_loss, unit: LossUnit::Cell, ..ImpairmentParams::default() };
    for (block, cells) in [(1024_u32, 22), (8192, 171), (65_507, 7 * 191 + 32)] {
        let rate = Rate::from_mbps(100);
        let outcome = outcome(&direct(block, Rate::from_mbps(50), rate, [Some(params.clone()), None]), 200);
        let totals = &outcome.flows[0].record.totals;
        let (n, share) = (totals.sent as f64, totals.dropped as f64 / totals.sent as f64);
        let expected = 1.0 - (1.0 - cell_loss).powi(cells);
        let error = (expected * (1.0 - expected) / n).sqrt();
        assert!((share - expected).abs() < 5.0 * error, "{block} B: {share} instead of {expected}");
    }
}

#[test]
fn cells_are_lost_only_where_there_are_some() {
    let params = ImpairmentParams { loss: 1e-4, unit: LossUnit::Cell, ..ImpairmentParams::default() };
    let network = direct(8192, Rate::from_mbps(1), Rate::from_mbps(10), [None, Some(params)]);
    let settings = SimulationSettings {
        seed: 1,
        duration: Duration::from_secs(1),
        window: Window { from: Instant::ZERO, until: Instant::ZERO + Duration::from_secs(1) },
        interval: Duration::from_millis(500),
    };
    let error = run(&network, &settings).unwrap_err();
    assert!(matches!(error, NetworkError::Impairment { .. }));
    assert_eq!(
        error.to_string(),
        "link `b->a`: impairment: unit = cell: allowed is packet on a link without aal5"
    );
}
