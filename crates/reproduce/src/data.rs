//! An experiment's stored results, and the questions that figures ask of them.

use cutline_report::stats::{Cdf, Estimate};
use cutline_results::{
    DistributionRow, FlowRow, PointRow, QueueRow, QueueSeriesRow, SeriesRow, Store, StoreError, Summary,
    TimingRow,
};
use std::collections::BTreeMap;
use std::path::Path;

/// The tables of one experiment.
pub(crate) struct Data {
    pub(crate) summary: Summary,
    points: Vec<PointRow>,
    flows: Vec<FlowRow>,
    distributions: Vec<DistributionRow>,
    series: Vec<SeriesRow>,
    queues: Vec<QueueRow>,
    queue_series: Vec<QueueSeriesRow>,
    /// The timing of the laboratory's runs.
    pub(crate) timing: Vec<TimingRow>,
}

/// The label of a sweep's point.
pub(crate) type Point = str;

impl Data {
    /// Reads what is stored of the experiment `id` under `root`; `None` where nothing is.
    pub(crate) fn load(id: &str, root: &Path) -> Result<Option<Self>, StoreError> {
        let Some(summary) = Self::summary(id, root)? else { return Ok(None) };
        let store = Store::open(&root.join(id));
        Ok(Some(Self {
            summary,
            points: store.read()?,
            flows: store.read()?,
            distributions: store.read()?,
            series: store.read()?,
            queues: store.read()?,
            queue_series: store.read()?,
            timing: store.read_timing()?,
        }))
    }

    /// The summary of the experiment `id` under `root`; `None` where no run of it is in the tables.
    pub(crate) fn summary(id: &str, root: &Path) -> Result<Option<Summary>, StoreError> {
        let store = Store::open(&root.join(id));
        if !store.has_tables() {
            return Ok(None);
        }
        store.read_summary().map(Some)
    }

    /// The label of the point at which every one of these keys has this number (`true` is 1, `false` 0).
    pub(crate) fn point(&self, settings: &[(&str, f64)]) -> Option<&Point> {
        self.point_where(settings, |row, number| row.number == Some(*number))
    }

    /// The label of the point at which every one of these keys has this value.
    pub(crate) fn point_of_values(&self, settings: &[(&str, &str)]) -> Option<&Point> {
        self.point_where(settings, |row, value| row.value.trim_matches('"') == *value)
    }

    fn point_where<T>(&self, settings: &[(&str, T)], is: impl Fn(&PointRow, &T) -> bool) -> Option<&Point> {
        let has = |label: &Point, (key, value): &(&str, T)| {
            self.points.iter().any(|row| &*row.point == label && &*row.key == *key && is(row, value))
        };
        let labels = self.points.iter().map(|row| &*row.point);
        labels.into_iter().find(|label| settings.iter().all(|setting| has(label, setting)))
    }

    /// A measure of the queue in front of a link at a point, one value for each seed, in the order of the seeds.
    pub(crate) fn of_queue(&self, point: &Point, link: &str, measure: impl Fn(&QueueRow) -> f64) -> Vec<f64> {
        let rows = self.queues.iter().filter(|row| &*row.point == point && &*row.link == link);
        let seeds: BTreeMap<u64, f64> = rows.map(|row| (row.seed, measure(row))).collect();
        seeds.into_values().collect()
    }

    /// The intervals of the queue in front of a link at a point, those of each seed in the order of time.
    pub(crate) fn queue_intervals(&self, point: &Point, link: &str) -> Vec<Vec<&QueueSeriesRow>> {
        let mut seeds: BTreeMap<u64, Vec<&QueueSeriesRow>> = BTreeMap::new();
        for row in self.queue_series.iter().filter(|row| &*row.point == point && &*row.link == link) {
            seeds.entry(row.seed).or_default().push(row);
        }
        seeds.into_values().collect()
    }

    /// The intervals of a group's flows at a point, by seed and flow: those of each in the order of time.
    pub(crate) fn flow_intervals(&self, point: &Point, group: &str) -> Vec<Vec<Vec<&SeriesRow>>> {
        let mut seeds: BTreeMap<u64, BTreeMap<&str, Vec<&SeriesRow>>> = BTreeMap::new();
        for row in self.series.iter().filter(|row| &*row.point == point && &*row.group == group) {
            seeds.entry(row.seed).or_default().entry(&row.flow).or_default().push(row);
        }
        seeds.into_values().map(|flows| flows.into_values().collect()).collect()
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

    /// The same at the point with these values; empty where there is no such point, or nothing to measure.
    pub(crate) fn by_seed(
        &self,
        settings: &[(&str, &str)],
        group: &str,
        measure: impl Fn(&FlowRow) -> Option<f64>,
    ) -> Vec<f64> {
        let point = self.point_of_values(settings);
        let values = point.map_or_else(Vec::new, |point| self.per_seed(point, group, measure));
        if values.iter().any(|value| value.is_finite()) { values } else { Vec::new() }
    }

    /// The distribution of a delay of a flow or group at a point, over all seeds: milliseconds.
    pub(crate) fn delay_cdf(&self, point: &Point, subject: &str, quantity: &str) -> Option<Cdf> {
        Cdf::from_counts(self.buckets(point, subject, quantity).map(|row| (row.high, row.count)))
    }

    /// The same, one distribution for each seed.
    pub(crate) fn delay_cdfs(&self, point: &Point, subject: &str, quantity: &str) -> Vec<Cdf> {
        let mut seeds: BTreeMap<u64, Vec<(f64, u64)>> = BTreeMap::new();
        for row in self.buckets(point, subject, quantity) {
            seeds.entry(row.seed).or_default().push((row.high, row.count));
        }
        seeds.into_values().filter_map(Cdf::from_counts).collect()
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
        Cdf::from_values(rows.filter(|row| row.start_s >= warm_up_s).map(|row| row.goodput_bps / 1e3))
    }

    /// Whether a run of the plan is missing.
    pub(crate) fn is_complete(&self) -> bool {
        self.summary.complete
    }
}

/// An estimate of the mean from one value for each seed; `None` of nothing.
pub(crate) fn mean(values: &[f64]) -> Option<Estimate> {
    Estimate::from_values(values)
}

/// An estimate of the difference of two measures that share their seeds.
pub(crate) fn difference(left: &[f64], right: &[f64]) -> Option<Estimate> {
    (left.len() == right.len()).then(|| Estimate::from_differences(left, right)).flatten()
}

/// An estimate of the ratio of two measures that share their seeds.
pub(crate) fn ratio(over: &[f64], under: &[f64]) -> Option<Estimate> {
    (over.len() == under.len()).then(|| Estimate::from_ratios(over, under)).flatten()
}
