//! The flows that a sender requests from the receiver, as messages. They name a transport and an application with their parameters,
//! and no address.
//!
//! Fractions are sent as the bits of the floating-point number, because a decimal fraction could be rounded.

use crate::plan::{DIRECT, FlowPlan, FlowTransport, PlanDirection, TcpOptions};
use cutline_params::{ParameterError, ParameterValue};
use cutline_transport::app::{Params, Recorded, TraceParams};
use cutline_transport::endpoint::{Defaults, TransportParams};
use cutline_units::{self as units, Dscp, Duration, Ecn, Rate};
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// Flows with the same parameters that the receiver sends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReverseFlows {
    /// The flows.
    pub members: Vec<Member>,
    /// The parameters of each.
    pub parameters: TestParameters,
}

/// The parameters of flows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TestParameters {
    /// Their transport.
    pub transport: Carrier,
    /// The name of their application.
    pub app: String,
    /// The application's parameters.
    pub app_settings: Vec<(String, Setting)>,
    /// The recorded messages if the application is a trace: times in ns, and sizes in bytes.
    pub messages: Vec<(u64, u64)>,
    /// The time from the end of a trace to its next round, ns; `None` if it is not repeated.
    pub repeat_ns: Option<u64>,
    /// The code point of the packets.
    pub dscp: u8,
    /// True if the packets are ECN-capable.
    pub ecn: bool,
    /// The end of writing, from the run's zero, ns; `None` for the end of the run.
    pub stop_ns: Option<u64>,
}

/// A flow of a group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// The flow's number.
    pub flow: u32,
    /// The flow's name. Its random numbers depend on it.
    pub name: String,
    /// The start, from the run's zero, ns.
    pub start_ns: u64,
}

/// The transport of flows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Carrier {
    /// The kernel's TCP.
    Tcp(TcpOptions),
    /// A datagram transport.
    Datagrams {
        /// The transport's name.
        name: String,
        /// Its parameters.
        settings: Vec<(String, Setting)>,
        /// The ECN field, 0..=3.
        ecn: u8,
    },
}

/// The value of a parameter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Setting {
    /// The bits of a number.
    Number(u64),
    /// A whole number.
    Count(u64),
    /// A time, ns.
    Time(u64),
    /// The bits of a frequency in Hz.
    Frequency(u64),
    /// Yes or no.
    Flag(bool),
    /// A name.
    Choice(String),
    /// Times, ns.
    Times(Vec<u64>),
    /// Whole numbers.
    Counts(Vec<u64>),
    /// The kind of a distribution and the bits of its parameters.
    Distribution(Law, Vec<u64>),
    /// The parameter is switched off.
    Off,
}

/// A kind of distribution. Its parameters are in the order of the fields of [`units::Distribution`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Law {
    /// Always the same value.
    Fixed,
    /// Exponential.
    Exponential,
    /// Lognormal.
    Lognormal,
    /// Pareto, with or without a maximum.
    Pareto,
}

impl ReverseFlows {
    /// Returns the groups of the reverse flows among `plans`. Neighbours with the same parameters are one group.
    pub fn of(plans: &[FlowPlan]) -> Vec<Self> {
        let mut groups: Vec<Self> = Vec::new();
        for plan in plans.iter().filter(|plan| plan.direction == PlanDirection::Reverse) {
            let parameters = TestParameters::of(plan);
            let member = Member { flow: plan.id, name: plan.name.clone(), start_ns: plan.start.as_nanos() };
            match groups.last_mut().filter(|last| last.parameters == parameters) {
                Some(last) => last.members.push(member),
                None => groups.push(Self { members: vec![member], parameters }),
            }
        }
        groups
    }

    /// Returns the plans of the flows. They go to `to`, which a caller must replace by the addresses that the peer has proven.
    ///
    /// # Errors
    /// Returns a sentence about the first value that is not allowed.
    pub fn plans(&self, to: SocketAddr) -> Result<Vec<FlowPlan>, String> {
        let TestParameters { dscp, ecn, stop_ns, .. } = self.parameters;
        let transport = self.parameters.transport().map_err(|error| sentence(&error))?;
        let app = self.parameters.application().map_err(|error| sentence(&error))?;
        let dscp = Dscp::new(dscp).ok_or_else(|| format!("dscp = {dscp}: must be 0..63"))?;
        let plan = |member: &Member| FlowPlan {
            id: member.flow,
            name: member.name.clone(),
            direction: PlanDirection::Reverse,
            transport: transport.clone(),
            app: app.clone(),
            from: None,
            to,
            dscp,
            ecn,
            start: Duration::from_nanos(member.start_ns),
            stop: stop_ns.map(Duration::from_nanos),
        };
        let plans: Vec<_> = self.members.iter().map(plan).collect();
        for plan in &plans {
            plan.validate().map_err(|error| error.to_string())?;
        }
        Ok(plans)
    }
}

fn sentence(error: &ParameterError) -> String {
    format!("{} = {}: {}", error.parameter, error.value, error.allowed)
}

impl TestParameters {
    fn of(plan: &FlowPlan) -> Self {
        let (messages, repeat) = match &plan.app {
            Params::Trace(trace) => (&trace.messages[..], trace.repeat),
            _ => (&[][..], None),
        };
        let named = |values: Vec<(&str, ParameterValue)>| {
            values.into_iter().map(|(name, value)| (name.to_owned(), Setting::from(value))).collect()
        };
        Self {
            transport: match &plan.transport {
                FlowTransport::Tcp(options) => Carrier::Tcp(options.clone()),
                FlowTransport::Datagrams(params) => Carrier::Datagrams {
                    name: params.name().to_owned(),
                    settings: named(params.values()),
                    ecn: params.ecn() as u8,
                },
                // It is refused: it has the transport's name, which no receiver knows.
                FlowTransport::Direct { .. } => {
                    Carrier::Datagrams { name: DIRECT.to_owned(), settings: Vec::new(), ecn: 0 }
                }
            },
            app: plan.app.name().to_owned(),
            app_settings: named(plan.app.values()),
            messages: messages.iter().map(|message| (message.at.as_nanos(), message.bytes)).collect(),
            repeat_ns: repeat.map(Duration::as_nanos),
            dscp: plan.dscp.get(),
            ecn: plan.ecn,
            stop_ns: plan.stop.map(Duration::as_nanos),
        }
    }

    fn transport(&self) -> Result<FlowTransport, ParameterError> {
        let (name, settings, ecn) = match &self.transport {
            Carrier::Tcp(options) => return Ok(FlowTransport::Tcp(options.clone())),
            Carrier::Datagrams { name, settings, ecn } => (name, settings, ecn),
        };
        let params = TransportParams::from_values(name, Defaults::Rfc, values(settings))?;
        Ok(FlowTransport::Datagrams(params.with_ecn(Ecn::from_bits(*ecn))))
    }

    fn application(&self) -> Result<Params, ParameterError> {
        if self.app != "trace" {
            return Params::from_values(&self.app, values(&self.app_settings));
        }
        let message = |&(at_ns, bytes): &(u64, u64)| Recorded { at: Duration::from_nanos(at_ns), bytes };
        let messages = self.messages.iter().map(message).collect();
        Ok(Params::Trace(TraceParams { messages, repeat: self.repeat_ns.map(Duration::from_nanos) }))
    }
}

fn values(settings: &[(String, Setting)]) -> Vec<(&str, ParameterValue)> {
    settings.iter().map(|(name, setting)| (name.as_str(), ParameterValue::from(setting))).collect()
}

/// Returns the payload rate that the datagrams of a flow may have, if it does not adapt to the path: the rate of its
/// application, which for one with pauses is the rate while it sends. Returns zero for other flows.
pub(super) fn fixed_rate(plan: &FlowPlan) -> Rate {
    match (&plan.transport, &plan.app) {
        (FlowTransport::Datagrams(params), _) if params.adapts() => Rate::ZERO,
        (FlowTransport::Tcp(_), _) => Rate::ZERO,
        (_, Params::Trace(trace)) => {
            let bytes: u64 = trace.messages.iter().map(|message| message.bytes).fold(0, u64::saturating_add);
            let last = trace.messages.last().map_or(Duration::ZERO, |message| message.at);
            let round = last.as_nanos().saturating_add(trace.repeat.unwrap_or_default().as_nanos());
            let time = Duration::from_nanos(round).max(Duration::from_secs(1));
            Rate::from_bps((bytes as f64 * 8.0 / time.as_secs_f64()) as u64)
        }
        (_, app) => {
            let rate = app.values().into_iter().find(|(name, _)| *name == "rate").map(|(_, value)| value);
            match rate {
                Some(ParameterValue::Number(bps)) => Rate::from_bps(bps as u64),
                Some(ParameterValue::Count(bps)) => Rate::from_bps(bps),
                _ => Rate::ZERO,
            }
        }
    }
}

impl From<ParameterValue> for Setting {
    fn from(value: ParameterValue) -> Self {
        match value {
            ParameterValue::Number(x) => Self::Number(x.to_bits()),
            ParameterValue::Count(n) => Self::Count(n),
            ParameterValue::Duration(time) => Self::Time(time.as_nanos()),
            ParameterValue::Frequency(hz) => Self::Frequency(hz.to_bits()),
            ParameterValue::Flag(flag) => Self::Flag(flag),
            ParameterValue::Choice(name) => Self::Choice(name.into_owned()),
            ParameterValue::Durations(times) => {
                Self::Times(times.iter().map(|time| time.as_nanos()).collect())
            }
            ParameterValue::Counts(counts) => Self::Counts(counts.into_owned()),
            ParameterValue::Distribution(distribution) => {
                let (law, numbers) = match distribution {
                    units::Distribution::Fixed(x) => (Law::Fixed, vec![x]),
                    units::Distribution::Exponential { mean } => (Law::Exponential, vec![mean]),
                    units::Distribution::Lognormal { median, sigma } => (Law::Lognormal, vec![median, sigma]),
                    units::Distribution::Pareto { minimum, shape, maximum } => {
                        (Law::Pareto, [minimum, shape].into_iter().chain(maximum).collect())
                    }
                };
                Self::Distribution(law, numbers.into_iter().map(f64::to_bits).collect())
            }
            ParameterValue::Off => Self::Off,
        }
    }
}

impl From<&Setting> for ParameterValue {
    fn from(setting: &Setting) -> Self {
        match setting {
            Setting::Number(bits) => Self::Number(f64::from_bits(*bits)),
            Setting::Count(n) => Self::Count(*n),
            Setting::Time(ns) => Self::Duration(Duration::from_nanos(*ns)),
            Setting::Frequency(bits) => Self::Frequency(f64::from_bits(*bits)),
            Setting::Flag(flag) => Self::Flag(*flag),
            Setting::Choice(name) => Self::Choice(name.clone().into()),
            Setting::Times(times) => {
                Self::Durations(times.iter().map(|&ns| Duration::from_nanos(ns)).collect())
            }
            Setting::Counts(counts) => Self::Counts(counts.clone().into()),
            Setting::Distribution(law, bits) => Self::Distribution(distribution(*law, bits)),
            Setting::Off => Self::Off,
        }
    }
}

/// Returns the distribution. A missing parameter is not a number, which no parameter allows.
fn distribution(law: Law, bits: &[u64]) -> units::Distribution {
    let given = |i: usize| bits.get(i).map(|&bits| f64::from_bits(bits));
    let number = |i: usize| given(i).unwrap_or(f64::NAN);
    match law {
        Law::Fixed => units::Distribution::Fixed(number(0)),
        Law::Exponential => units::Distribution::Exponential { mean: number(0) },
        Law::Lognormal => units::Distribution::Lognormal { median: number(0), sigma: number(1) },
        Law::Pareto => {
            units::Distribution::Pareto { minimum: number(0), shape: number(1), maximum: given(2) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutline_transport::app::{CbrParams, FilesParams, OnOffParams, PoissonParams, TalkSpurtParams};
    use cutline_transport::tfrc;
    use cutline_units::{Bytes, Distribution};
    use std::sync::Arc;

    fn plan(id: u32, transport: FlowTransport, app: Params) -> FlowPlan {
        FlowPlan {
            id,
            name: format!("f.{id}"),
            direction: PlanDirection::Reverse,
            transport,
            app,
            from: None,
            to: "127.0.0.1:9".parse().unwrap(),
            dscp: "EF".parse().unwrap(),
            ecn: true,
            start: Duration::from_millis(3),
            stop: Some(Duration::from_secs(9)),
        }
    }

    fn udp() -> FlowTransport {
        FlowTransport::Datagrams(TransportParams::Udp(Arc::default()))
    }

    fn cbr(kbps: u64) -> Params {
        Params::Cbr(CbrParams::new(Rate::from_kbps(kbps), Bytes::new(160)))
    }

    fn every_kind() -> Vec<FlowPlan> {
        let pareto = Distribution::Pareto { minimum: 4e3, shape: 1.2, maximum: Some(1e6) };
        let exponential = Distribution::Exponential { mean: 0.1 };
        let options = TcpOptions {
            congestion_control: Some("reno".to_owned()),
            max_pacing_rate: Some(Rate::from_mbps(7)),
            ..TcpOptions::default()
        };
        let on_off = OnOffParams {
            rate: Rate::from_kbps(333),
            size: Bytes::new(100),
            on: exponential,
            off: Distribution::Lognormal { median: 0.3, sigma: 0.7 },
        };
        let trace = TraceParams {
            messages: vec![Recorded { at: Duration::from_millis(1), bytes: 99 }].into(),
            repeat: Some(Duration::from_millis(20)),
        };
        let tfrc = Arc::new(tfrc::Params { segment_size: 700, ..tfrc::Params::default() });
        let tfrc = TransportParams::Tfrc(tfrc).with_ecn(Ecn::Ect0);
        let poisson = PoissonParams { rate: Rate::from_kbps(10), size: Distribution::Fixed(100.0) };
        vec![
            plan(
                0,
                FlowTransport::Tcp(options),
                Params::Files(FilesParams { size: pareto, think_time: exponential }),
            ),
            plan(1, udp(), Params::OnOff(on_off)),
            plan(2, udp(), Params::TalkSpurt(TalkSpurtParams::default())),
            plan(3, udp(), Params::Trace(trace)),
            plan(4, FlowTransport::Datagrams(tfrc), Params::BULK),
            plan(5, udp(), Params::Poisson(poisson)),
        ]
    }

    #[test]
    fn plans_are_read_back_unchanged() {
        let plans = every_kind();
        let sent = serde_json::to_string(&ReverseFlows::of(&plans)).unwrap();
        let read: Vec<ReverseFlows> = serde_json::from_str(&sent).unwrap();
        let again: Vec<_> = read.iter().flat_map(|group| group.plans(plans[0].to).unwrap()).collect();
        assert_eq!(format!("{again:?}"), format!("{plans:?}"));
    }

    #[test]
    fn flows_with_the_same_parameters_are_one_group() {
        let forward = FlowPlan { direction: PlanDirection::Forward, ..plan(7, udp(), cbr(8)) };
        let plans = [plan(0, udp(), cbr(8)), forward, plan(1, udp(), cbr(8)), plan(2, udp(), cbr(9))];
        let groups = ReverseFlows::of(&plans);
        let members: Vec<Vec<u32>> =
            groups.iter().map(|group| group.members.iter().map(|member| member.flow).collect()).collect();
        assert_eq!(members, [vec![0, 1], vec![2]]);
    }

    #[test]
    fn invalid_parameters_are_refused() {
        let good = TestParameters::of(&plan(0, udp(), cbr(8)));
        let refused = |parameters: TestParameters, what: &str| {
            let members = vec![Member { flow: 0, name: "f".to_owned(), start_ns: 0 }];
            let group = ReverseFlows { members, parameters };
            let why = group.plans("127.0.0.1:9".parse().unwrap()).unwrap_err();
            assert!(why.contains(what), "{why}");
        };
        let app = |name: &str, app_settings: Vec<(String, Setting)>| TestParameters {
            app: name.to_owned(),
            app_settings,
            ..good.clone()
        };
        refused(TestParameters { dscp: 64, ..good.clone() }, "dscp = 64: must be 0..63");
        refused(app("bulk", Vec::new()), "UDP does not adapt");
        refused(app("nosuch", Vec::new()), "nosuch");
        refused(
            app(
                "poisson",
                vec![
                    ("rate".to_owned(), Setting::Count(8000)),
                    ("size".to_owned(), Setting::Distribution(Law::Pareto, Vec::new())),
                ],
            ),
            "size",
        );
        refused(app("trace", Vec::new()), "messages");
        let transport = Carrier::Datagrams { name: "tcp".to_owned(), settings: Vec::new(), ecn: 0 };
        refused(TestParameters { transport, ..good }, "transport");
    }

    #[test]
    fn only_datagrams_without_feedback_have_a_fixed_rate() {
        let rates: Vec<_> = every_kind().iter().map(fixed_rate).map(Rate::as_bps).collect();
        // The trace has 99 B; with its repetition it is counted as at least a second.
        assert_eq!((rates[0], rates[1], rates[3], rates[4], rates[5]), (0, 333_000, 792, 0, 10_000));
        assert!(rates[2] > 0);
    }
}
