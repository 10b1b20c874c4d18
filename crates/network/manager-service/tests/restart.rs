//! Restarts: the state survives, and the leftovers of a killed process do no harm.

use crate::common::{Client, PATIENCE, Place, eventually, need, whole};
use cutline_allocation::protocol::AllocationRequest;
use cutline_manager::resources::SchedulingClass;
use cutline_testbed::{in_time, undisturbed};
use cutline_units::Duration;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;

#[test]
fn a_client_has_its_flows_again_after_a_restart() {
    let place = Place::new();
    let service = place.start();
    let (mut first, mut second) = (place.client(), place.client());
    first.admit(7, need(SchedulingClass::RealTime, 60)).unwrap();
    second.admit(1, need(SchedulingClass::TimeShared, 80)).unwrap();
    let before = place.status();
    let sessions = [&first, &second].map(|client| client.0.session().to_owned());
    drop((service, first, second));
    let service = place.start();
    assert_eq!(service.taken_over(), 2);
    // The share is kept for its holders: no other client gets it before they reconnect.
    let mut other = place.client();
    assert!(other.admit(1, whole(60)).is_err());
    let first = Client::connect(&place.spec.socket, Some(&sessions[0])).unwrap();
    let held = first.0.held();
    assert_eq!((held.len(), held[0].id, held[0].rate_bps), (1, 7, 60_000_000));
    let after = place.status();
    assert_eq!(after.taken_over, 2);
    let flows = |status: &cutline_allocation::status::ManagerStatus| {
        let each = status.flows.iter().map(|flow| (flow.flow, flow.granted_bps, flow.promised_bps));
        each.collect::<Vec<_>>()
    };
    assert_eq!(flows(&before), flows(&after));
    let said = place.said.lock().unwrap().join("\n");
    assert!(said.contains("restored 2 flows of 2 clients"), "{said}");
}

#[test]
fn a_guessed_session_is_refused() {
    let place = Place::new();
    let _service = place.start();
    let mut client = place.client();
    client.admit(1, need(SchedulingClass::RealTime, 60)).unwrap();
    let guess = "0".repeat(32);
    let other = Client::connect(&place.spec.socket, Some(&guess)).unwrap();
    assert!(other.0.held().is_empty() && other.0.session() != guess);
    assert_ne!(other.0.session(), client.0.session());
    let mode = std::fs::metadata(place.path("manager.state")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "sessions are secret");
    let mode = std::fs::metadata(place.path("manager.state.journal")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn a_client_that_does_not_come_back_loses_its_share() {
    undisturbed(|| {
        let mut place = Place::new();
        place.spec.resources.lease = Duration::from_millis(500);
        let service = place.start();
        let mut client = place.client();
        client.admit(1, need(SchedulingClass::RealTime, 60)).unwrap();
        // The manager ends before the client, so it learns nothing of the client's end.
        drop((service, client));
        let _service = place.start();
        let is_kept = place.status().all_flows == 1;
        assert!(eventually(PATIENCE, || place.status().all_flows == 0));
        assert_eq!(place.client().admit(1, need(SchedulingClass::RealTime, 60)), Ok(60_000_000));
        in_time!(is_kept, "the share was lost before the lease was over");
    });
}

/// Refused, ended and changed requests count, although no flow of them remains.
#[test]
fn the_counters_of_a_killed_process_are_those_of_its_last_answer() {
    let place = Place::new();
    let service = place.start();
    let mut client = place.client();
    for id in 0..5 {
        client.admit(id, need(SchedulingClass::TimeShared, 1)).unwrap();
        client.send(&AllocationRequest::Release { id });
    }
    client.admit(7, need(SchedulingClass::RealTime, 60)).unwrap();
    for _ in 0..3 {
        client.admit(8, whole(60)).unwrap_err();
    }
    // It has the counters that follow from all requests before.
    let counters = client.status().counters;
    assert_eq!((counters.admitted, counters.released, counters.refused), (6, 5, 3));
    let killed = Place::new();
    for name in ["manager.state", "manager.state.journal"] {
        std::fs::copy(place.path(name), killed.path(name)).unwrap();
    }
    drop(service);
    let _service = killed.start();
    assert_eq!(killed.status().counters, counters);
}

/// A process that is killed leaves the snapshot of its start, and the journal since.
#[test]
fn the_journal_has_the_replies_of_a_killed_process() {
    let place = Place::new();
    let service = place.start();
    let mut client = place.client();
    let session = client.0.session().to_owned();
    client.admit(1, need(SchedulingClass::RealTime, 30)).unwrap();
    client.admit(2, need(SchedulingClass::RealTime, 20)).unwrap();
    client.admit(3, need(SchedulingClass::TimeShared, 20)).unwrap();
    client.send(&AllocationRequest::Release { id: 1 });
    let change = AllocationRequest::Change {
        id: 2,
        desired_bps: Some(25_000_000),
        minimum_bps: 1_000_000,
        delay_ms: None,
        loss_percent: None,
    };
    client.send(&change);
    assert_eq!(client.rate(2), 25_000_000);
    let killed = Place::new();
    let copy = |name: &str| std::fs::copy(place.path(name), killed.path(name)).unwrap();
    assert!(copy("manager.state") > 0 && copy("manager.state.journal") > 0);
    drop(service);
    // It was killed in the middle of a line.
    let journal = killed.path("manager.state.journal");
    let mut file = std::fs::File::options().append(true).open(&journal).unwrap();
    file.write_all(b"{\"gone\":3").unwrap();
    let service = killed.start();
    assert_eq!(service.taken_over(), 2, "{:?}", killed.said.lock().unwrap());
    let client = Client::connect(&killed.spec.socket, Some(&session)).unwrap();
    let held: Vec<_> = client.0.held().iter().map(|flow| (flow.id, flow.rate_bps)).collect();
    assert_eq!(held, [(2, 25_000_000), (3, 20_000_000)]);
}

#[test]
fn a_state_that_cannot_be_used_is_reported_and_ignored() {
    let place = Place::new();
    for text in ["", "{}", "no json"] {
        std::fs::write(place.path("manager.state"), text).unwrap();
        let service = place.start();
        assert_eq!(service.taken_over(), 0);
    }
    let said = place.said.lock().unwrap().clone();
    assert_eq!(said.len(), 3, "{said:?}");
    assert!(said.iter().all(|line| line.contains("is not used") && line.contains("manager.state")));
    // One of another boot is no problem, and is not used.
    let service = place.start();
    place.client().admit(1, need(SchedulingClass::RealTime, 1)).unwrap();
    drop(service);
    let state = std::fs::read_to_string(place.path("manager.state")).unwrap();
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    std::fs::write(place.path("manager.state"), state.replace(boot.trim(), "another")).unwrap();
    assert_eq!(place.start().taken_over(), 0);
    assert_eq!(place.said.lock().unwrap().len(), 3);
}

#[test]
fn a_state_that_cannot_be_written_is_reported_and_serves_on() {
    let mut place = Place::new();
    std::fs::create_dir(place.path("folder")).unwrap();
    place.spec.state = place.path("folder");
    let _service = place.start();
    assert!(place.client().admit(1, need(SchedulingClass::RealTime, 1)).is_ok());
    let is_said = || place.said.lock().unwrap().iter().any(|line| line.contains("cannot be written"));
    assert!(eventually(PATIENCE, is_said));
}

/// A full disk, for example: changes are still in the journal, and a later attempt writes the snapshot.
#[test]
fn a_snapshot_that_could_not_be_written_is_written_later() {
    let place = Place::new();
    let service = place.start();
    let mut client = place.client();
    client.admit(1, need(SchedulingClass::RealTime, 30)).unwrap();
    // The name of the temporary file is not free.
    std::fs::create_dir(place.path("manager.state.new")).unwrap();
    let mut spec = place.spec.clone();
    spec.capacities.datagrams = Some(cutline_units::Rate::from_mbps(90));
    service.reconfigure(spec);
    let count = || {
        let said = place.said.lock().unwrap();
        said.iter().filter(|line| line.contains("cannot be written")).count()
    };
    assert!(eventually(PATIENCE, || count() > 0));
    client.admit(2, need(SchedulingClass::RealTime, 20)).unwrap();
    let killed = Place::new();
    for name in ["manager.state", "manager.state.journal"] {
        std::fs::copy(place.path(name), killed.path(name)).unwrap();
    }
    assert_eq!(killed.start().taken_over(), 2, "{:?}", killed.said.lock().unwrap());
    // Two more attempts, one a second.
    std::thread::sleep(std::time::Duration::from_millis(2500));
    assert_eq!(count(), 1, "the same problem is reported once");
    std::fs::remove_dir(place.path("manager.state.new")).unwrap();
    let is_written = || {
        let state = std::fs::read_to_string(place.path("manager.state")).unwrap();
        state.contains("\"datagrams_bps\":90000000")
    };
    assert!(eventually(PATIENCE, is_written));
    assert_eq!(client.status().all_flows, 2);
}
