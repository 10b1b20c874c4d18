//! Hosts with managed connections that share a bottleneck, as packets: for the tests and for the bench.
//!
//! ```text
//! host 1 --- access --\                       /-- sink
//!   ...                router --- bottleneck --
//! host n --- access --/
//! ```
//!
//! The links from the router back to the hosts lose packets: reports, summaries, and answers of negotiations.

use cutline_aqm::{Limit, QueueSpec};
use cutline_manager::feedback::{FeedbackParams, HostId};
use cutline_manager::resources::{SchedulingClass, UserId};
use cutline_quality::spec::Specification;
use cutline_signal::negotiation::NegotiationParams;
use cutline_signal::session::SessionParams;
use cutline_sim::managed::{HostManager, ManagedShare, SimulatedHost};
use cutline_sim::qos::{QosConnection, QosLog};
use cutline_sim::{Address, ImpairmentParams, LinkSpec, Network, NodeId, SimulationSettings, Window, run};
use cutline_units::{Bytes, Duration, Instant, Rate};
use std::collections::BTreeMap;

/// Length of a message, bytes, and its length on the wire with the headers of this library, UDP and IPv4.
const MESSAGE: u64 = 1000;
const ON_WIRE: f64 = 1049.0;
const ACCESS: Rate = Rate::from_mbps(100);
const MANAGER_PORT: u32 = 9;

/// Description of a run.
#[derive(Clone, Debug)]
pub struct PathPlan {
    pub hosts: usize,
    pub flows_per_host: usize,
    /// Messages of a connection in a second, if it is not limited.
    pub messages: f64,
    /// One-way delay.
    pub delay: Duration,
    /// The probability that a packet back to a host is lost.
    pub loss: f64,
    /// The longest acceptable delay, beyond the one-way delay.
    pub region: Duration,
    /// Times, s, from which the bottleneck has this share of the demand.
    pub capacity: Vec<(f64, f64)>,
    /// Length of the run, s.
    pub length: f64,
    pub feedback: FeedbackParams,
    pub seed: u64,
}

/// Observations of a run.
pub struct PathRun {
    #[allow(dead_code, reason = "the bench does not look at single hosts")]
    pub hosts: Vec<SimulatedHost>,
    logs: Vec<QosLog>,
    plan: PathPlan,
    /// Messages of a connection that is not limited, bit/s on the wire, of all connections.
    pub demand: f64,
    /// Times that flows were lowered, by each host, at the end.
    pub lowered: u64,
}

impl Default for PathPlan {
    fn default() -> Self {
        Self {
            hosts: 2,
            flows_per_host: 1,
            messages: 100.0,
            delay: Duration::from_millis(20),
            loss: 0.3,
            region: Duration::from_millis(200),
            capacity: vec![(0.0, 1.25)],
            length: 60.0,
            feedback: FeedbackParams::default(),
            seed: 1,
        }
    }
}

fn at(seconds: f64) -> Instant {
    Instant::ZERO + Duration::from_secs_f64(seconds)
}

impl PathPlan {
    fn demand(&self) -> f64 {
        (self.hosts * self.flows_per_host) as f64 * self.messages * ON_WIRE * 8.0
    }

    pub fn run(self) -> PathRun {
        let demand = self.demand();
        let rate = |share: f64| Rate::from_bps((demand * share) as u64);
        let mut network = Network::new();
        let (router, sink) = (network.add_node("router"), network.add_node("sink"));
        let plain = |from: NodeId, to: NodeId, rate: Rate, delay: Duration, packets: u32| {
            LinkSpec::new(from, to, rate, delay, QueueSpec::drop_tail(Limit::Packets(packets), rate))
        };
        let millisecond = Duration::from_millis(1);
        let first = self.capacity[0].1;
        // The buffer takes twice the region to empty.
        let buffer = demand * first * 2.0 * self.region.as_secs_f64() / 8.0 / ON_WIRE;
        let mut bottleneck = plain(router, sink, rate(first), millisecond, buffer as u32);
        bottleneck.rate_changes =
            self.capacity[1..].iter().map(|(from, share)| (at(*from), rate(*share))).collect();
        network.add_link(bottleneck);
        let back = Rate::from_bps((demand * 10.0) as u64 + 100_000_000);
        network.add_link(plain(sink, router, back, millisecond, 100_000));
        let access = self.delay.saturating_sub(millisecond);
        let nodes: Vec<NodeId> = (0..self.hosts)
            .map(|number| {
                let node = network.add_node(format!("host.{number}"));
                network.add_link(plain(node, router, ACCESS, access, 100_000));
                let lossy = ImpairmentParams { loss: self.loss, ..ImpairmentParams::default() };
                let impairment = (self.loss > 0.0).then(|| Box::new(lossy));
                network.add_link(LinkSpec { impairment, ..plain(router, node, ACCESS, access, 100_000) });
                node
            })
            .collect();
        let addresses: BTreeMap<HostId, Address> = (nodes.iter().enumerate())
            .map(|(number, node)| (HostId(number as u64), Address { node: *node, port: MANAGER_PORT }))
            .collect();
        let (mut hosts, mut logs) = (Vec::new(), Vec::new());
        for (number, node) in nodes.iter().enumerate() {
            let id = HostId(number as u64);
            let mut peers = addresses.clone();
            peers.remove(&id);
            let manager = HostManager {
                peers,
                feedback: self.feedback.clone(),
                ..HostManager::new(format!("manager.{number}"), addresses[&id], id)
            };
            let host = manager.add_to(&mut network).unwrap();
            for flow in 0..self.flows_per_host {
                logs.push(self.connect(&mut network, (*node, sink), &host, (number, flow)));
            }
            hosts.push(host);
        }
        let duration = Duration::from_secs_f64(self.length);
        let window = Window { from: Instant::ZERO, until: at(self.length) };
        let interval = Duration::from_secs(1);
        let settings = SimulationSettings { seed: self.seed, duration, window, interval };
        run(&network, &settings).unwrap();
        let lowered = hosts.iter().map(|host| host.stats().lowered).sum();
        PathRun { hosts, logs, plan: self, demand, lowered }
    }

    fn connect(
        &self,
        network: &mut Network,
        ends: (NodeId, NodeId),
        host: &SimulatedHost,
        (number, flow): (usize, usize),
    ) -> QosLog {
        let longest = self.delay + self.region;
        let send = Specification::builder()
            .rates(self.messages * 0.3, self.messages, self.messages)
            .size(Bytes::new(MESSAGE))
            .max_delay(longest)
            .loss(2.0)
            .build()
            .unwrap();
        let patient = NegotiationParams {
            first_timeout: Duration::from_millis(1500),
            give_up: Duration::from_secs(40),
        };
        let connection = QosConnection {
            port: 100 + (number * self.flows_per_host + flow) as u32,
            params: SessionParams { negotiation: patient, ..SessionParams::default() },
            sample: Duration::from_secs(3600),
            managed: Some(ManagedShare {
                host: host.clone(),
                user: UserId(flow as u32),
                class: SchedulingClass::TimeShared,
                priority: (flow % 4) as u8 * 4,
                weight: 1,
            }),
            ..QosConnection::new(format!("flow.{number}.{flow}"), ends, send)
        };
        connection.connect(network).unwrap()
    }
}

impl PathRun {
    /// Rate of the messages that arrive in a part of the run, as a share of the demand.
    pub fn rate(&self, from: f64, until: f64) -> f64 {
        let window = Window { from: at(from), until: at(until) };
        let arrived: u64 = self.logs.iter().map(|log| log.record().passed(window).arrived).sum();
        arrived as f64 * ON_WIRE * 8.0 / (until - from) / self.demand
    }

    /// Rates of the seconds of a part of the run, as shares of the demand.
    pub fn rates(&self, from: f64, until: f64) -> Vec<f64> {
        let mut arrived = vec![0_u64; (until - from) as usize];
        for log in &self.logs {
            for message in log.record().messages {
                let second = message.arrived.map(|at| at.as_secs_f64() - from);
                if let Some(second) = second.filter(|second| *second >= 0.0 && *second < until - from) {
                    arrived[second as usize] += 1;
                }
            }
        }
        arrived.iter().map(|count| *count as f64 * ON_WIRE * 8.0 / self.demand).collect()
    }

    /// The share of the half seconds of all connections, in a part of the run, in which every message that was sent then
    /// arrived within the region. A connection that sends nothing in a half second is not counted then.
    pub fn inside(&self, from: f64, until: f64) -> f64 {
        let longest = self.plan.delay + self.plan.region;
        let (mut inside, mut all) = (0_u64, 0_u64);
        for log in &self.logs {
            let mut halves: BTreeMap<u64, bool> = BTreeMap::new();
            for message in log.record().messages {
                let sent = message.sent.as_secs_f64();
                if (from..until).contains(&sent) {
                    let is_well =
                        message.arrived.is_some_and(|at| at.saturating_since(message.sent) <= longest);
                    *halves.entry((sent * 2.0) as u64).or_insert(true) &= is_well;
                }
            }
            all += halves.len() as u64;
            inside += halves.values().filter(|is_well| **is_well).count() as u64;
        }
        inside as f64 / all as f64
    }
}

/// Behaviour after a bottleneck has halved, and come back.
#[derive(Debug)]
pub struct StepResponse {
    /// Rates of each second from 30 s after the step on, as shares of the capacity.
    pub rates: Vec<f64>,
    /// The share of half seconds inside of the region from 30 s after the step on.
    pub inside: f64,
    /// Rate 150 s to 180 s after the capacity has come back, as a share of the demand.
    pub recovered: f64,
    /// Times that flows were lowered in the whole run.
    pub lowered: u64,
    /// Rate of the 20 s before the step, as a share of the demand.
    pub before: f64,
}

/// Runs 60 s with a capacity of 1.25 of the demand, 240 s with half of that, and 180 s with the first one again.
pub fn step_response(plan: PathPlan) -> StepResponse {
    let capacity = vec![(0.0, 1.25), (60.0, 0.625), (300.0, 1.25)];
    let run = PathPlan { capacity, length: 481.0, ..plan }.run();
    StepResponse {
        rates: run.rates(90.0, 300.0).iter().map(|rate| rate / 0.625).collect(),
        inside: run.inside(90.0, 299.0),
        recovered: run.rate(450.0, 480.0),
        lowered: run.lowered,
        before: run.rate(40.0, 60.0),
    }
}
