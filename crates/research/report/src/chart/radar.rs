//! Radar charts, also called Kiviat charts: a spoke for each measure, from its worst acceptable value to its best.

use super::colour::{Colour, Stroke, Theme};
use super::formats::{Format, FormatError};
use super::style::{CHART_TITLE, SMALL, TEXT, dash, line_height};
use super::svg::{Anchor, Svg, TextStyle};
use super::text::{Weight, width};
use std::f64::consts::TAU;
use std::fmt::Write as _;

/// A chart with spokes. The ring between the worst and the best values of all spokes is the acceptable region; bands show
/// where something lies in it.
#[derive(Clone, Debug)]
pub struct Radar {
    title: String,
    subtitle: Option<String>,
    spokes: Vec<Spoke>,
    bands: Vec<Band>,
}

/// A spoke and the labels of its ends.
#[derive(Clone, Debug)]
pub struct Spoke {
    /// Name of the measure.
    pub name: String,
    /// The best value, with its unit.
    pub best: String,
    /// The worst acceptable value, with its unit.
    pub worst: String,
}

/// Band on the spokes from one position to another. 0 is the worst acceptable value, 1 the best; a value that is not
/// acceptable is below 0.
#[derive(Clone, Debug)]
struct Band {
    name: String,
    /// For each spoke the worst and the best position; `None` where there is nothing.
    ends: Vec<Option<(f64, f64)>>,
}

/// The radius of the best values, px.
const RADIUS: f64 = 150.0;
/// The radius of the worst acceptable values, px. Values inside of it are not acceptable.
const INNER: f64 = 50.0;
/// The distance of a label from the end of its spoke, px.
const LABEL_GAP: f64 = 12.0;
/// Empty space around the chart, px.
const MARGIN: f64 = 24.0;

impl Radar {
    /// A chart without bands. `title` may be empty.
    pub fn new(title: impl Into<String>, spokes: impl IntoIterator<Item = Spoke>) -> Self {
        let (title, spokes) = (title.into(), spokes.into_iter().collect());
        Self { title, subtitle: None, spokes, bands: Vec::new() }
    }

    /// Sets the line under the title.
    #[must_use]
    pub fn subtitle(self, text: impl Into<String>) -> Self {
        Self { subtitle: Some(text.into()), ..self }
    }

    /// Adds the part of each spoke from the first position to the second, in the order of the spokes.
    ///
    /// # Panics
    /// When there are more or fewer positions than spokes.
    #[must_use]
    pub fn band(
        mut self,
        name: impl Into<String>,
        ends: impl IntoIterator<Item = Option<(f64, f64)>>,
    ) -> Self {
        let band = Band { name: name.into(), ends: ends.into_iter().collect() };
        assert_eq!(band.ends.len(), self.spokes.len(), "a band has an entry for each spoke");
        self.bands.push(band);
        self
    }

    /// The chart as an SVG document.
    pub fn svg(&self, theme: Theme) -> String {
        let heading = self.heading();
        let labels = self
            .spokes
            .iter()
            .flat_map(|spoke| [(&spoke.name, Weight::Bold), (&spoke.best, Weight::Regular)]);
        let widest = labels.map(|(label, weight)| width(label, SMALL, weight)).fold(0.0, f64::max);
        let names = self.bands.iter().map(|band| 34.0 + width(&band.name, TEXT, Weight::Regular));
        let side = RADIUS + LABEL_GAP + widest;
        let headings = heading.iter().map(|(line, style)| width(line, style.size, style.weight));
        let span = headings.chain(names).fold(2.0 * side, f64::max) + 2.0 * MARGIN;
        let mut svg = Svg::new(theme);
        let mut y = MARGIN;
        for (line, style) in &heading {
            y += line_height(style.size);
            svg.text(MARGIN, y, *style, line);
        }
        for (slot, band) in self.bands.iter().enumerate() {
            y += line_height(TEXT);
            let sample = |x| (MARGIN + x, y - TEXT * 0.36);
            svg.line(sample(0.0), sample(26.0), outline(slot));
            svg.text(MARGIN + 34.0, y, TextStyle::regular(TEXT, Colour::Text), &band.name);
        }
        let above = LABEL_GAP + 2.0 * line_height(SMALL);
        let centre = (span / 2.0, y + MARGIN / 2.0 + above + RADIUS);
        self.draw(&mut svg, centre);
        svg.finish(span.ceil(), (centre.1 + RADIUS + above + MARGIN).ceil(), &self.title)
    }

    /// The chart as a file of this format.
    ///
    /// # Errors
    /// When the picture is too large for the memory.
    pub fn file(&self, format: Format) -> Result<Vec<u8>, FormatError> {
        format.encode(self.svg(Theme::Paper))
    }

    fn heading(&self) -> Vec<(&str, TextStyle)> {
        let title = TextStyle::regular(CHART_TITLE, Colour::Text).bold();
        let title = (!self.title.is_empty()).then_some((self.title.as_str(), title));
        let subtitle = self.subtitle.as_deref().map(|text| (text, TextStyle::regular(TEXT, Colour::Muted)));
        title.into_iter().chain(subtitle).collect()
    }

    /// Returns the point of a position on a spoke. The first spoke points upwards; the others follow
    /// clockwise.
    fn at(&self, (x, y): (f64, f64), spoke: usize, position: f64) -> (f64, f64) {
        let angle = TAU * spoke as f64 / self.spokes.len() as f64;
        let radius = (INNER + position.min(1.0) * (RADIUS - INNER)).max(0.0);
        (x + radius * angle.sin(), y - radius * angle.cos())
    }

    /// A closed line through a position on each spoke that has one.
    fn ring(&self, centre: (f64, f64), position: impl Fn(usize) -> Option<f64>) -> String {
        let corners =
            (0..self.spokes.len()).filter_map(|spoke| Some(self.at(centre, spoke, position(spoke)?)));
        let mut d = String::new();
        for (i, (x, y)) in corners.enumerate() {
            let _ = write!(d, "{}{x:.2} {y:.2}", if i == 0 { 'M' } else { 'L' });
        }
        if d.is_empty() { d } else { d + "Z" }
    }

    fn draw(&self, svg: &mut Svg, centre: (f64, f64)) {
        let (best, worst) = (self.ring(centre, |_| Some(1.0)), self.ring(centre, |_| Some(0.0)));
        svg.path(&best, Colour::Grid, 0.6, Stroke::solid(Colour::Axis, 1.2));
        svg.path(&worst, Colour::Background, 1.0, Stroke::solid(Colour::Axis, 1.2));
        for spoke in 0..self.spokes.len() {
            svg.line(centre, self.at(centre, spoke, 1.0), Stroke::solid(Colour::Axis, 1.0));
        }
        for (slot, band) in self.bands.iter().enumerate() {
            svg.open_series(&band.name);
            let edge = |pick: fn((f64, f64)) -> f64| self.ring(centre, |spoke| band.ends[spoke].map(pick));
            // The two edges in one path: the area between them is filled (even-odd), for the second one runs inside.
            let (outer, inner) = (edge(|(_, best)| best), edge(|(worst, _)| worst));
            svg.between(&format!("{outer}{inner}"), Colour::Series(slot), 0.3);
            svg.path(&outer, Colour::None, 1.0, outline(slot));
            svg.path(&inner, Colour::None, 1.0, outline(slot));
            svg.close();
        }
        for (i, spoke) in self.spokes.iter().enumerate() {
            self.label(svg, centre, i, spoke);
        }
    }

    fn label(&self, svg: &mut Svg, centre: (f64, f64), i: usize, spoke: &Spoke) {
        let (x, y) = self.at(centre, i, 1.0);
        let (dx, dy) = ((x - centre.0) / RADIUS, (y - centre.1) / RADIUS);
        let anchor = match dx {
            dx if dx > 0.1 => Anchor::Start,
            dx if dx < -0.1 => Anchor::End,
            _ => Anchor::Middle,
        };
        let row = line_height(SMALL);
        // The two rows are above, beside or below the end of the spoke.
        let (x, y) = (x + dx * LABEL_GAP, y + dy * LABEL_GAP + (dy - 1.0) * row / 2.0 + row * 0.3);
        let style = TextStyle::regular(SMALL, Colour::Text).anchored(anchor);
        svg.text(x, y, style.bold(), &spoke.name);
        let muted = TextStyle { colour: Colour::Muted, ..style };
        svg.text(x, y + row, muted, &spoke.best);
        let (x, y) = self.at(centre, i, 0.0);
        let (aside, anchor) = if anchor == Anchor::End { (-5.0, anchor) } else { (5.0, Anchor::Start) };
        svg.text(x + aside, y - 4.0, muted.anchored(anchor).with_halo(), &spoke.worst);
    }
}

const fn outline(slot: usize) -> Stroke {
    Stroke { colour: Colour::Series(slot), width: 2.0, dash: dash(slot) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn radar() -> Radar {
        let spoke =
            |name: &str| Spoke { name: name.to_owned(), best: "0 ms".to_owned(), worst: "9 ms".to_owned() };
        Radar::new("Region of operation", ["rate", "delay", "gap", "loss"].map(spoke))
    }

    /// The points of the paths that are drawn for a series.
    fn points(svg: &str, series: &str) -> Vec<(f64, f64)> {
        let group = svg.split(&format!("data-series=\"{series}\"")).nth(1).expect("the series is drawn");
        let group = group.split("</g>").next().unwrap();
        let paths = group.split(" d=\"").skip(1).map(|part| part.split('"').next().unwrap());
        let corners = paths.flat_map(|d| d.split(['M', 'L', 'Z']).filter(|corner| !corner.is_empty()));
        let number = |text: &str| text.parse().unwrap();
        corners.map(|corner| corner.split_once(' ').unwrap()).map(|(x, y)| (number(x), number(y))).collect()
    }

    #[test]
    fn a_band_lies_between_its_two_positions() {
        let band = [Some((0.0, 1.0)), Some((0.5, 0.5)), None, Some((-3.0, 2.0))];
        let svg = radar().band("measured", band).svg(Theme::Paper);
        let points = points(&svg, "measured");
        assert_eq!(points.len(), 12, "both edges of the filled band, and each once more as an outline");
        let centre = (points[0].0, points[0].1 + RADIUS);
        let half = INNER + 0.5 * (RADIUS - INNER);
        // Outer edge: up, right, and left where better than the best is drawn at the best. Inner edge: values that are not
        // acceptable are drawn inside the inner ring.
        let expected = [(0.0, -RADIUS), (half, 0.0), (-RADIUS, 0.0), (0.0, -INNER), (half, 0.0), (0.0, 0.0)];
        for ((x, y), (dx, dy)) in points.into_iter().zip(expected) {
            assert!((x - centre.0 - dx).abs() < 0.02 && (y - centre.1 - dy).abs() < 0.02, "{x} {y}");
        }
    }

    #[test]
    fn the_labels_are_inside_the_picture() {
        let svg = radar().subtitle("What a video conference needs").svg(Theme::Paper);
        for text in ["rate", "delay", "gap", "loss", "0 ms", "9 ms", "Region of operation", "What a video"] {
            assert!(svg.contains(&format!(">{text}")), "{text}");
        }
        assert!(radar().file(Format::Png).is_ok_and(|png| png.len() > 1000));
    }

    #[test]
    fn a_chart_without_or_with_one_spoke_is_drawn() {
        let spoke = Spoke { name: "loss".to_owned(), best: "0 %".to_owned(), worst: "5 %".to_owned() };
        for spokes in [vec![], vec![spoke]] {
            assert!(Radar::new("", spokes).file(Format::Png).is_ok());
        }
    }
}
