//! The study of routers in a row, from scenario to report, shortened.

use crate::common::{measured, measured_and_drawn, study};

#[test]
fn every_figure_is_measured_and_drawn() {
    let evaluation = measured_and_drawn(study("cascade"), &[]);
    let of = |id: &str| measured(&evaluation, &format!("cascade.{id}"));
    assert!((1.4..2.6).contains(&of("adds-up-2")), "{}", of("adds-up-2"));
    assert!((2.0..3.6).contains(&of("adds-up-3")), "{}", of("adds-up-3"));
    assert!(of("falls") < 0.8, "{}", of("falls"));
    assert!(of("loss") > 0.0, "{}", of("loss"));
}

#[test]
fn paths_through_one_and_three_routers_have_the_same_delay() {
    let points = study("cascade").experiments[0].scenario_file(false).unwrap().expand().unwrap();
    assert_eq!(points.len(), 8 * 3 + 3 * 5 + 6);
    for point in points {
        let network = point.scenario.network().unwrap();
        let flow = &network.flows()[0];
        let delays = flow.route.iter().map(|link| network.link(*link).delay.as_millis_f64());
        assert!((delays.sum::<f64>() - 150.0).abs() <= 2.0, "{}", point.label());
    }
}
