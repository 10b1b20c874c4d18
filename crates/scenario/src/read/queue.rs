//! Queues: `queue = { aqm = "pi", limit = "800 packets", ... }`, `queue = "NAME"` and `[queue.NAME]`.

use crate::catalogue;
use crate::document::{Node, Value};
use crate::kind;
use crate::nearest::suggestion;
use crate::quantity::{self, QuantityError};
use crate::reader::{Kind, TableReader};
use crate::spec::{Limit, PassOnSpec, QueueSpec};
use cutline_aqm::{AqmSpec, Parameter, ParameterError, Parameters as _, TsqParams};
use cutline_units::{Bytes, Duration, HintBudget};
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

/// What passing on may be set to.
const PASS_ON: &str = "true, false or a table such as { step = \"5 ms\", largest = false }";

/// The least delay of a level.
const LEAST_STEP: Duration = Duration::from_micros(1);

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
    let aqms = catalogue::names().into_iter().map(|name| (name.to_owned(), name)).collect();
    let aqm = reader.required("aqm", &kind::choice("an AQM", aqms));
    let limit = reader.required("limit", &limit());
    let ecn = reader.or("ecn", &kind::flag(), true);
    let tsq = tsq(reader);
    let pass_on = pass_on(reader);
    let Some(aqm) = aqm else {
        // Which other keys are right depends on the AQM.
        reader.report_missing();
        return None;
    };
    let aqm = together(reader, AqmSpec::from_values(aqm, given(reader, &catalogue::parameters(aqm))));
    if let Some(aqm) = aqm.as_ref().filter(|aqm| tsq.is_some() && !aqm.takes_tsq()) {
        let why = format!(
            "TSQ rides on an AQM that decides by a probability, and {} is a queue of its own",
            aqm.name()
        );
        reader.refuse("tsq", &why);
    }
    reader.finish();
    Some(QueueSpec { aqm: aqm?, limit: limit?, ecn, tsq, pass_on })
}

/// The parameters that the table sets. A wrong one has been reported: its default stands in for it until the scenario
/// is refused.
fn given(
    reader: &TableReader<'_>,
    parameters: &[&'static Parameter],
) -> Vec<(&'static str, cutline_aqm::Value)> {
    let one = |parameter: &&'static Parameter| {
        Some((parameter.name, reader.optional(parameter.name, &catalogue::kind_of(parameter))?))
    };
    parameters.iter().filter_map(one).collect()
}

/// Parameters that each are right; `None` after a report that they do not go together.
fn together<P>(reader: &TableReader<'_>, params: Result<P, ParameterError>) -> Option<P> {
    params.map_err(|error| reader.refuse(&error.parameter, &format!("it must be {}", error.allowed))).ok()
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

fn pass_on(reader: &TableReader<'_>) -> Option<PassOnSpec> {
    let usual = PassOnSpec { step: HintBudget::STEP, largest: false };
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
            Some(PassOnSpec { step, largest })
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
    let params = TsqParams::from_values(given(reader, &catalogue::tsq_parameters()));
    reader.finish();
    together(reader, params)
}
