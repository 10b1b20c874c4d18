//! Clients that lie, flood, do not read or do not speak the protocol.

use crate::common::{Client, PATIENCE, Place, eventually, need, open};
use cutline_allocation::protocol::{AllocationReply, AllocationRequest, LONGEST_LINE, ReportLine};
use cutline_manager::resources::SchedulingClass;
use cutline_sys::now;
use cutline_testbed::{in_time, undisturbed};
use cutline_units::Duration;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;

#[test]
fn an_invalid_request_ends_the_connection_with_the_reason() {
    let place = Place::new();
    let _service = place.start();
    let answer = |lines: &[u8]| {
        let mut stream = UnixStream::connect(&place.spec.socket).unwrap();
        stream.write_all(lines).unwrap();
        let mut text = String::new();
        stream.set_read_timeout(Some(std::time::Duration::from_secs(60))).unwrap();
        stream.read_to_string(&mut text).unwrap();
        text
    };
    for (lines, says) in [
        (&b"{\"request\":\"status\"}\n"[..], "the first request must be hello"),
        (b"{\"request\":\"hello\",\"version\":9}\n", "version = 9: allowed is 1"),
        (b"{\"request\":\"hello\",\"version\":1}\n{\"request\":\"hello\",\"version\":1}\n", "only once"),
        (b"{\"request\":\"hello\",\"version\":1}\n{\"request\":\"grab\"}\n", "grab"),
        (b"\xff\xfe\n", "expected"),
        (&[b'x'; LONGEST_LINE + 2], "longer than 4096 B"),
    ] {
        let text = answer(lines);
        assert!(text.contains("\"reply\":\"error\"") && text.contains(says), "{text}");
    }
    assert!(place.client().admit(1, need(SchedulingClass::RealTime, 1)).is_ok());
}

/// The user's part is what counts, however many clients and flows the user has.
#[test]
fn many_clients_of_a_user_hold_no_more_than_the_users_share() {
    let mut place = Place::new();
    place.spec.resources.user_share = 0.4;
    let _service = place.start();
    let mut clients: Vec<_> = (0..20).map(|_| place.client()).collect();
    let got: u64 = clients
        .iter_mut()
        .map(|client| client.admit(1, need(SchedulingClass::RealTime, 9)).unwrap_or_default())
        .sum();
    // 0.4 of what may be promised, which is 75 Mbit/s.
    assert!((29_000_000..=30_000_000).contains(&got), "{got}");
    let refused = clients[19].admit(2, need(SchedulingClass::RealTime, 9)).unwrap_err();
    assert!(refused.starts_with("the user's share of the ceiling of datagrams"), "{refused}");
}

/// Reports of flows that the client does not hold, and of nonsense, change nothing.
#[test]
fn a_client_cannot_touch_the_flows_of_another() {
    let place = Place::new();
    let _service = place.start();
    let (mut honest, mut liar) = (place.client(), place.client());
    honest.admit(1, need(SchedulingClass::RealTime, 60)).unwrap();
    let report = ReportLine {
        since_ns: u64::MAX,
        until_ns: 0,
        sent: u64::MAX,
        messages: u64::MAX,
        bytes: u64::MAX,
        lost: i64::MIN,
        delay_ns: Some([u64::MAX; 3]),
        backlog: u64::MAX,
    };
    for id in 0..5 {
        liar.send(&AllocationRequest::Report { id, report });
        liar.send(&AllocationRequest::Release { id });
    }
    liar.admit(1, open(1000)).unwrap();
    liar.send(&AllocationRequest::Report { id: 1, report });
    let status = liar.status();
    assert_eq!(status.all_flows, 2);
    assert_eq!(status.flows[0].granted_bps, 60_000_000);
    assert!(status.capacities[0].in_use <= 100_000_000);
}

/// Another client is answered soon while one floods.
#[test]
fn a_flood_of_requests_does_not_delay_another_client() {
    undisturbed(|| {
        let place = Place::new();
        let _service = place.start();
        let mut floods: Vec<UnixStream> = (0..3)
            .map(|_| {
                let mut stream = UnixStream::connect(&place.spec.socket).unwrap();
                stream.write_all(b"{\"request\":\"hello\",\"version\":1}\n").unwrap();
                stream.set_nonblocking(true).unwrap();
                stream
            })
            .collect();
        let mut client = place.client();
        let lines = "{\"request\":\"renew\"}\n".repeat(1000);
        let until = now() + Duration::from_secs(3);
        let mut worst = Duration::ZERO;
        let mut id = 0;
        while now() < until {
            for stream in &mut floods {
                let _full = stream.write(lines.as_bytes());
            }
            let begin = now();
            client.admit(id, need(SchedulingClass::TimeShared, 1)).unwrap();
            worst = worst.max(now().saturating_since(begin));
            client.send(&AllocationRequest::Release { id });
            id += 1;
        }
        // The budget of lines is the user's, and all of them are of one user: at most the rest of a second passes.
        in_time!(worst < Duration::from_secs(3) && id > 2, "{worst}, {id} requests");
    });
}

/// A client that requests one status after another gets each of them, and others are served meanwhile.
#[test]
fn statuses_are_answered_in_order_and_delay_no_other_client() {
    let place = Place::new();
    let _service = place.start();
    let mut greedy = place.client();
    for id in 0..100 {
        greedy.admit(id, open(1)).unwrap();
    }
    for _ in 0..100 {
        greedy.send(&AllocationRequest::Status {});
    }
    greedy.send(&AllocationRequest::Release { id: 7 });
    greedy.send(&AllocationRequest::Status {});
    assert!(place.client().admit(1, open(1)).is_ok());
    for _ in 0..100 {
        let flows = greedy.next(|reply| match reply {
            AllocationReply::Status { status } => Some(status.flows),
            AllocationReply::Released { .. } => panic!("it was requested later"),
            _ => None,
        });
        assert!(flows.iter().any(|flow| flow.flow == 8), "{flows:?}");
    }
    greedy.next(|reply| matches!(reply, AllocationReply::Released { id: 7 }).then_some(()));
    let flows = greedy.next(|reply| match reply {
        AllocationReply::Status { status } => Some(status.flows),
        _ => None,
    });
    assert!(!flows.iter().any(|flow| flow.flow == 8), "{flows:?}");
}

/// A client that reads nothing is disconnected before its notices fill the memory, and its share returns.
#[test]
fn a_client_that_does_not_read_is_disconnected() {
    let place = Place::new();
    let service = place.start();
    let mut stuck = Client::connect(&place.spec.socket, None).unwrap();
    for id in 0..200 {
        stuck.send(&AllocationRequest::Admit { id, need: open(10) });
    }
    let is_there = || place.status().all_flows >= 200;
    assert!(eventually(PATIENCE, is_there));
    // Capacities that change again and again notify every flow each time. Its leases are not what ends.
    let is_gone = || {
        for mbps in [60, 100] {
            let mut spec = place.spec.clone();
            spec.capacities.datagrams = Some(cutline_units::Rate::from_mbps(mbps));
            service.reconfigure(spec);
            std::thread::sleep(std::time::Duration::from_millis(55));
        }
        place.status().all_flows == 0
    };
    assert!(eventually(PATIENCE, is_gone));
}

/// The share of a client that is disconnected goes to others at once, not in the next second.
#[test]
fn others_get_the_share_of_a_client_that_is_disconnected_at_once() {
    undisturbed(|| {
        let place = Place::new();
        let _service = place.start();
        let mut other = place.client();
        other.admit(1, open(100)).unwrap();
        let mut worst = Duration::ZERO;
        for _ in 0..5 {
            let mut liar = Client::connect(&place.spec.socket, None).unwrap();
            liar.admit(1, need(SchedulingClass::RealTime, 60)).unwrap();
            while other.rate(1) > 50_000_000 {}
            // A second hello is not allowed.
            let begin = now();
            liar.send(&AllocationRequest::Hello { version: 1, session: None });
            while other.rate(1) < 90_000_000 {}
            worst = worst.max(now().saturating_since(begin));
        }
        in_time!(worst < Duration::from_millis(150), "{worst}");
    });
}

/// Renewals of many flows take time, so a client that renews again and again has most of them without effect.
#[test]
fn leases_are_renewed_a_few_times_in_a_lease() {
    let mut place = Place::new();
    place.spec.resources.lease = Duration::from_secs(160);
    let _service = place.start();
    let mut client = place.client();
    client.admit(1, open(10)).unwrap();
    client.send(&AllocationRequest::Renew {});
    client.status();
    // The lease is that much shorter then; no event tells of it.
    std::thread::sleep(std::time::Duration::from_millis(500));
    client.send(&AllocationRequest::Renew {});
    let left = client.status().flows[0].lease_s;
    assert!(left < 159.6, "{left}");
}
