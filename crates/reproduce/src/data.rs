//! An experiment's stored results, and the questions that figures ask of them.

use crate::evaluation::ReproduceError;
use crate::experiment::Experiment;
use cutline_report::stats::{Cdf, Estimate};
use cutline_scenario::results::{DistributionRow, FlowRow, PointRow, SeriesRow, Store, Summary};
use std::collections::BTreeMap;
use std::path::Path;

/// The tables of one experiment.
pub(crate) struct Data {
    pub(crate) summary: Summary,
    points: Vec<PointRow>,
    flows: Vec<FlowRow>,
    distributions: Vec<DistributionRow>,
    series: Vec<SeriesRow>,
}

/// The label of a sweep's point.
pub(crate) type Point = str;

impl Data {
    /// Reads what is stored under `root/ID`.
    pub(crate) fn load(experiment: &Experiment, root: &Path) -> Result<Self, ReproduceError> {
        let folder = root.join(experiment.id);
        if !folder.join("summary.json").exists() {
            return Err(ReproduceError::Nothing { experiment: experiment.id, folder });
        }
        let store = Store::open(&folder);
        Ok(Self {
            summary: store.read_summary()?,
            points: store.read()?,
            flows: store.read()?,
            distributions: store.read()?,
            series: store.read()?,
        })
    }

    /// The label of the point at which every one of these keys has this number (`true` is 1, `false` 0).
    pub(crate) fn point(&self, settings: &[(&str, f64)]) -> Option<&Point> {
        let mut labels: Vec<&str> = self.points.iter().map(|row| &*row.point).collect();
        labels.dedup();
        labels.into_iter().find(|label| {
            settings.iter().all(|&(key, number)| {
                let row = self.points.iter().find(|row| &*row.point == *label && &*row.key == key);
                row.is_some_and(|row| row.number == Some(number))
            })
        })
    }

    /// A measure of a group's flows at a point: their mean, one value for each seed, in the order of the seeds. A flow
    /// for which there is nothing to measure is left out; a seed without any gives NaN.
    pub(crate) fn per_seed(
        &self,
        point: &Point,
        group: &str,
        measure: impl Fn(&FlowRow) -> Option<f64>,
    ) -> Vec<f64> {
        let mut seeds: BTreeMap<u64, (f64, u32)> = BTreeMap::new();
        for row in self.flows.iter().filter(|row| &*row.point == point && &*row.group == group) {
            let (sum, count) = seeds.entry(row.seed).or_default();
            if let Some(value) = measure(row) {
                *sum += value;
                *count += 1;
            }
        }
        seeds.into_values().map(|(sum, count)| sum / f64::from(count)).collect()
    }

    /// The distribution of a delay of a flow or group at a point, over all seeds: milliseconds.
    pub(crate) fn delay_cdf(&self, point: &Point, subject: &str, quantity: &str) -> Option<Cdf> {
        Cdf::of_counts(self.buckets(point, subject, quantity).map(|row| (row.high, row.count)))
    }

    /// The same, one distribution for each seed.
    pub(crate) fn delay_cdfs(&self, point: &Point, subject: &str, quantity: &str) -> Vec<Cdf> {
        let mut seeds: BTreeMap<u64, Vec<(f64, u64)>> = BTreeMap::new();
        for row in self.buckets(point, subject, quantity) {
            seeds.entry(row.seed).or_default().push((row.high, row.count));
        }
        seeds.into_values().filter_map(Cdf::of_counts).collect()
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

    /// The distribution of a flow's goodput by interval at a point, over all seeds, the warm-up left out: kbit/s.
    pub(crate) fn throughput_cdf(&self, point: &Point, flow: &str, warm_up_s: f64) -> Option<Cdf> {
        let rows = self.series.iter().filter(|row| &*row.point == point && &*row.flow == flow);
        Cdf::of_values(rows.filter(|row| row.start_s >= warm_up_s).map(|row| row.goodput_bps / 1e3))
    }

    /// Whether a run of the plan is missing.
    pub(crate) fn is_complete(&self) -> bool {
        self.summary.complete
    }
}

/// An estimate of the mean from one value for each seed; `None` of nothing.
pub(crate) fn mean(values: &[f64]) -> Option<Estimate> {
    Estimate::of(values)
}

/// An estimate of the difference of two measures that share their seeds.
pub(crate) fn difference(left: &[f64], right: &[f64]) -> Option<Estimate> {
    (left.len() == right.len()).then(|| Estimate::of_differences(left, right)).flatten()
}

/// An estimate of the ratio of two measures that share their seeds.
pub(crate) fn ratio(over: &[f64], under: &[f64]) -> Option<Estimate> {
    (over.len() == under.len()).then(|| Estimate::of_ratios(over, under)).flatten()
}
