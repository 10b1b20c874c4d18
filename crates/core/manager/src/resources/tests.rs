use super::*;

const fn at(ms: u64) -> Instant {
    Instant::from_nanos(ms * 1_000_000)
}

const MBPS: fn(u64) -> Rate = Rate::from_mbps;

fn capacities(mbps: u64) -> Capacities {
    let interface = InterfaceCapacity { rate: MBPS(mbps), reserved: Rate::ZERO };
    Capacities { interfaces: [(InterfaceIndex(1), interface)].into(), ..Capacities::default() }
}

fn manager(mbps: u64) -> ResourceManager {
    ResourceManager::new(ResourceParams::default(), capacities(mbps)).unwrap()
}

fn request(user: u32, class: SchedulingClass, desired: u64, minimum: u64) -> FlowRequest {
    FlowRequest {
        user: UserId(user),
        client: ClientKey(u64::from(user)),
        class,
        carrier: CarrierKind::Datagrams,
        interface: Some(InterfaceIndex(1)),
        is_reserved: false,
        desired: MBPS(desired),
        minimum: MBPS(minimum),
        cpu: CpuShare::ZERO,
        priority: 3,
        weight: 1,
    }
}

use SchedulingClass::{RealTime, TimeShared};

fn admit(manager: &mut ResourceManager, request: FlowRequest) -> FlowId {
    manager.request(at(0), request).unwrap().flow().unwrap()
}

fn rates(manager: &mut ResourceManager, flows: &[FlowId]) -> Vec<f64> {
    flows.iter().map(|flow| manager.granted(*flow).unwrap().as_kbps_f64() / 1e3).collect()
}

fn events(manager: &mut ResourceManager) -> Vec<AllocationEvent> {
    std::iter::from_fn(|| manager.poll()).collect()
}

/// QUANTA section 5: real-time flows get deadlines, time-shared ones a throughput. The example of the module's documentation.
#[test]
fn real_time_flows_get_hard_shares_and_time_shared_ones_the_rest() {
    let mut manager = manager(100);
    let answer = manager.request(at(0), request(1, RealTime, 40, 20)).unwrap();
    let AdmissionAnswer::Reduced { flow: video, rate, shortage } = answer else { panic!("{answer:?}") };
    assert_eq!(rate, Rate::from_kbps(37_500));
    assert_eq!(
        shortage.to_string(),
        "the user's share of interface 1 is exhausted: 40000000 bit/s needed, 37500000 left"
    );
    let downloads = [2, 3].map(|user| admit(&mut manager, request(user, TimeShared, 1000, 0)));
    assert_eq!(rates(&mut manager, &downloads), [30.932_992, 30.932_992]);
    assert_eq!(rates(&mut manager, &[video]), [37.5], "nobody takes it away");
    let allocation = manager.allocation(downloads[0]).unwrap();
    assert_eq!((allocation.promised, allocation.limit), (Rate::ZERO, None));
    assert_eq!(allocation.limited_by, Some(ResourceKind::Interface(InterfaceIndex(1))));
    assert_eq!(manager.allocation(video).unwrap().promised, Rate::from_kbps(37_500));
    let refused = manager.request(at(0), request(1, RealTime, 1, 1)).unwrap();
    let AdmissionAnswer::Refused(shortage) = refused else { panic!("{refused:?}") };
    assert_eq!((shortage.scope, shortage.needed, shortage.left), (ShortageScope::User, 1_000_000, 0));
    assert!(matches!(
        manager.request(at(0), request(4, RealTime, 30, 1)).unwrap(),
        AdmissionAnswer::Admitted { .. }
    ));
    let refused = manager.request(at(0), request(5, RealTime, 30, 8)).unwrap();
    let AdmissionAnswer::Refused(shortage) = refused else { panic!("{refused:?}") };
    assert_eq!((shortage.scope, shortage.needed, shortage.left), (ShortageScope::Host, 8_000_000, 7_500_000));
}

#[test]
fn users_come_before_their_flows() {
    let mut manager = manager(100);
    manager.set_policy(UserId(3), UserPolicy { weight: 2, ..UserPolicy::default() }).unwrap();
    let mut flows = vec![admit(&mut manager, request(1, TimeShared, 1000, 0))];
    flows.extend((0..4).map(|_| admit(&mut manager, request(2, TimeShared, 1000, 0))));
    flows.push(admit(&mut manager, FlowRequest { weight: 1000, ..request(3, TimeShared, 1000, 0) }));
    let found = rates(&mut manager, &flows);
    assert_eq!(found[0], 24.641_536, "a quarter of 100 in six digits");
    assert_eq!(found[1..5], [6.160_384; 4]);
    assert_eq!(found[5], 49.283_072, "its user weighs 2; its own weight takes nothing from other users");
}

#[test]
fn every_resource_can_be_the_reason() {
    let params = ResourceParams { user_share: 1.0, committed_share: 1.0, ..ResourceParams::default() };
    let limited = Capacities {
        tcp: Some(MBPS(50)),
        datagrams: Some(MBPS(60)),
        combined: Some(MBPS(80)),
        cpu: Some(CpuShare::from_percent(100)),
        ..capacities(1000)
    };
    let mut manager = ResourceManager::new(params, limited).unwrap();
    let reason = |answer: AdmissionAnswer| match answer {
        AdmissionAnswer::Reduced { shortage, .. } | AdmissionAnswer::Refused(shortage) => {
            Some(shortage.resource)
        }
        AdmissionAnswer::Admitted { .. } => None,
    };
    let tcp = FlowRequest { carrier: CarrierKind::Tcp, ..request(1, RealTime, 51, 51) };
    let mut ask = |request| reason(manager.request(at(0), request).unwrap());
    assert_eq!(ask(tcp), Some(ResourceKind::Tcp));
    assert_eq!(ask(request(1, RealTime, 61, 61)), Some(ResourceKind::Datagrams));
    assert_eq!(ask(FlowRequest { desired: MBPS(45), minimum: MBPS(45), ..tcp }), None);
    assert_eq!(ask(request(1, RealTime, 40, 40)), Some(ResourceKind::Combined));
    let busy = FlowRequest { cpu: CpuShare::from_percent(101), ..request(1, RealTime, 10, 10) };
    assert_eq!(ask(busy), Some(ResourceKind::Cpu));
    // At half of the rate it needs half of the time.
    let answer =
        manager.request(at(0), FlowRequest { cpu: CpuShare::from_percent(200), minimum: MBPS(1), ..busy });
    let AdmissionAnswer::Reduced { rate, .. } = answer.unwrap() else { panic!() };
    assert_eq!(rate, MBPS(5));
    let off = FlowRequest { interface: Some(InterfaceIndex(7)), ..busy };
    assert_eq!(manager.request(at(0), off).unwrap_err().to_string(), "interface = 7: allowed is one of 1");
    assert_eq!(ResourceKind::Cpu.unit(), "millionths of a CPU");
}

#[test]
fn rates_reserved_by_rsvp_are_not_shared() {
    let mut manager = manager(100);
    let reserved = InterfaceCapacity { rate: MBPS(100), reserved: MBPS(50) };
    manager
        .set_capacities(Capacities {
            interfaces: [(InterfaceIndex(1), reserved)].into(),
            ..Capacities::default()
        })
        .unwrap();
    let video = manager.request(at(0), request(1, RealTime, 100, 1)).unwrap();
    let AdmissionAnswer::Reduced { rate, .. } = video else { panic!("{video:?}") };
    assert_eq!(rate, Rate::from_kbps(12_500), "half of the 25 that are left of 75");
    let with_reservation = FlowRequest { is_reserved: true, ..request(1, RealTime, 50, 50) };
    assert!(matches!(manager.request(at(0), with_reservation).unwrap(), AdmissionAnswer::Admitted { .. }));
}

#[test]
fn a_reservation_replaces_the_charge_of_a_flow_and_returns_it() {
    let mut manager = manager(100);
    let resource = ResourceKind::Interface(InterfaceIndex(1));
    let capacities = |reserved| Capacities {
        interfaces: [(InterfaceIndex(1), InterfaceCapacity { rate: MBPS(100), reserved: MBPS(reserved) })]
            .into(),
        ..Capacities::default()
    };
    let call = admit(&mut manager, request(1, RealTime, 30, 30));
    let download = admit(&mut manager, request(2, TimeShared, 1000, 10));
    let before = (manager.granted(call), manager.granted(download));
    assert_eq!(manager.committed(resource), 40_000_000);
    // The rate moves from the manager's account to the reservation's. Nothing changes for the flows.
    manager.set_reserved(capacities(30), &BTreeSet::from([call])).unwrap();
    assert_eq!(manager.committed(resource), 10_000_000);
    assert_eq!((manager.granted(call), manager.granted(download)), before);
    let text = serde_json::to_string(&manager.snapshot(at(1))).unwrap();
    let restored = serde_json::from_str(&text).unwrap();
    let mut restored = ResourceManager::restore(at(1), manager.params().clone(), &restored).unwrap();
    assert_eq!(restored.committed(resource), 10_000_000);
    assert_eq!(restored.granted(call), before.0);
    // It ends, and the flow is charged again.
    manager.set_reserved(capacities(0), &BTreeSet::new()).unwrap();
    assert_eq!(manager.committed(resource), 40_000_000);
    assert_eq!((manager.granted(call), manager.granted(download)), before);
    // A flow without the reservation pays for it, as before.
    manager.set_reserved(capacities(50), &BTreeSet::new()).unwrap();
    assert_eq!(manager.committed(resource), 40_000_000);
    assert!(manager.granted(download) < before.1);
}

#[test]
fn flows_are_lowered_before_others_are_raised() {
    let mut manager = manager(100);
    let first = admit(&mut manager, request(1, TimeShared, 1000, 0));
    assert_eq!(
        events(&mut manager),
        [AllocationEvent::Granted { flow: first, rate: manager.granted(first).unwrap() }]
    );
    let second = admit(&mut manager, request(2, RealTime, 30, 30));
    let found = events(&mut manager);
    let [AllocationEvent::Lowered { flow, cause, .. }, AllocationEvent::Granted { flow: new, rate }] =
        found[..]
    else {
        panic!("{found:?}")
    };
    assert_eq!((flow, cause, new, rate), (first, AllocationCause::Share, second, MBPS(30)));
    assert!(manager.release(ClientKey(2), second) && !manager.release(ClientKey(2), second));
    assert!(matches!(events(&mut manager)[..], [AllocationEvent::Raised { flow, .. }] if flow == first));
}

#[test]
fn flows_end_with_their_client_their_lease_or_their_release() {
    let mut manager = manager(100);
    let flows = [1, 1, 2].map(|user| admit(&mut manager, request(user, RealTime, 10, 10)));
    assert!(!manager.release(ClientKey(2), flows[0]), "another client's");
    assert_eq!(manager.release_client(ClientKey(1)), flows[..2]);
    assert_eq!(manager.committed(ResourceKind::Interface(InterfaceIndex(1))), 10_000_000);
    assert_eq!(manager.deadline(), at(5000));
    assert!(
        manager.renew(at(3000), ClientKey(2), flows[2]) && !manager.renew(at(3000), ClientKey(1), flows[2])
    );
    manager.handle_deadline(at(7999));
    assert_eq!(manager.granted(flows[2]), Some(MBPS(10)));
    events(&mut manager);
    manager.handle_deadline(at(8000));
    let revoked =
        AllocationEvent::Revoked { flow: flows[2], client: ClientKey(2), cause: AllocationCause::Lease };
    assert_eq!(events(&mut manager), [revoked]);
    assert_eq!(manager.deadline(), Instant::FAR_FUTURE);
    assert_eq!((manager.stats().expired, manager.stats().released), (1, 2));
    assert_eq!(manager.committed(ResourceKind::Flows), 0);
}

#[test]
fn a_client_holds_at_most_so_many_flows() {
    let params = ResourceParams { most_flows: 3, most_flows_per_user: 2, ..ResourceParams::default() };
    let mut manager = ResourceManager::new(params, capacities(100)).unwrap();
    let mut ask = |user| manager.request(at(0), request(user, TimeShared, 1, 0)).unwrap();
    assert!(ask(1).flow().is_some() && ask(1).flow().is_some());
    let AdmissionAnswer::Refused(shortage) = ask(1) else { panic!() };
    assert_eq!((shortage.resource, shortage.scope), (ResourceKind::Flows, ShortageScope::User));
    assert!(ask(2).flow().is_some());
    let AdmissionAnswer::Refused(shortage) = ask(2) else { panic!() };
    assert_eq!(shortage.to_string(), "the number of flows is exhausted: 1 flows needed, 0 left");
}

fn ordered(order: LoweringOrder) -> (ResourceManager, [FlowId; 3]) {
    let params = ResourceParams { order, user_share: 1.0, ..ResourceParams::default() };
    let mut manager = ResourceManager::new(params, capacities(100)).unwrap();
    let flow = |user, priority, minimum| FlowRequest { priority, ..request(user, RealTime, 20, minimum) };
    let flows = [flow(1, 5, 5), flow(2, 1, 18), flow(3, 9, 10)].map(|request| admit(&mut manager, request));
    (manager, flows)
}

#[test]
fn flows_are_lowered_in_the_owners_order_and_raised_in_the_reverse() {
    // 60 of 75 are promised; 48 can be after the change, and 51 after the next one.
    for (order, lower, raise) in [
        (LoweringOrder::Priority, [10.0, 18.0, 20.0], [13.0, 18.0, 20.0]),
        (LoweringOrder::LargestSlack, [8.0, 20.0, 20.0], [11.0, 20.0, 20.0]),
        (LoweringOrder::Newest, [20.0, 18.0, 10.0], [20.0, 20.0, 11.0]),
    ] {
        let (mut manager, flows) = ordered(order);
        manager.set_capacities(capacities(64)).unwrap();
        assert_eq!(rates(&mut manager, &flows), lower, "{order:?}");
        manager.set_capacities(capacities(68)).unwrap();
        assert_eq!(rates(&mut manager, &flows), raise, "{order:?}");
        manager.set_capacities(capacities(100)).unwrap();
        assert_eq!(rates(&mut manager, &flows), [20.0; 3], "{order:?}");
    }
}

#[test]
fn flows_are_revoked_where_minima_do_not_fit() {
    let (mut manager, flows) = ordered(LoweringOrder::Priority);
    events(&mut manager);
    manager.set_capacities(capacities(33)).unwrap();
    assert_eq!(
        rates(&mut manager, &flows),
        [5.0, 18.0, 10.0],
        "33 is their minimum, more than may be promised"
    );
    events(&mut manager);
    manager.set_capacities(capacities(32)).unwrap();
    let gone =
        AllocationEvent::Revoked { flow: flows[1], client: ClientKey(2), cause: AllocationCause::Capacity };
    assert_eq!(manager.poll(), Some(gone));
    assert_eq!(rates(&mut manager, &[flows[0], flows[2]]), [5.0, 19.0], "75 % of 32 may be promised");
    manager.set_capacities(Capacities::default()).unwrap();
    assert_eq!(manager.committed(ResourceKind::Flows), 0, "the interface is gone");
}

/// A user that holds more than its part after the change is lowered first, whatever its flows' priority.
#[test]
fn a_user_with_too_much_is_lowered_before_others() {
    let mut manager = manager(100);
    let flow = |user, priority| FlowRequest { priority, ..request(user, RealTime, 30, 5) };
    let flows = [flow(1, 15), flow(2, 0)].map(|request| admit(&mut manager, request));
    manager.release(ClientKey(2), flows[1]);
    let small = admit(&mut manager, FlowRequest { priority: 0, ..request(2, RealTime, 10, 5) });
    manager.set_capacities(capacities(50)).unwrap();
    assert_eq!(rates(&mut manager, &[flows[0], small]), [18.75, 10.0]);
}

#[test]
fn a_limit_of_the_path_lends_the_rate_to_time_shared_flows() {
    let mut manager = manager(100);
    let video = admit(&mut manager, request(1, RealTime, 30, 10));
    let download = admit(&mut manager, request(2, TimeShared, 1000, 0));
    let before = rates(&mut manager, &[video, download]);
    events(&mut manager);
    assert!(manager.set_limit(video, Some(MBPS(5))));
    assert_eq!(rates(&mut manager, &[video])[0], 10.0, "not below the minimum");
    assert!(rates(&mut manager, &[download])[0] > before[1]);
    let found = events(&mut manager);
    assert!(
        matches!(found[0], AllocationEvent::Lowered { flow, cause: AllocationCause::Path, .. } if flow == video),
        "{found:?}"
    );
    assert_eq!(
        manager.committed(ResourceKind::Interface(InterfaceIndex(1))),
        30_000_000,
        "the promise stays"
    );
    manager.set_limit(video, None);
    assert_eq!(rates(&mut manager, &[video, download]), before);
    manager.set_limit(download, Some(MBPS(1)));
    assert_eq!(rates(&mut manager, &[download]), [1.0]);
    assert!(!manager.set_limit(FlowId(99), None));
}

#[test]
fn a_change_is_made_or_leaves_the_flow_as_it_was() {
    let mut manager = manager(100);
    let flow = admit(&mut manager, request(1, RealTime, 30, 10));
    let mut change = |desired, minimum| {
        manager.change(at(0), ClientKey(1), flow, (MBPS(desired), MBPS(minimum), CpuShare::ZERO)).unwrap()
    };
    assert_eq!(change(20, 20), AdmissionAnswer::Admitted { flow });
    assert!(matches!(change(60, 50), AdmissionAnswer::Refused(_)));
    let answer = change(60, 30);
    assert!(
        matches!(answer, AdmissionAnswer::Reduced { rate, .. } if rate == Rate::from_kbps(37_500)),
        "{answer:?}"
    );
    let error = manager.change(at(0), ClientKey(2), flow, (MBPS(1), MBPS(1), CpuShare::ZERO)).unwrap_err();
    assert_eq!(error.to_string(), "flow = 1: allowed is the number of a flow that the client holds");
}

#[test]
fn a_snapshot_that_cannot_be_is_refused() {
    let mut manager = manager(100);
    admit(&mut manager, request(1, RealTime, 30, 10));
    let good = serde_json::to_value(manager.snapshot(at(0))).unwrap();
    let restore = |value: serde_json::Value| {
        let snapshot: ResourceSnapshot = serde_json::from_value(value).unwrap();
        ResourceManager::restore(at(0), ResourceParams::default(), &snapshot)
            .map_err(|error| error.to_string())
    };
    assert!(restore(good.clone()).is_ok());
    let changed = |path: &str, value: u64| {
        let mut changed = good.clone();
        *changed.pointer_mut(path).unwrap() = value.into();
        restore(changed).unwrap_err()
    };
    assert_eq!(changed("/version", 2), "version = 2: allowed is 1");
    assert_eq!(
        changed("/flows/0/granted_bps", 9),
        "flow 1: granted_bps = 9: allowed is 10000000 to 30000000 bit/s"
    );
    assert_eq!(
        changed("/next_flow", 1),
        "flow 1: id = 1: allowed is a number below 1 that no other flow has"
    );
    let error = changed("/capacities/interfaces/1/rate_bps", 29_000_000);
    let expected = "committed_bps of all flows = 30000000: allowed is at most 29000000 bit/s for interface 1";
    assert_eq!(error, expected);
}
