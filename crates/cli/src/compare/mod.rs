//! `cutline compare`: compares two sets of results.

mod points;

use crate::columns::{quantities, unknown};
use crate::exit::Failure;
use crate::output;
use crate::stored::{self, Selection};
use crate::table::{Table, number};
use cutline_report::stats::{Comparison, Estimate, Pairing};
use cutline_results::{
    FlowRow, QueueRow, SubjectKind, Summary, Values, group_measures, group_values, queue_measures,
    queue_values,
};
use cutline_text::Printable;
use schemars::JsonSchema;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Compare two sets of results: A - B with 95 % confidence intervals
///
/// Points are matched by the values of the swept keys, however they are written, and also where one side has a key in its file that the
/// other side sweeps; groups and queues are matched by name. If both sides have the same seeds, the difference is
/// taken seed by seed; otherwise Welch's interval is used. The table has the measures that differ, whose interval excludes zero; --all
/// adds the others. With --measure it has these measures, whether they differ or not, and a star marks those that do.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The first results: a results folder, or its summary.json
    a: PathBuf,
    /// The second results
    b: PathBuf,
    #[command(flatten)]
    selection: Selection,
    /// Show only this measure, a column of the tables (docs/guide/results.md); may be repeated
    #[arg(long = "measure", value_name = "MEASURE")]
    measures: Vec<String>,
    /// Show also the measures that do not differ
    #[arg(long)]
    all: bool,
    /// Print one JSON document instead of a table
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "Examples:
  cutline run examples/dumbbell.toml --seeds 10
  cutline run examples/dumbbell.toml --seeds 10 --set name=without --set dumbbell.queue.tsq=false
  cutline compare results/dumbbell results/without
  cutline compare results/dumbbell results/without --group audio --measure q --measure loss_ratio
  cutline plot results/dumbbell results/without --kind sweep --measure q --open   # the same as a picture";

pub fn execute(args: &Args) -> Result<(), Failure> {
    let known = quantities::<FlowRow, QueueRow>();
    if let Some(measure) = args.measures.iter().find(|name| !known.contains(&name.as_str())) {
        return Err(unknown("a column of flows or queues", measure, &known));
    }
    let (a, mut b) = (read(&args.a, &args.measures)?, read(&args.b, &args.measures)?);
    points::name_alike(&a, &mut b);
    let (a, b) = (a.values, b.values);
    let mut matched = matched(&a, &b);
    if matched.is_empty() {
        return Err(Failure::Failed(nothing_matches(args, &a, &b)));
    }
    args.select(&mut matched)?;
    if args.json {
        let measures = matched.iter().map(ComparedMeasure::from).collect();
        return output::print_json(&ComparisonDocument { a: args.a.clone(), b: args.b.clone(), measures });
    }
    output::print_wrapped(&render(&matched, args))
}

impl Args {
    /// Leaves the groups, points and measures that are selected.
    fn select(&self, matched: &mut Vec<Matched<'_>>) -> Result<(), Failure> {
        let names: Vec<_> = matched.iter().map(|one| Arc::clone(&one.values.subject.name)).collect();
        self.selection.check_groups(&distinct(names))?;
        let labels = distinct(matched.iter().map(|one| &*one.values.subject.point));
        self.selection.check_points(&self.a, &labels)?;
        matched.retain(|Matched { values, .. }| {
            self.selection.has_group(&values.subject.name) && self.selection.has_point(&values.subject.point)
        });
        let measured = distinct(matched.iter().map(|one| one.values.measure));
        if let Some(absent) = self.measures.iter().find(|name| !measured.contains(&name.as_str())) {
            return Err(Failure::Usage(format!(
                "--measure {}: these results have no values of it; they have: {}",
                Printable(absent),
                measured.join(", ")
            )));
        }
        matched.retain(|one| {
            self.measures.is_empty() || self.measures.iter().any(|name| name == one.values.measure)
        });
        Ok(())
    }
}

/// Each once, in the order in which they come.
fn distinct<T: PartialEq>(all: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut found = Vec::new();
    for one in all {
        if !found.contains(&one) {
            found.push(one);
        }
    }
    found
}

/// One side of a comparison.
struct Measured {
    summary: Summary,
    values: Vec<Values>,
}

/// Reads the measures of a results folder, or of the folder of a summary: those that are usual, and the columns that are asked for.
fn read(path: &Path, columns: &[String]) -> Result<Measured, Failure> {
    let (_, store, summary) = stored::open(path)?;
    let (flows, queues): (Vec<FlowRow>, Vec<QueueRow>) = (store.read()?, store.read()?);
    let mut values = group_measures(&flows);
    values.extend(queue_measures(&queues));
    for column in columns {
        let of_column = [group_values(&flows, column), queue_values(&queues, column)].concat();
        let is_new =
            |one: &Values| !values.iter().any(|old| old.subject == one.subject && old.measure == one.measure);
        let new: Vec<Values> = of_column.into_iter().filter(is_new).collect();
        values.extend(new);
    }
    Ok(Measured { summary, values })
}

/// A measure that both sides have, and its comparison.
struct Matched<'m> {
    values: &'m Values,
    comparison: Comparison,
}

/// Returns the measures that both sides have, in the order of `a`.
fn matched<'m>(a: &'m [Values], b: &[Values]) -> Vec<Matched<'m>> {
    let partner = |values: &'m Values| {
        let same = |other: &&Values| other.subject == values.subject && other.measure == values.measure;
        let comparison = Comparison::new(&values.by_seed, &b.iter().find(same)?.by_seed)?;
        Some(Matched { values, comparison })
    };
    a.iter().filter_map(partner).collect()
}

fn nothing_matches(args: &Args, a: &[Values], b: &[Values]) -> String {
    let points = |side: &[Values]| {
        let points: std::collections::BTreeSet<_> =
            side.iter().map(|values| &*values.subject.point).collect();
        Printable(points.into_iter().take(5).collect::<Vec<_>>().join(", "))
    };
    format!(
        "the results have no point and group in common: {} has the points {}; {} has the points {}",
        Printable(args.a.display()),
        points(a),
        Printable(args.b.display()),
        points(b)
    )
}

fn render(matched: &[Matched<'_>], args: &Args) -> String {
    let head = ["point", "of", "measure", "A", "B", "A - B", "A / B", "95 % interval of A - B", ""];
    let mut table = Table::new(3, &head);
    // Without intervals nothing can be said to differ.
    let shows_all =
        args.all || !args.measures.is_empty() || matched.iter().all(|one| one.comparison.interval.is_none());
    for Matched { values, comparison } in matched {
        if !shows_all && !comparison.is_significant() {
            continue;
        }
        let subject = &values.subject;
        let words = [&*subject.point, &*subject.name, values.measure].map(str::to_owned);
        table.add(words.into_iter().chain(cells(comparison)).collect());
    }
    let equal = matched.iter().filter(|one| !one.comparison.is_significant()).count();
    let rest = match (shows_all, equal) {
        (true, _) | (_, 0) => String::new(),
        (false, 1) => "\n1 measure does not differ; --all shows it\n".to_owned(),
        (false, _) => format!("\n{equal} measures do not differ; --all shows them\n"),
    };
    let pairing = match matched[0].comparison.pairing {
        Pairing::Paired => "both sides have the same seeds: compared seed by seed",
        Pairing::Welch => "the seeds differ: compared by Welch's interval",
    };
    let (a, b) = (Printable(args.a.display()), Printable(args.b.display()));
    let table = if table.is_empty() { "nothing differs\n".to_owned() } else { table.render() };
    format!("A = {a}, B = {b}\n{pairing}; * if the interval excludes zero\n\n{table}{rest}")
}

fn cells(comparison: &Comparison) -> [String; 6] {
    let Comparison { left, right, difference, interval, .. } = comparison;
    let ratio = left.mean / right.mean;
    [
        number(left.mean),
        number(right.mean),
        number(*difference),
        if ratio.is_finite() { format!("{ratio:.3}") } else { "-".to_owned() },
        interval.map_or_else(|| "-".to_owned(), |(low, high)| format!("{} .. {}", number(low), number(high))),
        if comparison.is_significant() { "*" } else { "" }.to_owned(),
    ]
}

/// The comparison of two sets of results.
#[derive(Serialize, JsonSchema)]
pub struct ComparisonDocument<'m> {
    /// The folder of the first results, A.
    a: PathBuf,
    /// The folder of the second results, B.
    b: PathBuf,
    /// The measures that both have.
    measures: Vec<ComparedMeasure<'m>>,
}

/// A measure on both sides. Its unit is the last word of its name.
#[derive(Serialize, JsonSchema)]
struct ComparedMeasure<'m> {
    /// The label of the sweep's point.
    point: &'m str,
    /// The subject of the measure.
    kind: Kind,
    /// The name of the group, or of the link behind the queue.
    name: &'m str,
    /// The column of the tables.
    measure: &'m str,
    /// The measure in A.
    a: Side,
    /// The measure in B.
    b: Side,
    /// The difference of the means, A - B.
    difference: f64,
    /// The ends of the 95 % confidence interval of the difference; null if there are too few seeds.
    interval: Option<(f64, f64)>,
    /// Pairing of the replications for the interval.
    pairing: PairingName,
    /// True if the interval excludes zero.
    significant: bool,
}

/// The subject of a measure.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Kind {
    /// A group of flows.
    Group,
    /// A queue.
    Queue,
}

/// Pairing of the replications for an interval.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum PairingName {
    /// Seed by seed: both sides have the same seeds.
    Paired,
    /// By Welch's interval: the seeds differ.
    Welch,
}

/// A mean over seeds.
#[derive(Serialize, JsonSchema)]
struct Side {
    /// The mean.
    mean: f64,
    /// The ends of its 95 % confidence interval; null for a single seed.
    interval: Option<(f64, f64)>,
    /// The number of seeds.
    n: usize,
}

impl<'m> From<&Matched<'m>> for ComparedMeasure<'m> {
    fn from(matched: &Matched<'m>) -> Self {
        let Matched { values, comparison } = matched;
        Self {
            point: &values.subject.point,
            kind: match values.subject.kind {
                SubjectKind::Group => Kind::Group,
                SubjectKind::Queue => Kind::Queue,
            },
            name: &values.subject.name,
            measure: values.measure,
            a: (&comparison.left).into(),
            b: (&comparison.right).into(),
            difference: comparison.difference,
            interval: comparison.interval,
            pairing: match comparison.pairing {
                Pairing::Paired => PairingName::Paired,
                Pairing::Welch => PairingName::Welch,
            },
            significant: comparison.is_significant(),
        }
    }
}

impl From<&Estimate> for Side {
    fn from(estimate: &Estimate) -> Self {
        Self { mean: estimate.mean, interval: estimate.interval, n: estimate.n }
    }
}
