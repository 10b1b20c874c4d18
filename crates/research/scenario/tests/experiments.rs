//! The scenarios of `experiments/` are valid, and have the parameters of the papers.

use cutline_scenario::{ScenarioFile, SweepPoint};
use std::path::Path;

fn points(file: &str) -> Vec<SweepPoint> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../experiments").join(file);
    let file = ScenarioFile::load(&path).unwrap_or_else(|errors| panic!("{errors}"));
    file.expand().unwrap_or_else(|errors| panic!("{errors}"))
}

#[test]
fn every_tsq_experiment_has_the_papers_points() {
    for (file, number, flows) in [
        ("tsq/audio.toml", 17, 100),
        ("tsq/video.toml", 17, 20),
        ("tsq/mixed.toml", 8, 100),
        ("tsq/cheat.toml", 17, 100),
        ("tsq/unresponsive.toml", 8, 100),
    ] {
        let points = points(file);
        assert_eq!(points.len(), number, "{file}");
        for point in points {
            let scenario = point.scenario;
            assert_eq!(scenario.flow_count(), flows, "{file}");
            assert_eq!((scenario.duration.as_secs_f64(), scenario.seeds), (100.0, 10), "{file}");
            assert!(scenario.network().is_ok(), "{file}");
        }
    }
}
