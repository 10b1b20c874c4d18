//! Figures and charts as data.

use super::axis::{Axis, Scale};
use super::element::{ChartPoint, Element, Join, Reference, ReferencePosition};

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

/// One pair of axes and the elements between them.
#[derive(Clone, Debug)]
pub struct Chart {
    pub(crate) title: String,
    pub(crate) subtitle: Option<String>,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    pub(crate) elements: Vec<Element>,
}

/// Place of the legend.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Legend {
    /// In rows above the panels, once for the whole figure. A single series is not named.
    #[default]
    Top,
    /// On the lines, in their colours: at the right end of a line, beside the middle of a step function.
    Direct,
}

impl Figure {
    /// A figure of one chart.
    pub fn new(chart: Chart) -> Self {
        Self {
            title: None,
            subtitle: None,
            panels: vec![chart],
            columns: 1,
            legend: Legend::Top,
            notes: Vec::new(),
        }
    }

    /// A grid of charts with `columns` charts in each row, under one title, with one legend.
    pub fn grid(title: impl Into<String>, columns: usize, charts: impl IntoIterator<Item = Chart>) -> Self {
        let panels: Vec<Chart> = charts.into_iter().collect();
        let columns = columns.clamp(1, panels.len().max(1));
        let title = Some(title.into());
        Self { title, subtitle: None, panels, columns, legend: Legend::Top, notes: Vec::new() }
    }

    /// Sets the line under the title.
    pub fn subtitle(self, text: impl Into<String>) -> Self {
        Self { subtitle: Some(text.into()), ..self }
    }

    /// Sets the place of the series' names.
    pub fn legend(self, legend: Legend) -> Self {
        Self { legend, ..self }
    }

    /// Adds a remark under the charts, such as the source of the numbers.
    pub fn note(mut self, text: impl Into<String>) -> Self {
        self.notes.push(text.into());
        self
    }

    /// Every x value that the horizontal axis of a panel must include. Panels with the same axis share its range, so that they can be
    /// compared.
    pub(crate) fn xs_of<'f>(&'f self, chart: &'f Chart) -> impl Iterator<Item = f64> + 'f {
        self.panels.iter().filter(|other| other.x == chart.x).flat_map(Chart::xs)
    }

    /// All remarks under the charts.
    pub(crate) fn all_notes(&self) -> Vec<&str> {
        const CUT: &str = "Values beyond the vertical axis are cut off. A triangle at the upper edge marks such values, and the number beside it is the largest of them.";
        let is_cut = self.panels.iter().any(|chart| chart.y.cap.is_some());
        self.notes.iter().map(String::as_str).chain(is_cut.then_some(CUT)).collect()
    }

    /// Returns whether there is nothing to draw: no chart has a value.
    pub fn is_empty(&self) -> bool {
        self.panels.iter().all(Chart::is_empty)
    }

    /// The name of the figure: its own title, or that of its first chart.
    pub fn name(&self) -> &str {
        let first = self.panels.first().map(|panel| panel.title.as_str());
        self.title.as_deref().or(first).unwrap_or_default()
    }
}

impl Chart {
    /// An empty chart. `title` may be empty where the title of the figure is enough.
    pub fn new(title: impl Into<String>) -> Self {
        let (x, y) = (Axis::linear(""), Axis::linear(""));
        Self { title: title.into(), subtitle: None, x, y, elements: Vec::new() }
    }

    /// Sets the line under the title.
    pub fn subtitle(self, text: impl Into<String>) -> Self {
        Self { subtitle: Some(text.into()), ..self }
    }

    /// Sets the horizontal axis.
    pub fn x(self, axis: Axis) -> Self {
        Self { x: axis, ..self }
    }

    /// Sets the vertical axis.
    pub fn y(self, axis: Axis) -> Self {
        Self { y: axis, ..self }
    }

    /// Adds a series of points or bars. Later ones are drawn over earlier ones.
    pub fn plot(mut self, element: impl Into<Element>) -> Self {
        self.elements.push(element.into());
        self
    }

    /// Adds a labelled horizontal line at `y`.
    pub fn hline(self, y: f64, label: impl Into<String>) -> Self {
        self.plot(Element::Reference(Reference { label: label.into(), at: ReferencePosition::Y(y) }))
    }

    /// Adds a labelled vertical line at `x`.
    pub fn vline(self, x: f64, label: impl Into<String>) -> Self {
        self.plot(Element::Reference(Reference { label: label.into(), at: ReferencePosition::X(x) }))
    }

    /// Lets the vertical axis leave out rare values that would flatten the rest, such as a spike at the start. They are marked at the upper
    /// edge. Only for lines on a linear axis whose upper end is not set.
    pub fn cut_spikes(mut self) -> Self {
        if self.y.scale == Scale::Linear && self.y.high.is_none() {
            self.y.cap = self.usual_height();
        }
        self
    }

    /// The height that the usual values of every line have room below; `None` if the others are not much higher, or are no spikes because there
    /// are many of them.
    fn usual_height(&self) -> Option<f64> {
        /// The share of the values of a line that are usual.
        const USUAL: f64 = 0.9;
        /// Least ratio of a value to the others that makes it outstanding.
        const OUTSTANDING: f64 = 2.0;
        /// The room for the usual values.
        const ROOM: f64 = 1.3;
        const FEWEST_VALUES: usize = 20;
        const MOST_SPIKES: usize = 8;
        let mut lines: Vec<&[ChartPoint]> = Vec::new();
        for element in &self.elements {
            match element {
                Element::Line(line) if line.join == Join::Straight => lines.push(&line.points),
                Element::Reference(_) => {}
                Element::Line(_) | Element::Bars(_) => return None,
            }
        }
        let (mut usual, mut largest) = (0.0_f64, 0.0_f64);
        for points in &lines {
            let mut values: Vec<f64> = points.iter().map(|p| p.y).filter(|y| y.is_finite()).collect();
            values.sort_by(f64::total_cmp);
            if values.len() < FEWEST_VALUES {
                return None;
            }
            usual = usual.max(values[((values.len() - 1) as f64 * USUAL) as usize]);
            let ends = points.iter().map(|p| p.interval.map_or(p.y, |(_, high)| high.max(p.y)));
            largest = ends.filter(|y| y.is_finite()).fold(largest, f64::max);
        }
        let height = ROOM * usual;
        let is_beyond = |point: &ChartPoint| point.y > height;
        let spikes = |points: &&[ChartPoint]| {
            points
                .chunk_by(|one, next| is_beyond(one) == is_beyond(next))
                .filter(|run| is_beyond(&run[0]))
                .count()
        };
        let are_few = lines.iter().all(|points| spikes(points) <= MOST_SPIKES);
        (usual > 0.0 && largest > OUTSTANDING * height && are_few).then_some(height)
    }

    /// The label of the only reference line of a bar chart. Bars leave no space beside the line, so the label is in
    /// the legend.
    pub(crate) fn reference_of_bars(&self) -> Option<&str> {
        let bars = self.elements.iter().any(|element| matches!(element, Element::Bars(_)));
        let mut labels = self.elements.iter().filter_map(|element| match element {
            Element::Reference(reference) => Some(reference.label.as_str()),
            Element::Line(_) | Element::Bars(_) => None,
        });
        labels.next().filter(|_| bars && labels.next().is_none())
    }

    /// Returns whether the chart has no value, but axes and lines of reference alone.
    fn is_empty(&self) -> bool {
        let mut points = self.elements.iter().filter_map(Element::series).flat_map(|(_, points)| points);
        !points.any(|point| point.x.is_finite() && point.y.is_finite())
    }

    /// Every x value that the horizontal axis must include.
    pub(crate) fn xs(&self) -> impl Iterator<Item = f64> + '_ {
        let points = self.elements.iter().filter_map(Element::series).flat_map(|(_, points)| points);
        points
            .map(|p| p.x)
            .chain(self.references(|at| if let ReferencePosition::X(x) = at { Some(x) } else { None }))
    }

    /// Every y value that the vertical axis must include, with the ends of intervals and the foot of bars.
    pub(crate) fn ys(&self) -> impl Iterator<Item = f64> + '_ {
        let points = self.elements.iter().filter_map(Element::series).flat_map(|(_, points)| points);
        let bars = self.elements.iter().any(|element| matches!(element, Element::Bars(_)));
        points
            .flat_map(|p| {
                let (low, high) = p.interval.unwrap_or((p.y, p.y));
                [p.y, low, high]
            })
            .chain(self.references(|at| if let ReferencePosition::Y(y) = at { Some(y) } else { None }))
            .chain(bars.then_some(0.0))
    }

    fn references(&self, pick: impl Fn(ReferencePosition) -> Option<f64>) -> impl Iterator<Item = f64> {
        self.elements.iter().filter_map(move |element| match element {
            Element::Reference(reference) => pick(reference.at),
            Element::Line(_) | Element::Bars(_) => None,
        })
    }
}
