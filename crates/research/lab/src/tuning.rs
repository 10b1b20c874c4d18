//! The scenario's parameters of TCP as settings of Linux: parameters of a namespace, attributes of a route, options of a
//! socket.
//!
//! Linux's TCP is not the simulator's. These parameters can be set:
//!
//! | scenario | Linux |
//! | --- | --- |
//! | congestion control | `TCP_CONGESTION`: `newreno` is reno, others have the same name |
//! | congestion control `dctcp` | also route attribute `congctl` at the sink, which then echoes each mark (RFC 8257 section 3.2) |
//! | mss | `TCP_MAXSEG`, and no timestamps (`tcp_timestamps = 0`), so that a segment has exactly this payload |
//! | initial window | route attribute `initcwnd` |
//! | largest window | route attribute `window` at the sink, which limits the advertised window |
//! | smallest retransmission timeout | route attribute `rto_min` |
//! | no delayed acknowledgement | route attribute `quickack` at the sink; otherwise Linux's rule, 40 ms and more |
//! | ECN | route attribute `features ecn`; listening sockets agree (`tcp_ecn = 2`) |
//! | SACK, idle restart | `tcp_sack`, `tcp_slow_start_after_idle`; one value for all flows |
//! | Nagle | `TCP_NODELAY` |
//!
//! `rack` is as in [`Stack`]: Linux has RACK-TLP with SACK unless it is turned off.
//!
//! Other parameters cannot be set: limited transmit is always on, timeouts before the first sample are 1 s, the first
//! slow-start threshold has no bound. [`Stack::Classic`] also turns off features newer than RFC 6675.

use crate::LabError;
use cutline_sim::FlowSpec;
use cutline_transport::endpoint::TransportParams;
use cutline_transport::tcp;
use cutline_units::Duration;
use std::fmt::Write as _;

/// A variant of Linux's TCP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stack {
    /// The defaults of the kernel.
    #[default]
    Stock,
    /// Without RACK and tail loss probes (RFC 8985), F-RTO (RFC 5682) and duplicate SACK (RFC 2883). Loss is detected by
    /// three duplicate acknowledgements.
    Classic,
}

impl Stack {
    /// The label that distinguishes results from those of a simulation.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Stock => "lab",
            Self::Classic => "lab classic",
        }
    }
}

/// The parameters of the namespaces of both hosts, and their values.
pub fn parameters(flows: &[FlowSpec], stack: Stack) -> Result<Vec<(&'static str, String)>, LabError> {
    let mut all: Vec<(&'static str, String)> = [
        ("net.ipv4.tcp_timestamps", "0"),
        ("net.ipv4.tcp_ecn", "2"),
        // A flow does not use metrics that earlier flows have measured on the path.
        ("net.ipv4.tcp_no_metrics_save", "1"),
        ("net.ipv4.tcp_rmem", "4096 262144 33554432"),
        ("net.ipv4.tcp_wmem", "4096 262144 33554432"),
        ("net.ipv6.conf.all.disable_ipv6", "1"),
        ("net.ipv6.conf.default.disable_ipv6", "1"),
        ("net.ipv4.conf.all.rp_filter", "0"),
        ("net.ipv4.conf.default.rp_filter", "0"),
    ]
    .map(|(name, value)| (name, value.to_owned()))
    .into();
    let number = |flag: bool| u8::from(flag).to_string();
    if let Some(sack) = shared(flows, "sack", |params| params.sack)? {
        all.push(("net.ipv4.tcp_sack", number(sack)));
    }
    if let Some(restart) = shared(flows, "idle-restart", |params| params.idle_restart)? {
        all.push(("net.ipv4.tcp_slow_start_after_idle", number(restart)));
    }
    if stack == Stack::Classic {
        let names = [
            "net.ipv4.tcp_recovery",
            "net.ipv4.tcp_early_retrans",
            "net.ipv4.tcp_frto",
            "net.ipv4.tcp_dsack",
        ];
        all.extend(names.map(|name| (name, "0".to_owned())));
    }
    Ok(all)
}

/// A parameter that all TCP flows must share; `None` if there are no TCP flows.
fn shared(
    flows: &[FlowSpec],
    key: &'static str,
    parameter: impl Fn(&tcp::Params) -> bool,
) -> Result<Option<bool>, LabError> {
    let mut values = flows.iter().filter_map(|flow| Some((flow, parameter(tcp_params(flow)?))));
    let Some((first, value)) = values.next() else { return Ok(None) };
    match values.find(|&(_, other)| other != value) {
        Some((other, _)) => {
            Err(LabError::Conflict { key, one: first.name.clone(), other: other.name.clone() })
        }
        None => Ok(Some(value)),
    }
}

fn tcp_params(flow: &FlowSpec) -> Option<&tcp::Params> {
    if let TransportParams::Tcp(params) = &flow.transport { Some(params) } else { None }
}

/// The attributes of the route from a flow's source to its sink, as arguments of `ip route`.
pub fn forward_route(flow: &FlowSpec) -> String {
    let Some(params) = tcp_params(flow) else { return String::new() };
    let segments = params.initial_window_bytes().div_ceil(u64::from(params.mss)).max(1);
    let features = if params.ecn.is_capable() { " features ecn" } else { "" };
    format!(" initcwnd {segments} rto_min {}ms{features}", whole_ms(params.min_rto))
}

/// The attributes of the route from a flow's sink to its source.
pub fn reverse_route(flow: &FlowSpec) -> String {
    let Some(params) = tcp_params(flow) else { return String::new() };
    let mut attributes = String::new();
    if params.delayed_ack.is_none() {
        attributes += " quickack 1";
    }
    if let Some(window) = params.max_window.map(|segments| params.bytes_of(segments)) {
        write!(attributes, " window {window}").expect("writing to a string does not fail");
    }
    if params.algorithm == tcp::Algorithm::Dctcp {
        attributes += " congctl dctcp";
    }
    attributes
}

fn whole_ms(time: Duration) -> u64 {
    (time.as_nanos() / 1_000_000).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutline_scenario::ScenarioFile;

    /// A flow for each pair of keys: those of its transport, and its own.
    fn flows(keys: &[[&str; 2]]) -> Vec<FlowSpec> {
        let mut text =
            "name = \"tuning\"\nduration = \"10 s\"\n[dumbbell]\nrate = \"1 Mbit/s\"\ndelay = \"10 ms\"\n\
                        access-rate = \"10 Mbit/s\"\naccess-delay = \"1 ms\"\n\
                        queue = { aqm = \"drop-tail\", limit = \"10 packets\" }\n"
                .to_owned();
        for (number, [transport, own]) in keys.iter().enumerate() {
            write!(
                text,
                "[[flow]]\nname = \"f{number}\"\ntransport = {{ protocol = \"tcp\", {transport} }}\n\
                 app = {{ kind = \"bulk\" }}\n{own}\n"
            )
            .expect("writing to a string does not fail");
        }
        let scenario = ScenarioFile::parse(&text, "tuning.toml").unwrap().scenario().unwrap();
        scenario.network().unwrap().flows().to_vec()
    }

    #[test]
    fn routes_have_the_parameters_of_connections() {
        let flows = flows(&[
            ["initial-window = '2 packets', min-rto = '300 ms', max-window = '20 packets'", ""],
            ["initial-window = '3 packets', min-rto = '1 s'", "ecn = true"],
            ["congestion-control = 'dctcp'", "ecn = true"],
        ]);
        assert_eq!(forward_route(&flows[0]), " initcwnd 2 rto_min 300ms");
        assert_eq!(forward_route(&flows[1]), " initcwnd 3 rto_min 1000ms features ecn");
        assert!(reverse_route(&flows[0]).ends_with(" window 20000"));
        assert!(reverse_route(&flows[2]).ends_with(" congctl dctcp"));
        let all = parameters(&flows, Stack::Stock).unwrap();
        assert!(!all.iter().any(|(name, _)| name.ends_with("tcp_recovery")));
        assert!(parameters(&flows, Stack::Classic).unwrap().contains(&("net.ipv4.tcp_recovery", "0".into())));
    }

    #[test]
    fn flows_that_disagree_on_a_parameter_of_the_namespace_are_refused() {
        let flows = flows(&[["sack = true", ""], ["sack = false", ""]]);
        let error = parameters(&flows, Stack::Stock).unwrap_err().to_string();
        assert_eq!(
            error,
            "sack applies to the whole host in the laboratory: flow `f0` and flow `f1` must have the same value"
        );
    }
}
