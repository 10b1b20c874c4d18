//! Properties of every chart: valid XML, every series is drawn, no text is cut off, no two texts overlap.

use super::text::{Weight, width};
use super::*;
use proptest::prelude::*;

/// A text and its box in the figure.
#[derive(Debug)]
pub(crate) struct Placed {
    text: String,
    left: f64,
    top: f64,
    right: f64,
    bottom: f64,
}

/// Parses an SVG document, checks that its texts are inside and do not overlap, and returns the texts.
pub(crate) fn check(svg: &str) -> Vec<Placed> {
    let document = roxmltree::Document::parse(svg).expect("the SVG is XML");
    let size = |name| document.root_element().attribute(name).unwrap().parse::<f64>().unwrap();
    let (wide, tall) = (size("width"), size("height"));
    let texts: Vec<Placed> = document.descendants().filter(|n| n.has_tag_name("text")).map(placed).collect();
    for text in &texts {
        assert!(text.left >= 0.0 && text.right <= wide, "cut off at the side: {text:?} of {wide}");
        assert!(text.top >= 0.0 && text.bottom <= tall, "cut off above or below: {text:?} of {tall}");
    }
    for (i, a) in texts.iter().enumerate() {
        for b in &texts[i + 1..] {
            let apart = a.right <= b.left || b.right <= a.left || a.bottom <= b.top || b.bottom <= a.top;
            assert!(apart, "{a:?} overlaps {b:?}");
        }
    }
    texts
}

fn placed(node: roxmltree::Node) -> Placed {
    let number = |name| node.attribute(name).unwrap().parse::<f64>().unwrap();
    let text = node.text().unwrap_or_default().to_owned();
    let weight = if node.attribute("font-weight").is_some() { Weight::Bold } else { Weight::Regular };
    let (x, y, size) = (number("x"), number("y"), number("font-size"));
    let wide = width(&text, size, weight);
    let left = match node.attribute("text-anchor") {
        Some("middle") => x - wide / 2.0,
        Some("end") => x - wide,
        _ => x,
    };
    Placed { text, left, top: y - 0.75 * size, right: left + wide, bottom: y + 0.22 * size }
}

pub(crate) fn has(texts: &[Placed], wanted: &str) -> bool {
    texts.iter().any(|placed| placed.text == wanted)
}

/// Quality by hint: three lines with whiskers, a band, the paper's value and a reference.
fn by_hint() -> Figure {
    let line = |f: fn(f64) -> f64| {
        (1..=16).map(move |h| {
            let q = f(f64::from(h));
            ChartPoint::new(f64::from(h), q).with_interval(q - 0.03, q + 0.03)
        })
    };
    let chart = Chart::new("Audio quality by delay hint")
        .x(Axis::linear("Delay hint").range(1.0, 16.0).ticks((1..=16).map(f64::from)))
        .y(Axis::linear("Quality").range(0.0, 1.0))
        .plot(PointSeries::new("delay quality Qd", line(|h| 0.98 - 0.02 * h)).markers())
        .plot(PointSeries::new("throughput quality Qt", line(|h| 0.4 + 0.035 * h)).markers())
        .plot(PointSeries::new("overall quality Q", line(|h| (0.98 - 0.02 * h).min(0.4 + 0.035 * h))).band())
        .plot(PointSeries::expected("paper", [(6.0, 0.8)]))
        .vline(6.0, "paper: best at 6");
    Figure::new(chart)
}

/// Four panels: distribution, bars, series with a gap, one without data.
fn panels() -> Figure {
    let cdf = Chart::new("Queuing delay")
        .x(Axis::linear("Queuing delay, ms"))
        .y(Axis::linear("Share of packets").range(0.0, 1.0))
        .plot(PointSeries::steps(
            "hint 1",
            (0..500).map(|i| (20.0 + f64::from(i) / 9.0, f64::from(i) / 499.0)),
        ))
        .plot(PointSeries::steps(
            "hint 16",
            (0..500).map(|i| (80.0 + f64::from(i) / 5.0, f64::from(i) / 499.0)),
        ))
        .hline(0.5, "median");
    let bars = Chart::new("Normalised quality by the share of audio flows among all flows of the bottleneck")
        .subtitle("Mean of ten seeds")
        .x(Axis::categories("Audio : bulk", ["1 to 99", "25 to 75", "50 to 50", "75 to 25"]))
        .y(Axis::linear("Quality with TSQ / without"))
        .plot(Bars::new(
            "audio",
            (0..4).map(|i| ChartPoint::new(f64::from(i), 1.18).with_interval(1.1, 1.26)),
        ))
        .plot(Bars::new("file transfer", (0..4).map(|i| (f64::from(i), 1.02))))
        .hline(1.0, "as without TSQ");
    let gap = Chart::new("Backlog")
        .x(Axis::linear("Time, s"))
        .y(Axis::log("Packets", 10))
        .plot(PointSeries::new("hint 1", [(0.0, 10.0), (1.0, f64::NAN), (2.0, 1000.0)]));
    Figure::grid("Four panels", 2, [cdf, bars, gap, Chart::new("Nothing")]).note("Made up for this test.")
}

#[test]
fn a_chart_by_hint_names_all_its_series_and_keeps_its_texts_apart() {
    let texts = check(&by_hint().svg("t", Theme::Paper));
    for wanted in ["delay quality Qd", "overall quality Q", "paper", "paper: best at 6", "16", "Delay hint"] {
        assert!(has(&texts, wanted), "{wanted} is missing");
    }
}

#[test]
fn distributions_are_named_beside_their_lines() {
    let chart = [10.0, 40.0, 90.0].into_iter().fold(Chart::new("t"), |chart, delay| {
        let steps = (0..100).map(move |i| (delay + f64::from(i) / 10.0, f64::from(i) / 99.0));
        chart.plot(PointSeries::steps(format!("at {delay}"), steps))
    });
    let texts = check(&Figure::new(chart.hline(0.5, "median")).legend(Legend::Direct).svg("t", Theme::Paper));
    let left =
        |name: &str| texts.iter().find(|placed| placed.text == name).map(|placed| placed.left).unwrap();
    assert!(left("at 10") < left("at 40") && left("at 40") < left("at 90"));
}

#[test]
fn a_figure_without_charts_is_empty_but_valid() {
    assert!(check(&Figure::grid("", 3, []).svg("t", Theme::Paper)).is_empty());
    assert!(Figure::grid("", 3, []).file("figure", Format::Png).is_ok());
}

#[test]
fn names_at_line_ends_stay_apart() {
    let texts = check(&by_hint().legend(Legend::Direct).svg("t", Theme::Paper));
    assert!(has(&texts, "overall quality Q") && has(&texts, "paper"));
}

#[test]
fn panels_share_one_legend_and_slots() {
    let svg = panels().svg("t", Theme::Paper);
    let texts = check(&svg);
    let named = |name: &str| texts.iter().filter(|placed| placed.text == name).count();
    assert_eq!(["hint 1", "hint 16", "audio", "file transfer"].map(named), [1, 1, 1, 1]);
    let document = roxmltree::Document::parse(&svg).unwrap();
    let of_hint_1 = document.descendants().filter(|node| node.attribute("data-series") == Some("hint 1"));
    let strokes: Vec<_> =
        of_hint_1.flat_map(|g| g.children().filter_map(|n| n.attribute("stroke"))).collect();
    assert_eq!(strokes, ["#0072b2", "#0072b2"], "one colour in both panels");
}

#[test]
fn a_gap_breaks_the_line() {
    let chart = Chart::new("")
        .plot(PointSeries::new("a", [(0.0, 1.0), (1.0, 2.0), (2.0, f64::NAN), (3.0, 1.0), (4.0, 3.0)]));
    let svg = Figure::new(chart).svg("t", Theme::Paper);
    let document = roxmltree::Document::parse(&svg).unwrap();
    let series = document.descendants().find(|node| node.attribute("data-series") == Some("a")).unwrap();
    let path = series.children().find_map(|node| node.attribute("d")).unwrap();
    assert_eq!(path.matches('M').count(), 2, "{path}");
}

#[test]
fn a_point_has_the_place_of_its_values() {
    let axes = || (Axis::linear("").range(0.0, 10.0), Axis::linear("").range(0.0, 1.0));
    let chart = Chart::new("t")
        .x(axes().0)
        .y(axes().1)
        .plot(PointSeries::new("a", [(0.0, 0.0), (10.0, 1.0), (5.0, 0.5)]));
    let svg = Figure::new(chart).svg("t", Theme::Paper);
    let path =
        svg.split("data-series").nth(1).unwrap().split("d=\"").nth(1).unwrap().split('"').next().unwrap();
    let numbers: Vec<f64> = path.split(['M', 'L', ' ']).filter_map(|n| n.parse().ok()).collect();
    assert!((numbers[4] - f64::midpoint(numbers[0], numbers[2])).abs() < 0.02, "{path}");
    assert!((numbers[5] - f64::midpoint(numbers[1], numbers[3])).abs() < 0.02, "{path}");
    assert!((numbers[1] - numbers[3] - 320.0).abs() < 0.02 && numbers[2] > numbers[0], "{path}");
}

#[test]
fn hostile_names_stay_text_and_colours_follow_the_theme() {
    let chart = Chart::new("a < b & \"c\"")
        .plot(PointSeries::new("<x>", [(0.0, 1.0)]))
        .plot(PointSeries::new("y", [(1.0, 2.0)]));
    let figure = Figure::new(chart);
    let texts = check(&figure.svg("t", Theme::Paper));
    assert!(has(&texts, "a < b & \"c\"") && has(&texts, "<x>"));
    assert!(figure.svg("t", Theme::Page).contains("var(--c-s0,#0072b2)"));
    assert!(!figure.svg("t", Theme::Paper).contains("var("));
    for dark in [false, true] {
        assert!(
            ["paper", "text", "grid", "s0", "s6"]
                .iter()
                .all(|c| Theme::css(dark).contains(&format!("--c-{c}:#")))
        );
    }
}

#[test]
fn pictures_are_png_and_the_same_twice() {
    let picture = panels().file("figure", Format::Png).unwrap();
    assert!(picture.starts_with(b"\x89PNG"));
    assert_eq!(picture, panels().file("figure", Format::Png).unwrap());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_data_draws_with_texts_inside_and_apart(
        points in prop::collection::vec((-1e6_f64..1e6, prop::num::f64::ANY), 0..20),
        scale in 1e-6_f64..1e6,
        log in any::<bool>(),
    ) {
        let points = points.into_iter().map(|(x, y)| (x, y.rem_euclid(1.0) * scale));
        let y = if log { Axis::log("y", 10) } else { Axis::linear("y") };
        let chart = Chart::new("Any").x(Axis::linear("x")).y(y).plot(PointSeries::new("a", points).markers());
        let svg = Figure::new(chart).svg("t", Theme::Paper);
        check(&svg);
        prop_assert!(!svg.contains("NaN") && !svg.contains("inf"));
    }
}

#[test]
fn every_category_is_named_also_where_there_are_many() {
    let names: Vec<String> = (0..13).map(|number| format!("simulated number{number}")).collect();
    let chart = Chart::new("t")
        .x(Axis::categories("", names.iter().map(String::as_str)))
        .plot(Bars::new("b", (0..13).map(|i| (f64::from(i), 1.0))));
    let texts = check(&Figure::new(chart).svg("t", Theme::Paper));
    for number in 0..13 {
        let wanted = format!("number{number}");
        assert!(texts.iter().any(|placed| placed.text.ends_with(&wanted)), "{wanted} is missing");
    }
}

/// The values of the ticks below a panel are where the panel is.
#[test]
fn panels_with_the_same_axis_share_its_range() {
    let chart = |end: f64, label: &str| {
        Chart::new(format!("up to {end}"))
            .x(Axis::linear(label))
            .plot(PointSeries::new("one", [(0.0, 0.0), (end, 1.0)]))
    };
    let ticks = |other: &str| {
        let figure = Figure::grid("two", 2, [chart(600.0, "Rate"), chart(300.0, other)]);
        let texts = check(&figure.svg("t", Theme::Paper));
        texts.iter().filter(|placed| placed.text == "600").count()
    };
    assert_eq!((ticks("Rate"), ticks("Delay")), (2, 1));
}

/// Two courses whose first seconds are twenty times as high as the rest.
fn course(cut: bool) -> Figure {
    let height = |i: i32| if i < 5 { 800.0 - 100.0 * f64::from(i) } else { 30.0 + f64::from(i % 7) };
    let line = |name: &str, factor: f64| {
        let points = (0..300).map(move |i| {
            let y = factor * height(i);
            ChartPoint::new(f64::from(i), y).with_interval(0.5 * y, 2.0 * y)
        });
        PointSeries::new(name, points).band()
    };
    let chart = Chart::new("Queuing delay")
        .x(Axis::linear("Time, s"))
        .y(Axis::linear("ms").from(0.0))
        .plot(line("bulk", 1.0))
        .plot(line("call", 0.5));
    Figure::grid("A spike at the start", 1, [if cut { chart.cut_spikes() } else { chart }])
}

#[test]
fn a_spike_does_not_flatten_a_course_and_is_marked() {
    let heights = |figure: &Figure| {
        let texts = check(&figure.svg("spike", Theme::Paper));
        (has(&texts, "800"), texts.iter().any(|text| text.text.contains("are cut off")), has(&texts, "30"))
    };
    assert_eq!(heights(&course(false)), (false, false, false), "the axis reaches 2,000");
    let (peak, note, tick) = heights(&course(true));
    assert!(peak && note && tick, "the largest value, what the triangle means, and an axis for the rest");
    let svg = course(true).svg("spike", Theme::Paper);
    assert!(svg.contains("h9l-4.5 -8Z"), "a triangle");
}

#[test]
fn a_line_of_one_point_is_drawn_as_a_marker() {
    let svg = |series: PointSeries| {
        let chart = Chart::new("One block").x(Axis::linear("x")).y(Axis::linear("y"));
        Figure::grid("One point", 1, [chart.plot(series)]).svg("one-point", Theme::Paper)
    };
    let [line, steps] = [PointSeries::new("a", [(1.0, 2.0)]), PointSeries::steps("a", [(1.0, 2.0)])].map(svg);
    let marked = svg(PointSeries::new("a", [(1.0, 2.0)]).markers());
    assert_eq!((&line, &steps), (&marked, &marked));
    // A marker is more than the line, which has no length.
    let of_two = |series: PointSeries| svg(series).matches("<path").count();
    let points = [(1.0, 2.0), (2.0, 2.0)];
    assert!(of_two(PointSeries::new("a", points).markers()) > of_two(PointSeries::new("a", points)));
}

#[test]
fn a_course_without_a_spike_is_shown_whole() {
    let steady = (0..300).map(|i| (f64::from(i), 100.0 + f64::from(i % 90)));
    let chart = Chart::new("t").y(Axis::linear("ms")).plot(PointSeries::new("a", steady)).cut_spikes();
    assert!(chart.y.cap.is_none());
    // Bursts all the time are no spikes.
    let bursts = (0..300).map(|i| (f64::from(i), if i % 20 == 0 { 900.0 } else { 10.0 }));
    let chart = Chart::new("t").y(Axis::linear("ms")).plot(PointSeries::new("a", bursts)).cut_spikes();
    assert!(chart.y.cap.is_none());
    let few = [(0.0, 900.0), (1.0, 1.0), (2.0, 1.0)];
    assert!(Chart::new("t").plot(PointSeries::new("a", few)).cut_spikes().y.cap.is_none());
}

/// The plots of a column are equally wide, so one with a long vertical label may need staggered names in all of them.
#[test]
fn staggered_names_leave_room_below() {
    let names = ["drop-tail", "pi", "pie", "codel", "fq-codel", "cake", "sieve"];
    let chart = |title: &str, scale: f64| {
        let bars = (0..7).map(move |i| (f64::from(i), scale * f64::from(i + 1)));
        Chart::new(title)
            .x(Axis::categories("dumbbell.queue.aqm", names))
            .y(Axis::linear(""))
            .plot(Bars::new("bulk", bars))
    };
    let charts = [chart("Goodput", 1e6), chart("Delay", 1.0), chart("Loss", 0.001), chart("Quality", 0.1)];
    check(
        &Figure::grid("Queues", 2, charts)
            .note("Means over the flows of a group.")
            .svg("names", Theme::Paper),
    );
}
