//! Labels inside and beside the plot. Each is put where it covers the fewest drawn points.

use crate::chart::axis::Scale;
use crate::chart::colour::{Colour, Stroke};
use crate::chart::element::{ChartPoint, Element, Join, PointSeries, ReferencePosition, SeriesKind};
use crate::chart::layout::Panel;
use crate::chart::legend::Slots;
use crate::chart::style::SMALL;
use crate::chart::svg::{Anchor, Svg, TextStyle};
use crate::chart::text::{Weight, width};

/// A rectangle in the figure: left, top, right, bottom.
type Rect = (f64, f64, f64, f64);

/// Draws the labels of reference lines, each on the side and at the end where it covers the fewest points.
pub(super) fn references(svg: &mut Svg, panel: &Panel) {
    let mut covered = covered_points(panel);
    let in_legend = panel.chart.reference_of_bars().is_some();
    for element in panel.chart.elements.iter().filter(|_| !in_legend) {
        let Element::Reference(reference) = element else { continue };
        let wide = width(&reference.label, SMALL, Weight::Regular);
        let places = match reference.at {
            ReferencePosition::Y(y) => beside_horizontal(panel, panel.position(panel.x.low, y).1, wide),
            ReferencePosition::X(x) => beside_vertical(panel, panel.position(x, panel.y.low).0, wide),
        };
        let cost = |at: &Rect| covered.iter().filter(|point| inside(at, **point)).count();
        let Some(best) = places.into_iter().min_by_key(cost) else { continue };
        let style = TextStyle::regular(SMALL, Colour::Text).with_halo();
        svg.text(best.0, best.3 - 4.0, style, &reference.label);
        covered.extend(filling(best));
    }
}

/// A value beyond the vertical axis, at the x position where it is largest.
struct CutOff {
    x: f64,
    y: f64,
    slot: usize,
}

/// Marks of a line that are nearer to each other become one, px.
const APART: f64 = 44.0;

/// Marks the values that the vertical axis cuts off: a triangle for each run of values beyond it, and the largest of
/// them where there is room.
pub(super) fn cut_off(svg: &mut Svg, panel: &Panel, slots: &Slots) {
    if panel.chart.y.cap.is_none() {
        return;
    }
    let top = panel.origin.1;
    let lines = panel.chart.elements.iter().filter_map(|element| match element {
        Element::Line(line) => Some(line),
        Element::Bars(_) | Element::Reference(_) => None,
    });
    let mut marks: Vec<CutOff> = lines.flat_map(|line| beyond(panel, line, slots.get(&line.name))).collect();
    for CutOff { x, slot, .. } in &marks {
        let d = format!("M{:.2} {:.2}h9l-4.5 -8Z", x - 4.5, top + 5.0);
        svg.path(&d, Colour::Series(*slot), 1.0, Stroke::solid(Colour::Background, 1.0));
    }
    marks.sort_by(|one, other| other.y.total_cmp(&one.y));
    let mut taken: Vec<(f64, f64)> = marks.iter().map(|mark| (mark.x - 5.0, mark.x + 5.0)).collect();
    for CutOff { x, y, slot } in marks {
        let label = super::super::ticks::rounded(y);
        let (left, right) = (x + 7.0, x + 7.0 + width(&label, SMALL, Weight::Regular));
        if right <= panel.right() && taken.iter().all(|(from, to)| *to < left || right + 3.0 < *from) {
            let style = TextStyle::regular(SMALL, Colour::SeriesText(slot)).with_halo();
            svg.text(left, top + 5.0, style, &label);
            taken.push((left - 3.0, right));
        }
    }
}

/// The runs of a line's values beyond the vertical axis; those that are near each other as one.
fn beyond(panel: &Panel, line: &PointSeries, slot: usize) -> Vec<CutOff> {
    let is_beyond = |point: &ChartPoint| point.y.is_finite() && point.y > panel.y.high;
    let mut marks: Vec<(CutOff, f64)> = Vec::new();
    for run in line.points.chunk_by(|one, next| is_beyond(one) && is_beyond(next)) {
        let peak = run.iter().max_by(|one, other| one.y.total_cmp(&other.y));
        let Some(peak) = peak.filter(|peak| is_beyond(peak)) else { continue };
        let x = panel.position(peak.x, panel.y.high).0;
        match marks.last_mut() {
            Some((last, end)) if x - *end < APART => {
                *end = x;
                if peak.y > last.y {
                    (last.x, last.y) = (x, peak.y);
                }
            }
            _ => marks.push((CutOff { x, y: peak.y, slot }, x)),
        }
    }
    marks.into_iter().map(|(mark, _)| mark).collect()
}

/// Candidate positions above and below a horizontal line: at its right end, its left end, and in the middle.
fn beside_horizontal(panel: &Panel, y: f64, wide: f64) -> Vec<Rect> {
    let tall = SMALL + 6.0;
    let lefts =
        [panel.right() - wide - 4.0, panel.origin.0 + 6.0, panel.origin.0 + (panel.size.0 - wide) / 2.0];
    let tops = [y - tall - 1.0, y + 2.0];
    let places = tops.iter().flat_map(|&top| lefts.map(|left| (left, top, left + wide, top + tall)));
    places.filter(|at| at.1 >= panel.origin.1 - tall && at.3 <= panel.bottom()).collect()
}

/// Candidate positions right and left of a vertical line: near the top, near the bottom, and in the middle.
fn beside_vertical(panel: &Panel, x: f64, wide: f64) -> Vec<Rect> {
    let tall = SMALL + 6.0;
    let tops = [panel.origin.1 + 2.0, panel.bottom() - tall - 4.0, panel.origin.1 + panel.size.1 / 2.0];
    let lefts = [x + 6.0, x - wide - 6.0];
    let places = tops.iter().flat_map(|&top| lefts.map(|left| (left, top, left + wide, top + tall)));
    places.filter(|at| at.0 >= panel.origin.0 && at.2 <= panel.right() + 4.0).collect()
}

/// Points on everything that is drawn, close enough together that no label fits between two of them.
fn covered_points(panel: &Panel) -> Vec<(f64, f64)> {
    let mut colour = Vec::new();
    for element in &panel.chart.elements {
        let Some((_, points)) = element.series() else { continue };
        let places: Vec<(f64, f64)> = points.iter().map(|point| panel.position(point.x, point.y)).collect();
        if matches!(element, Element::Line(line) if line.join != Join::None) {
            colour.extend(places.windows(2).flat_map(|pair| between(pair[0], pair[1])));
        }
        if matches!(element, Element::Bars(_)) {
            let wide = match &panel.chart.x.scale {
                Scale::Categories(names) => panel.size.0 / names.len().max(1) as f64 * 0.36,
                Scale::Linear | Scale::Log(_) => 8.0,
            };
            let foot = panel.bottom();
            colour.extend(places.iter().flat_map(|&(x, y)| filling((x - wide, y.min(foot), x + wide, foot))));
        }
        for (point, (x, _)) in points.iter().zip(&places) {
            let (low, high) = point.interval.unwrap_or((point.y, point.y));
            colour
                .extend(between((*x, panel.position(point.x, low).1), (*x, panel.position(point.x, high).1)));
        }
        colour.extend(places);
    }
    colour
}

fn between((x0, y0): (f64, f64), (x1, y1): (f64, f64)) -> impl Iterator<Item = (f64, f64)> {
    let steps = ((x1 - x0).hypot(y1 - y0) / 4.0).min(1000.0) as usize;
    (1..steps).map(move |i| {
        let share = i as f64 / steps as f64;
        (x0 + (x1 - x0) * share, y0 + (y1 - y0) * share)
    })
}

fn filling((left, top, right, bottom): Rect) -> impl Iterator<Item = (f64, f64)> {
    let (across, down) = (((right - left) / 4.0) as usize, ((bottom - top) / 4.0) as usize);
    let point = move |i: usize, j: usize| (left + 4.0 * i as f64, top + 4.0 * j as f64);
    (0..=across).flat_map(move |i| (0..=down).map(move |j| point(i, j)))
}

fn inside(at: &Rect, (x, y): (f64, f64)) -> bool {
    (at.0 - 3.0..=at.2 + 3.0).contains(&x) && (at.1..=at.3).contains(&y)
}

/// Draws the names of lines: beside the middle of step functions, at the right ends of other lines.
pub(super) fn on_lines(svg: &mut Svg, panel: &Panel, slots: &Slots) {
    beside_staircases(svg, panel, slots);
    at_line_ends(svg, panel, slots);
}

/// Draws the names of step functions to the right of their middle. Cumulative distributions all end at 1, so their
/// names would overlap at the right ends.
fn beside_staircases(svg: &mut Svg, panel: &Panel, slots: &Slots) {
    let mut covered = covered_points(panel);
    covered.extend(panel.chart.elements.iter().flat_map(|element| reference_points(panel, element)));
    let middle = panel.origin.1 + panel.size.1 * 0.42;
    for element in &panel.chart.elements {
        let Element::Line(line) = element else { continue };
        if line.join != Join::Step {
            continue;
        }
        let wide = width(&line.name, SMALL, Weight::Bold);
        let points = line.points.iter().filter(|p| panel.x.contains(p.x) && panel.y.contains(p.y));
        let beside = points
            .map(|p| panel.position(p.x, p.y))
            .map(|(x, y)| (x + 9.0, y - 8.0, x + 9.0 + wide, y + 8.0));
        let within = beside.filter(|at| at.2 <= panel.right() + 4.0 && at.3 <= panel.bottom());
        let cost = |at: &Rect| {
            let hidden = covered.iter().filter(|point| inside(at, **point)).count() as f64;
            hidden * 50.0 + (at.1 - middle).abs()
        };
        let Some(best) = within.min_by(|a, b| cost(a).total_cmp(&cost(b))) else { continue };
        let style = TextStyle::regular(SMALL, Colour::SeriesText(slots.get(&line.name))).bold().with_halo();
        svg.text(best.0, best.1 + 8.0 + SMALL * 0.36, style, &line.name);
        covered.extend(filling(best));
    }
}

/// Points along a reference line.
fn reference_points(panel: &Panel, element: &Element) -> Vec<(f64, f64)> {
    let Element::Reference(reference) = element else { return Vec::new() };
    let (from, to) = match reference.at {
        ReferencePosition::X(x) => (panel.position(x, panel.y.low), panel.position(x, panel.y.high)),
        ReferencePosition::Y(y) => (panel.position(panel.x.low, y), panel.position(panel.x.high, y)),
    };
    between(from, to).collect()
}

/// Draws the names of lines at their right ends, moved apart where they would overlap.
fn at_line_ends(svg: &mut Svg, panel: &Panel, slots: &Slots) {
    let mut ends: Vec<(&PointSeries, (f64, f64))> = panel
        .chart
        .elements
        .iter()
        .filter_map(|element| if let Element::Line(line) = element { Some(line) } else { None })
        .filter(|line| line.join == Join::Straight && line.kind == SeriesKind::Measured)
        .filter_map(|line| Some((line, end_of(panel, line)?)))
        .collect();
    ends.sort_by(|(_, a), (_, b)| a.1.total_cmp(&b.1));
    let wanted: Vec<f64> = ends.iter().map(|(_, (_, y))| *y).collect();
    let heights = apart(&wanted, SMALL + 4.0, panel.origin.1, panel.bottom());
    let left = panel.right() + 12.0;
    for ((line, (x, y)), height) in ends.into_iter().zip(heights) {
        let colour = Colour::SeriesText(slots.get(&line.name));
        if (height - y).abs() > 5.0 || left - x > 24.0 {
            svg.line((x + 3.0, y), (left - 2.0, height), Stroke::solid(colour, 0.8));
        }
        let style = TextStyle::regular(SMALL, colour).bold().anchored(Anchor::Start);
        svg.text(left, height + SMALL * 0.36, style, &line.name);
    }
}

/// The last point of a line that lies inside the plot.
fn end_of(panel: &Panel, line: &PointSeries) -> Option<(f64, f64)> {
    let shown = |p: &&ChartPoint| p.y.is_finite() && panel.x.contains(p.x) && panel.y.contains(p.y);
    line.points.iter().rfind(shown).map(|point| panel.position(point.x, point.y))
}

/// Vertical positions near the `wanted` ones, in increasing order, at least `gap` apart and within the plot.
fn apart(wanted: &[f64], gap: f64, top: f64, bottom: f64) -> Vec<f64> {
    let mut heights: Vec<f64> = wanted.to_vec();
    let mut min = top;
    for height in &mut heights {
        *height = height.max(min);
        min = *height + gap;
    }
    let mut max = bottom;
    for height in heights.iter_mut().rev() {
        *height = height.min(max);
        max = *height - gap;
    }
    heights
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_move_apart_but_stay_in_the_plot() {
        let gaps = |heights: &[f64]| heights.windows(2).all(|pair| pair[1] - pair[0] >= 15.9);
        let heights = apart(&[10.0, 11.0, 12.0, 90.0], 16.0, 0.0, 100.0);
        assert!(gaps(&heights) && heights[0] == 10.0 && heights[3] == 90.0, "{heights:?}");
        let heights = apart(&[97.0, 98.0, 99.0], 16.0, 0.0, 100.0);
        assert!(gaps(&heights) && heights[2] <= 100.0, "{heights:?}");
    }
}
