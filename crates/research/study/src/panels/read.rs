//! Reads panels.

use super::{
    Across, AxisText, Distribution, Draw, Emphasis, Panel, PaperText, Place, Reference, ReferenceAt, Series,
};
use crate::claims::{Names, Quantity, QuantityText, repeat};
use cutline_config::{TableReader, Value, ValueKind, kind};

/// Expectation of places, in messages.
const PLACES: &str = "places along the horizontal axis, or \"cdf\" or \"course\" instead";

/// Places with the quantity of each.
#[derive(Default)]
struct Places {
    places: Vec<(Place, QuantityText)>,
    /// True if the places are numbers.
    are_numbers: bool,
}

/// Context for reading a series.
struct Context<'c> {
    names: Names<'c>,
    /// The quantity of the panel.
    common: QuantityText,
    /// The places of the panel.
    places: Places,
    /// The kind of curve, if the panel has no places.
    curve: Option<Draw>,
}

/// The panels of a table, which may be repeated for rows. Problems are reported.
pub(crate) fn read_panels(template: &TableReader<'_>, names: Names<'_>) -> Vec<Panel> {
    let tables = repeat(template, names.rows);
    tables.iter().map(|table| panel(&template.replaced_by(table), names)).collect()
}

/// Reads a panel. Its problems are reported.
pub(super) fn panel(reader: &TableReader<'_>, names: Names<'_>) -> Panel {
    let title = reader.required("title", &kind::text());
    let curve = Curve::read(reader);
    let (x, y) = axes(reader, curve.cdf);
    let draw = reader.optional("draw", &draw_kind());
    let places = places(reader, names).unwrap_or_default();
    let names_of_places = places.places.iter().map(|(place, _)| place.name.clone()).collect();
    let common = QuantityText::read(reader, names);
    let context = Context { names, common, places, curve: curve.draw() };
    let series = series(reader, &context);
    let by_numbers = series.first().map_or(context.places.are_numbers, |(_, are_numbers)| *are_numbers);
    if series.iter().any(|(_, are_numbers)| *are_numbers != by_numbers) {
        reader.refuse("series", "either all series have numbers along the horizontal axis, or none");
    }
    if !by_numbers && !is_curve(reader) {
        check_places(reader);
    }
    let is_log = y.as_ref().is_some_and(|y| y.log);
    let draw = drawing(reader, context.curve, draw, by_numbers, is_log);
    let has_categories = !by_numbers && context.curve.is_none();
    let panel = Panel {
        title: title.unwrap_or_default(),
        x: x.unwrap_or_default(),
        y: y.unwrap_or_default(),
        categories: has_categories.then_some(names_of_places),
        series: series.into_iter().map(|(series, _)| series).collect(),
        draw,
        paper: points(reader, "paper"),
        given: points(reader, "given"),
        references: references(reader, &context),
        across: reader.or("experiments", &across_kind(), Across::First),
        // Where single intervals begin and end is chance.
        in_words: reader.or("words", &kind::flag(), true) && context.curve.is_none(),
    };
    reader.finish();
    panel
}

/// Returns whether a panel has curves, right or wrong, in the place of values at places.
fn is_curve(reader: &TableReader<'_>) -> bool {
    reader.has("cdf") || reader.has("course")
}

/// Reports that a panel has no places.
fn check_places(reader: &TableReader<'_>) {
    match reader.node("along").map(|node| &node.value) {
        None => reader.lacks("along", PLACES),
        Some(Value::List(places)) if places.is_empty() => reader.refuse("along", "there are no places"),
        Some(_) => {}
    }
}

/// Curve of a panel, in the place of values at places.
#[derive(Clone, Copy)]
struct Curve {
    cdf: Option<Distribution>,
    course: Option<usize>,
}

impl Curve {
    fn read(reader: &TableReader<'_>) -> Self {
        let of = [("queuing_ms", Distribution::Queuing), ("goodput_kbps", Distribution::Goodput)];
        let cdf = reader.optional("cdf", &kind::one_of("a distribution", &of));
        let course =
            reader.optional("course", &kind::integer(1, i64::MAX).map(|intervals| intervals as usize));
        let given: Vec<&str> = ["cdf", "course", "draw"].into_iter().filter(|key| reader.has(key)).collect();
        if let [first, second, ..] = given[..] {
            reader.refuse(second, &format!("{first:?} and {second:?} exclude each other"));
        }
        Self { cdf, course }
    }

    fn draw(self) -> Option<Draw> {
        self.cdf.map(Draw::Cdf).or(self.course.map(Draw::Course))
    }
}

fn draw_kind() -> ValueKind<Draw> {
    kind::one_of("a kind of chart", &[("bars", Draw::Bars), ("dots", Draw::Dots), ("line", Draw::Line)])
}

fn across_kind() -> ValueKind<Across> {
    let across = [("first", Across::First), ("panels", Across::Panels), ("series", Across::Series)];
    kind::one_of("the treatment of several experiments", &across)
}

/// The kind of drawing: the given one or, without one, that which suits the axes.
fn drawing(
    reader: &TableReader<'_>,
    curve: Option<Draw>,
    given: Option<Draw>,
    by_numbers: bool,
    is_log: bool,
) -> Draw {
    if given == Some(Draw::Bars) && is_log {
        reader.refuse("draw", "bars begin at 0, which a logarithmic axis does not have");
    }
    curve.or(given).unwrap_or(match (by_numbers, is_log) {
        (true, _) => Draw::Line,
        (false, true) => Draw::Dots,
        (false, false) => Draw::Bars,
    })
}

/// The axes of a panel. A distribution has usual ones.
fn axes(reader: &TableReader<'_>, cdf: Option<Distribution>) -> (Option<AxisText>, Option<AxisText>) {
    let named = |label: &str| AxisText { label: label.to_owned(), ..AxisText::default() };
    let (x, y) = (axis(reader, "x"), axis(reader, "y"));
    let Some(of) = cdf else {
        if !reader.has("y") && !reader.has("cdf") {
            reader.lacks("y", "an axis such as { label = \"Queuing delay, ms\" }");
        }
        return (x, y);
    };
    let usual = match of {
        Distribution::Queuing => "Queuing delay, ms",
        Distribution::Goodput => "Goodput, kbit/s",
    };
    let share = AxisText { range: Some([0.0, 1.0]), ..named("Share") };
    (x.or_else(|| Some(named(usual))), y.or(Some(share)))
}

fn axis(reader: &TableReader<'_>, key: &str) -> Option<AxisText> {
    let table = reader.table(key, "an axis such as { label = \"Queuing delay, ms\" }")?;
    let axis = AxisText {
        label: table.or("label", &kind::text(), String::new()),
        log: table.or("log", &kind::flag(), false),
        range: table.optional("range", &pair()),
        ticks: table.list("ticks", &kind::number()),
    };
    table.finish();
    Some(axis)
}

fn pair() -> ValueKind<[f64; 2]> {
    kind::list(2, "numbers", kind::number()).map(|numbers| [numbers[0], numbers[1]])
}

/// Given values, such as those of a paper.
fn points(reader: &TableReader<'_>, key: &str) -> Option<PaperText> {
    let table = reader.table(key, "a table such as { name = \"paper\", points = [[1, 5], [2, 8]] }")?;
    if !table.has("points") {
        table.lacks("points", "a list of pairs of x and y");
    }
    let name = table.required("name", &kind::text());
    let points = table.list("points", &pair());
    table.finish();
    Some(PaperText { name: name?, points: points? })
}

/// The places of a panel or a series; `None` if there are none.
fn places(reader: &TableReader<'_>, names: Names<'_>) -> Option<Places> {
    let mut places = Vec::new();
    for template in reader.has("along").then(|| reader.tables("along"))? {
        for table in repeat(&template, names.rows) {
            places.push(place(&template.replaced_by(&table), names, places.len()));
        }
    }
    let numbers = places.iter().filter(|(_, is_number, _)| *is_number).count();
    if numbers > 0 && numbers < places.len() {
        reader.refuse("along", "either every place has an \"x\", or none");
    }
    let places = places.into_iter().map(|(place, _, quantity)| (place, quantity)).collect();
    Some(Places { places, are_numbers: numbers > 0 })
}

/// A place, whether it is a number, and its quantity.
fn place(reader: &TableReader<'_>, names: Names<'_>, index: usize) -> (Place, bool, QuantityText) {
    let x = reader.optional("x", &kind::number());
    let name = reader.optional("name", &kind::text());
    let is_number = reader.has("x");
    if !is_number && !reader.has("name") {
        reader.lacks("name", "a text in quotes, or a number as \"x\"");
    }
    let quantity = QuantityText::read(reader, names);
    reader.finish();
    let name = name.or_else(|| x.map(|x| x.to_string())).unwrap_or_default();
    (Place { name, x: x.unwrap_or(index as f64) }, is_number, quantity)
}

/// The series of a panel, and whether the places of each are numbers.
fn series(reader: &TableReader<'_>, context: &Context<'_>) -> Vec<(Series, bool)> {
    let mut series = Vec::new();
    for template in reader.required_tables("series") {
        let tables = repeat(&template, context.names.rows);
        series.extend(tables.iter().filter_map(|table| one_series(&template.replaced_by(table), context)));
    }
    series
}

fn one_series(reader: &TableReader<'_>, context: &Context<'_>) -> Option<(Series, bool)> {
    let name = reader.required("name", &kind::text());
    let own = places(reader, context.names);
    let emphasis = reader.or("line", &emphasis_kind(), Emphasis::Markers);
    let seed = reader.optional("seed", &kind::integer(1, i64::MAX).map(|seed| seed as usize));
    let quantity = QuantityText::read(reader, context.names).or(&context.common);
    let places = own.as_ref().unwrap_or(&context.places);
    let values = values(reader, &quantity, places, context.curve);
    reader.finish();
    Some((Series { name: name?, values, emphasis, seed }, places.are_numbers))
}

fn emphasis_kind() -> ValueKind<Emphasis> {
    let all = [("markers", Emphasis::Markers), ("band", Emphasis::Band), ("thin", Emphasis::Thin)];
    kind::one_of("the emphasis of a line", &all)
}

/// The quantity of a series at each place; that of a curve without a place.
fn values(
    reader: &TableReader<'_>,
    quantity: &QuantityText,
    places: &Places,
    curve: Option<Draw>,
) -> Vec<(Place, Quantity)> {
    let whole = match curve {
        Some(Draw::Cdf(_)) => quantity.measuring("queuing_p50_ms", reader.place()),
        Some(_) => quantity.throughout(),
        None => {
            let at = |(place, own): &(Place, QuantityText)| {
                Some((place.clone(), own.or(quantity).resolve(reader)?))
            };
            return places.places.iter().filter_map(at).collect();
        }
    };
    let place = Place { name: String::new(), x: 0.0 };
    whole.resolve(reader).map(|quantity| (place, quantity)).into_iter().collect()
}

fn references(reader: &TableReader<'_>, context: &Context<'_>) -> Vec<Reference> {
    let mut references = Vec::new();
    for template in reader.tables("references") {
        let tables = repeat(&template, context.names.rows);
        references.extend(tables.iter().filter_map(|table| reference(&template.replaced_by(table), context)));
    }
    references
}

fn reference(reader: &TableReader<'_>, context: &Context<'_>) -> Option<Reference> {
    let label = reader.required("label", &kind::text());
    let (x, y) = (reader.optional("x", &kind::number()), reader.optional("y", &kind::number()));
    let quantity = QuantityText::read(reader, context.names);
    let given: Vec<&str> = ["x", "y", "measure"].into_iter().filter(|key| reader.has(key)).collect();
    let at = match given[..] {
        ["measure"] => quantity
            .or(&context.common)
            .resolve(reader)
            .map(|quantity| ReferenceAt::Measured(Box::new(quantity))),
        [_] => x.map(ReferenceAt::X).or(y.map(ReferenceAt::Y)),
        [first, second, ..] => {
            reader.refuse(second, &format!("{first:?} and {second:?} exclude each other"));
            None
        }
        [] => {
            reader.lacks("y", "a number, here or as \"x\", or a \"measure\"");
            None
        }
    };
    reader.finish();
    Some(Reference { label: label?, at: at? })
}
