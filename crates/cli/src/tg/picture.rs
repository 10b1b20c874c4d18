//! The picture of `cutline tg rrul`: delay and rates over time.

use crate::exit::Failure;
use crate::output_file::OutputFile;
use crate::picture_file;
use crate::table::number;
use cutline_report::chart::{Axis, Chart, Figure, Format, PointSeries};
use cutline_traffic::responsiveness::{CourseDocument, PROBE, ResponsivenessDocument};
use std::path::PathBuf;

/// Options of the picture.
#[derive(clap::Args)]
pub struct PictureArgs {
    /// Draw delays and rates over time to FILE, which ends in .svg, .png or .pdf
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
}

/// The file of the picture.
pub struct PictureFile {
    file: OutputFile,
    format: Format,
}

impl PictureArgs {
    /// Creates the file, if one is wanted. One that exists is replaced only with `force`.
    pub fn target(&self, force: bool) -> Result<Option<PictureFile>, Failure> {
        let Some(path) = self.plot.as_deref() else { return Ok(None) };
        let format = picture_file::format("--plot", path)?;
        Ok(Some(PictureFile { file: OutputFile::create(path, force)?, format }))
    }
}

impl PictureFile {
    /// Draws the picture.
    pub fn draw(self, document: &ResponsivenessDocument) -> Result<(), Failure> {
        let figure = figure(document);
        if self.format != Format::Svg {
            picture_file::warn_of_scripts(&picture_file::texts(std::slice::from_ref(&figure)));
        }
        let drawn = figure.file("rrul", self.format);
        let drawn =
            drawn.map_err(|error| Failure::Failed(format!("the picture cannot be drawn: {error}")))?;
        self.file.write_all(&drawn)
    }
}

/// Returns delay and rates over time, with a line where the load begins.
fn figure(document: &ResponsivenessDocument) -> Figure {
    let panel = |title: &str, unit: &str, of: fn(&CourseDocument) -> Option<f64>| {
        let chart = Chart::new(title)
            .x(Axis::linear("Time, s").from(0.0))
            .y(Axis::linear(unit).from(0.0))
            .vline(document.idle_s, "load begins");
        document.classes.iter().fold(chart, |chart, class| {
            let points = class.intervals.iter().filter_map(|at| Some((at.from_s, of(at)?)));
            chart.plot(PointSeries::new(&class.name, points))
        })
    };
    let charts = [
        panel("Mean round-trip time of probes", "ms", |at| at.round_trip_ms),
        panel("TCP to the receiver", "Mbit/s", |at| Some(at.forward_bps * 1e-6)),
        panel("TCP from the receiver", "Mbit/s", |at| Some(at.reverse_bps * 1e-6)),
    ];
    let figure = Figure::grid(format!("Delay under load, {}", document.receiver), 1, charts);
    let probes = format!(
        "Probes are datagrams of {PROBE} payload. A round-trip time is the sum of the mean delays of both directions in an interval."
    );
    let figure = figure.note(probes);
    match (&document.grade, document.added_ms) {
        (Some(grade), Some(added)) => {
            figure.subtitle(format!("Grade {grade}: load adds up to {} ms to a round trip", number(added)))
        }
        _ => figure,
    }
}
