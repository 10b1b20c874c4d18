//! Queues: `queue = { aqm = "pi", limit = "800 packets", ... }`, `queue = "NAME"` and `[queue.NAME]`.

use crate::catalogue::{ParameterInfo, Parameters};
use crate::document::{Node, Value};
use crate::kind;
use crate::nearest::suggestion;
use crate::quantity::{self, QuantityError};
use crate::reader::{Kind, TableReader};
use crate::spec::{Limit, QueueSpec, TsqSpec};
use cutline_units::{Bytes, Duration, HintBits};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The queues defined under `[queue]`; `None` for one that is defined but wrong.
pub(super) type Named = BTreeMap<String, Option<Arc<QueueSpec>>>;

/// What a link's queue may be.
const EXPECTED: &str =
    "a queue such as { aqm = \"pi\", limit = \"800 packets\" }, or the name of a [queue.NAME]";

/// The limit of a queue that nobody described.
const DEFAULT_LIMIT: Limit = Limit::Packets(1000);

/// What TSQ may be set to.
const TSQ: &str = "true, false or a table such as { bits = 4, l = \"40 ms\" }";

pub(super) fn named(root: &TableReader<'_>) -> Named {
    let Some(table) = root.table("queue", "tables [queue.NAME]") else { return Named::new() };
    let define = |(name, node): (&str, &Node)| {
        let queue = table.table_in(node, name, "a table [queue.NAME]").and_then(|table| read(&table));
        (name.to_owned(), queue.map(Arc::new))
    };
    // The names are the author's own: none of them is unknown, so this table is not finished.
    table.entries().map(define).collect()
}

/// The queue at `key`; `None` when absent or, after a report, wrong.
pub(super) fn optional(reader: &TableReader<'_>, key: &str, named: &Named) -> Option<Arc<QueueSpec>> {
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

/// The queue at `key`, which must be there.
pub(super) fn required(reader: &TableReader<'_>, key: &str, named: &Named) -> Option<Arc<QueueSpec>> {
    if !reader.has(key) {
        reader.lacks(key, EXPECTED);
    }
    optional(reader, key, named)
}

/// Drop-tail with the default limit.
pub(super) fn default_queue() -> Arc<QueueSpec> {
    Arc::new(QueueSpec::drop_tail(DEFAULT_LIMIT))
}

fn read(reader: &TableReader<'_>) -> Option<QueueSpec> {
    let names = reader.cx.catalogue.names();
    let aqms = names.into_iter().map(|name| (name.to_owned(), name.to_owned())).collect();
    let aqm = reader.required("aqm", &kind::choice("an AQM", aqms));
    let limit = reader.required("limit", &limit());
    let ecn = reader.or("ecn", &kind::flag(), true);
    let tsq = tsq(reader);
    let Some(aqm) = aqm else {
        // Which other keys are right depends on the AQM.
        reader.report_missing();
        return None;
    };
    let infos = reader.cx.catalogue.parameters(&aqm).unwrap_or_default();
    let parameters = parameters(reader, &aqm, &infos);
    reader.finish();
    Some(QueueSpec { aqm, parameters: parameters?, limit: limit?, ecn, tsq })
}

/// The AQM's own parameters; `None` after a report that they do not go together.
fn parameters(reader: &TableReader<'_>, aqm: &str, infos: &[ParameterInfo]) -> Option<Parameters> {
    let one = |info: &ParameterInfo| {
        // A wrong value has been reported; the default stands in for it only until the scenario is refused.
        let value = reader.optional(info.name, &info.kind()).or_else(|| info.default.clone())?;
        Some((info.name.to_owned(), value))
    };
    let parameters: Parameters = infos.iter().filter_map(one).collect();
    match reader.cx.catalogue.check(aqm, &parameters) {
        Ok(()) => Some(parameters),
        Err(problem) => {
            reader.refuse(problem.name, &problem.text);
            None
        }
    }
}

fn limit() -> Kind<Limit> {
    Kind::new("a limit such as \"800 packets\" or \"64 KB\", above 0", |node| {
        let text = node.as_text().ok_or_else(String::new)?;
        let limit = match quantity::packets(text) {
            Ok(packets) => Limit::Packets(packets),
            Err(QuantityError::Unit(..)) => {
                // The unit may be one of packets or of bytes, so what is wrong with it as bytes says too little.
                Limit::Bytes(quantity::size(text).map_err(|_| String::new())?)
            }
            Err(error) => return Err(error.to_string()),
        };
        let empty = matches!(limit, Limit::Packets(0)) || limit == Limit::Bytes(Bytes::ZERO);
        if empty { Err(String::new()) } else { Ok(limit) }
    })
}

fn tsq(reader: &TableReader<'_>) -> Option<TsqSpec> {
    let node = reader.node("tsq")?;
    match node.value {
        Value::Flag(false) => None,
        Value::Flag(true) => Some(TsqSpec::default()),
        _ => reader.table_in(node, "tsq", TSQ).map(|table| tsq_table(&table)),
    }
}

fn tsq_table(reader: &TableReader<'_>) -> TsqSpec {
    let default = TsqSpec::default();
    let bits = kind::integer(1, 8).map(|n| HintBits::new(n).expect("the kind allows 1..8"));
    let l = reader.or("l", &kind::positive_duration(), default.l);
    let bits = reader.or("bits", &bits, default.bits);
    let ratio = kind::number().only("at least 1", |ratio| *ratio >= 1.0);
    let max_ratio = reader.optional("max-ratio", &ratio);
    reader.finish();
    TsqSpec { bits, l, max_ratio }
}

/// The paper's: four bits, l = 40 ms, no cap.
impl Default for TsqSpec {
    fn default() -> Self {
        Self { bits: HintBits::PAPER, l: Duration::from_millis(40), max_ratio: None }
    }
}
