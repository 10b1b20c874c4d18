//! Groups of flows for the traffic generator without a network: those of a file, and those with the same parameters.

use crate::traffic::options;
use cutline_scenario::FlowsFile;
use cutline_scenario::spec::{FlowDirection, FlowGroupSpec, StartSpec, member_names};
use cutline_sim::draw_start;
use cutline_traffic::{FlowGroups, FlowPlan, FlowTransport, PlanDirection, TcpOptions};
use cutline_transport::endpoint::TransportParams;
use cutline_transport::tcp;
use cutline_units::{DscpPool2, Duration, HintCodec as _, Instant, Streams};
use std::net::SocketAddr;

/// The size of the time stamp option with its padding, which the kernel subtracts from `TCP_MAXSEG` (RFC 7323 section 3.2).
const TIME_STAMP: u32 = 12;

/// The error for a key of a group that the traffic generator has no means for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("flow {flow:?}: key {key:?}: {why}")]
pub struct UnsupportedKey {
    /// The group's name.
    pub flow: String,
    /// The key in the file.
    pub key: String,
    /// The reason, and the remedy.
    pub why: &'static str,
}

/// Returns the groups of a file. A flow starts as in the simulator with these random streams.
///
/// # Errors
/// Returns the first key that the generator does not support.
pub fn from_file(
    file: &FlowsFile,
    streams: Streams,
    from: Option<SocketAddr>,
    to: SocketAddr,
) -> Result<FlowGroups, UnsupportedKey> {
    let mut flows = FlowGroups::default();
    for spec in &file.flows {
        let like = FlowPlan {
            id: 0,
            name: String::new(),
            direction: PlanDirection::Forward,
            transport: transport(spec)?,
            app: spec.app.clone(),
            from,
            to,
            dscp: DscpPool2.encode(spec.hint).unwrap_or_default(),
            ecn: spec.ecn.is_capable(),
            start: Duration::ZERO,
            stop: spec.stop,
        };
        let start = |name: &str| start(spec.start, streams, name);
        add(&mut flows, &spec.name, spec.count, spec.direction, &like, start);
    }
    Ok(flows)
}

/// Adds flows with the parameters of `like`: `count` in each direction, and each direction is a group of its own.
///
/// Their numbers follow those of the flows that `flows` has. `start` returns the start of a flow by its name. The group of the second
/// direction is `NAME.reverse`.
pub fn add(
    flows: &mut FlowGroups,
    name: &str,
    count: u64,
    direction: FlowDirection,
    like: &FlowPlan,
    start: impl Fn(&str) -> Duration,
) {
    for (direction, group) in directions(direction, name) {
        let first = flows.plans.len() as u32;
        let plan =
            |(id, name): (u32, String)| FlowPlan { id, direction, start: start(&name), name, ..like.clone() };
        flows.add(group.clone(), (first..).zip(member_names(&group, count)).map(plan));
    }
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

fn start(spec: StartSpec, streams: Streams, name: &str) -> Duration {
    let (first, last) = spec.bounds();
    let at = |time| Instant::ZERO + time;
    draw_start(name, (at(first), at(last)), streams).saturating_since(Instant::ZERO)
}

fn transport(spec: &FlowGroupSpec) -> Result<FlowTransport, UnsupportedKey> {
    if spec.adaptive.is_some() {
        return Err(refuse(spec, "hint", "\"adaptive\" is only available in simulations: set a level"));
    }
    Ok(match spec.transport() {
        TransportParams::Tcp(params) => FlowTransport::Tcp(tcp_options(spec, &params)?),
        other if other.datagram_format().is_none() => {
            return Err(refuse(
                spec,
                "transport",
                "it is only available in simulations: use another protocol",
            ));
        }
        datagrams => FlowTransport::Datagrams(datagrams),
    })
}

/// Returns the options of the kernel's TCP for a group's TCP. Keys that the kernel has no option for are errors.
///
/// Segments have the time stamp option, and Nagle's algorithm is as by default in the kernel, unless the file says otherwise.
fn tcp_options(spec: &FlowGroupSpec, params: &tcp::Params) -> Result<TcpOptions, UnsupportedKey> {
    let known = ["mss", "send-buffer", "nagle"];
    let given = &spec.transport.given;
    if let Some(key) = given.iter().find(|key| !known.contains(key)) {
        let why = "it cannot be set for the kernel's TCP: remove it";
        return Err(refuse(spec, &format!("transport.{key}"), why));
    }
    let exact = options(params, &spec.transport);
    Ok(TcpOptions {
        max_segment: exact.max_segment.map(|bytes| bytes + TIME_STAMP),
        no_delay: exact.no_delay && given.contains(&"nagle"),
        ..exact
    })
}

fn refuse(spec: &FlowGroupSpec, key: &str, why: &'static str) -> UnsupportedKey {
    UnsupportedKey { flow: spec.name.clone(), key: key.to_owned(), why }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(flow: &str) -> Result<FlowGroups, UnsupportedKey> {
        let text = format!("[[flow]]\nname = 'f'\n{flow}");
        let file = FlowsFile::parse(&text, "f.toml").unwrap_or_else(|errors| panic!("{}", errors.render()));
        from_file(&file, Streams::new(7), None, "192.0.2.1:9".parse().unwrap())
    }

    const UDP: &str =
        "transport = { protocol = 'udp' }\napp = { kind = 'cbr', rate = '64 kbit/s', size = '160 B' }\n";

    #[test]
    fn each_direction_is_a_group_and_numbers_go_on() {
        let flows = of(&format!("count = 2\ndirection = 'bidirectional'\n{UDP}")).unwrap();
        let plans: Vec<_> =
            flows.plans.iter().map(|plan| (plan.id, plan.name.as_str(), plan.direction)).collect();
        let (forward, reverse) = (PlanDirection::Forward, PlanDirection::Reverse);
        let expected = [
            (0, "f.1", forward),
            (1, "f.2", forward),
            (2, "f.reverse.1", reverse),
            (3, "f.reverse.2", reverse),
        ];
        assert_eq!(plans, expected);
        let groups: Vec<_> =
            flows.groups.iter().map(|group| (group.name.as_str(), group.members.clone())).collect();
        assert_eq!(groups, [("f", 0..2), ("f.reverse", 2..4)]);
    }

    #[test]
    fn starts_are_drawn_for_each_flow_as_in_the_simulator() {
        let flows = of(&format!("count = 3\nstart = {{ from = '1 s', to = '5 s' }}\n{UDP}")).unwrap();
        let starts: Vec<Duration> = flows.plans.iter().map(|plan| plan.start).collect();
        let drawn = |name| Streams::new(7).stream(name, "start").uniform();
        let expected = ["f.1", "f.2", "f.3"]
            .map(|name| Duration::from_secs(1) + Duration::from_secs(4).mul_f64(drawn(name)));
        assert_eq!(starts, expected);
    }

    #[test]
    fn segments_have_room_for_time_stamps_and_nagle_is_off_only_by_the_file() {
        let options = |keys: &str| {
            let flows = of(&format!(
                "transport = {{ protocol = 'tcp', mss = '1000 B'{keys} }}\napp = {{ kind = 'bulk' }}\n"
            ))
            .unwrap();
            let FlowTransport::Tcp(options) = &flows.plans[0].transport else { panic!("TCP") };
            (options.max_segment, options.no_delay)
        };
        assert_eq!(options(""), (Some(1012), false));
        assert_eq!(options(", nagle = false"), (Some(1012), true));
        assert_eq!(options(", nagle = true"), (Some(1012), false));
    }

    #[test]
    fn a_transport_of_simulations_is_refused() {
        let error = of("transport = { protocol = 'abr' }\napp = { kind = 'bulk' }\n").unwrap_err();
        assert_eq!(
            error.to_string(),
            "flow \"f\": key \"transport\": it is only available in simulations: use another protocol"
        );
    }

    #[test]
    fn a_key_that_the_kernel_has_no_option_for_is_refused() {
        let error =
            of("transport = { protocol = 'tcp', initial-window = '4 packets' }\napp = { kind = 'bulk' }\n")
                .unwrap_err();
        assert_eq!(
            error.to_string(),
            "flow \"f\": key \"transport.initial-window\": it cannot be set for the kernel's TCP: remove it"
        );
    }
}
