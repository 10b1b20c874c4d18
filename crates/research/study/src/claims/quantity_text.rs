//! Quantity as `figures.toml` has it: read, joined with that of a panel, and resolved.

use super::quantity::{Choice, Pick, Quantity};
use super::rows::{Rows, plain};
use crate::measure;
use crate::over_time::{OverTime, Statistic, during};
use crate::settings::Settings;
use cutline_config::{Located, Node, Table, TableReader, Value, ValueKind, kind};
use std::collections::BTreeMap;

/// Expectation of `measure`, in messages.
pub(crate) const MEASURE: &str = "a measure such as \"queuing_p50_ms\"";

/// Expectation of `of`, in messages.
const OF: &str = "a flow, a group of flows, or a link such as \"r1->r2\"";

/// The points of `[points]` by their names.
pub(crate) type Points = BTreeMap<String, Settings>;

/// The names that tables of figures use.
#[derive(Clone, Copy)]
pub(crate) struct Names<'n> {
    pub(crate) points: &'n Points,
    pub(crate) rows: &'n Rows<'n>,
    /// The experiments of the figure.
    pub(crate) experiments: &'n [String],
}

/// Quantity of a claim, with the gaps of an operand.
#[derive(Clone, Debug, Default)]
pub(crate) struct QuantityText {
    measure: Option<Located<String>>,
    of: Option<Located<String>>,
    at: Option<At>,
    experiment: Option<String>,
    best_by: Option<Located<String>>,
    worst_by: Option<Located<String>>,
    mean_by: Option<Located<String>>,
    among: Option<Located<Vec<String>>>,
    level_by: Option<Located<String>>,
    over: Option<Box<Self>>,
    minus: Option<Box<Self>>,
    unpaired: Option<bool>,
    times: Option<f64>,
    during: Option<(f64, f64)>,
    over_time: Option<Statistic>,
    first: Option<OverTime>,
}

/// A point of a sweep.
#[derive(Clone, Debug)]
struct At {
    settings: Located<Settings>,
    /// True for a point of `[points]`. Otherwise these are the keys in which the point differs from that of the other operand.
    is_whole: bool,
}

/// Reads the tables of `[points]`.
pub(crate) fn read_points(root: &TableReader<'_>) -> Points {
    let Some(points) = root.table("points", "tables of settings, by name") else { return Points::new() };
    let of = |name| points.table(name, "a table of settings").map(|table| texts(table.contents()));
    points.entries().filter_map(|(name, _)| Some((name.to_owned(), of(name)?))).collect()
}

/// The values of keys as stored results have them.
fn texts(settings: &Table) -> Settings {
    settings.0.iter().map(|(key, entry)| (key.clone(), plain(&entry.node.value))).collect()
}

/// The values of a swept key.
fn values() -> ValueKind<Vec<String>> {
    ValueKind::new("a list of values of the swept key", |node: &Node| match &node.value {
        Value::List(list) => Ok(list.iter().map(|node| plain(&node.value)).collect()),
        _ => Err(String::new()),
    })
}

/// A name of this list; `what` describes the list in messages.
pub(crate) fn name_in(what: &str, names: &[String]) -> ValueKind<String> {
    kind::choice(what, names.iter().map(|name| (name.clone(), name.clone())).collect())
}

impl At {
    /// Reads the point at a key: the name of one of `[points]`, or a table of settings.
    fn read(reader: &TableReader<'_>, key: &str, names: Names<'_>) -> Option<Self> {
        let words = names.points.iter().map(|(name, settings)| (name.clone(), settings.clone())).collect();
        let named = kind::choice("a table of settings, or the name of a table in [points]", words);
        let is_whole = reader.node(key)?.as_table().is_none();
        let settings = ValueKind::new(named.expected.clone(), move |node: &Node| match node.as_table() {
            Some(table) => Ok(texts(table)),
            None => named.read(node),
        });
        Some(Self { settings: reader.located(key, &settings)?, is_whole })
    }

    /// The settings with those of another that this does not have, at the place of this.
    fn joined(&self, other: &Self) -> Self {
        let mut settings = self.settings.clone();
        for (key, value) in &other.settings.value {
            settings.value.entry(key.clone()).or_insert_with(|| value.clone());
        }
        Self { settings, is_whole: self.is_whole }
    }
}

impl QuantityText {
    /// Reads the keys of a quantity in a table, which may have others.
    pub(crate) fn read(reader: &TableReader<'_>, names: Names<'_>) -> Self {
        let text = |key: &str| reader.located(key, &kind::text());
        let statistics = [("mean", Statistic::Mean), ("deviation", Statistic::Deviation)];
        Self {
            measure: text("measure"),
            of: text("of"),
            at: At::read(reader, "at", names),
            experiment: reader
                .optional("experiment", &name_in("an experiment of the figure", names.experiments)),
            best_by: text("best-by"),
            worst_by: text("worst-by"),
            mean_by: text("mean-by"),
            among: reader.located("among", &values()),
            level_by: text("level-by"),
            over: Self::operand(reader, "over", names),
            minus: Self::operand(reader, "minus", names),
            unpaired: reader.optional("unpaired", &kind::flag()),
            times: reader.optional("times", &kind::number()),
            during: reader.optional("during", &during()),
            over_time: reader.optional("over-time", &kind::one_of("a statistic", &statistics)),
            first: OverTime::first(reader),
        }
    }

    /// The other side of a ratio or a difference: the same at another point, or with other keys.
    fn operand(reader: &TableReader<'_>, key: &str, names: Names<'_>) -> Option<Box<Self>> {
        if reader.node(key)?.as_table().is_none() {
            let at = Some(At::read(reader, key, names)?);
            return Some(Box::new(Self { at, ..Self::default() }));
        }
        let table = reader.table(key, "a table of the keys that differ")?;
        let operand = Self::read(&table, names);
        table.finish();
        Some(Box::new(operand))
    }

    /// Returns whether anything is given.
    pub(crate) fn is_given(&self) -> bool {
        self.measure.is_some()
    }

    /// The same with another measure.
    pub(crate) fn measuring(&self, measure: &str, place: Located<()>) -> Self {
        let Located { key, span, .. } = place;
        Self { measure: Some(Located { value: measure.to_owned(), key, span }), ..self.clone() }
    }

    /// The same throughout the run.
    pub(crate) fn throughout(&self) -> Self {
        Self { during: Some((0.0, f64::INFINITY)), ..self.clone() }
    }

    /// Returns the given parts, and the other's parts for those that are not given. Settings are joined.
    pub(crate) fn or(&self, other: &Self) -> Self {
        fn first<T: Clone>(one: Option<&T>, other: Option<&T>) -> Option<T> {
            one.or(other).cloned()
        }
        let at = match (&self.at, &other.at) {
            (Some(own), Some(others)) => Some(own.joined(others)),
            (own, others) => first(own.as_ref(), others.as_ref()),
        };
        Self {
            measure: first(self.measure.as_ref(), other.measure.as_ref()),
            of: first(self.of.as_ref(), other.of.as_ref()),
            at,
            experiment: first(self.experiment.as_ref(), other.experiment.as_ref()),
            best_by: first(self.best_by.as_ref(), other.best_by.as_ref()),
            worst_by: first(self.worst_by.as_ref(), other.worst_by.as_ref()),
            mean_by: first(self.mean_by.as_ref(), other.mean_by.as_ref()),
            among: first(self.among.as_ref(), other.among.as_ref()),
            level_by: first(self.level_by.as_ref(), other.level_by.as_ref()),
            over: first(self.over.as_ref(), other.over.as_ref()),
            minus: first(self.minus.as_ref(), other.minus.as_ref()),
            unpaired: first(self.unpaired.as_ref(), other.unpaired.as_ref()),
            times: first(self.times.as_ref(), other.times.as_ref()),
            during: first(self.during.as_ref(), other.during.as_ref()),
            over_time: first(self.over_time.as_ref(), other.over_time.as_ref()),
            first: first(self.first.as_ref(), other.first.as_ref()),
        }
    }

    /// The quantity; `None` if it is incomplete. Gaps, unknown measures and keys that contradict each other are reported.
    pub(crate) fn resolve(&self, reader: &TableReader<'_>) -> Option<Quantity> {
        self.resolve_beside(None, reader)
    }

    /// `beside` is the other side of a ratio or a difference, from which gaps are filled.
    fn resolve_beside(&self, beside: Option<&Quantity>, reader: &TableReader<'_>) -> Option<Quantity> {
        let measure = self.measure.clone().or_else(|| Some(beside?.measure.clone()));
        let of = self.of.clone().or_else(|| Some(beside?.of.clone()));
        for (key, value, expected) in [("measure", &measure, MEASURE), ("of", &of, OF)] {
            if value.is_none() && !reader.has(key) {
                reader.lacks(key, expected);
            }
        }
        let choice = self.choice(reader);
        let over_time = self.over_time(reader).or_else(|| beside?.over_time);
        let alone = Quantity {
            measure: measure?,
            of: of?,
            at: self.settings(beside),
            place: self.at.as_ref().map(|at| at.settings.place()).or_else(|| beside?.place.clone()),
            experiment: self.experiment.clone().or_else(|| beside?.experiment.clone()),
            choice,
            level_by: self.level_by.clone(),
            over: None,
            minus: None,
            is_unpaired: self.unpaired.unwrap_or(false),
            times: self.times.unwrap_or(1.0),
            over_time,
        };
        check_measure(&alone, reader);
        // The other side of a ratio has no choice of its own unless it is stated, and neither has that of a difference.
        let operand = |operand: &Option<Box<Self>>| {
            operand.as_ref()?.resolve_beside(Some(&alone), reader).map(Box::new)
        };
        let (over, minus) = (operand(&self.over), operand(&self.minus));
        Some(Quantity { over, minus, ..alone })
    }

    /// The reduction of intervals; `None` for whole runs, or if keys contradict each other, which is reported.
    fn over_time(&self, reader: &TableReader<'_>) -> Option<OverTime> {
        match OverTime::join(self.during, self.over_time, self.first) {
            Ok(over_time) => over_time,
            // A wrong value of `during` is reported already.
            Err(_) if self.during.is_none() && reader.has("during") => None,
            Err((key, why)) => {
                reader.refuse(key, why);
                None
            }
        }
    }

    /// The settings of its point. A table has the keys that differ from the point beside it; a named point is a whole one.
    fn settings(&self, beside: Option<&Quantity>) -> Settings {
        let inherited = beside.map(|quantity| quantity.at.clone()).unwrap_or_default();
        match &self.at {
            Some(at) if at.is_whole => at.settings.value.clone(),
            Some(at) => inherited.into_iter().chain(at.settings.value.clone()).collect(),
            None => inherited,
        }
    }

    /// The reduction of the values of a swept key; `None` if there is none, or keys contradict each other, which is reported.
    fn choice(&self, reader: &TableReader<'_>) -> Option<Choice> {
        let picks =
            [(&self.best_by, Pick::Largest), (&self.worst_by, Pick::Smallest), (&self.mean_by, Pick::Mean)];
        let given: Vec<_> = picks.into_iter().filter_map(|(key, pick)| Some((key.as_ref()?, pick))).collect();
        if let [_, (second, _), ..] = given[..] {
            reader.refuse_located(second, "\"best-by\", \"worst-by\" and \"mean-by\" exclude each other");
        }
        if let ([], Some(among)) = (&given[..], &self.among) {
            reader.refuse_located(among, "it is for \"best-by\", \"worst-by\" and \"mean-by\"");
        }
        let (key, pick) = *given.first()?;
        Some(Choice { key: key.clone(), pick, among: self.among.clone() })
    }
}

/// Reports a measure that does not exist. Keys with wrong values, which are reported, are meant all the same.
fn check_measure(quantity: &Quantity, reader: &TableReader<'_>) {
    let is_of_intervals = quantity.over_time.is_some() || reader.has("during") || reader.has("first");
    let (name, of) = (&quantity.measure, &quantity.of);
    if let Some(unknown) = measure::unknown(&name.value, &of.value, is_of_intervals) {
        reader.refuse_located(name, &unknown);
    }
}
