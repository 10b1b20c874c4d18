//! Queues: `queue = { aqm = "pi", limit = "800 packets", ... }`, `queue = "NAME"` and `[queue.NAME]`.
//!
//! Scenarios and the router's file describe queues in the same words, so their one reader is here.

use crate::lengths;
use cutline_aqm::drop_tail::DropTailParams;
use cutline_aqm::{
    AqmDescription, AqmSpec, Discipline as _, Limit, QueueSpec, StrictPriority, TsqParams, registry,
};
use cutline_config::TableReader;
use cutline_config::kind::{self, ValueKind};
use cutline_config::parameter;
use cutline_config::quantity::{self, QuantityError};
use cutline_config::suggestion;
use cutline_config::{Node, Table, Value};
use cutline_params::{ParameterError, Parameters as _};
use cutline_units::{Duration, HintBudget, Rate};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A queue as a file describes it: its AQM, its limit, and TSQ on top.
#[derive(Clone, Debug, PartialEq)]
pub struct QueueConfig {
    /// The AQM and its parameters.
    pub aqm: AqmSpec,
    /// Limit of the backlog, without the packet in service.
    pub limit: Limit,
    /// True if ECN-capable packets are marked instead of dropped.
    pub ecn: bool,
    /// TSQ on top of the AQM, if switched on.
    pub tsq: Option<TsqParams>,
    /// Conversion with which the queue subtracts a packet's waiting time from its hint, if it does.
    pub pass_on: Option<PassOn>,
    /// The AQM as the file sets it, if it sets lengths as times. They depend on the link's rate, and `aqm` lacks them.
    timed: Option<lengths::AqmConfig>,
}

/// Conversion of waiting time to hint levels in a queue that subtracts it from the hint (RED-Worcester
/// section 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PassOn {
    /// The delay of one level.
    pub step: Duration,
    /// True if the largest hint is a delay like the others.
    pub largest: bool,
}

impl QueueConfig {
    /// A drop-tail queue, which links have by default.
    pub const fn drop_tail(limit: Limit) -> Self {
        Self {
            aqm: AqmSpec::DropTail(DropTailParams {}),
            limit,
            ecn: true,
            tsq: None,
            pass_on: None,
            timed: None,
        }
    }

    /// This queue in front of a link of this rate.
    ///
    /// # Errors
    /// When a length that the file sets as a time is not allowed at this rate.
    pub fn at_rate(&self, rate: Rate) -> Result<QueueSpec, ParameterError> {
        let aqm = self.timed.as_ref().map_or_else(|| Ok(self.aqm.clone()), |timed| timed.at_rate(rate))?;
        Ok(QueueSpec { limit: self.limit, ecn: self.ecn, aqm, tsq: self.tsq, rate })
    }
}

/// The queues defined under `[queue]`; `None` for one that is defined but wrong.
pub type Named = BTreeMap<String, Option<Arc<QueueConfig>>>;

/// Allowed values of a link's queue.
const EXPECTED: &str =
    "a queue such as { aqm = \"pi\", limit = \"800 packets\" }, or the name of a [queue.NAME]";

/// The limit of a queue that the file does not describe.
const DEFAULT_LIMIT: Limit = Limit::Packets(1000);

/// Allowed values of `tsq`.
const TSQ: &str = "true, false or a table such as { bits = 4, l = \"40 ms\" }";

/// Allowed values of the AQM below strict priority.
const BELOW: &str = "a table such as { aqm = \"pie\", target = \"15 ms\" }";

/// Allowed values of `pass-on`.
const PASS_ON: &str = "true, false or a table such as { step = \"5 ms\", largest = false }";

/// The least delay of a level.
const LEAST_STEP: Duration = Duration::from_micros(1);

/// The rule of a document with queues ([`cutline_config::ChangeRule`]): a queue whose AQM is changed from outside loses the keys of the file
/// that the new AQM does not have, such as parameters of the old one, TSQ, or another AQM below. Keys that overrides have set stay; they are
/// errors if the new AQM does not know them.
pub fn change_rule(queue: &mut Table, key: &str, to: &Node) {
    if key != "aqm" {
        return;
    }
    let aqm_of = |name: &str| registry::describe().into_iter().find(|aqm| aqm.name == name);
    // A wrong name is reported when the queue is read.
    let Some(aqm) = to.as_text().and_then(aqm_of) else { return };
    let was = queue.get("aqm").and_then(Node::as_text);
    if was.is_none_or(|was| was == aqm.name) {
        return;
    }
    let has = |key: &str| match key {
        "aqm" | "limit" | "ecn" | "pass-on-waiting" => true,
        "tsq" => aqm.takes_tsq,
        _ => aqm.parameters.iter().any(|parameter| parameter.name == key),
    };
    queue.0.retain(|key, entry| !entry.key.is_of_file() || has(key));
}

/// The queues in the table `[queue]` of the file.
pub fn named(root: &TableReader<'_>) -> Named {
    let Some(table) = root.table("queue", "tables [queue.NAME]") else { return Named::new() };
    let define = |(name, node): (&str, &Node)| {
        let queue = table.table_in(node, name, "a table [queue.NAME]").and_then(|table| read(&table));
        (name.to_owned(), queue.map(Arc::new))
    };
    // Any name is allowed here, so unknown ones are not reported.
    table.entries().map(define).collect()
}

/// The queue at `key`; `None` when it is absent, or wrong and reported.
pub fn optional(reader: &TableReader<'_>, key: &str, named: &Named) -> Option<Arc<QueueConfig>> {
    let node = reader.node(key)?;
    match &node.value {
        Value::Text(name) => named.get(name).cloned().unwrap_or_else(|| {
            let near = suggestion(name, named.keys().map(String::as_str));
            reader.wrong(key, node, EXPECTED, &format!("there is no [queue.{name}]{near}"));
            None
        }),
        _ => reader.table_in(node, key, EXPECTED).and_then(|table| read(&table)).map(Arc::new),
    }
}

/// The queue at `key`, which must be there; `None` when it is absent or wrong, which is reported.
pub fn required(reader: &TableReader<'_>, key: &str, named: &Named) -> Option<Arc<QueueConfig>> {
    if !reader.has(key) {
        reader.lacks(key, EXPECTED);
    }
    optional(reader, key, named)
}

/// Drop-tail with the default limit.
pub fn default_queue() -> Arc<QueueConfig> {
    Arc::new(QueueConfig::drop_tail(DEFAULT_LIMIT))
}

fn read(reader: &TableReader<'_>) -> Option<QueueConfig> {
    let aqms = registry::describe();
    let words = aqms.iter().map(|aqm| (aqm.name.to_owned(), aqm.clone())).collect();
    let aqm = reader.required("aqm", &kind::choice("an AQM", words));
    let limit = reader.required("limit", &limit());
    let ecn = reader.or("ecn", &kind::flag(), true);
    let tsq = tsq(reader);
    let pass_on = pass_on(reader);
    let Some(aqm) = aqm else {
        // Which other keys are right depends on the AQM.
        reader.report_missing();
        return None;
    };
    let below = below(reader, aqm.name);
    let config = lengths::read(reader, &aqm);
    let own = aqm.name;
    let (config, aqm) = match (config, below) {
        (Some((config, aqm)), Ok(Some((below, law)))) => {
            let aqm = parameter::checked(reader, aqm.with_below(law));
            (Some(config.with_below(below)), aqm)
        }
        (Some((config, aqm)), Ok(None)) => (Some(config), Some(aqm)),
        _ => (None, None),
    };
    if let Some(aqm) = aqm.as_ref().filter(|aqm| tsq.is_some() && !aqm.takes_tsq()) {
        let why =
            format!("TSQ needs an AQM that decides by a probability, and {} is a complete queue", aqm.name());
        reader.refuse("tsq", &why);
    }
    finish(reader, own, &aqms);
    let timed = config.filter(lengths::AqmConfig::has_times);
    Some(QueueConfig { aqm: aqm?, limit: limit?, ecn, tsq, pass_on, timed })
}

/// Reads the AQM of each class of strict priority. The error is reported.
fn below(reader: &TableReader<'_>, above: &str) -> Result<Option<(lengths::AqmConfig, AqmSpec)>, ()> {
    let priority = StrictPriority::<()>::NAME;
    if above != priority {
        return Ok(None);
    }
    let Some(node) = reader.node("below") else { return Ok(None) };
    let table = reader.table_in(node, "below", BELOW).ok_or(())?;
    let aqms = registry::describe().into_iter().filter(|aqm| aqm.name != priority);
    let words = aqms.map(|aqm| (aqm.name.to_owned(), aqm)).collect();
    let Some(aqm) = table.required("aqm", &kind::choice("an AQM for each class", words)) else {
        table.report_missing();
        return Err(());
    };
    let read = lengths::read(&table, &aqm);
    finish(&table, aqm.name, &registry::describe());
    read.map(Some).ok_or(())
}

/// Reports the unknown and the missing keys of a queue with this AQM.
fn finish(reader: &TableReader<'_>, own: &str, all: &[AqmDescription]) {
    let others = || all.iter().map(|aqm| (aqm.name, &aqm.parameters));
    let former = |key: &str| registry::former_parameter(own, key).map(str::to_owned);
    reader.finish_explaining(|key| former(key).or_else(|| parameter::of_others(key, ("aqm", own), others())));
}

fn limit() -> ValueKind<Limit> {
    ValueKind::new("a limit such as \"800 packets\" or \"64 KB\", above 0", |node| {
        let text = node.as_text().ok_or_else(String::new)?;
        let limit = match quantity::packets(text) {
            Ok(packets) => Limit::Packets(packets.try_into().unwrap_or(u32::MAX)),
            Err(QuantityError::Unit(..)) => {
                // The unit may be one of packets or of bytes, so the error for bytes alone says too little.
                Limit::Bytes(quantity::size(text).map_err(|_| String::new())?.get())
            }
            Err(error) => return Err(error.to_string()),
        };
        let empty = matches!(limit, Limit::Packets(0) | Limit::Bytes(0));
        if empty { Err(String::new()) } else { Ok(limit) }
    })
}

fn pass_on(reader: &TableReader<'_>) -> Option<PassOn> {
    let usual = PassOn { step: HintBudget::STEP, largest: false };
    let node = reader.node("pass-on-waiting")?;
    match node.value {
        Value::Flag(false) => None,
        Value::Flag(true) => Some(usual),
        _ => {
            let table = reader.table_in(node, "pass-on-waiting", PASS_ON)?;
            let fine = |step: &Duration| (LEAST_STEP..=Duration::from_secs(1)).contains(step);
            let step = kind::duration().only("from 1 us to 1 s", fine);
            let step = table.or("step", &step, usual.step);
            let largest = table.or("largest", &kind::flag(), usual.largest);
            table.finish();
            Some(PassOn { step, largest })
        }
    }
}

fn tsq(reader: &TableReader<'_>) -> Option<TsqParams> {
    let node = reader.node("tsq")?;
    match node.value {
        Value::Flag(false) => None,
        Value::Flag(true) => Some(TsqParams::default()),
        _ => reader.table_in(node, "tsq", TSQ).and_then(|table| tsq_table(&table)),
    }
}

fn tsq_table(reader: &TableReader<'_>) -> Option<TsqParams> {
    let params = TsqParams::from_values(parameter::values(reader, &TsqParams::describe()));
    reader.finish();
    parameter::checked(reader, params)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_of_the_registry_can_be_written() {
        for aqm in registry::describe() {
            for parameter in aqm.parameters {
                let name = parameter.name;
                assert_eq!(parameter.check(&parameter.default), Ok(()), "{}: {name}", aqm.name);
                assert!(!parameter::kind_of(parameter).expected.is_empty(), "{}: {name}", aqm.name);
            }
        }
    }
}
