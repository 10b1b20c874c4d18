//! The flows of the scenario as plans for the traffic generator. Those that are QoS connections have none.

use crate::connections::Connections;
use crate::hosts::{sink, source};
use cutline_scenario::Scenario;
use cutline_scenario::spec::TransportSpec;
use cutline_sim::{FlowSpec, Network};
use cutline_traffic::{FlowPlan, FlowTransport, PlanDirection, TcpOptions};
use cutline_transport::endpoint::TransportParams;
use cutline_transport::tcp;
use cutline_units::{DscpPool2, Ecn, HintCodec, Instant, Streams};
use std::net::{SocketAddr, SocketAddrV4};

/// The plans of the flows, in the order of the flows. A flow starts at the same time as in the simulation with this seed.
pub fn plans(scenario: &Scenario, network: &Network, connections: &Connections, seed: u64) -> Vec<FlowPlan> {
    let streams = Streams::new(seed);
    let flows = network.flows().iter().enumerate().filter(|(number, _)| !connections.contains_key(number));
    flows
        .map(|(number, flow)| plan(scenario, flow, number, [source(number), sink(number)], streams))
        .collect()
}

/// The plan of a flow between these addresses.
pub fn plan(
    scenario: &Scenario,
    flow: &FlowSpec,
    number: usize,
    [from, to]: [SocketAddrV4; 2],
    streams: Streams,
) -> FlowPlan {
    let group = &scenario.flows[flow.group.0 as usize];
    let since_zero = |at: Instant| at.saturating_since(Instant::ZERO);
    let (transport, ecn) = match &flow.transport {
        // ECN of TCP is set by the route of the connection (`tuning::forward_route`).
        TransportParams::Tcp(params) => (FlowTransport::Tcp(options(params, &group.transport)), false),
        datagrams => (FlowTransport::Datagrams(datagrams.clone()), datagrams.ecn() != Ecn::NotEct),
    };
    FlowPlan {
        direction: PlanDirection::Forward,
        id: number as u32,
        name: flow.name.clone(),
        transport,
        app: flow.app.clone(),
        from: Some(SocketAddr::V4(from)),
        to: SocketAddr::V4(to),
        dscp: DscpPool2.encode(flow.hint).expect("hints of more than 4 bits have been refused"),
        ecn,
        start: since_zero(flow.start_with(streams)),
        stop: (flow.stop != Instant::FAR_FUTURE).then(|| since_zero(flow.stop)),
    }
}

/// Returns the options of the kernel's TCP for a scenario's TCP, without the time stamp option.
pub fn options(params: &tcp::Params, spec: &TransportSpec) -> TcpOptions {
    TcpOptions {
        congestion_control: spec.linux_congestion_control().map(str::to_owned),
        max_segment: Some(params.mss),
        write_queue: params.send_buffer.map(|segments| params.bytes_of(segments)),
        no_delay: !params.nagle,
        ..TcpOptions::default()
    }
}
