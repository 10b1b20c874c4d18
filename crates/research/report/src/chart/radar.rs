//! Radar charts, also called Kiviat charts: a spoke for each measure, from its worst acceptable value to its best. One or two spokes
//! have no area between them and are drawn as bars.

use super::colour::{Colour, Stroke, Theme};
use super::formats::{Format, FormatError};
use super::style::{CHART_TITLE, SMALL, TEXT, dash, line_height, marker};
use super::svg::{Anchor, Svg, TextStyle};
use super::text::{Weight, width};
use std::f64::consts::TAU;
use std::fmt::Write as _;

/// A chart with spokes. The ring between the worst and the best values of all spokes is the acceptable region; bands show
/// measured values in it. A band without an area (a point, or a part of one or two spokes) has marks at its ends.
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
/// The least distance of a corner from the centre with which a band is more than a point, px.
const POINT: f64 = 2.0;
/// Size of the mark of a band without an area, px. The mark of each earlier band is larger by `MARK_STEP`, so that marks at one place
/// are all seen.
const MARK: f64 = 4.0;
const MARK_STEP: f64 = 3.0;
/// The fewest spokes that have an area between them.
const FEWEST_SPOKES: usize = 3;
/// The ratio of lengths along a bar to those along a spoke.
const BAR_SCALE: f64 = 2.0;
/// The height of the row of a band in a bar, px.
const ROW: f64 = 16.0;
/// The distance of a bar from its name, px.
const NAME_GAP: f64 = 6.0;
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
        let is_ring = self.spokes.len() >= FEWEST_SPOKES;
        let labels = self
            .spokes
            .iter()
            .flat_map(|spoke| [(&spoke.name, Weight::Bold), (&spoke.best, Weight::Regular)]);
        let widest = labels.map(|(label, weight)| width(label, SMALL, weight)).fold(0.0, f64::max);
        let names = self.bands.iter().map(|band| 34.0 + width(&band.name, TEXT, Weight::Regular));
        let side = RADIUS + LABEL_GAP + widest;
        let drawn = if is_ring { 2.0 * side } else { BAR_SCALE * RADIUS + LABEL_GAP + widest };
        let headings = heading.iter().map(|(line, style)| width(line, style.size, style.weight));
        let span = headings.chain(names).fold(drawn, f64::max) + 2.0 * MARGIN;
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
            if is_ring && band.has_marks() {
                mark(&mut svg, slot, sample(13.0), MARK);
            }
            svg.text(MARGIN + 34.0, y, TextStyle::regular(TEXT, Colour::Text), &band.name);
        }
        let above = LABEL_GAP + 2.0 * line_height(SMALL);
        let bottom = if is_ring {
            let centre = (span / 2.0, y + MARGIN / 2.0 + above + RADIUS);
            self.draw(&mut svg, centre);
            centre.1 + RADIUS + above
        } else {
            self.draw_bars(&mut svg, y + MARGIN / 2.0)
        };
        svg.finish(span.ceil(), (bottom + MARGIN).ceil(), &self.title)
    }

    /// Places of the worst acceptable and of the best values, as a sentence for the reader.
    pub const fn ends_in_words(&self) -> &'static str {
        if self.spokes.len() >= FEWEST_SPOKES {
            "From the inner ring, the worst acceptable, to the outer ring, the best."
        } else {
            "From the left end of the shaded area, the worst acceptable, to its right end, the best."
        }
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
        let radius = radius(position);
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
        for (slot, band) in self.bands.iter().enumerate().filter(|(_, band)| band.has_area()) {
            svg.open_series(&band.name);
            let edge = |pick: fn((f64, f64)) -> f64| self.ring(centre, |spoke| band.ends[spoke].map(pick));
            // The two edges in one path: the area between them is filled (even-odd), for the second one runs inside.
            let (outer, inner) = (edge(|(_, best)| best), edge(|(worst, _)| worst));
            svg.between(&format!("{outer}{inner}"), Colour::Series(slot), 0.3);
            svg.path(&outer, Colour::None, 1.0, outline(slot));
            svg.path(&inner, Colour::None, 1.0, outline(slot));
            svg.close();
        }
        let marked: Vec<usize> = (0..self.bands.len()).filter(|slot| self.bands[*slot].has_marks()).collect();
        for (i, slot) in marked.iter().enumerate() {
            let later = marked.len() - 1 - i;
            self.marks(svg, centre, *slot, MARK + MARK_STEP * later as f64);
        }
        for (i, spoke) in self.spokes.iter().enumerate() {
            self.label(svg, centre, i, spoke);
        }
    }

    /// Draws a band without an area: the part of each of its spokes, with a mark at each end.
    fn marks(&self, svg: &mut Svg, centre: (f64, f64), slot: usize, size: f64) {
        let band = &self.bands[slot];
        svg.open_series(&band.name);
        let mut marked: Vec<(f64, f64)> = Vec::new();
        for (spoke, ends) in band.ends.iter().enumerate() {
            let Some((worst, best)) = *ends else { continue };
            let (from, to) = (self.at(centre, spoke, worst), self.at(centre, spoke, best));
            if from != to {
                svg.line(from, to, Stroke::solid(Colour::Series(slot), 2.0));
            }
            for end in [from, to] {
                if !marked.contains(&end) {
                    marked.push(end);
                    mark(svg, slot, end, size);
                }
            }
        }
        svg.close();
    }

    /// Draws each spoke as a bar below the one before, from the left to the right, with a row for each band. Returns the lower edge.
    fn draw_bars(&self, svg: &mut Svg, mut y: f64) -> f64 {
        let style = TextStyle::regular(SMALL, Colour::Text);
        let muted = TextStyle { colour: Colour::Muted, ..style };
        let at = |position: f64| MARGIN + BAR_SCALE * radius(position);
        let height = ROW * self.bands.len().max(1) as f64;
        for (i, spoke) in self.spokes.iter().enumerate() {
            y += line_height(SMALL);
            svg.text(MARGIN, y, style.bold(), &spoke.name);
            let top = y + NAME_GAP;
            let whole = rectangle((MARGIN, at(1.0)), top, height);
            svg.path(&whole, Colour::Background, 1.0, Stroke::solid(Colour::Axis, 1.0));
            let acceptable = rectangle((at(0.0), at(1.0)), top, height);
            svg.path(&acceptable, Colour::Grid, 0.6, Stroke::solid(Colour::Axis, 1.2));
            for (slot, band) in self.bands.iter().enumerate() {
                let Some((worst, best)) = band.ends[i] else { continue };
                svg.open_series(&band.name);
                let (left, right, row) = (at(worst), at(best), top + ROW * slot as f64);
                if right - left < 2.0 * POINT {
                    mark(svg, slot, (left, row + ROW / 2.0), MARK);
                } else {
                    let part = rectangle((left, right), row + 2.0, ROW - 4.0);
                    svg.path(&part, Colour::Series(slot), 0.3, outline(slot));
                }
                svg.close();
            }
            svg.text(at(1.0) + LABEL_GAP, top + height / 2.0 + SMALL * 0.36, muted, &spoke.best);
            y = top + height + line_height(SMALL);
            svg.text(at(0.0), y, muted.anchored(Anchor::Middle), &spoke.worst);
            y += LABEL_GAP;
        }
        y
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

impl Band {
    /// Returns whether the band is seen as an area: it lies on three spokes or more, and not in the centre alone.
    fn has_area(&self) -> bool {
        let corners: Vec<f64> = self.ends.iter().flatten().map(|(_, best)| radius(*best)).collect();
        corners.len() >= FEWEST_SPOKES && corners.iter().any(|corner| *corner > POINT)
    }

    /// Returns whether the band is seen by its marks alone.
    fn has_marks(&self) -> bool {
        !self.has_area() && self.ends.iter().any(Option::is_some)
    }
}

/// The distance of a position from the centre, px.
fn radius(position: f64) -> f64 {
    (INNER + position.min(1.0) * (RADIUS - INNER)).max(0.0)
}

/// Draws the mark of a slot.
fn mark(svg: &mut Svg, slot: usize, (x, y): (f64, f64), size: f64) {
    svg.path(&marker(slot, x, y, size), Colour::Series(slot), 1.0, Stroke::solid(Colour::Background, 1.0));
}

fn rectangle((left, right): (f64, f64), top: f64, height: f64) -> String {
    let bottom = top + height;
    format!("M{left:.2} {top:.2}L{right:.2} {top:.2}L{right:.2} {bottom:.2}L{left:.2} {bottom:.2}Z")
}

const fn outline(slot: usize) -> Stroke {
    Stroke { colour: Colour::Series(slot), width: 2.0, dash: dash(slot) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::tests::{check, has};

    fn radar() -> Radar {
        with_spokes(&["rate", "delay", "gap", "loss"])
    }

    fn with_spokes(names: &[&str]) -> Radar {
        let spoke = |name: &&str| Spoke {
            name: (*name).to_owned(),
            best: "0 ms".to_owned(),
            worst: "9 ms".to_owned(),
        };
        Radar::new("Region of operation", names.iter().map(spoke))
    }

    /// The points of the paths that are drawn for a series, in its first group.
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

    /// A flow that is worse than its limits on all spokes is a point, which a line does not show.
    #[test]
    fn bands_without_an_area_have_marks() {
        let svg = radar()
            .band("inside", [Some((0.0, 1.0)); 4])
            .band("worse", [Some((-9.0, -2.0)); 4])
            .band("rate alone", [Some((0.0, 1.0)), None, None, None])
            .band("as bad", [Some((-9.0, -2.0)); 4])
            .svg(Theme::Paper);
        let (x, top) = points(&svg, "inside")[0];
        let y = top + RADIUS;
        // A square, and a rhombus on it, which is smaller: both are seen.
        let reach = |series: &str| {
            let far = points(&svg, series).into_iter().map(|(px, py)| (px - x).abs().max((py - y).abs()));
            far.fold(0.0, f64::max)
        };
        assert_eq!([points(&svg, "worse").len(), points(&svg, "as bad").len()], [4, 4], "one mark each");
        assert!((reach("worse") - 0.88 * (MARK + 2.0 * MARK_STEP)).abs() < 0.03, "{}", reach("worse"));
        assert!((reach("as bad") - 1.3 * MARK).abs() < 0.03, "{}", reach("as bad"));
        // A part of one spoke: a line of two points, and a triangle at each end.
        let alone = points(&svg, "rate alone");
        assert_eq!(alone.len(), 2 + 2 * 3);
        for ((px, py), radius) in alone.into_iter().zip([INNER, RADIUS]) {
            assert!((px - x).abs() < 0.03 && (y - radius - py).abs() < 0.03, "{px} {py}");
        }
        assert_eq!(points(&svg, "inside").len(), 16, "an area has no marks");
    }

    /// Two spokes lie on one line, and one spoke has no width: as bars, their bands are seen.
    #[test]
    fn one_or_two_spokes_are_bars() {
        let xs = |svg: &str, series: &str| -> Vec<f64> {
            points(svg, series).into_iter().map(|(x, _)| x).collect()
        };
        for names in [&["rate", "loss"][..], &["rate"][..]] {
            let band = |first: (f64, f64)| [Some(first), Some((0.0, 0.5))].into_iter().take(names.len());
            let radar = with_spokes(names)
                .band("managed", band((0.5, 1.0)))
                .band("unmanaged", band((-9.0, -2.0)))
                .subtitle("Below the title");
            let svg = radar.svg(Theme::Paper);
            let texts = check(&svg);
            for name in names.iter().copied().chain(["managed", "unmanaged", "Below the title"]) {
                assert!(has(&texts, name), "{name}");
            }
            // From the middle of the acceptable values to the best.
            assert_eq!(xs(&svg, "managed"), [224.0, 324.0, 324.0, 224.0]);
            let mark = xs(&svg, "unmanaged");
            assert!(mark.len() == 4 && mark.iter().all(|x| (x - MARGIN).abs() < MARK), "{mark:?}");
            assert_eq!(svg.matches("data-series=").count(), 2 * names.len());
            assert!(radar.ends_in_words().starts_with("From the left end"));
            assert!(radar.file(Format::Png).is_ok_and(|png| png.len() > 1000));
        }
        assert!(with_spokes(&["rate", "delay", "loss"]).ends_in_words().starts_with("From the inner ring"));
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
