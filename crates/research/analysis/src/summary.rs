//! Means over replications with confidence intervals: of each point, or along some of the swept keys.
//!
//! A measure of a group in a run is the mean over its flows. For means along some keys, the points with equal values of these keys
//! are averaged for each seed, and the interval is that of the seeds' means. For means along all keys, each point has its own mean.

use crate::columns::{check_measures, swept_key};
use crate::{AnalysisError, Selection, Tables};
use cutline_report::stats::Estimate;
use cutline_results::{
    FlowRow, PointRow, QueueRow, Row, Subject, SubjectKind, Values, distributed_quantity, group_measures,
    queue_measures,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Contents of a summary.
#[derive(Clone, Debug)]
pub struct SummaryRequest {
    /// The swept keys along which there are means, such as `flow.audio.hint` or its end, `hint`; `None` for all swept keys.
    pub by: Option<Vec<String>>,
    /// The groups, queues and points.
    pub selection: Selection,
    /// The measures, columns of the tables or quantities of distributions; empty for the usual ones.
    pub measures: Vec<String>,
    /// Confidence of the intervals, between 0 and 1.
    pub confidence: f64,
}

impl Default for SummaryRequest {
    fn default() -> Self {
        Self { by: None, selection: Selection::default(), measures: Vec::new(), confidence: 0.95 }
    }
}

/// Means along the same keys.
#[derive(Clone, Debug, PartialEq)]
pub struct ResultsSummary {
    /// The swept keys.
    pub keys: Vec<String>,
    /// The means, by point, then by group or queue, then by measure.
    pub rows: Vec<MeanRow>,
}

/// The mean of a measure of a group or queue over replications.
#[derive(Clone, Debug, PartialEq)]
pub struct MeanRow {
    /// The values of the summary's keys, as the scenario writes them; `None` for a key that the point does not have.
    pub place: Vec<Option<Arc<str>>>,
    /// Kind of the subject: a group or a queue.
    pub kind: SubjectKind,
    /// The group's name or the link's.
    pub name: Arc<str>,
    /// The name of the table's column, or of the quantity of distributions.
    pub measure: &'static str,
    /// The unit of the measure.
    pub unit: &'static str,
    /// The mean with its interval.
    pub estimate: Estimate,
}

impl SummaryRequest {
    /// Returns the means of the tables.
    ///
    /// # Errors
    /// When a key is not swept, a measure is unknown, or no row of the tables is selected.
    pub fn summary(&self, tables: &Tables) -> Result<ResultsSummary, AnalysisError> {
        let keys = self.keys(&tables.points)?;
        let values = self.values(tables)?;
        let settings = settings(&tables.points);
        let mut means: Vec<Mean> = Vec::new();
        let mut places: BTreeMap<(Place, SubjectKind, Arc<str>, &str), usize> = BTreeMap::new();
        for one in &values {
            let of_point = settings.get(&one.subject.point);
            let value = |key: &String| of_point.and_then(|settings| settings.get(key.as_str()).cloned());
            let place: Place = keys.iter().map(value).collect();
            let subject = &one.subject;
            let identity = (place.clone(), subject.kind, Arc::clone(&subject.name), one.measure);
            let at = *places.entry(identity).or_insert_with(|| {
                means.push(Mean { place, of: one, by_seed: BTreeMap::new() });
                means.len() - 1
            });
            for (seed, value) in &one.by_seed {
                means[at].by_seed.entry(*seed).or_default().push(*value);
            }
        }
        // Requested measures follow one another: each is added to those of its group or queue.
        let mut first: BTreeMap<(&Place, &Subject), usize> = BTreeMap::new();
        let order = means
            .iter()
            .enumerate()
            .map(|(at, mean)| *first.entry((&mean.place, &mean.of.subject)).or_insert(at));
        let order: Vec<usize> = order.collect();
        let mut means: Vec<(usize, Mean)> = order.into_iter().zip(means).collect();
        means.sort_by_key(|(at, _)| *at);
        let rows = means.into_iter().filter_map(|(_, mean)| mean.row(self.confidence)).collect();
        Ok(ResultsSummary { keys, rows })
    }

    fn keys(&self, points: &[PointRow]) -> Result<Vec<String>, AnalysisError> {
        let mut swept: Vec<&str> = Vec::new();
        for row in points {
            if !swept.contains(&&*row.key) {
                swept.push(&row.key);
            }
        }
        match &self.by {
            None => Ok(swept.into_iter().map(str::to_owned).collect()),
            Some(by) => by.iter().map(|by| swept_key(&swept, by).map(str::to_owned)).collect(),
        }
    }

    fn values(&self, tables: &Tables) -> Result<Vec<Values>, AnalysisError> {
        check_measures(&self.measures)?;
        let mut values = if self.measures.is_empty() {
            [group_measures(&tables.flows), queue_measures(&tables.queues)].concat()
        } else {
            self.measures.iter().flat_map(|name| tables.values(name)).collect()
        };
        let mut names: Vec<Arc<str>> = Vec::new();
        let mut labels: Vec<&str> = Vec::new();
        for subject in values.iter().map(|one| &one.subject) {
            if !names.contains(&subject.name) {
                names.push(Arc::clone(&subject.name));
            }
            if labels.last() != Some(&&*subject.point) && !labels.contains(&&*subject.point) {
                labels.push(&subject.point);
            }
        }
        self.selection.check_groups(&names)?;
        self.selection.check_points(&tables.place, &labels)?;
        values.retain(|one| {
            self.selection.has_group(&one.subject.name) && self.selection.has_point(&one.subject.point)
        });
        Ok(values)
    }
}

/// The values of the keys of a summary.
type Place = Vec<Option<Arc<str>>>;

/// The settings of each point by its label.
fn settings(points: &[PointRow]) -> BTreeMap<Arc<str>, BTreeMap<&str, Arc<str>>> {
    let mut settings: BTreeMap<Arc<str>, BTreeMap<&str, Arc<str>>> = BTreeMap::new();
    for PointRow { point, key, value, .. } in points {
        settings.entry(Arc::clone(point)).or_default().insert(key, Arc::clone(value));
    }
    settings
}

/// The values of one mean by seed: one for each point at its place.
struct Mean<'v> {
    place: Place,
    of: &'v Values,
    by_seed: BTreeMap<u64, Vec<f64>>,
}

impl Mean<'_> {
    fn row(self, confidence: f64) -> Option<MeanRow> {
        let Self { place, of, by_seed } = self;
        let mean = |values: &Vec<f64>| values.iter().sum::<f64>() / values.len() as f64;
        let means: Vec<f64> = by_seed.values().map(mean).collect();
        Some(MeanRow {
            place,
            kind: of.subject.kind,
            name: Arc::clone(&of.subject.name),
            measure: of.measure,
            unit: match (distributed_quantity(of.measure), of.subject.kind) {
                (Some(about), _) => about.unit,
                (None, SubjectKind::Group) => unit::<FlowRow>(of.measure),
                (None, SubjectKind::Queue) => unit::<QueueRow>(of.measure),
            },
            estimate: Estimate::with_confidence(&means, confidence)?,
        })
    }
}

fn unit<R: Row>(measure: &str) -> &'static str {
    R::columns().iter().find(|column| column.about.name == measure).map_or("-", |column| column.about.unit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::ResultsComparison;
    use cutline_results::{DistributionRow, Host, Summary};

    fn tables() -> Tables {
        let row = |hint: u64, aqm: &str, seed, q| FlowRow {
            point: format!("hint={hint},aqm={aqm}").into(),
            seed,
            group: "audio".into(),
            q: Some(q),
            ..FlowRow::default()
        };
        let flows = vec![
            row(1, "pi", 1, 0.1),
            row(1, "pi", 2, 0.3),
            row(1, "red", 1, 0.5),
            row(1, "red", 2, 0.7),
            row(6, "pi", 1, 0.9),
            row(6, "red", 1, 0.5),
        ];
        let settings = |(hint, aqm): (&str, &str)| {
            let settings = [("flow.audio.hint", hint), ("dumbbell.queue.aqm", aqm)];
            let settings = settings.map(|(key, value)| (key.to_owned(), value.to_owned()));
            PointRow::from_settings(&format!("hint={hint},aqm={aqm}"), &settings)
        };
        let points = [("1", "pi"), ("1", "red"), ("6", "pi"), ("6", "red")];
        let summary = Summary {
            schema: 1,
            origin: String::new(),
            version: String::new(),
            commit: String::new(),
            name: "test".to_owned(),
            title: None,
            description: None,
            scenario_file: String::new(),
            scenario: String::new(),
            overrides: Vec::new(),
            seeds: vec![1, 2],
            points: Vec::new(),
            finished: Vec::new(),
            failed: Vec::new(),
            complete: true,
            host: Host::default(),
            started_at: String::new(),
            finished_at: String::new(),
            files: BTreeMap::new(),
            digest: String::new(),
        };
        let points = points.into_iter().flat_map(settings).collect();
        let (queues, distributions) = (Vec::new(), Vec::new());
        Tables { place: "results/test".into(), summary, flows, queues, distributions, points }
    }

    #[test]
    fn quantities_of_distributions_are_measures() {
        const MEASURE: &str = "flows_in_region_percent";
        let with = |values: [f64; 2]| {
            let row = |(seed, value)| DistributionRow {
                point: "hint=1,aqm=pi".into(),
                seed,
                subject_kind: "group".into(),
                ..DistributionRow::single("audio", MEASURE, value)
            };
            Tables { distributions: (1..).zip(values).map(row).collect(), ..tables() }
        };
        let measures = vec![MEASURE.to_owned()];
        let request = SummaryRequest { measures: measures.clone(), ..SummaryRequest::default() };
        let rows = request.summary(&with([80.0, 90.0])).unwrap().rows;
        assert_eq!((rows.len(), rows[0].measure, rows[0].unit), (1, MEASURE, "%"));
        assert!((rows[0].estimate.mean - 85.0).abs() < 1e-9, "{rows:?}");
        let (a, b) = (with([80.0, 90.0]), with([60.0, 70.0]));
        let compared = ResultsComparison::between(&a, &b, &Selection::default(), &measures).unwrap().measures;
        assert_eq!((compared.len(), compared[0].values.measure), (1, MEASURE));
        assert!((compared[0].comparison.difference - 20.0).abs() < 1e-9, "{compared:?}");
    }

    fn q(by: Option<&[&str]>) -> Vec<(String, f64, usize)> {
        let by = by.map(|keys| keys.iter().map(|key| (*key).to_owned()).collect());
        let request = SummaryRequest { by, measures: vec!["q".to_owned()], ..SummaryRequest::default() };
        let row = |row: MeanRow| {
            let place: Vec<&str> = row.place.iter().flatten().map(|value| &**value).collect();
            (place.join(" "), (row.estimate.mean * 1e6).round() / 1e6, row.estimate.n)
        };
        request.summary(&tables()).unwrap().rows.into_iter().map(row).collect()
    }

    fn expect(found: &[(String, f64, usize)], expected: &[(&str, f64, usize)]) {
        let found: Vec<(&str, f64, usize)> =
            found.iter().map(|(at, mean, n)| (at.as_str(), *mean, *n)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn there_is_a_mean_for_each_point_or_for_each_value_of_a_key() {
        expect(&q(None), &[("1 pi", 0.2, 2), ("1 red", 0.6, 2), ("6 pi", 0.9, 1), ("6 red", 0.5, 1)]);
        expect(&q(Some(&["hint"])), &[("1", 0.4, 2), ("6", 0.7, 1)]);
        expect(&q(Some(&["dumbbell.queue.aqm"])), &[("pi", 0.4, 2), ("red", 0.6, 2)]);
        expect(&q(Some(&[])), &[("", 0.5, 2)]);
    }

    /// Seeds are averaged over the points first: 0.3 and 0.5 for the seeds 1 and 2.
    #[test]
    fn the_interval_is_that_of_the_seeds() {
        let by = Some(vec!["hint".to_owned()]);
        let request = SummaryRequest { by, measures: vec!["q".to_owned()], ..SummaryRequest::default() };
        let of = |request: &SummaryRequest| request.summary(&tables()).unwrap().rows[0].estimate;
        assert_eq!(of(&request), Estimate::from_values(&[0.3, 0.5]).unwrap());
        let narrow = of(&SummaryRequest { confidence: 0.5, ..request });
        assert!((narrow.half_width() - 0.1).abs() < 1e-12, "t(1, 0.75) is 1: {narrow:?}");
    }

    #[test]
    fn errors_of_missing_names_list_the_existing_ones() {
        let why = |request: &SummaryRequest| request.summary(&tables()).unwrap_err().to_string();
        let names = |name: &str| vec![name.to_owned()];
        let by = SummaryRequest { by: Some(names("rate")), ..SummaryRequest::default() };
        assert_eq!(
            why(&by),
            "by rate: not a swept key; expected one of: flow.audio.hint, dumbbell.queue.aqm"
        );
        let measures = SummaryRequest { measures: names("goodput"), ..SummaryRequest::default() };
        assert!(why(&measures).contains("did you mean goodput_bps?"), "{}", why(&measures));
        let selection = Selection { groups: names("video"), points: Vec::new() };
        let groups = SummaryRequest { selection, ..SummaryRequest::default() };
        assert_eq!(why(&groups), "group video: there is none; expected one of: audio");
    }
}
