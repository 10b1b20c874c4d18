//! `cutline plot`: pictures of stored results.

mod cdf;
mod means;
mod measure;
mod open;
mod picture;
mod source;
mod time;

use crate::exit::Failure;
use crate::output_file::OutputFile;
use crate::stored::Selection;
use crate::{output, picture_file};
use clap::ValueEnum;
use cutline_report::chart::{self, Format};
use cutline_text::Printable;
use means::Means;
use picture::Panel;
pub use picture::Picture;
use source::Source;
use std::path::{Path, PathBuf};
use time::Courses;

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
    /// Kind of plot
    #[arg(long, value_enum, default_value_t = Kind::Overview)]
    kind: Kind,
    /// The measure, a column of the tables (docs/guide/results.md); may be repeated, each has a panel. For `cdf` the
    /// quantity of a distribution, for `plane` first the horizontal, then the vertical measure
    #[arg(long = "measure", value_name = "MEASURE")]
    measures: Vec<String>,
    /// The swept key on the horizontal axis of `sweep`; for `plane`, the key along which points are joined
    #[arg(long, value_name = "KEY")]
    by: Option<String>,
    #[command(flatten)]
    selection: Selection,
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

/// Kind of plot.
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
    let sources = source::open_all(&args.results, &args.selection)?;
    let picture = args.picture(&sources)?;
    picture.check()?;
    if args.json {
        return output::print_json(&picture);
    }
    let file = args.file(&sources[0]);
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
    fn picture(&self, sources: &[Source]) -> Result<Picture, Failure> {
        let (panels, notes) = match self.kind {
            Kind::Overview => self.overview(sources)?,
            Kind::Cdf => (self.cdf(sources)?, Vec::new()),
            Kind::Time => self.time(sources)?,
            Kind::Sweep => self.sweep(sources)?,
            Kind::Plane => self.plane(sources)?,
        };
        let titles: Vec<&str> = sources.iter().map(|source| source.title.as_str()).collect();
        let title = if titles.iter().all(|title| *title == titles[0]) {
            titles[0].to_owned()
        } else {
            sources.iter().map(|source| source.name.as_str()).collect::<Vec<_>>().join(", ")
        };
        let panels =
            panels.into_iter().filter(|panel| !panel.series.is_empty()).flat_map(Panel::split).collect();
        let results = sources.iter().map(|source| source.folder.clone()).collect();
        let mut picture = Picture { title, results, panels, notes: Vec::new() };
        picture.notes = notes.into_iter().map(|note| note.text(picture.has_intervals())).collect();
        let constant = source::constants_in_words(sources);
        if !constant.is_empty() {
            picture.notes.push(format!("All with {constant}."));
        }
        Ok(picture)
    }

    fn overview(&self, sources: &[Source]) -> Result<(Vec<Panel>, Vec<Note>), Failure> {
        if !self.measures.is_empty() || self.by.is_some() {
            return Err(Failure::Usage(
                "--measure and --by need a --kind: cdf, time, sweep or plane".to_owned(),
            ));
        }
        if sources.iter().any(|source| source.points.len() > 1) {
            return self.sweep(sources);
        }
        let (mut panels, notes) = self.time(sources)?;
        panels.extend(self.cdf(sources)?);
        // The packets that are dropped say less than the distribution of the delays.
        panels.retain(|panel| panel.measure != "packets_dropped");
        for panel in panels.iter_mut().filter(|panel| panel.shape == picture::Shape::Line) {
            panel.title.push_str(" over time");
        }
        Ok((panels, notes))
    }

    fn cdf(&self, sources: &[Source]) -> Result<Vec<Panel>, Failure> {
        let usual = ["queuing_ms".to_owned()];
        let quantities = if self.measures.is_empty() { &usual[..] } else { &self.measures };
        quantities.iter().map(|quantity| cdf::panel(sources, &self.selection, quantity)).collect()
    }

    fn time(&self, sources: &[Source]) -> Result<(Vec<Panel>, Vec<Note>), Failure> {
        let courses = Courses::read(sources)?;
        self.selection.check_groups(&courses.names())?;
        let panel = |measure: &str| courses.panel(&self.selection, measure);
        let panels = self.or_usual(&time::USUAL).into_iter().map(panel).collect::<Result<Vec<_>, _>>()?;
        let warm_up = sources.iter().map(|source| source.warm_up_s).fold(0.0, f64::max);
        let mut notes = vec![Note {
            text: "Sums over the flows of a group; of delays, means over its packets.".to_owned(),
            with_intervals: "Bands are 95 % intervals of the mean over the seeds.",
        }];
        if warm_up > 0.0 {
            let text = format!("The first {warm_up} s are the warm-up, which the other measures leave out.");
            notes.push(Note { text, with_intervals: "" });
        }
        Ok((panels, notes))
    }

    fn sweep(&self, sources: &[Source]) -> Result<(Vec<Panel>, Vec<Note>), Failure> {
        let means = Means::read(sources)?;
        self.selection.check_groups(&means.names())?;
        let panel = |measure: &str| means.along(&self.selection, measure, self.by.as_deref());
        let panels = self.or_usual(&means::USUAL).into_iter().map(panel).collect::<Result<_, _>>()?;
        Ok((panels, vec![Note::seeds()]))
    }

    fn plane(&self, sources: &[Source]) -> Result<(Vec<Panel>, Vec<Note>), Failure> {
        let (x, y) = match &*self.measures {
            [] => ("queuing_p99_ms", "goodput_bps"),
            [x, y] => (x.as_str(), y.as_str()),
            _ => {
                return Err(Failure::Usage(
                    "--kind plane needs two measures, first the horizontal, then the vertical one".to_owned(),
                ));
            }
        };
        let means = Means::read(sources)?;
        self.selection.check_groups(&means.names())?;
        let panels = means.plane(&self.selection, x, y, self.by.as_deref())?;
        Ok((panels, vec![Note::seeds()]))
    }

    fn or_usual<'m>(&'m self, usual: &[&'m str]) -> Vec<&'m str> {
        if self.measures.is_empty() {
            usual.to_vec()
        } else {
            self.measures.iter().map(String::as_str).collect()
        }
    }

    fn file(&self, first: &Source) -> PathBuf {
        self.output.clone().unwrap_or_else(|| {
            let kind = self.kind.to_possible_value().expect("no kind is hidden");
            let name: String = first
                .name
                .chars()
                .map(|c| if c.is_alphanumeric() || "-_.".contains(c) { c } else { '-' })
                .collect();
            PathBuf::from(format!("{}-{}.svg", name.trim_start_matches(['-', '.']), kind.get_name()))
        })
    }
}

/// A remark under the charts.
struct Note {
    text: String,
    /// Addition to the note if a point has an interval.
    with_intervals: &'static str,
}

impl Note {
    fn seeds() -> Self {
        let text = "Means over the flows of a group and over the seeds.".to_owned();
        Self { text, with_intervals: "Whiskers are 95 % intervals." }
    }

    fn text(self, has_intervals: bool) -> String {
        let rest = if has_intervals { self.with_intervals } else { "" };
        format!("{} {rest}", self.text).trim_end().to_owned()
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

impl Picture {
    /// Fails if there is nothing to see.
    fn check(&self) -> Result<(), Failure> {
        if self.panels.is_empty() {
            return Err(Failure::Failed(
                "there is nothing to draw: these flows have no stored values of this kind; `series` and `distributions` of a \
                 flow say what is stored (docs/guide/scenario.md)"
                    .to_owned(),
            ));
        }
        Ok(())
    }
}
