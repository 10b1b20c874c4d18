//! `cutline plot`: pictures of stored results.

mod open;

use crate::exit::Failure;
use crate::output_file::OutputFile;
use crate::selection_args::SelectionArgs;
use crate::{output, picture_file};
use clap::ValueEnum;
use cutline_analysis::picture::{Picture, PictureKind, PictureRequest};
use cutline_report::chart::{self, Format};
use cutline_text::Printable;
use std::path::{Path, PathBuf};

/// Draw stored results: distributions, courses over time, measures along a sweep, delay against goodput
///
/// Several results are drawn into one picture, so two queues can be compared. Without --kind, the picture is an overview:
/// measures along the sweep, or without a sweep the course over time and the distribution of delays. Where a panel would have too many
/// curves to tell them apart, there is one for each group, or for each value of a swept key; many panels become several pages, which are
/// files `NAME-1.svg`, `NAME-2.svg` and so on, or pages of one PDF.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Results folders written by `cutline run`, or their summary.json
    #[arg(required = true, value_name = "RESULTS")]
    results: Vec<PathBuf>,
    /// Kind of picture
    #[arg(long, value_enum, default_value_t = Kind::Overview)]
    kind: Kind,
    /// The measure, a column of the tables or a quantity of distributions (docs/guide/results.md); may be repeated, each has a
    /// panel. For `cdf` the quantity of a distribution, for `plane` first the horizontal, then the vertical measure
    #[arg(long = "measure", value_name = "MEASURE")]
    measures: Vec<String>,
    /// The swept key on the horizontal axis of `sweep`; for `plane`, the key along which points are joined
    #[arg(long, value_name = "KEY")]
    by: Option<String>,
    #[command(flatten)]
    selection: SelectionArgs,
    /// The picture's file, which ends with .svg, .png or .pdf [default: NAME-KIND.svg]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace the file if it exists
    #[arg(long)]
    force: bool,
    /// Open the picture with the program that the desktop has for it
    #[arg(long)]
    open: bool,
    /// Print the points as one JSON document instead of drawing them
    #[arg(long, conflicts_with_all = ["output", "open", "force"])]
    json: bool,
}

/// Kind of picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// Overview of the results
    Overview,
    /// Distribution of the packets' delays
    Cdf,
    /// Course over time: goodput, delay, queue and drops, or --measure
    Time,
    /// Means over the seeds along a swept key, with 95 % intervals
    Sweep,
    /// Delay against goodput, with a panel for each group
    Plane,
}

const EXAMPLES: &str = "Examples:
  cutline run examples/dumbbell.toml && cutline plot results/dumbbell --open
  cutline plot results/dumbbell --kind cdf --group audio -o delay.pdf
  cutline plot results/dumbbell --kind time --point hint=6 --measure backlog_packets
  cutline plot results/dumbbell results/without --kind sweep --measure q
  cutline plot results/dumbbell --kind plane --json | jq '.panels[].series[].name'";

pub fn execute(args: &Args) -> Result<(), Failure> {
    let picture = args.picture()?;
    if args.json {
        return output::print_json(&picture);
    }
    let file = args.file(&picture.name);
    let format = picture_file::format("--output", &file)?;
    let figures = picture.figures();
    let pages = chart::files(&figures, "plot", format).map_err(|error| Failure::Failed(error.to_string()))?;
    let names = names_of_pages(&file, pages.len());
    for (output, bytes) in create_all(&names, args.force)?.into_iter().zip(&pages) {
        output.write_all(bytes)?;
    }
    for name in &names {
        output::print(&format!("{}\n", Printable(name.display())))?;
    }
    if format != Format::Svg {
        picture_file::warn_of_scripts(&picture_file::texts(&figures));
    }
    if args.open {
        open::all(&names);
    }
    Ok(())
}

impl Args {
    fn picture(&self) -> Result<Picture, Failure> {
        if self.kind == Kind::Overview && (!self.measures.is_empty() || self.by.is_some()) {
            return Err(Failure::Usage(
                "--measure and --by need a --kind: cdf, time, sweep or plane".to_owned(),
            ));
        }
        let request = PictureRequest {
            kind: self.kind.into(),
            measures: self.measures.clone(),
            by: self.by.clone(),
            selection: self.selection.selection(),
        };
        Ok(request.picture(&self.results)?)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.output.clone().unwrap_or_else(|| {
            let kind = self.kind.to_possible_value().expect("no kind is hidden");
            let name: String = name
                .chars()
                .map(|c| if c.is_alphanumeric() || "-_.".contains(c) { c } else { '-' })
                .collect();
            PathBuf::from(format!("{}-{}.svg", name.trim_start_matches(['-', '.']), kind.get_name()))
        })
    }
}

impl From<Kind> for PictureKind {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Overview => Self::Overview,
            Kind::Cdf => Self::Cdf,
            Kind::Time => Self::Time,
            Kind::Sweep => Self::Sweep,
            Kind::Plane => Self::Plane,
        }
    }
}

/// The files of so many pages: `NAME-1.svg`, `NAME-2.svg`, ...; the file itself if there is one page.
fn names_of_pages(file: &Path, pages: usize) -> Vec<PathBuf> {
    if pages == 1 {
        return vec![file.to_owned()];
    }
    let (stem, extension) = (file.file_stem().unwrap_or_default(), file.extension().unwrap_or_default());
    let name = |page: usize| {
        let mut name = stem.to_owned();
        name.push(format!("-{page}."));
        name.push(extension);
        file.with_file_name(name)
    };
    (1..=pages).map(name).collect()
}

/// Creates the files of all pages before the first is written, or none of them.
fn create_all(names: &[PathBuf], force: bool) -> Result<Vec<OutputFile>, Failure> {
    let mut created = Vec::new();
    for name in names {
        match OutputFile::create(name, force) {
            Ok(file) => created.push(file),
            Err(failure) => {
                created.into_iter().for_each(OutputFile::discard);
                return Err(failure);
            }
        }
    }
    Ok(created)
}
