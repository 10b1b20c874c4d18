//! Tests of the manager of a host.

use super::*;
use crate::feedback::PathSummary;
use crate::resources::{
    AllocationCause, CarrierKind, InterfaceCapacity, InterfaceIndex, ResourceKind, SchedulingClass,
};
use cutline_signal::monitor::{Delivery, Spread};
use cutline_units::{Bytes, Duration};

const PATH: PathId = PathId(1);
const INTERVAL: Duration = Duration::from_millis(500);

fn start() -> ManagerStart {
    let interface = InterfaceCapacity { rate: Rate::from_mbps(100), reserved: Rate::ZERO };
    ManagerStart {
        resources: ResourceParams::default(),
        feedback: FeedbackParams::default(),
        capacities: Capacities {
            interfaces: [(InterfaceIndex(1), interface)].into(),
            ..Capacities::default()
        },
        host: HostId(1),
        number: 0,
    }
}

fn request(class: SchedulingClass, priority: u8, mbps: u64) -> FlowRequest {
    FlowRequest {
        user: UserId(1),
        client: ClientKey(1),
        class,
        carrier: CarrierKind::Datagrams,
        interface: Some(InterfaceIndex(1)),
        is_reserved: false,
        desired: Rate::from_mbps(mbps),
        minimum: Rate::from_mbps(1),
        cpu: CpuShare::ZERO,
        priority,
        weight: 1,
    }
}

const ROUTE: FlowRoute = FlowRoute { path: PATH, edges: FlowEdges { delay: Some((0.0, 100.0)), loss: None } };

fn report(now: Instant, rate: Rate, delay_ms: u64) -> FlowReport {
    let delay = Duration::from_millis(delay_ms);
    let bytes = rate.bytes_in(INTERVAL).get();
    let spread = Spread { mean: delay, quantile: delay, worst: delay };
    let delivery = Delivery {
        since: now - INTERVAL,
        until: now,
        sent: 100,
        messages: 100,
        bytes,
        delay: Some(spread),
        ..Delivery::default()
    };
    FlowReport { delivery, backlog: Bytes::ZERO }
}

/// A manager with a real-time flow of high priority and a time-shared one of low, and reports of calm.
fn calm() -> (Manager, [FlowId; 2], Instant) {
    let mut manager = Manager::new(start()).unwrap();
    let mut now = Instant::from_nanos(1_000_000_000);
    manager.set_path(now, PATH, &BTreeSet::new()).unwrap();
    let mut admit = |class, priority, mbps| {
        manager.request(now, request(class, priority, mbps), Some(ROUTE)).unwrap().flow().unwrap()
    };
    let flows = [admit(SchedulingClass::RealTime, 12, 20), admit(SchedulingClass::TimeShared, 2, 40)];
    for _ in 0..20 {
        now += INTERVAL;
        feed(&mut manager, now, flows, 20);
    }
    (manager, flows, now)
}

/// Reports both flows with their rates and a delay.
fn feed(manager: &mut Manager, now: Instant, flows: [FlowId; 2], delay_ms: u64) -> Vec<ManagerOutput> {
    // Present deliveries were sent before flows are lowered now.
    for (flow, rate) in flows.map(|flow| (flow, manager.granted(flow).unwrap())) {
        assert!(manager.report(now, ClientKey(1), flow, &report(now, rate, delay_ms)));
    }
    manager.handle_deadline(now);
    std::iter::from_fn(|| manager.poll()).collect()
}

/// QUANTA section 5, global monitoring: the delay grows, and the flow of low priority is lowered before the edge of 100 ms.
#[test]
fn a_path_that_fills_lowers_the_flow_of_low_priority() {
    let (mut manager, flows, mut now) = calm();
    let mut outputs = Vec::new();
    for delay in [30, 40, 50, 60, 70] {
        now += INTERVAL;
        outputs.extend(feed(&mut manager, now, flows, delay));
        if !outputs.is_empty() {
            break;
        }
    }
    assert!(now > Instant::from_nanos(12_000_000_000), "it takes some reports: {now}");
    let lowered: Vec<&AllocationEvent> = outputs
        .iter()
        .filter_map(|output| match output {
            ManagerOutput::Allocation(event) => Some(event),
            _ => None,
        })
        .collect();
    let [AllocationEvent::Lowered { flow, from, to, cause }] = lowered[..] else { panic!("{outputs:?}") };
    assert_eq!((*flow, *cause, *from), (flows[1], AllocationCause::Path, Rate::from_mbps(40)));
    // 0.85 of 60 are 51: 31 for the second one.
    assert!((Rate::from_kbps(30_900)..=Rate::from_kbps(31_100)).contains(to), "{to}");
    assert_eq!(manager.granted(flows[0]), Some(Rate::from_mbps(20)));
    assert!(manager.release(ClientKey(1), flows[1]));
    assert_eq!(manager.path(PATH).unwrap().limit_of(flows[1]), None);
}

#[test]
fn a_restart_keeps_accounts_and_limits() {
    let (mut manager, flows, mut now) = calm();
    for delay in [30, 40, 50, 60, 70] {
        now += INTERVAL;
        feed(&mut manager, now, flows, delay);
    }
    let text = serde_json::to_string(&manager.snapshot(now)).unwrap();
    let later = Instant::from_nanos(77);
    let restored = Manager::restore(later, start(), &serde_json::from_str(&text).unwrap());
    let mut restored = restored.unwrap();
    for flow in flows {
        assert_eq!(restored.granted(flow), manager.granted(flow));
        assert_eq!(restored.path(PATH).unwrap().limit_of(flow), manager.path(PATH).unwrap().limit_of(flow));
    }
    let kind = ResourceKind::Interface(InterfaceIndex(1));
    assert_eq!(restored.resources().committed(kind), manager.resources().committed(kind));
    assert_eq!(restored.poll(), None, "flows keep what they have");
    // The path is calm again, and the flow gets its rate back.
    let mut now = later + Duration::from_secs(1);
    for _ in 0..200 {
        now += INTERVAL;
        feed(&mut restored, now, flows, 20);
    }
    assert_eq!(restored.granted(flows[1]), Some(Rate::from_mbps(40)));
    let other = text.replacen("\"version\":1", "\"version\":9", 1);
    let error = Manager::restore(later, start(), &serde_json::from_str(&other).unwrap()).unwrap_err();
    assert_eq!(error.to_string(), "version = 9: allowed is 1");
}

/// A journal of flows that have changed leads from one snapshot to the next.
#[test]
fn a_snapshot_with_the_records_of_changed_flows_is_a_later_snapshot() {
    let (mut manager, flows, now) = calm();
    let mut snapshot = manager.snapshot(now);
    let third = manager.request(now, request(SchedulingClass::TimeShared, 3, 5), Some(ROUTE)).unwrap();
    let third = third.flow().unwrap();
    let rates = (Rate::from_mbps(12), Rate::from_mbps(2), CpuShare::ZERO);
    manager.change(now, ClientKey(1), flows[0], rates, ROUTE.edges).unwrap();
    assert!(manager.release(ClientKey(1), flows[1]));
    while manager.poll().is_some() {}
    for flow in [flows[0], third] {
        let text = serde_json::to_string(&manager.record(now, flow).unwrap()).unwrap();
        snapshot.update(serde_json::from_str(&text).unwrap());
    }
    assert_eq!(manager.record(now, flows[1]), None);
    snapshot.remove(flows[1]);
    snapshot.set_stats(*manager.resources().stats());
    let later = Manager::restore(now, start(), &snapshot).unwrap();
    assert_eq!(later.resources().stats(), manager.resources().stats());
    let mut expected = manager.snapshot(now);
    let mut found = later.clone().snapshot(now);
    let blank = |snapshot: &mut ManagerSnapshot| {
        let mut value = serde_json::to_value(&*snapshot).unwrap();
        value["paths"][0]["number"] = 0.into();
        value["paths"][0]["epoch"] = 0.into();
        value
    };
    assert_eq!(blank(&mut found), blank(&mut expected));
    assert_eq!(later.path_of(third), Some(PATH));
}

/// A host that has started with a clock in the past sends higher numbers once its clock is right.
#[test]
fn numbers_of_summaries_can_be_raised() {
    let mut manager = Manager::new(start()).unwrap();
    let mut now = Instant::ZERO;
    manager.set_path(now, PATH, &[HostId(2)].into()).unwrap();
    let numbers = |manager: &mut Manager, now: Instant| {
        manager.handle_deadline(now);
        let mut numbers = Vec::new();
        while let Some(output) = manager.poll() {
            if let ManagerOutput::Broadcast { message, .. } = output {
                numbers.push(PathSummary::decode(&message).unwrap().number);
            }
        }
        numbers
    };
    for (raised, next) in [(0, 1), (1000, 1001), (5, 1002)] {
        manager.raise_numbers(raised);
        now += INTERVAL;
        assert_eq!(numbers(&mut manager, now), [next]);
    }
    assert_eq!(manager.snapshot(now).highest_number(), 1002);
    // A path that is added later begins there, too.
    manager.set_path(now, PathId(2), &[HostId(2)].into()).unwrap();
    now += INTERVAL;
    assert_eq!(numbers(&mut manager, now), [1003, 1001]);
}

/// The number in the file was wrong, and is right after a restart.
#[test]
fn a_restart_with_another_number_of_the_host_sends_summaries_under_it() {
    let mut manager = Manager::new(start()).unwrap();
    manager.set_path(Instant::ZERO, PATH, &[HostId(9)].into()).unwrap();
    let snapshot = manager.snapshot(Instant::ZERO);
    let start = ManagerStart { host: HostId(5), ..start() };
    let mut restored = Manager::restore(Instant::ZERO, start, &snapshot).unwrap();
    restored.handle_deadline(Instant::ZERO + INTERVAL);
    let mut hosts = BTreeSet::new();
    while let Some(output) = restored.poll() {
        if let ManagerOutput::Broadcast { message, .. } = output {
            hosts.insert(PathSummary::decode(&message).unwrap().host);
        }
    }
    assert_eq!(hosts, BTreeSet::from([HostId(5)]));
}

#[test]
fn a_flow_that_is_revoked_leaves_its_path() {
    let (mut manager, flows, now) = calm();
    let now = now + Duration::from_secs(60);
    manager.handle_deadline(now);
    let mut revoked = 0;
    while let Some(output) = manager.poll() {
        revoked += u32::from(matches!(output, ManagerOutput::Allocation(AllocationEvent::Revoked { .. })));
    }
    assert_eq!(revoked, 2);
    assert!(!manager.report(now, ClientKey(1), flows[0], &report(now, Rate::ZERO, 1)));
    assert!(manager.snapshot(now).routes.is_empty());
    let unknown = Some(FlowRoute { path: PathId(9), ..ROUTE });
    let error = manager.request(now, request(SchedulingClass::RealTime, 1, 1), unknown).unwrap_err();
    assert_eq!(error.to_string(), "path = 9: allowed is a path that was added");
    let odd = FlowRoute { edges: FlowEdges { delay: Some((5.0, f64::NAN)), loss: None }, ..ROUTE };
    let error = manager.request(now, request(SchedulingClass::RealTime, 1, 1), Some(odd)).unwrap_err();
    assert_eq!(error.to_string(), "delay = NaN: allowed is the best, which is 5, to 3600000 ms");
}

/// A path's limits are computed from what the host can carry.
#[test]
fn capacities_bound_what_flows_are_lowered_from() {
    let (mut manager, flows, mut now) = calm();
    let interface = InterfaceCapacity { rate: Rate::from_mbps(30), reserved: Rate::ZERO };
    let smaller = Capacities { interfaces: [(InterfaceIndex(1), interface)].into(), ..Capacities::default() };
    manager.set_capacities(smaller).unwrap();
    assert_eq!(manager.resources().ceiling(flows[1]), Some(Rate::from_mbps(30)));
    for delay in [30, 40, 50, 60, 70] {
        now += INTERVAL;
        feed(&mut manager, now, flows, delay);
    }
    let limit = manager.path(PATH).unwrap().limit_of(flows[1]).unwrap();
    assert!(limit < Rate::from_mbps(30), "{limit}");
    let all: u64 = flows.map(|flow| manager.granted(flow).unwrap().as_bps()).iter().sum();
    assert!(all <= 30_000_000, "{all}");
}

#[test]
fn a_path_that_is_removed_lifts_its_limits() {
    let (mut manager, flows, mut now) = calm();
    for delay in [30, 40, 50, 60, 70] {
        now += INTERVAL;
        feed(&mut manager, now, flows, delay);
    }
    assert!(manager.granted(flows[1]) < Some(Rate::from_mbps(40)));
    manager.remove_path(PATH);
    assert_eq!(manager.granted(flows[1]), Some(Rate::from_mbps(40)));
}
