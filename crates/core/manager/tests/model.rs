//! Small model of hosts with flows that share a bottleneck, in fluid form: rates instead of packets.
//!
//! A flow sends at its demand or its limit. Its packets arrive at the bottleneck after its host's one-way delay.
//! Traffic beyond the capacity waits in a FIFO buffer, and is lost when the buffer is full. Every interval its
//! receiver measures delays, losses and throughput, with noise, and reports them; a report takes the same delay back.
//! Messages between hosts take the delay of the sender. Reports and messages are lost at random.

use cutline_manager::feedback::{
    FeedbackParams, FlowEdges, FlowReport, HostId, PathFeedback, PathFlow, PathId, PathOutput, PathStart,
};
use cutline_manager::resources::{FlowId, UserId};
use cutline_signal::monitor::{Delivery, Spread};
use cutline_units::{Bytes, Duration, Instant, RandomStream, Rate, Streams};
use std::collections::{BTreeMap, BTreeSet};

/// Length of a step.
const STEP: Duration = Duration::from_millis(10);
const INTERVAL: Duration = Duration::from_millis(500);
const MESSAGE: f64 = 1250.0 * 8.0;

/// Description of a run.
#[derive(Clone, Debug)]
pub struct Setup {
    pub hosts: usize,
    pub flows_per_host: usize,
    /// One-way delay.
    pub delay: Duration,
    /// The longest acceptable delay, beyond the one-way delay.
    pub region: Duration,
    /// The probability that a report or a message is lost.
    pub loss: f64,
    /// Mean of the noise of delays.
    pub noise: Duration,
    /// The probability that an interval has a single peak of four times the region.
    pub peaks: f64,
    /// Flows of each host whose client claims a delay of 10 s, and a thousand times the delivered rate.
    pub liars: usize,
    /// Demand of a flow, bit/s.
    pub demand: f64,
    /// Minimum of a flow, as a share of its demand.
    pub minimum: f64,
    /// Buffer of the bottleneck, as the time that it takes to empty.
    pub buffer: Duration,
    pub params: FeedbackParams,
    pub seed: u64,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            hosts: 2,
            flows_per_host: 1,
            delay: Duration::from_millis(20),
            region: Duration::from_millis(200),
            loss: 0.3,
            noise: Duration::from_millis(5),
            peaks: 0.0,
            liars: 0,
            demand: 1e6,
            minimum: 0.3,
            buffer: Duration::from_millis(400),
            params: FeedbackParams::default(),
            seed: 1,
        }
    }
}

struct Flow {
    host: usize,
    id: FlowId,
    demand: f64,
    rate: f64,
    priority: u8,
    /// Rates that are on the way to the bottleneck, one for each step.
    underway: Vec<f64>,
    /// Bits of the interval.
    sent: f64,
    delivered: f64,
    lost: f64,
    /// Messages lost that are not whole.
    rest: f64,
    next_report: Instant,
    since: Instant,
}

enum Event {
    Report(usize, FlowReport),
    Message(usize, usize, Vec<u8>),
}

/// A run.
pub struct Model {
    pub setup: Setup,
    pub now: Instant,
    /// Capacity of the bottleneck, bit/s.
    pub capacity: f64,
    pub hosts: Vec<PathFeedback>,
    /// Hosts that are switched off: they send nothing and receive nothing.
    pub off: BTreeSet<usize>,
    flows: Vec<Flow>,
    queue: f64,
    /// Waiting times of the steps, s.
    waits: Vec<f64>,
    events: BTreeMap<(Instant, u64), Event>,
    next_event: u64,
    random: RandomStream,
    /// For each interval of a flow: its end, and whether it was in its region.
    pub intervals: Vec<(Instant, bool)>,
    /// Number of outputs that said that nothing more can be lowered.
    pub exhausted: u32,
    pub messages: u64,
}

impl Model {
    pub fn new(setup: Setup, capacity: f64) -> Self {
        let now = Instant::from_nanos(10_000_000_000);
        let all: BTreeSet<HostId> = (0..setup.hosts as u64).map(HostId).collect();
        let mut random = Streams::new(setup.seed).stream("model", "all");
        let (mut hosts, mut flows) = (Vec::new(), Vec::new());
        let longest = setup.delay + setup.region;
        let edges = FlowEdges { delay: Some((0.0, longest.as_millis_f64())), loss: Some(2.0) };
        for host in 0..setup.hosts {
            let start = PathStart {
                params: setup.params.clone(),
                path: PathId(7),
                host: HostId(host as u64),
                number: 1000,
            };
            // Ticks of hosts are not at the same time.
            let begin = now + Duration::from_nanos((random.uniform() * 5e8) as u64);
            let mut feedback = PathFeedback::new(begin, start).unwrap();
            feedback.set_peers(now, &all);
            for number in 0..setup.flows_per_host {
                let id = FlowId((host * setup.flows_per_host + number) as u64 + 1);
                let priority = (number % 4) as u8 * 4;
                let flow = PathFlow {
                    user: UserId(number as u32),
                    most: Rate::from_bps(setup.demand as u64),
                    minimum: Rate::from_bps((setup.demand * setup.minimum) as u64),
                    priority,
                    edges,
                };
                feedback.set_flow(now, id, flow).unwrap();
                let steps = (setup.delay.as_nanos() / STEP.as_nanos()) as usize;
                flows.push(Flow {
                    host,
                    id,
                    demand: setup.demand,
                    rate: setup.demand,
                    priority,
                    underway: vec![setup.demand; steps.max(1)],
                    sent: 0.0,
                    delivered: 0.0,
                    lost: 0.0,
                    rest: 0.0,
                    next_report: now + Duration::from_nanos((random.uniform() * 5e8) as u64) + INTERVAL,
                    since: now,
                });
            }
            hosts.push(feedback);
        }
        Self {
            setup,
            now,
            capacity,
            hosts,
            off: BTreeSet::new(),
            flows,
            queue: 0.0,
            waits: Vec::new(),
            events: BTreeMap::new(),
            next_event: 0,
            random,
            intervals: Vec::new(),
            exhausted: 0,
            messages: 0,
        }
    }

    /// Rate at which all flows send, bit/s.
    pub fn rate(&self) -> f64 {
        self.flows.iter().map(|flow| flow.rate).sum()
    }

    /// Mean rate of the flows of a priority, as a share of their demand.
    pub fn share_of(&self, priority: u8) -> f64 {
        let own: Vec<&Flow> = self.flows.iter().filter(|flow| flow.priority == priority).collect();
        own.iter().map(|flow| flow.rate / flow.demand).sum::<f64>() / own.len() as f64
    }

    /// Times that flows were lowered, by all hosts.
    pub fn lowered(&self) -> u64 {
        self.hosts.iter().map(|host| host.stats().lowered).sum()
    }

    /// The share of intervals from a time on that were in their region.
    pub fn inside(&self, from: f64, to: f64) -> f64 {
        let time = |at: &Instant| at.as_secs_f64() - 10.0;
        let of: Vec<bool> = self
            .intervals
            .iter()
            .filter(|(at, _)| (from..to).contains(&time(at)))
            .map(|(_, inside)| *inside)
            .collect();
        of.iter().filter(|inside| **inside).count() as f64 / of.len() as f64
    }

    pub fn run(&mut self, seconds: f64, mut each_second: impl FnMut(&mut Self)) {
        let steps = (seconds / STEP.as_secs_f64()).round() as usize;
        for step in 0..steps {
            self.step();
            if step % 100 == 99 {
                each_second(self);
            }
        }
    }

    fn step(&mut self) {
        self.now += STEP;
        let at = self.waits.len();
        let dt = STEP.as_secs_f64();
        let arriving: f64 = self.flows.iter().map(|flow| flow.underway[at % flow.underway.len()]).sum();
        let waiting = self.queue + (arriving - self.capacity) * dt;
        let most = self.capacity * self.setup.buffer.as_secs_f64();
        let lost = (waiting - most).max(0.0);
        let served = if self.queue > 0.0 || arriving > self.capacity { self.capacity } else { arriving };
        self.queue = waiting.clamp(0.0, most);
        self.waits.push(self.queue / self.capacity);
        for flow in &mut self.flows {
            let length = flow.underway.len();
            let arrived = std::mem::replace(&mut flow.underway[at % length], flow.rate);
            let share = if arriving > 0.0 { arrived / arriving } else { 0.0 };
            flow.sent += arrived * dt;
            flow.delivered += share * served * dt;
            flow.lost += share * lost;
        }
        self.measure();
        while let Some(entry) = self.events.first_entry().filter(|entry| entry.key().0 <= self.now) {
            match entry.remove() {
                Event::Report(flow, report) => {
                    let Flow { host, id, .. } = self.flows[flow];
                    self.hosts[host].report(self.now, id, &report);
                    self.outputs(host);
                }
                Event::Message(from, host, message) => {
                    if !self.off.contains(&host) {
                        // Messages overtake each other in no case, but a host may have been switched off.
                        self.hosts[host].receive_from(self.now, HostId(from as u64), &message).unwrap();
                        self.outputs(host);
                    }
                }
            }
        }
        for host in 0..self.hosts.len() {
            if self.hosts[host].deadline() <= self.now && !self.off.contains(&host) {
                self.hosts[host].handle_deadline(self.now);
                self.outputs(host);
            }
        }
    }

    /// Ends intervals that are over.
    fn measure(&mut self) {
        for number in 0..self.flows.len() {
            let flow = &mut self.flows[number];
            if flow.next_report > self.now || self.off.contains(&flow.host) {
                continue;
            }
            let (since, until) = (flow.since, self.now);
            let steps = (until.saturating_since(since).as_nanos() / STEP.as_nanos()) as usize;
            let waits = &self.waits[self.waits.len().saturating_sub(steps.max(1))..];
            let base = self.setup.delay.as_secs_f64();
            let mean = base + waits.iter().sum::<f64>() / waits.len() as f64;
            let worst = base + waits.iter().fold(0.0, |worst: f64, wait| worst.max(*wait));
            let noise = self.setup.noise.as_secs_f64();
            // The mean of many messages varies less than their quantile, which has a long tail.
            let mean = mean + noise * (0.8 + 0.4 * self.random.uniform());
            let tail = -(1.0 - self.random.uniform()).ln();
            let mut quantile = worst + noise * (1.5 + tail);
            if self.random.uniform() < self.setup.peaks {
                quantile += 4.0 * self.setup.region.as_secs_f64();
            }
            let time = |seconds: f64| Duration::from_secs_f64(seconds);
            let (sent, lost) = (flow.sent / MESSAGE, flow.lost / MESSAGE + flow.rest);
            flow.rest = lost.fract();
            let (sent, lost) = (sent.round() as u64, lost.floor() as i64);
            let spread = Spread {
                mean: time(mean),
                quantile: time(quantile.max(mean)),
                worst: time(quantile.max(mean)),
            };
            let delivery = Delivery {
                since,
                until,
                sent,
                messages: sent.saturating_sub(lost as u64),
                bytes: (flow.delivered / 8.0) as u64,
                lost,
                delay: Some(spread),
                ..Delivery::default()
            };
            let longest = (self.setup.delay + self.setup.region).as_secs_f64();
            self.intervals.push((until, worst <= longest && flow.lost <= 0.02 * flow.sent));
            (flow.sent, flow.delivered, flow.lost) = (0.0, 0.0, 0.0);
            (flow.since, flow.next_report) = (until, until + INTERVAL);
            let mut report = FlowReport { delivery, backlog: Bytes::ZERO };
            if number % self.setup.flows_per_host < self.setup.liars {
                let late = Duration::from_secs(10);
                report.delivery.delay = Some(Spread { mean: late, quantile: late, worst: late });
                report.delivery.bytes *= 1000;
            }
            self.post(Event::Report(number, report));
        }
    }

    fn post(&mut self, event: Event) {
        self.messages += u64::from(matches!(event, Event::Message(..)));
        if self.random.uniform() >= self.setup.loss {
            self.next_event += 1;
            self.events.insert((self.now + self.setup.delay, self.next_event), event);
        }
    }

    fn outputs(&mut self, host: usize) {
        while let Some(output) = self.hosts[host].poll() {
            match output {
                PathOutput::Send { to, message } => self.post(Event::Message(host, to.0 as usize, message)),
                PathOutput::Broadcast { message } => {
                    for other in (0..self.hosts.len()).filter(|other| *other != host) {
                        self.post(Event::Message(host, other, message.clone()));
                    }
                }
                PathOutput::Limit { .. } => {}
                PathOutput::Exhausted => self.exhausted += 1,
            }
        }
        let feedback = &self.hosts[host];
        let first = host * self.setup.flows_per_host;
        for flow in &mut self.flows[first..first + self.setup.flows_per_host] {
            let limit = feedback.limit_of(flow.id).map_or(f64::INFINITY, |limit| limit.as_bps() as f64);
            flow.rate = flow.demand.min(limit);
        }
    }
}
