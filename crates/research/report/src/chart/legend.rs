//! The series of a figure, the slot of each, and the rows of the legend.

use super::colour::{Colour, Stroke};
use super::element::{Bars, Element, Join, PointSeries, SeriesKind, Spread};
use super::figure::{Chart, Figure, Legend};
use super::style::{EXPECTED_MARKER, REFERENCE, TEXT, dash, marker};
use super::svg::{Svg, TextStyle};
use super::text::{Weight, width};

/// Height of a row, px.
pub(crate) const ROW: f64 = 24.0;
/// Width of the swatch of a line; bars and markers are narrower.
const SWATCH: f64 = 30.0;
const SWATCH_NARROW: f64 = 16.0;
const AFTER_SWATCH: f64 = 7.0;
const BETWEEN: f64 = 22.0;

/// The name of a series and its appearance.
#[derive(Clone, Debug)]
pub(crate) struct LegendEntry {
    pub(crate) name: String,
    pub(crate) appearance: Appearance,
}

/// Appearance of a series in all panels and in the legend.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Appearance {
    Line { slot: usize, joined: bool, markers: bool, band: bool },
    Bars { slot: usize },
    Expected,
    Reference,
}

/// The series of a figure by name, in order of their first appearance.
#[derive(Debug, Default)]
pub(crate) struct Slots(Vec<LegendEntry>);

impl Slots {
    pub(crate) fn new(figure: &Figure) -> Self {
        let mut slots = Self::from_series(figure);
        for label in figure.panels.iter().filter_map(Chart::reference_of_bars) {
            if slots.0.iter().all(|entry| entry.name != label) {
                slots.0.push(LegendEntry { name: label.to_owned(), appearance: Appearance::Reference });
            }
        }
        slots
    }

    fn from_series(figure: &Figure) -> Self {
        let mut slots = Self::default();
        for element in figure.panels.iter().flat_map(|panel| &panel.elements) {
            let Some((name, _)) = element.series() else { continue };
            if slots.0.iter().all(|entry| entry.name != name) {
                let slot = slots.0.iter().filter(|entry| entry.appearance != Appearance::Expected).count();
                slots.0.push(LegendEntry { name: name.to_owned(), appearance: appearance(element, slot) });
            }
        }
        slots
    }

    /// The slot of a series. The paper's values have no colour of their own, so their slot 0 is not used.
    pub(crate) fn get(&self, name: &str) -> usize {
        let found = self.0.iter().find(|entry| entry.name == name);
        found.map_or(0, |entry| match entry.appearance {
            Appearance::Line { slot, .. } | Appearance::Bars { slot } => slot,
            Appearance::Expected | Appearance::Reference => 0,
        })
    }

    /// The entries of the legend above the panels.
    pub(crate) fn entries(&self, legend: Legend) -> Vec<LegendEntry> {
        let lone = self.0.len() < 2;
        let named = |entry: &&LegendEntry| match legend {
            Legend::Top => true,
            Legend::Direct => !matches!(entry.appearance, Appearance::Line { joined: true, .. }),
        };
        if lone { Vec::new() } else { self.0.iter().filter(named).cloned().collect() }
    }

    /// The slots of bars, which need a hatch pattern.
    pub(crate) fn of_bars(&self) -> impl Iterator<Item = usize> {
        self.0.iter().filter_map(|entry| {
            if let Appearance::Bars { slot } = entry.appearance { Some(slot) } else { None }
        })
    }
}

fn appearance(element: &Element, slot: usize) -> Appearance {
    match element {
        Element::Line(PointSeries { kind: SeriesKind::Expected, .. }) => Appearance::Expected,
        Element::Line(line) => {
            let band = line.spread == Spread::Band && line.points.iter().any(|p| p.interval.is_some());
            Appearance::Line { slot, joined: line.join != Join::None, markers: line.markers, band }
        }
        Element::Bars(Bars { .. }) | Element::Reference(_) => Appearance::Bars { slot },
    }
}

/// Puts entries into rows of at most `limit` px. Each entry comes with the upper left corner of its swatch.
pub(crate) fn place(
    entries: Vec<LegendEntry>,
    (left, top): (f64, f64),
    limit: f64,
) -> Vec<(LegendEntry, (f64, f64))> {
    let (mut x, mut y) = (left, top);
    let mut placed = Vec::with_capacity(entries.len());
    for entry in entries {
        let wide = swatch(entry.appearance) + AFTER_SWATCH + width(&entry.name, TEXT, Weight::Regular);
        if x > left && x + wide > left + limit {
            (x, y) = (left, y + ROW);
        }
        placed.push((entry, (x, y)));
        x += wide + BETWEEN;
    }
    placed
}

fn swatch(appearance: Appearance) -> f64 {
    match appearance {
        Appearance::Line { joined: true, .. } | Appearance::Reference => SWATCH,
        Appearance::Line { .. } | Appearance::Bars { .. } | Appearance::Expected => SWATCH_NARROW,
    }
}

/// Draws an entry with the upper left corner of its swatch at (x, y).
pub(crate) fn draw(svg: &mut Svg, entry: &LegendEntry, (x, y): (f64, f64), id: &str) {
    let wide = swatch(entry.appearance);
    let (middle, centre) = (x + wide / 2.0, y + ROW / 2.0 - 2.0);
    match entry.appearance {
        Appearance::Line { slot, joined, markers, band } => {
            let colour = Colour::Series(slot);
            if band {
                let d = format!("M{x:.2} {:.2}h{wide}v12h-{wide}Z", centre - 6.0);
                svg.path(&d, colour, 0.18, Stroke::NONE);
            }
            if joined {
                let stroke = Stroke { colour, width: 2.2, dash: dash(slot) };
                svg.line((x, centre), (x + wide, centre), stroke);
            }
            if markers {
                svg.path(
                    &marker(slot, middle, centre, 4.0),
                    colour,
                    1.0,
                    Stroke::solid(Colour::Background, 1.0),
                );
            }
        }
        Appearance::Bars { slot } => {
            let d = format!("M{x:.2} {:.2}h16v12h-16Z", centre - 6.0);
            svg.path(&d, Colour::Series(slot), 1.0, Stroke::NONE);
            svg.pattern_path(&d, &format!("{id}-hatch-{slot}"));
        }
        Appearance::Reference => svg.line((x, centre), (x + wide, centre), REFERENCE),
        Appearance::Expected => {
            let outline = Stroke::solid(Colour::Text, 1.6);
            svg.path(&marker(EXPECTED_MARKER, middle, centre, 4.5), Colour::Background, 1.0, outline);
        }
    }
    let style = TextStyle::regular(TEXT, Colour::Text);
    svg.text(x + wide + AFTER_SWATCH, centre + TEXT * 0.36, style, &entry.name);
}
