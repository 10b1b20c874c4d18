//! The study of QUANTA over ATM, from scenario to report, shortened.

use crate::common::{measured, measured_and_drawn, study};

#[test]
fn every_figure_is_measured_and_drawn() {
    let evaluation = measured_and_drawn(study("quanta"), &[]);
    let of = |id: &str| measured(&evaluation, id);
    assert!(
        of("requested.loss-10") > 0.0 && of("requested.delay") < 0.1,
        "{} {}",
        of("requested.loss-10"),
        of("requested.delay")
    );
    assert!((6.0..9.5).contains(&of("cells.cells-8")), "{}", of("cells.cells-8"));
    assert!(
        of("network-load.picks-up") > of("network-load.starves"),
        "{} {}",
        of("network-load.picks-up"),
        of("network-load.starves")
    );
    assert!(
        of("network-load.allocated") > of("network-load.starves"),
        "{} {}",
        of("network-load.allocated"),
        of("network-load.starves")
    );
}

#[test]
fn the_direct_connections_leave_the_rate_of_the_scenario() {
    let scenario = study("quanta").experiments[2].scenario_file(false).unwrap().expand().unwrap();
    let network = scenario[0].scenario.network().unwrap();
    let link = network.flows()[0].route[1];
    assert_eq!(network.link_name(link), "s1->s2");
    let cells = network.cells(link).unwrap();
    // Of 100 Mbit/s in cells, two connections of 35 Mbit/s in blocks of 9148 B leave this for segments of 8232 B.
    let direct = 2.0 * 35.0 * f64::from(cells.on_link(9148)) / 9148.0;
    let left = (100.0 - direct) * 8192.0 / f64::from(cells.on_link(8232));
    assert!((left - 20.4).abs() < 0.2, "{left}");
}
