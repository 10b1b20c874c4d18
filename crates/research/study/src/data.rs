//! The stored results of an experiment, and the values that figures take from them.

use crate::experiment::Experiment;
use crate::settings::{Settings, is_same};
use cutline_config::Errors;
use cutline_report::stats::{Cdf, Comparison, Estimate};
use cutline_results::{
    DistributionRow, FlowRow, PointRow, QueueRow, QueueSeriesRow, SeriesRow, Store, StoreError, Summary,
    TimingRow,
};
use cutline_scenario::ScenarioFile;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The tables of one experiment.
pub struct Data {
    /// The folder of the results.
    pub folder: PathBuf,
    /// Summary of the experiment.
    pub summary: Summary,
    points: Vec<PointRow>,
    flows: Vec<FlowRow>,
    distributions: Vec<DistributionRow>,
    series: Vec<SeriesRow>,
    queues: Vec<QueueRow>,
    queue_series: Vec<QueueSeriesRow>,
    /// The timing of runs in the laboratory.
    pub(crate) timing: Vec<TimingRow>,
    /// The warm-up, which the series include, s.
    warm_up_s: f64,
}

/// The label of a point of a sweep.
pub type Point = str;

/// An experiment with its results.
pub type ExperimentData<'a> = (&'a Experiment, &'a Data);

/// The results of an experiment; `None` if there are none.
pub fn results_of<'s>(stored: &[ExperimentData<'s>], id: &str) -> Option<&'s Data> {
    stored.iter().find(|(experiment, _)| experiment.id == id).map(|(_, data)| *data)
}

impl Data {
    /// Reads the results of the experiment `id` under `root`; `None` if there are none.
    pub(crate) fn load(id: &str, root: &Path) -> Result<Option<Self>, StoreError> {
        let Some(summary) = Self::summary(id, root)? else { return Ok(None) };
        let store = Store::open(&root.join(id));
        let flows: Vec<FlowRow> = store.read()?;
        let mut points: Vec<PointRow> = store.read()?;
        points.extend(overridden(&summary, &flows));
        Ok(Some(Self {
            folder: root.join(id),
            warm_up_s: warm_up_s(&summary),
            summary,
            points,
            flows,
            distributions: store.read()?,
            series: store.read()?,
            queues: store.read()?,
            queue_series: store.read()?,
            timing: store.read_timing()?,
        }))
    }

    /// Reads the summary of the experiment `id` under `root`; `None` if it has no results.
    pub(crate) fn summary(id: &str, root: &Path) -> Result<Option<Summary>, StoreError> {
        let store = Store::open(&root.join(id));
        if !store.has_tables() {
            return Ok(None);
        }
        store.read_summary().map(Some)
    }

    /// The label of the point at which each of these keys has the given number. `true` is 1, `false` is 0.
    pub fn point(&self, settings: &[(&str, f64)]) -> Option<&Point> {
        self.point_where(settings, |row, number| row.number == Some(*number))
    }

    /// The label of the point at which each of these keys has the given value; of the only point if there are none.
    pub fn point_with_values(&self, settings: &[(&str, &str)]) -> Option<&Point> {
        if settings.is_empty() {
            return self.flows.first().map(|row| &*row.point);
        }
        self.point_where(settings, |row, value| row.value.trim_matches('"') == *value)
    }

    /// The label of the point with these values; of the only point if there are none.
    pub(crate) fn point_at(&self, settings: &Settings) -> Option<&Point> {
        if settings.is_empty() {
            return self.flows.first().map(|row| &*row.point);
        }
        let pairs: Vec<(&str, &str)> =
            settings.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        self.point_where(&pairs, |row, value| is_same(row.value.trim_matches('"'), value))
    }

    /// The values that a swept key has, each once, in the order of the sweep.
    pub(crate) fn values_of(&self, key: &str) -> Vec<String> {
        let mut values: Vec<String> = Vec::new();
        for row in self.points.iter().filter(|row| &*row.key == key) {
            let value = row.value.trim_matches('"');
            if !values.iter().any(|known| known == value) {
                values.push(value.to_owned());
            }
        }
        values
    }

    fn point_where<T>(&self, settings: &[(&str, T)], is: impl Fn(&PointRow, &T) -> bool) -> Option<&Point> {
        let has = |label: &Point, (key, value): &(&str, T)| {
            self.points.iter().any(|row| &*row.point == label && &*row.key == *key && is(row, value))
        };
        let labels = self.points.iter().map(|row| &*row.point);
        labels.into_iter().find(|label| settings.iter().all(|setting| has(label, setting)))
    }

    /// A measure of the queue of a link at a point, one value for each seed, in the order of the seeds.
    pub fn queue_values(&self, point: &Point, link: &str, measure: impl Fn(&QueueRow) -> f64) -> Vec<f64> {
        let rows = self.queues.iter().filter(|row| &*row.point == point && &*row.link == link);
        let seeds: BTreeMap<u64, f64> = rows.map(|row| (row.seed, measure(row))).collect();
        seeds.into_values().collect()
    }

    /// The packets dropped at all queues but that of a link, over all points, one value for each seed.
    pub fn dropped_elsewhere(&self, link: &str) -> Vec<f64> {
        let mut seeds: BTreeMap<u64, u64> = BTreeMap::new();
        for row in &self.queues {
            *seeds.entry(row.seed).or_default() += if &*row.link == link { 0 } else { row.dropped };
        }
        seeds.into_values().map(|dropped| dropped as f64).collect()
    }

    /// The intervals of the queue of a link at a point, by seed, in the order of time.
    pub fn queue_intervals(&self, point: &Point, link: &str) -> Vec<Vec<&QueueSeriesRow>> {
        let mut seeds: BTreeMap<u64, Vec<&QueueSeriesRow>> = BTreeMap::new();
        for row in self.queue_series.iter().filter(|row| &*row.point == point && &*row.link == link) {
            seeds.entry(row.seed).or_default().push(row);
        }
        seeds.into_values().collect()
    }

    /// The intervals of the flows of a group at a point, by seed and flow, in the order of time.
    pub fn flow_intervals(&self, point: &Point, group: &str) -> Vec<Vec<Vec<&SeriesRow>>> {
        self.intervals_where(point, |row| &*row.group == group)
    }

    /// As [`flow_intervals`](Self::flow_intervals), of the flows that `of` selects.
    pub(crate) fn intervals_where(
        &self,
        point: &Point,
        of: impl Fn(&SeriesRow) -> bool,
    ) -> Vec<Vec<Vec<&SeriesRow>>> {
        let mut seeds: BTreeMap<u64, BTreeMap<&str, Vec<&SeriesRow>>> = BTreeMap::new();
        for row in self.series.iter().filter(|row| &*row.point == point && of(row)) {
            seeds.entry(row.seed).or_default().entry(&row.flow).or_default().push(row);
        }
        seeds.into_values().map(|flows| flows.into_values().collect()).collect()
    }

    /// The mean of a measure over the flows of a group at a point, one value for each seed, in the order of the seeds.
    /// Flows without a value are left out. A seed in which no flow has a value gives NaN.
    pub fn per_seed(
        &self,
        point: &Point,
        group: &str,
        measure: impl Fn(&FlowRow) -> Option<f64>,
    ) -> Vec<f64> {
        self.per_seed_where(point, |row| &*row.group == group, measure)
    }

    /// As [`per_seed`](Self::per_seed), of the flows that `of` selects.
    pub fn per_seed_where(
        &self,
        point: &Point,
        of: impl Fn(&FlowRow) -> bool,
        measure: impl Fn(&FlowRow) -> Option<f64>,
    ) -> Vec<f64> {
        let mut seeds: BTreeMap<u64, (f64, u32)> = BTreeMap::new();
        for row in self.flows.iter().filter(|row| &*row.point == point && of(row)) {
            let (sum, count) = seeds.entry(row.seed).or_default();
            if let Some(value) = measure(row) {
                *sum += value;
                *count += 1;
            }
        }
        seeds.into_values().map(|(sum, count)| sum / f64::from(count)).collect()
    }

    /// As [`per_seed`](Self::per_seed), of a single flow or a group.
    pub fn per_seed_of(
        &self,
        point: &Point,
        name: &str,
        measure: impl Fn(&FlowRow) -> Option<f64>,
    ) -> Vec<f64> {
        let of_flow = |row: &FlowRow| if &*row.flow == name { measure(row) } else { None };
        let is_group = self.flows.iter().any(|row| &*row.point == point && &*row.group == name);
        if is_group {
            return self.per_seed(point, name, measure);
        }
        let group = self.flows.iter().find(|row| &*row.point == point && &*row.flow == name);
        group.map_or_else(Vec::new, |row| self.per_seed(point, &row.group, of_flow))
    }

    /// As [`per_seed`](Self::per_seed), at the point with these values; empty if there is no such point or no value.
    pub fn by_seed(
        &self,
        settings: &[(&str, &str)],
        group: &str,
        measure: impl Fn(&FlowRow) -> Option<f64>,
    ) -> Vec<f64> {
        let point = self.point_with_values(settings);
        let values = point.map_or_else(Vec::new, |point| self.per_seed(point, group, measure));
        if values.iter().any(|value| value.is_finite()) { values } else { Vec::new() }
    }

    /// The distribution of a delay of a flow or group at a point, over all seeds, in milliseconds.
    pub fn delay_cdf(&self, point: &Point, subject: &str, quantity: &str) -> Option<Cdf> {
        Cdf::from_counts(self.buckets(point, subject, quantity).map(|row| (row.high, row.count)))
    }

    /// As [`delay_cdf`](Self::delay_cdf), one distribution for each seed.
    pub fn delay_cdfs(&self, point: &Point, subject: &str, quantity: &str) -> Vec<Cdf> {
        let mut seeds: BTreeMap<u64, Vec<(f64, u64)>> = BTreeMap::new();
        for row in self.buckets(point, subject, quantity) {
            seeds.entry(row.seed).or_default().push((row.high, row.count));
        }
        seeds.into_values().filter_map(Cdf::from_counts).collect()
    }

    /// The mean of a distribution of a flow or group at a point, one value for each seed. For a group without one, the mean over its flows.
    pub(crate) fn distribution_means(&self, point: &Point, subject: &str, quantity: &str) -> Vec<f64> {
        let of =
            |name: &str| self.delay_cdfs(point, name, quantity).iter().map(Cdf::mean).collect::<Vec<_>>();
        let own = of(subject);
        if !own.is_empty() {
            return own;
        }
        let rows = self.flows.iter().filter(|row| &*row.point == point && &*row.group == subject);
        let members: BTreeSet<&str> = rows.map(|row| &*row.flow).collect();
        let members: Vec<Vec<f64>> =
            members.into_iter().map(of).filter(|values| !values.is_empty()).collect();
        let seeds = members.iter().map(Vec::len).min().unwrap_or(0);
        let mean_of =
            |seed: usize| members.iter().map(|values| values[seed]).sum::<f64>() / members.len() as f64;
        (0..seeds).map(mean_of).collect()
    }

    fn buckets(
        &self,
        point: &Point,
        subject: &str,
        quantity: &str,
    ) -> impl Iterator<Item = &DistributionRow> {
        self.distributions
            .iter()
            .filter(move |row| &*row.point == point && &*row.subject == subject && &*row.quantity == quantity)
    }

    /// The distribution of the goodput of a flow per interval at a point, over all seeds, without the warm-up, in kbit/s.
    pub fn goodput_cdf(&self, point: &Point, flow: &str) -> Option<Cdf> {
        let rows = self.series.iter().filter(|row| &*row.point == point && &*row.flow == flow);
        Cdf::from_values(rows.filter(|row| row.start_s >= self.warm_up_s).map(|row| row.goodput_bps / 1e3))
    }

    /// The median of a measure over the intervals of a flow after the warm-up, one value for each seed, in the order of the seeds.
    pub fn interval_medians(
        &self,
        point: &Point,
        flow: &str,
        measure: impl Fn(&SeriesRow) -> f64,
    ) -> Vec<f64> {
        let mut seeds: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
        let of_flow = |row: &&SeriesRow| &*row.point == point && &*row.flow == flow;
        for row in self.series.iter().filter(of_flow).filter(|row| row.start_s >= self.warm_up_s) {
            seeds.entry(row.seed).or_default().push(measure(row));
        }
        let median = |values: Vec<f64>| Cdf::from_values(values).map_or(f64::NAN, |cdf| cdf.quantile(0.5));
        seeds.into_values().map(median).collect()
    }

    /// Returns whether all planned runs are stored.
    pub(crate) fn is_complete(&self) -> bool {
        self.summary.complete
    }
}

/// Returns the settings of overrides at every point. A swept key that is overridden does not vary and is no
/// part of the points' settings, but claims about its value hold of all points then.
fn overridden(summary: &Summary, flows: &[FlowRow]) -> Vec<PointRow> {
    let labels: BTreeSet<&str> = flows.iter().map(|row| &*row.point).collect();
    labels.into_iter().flat_map(|label| PointRow::from_settings(label, &summary.overrides)).collect()
}

/// The warm-up of stored results, s.
fn warm_up_s(summary: &Summary) -> f64 {
    let read = || -> Result<f64, Errors> {
        let mut file = ScenarioFile::parse(&summary.scenario, &summary.scenario_file)?;
        for (path, value) in &summary.overrides {
            file.set(path, value)?;
        }
        let points = file.expand()?;
        Ok(points.first().map_or(0.0, |point| point.scenario.warm_up.as_secs_f64()))
    };
    // The runs exist, so the file was valid. If it cannot be read nevertheless, no warm-up is left out.
    read().unwrap_or(0.0)
}

/// An estimate of the mean from one value for each seed; `None` without values.
pub fn mean(values: &[f64]) -> Option<Estimate> {
    Estimate::from_values(values)
}

/// An estimate of the difference of two measures that share their seeds.
pub fn difference(left: &[f64], right: &[f64]) -> Option<Estimate> {
    (left.len() == right.len()).then(|| Estimate::from_differences(left, right)).flatten()
}

/// An estimate of the ratio of two measures that share their seeds.
pub fn ratio(numerators: &[f64], denominators: &[f64]) -> Option<Estimate> {
    (numerators.len() == denominators.len())
        .then(|| Estimate::from_ratios(numerators, denominators))
        .flatten()
}

/// The difference of two means with independent seeds.
pub fn unpaired_difference(lab: &[f64], simulated: &[f64]) -> Option<Estimate> {
    let numbered = |values: &[f64], from: u64| (from..).zip(values.iter().copied()).collect::<Vec<_>>();
    let estimate = Comparison::new(&numbered(lab, 0), &numbered(simulated, 1 << 32))?;
    Some(Estimate { mean: estimate.difference, std_error: None, interval: estimate.interval, n: lab.len() })
}

/// The ratio of two means with independent seeds: their difference in units of the second, plus 1.
pub fn unpaired_ratio(lab: &[f64], simulated: &[f64]) -> Option<Estimate> {
    let unit = mean(simulated)?.mean;
    let scaled = |values: &[f64]| values.iter().map(|value| value / unit).collect::<Vec<_>>();
    let estimate =
        unpaired_difference(&scaled(lab), &scaled(simulated)).filter(|estimate| estimate.mean.is_finite())?;
    let interval = estimate.interval.map(|(low, high)| (low + 1.0, high + 1.0));
    Some(Estimate { mean: estimate.mean + 1.0, interval, ..estimate })
}
