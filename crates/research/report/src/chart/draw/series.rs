//! Draws the elements between the axes: first bars, then bands, reference lines, and lines with their markers.

use crate::chart::axis::Scale;
use crate::chart::colour::{Colour, Stroke};
use crate::chart::element::{
    Bars, ChartPoint, Element, Join, PointSeries, ReferencePosition, SeriesKind, Spread,
};
use crate::chart::layout::Panel;
use crate::chart::legend::Slots;
use crate::chart::style::{EXPECTED_MARKER, REFERENCE, dash, marker};
use crate::chart::svg::Svg;
use std::fmt::Write as _;

/// The share of the width of a category that its bars take.
const BAR_SHARE: f64 = 0.72;
/// Radius of a marker, px.
const MARKER: f64 = 4.2;
/// A point nearer to the last one than this gets no line segment, px.
const RESOLUTION: f64 = 0.3;

pub(super) fn draw(svg: &mut Svg, panel: &Panel, slots: &Slots, id: &str) {
    let groups: Vec<&Bars> = panel
        .chart
        .elements
        .iter()
        .filter_map(|m| if let Element::Bars(bars) = m { Some(bars) } else { None })
        .collect();
    for (nth, bars) in groups.iter().enumerate() {
        svg.open_series(&bars.name);
        draw_bars(svg, panel, bars, (nth, groups.len()), slots.get(&bars.name), id);
        svg.close();
    }
    let all = panel.chart.elements.iter();
    let mut lines: Vec<&PointSeries> =
        all.filter_map(|element| if let Element::Line(line) = element { Some(line) } else { None }).collect();
    // Where lines coincide, the ones with markers and bands are the subject of the chart.
    lines.sort_by_key(|line| (line.spread == Spread::Band, line.markers));
    for line in lines.iter().filter(|line| line.spread == Spread::Band) {
        svg.path(&band(panel, line), Colour::Series(slots.get(&line.name)), 0.18, Stroke::NONE);
    }
    draw_references(svg, panel);
    for line in &lines {
        svg.open_series(&line.name);
        draw_line(svg, panel, line, slots.get(&line.name));
        svg.close();
    }
}

fn draw_bars(svg: &mut Svg, panel: &Panel, bars: &Bars, (nth, of): (usize, usize), slot: usize, id: &str) {
    let group = panel.size.0 * panel.x.fraction(panel.x.low + spacing(panel, bars)) * BAR_SHARE;
    let wide = (group / of as f64).min(64.0);
    let offset = (nth as f64 - of as f64 / 2.0) * wide;
    for point in bars.points.iter().filter(|point| point.y.is_finite()) {
        let (x, y) = panel.position(point.x, point.y);
        let (_, foot) = panel.position(point.x, panel.y.low.max(0.0));
        let (left, right) = (x + offset + 1.0, x + offset + wide - 1.0);
        let d = format!("M{left:.2} {foot:.2}V{y:.2}H{right:.2}V{foot:.2}Z");
        svg.path(&d, Colour::Series(slot), 1.0, Stroke::NONE);
        svg.pattern_path(&d, &format!("{id}-hatch-{slot}"));
        whisker(svg, panel, point, f64::midpoint(left, right), Colour::Text);
    }
}

/// The distance between neighbouring groups of bars, in units of x.
fn spacing(panel: &Panel, bars: &Bars) -> f64 {
    if matches!(panel.chart.x.scale, Scale::Categories(_)) {
        return 1.0;
    }
    let mut xs: Vec<f64> = bars.points.iter().map(|point| point.x).collect();
    xs.sort_by(f64::total_cmp);
    let min = xs.windows(2).map(|pair| pair[1] - pair[0]).filter(|d| *d > 0.0).fold(f64::INFINITY, f64::min);
    if min.is_finite() { min } else { panel.x.high - panel.x.low }
}

fn draw_references(svg: &mut Svg, panel: &Panel) {
    for element in &panel.chart.elements {
        let Element::Reference(reference) = element else { continue };
        let (from, to) = match reference.at {
            ReferencePosition::X(x) => (panel.position(x, panel.y.low), panel.position(x, panel.y.high)),
            ReferencePosition::Y(y) => (panel.position(panel.x.low, y), panel.position(panel.x.high, y)),
        };
        svg.line(from, to, REFERENCE);
    }
}

fn draw_line(svg: &mut Svg, panel: &Panel, line: &PointSeries, slot: usize) {
    let colour = Colour::Series(slot);
    if line.join != Join::None {
        let stroke = Stroke { colour, width: 2.2, dash: dash(slot) };
        svg.path(&joined(panel, line), Colour::None, 1.0, stroke);
    }
    let expected = line.kind == SeriesKind::Expected;
    if line.spread == Spread::Whiskers {
        let colour = if expected { Colour::Text } else { colour };
        for point in &line.points {
            whisker(svg, panel, point, panel.position(point.x, point.y).0, colour);
        }
    }
    if !line.markers {
        return;
    }
    for point in line.points.iter().filter(|point| is_finite(point)) {
        let (x, y) = panel.position(point.x, point.y);
        if expected {
            let outline = Stroke::solid(Colour::Text, 1.6);
            svg.path(&marker(EXPECTED_MARKER, x, y, MARKER + 0.6), Colour::Background, 1.0, outline);
        } else {
            svg.path(&marker(slot, x, y, MARKER), colour, 1.0, Stroke::solid(Colour::Background, 1.0));
        }
    }
}

/// Draws an interval: a thin line through the point, with a stroke at each end.
fn whisker(svg: &mut Svg, panel: &Panel, point: &ChartPoint, x: f64, colour: Colour) {
    let Some((low, high)) = point.interval.filter(|(low, high)| low.is_finite() && high.is_finite()) else {
        return;
    };
    let (_, bottom) = panel.position(point.x, low);
    let (_, top) = panel.position(point.x, high);
    let (left, right) = (x - 4.0, x + 4.0);
    let d = format!(
        "M{left:.2} {top:.2}H{right:.2}M{x:.2} {top:.2}V{bottom:.2}M{left:.2} {bottom:.2}H{right:.2}"
    );
    svg.path(&d, Colour::None, 1.0, Stroke::solid(colour, 1.4));
}

/// The path through the points of a line, interrupted at points that are not finite.
fn joined(panel: &Panel, line: &PointSeries) -> String {
    let mut d = String::new();
    let mut last: Option<(f64, f64)> = None;
    for (i, point) in line.points.iter().enumerate() {
        if !is_finite(point) {
            last = None;
            continue;
        }
        let (x, y) = panel.position(point.x, point.y);
        let _ = match last {
            None => write!(d, "M{x:.2} {y:.2}"),
            Some((px, py))
                if i + 1 < line.points.len()
                    && (x - px).abs() < RESOLUTION
                    && (y - py).abs() < RESOLUTION =>
            {
                continue;
            }
            Some(_) if line.join == Join::Step => write!(d, "H{x:.2}V{y:.2}"),
            Some(_) => write!(d, "L{x:.2} {y:.2}"),
        };
        last = Some((x, y));
    }
    d
}

/// The area between the lower and the upper ends of the intervals of a line.
fn band(panel: &Panel, line: &PointSeries) -> String {
    let mut d = String::new();
    for run in line.points.split(|point| !is_finite(point) || point.interval.is_none()) {
        let ends = |p: &ChartPoint| p.interval.unwrap_or((p.y, p.y));
        let upper = run.iter().map(|p| panel.position(p.x, ends(p).1));
        let lower = run.iter().rev().map(|p| panel.position(p.x, ends(p).0));
        for (i, (x, y)) in upper.chain(lower).enumerate() {
            let _ = write!(d, "{}{x:.2} {y:.2}", if i == 0 { 'M' } else { 'L' });
        }
        if !run.is_empty() {
            d.push('Z');
        }
    }
    d
}

fn is_finite(point: &ChartPoint) -> bool {
    point.x.is_finite() && point.y.is_finite()
}
