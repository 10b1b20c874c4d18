//! Random sequences of operations on a resource manager.

use cutline_manager::resources::{
    AdmissionAnswer, AllocationEvent, Capacities, CarrierKind, ClientKey, CpuShare, FlowId, FlowRequest,
    InterfaceCapacity, InterfaceIndex, LoweringOrder, ResourceKind, ResourceManager, ResourceParams,
    ResourceSnapshot, SchedulingClass, UserId, UserPolicy,
};
use cutline_units::{Duration, Instant, Rate};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

const USERS: u32 = 5;
const INTERFACES: u32 = 3;

/// An operation. Flows are named by their place among those that there are.
#[derive(Clone, Debug)]
enum Op {
    Request(FlowRequest),
    Change(usize, u64, u64),
    Release(usize),
    Die(u64),
    Renew(usize),
    Pass(u64),
    Capacities(Capacities),
    Reserve(Capacities, Vec<usize>),
    Limit(usize, Option<u64>),
    Policy(u32, UserPolicy),
    Poll(usize),
}

/// A manager, and the notifications of its flows.
#[derive(Clone)]
struct World {
    manager: ResourceManager,
    now: Instant,
    notified: BTreeMap<FlowId, u64>,
    requests: BTreeMap<FlowId, FlowRequest>,
}

/// Answer and events of an operation.
type Outcome = (Option<String>, Vec<AllocationEvent>);

fn kinds() -> Vec<ResourceKind> {
    let interfaces = (1..=INTERFACES).map(|index| ResourceKind::Interface(InterfaceIndex(index)));
    [ResourceKind::Tcp, ResourceKind::Datagrams, ResourceKind::Combined, ResourceKind::Cpu]
        .into_iter()
        .chain(interfaces)
        .collect()
}

fn capacity(capacities: &Capacities, kind: ResourceKind) -> Option<u64> {
    let bps = |rate: Option<Rate>| rate.map(Rate::as_bps);
    match kind {
        ResourceKind::Tcp => bps(capacities.tcp),
        ResourceKind::Datagrams => bps(capacities.datagrams),
        ResourceKind::Combined => bps(capacities.combined),
        ResourceKind::Cpu => capacities.cpu.map(CpuShare::as_millionths),
        ResourceKind::Interface(index) => {
            let found = capacities.interfaces.get(&index).copied().unwrap_or_default();
            Some(found.rate.as_bps().saturating_sub(found.reserved.as_bps()))
        }
        ResourceKind::Flows => None,
    }
}

/// The charge of a flow, computed apart from the manager.
fn charge(request: &FlowRequest, kind: ResourceKind, bps: u64) -> u64 {
    let is_charged = match kind {
        ResourceKind::Tcp => request.carrier == CarrierKind::Tcp,
        ResourceKind::Datagrams => request.carrier == CarrierKind::Datagrams,
        ResourceKind::Interface(index) => request.interface == Some(index) && !request.is_reserved,
        ResourceKind::Combined => true,
        ResourceKind::Cpu => {
            let all = u128::from(request.cpu.as_millionths()) * u128::from(bps);
            return u64::try_from(all.div_ceil(u128::from(request.desired.as_bps()))).unwrap();
        }
        ResourceKind::Flows => false,
    };
    if is_charged { bps } else { 0 }
}

impl World {
    fn new(params: ResourceParams, capacities: Capacities) -> Self {
        let manager = ResourceManager::new(params, capacities).unwrap();
        Self { manager, now: Instant::ZERO, notified: BTreeMap::new(), requests: BTreeMap::new() }
    }

    fn pick(&self, place: usize) -> Option<FlowId> {
        let flows = self.requests.len();
        self.requests.keys().nth(place.checked_rem(flows)?).copied()
    }

    fn forget(&mut self, flow: FlowId) {
        self.requests.remove(&flow);
        self.notified.remove(&flow);
    }

    fn apply(&mut self, op: &Op) -> Outcome {
        let mut events = Vec::new();
        let answer = match op {
            Op::Request(request) => {
                let answer = self.manager.request(self.now, *request);
                if let Ok(Some(flow)) = answer.as_ref().map(AdmissionAnswer::flow) {
                    let request = *self.manager.flow(flow).unwrap();
                    self.requests.insert(flow, request);
                }
                Some(format!("{answer:?}"))
            }
            Op::Change(place, desired, minimum) => self.pick(*place).map(|flow| {
                let request = self.requests[&flow];
                let (desired, minimum) =
                    (Rate::from_bps((*desired).max(1)), Rate::from_bps((*minimum).min(*desired)));
                let answer =
                    self.manager.change(self.now, request.client, flow, (desired, minimum, request.cpu));
                self.requests.insert(flow, *self.manager.flow(flow).unwrap());
                format!("{answer:?}")
            }),
            Op::Release(place) => self.pick(*place).map(|flow| {
                assert!(self.manager.release(self.requests[&flow].client, flow));
                self.forget(flow);
                String::new()
            }),
            Op::Die(client) => {
                let flows = self.manager.release_client(ClientKey(*client));
                for flow in &flows {
                    self.forget(*flow);
                }
                Some(format!("{flows:?}"))
            }
            Op::Renew(place) => self
                .pick(*place)
                .map(|flow| self.manager.renew(self.now, self.requests[&flow].client, flow).to_string()),
            Op::Pass(ms) => {
                self.now += Duration::from_millis(*ms);
                self.manager.handle_deadline(self.now);
                None
            }
            Op::Capacities(capacities) => {
                Some(format!("{:?}", self.manager.set_capacities(capacities.clone())))
            }
            Op::Reserve(capacities, places) => {
                let flows: BTreeSet<FlowId> = places.iter().filter_map(|place| self.pick(*place)).collect();
                let answer = self.manager.set_reserved(capacities.clone(), &flows);
                for (flow, request) in &mut self.requests {
                    request.is_reserved = flows.contains(flow);
                }
                Some(format!("{answer:?}"))
            }
            Op::Limit(place, bps) => self
                .pick(*place)
                .map(|flow| self.manager.set_limit(flow, bps.map(Rate::from_bps)).to_string()),
            Op::Policy(user, policy) => {
                Some(format!("{:?}", self.manager.set_policy(UserId(*user), *policy)))
            }
            Op::Poll(most) => {
                for _ in 0..*most {
                    let Some(event) = self.manager.poll() else { break };
                    self.notify(event);
                    events.push(event);
                }
                None
            }
        };
        // Flows that were revoked are none that an operation can name.
        let manager = &self.manager;
        self.requests.retain(|flow, _| manager.flow(*flow).is_some());
        (answer, events)
    }

    /// Takes an event as a flow would. No flow is ever given what the others have not returned.
    fn notify(&mut self, event: AllocationEvent) {
        let bps = event.rate().as_bps();
        match event {
            AllocationEvent::Revoked { flow, .. } => self.forget(flow),
            AllocationEvent::Granted { flow, .. } => {
                assert_eq!(self.notified.insert(flow, bps), None);
                self.assert_notified_fits();
            }
            AllocationEvent::Raised { flow, from, .. } => {
                assert_eq!(self.notified.insert(flow, bps), Some(from.as_bps()));
                assert!(bps > from.as_bps());
                self.assert_notified_fits();
            }
            AllocationEvent::Lowered { flow, from, .. } => {
                assert_eq!(self.notified.insert(flow, bps), Some(from.as_bps()));
                assert!(bps < from.as_bps());
            }
        }
    }

    fn assert_notified_fits(&self) {
        for kind in kinds() {
            let Some(capacity) = capacity(self.manager.capacities(), kind) else { continue };
            let of = |(flow, bps): (&FlowId, &u64)| {
                self.requests.get(flow).map_or(0, |request| charge(request, kind, *bps))
            };
            let sum: u64 = self.notified.iter().map(of).sum();
            assert!(sum <= capacity, "flows were notified of {sum} of {capacity} of {kind}");
        }
    }

    /// Promises and rates are within the capacities, and each rate is within its request.
    fn assert_sound(&mut self) {
        let granted: BTreeMap<FlowId, u64> =
            self.requests.keys().map(|flow| (*flow, self.manager.granted(*flow).unwrap().as_bps())).collect();
        for (flow, bps) in &granted {
            let request = &self.requests[flow];
            assert!(
                (request.minimum.as_bps()..=request.desired.as_bps()).contains(bps),
                "{bps} of {request:?}"
            );
        }
        for kind in kinds() {
            let sum: u64 = granted.iter().map(|(flow, bps)| charge(&self.requests[flow], kind, *bps)).sum();
            assert_eq!(sum, self.manager.in_use(kind));
            if let Some(capacity) = capacity(self.manager.capacities(), kind) {
                assert!(sum <= capacity, "{sum} of {capacity} of {kind} are granted");
                assert!(self.manager.committed(kind) <= capacity, "{kind}");
            }
        }
        assert_eq!(self.manager.committed(ResourceKind::Flows), self.requests.len() as u64);
    }

    /// All that was promised is returned.
    fn assert_all_comes_back(&mut self) {
        for client in 0..u64::from(USERS) * 2 {
            self.manager.release_client(ClientKey(client));
        }
        for kind in kinds() {
            assert_eq!((self.manager.committed(kind), self.manager.in_use(kind)), (0, 0), "{kind}");
        }
        assert_eq!(self.manager.deadline(), Instant::FAR_FUTURE);
    }

    fn restored(&mut self) -> Self {
        let text = serde_json::to_string(&self.manager.snapshot(self.now)).unwrap();
        let snapshot: ResourceSnapshot = serde_json::from_str(&text).unwrap();
        let params = self.manager.params().clone();
        // The next process' clock begins elsewhere.
        let now = self.now + Duration::from_secs(1000);
        let manager = ResourceManager::restore(now, params, &snapshot).unwrap();
        Self { manager, now, notified: self.notified.clone(), requests: self.requests.clone() }
    }
}

fn any_rate() -> impl Strategy<Value = u64> {
    prop_oneof![8 => 1_u64..50_000_000, 1 => 1_u64..1000, 1 => Just(100_000_000_000_000)]
}

fn any_capacities() -> impl Strategy<Value = Capacities> {
    let rate = || prop::option::of((0_u64..200_000_000).prop_map(Rate::from_bps));
    let cpu = prop::option::of((0_u64..4_000_000).prop_map(CpuShare::from_millionths));
    let interface = (0_u64..200_000_000, 0_u64..100_000_000);
    let interface = interface.prop_map(|(rate, reserved)| InterfaceCapacity {
        rate: Rate::from_bps(rate),
        reserved: Rate::from_bps(reserved),
    });
    let interfaces = prop::collection::btree_map((1..=INTERFACES).prop_map(InterfaceIndex), interface, 0..4);
    (rate(), rate(), rate(), cpu, interfaces).prop_map(|(tcp, datagrams, combined, cpu, interfaces)| {
        Capacities { tcp, datagrams, combined, cpu, interfaces }
    })
}

fn any_request() -> impl Strategy<Value = FlowRequest> {
    let who = (0..USERS, 0_u64..2, any::<bool>(), any::<bool>(), prop::option::weighted(0.8, 1..=INTERFACES));
    let what = (any_rate(), 0.0..1.0_f64, prop_oneof![Just(0), 0_u64..500_000], 0_u8..16, 1_u32..10);
    (who, what).prop_map(
        |((user, client, is_real_time, is_tcp, interface), (desired, minimum, cpu, priority, weight))| {
            let class = if is_real_time { SchedulingClass::RealTime } else { SchedulingClass::TimeShared };
            let minimum = (desired as f64 * minimum) as u64 / if is_real_time { 1 } else { 4 };
            FlowRequest {
                user: UserId(user),
                client: ClientKey(u64::from(user) * 2 + client),
                class,
                carrier: if is_tcp { CarrierKind::Tcp } else { CarrierKind::Datagrams },
                interface: interface.map(InterfaceIndex),
                is_reserved: priority == 0,
                desired: Rate::from_bps(desired),
                minimum: Rate::from_bps(if is_real_time { minimum.max(1) } else { minimum }),
                cpu: CpuShare::from_millionths(cpu),
                priority,
                weight,
            }
        },
    )
}

fn any_op() -> impl Strategy<Value = Op> {
    let share = prop::option::of(0.0..=1.0_f64);
    let policy = (1_u32..5, share, 0_u8..16).prop_map(|(weight, share, priority_limit)| UserPolicy {
        weight,
        share,
        priority_limit,
    });
    prop_oneof![
        10 => any_request().prop_map(Op::Request),
        3 => (any::<usize>(), any_rate(), any_rate()).prop_map(|(flow, desired, minimum)| Op::Change(flow, desired, minimum)),
        3 => any::<usize>().prop_map(Op::Release),
        1 => (0..u64::from(USERS) * 2).prop_map(Op::Die),
        6 => any::<usize>().prop_map(Op::Renew),
        4 => (0_u64..2000).prop_map(Op::Pass),
        2 => any_capacities().prop_map(Op::Capacities),
        2 => (any_capacities(), prop::collection::vec(any::<usize>(), 0..4)).prop_map(|(capacities, flows)| Op::Reserve(capacities, flows)),
        4 => (any::<usize>(), prop::option::of(any_rate())).prop_map(|(flow, bps)| Op::Limit(flow, bps)),
        1 => (0..USERS, policy).prop_map(|(user, policy)| Op::Policy(user, policy)),
        8 => (0_usize..40).prop_map(Op::Poll),
    ]
}

fn any_params() -> impl Strategy<Value = ResourceParams> {
    let order = prop_oneof![
        Just(LoweringOrder::Priority),
        Just(LoweringOrder::LargestSlack),
        Just(LoweringOrder::Newest)
    ];
    (0.0..=1.0_f64, 0.0..=1.0_f64, order, 2_u32..54, 0.0..0.5_f64).prop_map(
        |(committed_share, user_share, order, share_digits, raise_step)| ResourceParams {
            committed_share,
            user_share,
            order,
            share_digits,
            raise_step,
            most_flows: 40,
            most_flows_per_user: 15,
            ..ResourceParams::default()
        },
    )
}

proptest! {
    /// Any operations in any order: nothing is over-committed, neither what the manager has decided nor what flows were
    /// notified of; rates are within requests; all comes back.
    #[test]
    fn nothing_is_over_committed(
        params in any_params(), capacities in any_capacities(), ops in prop::collection::vec(any_op(), 1..150)
    ) {
        let mut world = World::new(params, capacities);
        for op in &ops {
            world.apply(op);
            world.assert_sound();
        }
        world.assert_all_comes_back();
    }

    /// A manager that continues from a snapshot answers as the one before would, with the same events.
    #[test]
    fn a_restored_manager_behaves_the_same(
        params in any_params(), capacities in any_capacities(),
        before in prop::collection::vec(any_op(), 1..60), after in prop::collection::vec(any_op(), 1..60)
    ) {
        let mut world = World::new(params, capacities);
        for op in &before {
            world.apply(op);
        }
        let mut restored = world.restored();
        for op in &after {
            prop_assert_eq!(restored.apply(op), world.apply(op), "{:?}", op);
            // Reading rates computes shares, so both are read.
            world.assert_sound();
            restored.assert_sound();
        }
        let (one, other) = (world.manager.snapshot(world.now), restored.manager.snapshot(restored.now));
        prop_assert_eq!(one, other);
    }

    /// However many flows a user requests, whatever it claims of them: its promises stay within its part, and another user
    /// that asks later gets its own.
    #[test]
    fn a_user_with_false_reports_holds_no_more_than_its_share(claims in prop::collection::vec(any_request(), 1..100)) {
        let interface = InterfaceCapacity { rate: Rate::from_mbps(100), reserved: Rate::ZERO };
        let capacities = Capacities { interfaces: [(InterfaceIndex(1), interface)].into(), ..Capacities::default() };
        let mut manager = ResourceManager::new(ResourceParams::default(), capacities).unwrap();
        let own = |request: &FlowRequest| FlowRequest { user: UserId(1), interface: Some(InterfaceIndex(1)), ..*request };
        for claim in &claims {
            manager.request(Instant::ZERO, own(claim)).unwrap();
        }
        let kind = ResourceKind::Interface(InterfaceIndex(1));
        prop_assert!(manager.committed(kind) <= 37_500_000);
        let honest = FlowRequest {
            user: UserId(2), client: ClientKey(99), class: SchedulingClass::RealTime, weight: 1, priority: 0, cpu: CpuShare::ZERO,
            desired: Rate::from_kbps(37_500), minimum: Rate::from_kbps(37_500), ..own(&claims[0])
        };
        let answer = manager.request(Instant::ZERO, honest).unwrap();
        prop_assert!(matches!(answer, AdmissionAnswer::Admitted { .. }), "{:?}", answer);
        let shared = FlowRequest { class: SchedulingClass::TimeShared, desired: Rate::from_mbps(100), minimum: Rate::ZERO, ..honest };
        let flow = manager.request(Instant::ZERO, shared).unwrap().flow().unwrap();
        // Half of the quarter that is never promised, in six digits.
        prop_assert!(manager.granted(flow).unwrap() >= Rate::from_kbps(11_700));
    }
}

/// A million operations one after the other, as a flood of clients makes them: the accounts stay exact. Everything is
/// compared once in a thousand operations, and at each event.
#[test]
fn a_million_operations_leave_the_accounts_exact() {
    const OPERATIONS: u32 = 1_000_000;
    let interface =
        |mbps| InterfaceCapacity { rate: Rate::from_mbps(mbps), reserved: Rate::from_mbps(mbps / 10) };
    let capacities = |mbps| Capacities {
        tcp: Some(Rate::from_mbps(mbps)),
        combined: Some(Rate::from_mbps(mbps * 3 / 2)),
        cpu: Some(CpuShare::from_percent(200)),
        interfaces: [(InterfaceIndex(1), interface(mbps)), (InterfaceIndex(2), interface(mbps / 2))].into(),
        ..Capacities::default()
    };
    let params = ResourceParams { most_flows: 30, most_flows_per_user: 12, ..ResourceParams::default() };
    let mut world = World::new(params, capacities(100));
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) % below
    };
    for number in 0..OPERATIONS {
        let flow = random(64) as usize;
        let op = match random(100) {
            0..40 => {
                let user = random(4) as u32;
                let desired = 1 + random(20_000_000);
                Op::Request(FlowRequest {
                    user: UserId(user),
                    client: ClientKey(u64::from(user) * 2 + random(2)),
                    class: if random(2) == 0 {
                        SchedulingClass::RealTime
                    } else {
                        SchedulingClass::TimeShared
                    },
                    carrier: if random(2) == 0 { CarrierKind::Tcp } else { CarrierKind::Datagrams },
                    interface: [None, Some(1), Some(2)][random(3) as usize].map(InterfaceIndex),
                    is_reserved: false,
                    desired: Rate::from_bps(desired),
                    minimum: Rate::from_bps(1 + random(desired)),
                    cpu: CpuShare::from_millionths(random(200_000)),
                    priority: random(16) as u8,
                    weight: 1 + random(9) as u32,
                })
            }
            40..65 => Op::Release(flow),
            65..75 => Op::Renew(flow),
            75..80 => Op::Change(flow, 1 + random(20_000_000), 1 + random(1_000_000)),
            80..84 => Op::Limit(flow, Some(random(20_000_000))),
            84..86 => Op::Limit(flow, None),
            86..90 => Op::Pass(random(4000)),
            90 => Op::Die(random(8)),
            91 => Op::Capacities(capacities(50 + random(100))),
            _ => Op::Poll(100),
        };
        world.apply(&op);
        if number % 1000 == 0 {
            world.assert_sound();
        }
    }
    let stats = *world.manager.stats();
    println!("{stats:?}");
    let kinds = [stats.admitted, stats.reduced, stats.refused, stats.released, stats.revoked, stats.expired];
    assert!(kinds.iter().all(|count| *count > 100), "{stats:?}");
    world.assert_sound();
    world.assert_all_comes_back();
}
