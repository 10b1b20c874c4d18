//! The document of `cutline run --json` and `cutline lab run --json`: rows of the tables, grouped by run.

use crate::column::{CellKind, Column, Row};
use crate::groups::GroupDocument;
use crate::rows::{FlowRow, QueueRow, TimingRow};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The measurements of a scenario's runs.
#[derive(Serialize, JsonSchema)]
pub struct RunsDocument<'r> {
    /// The scenario's name.
    pub name: String,
    /// The version of Cutline; in the laboratory, also the variant of the kernel's TCP.
    pub version: String,
    /// The seeds of the replications.
    pub seeds: Vec<u64>,
    /// The folder of the results; null if nothing is stored.
    pub results_dir: Option<PathBuf>,
    /// The runs that finished.
    pub runs: Vec<RunDocument<'r>>,
}

/// One run.
#[derive(Serialize, JsonSchema)]
pub struct RunDocument<'r> {
    /// The label of the sweep's point; `base` without a sweep.
    pub point: String,
    /// The values of the swept keys at this point, by path.
    pub settings: BTreeMap<String, String>,
    /// The seed of the run.
    pub seed: u64,
    /// The identifier of the run.
    pub run: String,
    /// The measurements of each flow, as in `flows.parquet`.
    pub flows: Vec<RowDocument<'r, FlowRow>>,
    /// The measurements of each group of flows, over all packets of all its flows.
    pub groups: Vec<GroupDocument>,
    /// The measurements of each queue, as in `queues.parquet`.
    pub queues: Vec<RowDocument<'r, QueueRow>>,
    /// The timing of the run, as in `timing.parquet`; only in the laboratory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timing: Option<RowDocument<'r, TimingRow>>,
}

/// A row as a JSON object with a property for each column, except the columns of the run.
pub struct RowDocument<'r, R>(pub &'r R);

impl<R: Row> Serialize for RowDocument<'_, R> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.json().serialize(serializer)
    }
}

impl<R: Row> JsonSchema for RowDocument<'_, R> {
    fn schema_name() -> Cow<'static, str> {
        let table = R::FILE.split('.').next().unwrap_or(R::FILE);
        format!("Row of {table}").into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let columns: Vec<_> = R::columns().into_iter().filter(|column| !column.of_run).collect();
        let names: Vec<_> = columns.iter().map(|column| column.about.name).collect();
        let properties: Map<String, Value> =
            columns.iter().map(|column| (column.about.name.to_owned(), column_schema(column))).collect();
        json_schema!({
            "description": format!("One per {}: the columns of {}, except those that identify the run.", R::ONE_PER, R::FILE),
            "type": "object",
            "properties": properties,
            "required": names,
        })
    }
}

/// Returns the schema of a column's cells.
fn column_schema<R>(column: &Column<R>) -> Value {
    let (name, is_count) = match column.kind {
        CellKind::Text => ("string", false),
        CellKind::Count => ("integer", true),
        CellKind::Flag => ("boolean", false),
        CellKind::Real => ("number", false),
    };
    let kind = if column.optional { json!([name, "null"]) } else { json!(name) };
    let mut schema = json!({ "description": column.about.meaning, "type": kind });
    if is_count {
        schema["minimum"] = json!(0);
    }
    if column.about.unit != "-" && column.kind != CellKind::Flag {
        schema["x-unit"] = json!(column.about.unit);
    }
    schema
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutline_records::schema_of;

    #[test]
    fn the_schema_of_a_row_has_its_columns() {
        let schema = schema_of::<RowDocument<'_, QueueRow>>().to_value();
        let row = QueueRow::default();
        let document = json!(RowDocument(&row));
        let names = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&schema["properties"]), names(&document));
        assert_eq!(schema["properties"]["run"], Value::Null);
        assert_eq!(schema["properties"]["tsq"]["type"], "boolean");
        let drop_ratio =
            json!({ "description": "Packets dropped over packets arrived.", "type": ["number", "null"] });
        assert_eq!(schema["properties"]["drop_ratio"], drop_ratio);
        assert_eq!(schema["properties"]["delay_max_ms"]["x-unit"], "ms");
    }
}
