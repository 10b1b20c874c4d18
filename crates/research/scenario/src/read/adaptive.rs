//! Reads a flow's hint: a fixed level, or a hint that adapts to the measured quality.
//!
//! Examples: `hint = 6`, `hint = "adaptive"`, `hint = { adaptive = { start = 8, measure = "10 s" } }`.

use crate::spec::AdaptiveSpec;
use cutline_config::{TableReader, Value, ValueKind, kind, parameter};
use cutline_params::Parameters as _;
use cutline_quality::HintParams;
use cutline_units::{Duration, Hint, HintBits};

/// The default interval between two reports of a receiver.
const REPORT: Duration = Duration::from_secs(1);

/// Reads the hint, and its adaptation. The hint of an adaptive flow is its initial hint.
pub(super) fn hint(reader: &TableReader<'_>, levels: u16, bits: HintBits) -> (Hint, Option<AdaptiveSpec>) {
    let usual = AdaptiveSpec { report: REPORT, params: HintParams::new(bits) };
    let expected = format!("a whole number from 1 to {levels}, \"adaptive\" or {{ adaptive = {{ ... }} }}");
    let Some(node) = reader.node("hint") else { return (bits.largest(), None) };
    let adaptive = match &node.value {
        Value::Text(text) if text == "adaptive" => Some(usual),
        Value::Table(_) => reader.table_in(node, "hint", &expected).and_then(|table| within(&table, usual)),
        _ => {
            let read = kind::integer(1, i64::from(levels)).map(|level| Hint::from_level(level as u16));
            let level = ValueKind::new(expected, move |node| read.read(node));
            return (reader.or("hint", &level, bits.largest()), None);
        }
    };
    (adaptive.map_or(bits.largest(), |adaptive| adaptive.params.start), adaptive)
}

/// Reads the table form: `{ adaptive = true }` or `{ adaptive = { ... } }`.
fn within(reader: &TableReader<'_>, usual: AdaptiveSpec) -> Option<AdaptiveSpec> {
    const EXPECTED: &str = "true or a table such as { start = 8, measure = \"10 s\" }";
    let node = reader.node("adaptive");
    let adaptive = match node.map(|node| (node, &node.value)) {
        None => {
            reader.lacks("adaptive", EXPECTED);
            None
        }
        Some((_, Value::Flag(true))) => Some(usual),
        Some((node, _)) => {
            reader.table_in(node, "adaptive", EXPECTED).and_then(|table| adaptive(&table, usual))
        }
    };
    reader.finish();
    adaptive
}

fn adaptive(reader: &TableReader<'_>, usual: AdaptiveSpec) -> Option<AdaptiveSpec> {
    let values = parameter::values(reader, &HintParams::describe());
    let mut base = usual.params;
    if let Some((_, cutline_params::ParameterValue::Count(span))) =
        values.iter().find(|(name, _)| *name == "span")
    {
        base.finest = base.finest.min(*span as u16);
    }
    let report = reader.or("report", &kind::positive_duration(), usual.report);
    reader.finish();
    let params = parameter::checked(reader, base.with_values(values))?;
    if report > params.measure {
        reader.refuse("report", &format!("it must not exceed measure, {}", params.measure));
    }
    Some(AdaptiveSpec { report, params })
}
