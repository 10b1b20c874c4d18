//! The positions of all parts of a figure. First the margins of each panel are computed, then the plots of each row and
//! column are aligned.

use super::axis::{FittedAxis, Scale};
use super::element::{Element, Join};
use super::figure::{Chart, Figure, Legend};
use super::legend::{self, LegendEntry};
use super::style::{CHART_TITLE, FIGURE_TITLE, SMALL, TEXT, line_height};
use super::text::{Weight, width, wrap};
use super::ticks::Tick;

/// Empty space around the figure, px.
const MARGIN: f64 = 24.0;
/// Empty space between panels, px.
const GAP: f64 = 36.0;
/// Space between a tick's label and its axis, px.
pub(crate) const TICK_GAP: f64 = 8.0;

/// A figure with the positions of its parts.
pub(crate) struct Layout<'a> {
    pub(crate) size: (f64, f64),
    pub(crate) heading: Vec<PlacedText>,
    pub(crate) legend: Vec<(LegendEntry, (f64, f64))>,
    pub(crate) panels: Vec<Panel<'a>>,
    pub(crate) notes: Vec<PlacedText>,
}

/// A line of text and its position.
pub(crate) struct PlacedText {
    pub(crate) at: (f64, f64),
    pub(crate) size: f64,
    pub(crate) weight: Weight,
    pub(crate) muted: bool,
    pub(crate) line: String,
}

/// A chart and the position of its plot.
pub(crate) struct Panel<'a> {
    pub(crate) chart: &'a Chart,
    pub(crate) heading: Vec<PlacedText>,
    pub(crate) x: FittedAxis,
    pub(crate) y: FittedAxis,
    /// Ticks, each with its label broken into lines.
    pub(crate) x_ticks: Vec<(Tick, Vec<String>)>,
    pub(crate) y_ticks: Vec<Tick>,
    /// The upper left corner of the plot.
    pub(crate) origin: (f64, f64),
    /// Width and height of the plot.
    pub(crate) size: (f64, f64),
}

/// The space that a panel needs around its plot, px.
#[derive(Clone, Copy, Default)]
struct Margins {
    top: f64,
    bottom: f64,
    left: f64,
    right: f64,
}

impl Panel<'_> {
    /// The position of a value in the figure. Positions far outside the plot are limited, such as that of a zero on a
    /// logarithmic axis, which would be infinite.
    pub(crate) fn position(&self, x: f64, y: f64) -> (f64, f64) {
        let (right, up) = (self.x.fraction(x).clamp(-9.0, 9.0), self.y.fraction(y).clamp(-9.0, 9.0));
        (self.origin.0 + right * self.size.0, self.origin.1 + (1.0 - up) * self.size.1)
    }

    /// The y of the plot's lower edge in the figure.
    pub(crate) fn bottom(&self) -> f64 {
        self.origin.1 + self.size.1
    }

    /// The x of the plot's right edge in the figure.
    pub(crate) fn right(&self) -> f64 {
        self.origin.0 + self.size.0
    }
}

/// Computes the positions of all parts of a figure.
pub(crate) fn arrange(figure: &Figure, entries: Vec<LegendEntry>) -> Layout<'_> {
    let (full, plot_height) = dimensions(figure.columns);
    let inner = full - 2.0 * MARGIN;
    let mut cursor = MARGIN;
    let heading = figure_heading(figure, inner, &mut cursor);
    let legend = legend::place(entries, (MARGIN, cursor), inner);
    cursor = legend.last().map_or(cursor, |(_, (_, y))| y + legend::ROW + 8.0);
    let cell = (inner - GAP * (figure.columns - 1) as f64) / figure.columns as f64;
    let panels = panels(figure, cell, plot_height, &mut cursor);
    cursor += 12.0;
    let notes = figure
        .all_notes()
        .into_iter()
        .flat_map(|note| lines(note, SMALL, true, inner, MARGIN, &mut cursor))
        .collect();
    Layout { size: (full, (cursor + MARGIN - 8.0).ceil()), heading, legend, panels, notes }
}

/// Width of the figure and height of one plot, px.
fn dimensions(columns: usize) -> (f64, f64) {
    match columns {
        1 => (760.0, 320.0),
        2 => (1000.0, 230.0),
        n => (340.0 * n as f64, 210.0),
    }
}

/// The title above all panels. A figure without a title takes that of its first chart.
fn figure_heading(figure: &Figure, limit: f64, cursor: &mut f64) -> Vec<PlacedText> {
    let first = figure.panels.first();
    let (title, subtitle) = if figure.title.is_some() {
        (figure.title.as_deref(), figure.subtitle.as_deref())
    } else {
        let chart = first.and_then(|chart| chart.subtitle.as_deref());
        (first.map(|chart| chart.title.as_str()), figure.subtitle.as_deref().or(chart))
    };
    let mut heading = lines(title.unwrap_or_default(), FIGURE_TITLE, false, limit, MARGIN, cursor);
    heading.extend(lines(subtitle.unwrap_or_default(), TEXT, true, limit, MARGIN, cursor));
    *cursor += if heading.is_empty() { 0.0 } else { 10.0 };
    heading
}

/// Breaks a paragraph into lines from the y position `cursor` on, and moves `cursor` below them.
fn lines(text: &str, size: f64, muted: bool, limit: f64, left: f64, cursor: &mut f64) -> Vec<PlacedText> {
    let weight = if muted { Weight::Regular } else { Weight::Bold };
    let wrapped = wrap(text, size, weight, limit);
    let placed = wrapped.into_iter().map(|line| {
        let at = (left, *cursor + size);
        *cursor += line_height(size);
        PlacedText { at, size, weight, muted, line }
    });
    placed.collect()
}

fn panels<'a>(figure: &'a Figure, cell: f64, plot_height: f64, cursor: &mut f64) -> Vec<Panel<'a>> {
    let titled = figure.title.is_some();
    let columns = figure.columns;
    let mut margins: Vec<Margins> =
        figure.panels.iter().map(|chart| margins_of(figure, chart, cell, plot_height)).collect();
    // The plots of a column are equally wide, and a narrower one may need more rows of labels.
    for (index, chart) in figure.panels.iter().enumerate() {
        let (left, right) = sides(&margins, index % columns, columns);
        margins[index].bottom = foot(figure, chart, cell - left - right);
    }
    let mut placed = Vec::with_capacity(margins.len());
    for (row, charts) in figure.panels.chunks(columns).enumerate() {
        let in_row = &margins[row * columns..][..charts.len()];
        let head = in_row.iter().fold(0.0_f64, |max, margins| max.max(margins.top));
        let foot = in_row.iter().fold(0.0_f64, |max, margins| max.max(margins.bottom));
        for (column, chart) in charts.iter().enumerate() {
            let sides = sides(&margins, column, columns);
            let left = MARGIN + column as f64 * (cell + GAP);
            let origin = (left + sides.0, *cursor + head);
            let size = (cell - sides.0 - sides.1, plot_height);
            let heading = panel_heading(chart, titled, cell, left, *cursor);
            placed.push(panel(figure, chart, heading, origin, size));
        }
        *cursor +=
            head + plot_height + foot + if row + 1 < margins.len().div_ceil(columns) { 22.0 } else { 0.0 };
    }
    placed
}

fn panel<'f>(
    figure: &'f Figure,
    chart: &'f Chart,
    heading: Vec<PlacedText>,
    origin: (f64, f64),
    size: (f64, f64),
) -> Panel<'f> {
    let (across, up) = (ticks_across(size.0), ticks_up(size.1));
    let (x, y) = (chart.x.fit(figure.xs_of(chart), across), chart.y.fit(chart.ys(), up));
    let y_ticks = chart.y.ticks_of(&y, up);
    let x_ticks = chart.x.ticks_of(&x, across);
    let lines = tick_lines(&chart.x.scale, &x_ticks, size.0);
    let x_ticks = x_ticks.into_iter().zip(lines).collect();
    Panel { chart, heading, x, y, x_ticks, y_ticks, origin, size }
}

/// Title and subtitle of a panel. They are left out if the figure has no title, because it then shows the chart's.
fn panel_heading(chart: &Chart, titled: bool, limit: f64, left: f64, cursor: f64) -> Vec<PlacedText> {
    let mut cursor = cursor;
    let mut heading = Vec::new();
    if titled {
        heading.extend(lines(&chart.title, CHART_TITLE, false, limit, left, &mut cursor));
        heading.extend(lines(
            chart.subtitle.as_deref().unwrap_or_default(),
            SMALL,
            true,
            limit,
            left,
            &mut cursor,
        ));
        cursor += 4.0;
    }
    heading.extend(lines(&chart.y.label, SMALL, true, limit, left, &mut cursor));
    heading
}

/// The margins of a panel, computed for a plot as wide as its cell allows.
fn margins_of(figure: &Figure, chart: &Chart, cell: f64, plot_height: f64) -> Margins {
    let heading = panel_heading(chart, figure.title.is_some(), cell, 0.0, 0.0);
    let head = heading.last().map_or(0.0, |text| text.at.1 + 14.0).max(8.0);
    let y = chart.y.fit(chart.ys(), ticks_up(plot_height));
    let y_ticks = chart.y.ticks_of(&y, ticks_up(plot_height));
    let left = y_ticks.iter().map(|tick| width(&tick.label, SMALL, Weight::Regular)).fold(16.0, f64::max);
    let left = left + TICK_GAP;
    let right = right_margin(chart, figure.legend);
    Margins { top: head, bottom: 0.0, left, right }
}

/// The margin below a plot of this width: for the labels of the ticks and of the axis.
fn foot(figure: &Figure, chart: &Chart, plot_width: f64) -> f64 {
    let x = chart.x.fit(figure.xs_of(chart), ticks_across(plot_width));
    let x_ticks = chart.x.ticks_of(&x, ticks_across(plot_width));
    let rows = tick_lines(&chart.x.scale, &x_ticks, plot_width).iter().map(Vec::len).max();
    let label = if chart.x.label.is_empty() { 0.0 } else { line_height(SMALL) + 2.0 };
    TICK_GAP + rows.unwrap_or(0) as f64 * line_height(SMALL) + label
}

/// The margins at the left and right of all panels of a column.
fn sides(margins: &[Margins], column: usize, columns: usize) -> (f64, f64) {
    let in_column = margins.iter().skip(column).step_by(columns);
    in_column.fold((0.0_f64, 0.0_f64), |(l, r), margins| (l.max(margins.left), r.max(margins.right)))
}

/// The margin to the right: wide enough for names at the ends of lines, otherwise for half of a tick label.
fn right_margin(chart: &Chart, legend: Legend) -> f64 {
    if legend == Legend::Top {
        return 20.0;
    }
    let at_ends = |element: &Element| match element {
        Element::Line(line) if line.join == Join::Straight => {
            Some(width(&line.name, SMALL, Weight::Bold) + 18.0)
        }
        _ => None,
    };
    chart.elements.iter().filter_map(at_ends).fold(20.0, f64::max)
}

/// The lines of the ticks' labels. The names of categories may take several; where there is no room for all of them side by side, every second one
/// is below the others, behind empty first lines.
fn tick_lines(scale: &Scale, ticks: &[Tick], plot_width: f64) -> Vec<Vec<String>> {
    let Scale::Categories(names) = scale else {
        return ticks.iter().map(|tick| vec![tick.label.clone()]).collect();
    };
    let room = plot_width / names.len().max(1) as f64;
    let wrapped = |room: f64| -> Vec<Vec<String>> {
        ticks.iter().map(|tick| wrap(&tick.label, SMALL, Weight::Regular, room - 8.0)).collect()
    };
    let side_by_side = wrapped(room);
    if side_by_side.iter().flatten().all(|line| width(line, SMALL, Weight::Regular) <= room - 6.0) {
        return side_by_side;
    }
    let mut staggered = wrapped(2.0 * room);
    let above = staggered.iter().step_by(2).map(Vec::len).max().unwrap_or(0);
    for lines in staggered.iter_mut().skip(1).step_by(2) {
        lines.splice(..0, std::iter::repeat_n(String::new(), above));
    }
    staggered
}

fn ticks_across(plot_width: f64) -> usize {
    (plot_width / 62.0) as usize
}

fn ticks_up(plot_height: f64) -> usize {
    (plot_height / 46.0) as usize
}
