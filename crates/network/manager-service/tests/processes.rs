//! Clients that are processes of their own.

use crate::common::{Client, PATIENCE, Place, eventually, need, whole};
use cutline_manager::resources::SchedulingClass;
use cutline_sys::now;
use cutline_testbed::{in_time, undisturbed};
use cutline_units::Duration;
use std::process::{Child, Command, Stdio};

const SOCKET: &str = "CUTLINE_TEST_MANAGER_SOCKET";

/// The other process: it holds 60 Mbit/s until it is killed.
#[test]
#[ignore = "it is run by another test, in a process of its own"]
fn holder() {
    let Ok(socket) = std::env::var(SOCKET) else { return };
    let mut client = Client::connect(socket.as_ref(), None).unwrap();
    client.admit(1, need(SchedulingClass::RealTime, 60)).unwrap();
    // The other test kills this process long before.
    std::thread::sleep(std::time::Duration::from_secs(60));
}

fn spawn(place: &Place) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["processes::holder", "--exact", "--ignored"])
        .env(SOCKET, &place.spec.socket)
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

#[test]
fn the_share_of_a_dead_process_returns_within_a_second() {
    undisturbed(|| {
        // The lease of ten minutes is not the reason.
        let place = Place::new();
        let _service = place.start();
        let mut child = spawn(&place);
        assert!(eventually(PATIENCE, || place.status().all_flows == 1));
        let status = place.status();
        assert_eq!(status.flows[0].pid, Some(child.id()));
        assert!(place.client().admit(1, whole(60)).is_err());
        let killed = now();
        child.kill().unwrap();
        let returns = || place.client().admit(2, whole(60)) == Ok(60_000_000);
        assert!(eventually(PATIENCE, returns));
        let took = now().saturating_since(killed);
        child.wait().unwrap();
        in_time!(took < Duration::from_secs(1), "{took}");
    });
}
