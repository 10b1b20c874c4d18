//! Managers of two hosts that exchange summaries.

use crate::common::{Client, PATIENCE, Place, eventually, need};
use cutline_allocation::protocol::{AllocationReply, AllocationRequest, FlowNeed, ReportLine};
use cutline_manager::feedback::{HostId, PathId};
use cutline_manager::resources::{AllocationCause, SchedulingClass};
use cutline_manager_service::{ManagedPath, ManagerPeer, ManagerService, PathKey};
use cutline_sys::now;
use cutline_testbed::{free_address, in_time, take_again, undisturbed};
use cutline_units::Duration;
use serde_json::Value;
use std::sync::Arc;

fn key(content: u8) -> Vec<PathKey> {
    vec![PathKey { id: 1, secret: vec![content; 32] }]
}

/// Two places with a path between them.
fn pair() -> [Place; 2] {
    let addresses = [free_address(), free_address()];
    [0, 1].map(|own: usize| {
        let mut place = Place::new();
        let other = 1 - own;
        place.spec.host = HostId(own as u64 + 1);
        place.spec.listen = Some(addresses[own]);
        place.spec.feedback.interval = Duration::from_millis(100);
        place.spec.feedback.silence = Duration::from_secs(2);
        place.spec.paths = vec![ManagedPath {
            path: PathId(5),
            destinations: vec!["127.0.0.0/8".parse().unwrap()],
            peers: vec![ManagerPeer { host: HostId(other as u64 + 1), address: addresses[other] }],
        }];
        place
    })
}

fn start(place: &Place, keys: &[PathKey]) -> ManagerService {
    let start = || {
        let said = Arc::clone(&place.said);
        ManagerService::start(place.spec.clone(), keys, move |line| said.lock().unwrap().push(line))
    };
    // The service before may just have released the address.
    take_again(start).unwrap()
}

/// Reports the delivery of a flow of this rate in the last 100 ms, with a delay.
fn report(client: &mut Client, bps: u64, delay_ms: u64) {
    let (until, delay) = (now().as_nanos(), delay_ms * 1_000_000);
    let report = ReportLine {
        since_ns: until - 100_000_000,
        until_ns: until,
        sent: 100,
        messages: 100,
        bytes: bps / 80,
        lost: 0,
        delay_ns: Some([delay; 3]),
        backlog: 0,
    };
    client.send(&AllocationRequest::Report { id: 1, report });
}

#[test]
fn a_host_whose_flows_see_a_queue_lowers_those_of_the_other() {
    undisturbed(|| {
        let [first, second] = pair();
        let _services = [&first, &second].map(|place| start(place, &key(7)));
        let heard = |place: &Place| place.status().paths[0].hosts[0].is_heard;
        assert!(eventually(PATIENCE, || heard(&first) && heard(&second)));
        let flow = FlowNeed { delay_ms: Some((0.0, 100.0)), ..need(SchedulingClass::TimeShared, 40) };
        let mut clients = [&first, &second].map(|place| {
            let mut client = place.client();
            assert_eq!(client.admit(1, flow), Ok(40_000_000));
            client
        });
        // Both flows are well at first; then the queue of their path grows.
        let mut lowered = [None; 2];
        let until = now() + PATIENCE;
        for round in 0_u64.. {
            assert!(now() < until, "{lowered:?} after {round} rounds");
            let delay = 10 + round.saturating_sub(20) * 4;
            for (client, lowered) in clients.iter_mut().zip(&mut lowered) {
                report(client, 40_000_000, delay.min(200));
                while let Some(reply) = client.0.reply(Duration::ZERO).unwrap() {
                    if let AllocationReply::Rate { rate_bps, cause: AllocationCause::Path, .. } = reply {
                        lowered.get_or_insert((rate_bps, delay));
                    }
                }
            }
            if lowered.iter().all(Option::is_some) {
                break;
            }
            // The interval of the reports.
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        let [Some((first_rate, delay)), Some((second_rate, _))] = lowered else { panic!("{lowered:?}") };
        assert!(first_rate < 40_000_000 && second_rate < 40_000_000, "{lowered:?}");
        let [one, two] = [first.status(), second.status()].map(|status| status.paths[0].clone());
        // A host that has had no turn for two seconds is not heard.
        in_time!((one.coordinator, two.coordinator) == (1, 1), "{one:?} {two:?}");
        assert!(two.cutoff > 0.0 && two.received > 0 && one.forged + two.forged == 0);
        in_time!(delay < 100, "before the edge of the region: {delay} ms");
    });
}

#[test]
fn messages_of_hosts_with_other_keys_are_dropped() {
    let [first, second] = pair();
    let _services = [start(&first, &key(7)), start(&second, &key(8))];
    let is_forged = || first.status().paths[0].forged > 3 && second.status().paths[0].forged > 3;
    assert!(eventually(PATIENCE, is_forged));
    let status = first.status().paths[0].clone();
    assert!(!status.hosts[0].is_heard && status.received == 0);
}

/// The state may be on a disk. After another boot it has no flows, but old summaries are still old, and the next ones are new although the clock
/// is in the past. The same holds for a state that is not used for another reason.
#[test]
fn numbers_of_summaries_outlive_the_boot() {
    let [first, second] = pair();
    let services = [&first, &second].map(|place| start(place, &key(7)));
    assert!(eventually(PATIENCE, || second.status().paths[0].hosts[0].is_heard));
    drop(services);
    let file = second.path("manager.state");
    let state = || -> Value { serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap() };
    let heard = state()["state"]["numbers"][0][2].as_u64().unwrap();
    assert!(heard > 0, "{}", state());
    let boot = state()["boot"].clone();
    let changes: [fn(&mut Value); 2] =
        [|state| state["boot"] = "another".into(), |state| state["state"]["manager"]["version"] = 99.into()];
    for (change, own) in changes.into_iter().zip([1_u64 << 61, 1 << 62]) {
        let mut before = state();
        change(&mut before);
        before["state"]["manager"]["paths"][0]["number"] = own.into();
        std::fs::write(&file, before.to_string()).unwrap();
        drop(start(&second, &key(7)));
        let after = state();
        assert_eq!(after["boot"], boot);
        assert_eq!(after["state"]["numbers"][0][2], heard);
        assert!(after["state"]["manager"]["paths"][0]["number"].as_u64() > Some(own), "{after}");
    }
    let said = second.said.lock().unwrap().join("\n");
    assert!(said.contains("is not used: version = 99: allowed is 1"), "{said}");
}
