//! Ordinary use: a client requests flows, gets rates, and is notified of changes.

use crate::common::{Client, PATIENCE, Place, eventually, need};
use cutline_allocation::protocol::{AllocationReply, AllocationRequest};
use cutline_flow::FlowSelector;
use cutline_manager::resources::{AllocationCause, SchedulingClass};
use cutline_manager_service::{AccessRule, AccessRules, ManagedInterface, ReservedRates};
use cutline_testbed::{in_time, undisturbed};
use cutline_units::{Duration, Rate};
use std::collections::BTreeMap;
use std::net::{Ipv6Addr, SocketAddr, SocketAddrV6};

#[test]
fn flows_are_admitted_reduced_or_refused_by_class() {
    let place = Place::new();
    let _service = place.start();
    let mut client = place.client();
    assert_eq!(client.admit(1, need(SchedulingClass::RealTime, 60)), Ok(60_000_000));
    // 75 may be promised.
    client.send(&AllocationRequest::Admit { id: 2, need: need(SchedulingClass::RealTime, 30) });
    let AllocationReply::Admitted { id: 2, rate_bps: 15_000_000, reduced: Some(why) } = client.reply() else {
        panic!("15 Mbit/s are left")
    };
    let said = "the ceiling of datagrams is exhausted: 30000000 bit/s needed, 15000000 left";
    assert_eq!(why, said);
    assert_eq!(client.rate(2), 15_000_000);
    let refused = client.admit(3, need(SchedulingClass::RealTime, 10)).unwrap_err();
    assert_eq!(refused, "the ceiling of datagrams is exhausted: 1000000 bit/s needed, 0 left");
    // Capacity that is not promised is shared.
    let open = cutline_allocation::protocol::FlowNeed {
        desired_bps: None,
        minimum_bps: 0,
        ..need(SchedulingClass::TimeShared, 1)
    };
    let share = client.admit(4, open).unwrap();
    assert!((24_000_000..=25_000_000).contains(&share), "{share}");
    // A change raises what others free.
    client.send(&AllocationRequest::Release { id: 1 });
    assert_eq!(client.rate(2), 30_000_000);
    let share = client.rate(4);
    assert!((66_000_000..=70_000_000).contains(&share), "{share}");
    let change = AllocationRequest::Change {
        id: 2,
        desired_bps: Some(5_000_000),
        minimum_bps: 1_000_000,
        delay_ms: None,
        loss_percent: None,
    };
    client.send(&change);
    let (before, rate, cause) = client.next(|reply| match reply {
        AllocationReply::Rate { id: 2, before_bps, rate_bps, cause } => Some((before_bps, rate_bps, cause)),
        _ => None,
    });
    assert_eq!((before, rate, cause), (Some(30_000_000), 5_000_000, AllocationCause::Request));
    let status = client.status();
    assert_eq!(status.flows.len(), 2);
    assert_eq!(status.capacities[0].promised, 5_000_000);
    assert!(status.capacities[0].in_use <= 100_000_000);
    assert_eq!((status.counters.admitted, status.counters.reduced, status.counters.refused), (1, 2, 1));
}

#[test]
fn values_that_are_not_allowed_are_refused_by_name() {
    let place = Place::new();
    let _service = place.start();
    let mut client = place.client();
    let good = need(SchedulingClass::RealTime, 10);
    let refused = |client: &mut Client, need| client.admit(1, need).unwrap_err();
    let important = cutline_allocation::protocol::FlowNeed { priority: 16, ..good };
    assert_eq!(refused(&mut client, important), "priority = 16: allowed is 0 to 15");
    let open = cutline_allocation::protocol::FlowNeed { minimum_bps: 0, ..good };
    assert!(refused(&mut client, open).contains("at least 1 bit/s for a real-time flow"));
    let odd = cutline_allocation::protocol::FlowNeed { minimum_bps: u64::MAX, ..good };
    let why = refused(&mut client, odd);
    assert!(why.starts_with("desired = ") && why.contains("at most"), "{why}");
    client.admit(1, good).unwrap();
    assert!(refused(&mut client, good).contains("id = 1"));
    let unknown = AllocationRequest::Change {
        id: 9,
        desired_bps: None,
        minimum_bps: 0,
        delay_ms: None,
        loss_percent: None,
    };
    client.send(&unknown);
    assert!(matches!(client.reply(), AllocationReply::Refused { id: 9, .. }));
}

#[test]
fn reservations_of_rsvp_reduce_the_capacity_for_flows() {
    let mut place = Place::new();
    place.spec.interfaces =
        vec![ManagedInterface { name: "lo".to_owned(), rate: Rate::from_mbps(80), has_classes: false }];
    let service = place.start();
    let capacity = |place: &Place| {
        let status = place.status();
        status.capacities.iter().find(|its| its.resource == "lo").map(|its| (its.capacity, its.reserved))
    };
    assert_eq!(capacity(&place), Some((80_000_000, 0)));
    let interfaces = BTreeMap::from([("lo".to_owned(), Rate::from_mbps(30))]);
    service.set_reserved(ReservedRates { interfaces, ..ReservedRates::default() });
    let arrives = || capacity(&place) == Some((80_000_000, 30_000_000));
    assert!(eventually(PATIENCE, arrives));
    // Another capacity takes effect without a restart.
    let mut spec = place.spec.clone();
    spec.interfaces[0].rate = Rate::from_mbps(50);
    service.reconfigure(spec);
    let arrives = || capacity(&place) == Some((50_000_000, 30_000_000));
    assert!(eventually(PATIENCE, arrives));
}

#[test]
fn capacities_that_shrink_lower_flows_at_once() {
    let place = Place::new();
    let service = place.start();
    let mut client = place.client();
    client.admit(1, need(SchedulingClass::RealTime, 60)).unwrap();
    let mut spec = place.spec.clone();
    spec.capacities.datagrams = Some(Rate::from_mbps(40));
    service.reconfigure(spec);
    let (rate, cause) = client.next(|reply| match reply {
        AllocationReply::Rate { rate_bps, cause, .. } => Some((rate_bps, cause)),
        _ => None,
    });
    assert_eq!((rate, cause), (30_000_000, AllocationCause::Capacity));
}

#[test]
fn a_user_without_a_rule_may_be_kept_out() {
    let mut place = Place::new();
    place.spec.access = AccessRules { is_open: false, users: Vec::new(), groups: Vec::new() };
    let service = place.start();
    let own = rustix::process::geteuid().as_raw();
    let connected = Client::connect(&place.spec.socket, None).map(drop);
    if own == 0 {
        assert!(connected.is_ok(), "root is always allowed");
    } else {
        assert!(connected.unwrap_err().to_string().contains("user = "));
    }
    drop(service);
    let policy = cutline_manager::resources::UserPolicy { weight: 7, ..Default::default() };
    place.spec.access.users.push(AccessRule { id: own, policy });
    let _service = place.start();
    let mut client = place.client();
    client.admit(1, need(SchedulingClass::TimeShared, 1)).unwrap();
    assert_eq!(client.status().users[0].weight, 7);
}

/// A real-time flow that is not renewed loses its share after the lease.
#[test]
fn a_flow_that_is_not_renewed_is_revoked() {
    undisturbed(|| {
        let mut place = Place::new();
        place.spec.resources.lease = Duration::from_secs(2);
        let _service = place.start();
        let mut client = place.client();
        assert_eq!(client.0.lease(), Duration::from_secs(2));
        client.admit(1, need(SchedulingClass::RealTime, 60)).unwrap();
        for _ in 0..6 {
            // The pace of a client that renews four times in a lease.
            std::thread::sleep(std::time::Duration::from_millis(500));
            client.send(&AllocationRequest::Renew {});
        }
        in_time!(client.status().all_flows == 1, "it was renewed, and revoked");
        let cause = client.next(|reply| match reply {
            AllocationReply::Revoked { id: 1, cause } => Some(cause),
            _ => None,
        });
        assert_eq!(cause, AllocationCause::Lease);
        assert_eq!(client.status().counters.expired, 1);
    });
}

/// A link-local address at the loopback interface, which has number 1 in every network namespace.
fn at_loopback(last: u16, port: u16) -> SocketAddr {
    let ip = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0xff, 0xfe00, last);
    SocketAddr::V6(SocketAddrV6::new(ip, port, 0, 1))
}

/// Frames below IP have link-local addresses to which no route needs to lead. A connection that was made again has another source.
#[test]
fn a_flow_between_link_local_addresses_is_at_the_interface_of_its_zone() {
    let mut place = Place::new();
    place.spec.interfaces =
        vec![ManagedInterface { name: "lo".to_owned(), rate: Rate::from_mbps(80), has_classes: false }];
    let _service = place.start();
    let mut client = place.client();
    let address = at_loopback;
    let frames = cutline_allocation::protocol::FlowNeed {
        source: address(1, 4000),
        destination: address(2, 5000),
        ..need(SchedulingClass::RealTime, 10)
    };
    client.admit(1, frames).unwrap();
    let flow = client.status().flows.remove(0);
    assert_eq!((flow.interface.as_deref(), flow.source), (Some("lo"), address(1, 4000)));
    client.send(&AllocationRequest::Move { id: 1, source: address(1, 4001) });
    let flow = client.status().flows.remove(0);
    assert_eq!((flow.source, flow.granted_bps), (address(1, 4001), 10_000_000));
}

/// A rule that is removed from the file no longer holds for clients that are connected, and another one does.
#[test]
fn other_rules_hold_for_connected_clients() {
    let mut place = Place::new();
    let rule = |id, weight| {
        let policy = cutline_manager::resources::UserPolicy { weight, ..Default::default() };
        AccessRule { id, policy }
    };
    place.spec.access.users.push(rule(rustix::process::geteuid().as_raw(), 7));
    let service = place.start();
    let mut client = place.client();
    client.admit(1, need(SchedulingClass::TimeShared, 1)).unwrap();
    assert_eq!(client.status().users[0].weight, 7);
    place.spec.access.users.clear();
    service.reconfigure(place.spec.clone());
    assert!(eventually(PATIENCE, || client.status().users[0].weight == 1));
    place.spec.access.groups.push(rule(rustix::process::getegid().as_raw(), 3));
    service.reconfigure(place.spec.clone());
    assert!(eventually(PATIENCE, || client.status().users[0].weight == 3));
}

/// A flow that needs more than its reservation counts at its interface. Without room there it keeps its rate, and so do others.
#[test]
fn a_change_beyond_a_reservation_lowers_no_other_flow() {
    let mut place = Place::new();
    place.spec.interfaces =
        vec![ManagedInterface { name: "lo".to_owned(), rate: Rate::from_mbps(80), has_classes: false }];
    let service = place.start();
    let (source, destination) = (at_loopback(1, 4000), at_loopback(2, 5000));
    let packets = FlowSelector {
        protocol: Some(17),
        destination_port: Some(5000),
        source: Some(source.ip()),
        source_port: Some(4000),
        ..FlowSelector::to(destination.ip())
    };
    let rate = Rate::from_mbps(20);
    service.set_reserved(ReservedRates {
        interfaces: BTreeMap::from([("lo".to_owned(), rate)]),
        flows: BTreeMap::from([("lo".to_owned(), BTreeMap::from([(packets, rate)]))]),
    });
    let at_interface = || {
        let status = place.status();
        let found = status.capacities.into_iter().find(|its| its.resource == "lo");
        found.map(|its| (its.reserved, its.promised))
    };
    assert!(eventually(PATIENCE, || at_interface() == Some((20_000_000, 0))));
    let reserved = cutline_allocation::protocol::FlowNeed {
        source,
        destination,
        minimum_bps: 20_000_000,
        ..need(SchedulingClass::RealTime, 20)
    };
    let (mut client, mut other) = (place.client(), place.client());
    assert_eq!(client.admit(1, reserved), Ok(20_000_000));
    // Of 60 that may be promised 20 are reserved.
    let plain = cutline_allocation::protocol::FlowNeed {
        source: at_loopback(1, 4001),
        destination,
        ..need(SchedulingClass::RealTime, 35)
    };
    assert_eq!(other.admit(1, plain), Ok(35_000_000));
    assert_eq!(at_interface(), Some((20_000_000, 35_000_000)));
    client.send(&AllocationRequest::Change {
        id: 1,
        desired_bps: Some(30_000_000),
        minimum_bps: 30_000_000,
        delay_ms: None,
        loss_percent: None,
    });
    let AllocationReply::Refused { id: 1, reason } = client.reply() else { panic!("there is no room") };
    assert_eq!(reason, "interface lo is exhausted: 30000000 bit/s needed, 5000000 left");
    other.send(&AllocationRequest::Status {});
    let status = match other.reply() {
        AllocationReply::Status { status } => status,
        notice => panic!("no flow is lowered: {notice:?}"),
    };
    assert_eq!(status.flows.iter().map(|flow| flow.granted_bps).sum::<u64>(), 55_000_000);
}
