//! Pictures of stored results: distributions, courses over time, measures along a sweep, one measure against another.
//!
//! A [`Picture`] is data, which is printed as JSON or drawn ([`Picture::figures`]). Several results come into one picture, so
//! two queues can be compared. Where a panel would have too many curves to tell them apart, there is one for each group, or
//! for each value of a swept key; many panels become several pages.

mod cdf;
mod means;
mod measure;
mod panels;
mod source;
mod time;

use crate::{AnalysisError, Selection};
use means::Means;
pub use panels::{Dot, Panel, Picture, Series, Shape};
pub use source::PictureSource;
use source::Source;
use std::path::PathBuf;
use time::Courses;

/// Kind of a picture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PictureKind {
    /// Measures along the sweep, or without a sweep the course over time and the distribution of delays.
    #[default]
    Overview,
    /// Distribution of the packets' delays.
    Cdf,
    /// Course over time.
    Time,
    /// Means over the seeds along a swept key, with 95 % intervals.
    Sweep,
    /// Two measures against each other, with a panel for each group.
    Plane,
}

/// Contents of a picture.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PictureRequest {
    /// Its kind.
    pub kind: PictureKind,
    /// The measures, columns of the tables; empty for the usual ones of the kind. For `Cdf` the quantities of distributions,
    /// for `Plane` first the horizontal, then the vertical one. An overview has none.
    pub measures: Vec<String>,
    /// The swept key on the horizontal axis of `Sweep`; for `Plane` the key along which points are joined. `None` for the one
    /// with the most values.
    pub by: Option<String>,
    /// The groups and points.
    pub selection: Selection,
}

impl PictureRequest {
    /// Returns the picture of the results in these folders.
    ///
    /// # Errors
    /// When results cannot be read, have nothing of this kind, or nothing of the selection.
    pub fn picture(&self, results: &[PathBuf]) -> Result<Picture, AnalysisError> {
        let sources: Vec<PictureSource<'_>> =
            results.iter().map(|path| PictureSource::Folder(path)).collect();
        self.picture_of(&sources)
    }

    /// Returns the picture of results that are stored or in memory.
    ///
    /// # Errors
    /// As [`picture`](Self::picture).
    pub fn picture_of(&self, results: &[PictureSource<'_>]) -> Result<Picture, AnalysisError> {
        let sources = source::open_all(results, &self.selection)?;
        let picture = self.of(&sources)?;
        if picture.panels.is_empty() {
            return Err(AnalysisError::Nothing(
                "there is nothing to draw: these flows have no stored values of this kind; `series` and `distributions` of a \
                 flow say what is stored (docs/guide/scenario.md)"
                    .to_owned(),
            ));
        }
        Ok(picture)
    }

    fn of(&self, sources: &[Source<'_>]) -> Result<Picture, AnalysisError> {
        let (panels, notes) = match self.kind {
            PictureKind::Overview => self.overview(sources)?,
            PictureKind::Cdf => (self.cdf(sources)?, Vec::new()),
            PictureKind::Time => self.time(sources)?,
            PictureKind::Sweep => self.sweep(sources)?,
            PictureKind::Plane => self.plane(sources)?,
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
        let name = sources.first().map_or_else(String::new, |source| source.name.clone());
        let mut picture = Picture { name, title, results, panels, notes: Vec::new() };
        picture.notes = notes.into_iter().map(|note| note.text(picture.draws_intervals())).collect();
        if picture.leaves_intervals_out() {
            let note = "Where a panel has more than four curves, the 95 % intervals are left out: --json prints them.";
            picture.notes.push(note.to_owned());
        }
        let constant = source::constants_in_words(sources);
        if !constant.is_empty() {
            picture.notes.push(format!("All with {constant}."));
        }
        Ok(picture)
    }

    fn overview(&self, sources: &[Source<'_>]) -> Result<(Vec<Panel>, Vec<Note>), AnalysisError> {
        if !self.measures.is_empty() || self.by.is_some() {
            let message =
                " overview takes no measure and no key: choose cdf, time, sweep or plane".to_owned();
            return Err(AnalysisError::Choice { option: "kind", message });
        }
        if sources.iter().any(|source| source.points.len() > 1) {
            return self.sweep(sources);
        }
        let (mut panels, notes) = self.time(sources)?;
        panels.extend(self.cdf(sources)?);
        // Dropped packets are less informative than the distribution of the delays.
        panels.retain(|panel| panel.measure != "packets_dropped");
        for panel in panels.iter_mut().filter(|panel| panel.shape == Shape::Line) {
            panel.title.push_str(" over time");
        }
        Ok((panels, notes))
    }

    fn cdf(&self, sources: &[Source<'_>]) -> Result<Vec<Panel>, AnalysisError> {
        let usual = ["queuing_ms".to_owned()];
        let quantities = if self.measures.is_empty() { &usual[..] } else { &self.measures };
        quantities.iter().map(|quantity| cdf::panel(sources, &self.selection, quantity)).collect()
    }

    fn time(&self, sources: &[Source<'_>]) -> Result<(Vec<Panel>, Vec<Note>), AnalysisError> {
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

    fn sweep(&self, sources: &[Source<'_>]) -> Result<(Vec<Panel>, Vec<Note>), AnalysisError> {
        let means = Means::read(sources)?;
        self.selection.check_groups(&means.names())?;
        let panel = |measure: &str| means.along(&self.selection, measure, self.by.as_deref());
        let panels = self.or_usual(&means::USUAL).into_iter().map(panel).collect::<Result<_, _>>()?;
        Ok((panels, vec![Note::seeds()]))
    }

    fn plane(&self, sources: &[Source<'_>]) -> Result<(Vec<Panel>, Vec<Note>), AnalysisError> {
        let (x, y) = match &*self.measures {
            [] => ("queuing_p99_ms", "goodput_bps"),
            [x, y] => (x.as_str(), y.as_str()),
            _ => {
                let message =
                    " plane needs two measures, first the horizontal, then the vertical one".to_owned();
                return Err(AnalysisError::Choice { option: "kind", message });
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
}

/// A remark under the charts.
struct Note {
    text: String,
    /// Suffix of the text if a point has an interval.
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
