//! QUANTA's measurements with real sockets. Here is its figure 1: the regions of operation of flows with their delivery, as radar
//! charts.

use cutline_quality::spec::{Interval, Measure, Region};
use cutline_report::chart::Format;
use cutline_report::region::radar;
use cutline_report::report::Section;
use cutline_results::SeriesRow;
use cutline_study::{Code, ExperimentData, FigureText, Point};

pub(crate) const CODE: Code = Code { sections, ..Code::NONE };

/// The figure with the regions of operation.
const REGIONS: u32 = 5;

/// A flow of an experiment at a point of its sweep.
struct Shown {
    experiment: &'static str,
    flow: &'static str,
    at: &'static [(&'static str, &'static str)],
    name: &'static str,
}

/// The charts: title, measured intervals in seconds, and the flows, all with the same region.
type RegionChart = (&'static str, [f64; 2], &'static [Shown]);

const FIFO: &[(&str, &str)] = &[("link.line.queue", "fifo")];
const CHARTS: [RegionChart; 5] = [
    (
        "A receiver at 1 Gbit/s beside 48 decoders",
        [1.0, 3.5],
        &[
            Shown { experiment: "host-load-many", flow: "unmanaged-48", at: &[], name: "unmanaged" },
            Shown { experiment: "host-load-many", flow: "managed-48", at: &[], name: "managed" },
        ],
    ),
    (
        "A receiver beside four decoders",
        [1.0, 3.5],
        &[
            Shown { experiment: "host-load", flow: "unmanaged-4", at: &[], name: "unmanaged" },
            Shown { experiment: "host-load", flow: "managed-4", at: &[], name: "managed" },
        ],
    ),
    (
        "A receiver of frames beside four decoders",
        [1.0, 3.5],
        &[
            Shown {
                experiment: "host-load-carriers",
                flow: "direct-unmanaged-4",
                at: &[],
                name: "unmanaged",
            },
            Shown { experiment: "host-load-carriers", flow: "direct-managed-4", at: &[], name: "managed" },
        ],
    ),
    (
        "A receiver of TCP beside four decoders",
        [1.0, 3.5],
        &[
            Shown { experiment: "host-load-carriers", flow: "tcp-unmanaged-4", at: &[], name: "unmanaged" },
            Shown { experiment: "host-load-carriers", flow: "tcp-managed-4", at: &[], name: "managed" },
        ],
    ),
    (
        "TCP beside two flows that do not respond",
        [3.0, 8.0],
        &[
            Shown { experiment: "unmanaged", flow: "tcp", at: FIFO, name: "unmanaged" },
            Shown { experiment: "allocated", flow: "tcp", at: FIFO, name: "allocated" },
        ],
    ),
];

fn sections(figure: &FigureText, stored: &[ExperimentData<'_>]) -> Vec<Section> {
    let mut section = cutline_study::section(figure, stored);
    if figure.number == REGIONS {
        let charts = CHARTS.iter();
        section.pictures =
            charts.filter_map(|chart| Some((chart.0.to_owned(), picture(chart, stored)?))).collect();
    }
    vec![section]
}

/// Draws the regions of flows; `None` without their results.
fn picture((title, window, flows): &RegionChart, stored: &[ExperimentData<'_>]) -> Option<Vec<u8>> {
    let operation = |shown: &Shown| Some((shown.name, operation(shown, *window, stored)?));
    let intervals = flows.iter().map(operation).collect::<Option<Vec<_>>>()?;
    let region = intervals.first()?.1.region().clone();
    let named: Vec<(&str, &Interval)> = intervals.iter().map(|(name, interval)| (*name, interval)).collect();
    radar(title, &region, &named).file(Format::Png).ok()
}

/// Returns the interval of operation of a flow: the best and the worst of the intervals of all seeds.
fn operation(shown: &Shown, [from, until]: [f64; 2], stored: &[ExperimentData<'_>]) -> Option<Interval> {
    let (experiment, data) = stored.iter().find(|(experiment, _)| experiment.id == shown.experiment)?;
    let scenario = experiment.scenario_file(false).ok()?.expand().ok()?.into_iter().next()?.scenario;
    let group = scenario.flows.iter().find(|group| group.name == shown.flow)?;
    let mut interval = Interval::new(Region::new(&group.qos.as_ref()?.specification.send));
    let point: &Point = data.point_with_values(shown.at)?;
    for row in data.flow_intervals(point, shown.flow).into_iter().flatten().flatten() {
        if row.start_s >= from && row.end_s <= until {
            observe(&mut interval, row);
        }
    }
    Some(interval)
}

fn observe(interval: &mut Interval, row: &SeriesRow) {
    let (received, dropped) = (row.packets_received as f64, row.packets_dropped as f64);
    interval.observe(Measure::Rate, received / (row.end_s - row.start_s));
    row.one_way_mean_ms.into_iter().for_each(|delay| interval.observe(Measure::Delay, delay));
    row.ipdv_mean_ms.into_iter().for_each(|jitter| interval.observe(Measure::Jitter, jitter));
    let lost = if dropped > 0.0 { 100.0 * dropped / (dropped + received) } else { 0.0 };
    interval.observe(Measure::Loss, lost);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study;

    #[test]
    fn every_flow_of_a_chart_has_a_region_and_those_of_a_chart_have_the_same() {
        let study = study("quanta-lab").unwrap();
        for (title, _, flows) in &CHARTS {
            let region = |shown: &Shown| {
                let experiment =
                    study.experiments.iter().find(|experiment| experiment.id == shown.experiment).unwrap();
                let points = experiment.scenario_file(false).unwrap().expand().unwrap();
                let scenario = &points[0].scenario;
                let group = scenario.flows.iter().find(|group| group.name == shown.flow).unwrap();
                Region::new(&group.qos.as_ref().unwrap().specification.send)
            };
            let first = region(&flows[0]);
            assert!(!first.axes().is_empty() && flows.iter().all(|shown| region(shown) == first), "{title}");
        }
    }

    #[test]
    fn an_interval_of_operation_has_the_rate_in_messages_the_delay_and_the_loss() {
        let study = study("quanta-lab").unwrap();
        let experiment = study.experiments.iter().find(|experiment| experiment.id == "host-load").unwrap();
        let points = experiment.scenario_file(false).unwrap().expand().unwrap();
        let send = &points[0].scenario.flows[0].qos.as_ref().unwrap().specification.send;
        let mut interval = Interval::new(Region::new(send));
        let row = SeriesRow {
            start_s: 1.0,
            end_s: 1.5,
            packets_received: 300,
            packets_dropped: 100,
            one_way_mean_ms: Some(30.0),
            ..SeriesRow::default()
        };
        observe(&mut interval, &row);
        let outside: Vec<_> = interval.outside().map(|(axis, value)| (axis.measure, value)).collect();
        assert_eq!(outside, [(Measure::Rate, 600.0), (Measure::Delay, 30.0), (Measure::Loss, 25.0)]);
    }

    #[test]
    fn the_platforms_support_all_scenarios() {
        for experiment in &study("quanta-lab").unwrap().experiments {
            for point in experiment.scenario_file(false).unwrap().expand().unwrap() {
                match experiment.platform.name() {
                    "hosts" => crate::hosts::check(&point.scenario).unwrap(),
                    "loaded-host" => cutline_lab::loaded::check(&point.scenario).unwrap(),
                    _ => cutline_lab::routed::check(&point.scenario).unwrap(),
                }
            }
        }
    }
}
