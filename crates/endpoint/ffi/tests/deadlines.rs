//! Deadlines of a program in C whose datagram socket has a share of the host.

use crate::c;

use cutline_manager::resources::{Capacities, ResourceParams};
use cutline_manager_service::{ManagerService, ManagerSpec};
use cutline_units::Rate;
use std::path::Path;

#[test]
fn a_program_in_c_reads_how_many_deadlines_it_has_missed() {
    let folder = tempfile::tempdir().unwrap();
    let spec = ManagerSpec {
        socket: folder.path().join("manager.sock"),
        state: folder.path().join("manager.state"),
        capacities: Capacities { combined: Some(Rate::from_mbps(8)), ..Capacities::default() },
        resources: ResourceParams { user_share: 1.0, ..ResourceParams::default() },
        ..ManagerSpec::default()
    };
    let socket = spec.socket.to_str().unwrap().to_owned();
    let _service = ManagerService::start(spec, &[], |_| {}).unwrap();
    let program = c::build(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/deadlines.c"), folder.path());
    let printed = c::run(&program, &[&socket]);
    let numbers: Vec<u32> = printed.split_whitespace().map(|number| number.parse().unwrap()).collect();
    let [sent, missed, was_late] = numbers[..] else { panic!("{printed}") };
    assert_eq!((sent, was_late), (100, 1));
    assert!((51..=100).contains(&missed), "{missed}");
}
