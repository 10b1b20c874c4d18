//! Groups of flows as plans: from options, or from a file.

use super::options::FlowArgs;
use crate::exit::Failure;
use cutline_scenario::FlowsFile;
use cutline_scenario::spec::{Bound, CongestionControl, FlowSpec, StartSpec, TcpSpec, TransportSpec};
use cutline_sim::TransportSpec as Lowered;
use cutline_traffic::{FlowPlan, TcpOptions, Transport};
use cutline_units::{DscpPool2, Duration, HintCodec as _, Streams};
use std::net::SocketAddr;
use std::ops::Range;

/// What is sent: plans, and which of them belong together.
#[derive(Debug, Default)]
pub struct Flows {
    pub plans: Vec<FlowPlan>,
    pub groups: Vec<Group>,
}

/// Like flows.
#[derive(Debug)]
pub struct Group {
    pub name: String,
    /// What carries them: `tcp`, `udp` or `tfrc`.
    pub transport: &'static str,
    pub members: Range<usize>,
}

/// A time stamp's share of a segment, which the kernel takes off `TCP_MAXSEG` (RFC 7323 section 3.2).
const TIME_STAMP: u32 = 12;

impl Flows {
    /// One group.
    pub fn of_options(args: &FlowArgs, from: Option<SocketAddr>, to: SocketAddr) -> Result<Self, Failure> {
        let group = args.name();
        let (transport, app, dscp) = (args.transport()?, args.application()?, args.code_point()?);
        let name = |i: u32| if args.flows == 1 { group.clone() } else { format!("{group}.{}", i + 1) };
        let plan = |id: u32| FlowPlan {
            id,
            name: name(id),
            transport: transport.clone(),
            app: app.clone(),
            from,
            to,
            dscp,
            ecn: args.ecn,
            start: Duration::ZERO,
            stop: None,
        };
        let mut flows = Self::default();
        flows.add(group.clone(), (0..args.flows).map(plan));
        Ok(flows)
    }

    /// The groups of a file.
    pub fn of_file(
        file: &FlowsFile,
        streams: Streams,
        from: Option<SocketAddr>,
        to: SocketAddr,
    ) -> Result<Self, Failure> {
        let mut flows = Self::default();
        for spec in &file.flows {
            let transport = transport(spec)?;
            let first = flows.plans.len() as u32;
            let dscp = DscpPool2.encode(spec.hint).unwrap_or_default();
            let plan = |(id, name): (u32, String)| FlowPlan {
                id,
                transport: transport.clone(),
                app: spec.application(),
                from,
                to,
                dscp,
                ecn: spec.ecn,
                start: start(spec.start, streams, &name),
                stop: spec.stop,
                name,
            };
            flows.add(spec.name.clone(), (first..).zip(spec.member_names()).map(plan));
        }
        Ok(flows)
    }

    fn add(&mut self, name: String, plans: impl Iterator<Item = FlowPlan>) {
        let first = self.plans.len();
        self.plans.extend(plans);
        let transport = match self.plans[first].transport {
            Transport::Tcp(_) => "tcp",
            Transport::Udp(_) => "udp",
            Transport::Tfrc(_) => "tfrc",
        };
        self.groups.push(Group { name, transport, members: first..self.plans.len() });
    }
}

/// When a flow starts: drawn as the simulator draws it.
fn start(spec: StartSpec, streams: Streams, name: &str) -> Duration {
    match spec {
        StartSpec::At(at) => at,
        StartSpec::Uniform { from, to } => {
            from + to.saturating_sub(from).mul_f64(streams.stream(name, "start").uniform())
        }
    }
}

fn transport(spec: &FlowSpec) -> Result<Transport, Failure> {
    if spec.adaptive.is_some() {
        return Err(refuse(spec, "hint", "\"adaptive\" is for simulations: write a level"));
    }
    Ok(match (&spec.transport, spec.transport()) {
        (TransportSpec::Tcp(tcp), _) => Transport::Tcp(tcp_options(spec, tcp)?),
        (_, Lowered::Udp(params)) => Transport::Udp(params),
        (_, Lowered::Tfrc(params)) => Transport::Tfrc(params),
        (_, Lowered::Tcp(_)) => unreachable!("TCP stays TCP"),
    })
}

/// What of a simulated TCP the kernel's can be told.
fn tcp_options(spec: &FlowSpec, tcp: &TcpSpec) -> Result<TcpOptions, Failure> {
    let kernel_s = [
        ("header", tcp.header.is_some()),
        ("ack-size", tcp.ack_size.is_some()),
        ("sack", tcp.sack.is_some()),
        ("delayed-ack", tcp.delayed_ack.is_some()),
        ("limited-transmit", tcp.limited_transmit.is_some()),
        ("initial-window", tcp.initial_window.is_some()),
        ("initial-ssthresh", tcp.initial_ssthresh.is_some()),
        ("max-window", tcp.max_window.is_some()),
        ("idle-restart", tcp.idle_restart.is_some()),
        ("initial-rto", tcp.initial_rto.is_some()),
        ("min-rto", tcp.min_rto.is_some()),
        ("max-rto", tcp.max_rto.is_some()),
        ("clock-granularity", tcp.clock_granularity.is_some()),
    ];
    if let Some((key, _)) = kernel_s.iter().find(|(_, given)| *given) {
        return Err(refuse(spec, &format!("transport.{key}"), "real TCP is the kernel's: leave it out"));
    }
    let mss = tcp.mss.get() as u32;
    let write_queue = match tcp.send_buffer {
        None | Some(Bound::None) => None,
        Some(Bound::Packets(packets)) => Some(packets * u64::from(mss)),
    };
    let control = match tcp.congestion_control {
        CongestionControl::NewReno => "reno",
        CongestionControl::Cubic => "cubic",
        CongestionControl::Bbr => "bbr",
    };
    Ok(TcpOptions {
        congestion_control: Some(control.to_owned()),
        max_segment: Some(mss + TIME_STAMP),
        write_queue,
        no_delay: tcp.nagle == Some(false),
        ..TcpOptions::default()
    })
}

fn refuse(spec: &FlowSpec, key: &str, why: &str) -> Failure {
    Failure::Usage(format!("flow {:?}: key {key:?}: {why}", spec.name))
}
