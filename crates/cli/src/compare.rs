//! `cutline compare`: compares two sets of results.

use crate::exit::Failure;
use crate::output;
use crate::selection_args::SelectionArgs;
use crate::table::{Table, number};
use cutline_analysis::compare::{ComparedValues, ResultsComparison};
use cutline_report::stats::{Comparison, Pairing};
use cutline_text::Printable;
use std::path::PathBuf;

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
    selection: SelectionArgs,
    /// Show only this measure, a column of flows.parquet or queues.parquet or a quantity of distributions.parquet
    /// (docs/guide/results.md); may be repeated
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
    let selection = args.selection.selection();
    let comparison = ResultsComparison::read(&args.a, &args.b, &selection, &args.measures)?;
    if args.json {
        return output::print_json(&comparison.document());
    }
    output::print_wrapped(&render(&comparison.measures, args))
}

fn render(matched: &[ComparedValues], args: &Args) -> String {
    let head = ["point", "of", "measure", "A", "B", "A - B", "A / B", "95 % interval of A - B", ""];
    let mut table = Table::new(3, &head);
    // Without intervals no difference is significant.
    let shows_all =
        args.all || !args.measures.is_empty() || matched.iter().all(|one| one.comparison.interval.is_none());
    for ComparedValues { values, comparison } in matched {
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
