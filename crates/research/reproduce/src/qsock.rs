//! The testbed of `QoSockets` (section III) in the laboratory with routers, and the paper's figures 6 to 12. Its measures and charts are
//! data; the pictures that a viewer saw are not.

use crate::testbed::{PICTURES, PROGRAMS};
use cutline_report::report::Section;
use cutline_study::{Code, ExperimentData, FigureText, results_of};

pub(crate) const CODE: Code = Code { sections, ..Code::NONE };

const WITHOUT_PROGRAMS: &str = "\
The programs were not installed: the main flows are those of the traffic generator, with the same messages, and NetVideo's are an \
application over QoS sockets where they are reserved. Nothing is said of what a viewer saw.";

/// Figure about the viewer's pictures.
const VIEWER: u32 = 15;

fn sections(figure: &FigureText, stored: &[ExperimentData<'_>]) -> Vec<Section> {
    let mut section = cutline_study::section(figure, stored);
    if stored.iter().any(|(_, data)| !data.summary.version.ends_with(PROGRAMS)) {
        section.notes.push(WITHOUT_PROGRAMS.to_owned());
    }
    if figure.number == VIEWER {
        section.pictures = pictures(stored);
    }
    vec![section]
}

/// Returns pictures of the viewer's film in the overload, if the programs are installed.
fn pictures(stored: &[ExperimentData<'_>]) -> Vec<(String, Vec<u8>)> {
    let shown = [
        ("netvideo-c2", "source.png", "As it was drawn"),
        ("netvideo-c2", "reserved.png", "As the viewer saw it in C2, with a reservation"),
        ("netvideo-c1", "unreserved.png", "As the viewer saw it in C1, without"),
    ];
    let read = |(id, file, what): (&str, &str, &str)| {
        let png = std::fs::read(results_of(stored, id)?.folder.join(PICTURES).join(file)).ok()?;
        Some((what.to_owned(), png))
    };
    shown.into_iter().filter_map(read).collect()
}

#[cfg(test)]
mod tests {
    use crate::study;
    use cutline_study::Experiment;

    fn cases() -> &'static [Experiment] {
        &study("qsock").unwrap().experiments
    }

    #[test]
    fn every_case_is_one_that_the_testbed_has() {
        for experiment in cases() {
            for quick in [false, true] {
                for point in experiment.scenario_file(quick).unwrap().expand().unwrap() {
                    cutline_lab::routed::check(&point.scenario).unwrap();
                    let samples = point.scenario.seeds as f64
                        * (point.scenario.measure_until - point.scenario.warm_up).as_secs_f64()
                        / 0.5;
                    // Section IV: at least 100 samples of NetVideo, and 200 of DIRM.
                    let least = if experiment.id.starts_with("dirm") { 200.0 } else { 100.0 };
                    assert!(quick || samples >= least, "{}: {samples}", experiment.id);
                }
            }
        }
    }

    #[test]
    fn all_cases_have_the_same_network() {
        let network = |experiment: &Experiment| {
            let scenario = experiment.scenario_file(false).unwrap().scenario().unwrap();
            scenario.graph()
        };
        let first = network(&cases()[0]);
        for experiment in cases().iter().filter(|experiment| experiment.set.is_empty()) {
            assert_eq!(network(experiment), first, "{}", experiment.id);
        }
    }
}
