//! Draws a figure as SVG: headings, axes, elements, labels. Later parts lie over earlier ones.

mod labels;
mod series;

use super::axis::Scale;
use super::colour::{Colour, Stroke, Theme};
use super::figure::{Figure, Legend};
use super::layout::{self, Panel, PlacedText, TICK_GAP};
use super::legend::{self, Slots};
use super::style::{SMALL, hatch, line_height};
use super::svg::{Anchor, Svg, TextStyle};
use super::text::{Weight, width};

/// Distance by which elements may reach over the edge of a plot: half a marker, px.
const OVERHANG: f64 = 7.0;

pub(crate) fn figure(figure: &Figure, id: &str, theme: Theme) -> String {
    let slots = Slots::new(figure);
    let layout = layout::arrange(figure, slots.entries(figure.legend));
    let mut svg = Svg::new(theme);
    for slot in slots.of_bars() {
        svg.pattern(&format!("{id}-hatch-{slot}"), hatch(slot));
    }
    texts(&mut svg, &layout.heading);
    for (entry, at) in &layout.legend {
        legend::draw(&mut svg, entry, *at, id);
    }
    for (i, panel) in layout.panels.iter().enumerate() {
        draw_panel(&mut svg, panel, &slots, figure.legend, &format!("{id}-{i}"), id);
    }
    texts(&mut svg, &layout.notes);
    svg.finish(layout.size.0, layout.size.1, figure.name())
}

fn texts(svg: &mut Svg, texts: &[PlacedText]) {
    for text in texts {
        let colour = if text.muted { Colour::Muted } else { Colour::Text };
        let style = TextStyle::regular(text.size, colour);
        let style = if text.weight == Weight::Bold { style.bold() } else { style };
        svg.text(text.at.0, text.at.1, style, &text.line);
    }
}

fn draw_panel(svg: &mut Svg, panel: &Panel, slots: &Slots, legend: Legend, clip: &str, id: &str) {
    texts(svg, &panel.heading);
    grid(svg, panel);
    tick_labels(svg, panel);
    let corner = (panel.origin.0 - OVERHANG, panel.origin.1 - OVERHANG);
    let size = (panel.size.0 + 2.0 * OVERHANG, panel.size.1 + 2.0 * OVERHANG);
    svg.clip(clip, corner, size);
    svg.open_clipped(clip);
    series::draw(svg, panel, slots, id);
    svg.close();
    labels::cut_off(svg, panel, slots);
    labels::references(svg, panel);
    if legend == Legend::Direct {
        labels::on_lines(svg, panel, slots);
    }
}

/// Draws thin lines at the ticks, and thicker lines at the lower edge and at zero.
fn grid(svg: &mut Svg, panel: &Panel) {
    let (left, top) = panel.origin;
    let thin = Stroke::solid(Colour::Grid, 1.0);
    for tick in &panel.y_ticks {
        let (_, y) = panel.position(panel.x.low, tick.value);
        svg.line((left, y), (panel.right(), y), thin);
    }
    if !matches!(panel.chart.x.scale, Scale::Categories(_)) {
        for (tick, _) in &panel.x_ticks {
            let (x, _) = panel.position(tick.value, panel.y.low);
            svg.line((x, top), (x, panel.bottom()), thin);
        }
    }
    let thick = Stroke::solid(Colour::Axis, 1.2);
    svg.line((left, panel.bottom()), (panel.right(), panel.bottom()), thick);
    if panel.y.low < 0.0 && panel.y.high > 0.0 {
        let (_, zero) = panel.position(panel.x.low, 0.0);
        svg.line((left, zero), (panel.right(), zero), thick);
    }
}

/// Draws the labels of ticks and of the horizontal axis. A label that would touch the one before it is left out.
fn tick_labels(svg: &mut Svg, panel: &Panel) {
    let style = TextStyle::regular(SMALL, Colour::Muted);
    for tick in &panel.y_ticks {
        let (_, y) = panel.position(panel.x.low, tick.value);
        svg.text(panel.origin.0 - TICK_GAP, y + SMALL * 0.36, style.anchored(Anchor::End), &tick.label);
    }
    let style = style.anchored(Anchor::Middle);
    // Labels below others have a separate row.
    let (mut free_from, mut rows) = ([f64::NEG_INFINITY; 2], 0);
    for (tick, lines) in &panel.x_ticks {
        let (x, _) = panel.position(tick.value, panel.y.low);
        let half = lines.iter().map(|line| width(line, SMALL, Weight::Regular)).fold(0.0, f64::max) / 2.0;
        let free_from = &mut free_from[usize::from(lines.first().is_some_and(String::is_empty))];
        if x - half < *free_from {
            continue;
        }
        *free_from = x + half + 6.0;
        rows = rows.max(lines.len());
        for (row, line) in lines.iter().enumerate().filter(|(_, line)| !line.is_empty()) {
            let down = TICK_GAP + SMALL + row as f64 * line_height(SMALL);
            svg.text(x, panel.bottom() + down, style, line);
        }
    }
    let down = TICK_GAP + SMALL + rows as f64 * line_height(SMALL) + 3.0;
    svg.text(panel.origin.0 + panel.size.0 / 2.0, panel.bottom() + down, style, &panel.chart.x.label);
}
