//! The time of a decision with 1,000 flows: median, 90th and 99th percentile of single calls, in microseconds, and the share of calls
//! within the aim.
//!
//! `cargo bench -p cutline-manager`. The aim is less than 100 us for each decision, the notification of all
//! flows that it concerns included.

use cutline_manager::feedback::{
    FeedbackParams, FlowEdges, FlowReport, HostId, PathFeedback, PathFlow, PathId, PathOutput, PathStart,
};
use cutline_manager::resources::{
    AdmissionAnswer, Capacities, CarrierKind, ClientKey, CpuShare, FlowId, FlowRequest, InterfaceCapacity,
    InterfaceIndex, ResourceManager, ResourceParams, ResourceSnapshot, SchedulingClass, UserId,
};
use cutline_signal::monitor::{Delivery, Spread};
use cutline_units::{Bytes, Duration, Instant, Rate};
use std::hint::black_box;

const FLOWS: u32 = 1000;
const CALLS: usize = 20_000;

/// The aim for a decision, ns.
const AIM_NS: u128 = 100_000;

/// Number of users of the flows.
const USERS: [u32; 3] = [1, 10, 1000];

/// Times single calls, and prints median, 90th and 99th percentile, and the share within the aim.
#[expect(clippy::disallowed_methods, clippy::disallowed_types, reason = "a bench measures real time")]
fn time(name: &str, calls: usize, mut call: impl FnMut()) {
    let mut times: Vec<u128> = (0..calls)
        .map(|_| {
            let start = std::time::Instant::now();
            call();
            start.elapsed().as_nanos()
        })
        .collect();
    times.sort_unstable();
    let us = |share: f64| times[(times.len() as f64 * share) as usize] as f64 / 1e3;
    let within = 100.0 * times.partition_point(|time| *time < AIM_NS) as f64 / times.len() as f64;
    println!(
        "{name:<50} {:>8.2} us, 90 % {:>8.2} us, 99 % {:>8.2} us; {within:.2} % below 100 us",
        us(0.5),
        us(0.9),
        us(0.99)
    );
}

fn capacities(mbps: u64) -> Capacities {
    let interface =
        |share| InterfaceCapacity { rate: Rate::from_mbps(mbps * share / 100), reserved: Rate::ZERO };
    Capacities {
        tcp: Some(Rate::from_mbps(mbps * 60 / 100)),
        datagrams: Some(Rate::from_mbps(mbps * 70 / 100)),
        combined: Some(Rate::from_mbps(mbps)),
        cpu: Some(CpuShare::from_percent(400)),
        interfaces: [(InterfaceIndex(1), interface(80)), (InterfaceIndex(2), interface(50))].into(),
    }
}

fn request(number: u32, users: u32, class: SchedulingClass) -> FlowRequest {
    let desired = Rate::from_kbps(2_000 + u64::from(number * 7919 % 8_000));
    let minimum = match class {
        SchedulingClass::RealTime => Rate::from_kbps(200),
        SchedulingClass::TimeShared => Rate::ZERO,
    };
    FlowRequest {
        user: UserId(number % users),
        client: ClientKey(u64::from(number)),
        class,
        carrier: if number.is_multiple_of(3) { CarrierKind::Tcp } else { CarrierKind::Datagrams },
        interface: Some(InterfaceIndex(1 + number % 2)),
        is_reserved: false,
        desired,
        minimum,
        cpu: CpuShare::from_millionths(1_000 + u64::from(number % 5_000)),
        priority: (number % 8) as u8,
        weight: 1 + number % 4,
    }
}

/// A manager with [`FLOWS`] flows of which one in twenty is real-time, that want ten times what there is.
fn manager(users: u32) -> ResourceManager {
    let params = ResourceParams { user_share: 1.0, ..ResourceParams::default() };
    let mut manager = ResourceManager::new(params, capacities(600)).expect("the values are allowed");
    for number in 0..FLOWS {
        let class = if number % 20 == 0 { SchedulingClass::RealTime } else { SchedulingClass::TimeShared };
        manager.request(Instant::ZERO, request(number, users, class)).expect("the request is allowed");
    }
    drain(&mut manager);
    manager
}

fn drain(manager: &mut ResourceManager) -> usize {
    std::iter::from_fn(|| manager.poll()).count()
}

/// A flow comes and goes; each call is one of both, with all events.
fn come_and_go(manager: &mut ResourceManager, users: u32, class: SchedulingClass) -> (f64, usize) {
    let client = ClientKey(u64::from(FLOWS));
    let (mut flow, mut events, mut calls): (Option<FlowId>, usize, usize) = (None, 0, 0);
    let name = match class {
        SchedulingClass::RealTime => "real-time",
        SchedulingClass::TimeShared => "time-shared",
    };
    time(&format!("{users} users: a {name} flow comes or goes"), CALLS, || {
        if let Some(flow) = flow.take() {
            assert!(manager.release(client, flow));
        } else {
            let request = FlowRequest { client, ..request(FLOWS, users, class) };
            flow = manager.request(Instant::ZERO, black_box(request)).expect("it is allowed").flow();
        }
        events += drain(manager);
        calls += 1;
    });
    if let Some(flow) = flow {
        manager.release(client, flow);
        drain(manager);
    }
    (events as f64 / calls as f64, calls)
}

/// Parameters with which no host becomes silent while the time passes that is measured.
fn params() -> FeedbackParams {
    FeedbackParams { silence: Duration::from_secs(600), ..FeedbackParams::default() }
}

/// A path with flows that report 20 ms of 100 ms.
fn path(flows: u64, peers: u64) -> PathFeedback {
    let start = PathStart { params: params(), path: PathId(1), host: HostId(0), number: 0 };
    let mut feedback = PathFeedback::new(Instant::ZERO, start).expect("the defaults are allowed");
    feedback.set_peers(Instant::ZERO, &(1..=peers).map(HostId).collect());
    for flow in 0..flows {
        let edges = FlowEdges { delay: Some((0.0, 100.0)), loss: Some(1.0) };
        let (most, minimum) = (Rate::from_mbps(1), Rate::from_kbps(100));
        let flow_on_path =
            PathFlow { user: UserId(flow as u32 % 10), most, minimum, priority: (flow % 16) as u8, edges };
        feedback.set_flow(Instant::ZERO, FlowId(flow), flow_on_path).expect("the flow is allowed");
    }
    feedback
}

fn report(until: Instant, number: u64) -> FlowReport {
    let delay = Duration::from_micros(20_000 + number.wrapping_mul(0x9e37_79b9) % 3_000);
    let spread = Spread { mean: delay, quantile: delay, worst: delay };
    let since = Instant::from_nanos(until.as_nanos() - 500_000_000);
    let delivery = Delivery {
        since,
        until,
        sent: 50,
        messages: 50,
        bytes: 62_500,
        delay: Some(spread),
        ..Delivery::default()
    };
    FlowReport { delivery, backlog: Bytes::ZERO }
}

/// The feedback of a path: reports of 1,000 flows, and a coordinator's summaries of 1,000 hosts.
fn feedback() {
    let flows = u64::from(FLOWS);
    let mut feedback = path(flows, 0);
    let mut number = flows * 2;
    let mut next = |feedback: &mut PathFeedback| {
        number += 1;
        let now = Instant::from_nanos(number / flows * 500_000_000);
        black_box(feedback.report(now, FlowId(number % flows), &report(now, number)));
        now
    };
    for _ in 0..flows * 10 {
        next(&mut feedback);
    }
    println!("feedback of a path with {flows} flows");
    time("  a report, with its prediction", CALLS, || {
        next(&mut feedback);
    });
    let mut now = Instant::from_nanos(20_000_000_000);
    time("  a decision and a summary", CALLS / 100, || {
        now += Duration::from_millis(500);
        feedback.handle_deadline(now);
        while black_box(feedback.poll()).is_some() {}
    });
    let mut feedback = path(10, flows);
    println!("feedback of a path with {flows} hosts");
    let mut peers: Vec<PathFeedback> = (1..=flows)
        .map(|host| {
            let start = PathStart { params: params(), path: PathId(1), host: HostId(host), number: 0 };
            let mut peer = PathFeedback::new(Instant::ZERO, start).expect("the defaults are allowed");
            peer.set_peers(Instant::ZERO, &[HostId(0)].into());
            peer
        })
        .collect();
    let (mut at, mut now) = (0, Instant::from_nanos(1_000_000_000));
    time("  a host's tick, and its summary at the coordinator", CALLS, || {
        at = (at + 1) % peers.len();
        now += Duration::from_micros(500);
        peers[at].handle_deadline(now);
        while let Some(output) = peers[at].poll() {
            if let PathOutput::Send { message, .. } = output {
                feedback.receive_from(now, HostId(at as u64 + 1), &message).expect("it is a summary");
            }
        }
    });
    time("  the coordinator's decision and summary", CALLS / 100, || {
        now += Duration::from_millis(500);
        feedback.handle_deadline(now);
        while black_box(feedback.poll()).is_some() {}
    });
}

fn main() {
    for users in USERS {
        let mut manager = None;
        let memory = allocation_counter::measure(|| manager = Some(self::manager(users)));
        let mut manager = manager.expect("it was made");
        let flows = manager.flows().count();
        println!("{flows} flows of {users} users, {} B each", memory.bytes_current / flows as i64);
        for class in [SchedulingClass::RealTime, SchedulingClass::TimeShared] {
            let (events, _) = come_and_go(&mut manager, users, class);
            println!("{:<50} {events:>8.2}", "  events for each");
        }
        let first = manager.flows().next().expect("there are flows");
        let client = manager.flow(first).expect("it is there").client;
        time("  a report renews a lease", CALLS, || {
            assert!(manager.renew(Instant::from_nanos(1), client, black_box(first)));
        });
        let refused = FlowRequest {
            desired: Rate::from_mbps(10_000),
            minimum: Rate::from_mbps(10_000),
            ..request(1, users, SchedulingClass::RealTime)
        };
        time("  a request is refused", CALLS, || {
            let answer = manager.request(Instant::ZERO, black_box(refused)).expect("it is allowed");
            assert!(matches!(answer, AdmissionAnswer::Refused(_)));
        });
        let mut limit = 0;
        time("  the path limits a flow", CALLS / 10, || {
            limit = (limit + 1) % 10;
            manager.set_limit(first, Some(Rate::from_kbps(200 + limit * 100)));
            drain(&mut manager);
        });
        let mut mbps = 600;
        time("  all capacities change", CALLS / 100, || {
            mbps = 900 - mbps;
            manager.set_capacities(capacities(mbps)).expect("they are allowed");
            drain(&mut manager);
        });
        time("  a snapshot", CALLS / 100, || {
            black_box(manager.snapshot(Instant::ZERO));
        });
        let text = serde_json::to_string(&manager.snapshot(Instant::ZERO)).expect("it is data");
        time("  a restart from its JSON", CALLS / 100, || {
            let snapshot: ResourceSnapshot = serde_json::from_str(&text).expect("it was written by us");
            let params = ResourceParams { user_share: 1.0, ..ResourceParams::default() };
            black_box(ResourceManager::restore(Instant::ZERO, params, &snapshot).expect("it is sound"));
        });
    }
    feedback();
}
