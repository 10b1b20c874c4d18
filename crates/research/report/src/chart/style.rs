//! Dashes, markers, hatches and font sizes. A series has the dash, marker and hatch of its slot: 0, 1, 2, ... in order of
//! appearance.

use super::colour::{Colour, Stroke};
use std::fmt::Write as _;

/// Dash patterns in px; the first is solid. Their number and that of the colours have no common divisor, so that only the 127th series
/// looks like the first.
const DASHES: [&str; 9] =
    ["", "9 4", "2.5 3", "10 3 2.5 3", "5 3", "14 4 5 4", "2 5", "12 3 2.5 3 2.5 3", "18 5"];

/// Font sizes, px.
pub(crate) const FIGURE_TITLE: f64 = 18.0;
pub(crate) const CHART_TITLE: f64 = 15.0;
pub(crate) const TEXT: f64 = 13.0;
pub(crate) const SMALL: f64 = 12.5;

/// The distance between baselines for a font size, px.
pub(crate) fn line_height(size: f64) -> f64 {
    (size * 1.4).round()
}

/// The dash pattern of a slot.
pub(crate) const fn dash(slot: usize) -> &'static str {
    DASHES[slot % DASHES.len()]
}

/// The outline of a slot's marker around (x, y) as SVG path data, with a radius of about `r` px.
pub(crate) fn marker(slot: usize, x: f64, y: f64, r: f64) -> String {
    let polygon = |corners: &[(f64, f64)]| {
        let mut d = String::new();
        for (i, (dx, dy)) in corners.iter().enumerate() {
            let verb = if i == 0 { 'M' } else { 'L' };
            let _ = write!(d, "{verb}{:.2} {:.2}", x + r * dx, y + r * dy);
        }
        d + "Z"
    };
    match slot % 6 {
        0 => {
            let (left, d) = (x - r, 2.0 * r);
            format!("M{left:.2} {y:.2}a{r} {r} 0 1 0 {d} 0a{r} {r} 0 1 0 -{d} 0Z")
        }
        1 => polygon(&[(-0.88, -0.88), (0.88, -0.88), (0.88, 0.88), (-0.88, 0.88)]),
        2 => polygon(&[(0.0, -1.2), (1.1, 0.8), (-1.1, 0.8)]),
        3 => polygon(&[(0.0, -1.3), (1.3, 0.0), (0.0, 1.3), (-1.3, 0.0)]),
        4 => polygon(&[(0.0, 1.2), (1.1, -0.8), (-1.1, -0.8)]),
        _ => polygon(&[(-0.6, -1.05), (0.6, -1.05), (1.2, 0.0), (0.6, 1.05), (-0.6, 1.05), (-1.2, 0.0)]),
    }
}

/// The stroke of reference lines.
pub(crate) const REFERENCE: Stroke = Stroke { colour: Colour::Muted, width: 1.4, dash: "6 4" };

/// The marker of the paper's values.
pub(crate) const EXPECTED_MARKER: usize = 3;

/// The hatch that distinguishes the bars of a slot in black and white, as SVG path data in an 8 px square. Empty means no
/// hatch.
pub(crate) fn hatch(slot: usize) -> &'static str {
    match slot % 5 {
        0 => "",
        1 => "M-2 2l4 -4M0 8l8 -8M6 10l4 -4",
        2 => "M0 4h8",
        3 => "M-2 6l4 4M0 0l8 8M6 -2l4 4",
        _ => "M4 0v8",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::colour::PALETTE;

    #[test]
    fn no_two_of_many_series_look_the_same() {
        let look = |slot: usize| (PALETTE[slot % PALETTE.len()], dash(slot));
        for slot in 0..126 {
            assert!((0..slot).all(|other| look(other) != look(slot)), "slot {slot}");
        }
        let bars = |slot: usize| (PALETTE[slot % PALETTE.len()], hatch(slot));
        assert!((0..70).all(|slot| (0..slot).all(|other| bars(other) != bars(slot))));
        let distinct: std::collections::BTreeSet<&str> = PALETTE.into_iter().collect();
        assert_eq!(distinct.len(), PALETTE.len());
    }

    #[test]
    fn neighbouring_slots_differ_in_every_property() {
        for slot in 0..5 {
            assert_ne!(PALETTE[slot], PALETTE[slot + 1]);
            assert_ne!(dash(slot), dash(slot + 1));
            assert_ne!(marker(slot, 0.0, 0.0, 4.0), marker(slot + 1, 0.0, 0.0, 4.0));
            assert_ne!(hatch(slot), hatch(slot + 1));
        }
    }
}
