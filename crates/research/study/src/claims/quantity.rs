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

use crate::contents::Contents;
use crate::data::{Data, Point, difference, unpaired_difference, unpaired_ratio};
use crate::measure::{measure, series};
use crate::over_time::{Interval, OverTime};
use crate::settings::{Settings, is_same};
use cutline_config::Located;
use cutline_report::stats::Estimate;

/// Quantity of a claim.
#[derive(Clone, Debug)]
pub(crate) struct Quantity {
    pub(super) measure: Located<String>,
    pub(super) of: Located<String>,
    pub(super) at: Settings,
    /// The place of the settings; `None` if there are none.
    pub(super) place: Option<Located<()>>,
    /// The experiment, if it is not the claim's own.
    pub(super) experiment: Option<String>,
    pub(super) choice: Option<Choice>,
    /// The swept key whose best value is the value.
    pub(super) level_by: Option<Located<String>>,
    pub(super) over: Option<Box<Self>>,
    pub(super) minus: Option<Box<Self>>,
    /// The runs of both sides of the last operation are independent.
    pub(super) is_unpaired: bool,
    /// The factor of the whole.
    pub(super) times: f64,
    /// Reduction of the intervals; `None` for a measure of whole runs.
    pub(super) over_time: Option<OverTime>,
}

/// Reduction of the values of a swept key.
#[derive(Clone, Debug)]
pub(super) struct Choice {
    pub(super) key: Located<String>,
    pub(super) pick: Pick,
    /// The values to choose from; `None` for all.
    pub(super) among: Option<Located<Vec<String>>>,
}

/// Choice among several values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pick {
    /// The largest in the mean of the other seeds.
    Largest,
    /// The smallest in the mean of the other seeds.
    Smallest,
    /// The mean of all.
    Mean,
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
            let level = self.best_level(data(self.experiment.as_deref())?, &key.value)?;
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
        Some((data.point_at(&self.at)?, &self.of.value))
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
            None => measure(&self.measure.value, &self.of.value)
                .map_or_else(Vec::new, |subject| subject.by_seed(data, point)),
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
        series(&self.measure.value, &self.of.value)
            .map_or_else(Vec::new, |series| series.by_seed(data, point))
    }

    /// Returns the course over time: for the end of each interval, the mean over flows and seeds. With `seed`, of this one alone, counted from 1.
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
            .values_of(&choice.key.value)
            .into_iter()
            .filter(|value| choice.may_be(value))
            .map(|value| {
                let mut at = self.at.clone();
                at.insert(choice.key.value.clone(), value);
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

    /// The names that the experiment `id` does not have, with their places: settings of no point, keys that are not swept, flows.
    pub(crate) fn check(&self, id: &str, contents: &Contents) -> Vec<(Located<()>, String)> {
        let mut problems = Vec::new();
        let mut check =
            |place: Located<()>, why: Option<String>| problems.extend(why.map(|why| (place, why)));
        for key in self.choice.iter().map(|choice| &choice.key).chain(&self.level_by) {
            check(key.place(), contents.unswept(id, &key.value));
        }
        for (choice, among) in self.choice.iter().filter_map(|choice| Some((choice, choice.among.as_ref()?)))
        {
            let unknown = |value: &String| contents.unknown_value(id, &choice.key.value, value);
            check(among.place(), among.value.iter().find_map(unknown));
        }
        if let Some(place) = &self.place {
            check(place.clone(), contents.no_point(id, &self.at));
        }
        if let Some(name) = self.flows() {
            check(self.of.place(), contents.no_flow(id, &name));
        }
        problems
    }

    /// The flow or group that it is about; `None` for a measure that may be of one flow of a group, and for a queue.
    fn flows(&self) -> Option<String> {
        let (name, of) = (&self.measure.value, &self.of.value);
        if self.over_time.is_some() {
            return series(name, of)?.flows().map(str::to_owned);
        }
        measure(name, of)?.flows().map(str::to_owned)
    }

    /// The experiment, if it is not the claim's own.
    pub(crate) fn experiment(&self) -> Option<&str> {
        self.experiment.as_deref()
    }
}

impl Choice {
    /// Returns whether it chooses from this value.
    fn may_be(&self, value: &str) -> bool {
        let among = self.among.as_ref().map_or(&[][..], |among| &among.value);
        among.is_empty() || among.iter().any(|one| is_same(one, value))
    }
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
