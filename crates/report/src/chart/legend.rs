//! Which series there are, which slot each has, and the rows in which they are named.

use super::figure::{Chart, Figure, Legend};
use super::ink::{Ink, Stroke};
use super::mark::{Bars, Join, Kind, Line, Mark, Spread};
use super::style::{EXPECTED_MARKER, REFERENCE, TEXT, dash, marker};
use super::svg::{Svg, Type};
use super::text::{Weight, width};

/// Height of a row, px.
pub(crate) const ROW: f64 = 24.0;
/// Width of the swatch of a line; bars and markers are narrower.
const SWATCH: f64 = 30.0;
const SWATCH_NARROW: f64 = 16.0;
const AFTER_SWATCH: f64 = 7.0;
const BETWEEN: f64 = 22.0;

/// A series' name and how it looks.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) look: Look,
}

/// How a series is drawn, wherever it appears.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Look {
    Line { slot: usize, joined: bool, markers: bool, band: bool },
    Bars { slot: usize },
    Expected,
    Reference,
}

/// Every series of a figure, by its name, in order of appearance.
#[derive(Debug, Default)]
pub(crate) struct Slots(Vec<Entry>);

impl Slots {
    pub(crate) fn of(figure: &Figure) -> Self {
        let mut slots = Self::of_series(figure);
        for label in figure.panels.iter().filter_map(Chart::reference_of_bars) {
            if slots.0.iter().all(|entry| entry.name != label) {
                slots.0.push(Entry { name: label.to_owned(), look: Look::Reference });
            }
        }
        slots
    }

    fn of_series(figure: &Figure) -> Self {
        let mut slots = Self::default();
        for mark in figure.panels.iter().flat_map(|panel| &panel.marks) {
            let Some((name, _)) = mark.series() else { continue };
            if slots.0.iter().all(|entry| entry.name != name) {
                let slot = slots.0.iter().filter(|entry| entry.look != Look::Expected).count();
                slots.0.push(Entry { name: name.to_owned(), look: look(mark, slot) });
            }
        }
        slots
    }

    /// The slot of a series; that of the paper's values is the first, and never used.
    pub(crate) fn get(&self, name: &str) -> usize {
        let found = self.0.iter().find(|entry| entry.name == name);
        found.map_or(0, |entry| match entry.look {
            Look::Line { slot, .. } | Look::Bars { slot } => slot,
            Look::Expected | Look::Reference => 0,
        })
    }

    /// The entries that a legend above the panels shows.
    pub(crate) fn entries(&self, legend: Legend) -> Vec<Entry> {
        let lone = self.0.len() < 2;
        let named = |entry: &&Entry| match legend {
            Legend::Top => true,
            Legend::Direct => !matches!(entry.look, Look::Line { joined: true, .. }),
        };
        if lone { Vec::new() } else { self.0.iter().filter(named).cloned().collect() }
    }

    /// The slots whose bars need a hatch.
    pub(crate) fn of_bars(&self) -> impl Iterator<Item = usize> {
        self.0.iter().filter_map(|entry| if let Look::Bars { slot } = entry.look { Some(slot) } else { None })
    }
}

fn look(mark: &Mark, slot: usize) -> Look {
    match mark {
        Mark::Line(Line { kind: Kind::Expected, .. }) => Look::Expected,
        Mark::Line(line) => {
            let band = line.spread == Spread::Band && line.points.iter().any(|p| p.interval.is_some());
            Look::Line { slot, joined: line.join != Join::None, markers: line.markers, band }
        }
        Mark::Bars(Bars { .. }) | Mark::Reference(_) => Look::Bars { slot },
    }
}

/// Puts entries into rows of at most `limit` px; each has the upper left corner of its swatch.
pub(crate) fn place(entries: Vec<Entry>, (left, top): (f64, f64), limit: f64) -> Vec<(Entry, (f64, f64))> {
    let (mut x, mut y) = (left, top);
    let mut placed = Vec::with_capacity(entries.len());
    for entry in entries {
        let wide = swatch(entry.look) + AFTER_SWATCH + width(&entry.name, TEXT, Weight::Regular);
        if x > left && x + wide > left + limit {
            (x, y) = (left, y + ROW);
        }
        placed.push((entry, (x, y)));
        x += wide + BETWEEN;
    }
    placed
}

fn swatch(look: Look) -> f64 {
    match look {
        Look::Line { joined: true, .. } | Look::Reference => SWATCH,
        Look::Line { .. } | Look::Bars { .. } | Look::Expected => SWATCH_NARROW,
    }
}

/// Draws an entry with the upper left corner of its swatch at (x, y).
pub(crate) fn draw(svg: &mut Svg, entry: &Entry, (x, y): (f64, f64), id: &str) {
    let wide = swatch(entry.look);
    let (middle, centre) = (x + wide / 2.0, y + ROW / 2.0 - 2.0);
    match entry.look {
        Look::Line { slot, joined, markers, band } => {
            let ink = Ink::Series(slot);
            if band {
                let d = format!("M{x:.2} {:.2}h{wide}v12h-{wide}Z", centre - 6.0);
                svg.path(&d, ink, 0.18, Stroke::NONE);
            }
            if joined {
                let stroke = Stroke { ink, width: 2.2, dash: dash(slot) };
                svg.line((x, centre), (x + wide, centre), stroke);
            }
            if markers {
                svg.path(&marker(slot, middle, centre, 4.0), ink, 1.0, Stroke::solid(Ink::Paper, 1.0));
            }
        }
        Look::Bars { slot } => {
            let d = format!("M{x:.2} {:.2}h16v12h-16Z", centre - 6.0);
            svg.path(&d, Ink::Series(slot), 1.0, Stroke::NONE);
            svg.path_of_pattern(&d, &format!("{id}-hatch-{slot}"));
        }
        Look::Reference => svg.line((x, centre), (x + wide, centre), REFERENCE),
        Look::Expected => {
            let outline = Stroke::solid(Ink::Text, 1.6);
            svg.path(&marker(EXPECTED_MARKER, middle, centre, 4.5), Ink::Paper, 1.0, outline);
        }
    }
    let set = Type::regular(TEXT, Ink::Text);
    svg.text(x + wide + AFTER_SWATCH, centre + TEXT * 0.36, set, &entry.name);
}
