//! Figures and charts as data.

use super::axis::Axis;
use super::mark::{At, Mark, Reference};

/// One or more charts under one title, in a grid.
#[derive(Clone, Debug)]
pub struct Figure {
    pub(crate) title: Option<String>,
    pub(crate) subtitle: Option<String>,
    pub(crate) panels: Vec<Chart>,
    pub(crate) columns: usize,
    pub(crate) legend: Legend,
    pub(crate) notes: Vec<String>,
}

/// One pair of axes and what is drawn between them.
#[derive(Clone, Debug)]
pub struct Chart {
    pub(crate) title: String,
    pub(crate) subtitle: Option<String>,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    pub(crate) marks: Vec<Mark>,
}

/// Where series are named.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Legend {
    /// In rows above the panels, once for the whole figure. Nothing where there is one series only.
    #[default]
    Top,
    /// On the lines, in their colours: at the right end, and for steps beside the middle.
    Direct,
}

impl Figure {
    /// A figure of one chart.
    pub fn of(chart: Chart) -> Self {
        Self {
            title: None,
            subtitle: None,
            panels: vec![chart],
            columns: 1,
            legend: Legend::Top,
            notes: Vec::new(),
        }
    }

    /// Charts in rows of `columns`, under one title, with one legend.
    pub fn grid(title: impl Into<String>, columns: usize, charts: impl IntoIterator<Item = Chart>) -> Self {
        let panels: Vec<Chart> = charts.into_iter().collect();
        let columns = columns.clamp(1, panels.len().max(1));
        let title = Some(title.into());
        Self { title, subtitle: None, panels, columns, legend: Legend::Top, notes: Vec::new() }
    }

    /// A line under the title.
    pub fn subtitle(self, text: impl Into<String>) -> Self {
        Self { subtitle: Some(text.into()), ..self }
    }

    /// Where series are named.
    pub fn legend(self, legend: Legend) -> Self {
        Self { legend, ..self }
    }

    /// A remark under the charts, such as where the numbers are from.
    pub fn note(mut self, text: impl Into<String>) -> Self {
        self.notes.push(text.into());
        self
    }

    /// What the figure is called: its own title, or that of its first chart.
    pub fn name(&self) -> &str {
        let first = self.panels.first().map(|panel| panel.title.as_str());
        self.title.as_deref().or(first).unwrap_or_default()
    }
}

impl Chart {
    /// An empty chart. `title` may be empty, where a figure's title says enough.
    pub fn new(title: impl Into<String>) -> Self {
        let (x, y) = (Axis::linear(""), Axis::linear(""));
        Self { title: title.into(), subtitle: None, x, y, marks: Vec::new() }
    }

    /// A line under the title.
    pub fn subtitle(self, text: impl Into<String>) -> Self {
        Self { subtitle: Some(text.into()), ..self }
    }

    /// The horizontal axis.
    pub fn x(self, axis: Axis) -> Self {
        Self { x: axis, ..self }
    }

    /// The vertical axis.
    pub fn y(self, axis: Axis) -> Self {
        Self { y: axis, ..self }
    }

    /// Adds a mark; later ones are drawn over earlier ones.
    pub fn mark(mut self, mark: impl Into<Mark>) -> Self {
        self.marks.push(mark.into());
        self
    }

    /// Adds a labelled horizontal line at `y`.
    pub fn hline(self, y: f64, label: impl Into<String>) -> Self {
        self.mark(Mark::Reference(Reference { label: label.into(), at: At::Y(y) }))
    }

    /// Adds a labelled vertical line at `x`.
    pub fn vline(self, x: f64, label: impl Into<String>) -> Self {
        self.mark(Mark::Reference(Reference { label: label.into(), at: At::X(x) }))
    }

    /// The label of the only reference line of a chart of bars. Bars leave no room for it beside its line, so
    /// that the legend has it.
    pub(crate) fn reference_of_bars(&self) -> Option<&str> {
        let bars = self.marks.iter().any(|mark| matches!(mark, Mark::Bars(_)));
        let mut labels = self.marks.iter().filter_map(|mark| match mark {
            Mark::Reference(reference) => Some(reference.label.as_str()),
            Mark::Line(_) | Mark::Bars(_) => None,
        });
        labels.next().filter(|_| bars && labels.next().is_none())
    }

    /// Every x that the horizontal axis should show.
    pub(crate) fn xs(&self) -> impl Iterator<Item = f64> + '_ {
        let points = self.marks.iter().filter_map(Mark::series).flat_map(|(_, points)| points);
        points.map(|p| p.x).chain(self.references(|at| if let At::X(x) = at { Some(x) } else { None }))
    }

    /// Every y that the vertical axis should show, ends of intervals and the foot of bars among them.
    pub(crate) fn ys(&self) -> impl Iterator<Item = f64> + '_ {
        let points = self.marks.iter().filter_map(Mark::series).flat_map(|(_, points)| points);
        let bars = self.marks.iter().any(|mark| matches!(mark, Mark::Bars(_)));
        points
            .flat_map(|p| {
                let (low, high) = p.interval.unwrap_or((p.y, p.y));
                [p.y, low, high]
            })
            .chain(self.references(|at| if let At::Y(y) = at { Some(y) } else { None }))
            .chain(bars.then_some(0.0))
    }

    fn references(&self, pick: impl Fn(At) -> Option<f64>) -> impl Iterator<Item = f64> {
        self.marks.iter().filter_map(move |mark| match mark {
            Mark::Reference(reference) => pick(reference.at),
            Mark::Line(_) | Mark::Bars(_) => None,
        })
    }
}
