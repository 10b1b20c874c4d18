//! Memory of thousands of reservations in a router. The router's neighbours are engines, too.

use crate::common::{SECOND, line, session, tspec};
use cutline_rsvp::engine::EngineParams;
use cutline_rsvp::object::Style;
use cutline_units::Duration;

/// The memory of a node does not grow with the time that it runs, and is a few kilobytes for a reservation. A table that doubles its size is as full with
/// 2,500 entries as with 10,000.
#[test]
fn a_reservation_takes_a_few_kilobytes() {
    assert_takes_a_few_kilobytes(2500);
}

#[test]
#[ignore = "takes a minute: make validate-rsvp runs it"]
fn each_of_ten_thousand_reservations_takes_a_few_kilobytes() {
    assert_takes_a_few_kilobytes(10_000);
}

fn assert_takes_a_few_kilobytes(reservations: u16) {
    let mut world = None;
    let measured = allocation_counter::measure(|| {
        let mut fresh = line(1, 1, &EngineParams::default());
        let destination = fresh.address(2, 1);
        for port in 1..=reservations {
            let session = session(destination, port);
            let sender = fresh.send_path(0, session, tspec(100.0));
            fresh.reserve(2, session, Style::FixedFilter, &[sender], 100.0);
            fresh.run(Duration::from_millis(1));
        }
        fresh.run(SECOND * 10);
        fresh.events = Vec::new();
        fresh.controls = Vec::new();
        world = Some(fresh);
    });
    let mut world = world.unwrap();
    let engine = &world.nodes[1].engine;
    assert_eq!(engine.sizes().controls, usize::from(reservations));
    let each = measured.bytes_current / i64::from(reservations) / 3;
    println!("a node's memory for a reservation: {each} bytes; {:?}", engine.sizes());
    assert!(each < 6000, "{each}");
    let later = allocation_counter::measure(|| world.run(SECOND * 1000));
    let more = later.bytes_current / i64::from(reservations) / 3;
    println!("more after 1000 s: {more} bytes");
    assert!(more < 500, "{more}");
}
