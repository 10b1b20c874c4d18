//! Plans for groups of flows, from options or from a file.

use super::options::FlowArgs;
use crate::exit::Failure;
use cutline_scenario::FlowsFile;
use cutline_scenario::spec::{FlowDirection, FlowGroupSpec, StartSpec};
use cutline_traffic::{FlowGroups, FlowPlan, FlowTransport, PlanDirection, TcpOptions};
use cutline_transport::endpoint::TransportParams;
use cutline_transport::tcp;
use cutline_units::{DscpPool2, Duration, HintCodec as _, Streams};
use std::net::SocketAddr;

/// The size of the time stamp option with its padding, which the kernel subtracts from `TCP_MAXSEG` (RFC 7323 section 3.2).
const TIME_STAMP: u32 = 12;

/// Returns one group from the options.
pub fn from_options(
    args: &FlowArgs,
    from: Option<SocketAddr>,
    to: SocketAddr,
) -> Result<FlowGroups, Failure> {
    let (transport, app, dscp) = (args.transport()?, args.application()?, args.code_point()?);
    let mut flows = FlowGroups::default();
    for (direction, group) in directions(args.direction(), &args.name()) {
        let first = flows.plans.len() as u32;
        let name = |i: u32| if args.flows == 1 { group.clone() } else { format!("{group}.{}", i + 1) };
        let plan = |i: u32| FlowPlan {
            id: first + i,
            name: name(i),
            direction,
            transport: transport.clone(),
            app: app.clone(),
            from,
            to,
            dscp,
            ecn: args.ecn,
            start: Duration::ZERO,
            stop: None,
        };
        flows.add(group.clone(), (0..args.flows).map(plan));
    }
    Ok(flows)
}

/// Returns the groups of a file.
pub fn from_file(
    file: &FlowsFile,
    streams: Streams,
    from: Option<SocketAddr>,
    to: SocketAddr,
) -> Result<FlowGroups, Failure> {
    let mut flows = FlowGroups::default();
    for spec in &file.flows {
        let transport = transport(spec)?;
        let dscp = DscpPool2.encode(spec.hint).unwrap_or_default();
        for (direction, group) in directions(spec.direction, &spec.name) {
            let first = flows.plans.len() as u32;
            let names = FlowGroupSpec { name: group.clone(), ..spec.clone() };
            let plan = |(id, name): (u32, String)| FlowPlan {
                id,
                direction,
                transport: transport.clone(),
                app: spec.app.clone(),
                from,
                to,
                dscp,
                ecn: spec.ecn.is_capable(),
                start: start(spec.start, streams, &name),
                stop: spec.stop,
                name,
            };
            flows.add(group, (first..).zip(names.member_names()).map(plan));
        }
    }
    Ok(flows)
}

/// Returns the directions of a group and the group's name in each.
fn directions(direction: FlowDirection, name: &str) -> Vec<(PlanDirection, String)> {
    match direction {
        FlowDirection::Forward => vec![(PlanDirection::Forward, name.to_owned())],
        FlowDirection::Reverse => vec![(PlanDirection::Reverse, name.to_owned())],
        FlowDirection::Bidirectional => {
            vec![
                (PlanDirection::Forward, name.to_owned()),
                (PlanDirection::Reverse, format!("{name}.reverse")),
            ]
        }
    }
}

/// Returns the start of a flow. It is drawn as in the simulator.
fn start(spec: StartSpec, streams: Streams, name: &str) -> Duration {
    match spec {
        StartSpec::At(at) => at,
        StartSpec::Uniform { from, to } => {
            from + to.saturating_sub(from).mul_f64(streams.stream(name, "start").uniform())
        }
    }
}

fn transport(spec: &FlowGroupSpec) -> Result<FlowTransport, Failure> {
    if spec.adaptive.is_some() {
        return Err(refuse(spec, "hint", "\"adaptive\" is only available in simulations: set a level"));
    }
    Ok(match spec.transport() {
        TransportParams::Tcp(params) => FlowTransport::Tcp(tcp_options(spec, &params)?),
        datagrams => FlowTransport::Datagrams(datagrams),
    })
}

/// Returns the options of the kernel's TCP for a scenario's TCP. Keys that the kernel has no option for are errors.
fn tcp_options(spec: &FlowGroupSpec, params: &tcp::Params) -> Result<TcpOptions, Failure> {
    let known = ["mss", "send-buffer", "nagle"];
    let given = &spec.transport.given;
    if let Some(key) = given.iter().find(|key| !known.contains(key)) {
        return Err(refuse(
            spec,
            &format!("transport.{key}"),
            "it cannot be set for the kernel's TCP: remove it",
        ));
    }
    Ok(TcpOptions {
        congestion_control: spec.transport.linux_congestion_control().map(str::to_owned),
        max_segment: Some(params.mss + TIME_STAMP),
        write_queue: params.send_buffer.map(|segments| params.bytes_of(segments)),
        no_delay: given.contains(&"nagle") && !params.nagle,
        ..TcpOptions::default()
    })
}

fn refuse(spec: &FlowGroupSpec, key: &str, why: &str) -> Failure {
    Failure::Usage(format!("flow {:?}: key {key:?}: {why}", spec.name))
}
