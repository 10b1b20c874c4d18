//! The router's file: two interfaces, a link and a queue for each direction, code points, and the process.
//!
//! ```toml
//! in = "eth0"
//! out = "eth1"
//! [forward]
//! rate = "15 Mbit/s"
//! queue = { aqm = "pi", limit = "1000 packets", tsq = true }
//! [reverse]
//! rate = "2 Mbit/s"
//! queue = { aqm = "fq-codel", limit = "1000 packets" }
//! ```
//!
//! Queues are written as in a scenario, `[queue.NAME]` included. `overhead`, `hints` and `remark` at the top apply to both
//! directions; a direction with `autorate = { least = "2 Mbit/s", most = "50 Mbit/s" }` follows the link, with the reflectors of
//! `[autorate]`. In `[forward]` or `[reverse]` they replace those at the top for one direction.

use crate::spec::{AutorateSpec, DirectionSpec, ProcessSpec, RouterSpec};
use cutline_aqm::QueueSpec;
use cutline_config::{Document, Errors, Node, TableReader, Value, ValueKind, kind};
use cutline_ports::AnyPort;
use cutline_router::{Overhead, RESERVATION_LIMITS, ShaperParams};
use cutline_service::regular_file;
use cutline_sys::address::{ZonedIp, parse_listen_address};
use cutline_tables::queue::{self, Named, QueueConfig};
use cutline_units::{Bytes, Dscp, Duration, HintBits, HintTable, Rate, RemarkTable};
use cutline_wire::FlowKeys;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::Path;

/// The allowed values of `remark`, for messages.
const REMARK: &str =
    "\"to-hints\", \"without-hints\" or a table such as { CS1 = \"LE\" }, which may have all = \"to-hints\"";

/// The key for the leading bits of an IPv6 address that name a host.
const HOST_PREFIX: &str = "ipv6-host-prefix";

/// The key of a re-mark table for all code points that it does not name.
const ALL: &str = "all";

impl RouterSpec {
    /// Reads the router's file at `path`, a regular file of at most 1 MiB.
    ///
    /// # Errors
    /// All problems of the file.
    pub fn load(path: &Path) -> Result<Self, Errors> {
        cutline_config::read(&Document::load_with(path, regular_file::read)?, read)
    }

    /// Reads the text of a router's file; `name` is the file's name in messages.
    ///
    /// # Errors
    /// All problems of the text.
    pub fn parse(text: &str, name: &str) -> Result<Self, Errors> {
        cutline_config::read(&Document::parse(text, name)?, read)
    }
}

/// The defaults of both directions.
struct Common {
    queues: Named,
    overhead: Overhead,
    host_prefix: u64,
    hints: HintTable,
    remark: Remark,
}

/// A re-mark table as written in the file. The meaning of `to-hints` depends on the hints of the direction that uses it.
#[derive(Clone, Default)]
struct Remark {
    all: All,
    changes: Vec<(Dscp, Dscp)>,
}

/// Change of code points that a re-mark table does not name.
#[derive(Clone, Copy, Default)]
enum All {
    #[default]
    Unchanged,
    ToHints,
    WithoutHints,
}

fn read(root: &TableReader<'_>) -> Option<RouterSpec> {
    let input = root.required("in", &kind::interface());
    let output = root.required("out", &kind::interface());
    let interface_of =
        |port: &Option<String>| port.as_deref().map(|name| AnyPort::interface_of(name).to_owned());
    if input.is_some() && interface_of(&input) == interface_of(&output) {
        root.refuse("out", "it is the same interface as \"in\"");
    }
    let common = Common {
        queues: queue::named(root),
        overhead: root.or("overhead", &overhead(), Overhead::Ethernet),
        host_prefix: root.or(HOST_PREFIX, &host_prefix(), FlowKeys::HOST_PREFIX.into()),
        hints: hints(root).unwrap_or_default(),
        remark: remark(root).unwrap_or_default(),
    };
    let process = process(root);
    let autorate = autorate(root);
    let [forward, reverse] = ["forward", "reverse"].map(|key| direction(root, key, &common));
    let directions = [&forward, &reverse];
    let follows =
        directions.iter().any(|direction| direction.as_ref().is_some_and(|of| of.autorate.is_some()));
    if follows && !root.has("autorate") {
        root.lacks(
            "autorate",
            "a table: write [autorate] with reflectors = [\"192.0.2.1\"], hosts behind the link",
        );
    } else if !follows && root.has("autorate") && directions.iter().all(|direction| direction.is_some()) {
        root.refuse(
            "autorate",
            "no direction follows the link: set autorate = { least = \"...\", most = \"...\" } in one",
        );
    }
    root.finish();
    Some(RouterSpec {
        input: input?,
        output: output?,
        forward: forward?,
        reverse: reverse?,
        autorate,
        process,
    })
}

/// Reads `[autorate]`: the reflectors, and the limit of the delay.
fn autorate(root: &TableReader<'_>) -> Option<AutorateSpec> {
    let table = root.table("autorate", "a table: write [autorate]")?;
    let reflectors = table.required("reflectors", &reflectors());
    let delay = table.or("delay", &kind::positive_duration(), AutorateSpec::DELAY);
    table.finish();
    Some(AutorateSpec { reflectors: reflectors?, delay })
}

/// Reads the range of a direction's rate.
fn range(table: &TableReader<'_>, at: Rate) -> Option<RangeInclusive<Rate>> {
    let inner = table.table("autorate", "a table such as { least = \"2 Mbit/s\", most = \"50 Mbit/s\" }")?;
    let (least, most) = (inner.required("least", &rate()), inner.required("most", &rate()));
    inner.finish();
    let range = least?..=most?;
    if let Err(why) = AutorateSpec::check_range(at, &range) {
        table.refuse("autorate", &why);
    }
    Some(range)
}

fn process(root: &TableReader<'_>) -> ProcessSpec {
    ProcessSpec {
        fix_offloads: root.or("fix-offloads", &kind::flag(), false),
        spin: root.optional("spin", &spin()),
        seed: root.optional("seed", &kind::integer(0, i64::MAX)),
        socket: root.optional("socket", &kind::absolute_path()).map(Into::into),
        metrics: root.optional("metrics", &metrics()),
        memory: root.optional("memory", &memory()),
        user: root.optional("user", &kind::text().only("the name of a user", |name| !name.is_empty())),
        force_bridge: root.or("force-bridge", &kind::flag(), false),
        reservations: reservations(root),
    }
}

/// Reads the permission of clients to reserve, and its limit.
fn reservations(root: &TableReader<'_>) -> Option<usize> {
    const LIMIT: &str = "reservation-limit";
    let are_allowed =
        root.or("reservations", &kind::one_of("one of", &[("none", false), ("allowed", true)]), false);
    let (least, most) = (*RESERVATION_LIMITS.start() as i64, *RESERVATION_LIMITS.end() as i64);
    let limit = root.optional(LIMIT, &kind::integer(least, most));
    if are_allowed && !root.has("socket") {
        root.refuse("reservations", "clients reserve at the router's socket: set \"socket\", too");
    }
    if limit.is_some() && !are_allowed {
        root.refuse(LIMIT, "there is a limit only with reservations = \"allowed\"");
    }
    are_allowed.then(|| limit.map_or(ProcessSpec::RESERVATIONS, |limit| limit as usize))
}

/// Reads the table of one direction.
fn direction(root: &TableReader<'_>, key: &str, common: &Common) -> Option<DirectionSpec> {
    let expected = format!("a table: write [{key}]");
    let Some(table) = root.table(key, &expected) else {
        if !root.has(key) {
            root.lacks(key, &expected);
        }
        return None;
    };
    let rate = table.required("rate", &rate());
    let queue = queue::required(&table, "queue", &common.queues);
    let autorate = rate.and_then(|rate| range(&table, rate));
    let overhead = table.or("overhead", &overhead(), common.overhead);
    let host_prefix = table.or(HOST_PREFIX, &host_prefix(), common.host_prefix);
    let hints = hints(&table).unwrap_or_else(|| common.hints.clone());
    let remark = remark(&table).unwrap_or_else(|| common.remark.clone()).table(&hints);
    table.finish();
    let queue = queue_of(&table, queue?.as_ref(), rate?)?;
    Some(DirectionSpec { queue, autorate, overhead, host_prefix: host_prefix as u8, hints, remark })
}

/// Returns the queue in front of a link of this rate. It is built once to check it, because the rate limits some parameters.
fn queue_of(table: &TableReader<'_>, config: &QueueConfig, rate: Rate) -> Option<QueueSpec> {
    if config.pass_on.is_some() {
        table.refuse("queue", "pass-on-waiting is for simulated routers: this one leaves hints unchanged");
        return None;
    }
    match config.at_rate(rate).and_then(|queue| queue.build::<u32>().map(|_| queue)) {
        Ok(queue) => Some(queue),
        Err(error) => {
            table.refuse("queue", &error.to_string());
            None
        }
    }
}

fn hints(reader: &TableReader<'_>) -> Option<HintTable> {
    const EXPECTED: &str = "a table of code points and levels such as { EF = 4 }";
    let table = reader.table("hints", EXPECTED)?;
    let level = kind::integer(1, i64::from(HintBits::PAPER.largest().level()));
    let mut hints = HintTable::standard();
    for (name, node) in table.entries() {
        let (dscp, level) = (code_point(&table, name, node), table.optional(name, &level));
        if let (Some(dscp), Some(level)) = (dscp, level) {
            let hint = HintBits::PAPER.hint(level).expect("the range of the level has been checked");
            hints.set(dscp, hint);
        }
    }
    Some(hints)
}

fn remark(reader: &TableReader<'_>) -> Option<Remark> {
    let node = reader.node("remark")?;
    if let Value::Text(_) = node.value {
        let all = reader.optional("remark", &all()).unwrap_or_default();
        return Some(Remark { all, changes: Vec::new() });
    }
    let table = reader.table_in(node, "remark", REMARK)?;
    let all = table.or(ALL, &all(), All::Unchanged);
    let changed = |(name, node): (&str, &Node)| {
        let from = code_point(&table, name, node);
        let to = table.optional(name, &code_points());
        Some((from?, to?))
    };
    let changes = table.entries().filter(|(name, _)| *name != ALL).filter_map(changed).collect();
    Some(Remark { all, changes })
}

impl Remark {
    fn table(&self, hints: &HintTable) -> RemarkTable {
        let mut table = match self.all {
            All::Unchanged => RemarkTable::unchanged(),
            All::ToHints => RemarkTable::to_hints(hints),
            All::WithoutHints => RemarkTable::without_hints(),
        };
        self.changes.iter().for_each(|(from, to)| table.set(*from, *to));
        table
    }
}

/// Returns the code point that a key names; `None` if there is none, which is reported.
fn code_point(table: &TableReader<'_>, name: &str, node: &Node) -> Option<Dscp> {
    let report = |error: &dyn std::fmt::Display| {
        table.report(&table.path_of(name), Some(&node.span), format!(": {error}"));
    };
    name.parse().map_err(|error| report(&error)).ok()
}

fn code_points() -> ValueKind<Dscp> {
    ValueKind::new("a code point such as \"LE\", \"hint-6\" or 1", |node| match &node.value {
        Value::Integer(number) => {
            let dscp = u8::try_from(*number).ok().and_then(Dscp::new);
            dscp.ok_or_else(|| "a number is from 0 to 63".to_owned())
        }
        Value::Text(text) => text.parse().map_err(|error: cutline_units::DscpError| error.to_string()),
        _ => Err(String::new()),
    })
}

fn all() -> ValueKind<All> {
    kind::one_of("one of", &[("to-hints", All::ToHints), ("without-hints", All::WithoutHints)])
}

fn overhead() -> ValueKind<Overhead> {
    ValueKind::new(Overhead::EXPECTED, |node| match &node.value {
        Value::Integer(bytes) => bytes.to_string().parse().map_err(|_| String::new()),
        Value::Text(text) => text.parse().map_err(|_| String::new()),
        _ => Err(String::new()),
    })
}

fn host_prefix() -> ValueKind<u64> {
    let allowed = FlowKeys::HOST_PREFIXES;
    kind::integer(i64::from(*allowed.start()), i64::from(*allowed.end()))
}

fn reflectors() -> ValueKind<Vec<ZonedIp>> {
    ValueKind::new("a list of addresses such as [\"192.0.2.1\", \"fe80::1%eth0\"]", |node| {
        let Value::List(nodes) = &node.value else { return Err(String::new()) };
        let address = |node: &Node| node.as_text().and_then(|text| text.parse().ok());
        let addresses =
            nodes.iter().map(address).collect::<Option<Vec<ZonedIp>>>().ok_or_else(String::new)?;
        AutorateSpec::check(&addresses).map(|()| addresses)
    })
}

fn metrics() -> ValueKind<SocketAddr> {
    ValueKind::new("an address with a port, such as \"127.0.0.1:9105\" or \"[::1]:9105\"", |node| {
        node.as_text().and_then(|text| parse_listen_address(text).ok()).ok_or_else(String::new)
    })
}

fn rate() -> ValueKind<Rate> {
    let allowed = ShaperParams::RATES;
    kind::rate()
        .only(&format!("from {} to {}", allowed.start(), allowed.end()), move |rate| allowed.contains(rate))
}

fn memory() -> ValueKind<Bytes> {
    let allowed = ProcessSpec::MEMORY;
    let words = format!("from {} to {}", allowed.start(), allowed.end());
    kind::size().only(&words, move |memory| allowed.contains(memory))
}

fn spin() -> ValueKind<Duration> {
    let longest = Duration::from_millis(10);
    kind::positive_duration().only("at most 10 ms", move |spin| *spin <= longest)
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
