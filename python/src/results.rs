//! Results: their tables as Arrow, summaries and comparisons, as the commands compute them.

use crate::errors;
use crate::table::Batches;
use arrow_array::builder::StringViewBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringViewArray};
use arrow_schema::{DataType, Field, Schema};
use cutline_analysis::compare::{ComparedValues, ResultsComparison};
use cutline_analysis::picture::PictureSource;
use cutline_analysis::summary::{MeanRow, ResultsSummary, SummaryRequest};
use cutline_analysis::{Selection, StoredResults, Tables, needs_distributions};
use cutline_report::stats::{Estimate, Pairing};
use cutline_results::{
    DistributionRow, FlowRow, PointRow, QueueRow, QueueSeriesRow, Row, RunResult, SeriesRow, Store,
    StoreError, SubjectKind, Summary, TimingRow, arrow,
};
use cutline_scenario::execution::{Executed, Rows};
use cutline_scenario::{SweepPoint, saturated_distributions};
use cutline_units::Histogram;
use pyo3::prelude::*;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Results, stored or in memory.
#[pyclass(module = "cutline._native", frozen)]
pub struct Results {
    summary: Summary,
    rows: Rows,
    points: Vec<PointRow>,
}

impl Results {
    /// Returns the results of an execution with these points.
    pub fn executed(executed: Executed, points: &[SweepPoint]) -> Self {
        let Executed { summary, rows, .. } = executed;
        Self { summary, rows, points: points.iter().flat_map(SweepPoint::rows).collect() }
    }

    /// Returns a table as Arrow's batches.
    fn batches<R: Row>(&self, in_memory: fn(&RunResult) -> &[R]) -> Result<Batches, StoreError> {
        let batches = match &self.rows {
            Rows::Stored(store) => store.read_batches::<R>()?,
            Rows::InMemory(rows) => vec![arrow::batch(in_memory(rows))],
        };
        Ok(Batches::new(arrow::schema::<R>(), batches))
    }

    /// Returns the tables that summaries and comparisons of these measures are about.
    fn tables(&self, measures: &[String]) -> Result<Tables, StoreError> {
        let (flows, queues) = match &self.rows {
            Rows::Stored(store) => (store.read()?, store.read()?),
            Rows::InMemory(rows) => (rows.flows.clone(), rows.queues.clone()),
        };
        let distributions = match &self.rows {
            _ if !needs_distributions(measures) => Vec::new(),
            Rows::Stored(store) => store.read()?,
            Rows::InMemory(rows) => rows.distributions.clone(),
        };
        let (place, summary) = (self.place(), self.summary.clone());
        Ok(Tables { place, summary, flows, queues, distributions, points: self.points.clone() })
    }

    /// Returns the results as the source of a picture.
    pub fn picture_source(&self) -> PictureSource<'_> {
        match &self.rows {
            Rows::Stored(store) => PictureSource::Folder(store.root()),
            Rows::InMemory(rows) => {
                PictureSource::Memory { summary: &self.summary, points: &self.points, rows }
            }
        }
    }

    fn place(&self) -> PathBuf {
        match &self.rows {
            Rows::Stored(store) => store.root().to_owned(),
            Rows::InMemory(_) => self.summary.name.clone().into(),
        }
    }

    fn store(&self) -> Option<&Store> {
        if let Rows::Stored(store) = &self.rows { Some(store) } else { None }
    }
}

fn selection(groups: Vec<String>, points: Vec<String>) -> Selection {
    Selection { groups, points }
}

#[pymethods]
impl Results {
    /// Opens the results in a folder, or beside a summary.
    #[staticmethod]
    fn open(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        py.detach(|| {
            let StoredResults { store, summary, .. } =
                StoredResults::open(&path).map_err(errors::analysis)?;
            // An experiment without a finished run has no tables.
            let points =
                if summary.files.contains_key(PointRow::FILE) { store.read() } else { Ok(Vec::new()) };
            let points = points.map_err(|error| errors::store(&error))?;
            Ok(Self { summary, rows: Rows::Stored(store), points })
        })
    }

    /// Returns the summary as JSON.
    fn info(&self) -> String {
        errors::json(&self.summary)
    }

    /// Returns the folder; `None` for results in memory.
    fn folder(&self) -> Option<&Path> {
        self.store().map(Store::root)
    }

    /// Returns a table by the name of its file, without the ending.
    fn table(&self, py: Python<'_>, name: &str) -> PyResult<Batches> {
        let read = || match name {
            "flows" => self.batches::<FlowRow>(|rows| &rows.flows),
            "queues" => self.batches::<QueueRow>(|rows| &rows.queues),
            "series" => self.batches::<SeriesRow>(|rows| &rows.series),
            "queue_series" => self.batches::<QueueSeriesRow>(|rows| &rows.queue_series),
            "distributions" => self.batches::<DistributionRow>(|rows| &rows.distributions),
            "timing" => {
                let has_timing =
                    self.store().is_none_or(|_| self.summary.files.contains_key(TimingRow::FILE));
                if has_timing {
                    self.batches::<TimingRow>(|rows| &rows.timing)
                } else {
                    Ok(Batches::new(arrow::schema::<TimingRow>(), Vec::new()))
                }
            }
            _ => Ok(Batches::new(arrow::schema::<PointRow>(), vec![arrow::batch(&self.points)])),
        };
        py.detach(read).map_err(|error| errors::store(&error))
    }

    /// Returns the warnings of distributions with a full bucket, whose percentiles are wrong.
    fn warnings(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let warnings = || match &self.rows {
            Rows::InMemory(rows) => Ok(saturated_distributions(&rows.distributions)),
            Rows::Stored(_) if !self.summary.files.contains_key(DistributionRow::FILE) => Ok(Vec::new()),
            // Columns take less time and memory than rows, and hardly any results have such a bucket.
            Rows::Stored(store) if !store.read_batches::<DistributionRow>()?.iter().any(has_full_bucket) => {
                Ok(Vec::new())
            }
            Rows::Stored(store) => Ok(saturated_distributions(&store.read()?)),
        };
        py.detach(warnings).map_err(|error| errors::store(&error))
    }

    /// Returns the means over replications, with a column for each swept key.
    fn summary(
        &self,
        py: Python<'_>,
        by: Option<Vec<String>>,
        groups: Vec<String>,
        points: Vec<String>,
        measures: Vec<String>,
        confidence: f64,
    ) -> PyResult<Batches> {
        if !(confidence > 0.0 && confidence < 1.0) {
            let message =
                format!("{confidence} is not allowed: expected a number between 0 and 1, such as 0.95");
            return Err(errors::argument("confidence", &message));
        }
        let request = SummaryRequest { by, selection: selection(groups, points), measures, confidence };
        py.detach(|| {
            let tables = self.tables(&request.measures).map_err(|error| errors::store(&error))?;
            Ok(means(&request.summary(&tables).map_err(errors::analysis)?))
        })
    }

    /// Returns the comparison with other results.
    fn compare(
        &self,
        py: Python<'_>,
        other: &Self,
        groups: Vec<String>,
        points: Vec<String>,
        measures: Vec<String>,
    ) -> PyResult<Batches> {
        let selection = selection(groups, points);
        py.detach(|| {
            let read = |results: &Self| results.tables(&measures).map_err(|error| errors::store(&error));
            let (a, b) = (read(self)?, read(other)?);
            let found =
                ResultsComparison::between(&a, &b, &selection, &measures).map_err(errors::analysis)?;
            Ok(differences(&found))
        })
    }
}

/// Returns whether a bucket of a distribution has its largest count.
fn has_full_bucket(distributions: &RecordBatch) -> bool {
    let counts = distributions.column_by_name("count").expect("the table has this column");
    counts.as_primitive::<Int64Type>().values().iter().any(|count| *count >= Histogram::MOST_IN_BUCKET as i64)
}

/// Columns with their names, units and meanings.
#[derive(Default)]
struct Columns {
    fields: Vec<Field>,
    arrays: Vec<ArrayRef>,
}

impl Columns {
    fn add(&mut self, [name, unit, meaning]: [&str; 3], array: impl arrow_array::Array + 'static) {
        let said = [("unit", unit), ("meaning", meaning)].into_iter().filter(|(_, text)| *text != "-");
        let said = said.map(|(key, text)| (key.to_owned(), text.to_owned()));
        let (kind, optional): (DataType, bool) = (array.data_type().clone(), array.is_nullable());
        self.fields
            .push(Field::new(name, kind, optional).with_metadata(said.collect::<arrow_schema::Metadata>()));
        self.arrays.push(Arc::new(array));
    }

    fn batches(self) -> Batches {
        let schema = Arc::new(Schema::new(self.fields));
        let batch = RecordBatch::try_new(schema.clone(), self.arrays);
        Batches::new(schema, vec![batch.expect("every column has a cell for each row")])
    }
}

fn texts<'t>(cells: impl Iterator<Item = Option<&'t str>>) -> StringViewArray {
    let mut builder = StringViewBuilder::new().with_deduplicate_strings();
    cells.for_each(|cell| builder.append_option(cell));
    builder.finish()
}

fn reals(cells: impl Iterator<Item = Option<f64>>) -> Float64Array {
    cells.collect()
}

fn kind(kind: SubjectKind) -> &'static str {
    match kind {
        SubjectKind::Group => "group",
        SubjectKind::Queue => "queue",
    }
}

const UNIT_OF_MEASURE: &str = "unit of the measure";

fn means(found: &ResultsSummary) -> Batches {
    let mut columns = Columns::default();
    let rows = || found.rows.iter();
    for (at, key) in found.keys.iter().enumerate() {
        let values: Vec<Option<&str>> = rows().map(|row| row.place[at].as_deref()).collect();
        let about = [key, "-", "Value of the swept key."];
        let number = |value: &Option<&str>| value.and_then(|value| value.parse::<f64>().ok());
        let whole = |value: &Option<&str>| value.and_then(|value| value.parse::<i64>().ok());
        if values.iter().all(|value| whole(value).is_some()) {
            columns.add(about, values.iter().map(whole).collect::<Int64Array>());
        } else if values.iter().all(|value| number(value).is_some()) {
            columns.add(about, reals(values.iter().map(number)));
        } else {
            columns.add(about, texts(values.into_iter()));
        }
    }
    let text = |of: fn(&MeanRow) -> &str| texts(rows().map(|row| Some(of(row))));
    let real = |of: fn(&Estimate) -> Option<f64>| reals(rows().map(|row| of(&row.estimate)));
    columns.add(["kind", "-", "Subject of the measure: group or queue."], text(|row| kind(row.kind)));
    columns.add(["name", "-", "Name of the group, or of the link behind the queue."], text(|row| &row.name));
    columns.add(
        ["measure", "-", "Column of the tables, or quantity of distributions."],
        text(|row| row.measure),
    );
    columns.add(["unit", "-", "Unit of the measure."], text(|row| row.unit));
    columns.add(["mean", UNIT_OF_MEASURE, "Mean over the seeds."], real(|estimate| Some(estimate.mean)));
    let meaning = "Lower end of the confidence interval; null for a single seed.";
    columns.add(["low", UNIT_OF_MEASURE, meaning], real(|estimate| estimate.interval.map(|(low, _)| low)));
    let meaning = "Upper end of the confidence interval; null for a single seed.";
    columns.add(["high", UNIT_OF_MEASURE, meaning], real(|estimate| estimate.interval.map(|(_, high)| high)));
    let n = rows().map(|row| row.estimate.n as i64).collect::<Vec<_>>();
    columns.add(["n", "-", "Number of seeds."], Int64Array::from(n));
    columns.batches()
}

fn differences(found: &ResultsComparison) -> Batches {
    let mut columns = Columns::default();
    let rows = || found.measures.iter();
    let text = |of: fn(&ComparedValues) -> &str| texts(rows().map(|row| Some(of(row))));
    let real = |of: fn(&ComparedValues) -> Option<f64>| reals(rows().map(of));
    columns.add(["point", "-", "Label of the sweep's point."], text(|row| &row.values.subject.point));
    columns.add(
        ["kind", "-", "Subject of the measure: group or queue."],
        text(|row| kind(row.values.subject.kind)),
    );
    columns.add(
        ["name", "-", "Name of the group, or of the link behind the queue."],
        text(|row| &row.values.subject.name),
    );
    columns.add(
        ["measure", "-", "Column of the tables, or quantity of distributions."],
        text(|row| row.values.measure),
    );
    for (side, of) in [("a", left as fn(&ComparedValues) -> &Estimate), ("b", right)] {
        let estimates = || rows().map(of);
        let name = |what: &str| format!("{side}_{what}");
        columns.add(
            [&name("mean"), UNIT_OF_MEASURE, "Mean over the seeds."],
            reals(estimates().map(|one| Some(one.mean))),
        );
        columns.add(
            [&name("n"), "-", "Number of seeds."],
            Int64Array::from(estimates().map(|one| one.n as i64).collect::<Vec<_>>()),
        );
    }
    columns.add(
        ["difference", UNIT_OF_MEASURE, "Difference of the means, a - b."],
        real(|row| Some(row.comparison.difference)),
    );
    let meaning =
        "Lower end of the 95 % confidence interval of the difference; null if there are too few seeds.";
    columns.add(["low", UNIT_OF_MEASURE, meaning], real(|row| row.comparison.interval.map(|(low, _)| low)));
    let meaning = "Upper end of the 95 % confidence interval of the difference.";
    columns
        .add(["high", UNIT_OF_MEASURE, meaning], real(|row| row.comparison.interval.map(|(_, high)| high)));
    let pairing = |row: &ComparedValues| match row.comparison.pairing {
        Pairing::Paired => "paired",
        Pairing::Welch => "welch",
    };
    columns.add(["pairing", "-", "Pairing of the seeds for the interval: paired or welch."], text(pairing));
    let significant = rows().map(|row| Some(row.comparison.is_significant())).collect::<BooleanArray>();
    columns.add(["significant", "-", "True if the interval excludes zero."], significant);
    columns.batches()
}

fn left(row: &ComparedValues) -> &Estimate {
    &row.comparison.left
}

fn right(row: &ComparedValues) -> &Estimate {
    &row.comparison.right
}
