//! A router's configuration, as text and as JSON.

use crate::spec::{DirectionSpec, ProcessSpec, RouterSpec};
use cutline_aqm::{Limit, QueueSpec};
use cutline_params::{ParameterValue as Setting, Parameters as _};
use cutline_ports::AnyPort;
use cutline_sys::interface;
use cutline_units::{Bytes, Dscp, Duration, HintTable};
use cutline_wire::ETHERNET;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Configuration of a router. Quantities are as people write them in its file, but for rates and times whose
/// names have a unit.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Configuration {
    /// The first interface.
    #[serde(rename = "in")]
    input: String,
    /// The second interface.
    #[serde(rename = "out")]
    output: String,
    /// From `in` to `out`.
    forward: DirectionConfiguration,
    /// From `out` to `in`.
    reverse: DirectionConfiguration,
    /// Configuration of rates that follow the link; null if both are constant.
    autorate: Option<AutorateConfiguration>,
    /// True if the router turns offloads off while it runs.
    fix_offloads: bool,
    /// Time before each departure in which the router polls the clock instead of sleeping, microseconds; null
    /// if it sleeps.
    spin_us: Option<f64>,
    /// The seed of the queues' random numbers; null if it is drawn at random.
    seed: Option<u64>,
    /// The local socket at which the router answers; null if there is none.
    socket: Option<PathBuf>,
    /// The address at which Prometheus scrapes the statistics; null if there is none.
    metrics: Option<SocketAddr>,
    /// The most memory that waiting frames take, both directions together, B.
    memory_bytes: u64,
    /// The user that the router becomes once it has its interfaces; null if it remains the user who started it.
    user: Option<String>,
    /// True if interfaces are bridged that the host uses itself.
    force_bridge: bool,
    /// The most reservations that clients of the socket may make in each direction; null if they may make none.
    reservations: Option<u64>,
}

/// Configuration of rates that follow the link.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
struct AutorateConfiguration {
    /// Reflectors: hosts that get echo requests.
    reflectors: Vec<String>,
    /// Excess over the usual time above which a reply counts as delayed, ms.
    delay_ms: f64,
}

/// The rates between which a direction follows the link.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
struct RateRange {
    /// The lowest rate, bit/s.
    least_bps: u64,
    /// The highest rate, bit/s.
    most_bps: u64,
}

/// Configuration of one direction.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
struct DirectionConfiguration {
    /// The rate of the link, bit/s; with `autorate` that at the start.
    rate_bps: u64,
    /// The rates between which it follows the link; null if the rate is constant.
    autorate: Option<RateRange>,
    /// The queue before the link.
    queue: QueueConfiguration,
    /// Overhead of the link for each frame, as written in the file.
    overhead: String,
    /// The leading bits of an IPv6 address that name a host.
    ipv6_host_prefix: u8,
    /// The hints of code points that differ from the standard ones, by code point.
    hints: BTreeMap<String, u16>,
    /// New code points on the way out, by code point; unchanged ones are not listed.
    remark: BTreeMap<String, String>,
}

/// A queue.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
struct QueueConfiguration {
    /// The name of the queue's AQM.
    aqm: &'static str,
    /// The AQM's parameters, but for those that are off, as people write them.
    parameters: BTreeMap<&'static str, String>,
    /// The AQM of each class of strict priority; null if that is drop-tail, and for other AQMs.
    below: Option<BelowConfiguration>,
    /// Limit of the backlog, such as `1000 packets` or `64 KB`.
    limit: String,
    /// True if packets that can be marked are marked instead of dropped early.
    ecn: bool,
    /// The parameters of TSQ on top of it; null without TSQ.
    tsq: Option<BTreeMap<&'static str, String>>,
}

/// The AQM of each class of strict priority.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
struct BelowConfiguration {
    /// The name of the AQM.
    aqm: &'static str,
    /// The AQM's parameters, but for those that are off, as people write them.
    parameters: BTreeMap<&'static str, String>,
}

/// Returns the complete configuration of a router for scripts.
pub fn configuration(spec: &RouterSpec) -> Configuration {
    let ProcessSpec {
        fix_offloads,
        spin,
        seed,
        socket,
        metrics,
        memory: _,
        user,
        force_bridge,
        reservations,
    } = &spec.process;
    Configuration {
        input: spec.input.clone(),
        output: spec.output.clone(),
        forward: direction(&spec.forward),
        reverse: direction(&spec.reverse),
        autorate: spec.autorate.as_ref().map(|autorate| AutorateConfiguration {
            reflectors: autorate.reflectors.iter().map(ToString::to_string).collect(),
            delay_ms: autorate.delay.as_millis_f64(),
        }),
        fix_offloads: *fix_offloads,
        spin_us: spin.map(|spin| spin.as_nanos() as f64 / 1e3),
        seed: *seed,
        socket: socket.clone(),
        metrics: *metrics,
        memory_bytes: 2 * spec.process.memory_each() as u64,
        user: user.clone(),
        force_bridge: *force_bridge,
        reservations: reservations.map(|most| most as u64),
    }
}

fn direction(spec: &DirectionSpec) -> DirectionConfiguration {
    let standard = HintTable::standard();
    let hint = |dscp: Dscp| {
        let hint = spec.hints.hint(dscp);
        (hint != standard.hint(dscp)).then(|| (dscp.to_string(), hint.level()))
    };
    let remarked = |dscp: Dscp| {
        let to = spec.remark.remark(dscp);
        (to != dscp).then(|| (dscp.to_string(), to.to_string()))
    };
    DirectionConfiguration {
        rate_bps: spec.queue.rate.as_bps(),
        autorate: spec
            .autorate
            .as_ref()
            .map(|range| RateRange { least_bps: range.start().as_bps(), most_bps: range.end().as_bps() }),
        queue: queue(&spec.queue),
        overhead: spec.overhead.to_string(),
        ipv6_host_prefix: spec.host_prefix,
        hints: Dscp::all().filter_map(hint).collect(),
        remark: Dscp::all().filter_map(remarked).collect(),
    }
}

fn queue(spec: &QueueSpec) -> QueueConfiguration {
    QueueConfiguration {
        aqm: spec.aqm.name(),
        parameters: settings(spec.aqm.values()),
        below: spec
            .aqm
            .below()
            .map(|below| BelowConfiguration { aqm: below.name(), parameters: settings(below.values()) }),
        limit: limit(spec.limit),
        ecn: spec.ecn,
        tsq: spec.tsq.map(|tsq| settings(tsq.values())),
    }
}

/// Returns the parameters that are set, as people write them.
fn settings(values: Vec<(&'static str, Setting)>) -> BTreeMap<&'static str, String> {
    let set = values.into_iter().filter(|(_, value)| *value != Setting::Off);
    set.map(|(name, value)| (name, value.to_string())).collect()
}

fn limit(limit: Limit) -> String {
    match limit {
        Limit::Packets(packets) => format!("{packets} packets"),
        Limit::Bytes(bytes) => Bytes::new(bytes).to_string(),
    }
}

/// Returns a summary of both directions in one line.
pub fn summary(spec: &RouterSpec) -> String {
    let RouterSpec { input, output, forward, reverse, .. } = spec;
    format!("{input} -> {output} {}, reverse {}", through(forward), through(reverse))
}

fn through(direction: &DirectionSpec) -> String {
    let (rate, queue) = (direction.queue.rate, in_words(&direction.queue));
    match &direction.autorate {
        Some(range) => format!("at {rate} ({} to {}) through {queue}", range.start(), range.end()),
        None => format!("at {rate} through {queue}"),
    }
}

/// Waits of sparse traffic that are longer than this are worth a warning.
const LONG_WAIT: Duration = Duration::from_millis(50);

/// A full frame of an interface with the usual MTU, bytes.
const FULL_FRAME: u64 = 1514;

/// Returns warnings of queues that are allowed and hardly meant: a queue that makes sparse traffic without a hint wait long
/// behind the rest, and one that is smaller than a frame.
pub fn warnings(spec: &RouterSpec) -> Vec<String> {
    // The largest frame that passes both interfaces.
    warnings_with(spec, full_frame(&spec.input).min(full_frame(&spec.output)))
}

/// As [`warnings`], with the length of the largest frame that passes both interfaces, bytes. It opens nothing.
pub fn warnings_with(spec: &RouterSpec, full_frame: u64) -> Vec<String> {
    let RouterSpec { input, output, forward, reverse, .. } = spec;
    let directions = [(input, output, forward), (output, input, reverse)];
    let warning = |(from, to, direction): (&String, &String, &DirectionSpec)| {
        let wait = direction.queue.standing_delay().filter(|wait| *wait > LONG_WAIT)?;
        Some(format!(
            "{from} -> {to}: while transfers fill the link, packets without a hint wait about {:.0} ms behind {}, those of calls and \
             games too; sieve serves them first",
            wait.as_millis_f64(),
            in_words(&direction.queue)
        ))
    };
    let small = |(from, to, direction): (&String, &String, &DirectionSpec)| {
        too_small(direction.queue.limit, full_frame).map(|what| format!("{from} -> {to}: {what}"))
    };
    let found = directions.into_iter().filter_map(warning);
    found.chain(directions.into_iter().filter_map(small)).collect()
}

/// The length of the largest frame of a port's interface, without a tag, bytes: that of Ethernet if there is no such interface yet.
fn full_frame(port: &str) -> u64 {
    interface::mtu(AnyPort::interface_of(port)).map_or(FULL_FRAME, |mtu| u64::from(mtu) + ETHERNET as u64)
}

/// Returns a warning about a limit that is smaller than a full frame of this length, bytes.
pub fn too_small(limit: Limit, full_frame: u64) -> Option<String> {
    match limit {
        Limit::Bytes(most) if most < full_frame => Some(format!(
            "the queue holds {most} B, and a full frame has {full_frame} B: it drops all of them"
        )),
        _ => None,
    }
}

/// Returns a queue's name, such as `TSQ over pi` or `strict-priority over pie`.
pub fn in_words(queue: &QueueSpec) -> String {
    let tsq = if queue.tsq.is_some() { "TSQ over " } else { "" };
    let below = queue.aqm.below().map_or_else(String::new, |below| format!(" over {}", below.name()));
    format!("{tsq}{}{below}", queue.aqm.name())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn strict_priority_names_the_queue_below() {
        let text = "in = 'a'\nout = 'b'\nforward = { rate = '9 Mbit/s', queue = { aqm = 'strict-priority', classes = 2, \
                    limit = '90 packets', below = { aqm = 'pie', target = '8 ms' } } }\n\
                    reverse = { rate = '9 Mbit/s', queue = { aqm = 'drop-tail', limit = '9 packets' } }\n";
        let spec = RouterSpec::parse(text, "r.toml").unwrap_or_else(|errors| panic!("{errors}"));
        let queue = &json!(configuration(&spec))["forward"]["queue"];
        assert_eq!(
            (&queue["aqm"], &queue["parameters"]["classes"]),
            (&json!("strict-priority"), &json!("2"))
        );
        assert_eq!(queue["below"]["aqm"], "pie");
        assert_eq!(queue["below"]["parameters"]["target"], "8 ms");
        assert!(summary(&spec).contains("through strict-priority over pie"), "{}", summary(&spec));
    }

    #[test]
    fn long_waits_of_sparse_traffic_have_a_warning() {
        let text = "in = 'a'\nout = 'b'\nforward = { rate = '15 Mbit/s', queue = { aqm = 'pi', limit = '800 packets' } }\n\
                    reverse = { rate = '15 Mbit/s', queue = { aqm = 'sieve', limit = '800 packets' } }\n";
        let spec = RouterSpec::parse(text, "r.toml").unwrap_or_else(|errors| panic!("{errors}"));
        let told = warnings(&spec);
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].starts_with(
            "a -> b: while transfers fill the link, packets without a hint wait about 160 ms behind pi"
        ));
    }

    #[test]
    fn a_queue_smaller_than_a_frame_is_warned_of() {
        let told = |limit: &str| {
            let direction = |limit: &str| {
                format!("{{ rate = '9 Mbit/s', queue = {{ aqm = 'sieve', limit = '{limit}' }} }}")
            };
            let text = format!(
                "in = 'a'\nout = 'b'\nforward = {}\nreverse = {}\n",
                direction("90 packets"),
                direction(limit)
            );
            warnings(&RouterSpec::parse(&text, "r.toml").unwrap())
        };
        assert_eq!(
            told("1513 B"),
            ["b -> a: the queue holds 1513 B, and a full frame has 1514 B: it drops all of them"]
        );
        assert_eq!(told("1514 B"), Vec::<String>::new());
        assert_eq!(told("1 packet"), Vec::<String>::new());
    }

    #[test]
    fn a_document_has_the_differences_from_the_standard() {
        let text = "in = 'a'\nout = 'b'\nhints = { EF = 4 }\nremark = { CS1 = 'LE' }\n\
                    queue.q = { aqm = 'pi', limit = '64 KB', q-ref = '100 packets', tsq = true }\n\
                    forward = { rate = '15 Mbit/s', queue = 'q' }\n\
                    reverse = { rate = '2 Mbit/s', queue = { aqm = 'codel', limit = '9 packets' } }\n";
        let spec = RouterSpec::parse(text, "r.toml").unwrap_or_else(|errors| panic!("{errors}"));
        let all = json!(configuration(&spec));
        assert_eq!(all["forward"]["hints"], json!({ "EF": 4 }));
        assert_eq!(all["reverse"]["remark"], json!({ "CS1": "LE" }));
        assert_eq!(all["forward"]["queue"]["parameters"]["q-ref"], "100");
        assert_eq!(all["forward"]["queue"]["tsq"]["l"], "40 ms");
        assert_eq!(
            (&all["reverse"]["queue"]["limit"], &all["reverse"]["queue"]["tsq"]),
            (&json!("9 packets"), &Value::Null)
        );
        assert_eq!(
            summary(&spec),
            "a -> b at 15 Mbit/s through TSQ over pi, reverse at 2 Mbit/s through codel"
        );
    }
}
