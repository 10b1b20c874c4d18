//! Reads the claims of a figure in `figures.toml`.

use super::quantity_text::{Names, QuantityText};
use super::rows::repeat;
use super::{ClaimData, expectation};
use cutline_config::{TableReader, ValueKind, kind};
use cutline_report::report::PaperValue;

/// Expectation of a rule, in messages.
const RULE: &str =
    "a rule: \"above\", \"below\", \"at-least\", \"at-most\", \"equals\", or \"from\" and \"to\"";

/// The claims of a figure. A rule is needed if something is run for it.
pub(crate) fn read_claims(reader: &TableReader<'_>, names: Names<'_>, needs_rule: bool) -> Vec<ClaimData> {
    let mut claims = Vec::new();
    for template in reader.required_tables("claims") {
        let tables = repeat(&template, names.rows);
        let read = |table| claim(&template.replaced_by(table), names, needs_rule);
        claims.extend(tables.iter().filter_map(read));
    }
    claims
}

fn claim(reader: &TableReader<'_>, names: Names<'_>, needs_rule: bool) -> Option<ClaimData> {
    let text = |key: &str| reader.or(key, &kind::text(), String::new());
    let (id, statement) = (reader.required("id", &kind::text()), reader.required("text", &kind::text()));
    let paper = reader.optional("paper", &paper_kind());
    let (unit, note) = (text("unit"), text("note"));
    let is_check = reader.or("check", &kind::flag(), false);
    let expectation = expectation::read(reader);
    if needs_rule && !expectation::is_given(reader) {
        reader.lacks("above", RULE);
    }
    let quantity = QuantityText::read(reader, names);
    check_experiment(reader, id.as_deref(), names, quantity.is_given());
    let quantity = if quantity.is_given() { quantity.resolve(reader) } else { None };
    reader.finish();
    let place = reader.place();
    Some(ClaimData { id: id?, place, text: statement?, paper, unit, note, is_check, expectation, quantity })
}

/// Reports that the experiment in the id of a claim is not one of its figure.
fn check_experiment(reader: &TableReader<'_>, id: Option<&str>, names: Names<'_>, is_measured: bool) {
    let Some((experiment, _)) = id.and_then(|id| id.split_once('.')) else { return };
    if is_measured && !names.experiments.is_empty() && !names.experiments.iter().any(|one| one == experiment)
    {
        let known = names.experiments.join(", ");
        reader.refuse(
            "id",
            &format!("the figure does not list the experiment {experiment:?}; it lists {known}"),
        );
    }
}

/// The value of a paper: a number, or words.
fn paper_kind() -> ValueKind<PaperValue> {
    kind::number().map(PaperValue::Number).or(kind::text().map(PaperValue::Text))
}
