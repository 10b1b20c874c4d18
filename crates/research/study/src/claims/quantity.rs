//! Quantity of a claim, as data: a measure of flows or of a queue at a point of a sweep, alone or relative to
//! another.
//!
//! ```toml
//! measure = "queuing_p50_ms"      # a column of flows.parquet or queues.parquet, or one of `measure::DERIVED`
//! of = "audio"                    # a group of flows, a flow, groups by their beginning ("video-*"), or a link ("r1->r2")
//! at = "hint 16"                  # the values of swept keys, or the name of a table in [points]
//! experiment = "audio"            # where it is not the claim's own
//! best-by = "flow.audio.hint"     # of all values of this swept key, the one with the largest measure
//! mean-by = "flow.audio.hint"     # or the mean over all values of this swept key
//! among = [1, 16]                 # ... of these values of it
//! over = "hint 6"                 # divided by the same measure there,
//! minus = "hint 1"                # less the same measure there
//! times = 100                     # the whole in another unit
//! during = [20, 80]               # the mean over the intervals within this time, s, of a column of series.parquet or queue_series.parquet
//! over-time = "deviation"         # ... or their standard deviation
//! first = { at-most = 800, after = 20 }   # or the time from there to the end of the first interval of which this is so, s
//! ```
//!
//! `over` and `minus` name a point, or are a table with the keys in which the other value differs. They are taken seed by seed, so the
//! variation between seeds cancels. A difference of ratios is `over` with a `minus` that has an `over`.
//!
//! With `unpaired = true` the runs of the two sides of the last operation (`minus`, and otherwise `over`) are independent, as those of
//! laboratory and simulator are: the difference has Welch's interval.
//!
//! With `level-by` the value is the level itself: the one with the largest mean, and as its interval the range of levels that cannot be
//! distinguished from it. With `minus`, a difference of two such levels has all differences of levels in the two
//! ranges.
//!
//! With `best-by` (or `worst-by`, the smallest) the value of a seed is taken where the mean of the *other* seeds is best. So no seed
//! judges a choice that it has made.

use crate::data::{Data, Point, difference, unpaired_difference, unpaired_ratio};
use crate::measure::{is_group, measure, series};
use crate::over_time::{FirstText, Interval, OverTime, Statistic};
use cutline_report::stats::Estimate;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

/// The values of swept keys, as the scenario writes them, without quotes.
pub(crate) type Settings = BTreeMap<String, String>;

/// Quantity of a claim, with the gaps of an operand.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct QuantityText {
    measure: Option<String>,
    of: Option<String>,
    at: Option<At>,
    experiment: Option<String>,
    best_by: Option<String>,
    worst_by: Option<String>,
    mean_by: Option<String>,
    among: Option<Vec<toml::Value>>,
    level_by: Option<String>,
    over: Option<Box<Operand>>,
    minus: Option<Box<Operand>>,
    unpaired: Option<bool>,
    times: Option<f64>,
    during: Option<[f64; 2]>,
    over_time: Option<Statistic>,
    first: Option<FirstText>,
}

/// A point: by its name, or by the values of the swept keys.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum At {
    Named(String),
    Settings(BTreeMap<String, toml::Value>),
    /// The values of a named point, which has been looked up. They are not written so.
    #[serde(skip)]
    Found(Settings),
}

/// The other side of a ratio or a difference: the same at another point, or with other keys.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum Operand {
    At(String),
    Quantity(Box<QuantityText>),
}

/// Quantity of a claim.
#[derive(Clone, Debug)]
pub(crate) struct Quantity {
    measure: String,
    of: String,
    at: Settings,
    /// The experiment, if it is not the claim's own.
    experiment: Option<String>,
    choice: Option<Choice>,
    /// The swept key whose best value is the value.
    level_by: Option<String>,
    over: Option<Box<Quantity>>,
    minus: Option<Box<Quantity>>,
    /// The runs of both sides of the last operation are independent.
    is_unpaired: bool,
    /// The factor of the whole.
    times: f64,
    /// Reduction of the intervals; `None` for a measure of whole runs.
    over_time: Option<OverTime>,
}

/// Reduction of the values of a swept key.
#[derive(Clone, Debug)]
struct Choice {
    key: String,
    pick: Pick,
    /// The values to choose from; all if empty.
    among: Vec<String>,
}

/// Choice among several values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pick {
    /// The largest in the mean of the other seeds.
    Largest,
    /// The smallest in the mean of the other seeds.
    Smallest,
    /// The mean of all.
    Mean,
}

impl QuantityText {
    /// Returns whether anything is given.
    pub(crate) fn is_given(&self) -> bool {
        self.measure.is_some()
    }

    /// The same with the settings of a named point instead of its name, so that they can be joined with others.
    pub(crate) fn at_points(self, points: &BTreeMap<String, Settings>) -> Result<Self, String> {
        let at = self.at.map(|at| Ok::<_, String>(At::Found(at.settings(points)?))).transpose()?;
        Ok(Self { at, ..self })
    }

    /// The same with another measure.
    pub(crate) fn measuring(&self, measure: &str) -> Self {
        Self { measure: Some(measure.to_owned()), ..self.clone() }
    }

    /// The same throughout the run.
    pub(crate) fn throughout(&self) -> Self {
        Self { during: Some([0.0, f64::INFINITY]), ..self.clone() }
    }

    /// Returns the given parts, and the other's parts for those that are not given. Settings are joined.
    pub(crate) fn or(&self, other: &Self) -> Self {
        fn first<T: Clone>(one: Option<&T>, other: Option<&T>) -> Option<T> {
            one.or(other).cloned()
        }
        let at = match (&self.at, &other.at) {
            (Some(At::Found(own)), Some(At::Found(others))) => Some(At::Found(
                others.iter().chain(own).map(|(key, value)| (key.clone(), value.clone())).collect(),
            )),
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

    /// Returns the quantity, with the points of the file. Fails with the name of a missing point.
    pub(crate) fn resolve(&self, points: &BTreeMap<String, Settings>) -> Result<Quantity, String> {
        self.resolve_beside(None, points)
    }

    /// `beside` is the other side of a ratio or a difference, from which gaps are filled.
    fn resolve_beside(
        &self,
        beside: Option<&Quantity>,
        points: &BTreeMap<String, Settings>,
    ) -> Result<Quantity, String> {
        let filled = |own: &Option<String>, other: fn(&Quantity) -> &String, key: &str| {
            let value = own.clone().or_else(|| beside.map(|quantity| other(quantity).clone()));
            value.ok_or_else(|| format!("`{key}` is missing"))
        };
        let inherited = || beside.map(|quantity| quantity.at.clone()).unwrap_or_default();
        let at = match &self.at {
            // A table has the keys that differ; a named point is a whole one.
            Some(at @ At::Settings(_)) => {
                let mut settings = inherited();
                settings.extend(at.settings(points)?);
                settings
            }
            Some(at) => at.settings(points)?,
            None => inherited(),
        };
        let choice = match (&self.best_by, &self.worst_by, &self.mean_by) {
            (Some(key), None, None) => Some((key, Pick::Largest)),
            (None, Some(key), None) => Some((key, Pick::Smallest)),
            (None, None, Some(key)) => Some((key, Pick::Mean)),
            (None, None, None) if self.among.is_some() => {
                return Err("among is for best-by, worst-by and mean-by".to_owned());
            }
            (None, None, None) => None,
            _ => return Err("best-by, worst-by and mean-by exclude each other".to_owned()),
        };
        let among = || self.among.iter().flatten().map(text).collect();
        let choice = choice.map(|(key, pick)| Choice { key: key.clone(), pick, among: among() });
        let alone = Quantity {
            measure: filled(&self.measure, |quantity| &quantity.measure, "measure")?,
            of: filled(&self.of, |quantity| &quantity.of, "of")?,
            at,
            experiment: self
                .experiment
                .clone()
                .or_else(|| beside.and_then(|quantity| quantity.experiment.clone())),
            choice,
            level_by: self.level_by.clone(),
            over: None,
            minus: None,
            is_unpaired: self.unpaired.unwrap_or(false),
            times: self.times.unwrap_or(1.0),
            over_time: OverTime::read(self.during, self.over_time, self.first)?
                .or_else(|| beside.and_then(|quantity| quantity.over_time)),
        };
        let operand =
            |operand: &Option<Box<Operand>>, of: &Quantity| -> Result<Option<Box<Quantity>>, String> {
                let Some(operand) = operand else { return Ok(None) };
                let text = match &**operand {
                    Operand::At(name) => {
                        QuantityText { at: Some(At::Named(name.clone())), ..QuantityText::default() }
                    }
                    Operand::Quantity(text) => (**text).clone(),
                };
                Ok(Some(Box::new(text.resolve_beside(Some(of), points)?)))
            };
        // The other side of a ratio has no choice of its own unless it says so, and neither has that of a difference.
        let over = operand(&self.over, &alone)?;
        let minus = operand(&self.minus, &alone)?;
        Ok(Quantity { over, minus, ..alone })
    }
}

impl At {
    fn settings(&self, points: &BTreeMap<String, Settings>) -> Result<Settings, String> {
        match self {
            Self::Settings(settings) => Ok(texts(settings)),
            Self::Found(settings) => Ok(settings.clone()),
            Self::Named(name) => points.get(name).cloned().ok_or_else(|| format!("[points] has no `{name}`")),
        }
    }
}

impl Quantity {
    /// The estimate; `None` if there are no results.
    pub(crate) fn estimate<'d>(&self, data: &dyn Fn(Option<&str>) -> Option<&'d Data>) -> Option<Estimate> {
        let Estimate { mean, std_error, interval, n } = self.before_times(data)?;
        let times = |value: f64| value * self.times;
        Some(Estimate {
            mean: times(mean),
            std_error: std_error.map(times),
            interval: interval.map(|(low, high)| (times(low), times(high))),
            n,
        })
    }

    fn before_times<'d>(&self, data: &dyn Fn(Option<&str>) -> Option<&'d Data>) -> Option<Estimate> {
        if let Some(key) = &self.level_by {
            let level = self.best_level(data(self.experiment.as_deref())?, key)?;
            return match &self.minus {
                Some(minus) => Some(difference_of_levels(&level, &minus.estimate(data)?)),
                None => Some(level),
            };
        }
        if self.is_unpaired {
            return self.unpaired(data);
        }
        Estimate::from_values(&self.by_seed(data))
    }

    /// The last operation, between independent runs.
    fn unpaired<'d>(&self, data: &dyn Fn(Option<&str>) -> Option<&'d Data>) -> Option<Estimate> {
        let one = Self { is_unpaired: false, ..self.clone() };
        match (&self.minus, &self.over) {
            (Some(minus), _) => {
                unpaired_difference(&Self { minus: None, ..one }.by_seed(data), &minus.by_seed(data))
            }
            (None, Some(over)) => {
                unpaired_ratio(&Self { over: None, ..one }.by_seed(data), &over.by_seed(data))
            }
            (None, None) => Estimate::from_values(&one.by_seed(data)),
        }
    }

    /// The level with the largest mean, and the range of those that are not significantly below it.
    fn best_level(&self, data: &Data, key: &str) -> Option<Estimate> {
        let at = |value: String| {
            let mut at = self.at.clone();
            at.insert(key.to_owned(), value.clone());
            let values = self.at_point(data, &at);
            Some((value.parse::<f64>().ok()?, Estimate::from_values(&values)?.mean, values))
        };
        let levels: Vec<(f64, f64, Vec<f64>)> = data.values_of(key).into_iter().filter_map(at).collect();
        let (level, _, best) = levels.iter().max_by(|one, other| one.1.total_cmp(&other.1))?;
        let is_as_good = |values: &[f64]| {
            let gap = difference(best, values).and_then(|estimate| estimate.interval);
            gap.is_none_or(|(low, _)| low <= 0.0)
        };
        let alike = levels.iter().filter(|(_, _, values)| is_as_good(values)).map(|(level, ..)| *level);
        let (least, most) =
            alike.fold((*level, *level), |(least, most), one| (least.min(one), most.max(one)));
        Some(Estimate { mean: *level, std_error: None, interval: Some((least, most)), n: 1 })
    }

    /// The point and the group of flows that it is about.
    pub(crate) fn place<'d>(&self, data: &'d Data) -> Option<(&'d Point, &str)> {
        Some((data.point_at(&self.at)?, &self.of))
    }

    /// The value of each seed, in the order of the seeds; empty if there are no results. `data` finds the results of an experiment,
    /// with `None` the claim's own.
    pub(crate) fn by_seed<'d>(&self, data: &dyn Fn(Option<&str>) -> Option<&'d Data>) -> Vec<f64> {
        let Some(own) = data(self.experiment.as_deref()) else { return Vec::new() };
        let mut values = match &self.choice {
            None => self.at_point(own, &self.at),
            Some(choice) => self.chosen(own, choice),
        };
        if let Some(over) = &self.over {
            values = paired(&values, &over.by_seed(data), |value, other| value / other);
        }
        if let Some(minus) = &self.minus {
            values = paired(&values, &minus.by_seed(data), |value, other| value - other);
        }
        values
    }

    fn at_point(&self, data: &Data, at: &Settings) -> Vec<f64> {
        let Some(point) = data.point_at(at) else { return Vec::new() };
        match self.over_time {
            None => {
                measure(&self.measure, &self.of).map_or_else(Vec::new, |subject| subject.by_seed(data, point))
            }
            Some(over_time) => {
                let of_seed = |flows: Vec<Vec<Interval>>| {
                    flows.iter().map(|flow| over_time.of(flow)).sum::<f64>() / flows.len() as f64
                };
                self.intervals(data, point).into_iter().map(of_seed).collect()
            }
        }
    }

    /// The intervals of each flow, or of the queue, by seed.
    fn intervals(&self, data: &Data, point: &Point) -> Vec<Vec<Vec<Interval>>> {
        series(&self.measure, &self.of).map_or_else(Vec::new, |series| series.by_seed(data, point))
    }

    /// Its course over time: for the end of each interval, the mean over flows and seeds. With `seed`, of this one alone, counted from 1.
    pub(crate) fn course(&self, data: &Data, seed: Option<usize>) -> Vec<(f64, f64)> {
        let Some(point) = data.point_at(&self.at) else { return Vec::new() };
        let seeds = self.intervals(data, point).into_iter();
        let flows: Vec<Vec<Interval>> = match seed {
            None => seeds.flatten().collect(),
            Some(seed) => seeds.skip(seed - 1).take(1).flatten().collect(),
        };
        let ends = flows.first().map_or(&[][..], Vec::as_slice).iter().map(|interval| interval.end);
        let at = |index: usize| {
            let values: Vec<f64> = flows.iter().filter_map(|flow| flow.get(index)?.value).collect();
            values.iter().sum::<f64>() / values.len() as f64
        };
        ends.enumerate().map(|(index, end)| (end, at(index))).filter(|(_, value)| value.is_finite()).collect()
    }

    /// For each seed, the value at the key's value that is best in the mean of the other seeds, or the mean over the key's values.
    fn chosen(&self, data: &Data, choice: &Choice) -> Vec<f64> {
        let all: Vec<Vec<f64>> = data
            .values_of(&choice.key)
            .into_iter()
            .filter(|value| choice.among.is_empty() || choice.among.iter().any(|one| is_same(one, value)))
            .map(|value| {
                let mut at = self.at.clone();
                at.insert(choice.key.clone(), value);
                self.at_point(data, &at)
            })
            .filter(|values| !values.is_empty())
            .collect();
        let seeds = all.iter().map(Vec::len).min().unwrap_or(0);
        let score = |values: &[f64], seed: usize| {
            let sum: f64 = values.iter().sum();
            let others = if seeds > 1 { sum - values[seed] } else { sum };
            if choice.pick == Pick::Largest { others } else { -others }
        };
        if choice.pick == Pick::Mean {
            let mean = |seed: usize| all.iter().map(|values| values[seed]).sum::<f64>() / all.len() as f64;
            return (0..seeds).map(mean).collect();
        }
        let best = |seed: usize| {
            let of = |values: &&Vec<f64>| score(&values[..seeds], seed);
            all.iter()
                .max_by(|one, other| of(one).total_cmp(&of(other)))
                .map_or(f64::NAN, |values| values[seed])
        };
        (0..seeds).map(best).collect()
    }
}

impl Quantity {
    /// Returns the contents that the experiments need: each measure with its point.
    pub(crate) fn parts(&self) -> Vec<&Self> {
        let operands = [&self.over, &self.minus].into_iter().flatten();
        std::iter::once(self).chain(operands.flat_map(|operand| operand.parts())).collect()
    }

    /// Checks against an experiment's points and groups that there will be results. Returns the missing ones.
    pub(crate) fn check(&self, sweep: &[Settings], groups: &BTreeSet<String>) -> Result<(), String> {
        let flows: Option<String> = if self.over_time.is_some() {
            series(&self.measure, &self.of).map(|series| series.flows().map(str::to_owned))
        } else {
            measure(&self.measure, &self.of).map(|subject| subject.flows().map(str::to_owned))
        }
        .ok_or_else(|| {
            let of = if self.over_time.is_some() { "intervals of " } else { "" };
            format!("there is no measure `{}` of {of}`{}`", self.measure, self.of)
        })?;
        let has = |point: &&Settings| {
            self.at.iter().all(|(key, value)| point.get(key).is_some_and(|there| is_same(there, value)))
        };
        let Some(point) = sweep.iter().find(has) else { return Err(format!("no point has {:?}", self.at)) };
        if let Some(value) = self.choice.iter().flat_map(|choice| &choice.among).find(|value| {
            let key = &self.choice.as_ref().expect("there is one").key;
            !sweep.iter().any(|point| point.get(key).is_some_and(|there| is_same(there, value)))
        }) {
            return Err(format!("`{value}` is not swept"));
        }
        let mut keys = self.choice.iter().map(|choice| &choice.key).chain(&self.level_by);
        if let Some(key) = keys.find(|key| !point.contains_key(*key)) {
            return Err(format!("`{key}` is not swept"));
        }
        // A flow of several of a group has the group's name and a number.
        let is_there = |name: &str| {
            let group_of = name.rsplit_once('.').map_or(name, |(group, _)| group);
            groups.iter().any(|group| is_group(name, group) || group == group_of)
        };
        if flows.is_some_and(|name| !is_there(&name)) {
            return Err(format!("there is no flow or group `{}`", self.of));
        }
        Ok(())
    }

    /// The experiment, if it is not the claim's own.
    pub(crate) fn experiment(&self) -> Option<&str> {
        self.experiment.as_deref()
    }
}

/// Returns whether two values of a key are the same. Numbers may be written in several ways; `true` is 1.
pub(crate) fn is_same(one: &str, other: &str) -> bool {
    let number = |text: &str| match text {
        "true" => Some(1.0),
        "false" => Some(0.0),
        _ => text.parse::<f64>().ok(),
    };
    match (number(one), number(other)) {
        (Some(one), Some(other)) => one == other,
        _ => one == other,
    }
}

/// A value as a scenario writes it, without quotes.
pub(super) fn text(value: &toml::Value) -> String {
    match value {
        toml::Value::String(text) => text.clone(),
        toml::Value::Integer(number) => number.to_string(),
        toml::Value::Float(number) => number.to_string(),
        toml::Value::Boolean(flag) => flag.to_string(),
        other => format!("{other:?}"),
    }
}

/// The values of keys as stored results have them.
pub(super) fn texts(settings: &BTreeMap<String, toml::Value>) -> Settings {
    settings.iter().map(|(key, value)| (key.clone(), text(value))).collect()
}

/// The difference of two best levels, with all differences of levels that are as good.
fn difference_of_levels(one: &Estimate, other: &Estimate) -> Estimate {
    let interval = one.interval.zip(other.interval);
    Estimate {
        mean: one.mean - other.mean,
        std_error: None,
        interval: interval.map(|((least, most), (from, to))| (least - to, most - from)),
        n: 1,
    }
}

fn paired(values: &[f64], others: &[f64], operation: fn(f64, f64) -> f64) -> Vec<f64> {
    if values.len() != others.len() {
        return Vec::new();
    }
    values.iter().zip(others).map(|(value, other)| operation(*value, *other)).collect()
}
