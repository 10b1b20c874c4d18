//! The study of routers in a row, from scenario to report, shortened.

use cutline_reproduce::{CASCADE, Options};
use std::num::NonZeroUsize;
use std::sync::atomic::AtomicBool;

#[test]
fn every_figure_is_measured_and_drawn() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options {
        results: folder.path().to_owned(),
        figures: Vec::new(),
        quick: true,
        resume: false,
        threads: NonZeroUsize::new(2).unwrap(),
        version: "test",
        clock: || "now".to_owned(),
    };
    let evaluation = CASCADE.run(&options, &AtomicBool::new(false), &|_| {}, &|_| {}).unwrap();
    assert!(evaluation.complete && evaluation.failed.is_empty(), "{:?}", evaluation.failed);
    let unmeasured = evaluation.claims.iter().find(|claim| claim.measured.is_none_or(f64::is_nan));
    assert!(unmeasured.is_none(), "{unmeasured:?}");
    let of = |id: &str| {
        let id = format!("cascade.{id}");
        evaluation.claims.iter().find(|claim| claim.id == id).unwrap().measured.unwrap()
    };
    assert!((1.4..2.6).contains(&of("adds-up-2")), "{}", of("adds-up-2"));
    assert!((2.0..3.6).contains(&of("adds-up-3")), "{}", of("adds-up-3"));
    assert!(of("falls") < 0.8, "{}", of("falls"));
    assert!(of("loss") > 0.0, "{}", of("loss"));
    for number in 1..=3 {
        assert!(folder.path().join(format!("cascade/figures/figure-{number}.png")).exists(), "{number}");
    }
}

#[test]
fn the_way_is_as_long_through_one_router_as_through_three() {
    let points = CASCADE.experiments[0].scenario_file(false).unwrap().expand().unwrap();
    assert_eq!(points.len(), 7 * 3 + 2 * 5 + 6);
    for point in points {
        let network = point.scenario.network().unwrap();
        let flow = &network.flows()[0];
        let delays = flow.route.iter().map(|link| network.link(*link).delay.as_millis_f64());
        assert!((delays.sum::<f64>() - 150.0).abs() <= 2.0, "{}", point.label());
    }
}
