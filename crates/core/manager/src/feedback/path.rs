//! Feedback of a path at a host: its flows, the summaries of other hosts, and the directive that all follow.
//!
//! ```text
//!   reports of flows -> Predictor -> HostState --+                       +--> limits of flows
//!                                                |                       |
//!             summaries of other hosts ----> PathView -> PathController -> Directive --> summary to all hosts
//!                          (at the coordinator only)
//! ```
//!
//! One host coordinates: the one with the lowest number of those that report. The others send their summaries to it
//! alone, and it sends its own, with the directive, to all. So a path with n hosts carries 2 n messages in an interval.
//! A host that receives nothing from its coordinator for [`FeedbackParams::silence`] turns to the next one, which may be
//! itself, and returns as soon as it receives from the first one again. A coordinator that is new begins with the cutoff that
//! it has followed.
//!
//! A directive has an epoch. When flows were lowered, the coordinator waits until nearly all hosts follow it, and
//! confirms it with a further epoch. With either a host forgets its reports and takes only those of traffic that was
//! sent afterwards: they show whether more has to be lowered. When flows were raised, reports of before stay, so that a
//! queue that begins to grow is seen as soon as possible. The next raise has to wait for reports of traffic that was
//! sent afterwards.
//!
//! While the path is lowered, ranks and references of flows stay as they were before. Otherwise a flow that is older,
//! or sends less because it was lowered, would move the limits of all.
//!
//! Reports come from clients, which may lie. Flows of a user are one vote on whether the path is overloaded, and a claimed rate is bounded by
//! the limit of the flow.
//!
//! Not implemented: finding out which flows share a bottleneck. The owner gives the path of a flow.

use super::controller::{ControllerStats, PathController, PathView};
use super::cutoff::{Cutoff, RANKS, RankLoad, rank};
use super::params::FeedbackParams;
use super::predictor::{FlowEdges, FlowPrediction, FlowReport, Predictor};
use super::summary::{Directive, HostId, HostState, PathId, PathSummary, SummaryError};
use crate::resources::{FlowId, MOST_RATE, UserId};
use cutline_params::{ParameterError, Parameters as _};
use cutline_units::{Duration, Instant, Rate};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Initial values of the feedback of a path.
#[derive(Clone, Debug)]
pub struct PathStart {
    /// Parameters.
    pub params: FeedbackParams,
    /// The path.
    pub path: PathId,
    /// This host.
    pub host: HostId,
    /// A number above those of all summaries that this host has sent before, such as the time in nanoseconds since
    /// 1970; at most 2^63.
    pub number: u64,
}

/// A flow on a path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathFlow {
    /// The user who owns it. All users of a host have the same vote on whether the path is overloaded.
    pub user: UserId,
    /// The most that it may send if the path is not lowered, bit/s.
    pub most: Rate,
    /// Its minimum; it is never lowered below.
    pub minimum: Rate,
    /// Importance.
    pub priority: u8,
    /// Edges of its region.
    pub edges: FlowEdges,
}

/// State of the feedback of a path, for serde. Times are relative.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PathSnapshot {
    path: u64,
    host: u64,
    number: u64,
    epoch: u64,
    cutoff: u32,
    peers: Vec<u64>,
    flows: Vec<PathFlowRecord>,
}

/// State of a flow on a path, for serde ([`PathSnapshot::update`]).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PathFlowRecord {
    flow: FlowId,
    user: UserId,
    most_bps: u64,
    minimum_bps: u64,
    priority: u8,
    delay_ms: Option<(f64, f64)>,
    loss_percent: Option<f64>,
    age_ns: u64,
    peak_bps: u64,
    rank: usize,
    reference_bps: u64,
}

impl PathSnapshot {
    /// The path.
    pub const fn path(&self) -> PathId {
        PathId(self.path)
    }

    /// Adds a flow, or replaces its state by a later one.
    pub fn update(&mut self, record: PathFlowRecord) {
        match self.flows.binary_search_by_key(&record.flow, |flow| flow.flow) {
            Ok(at) => self.flows[at] = record,
            Err(at) => self.flows.insert(at, record),
        }
    }

    /// Removes a flow that has ended.
    pub fn remove(&mut self, flow: FlowId) {
        if let Ok(at) = self.flows.binary_search_by_key(&flow, |flow| flow.flow) {
            self.flows.remove(at);
        }
    }
}

/// Output of the feedback of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathOutput {
    /// Send a message to a host.
    Send {
        /// The host.
        to: HostId,
        /// An encoded [`PathSummary`].
        message: Vec<u8>,
    },
    /// Send a message to all peers.
    Broadcast {
        /// An encoded [`PathSummary`].
        message: Vec<u8>,
    },
    /// Limit a flow; `None` lifts the limit.
    Limit {
        /// The flow.
        flow: FlowId,
        /// The highest rate.
        limit: Option<Rate>,
    },
    /// All flows of the path are at their minima, and it is still overloaded: only the end of flows can help.
    Exhausted,
}

/// A flow with its reports.
#[derive(Clone, Debug)]
struct Member {
    flow: PathFlow,
    since: Instant,
    predictor: Predictor,
    prediction: FlowPrediction,
    /// Time of the last report; `None` before the first.
    heard: Option<Instant>,
    /// Number of reports of traffic that was sent since the directive holds.
    fresh: u32,
    used: Rate,
    /// The highest rate of the last reports, bit/s. It fades.
    peak: f64,
    rank: usize,
    /// Rate from which the flow is lowered.
    reference: Rate,
    limit: Option<Rate>,
    /// The most that it could send before its limit changed.
    before: Rate,
}

/// Another host.
#[derive(Clone, Debug)]
struct Peer {
    /// Time of its last summary, or of its addition.
    heard: Instant,
    is_silent: bool,
    last: Option<PathSummary>,
}

/// Feedback of a path at a host.
#[derive(Clone, Debug)]
pub struct PathFeedback {
    params: FeedbackParams,
    path: PathId,
    host: HostId,
    number: u64,
    members: BTreeMap<FlowId, Member>,
    peers: BTreeMap<HostId, Peer>,
    leader: HostId,
    leader_since: Instant,
    /// Controller; `None` unless this host coordinates.
    controller: Option<PathController>,
    /// True while the coordinator waits for hosts to follow its last change.
    is_confirming: bool,
    was_exhausted: bool,
    directive: Directive,
    /// Epoch of this host's last directive. Each coordinator counts its own.
    epoch: u64,
    /// True if flows were raised by the last change.
    is_raised: bool,
    /// Time since which the directive holds.
    since: Instant,
    /// Time at which reports were forgotten; `None` if they were not.
    forgotten: Option<Instant>,
    next_tick: Instant,
    next_urgent: Instant,
    outputs: VecDeque<PathOutput>,
    past: ControllerStats,
}

/// The highest number to begin with: numbers never overflow.
const MOST_NUMBER: u64 = 1 << 63;
/// The share by which a reference exceeds the rate that a flow has used.
const MARGIN: f64 = 1.25;
/// The share of its peak that is left after a report: a half after 17 s, long after flows of a path that is overloaded
/// have been lowered.
const FADING: f64 = 0.98;
/// The share of hosts that follow a directive when it is confirmed.
const NEARLY_ALL: f64 = 0.9;

/// Votes of a user's flows on whether the path is overloaded.
#[derive(Clone, Debug, Default)]
struct Votes {
    flows: u32,
    disturbed: u32,
    queued: u32,
    /// Predicted headrooms.
    ahead: Vec<f64>,
}

/// The value that all but a share of the values have at least; 1 if there are none.
fn all_but(share: f64, values: &mut [f64]) -> f64 {
    let Some(last) = values.len().checked_sub(1) else { return 1.0 };
    let at = ((values.len() as f64 * share) as usize).min(last);
    *values.select_nth_unstable_by(at, f64::total_cmp).1
}

impl Member {
    fn record(&self, now: Instant, id: FlowId) -> PathFlowRecord {
        PathFlowRecord {
            flow: id,
            user: self.flow.user,
            most_bps: self.flow.most.as_bps(),
            minimum_bps: self.flow.minimum.as_bps(),
            priority: self.flow.priority,
            delay_ms: self.flow.edges.delay,
            loss_percent: self.flow.edges.loss,
            age_ns: now.saturating_since(self.since).as_nanos(),
            peak_bps: self.peak as u64,
            rank: self.rank,
            reference_bps: self.reference.as_bps(),
        }
    }

    fn is_heard(&self, now: Instant, silence: Duration) -> bool {
        self.heard.is_some_and(|heard| now.saturating_since(heard) < silence)
    }

    /// The highest rate that can have been delivered. While a queue empties, more is delivered than is sent: at most twice as much counts as
    /// long as rates have just changed. A client that claims more lies.
    fn credible(&self, has_just_changed: bool) -> Rate {
        let now = self.limit.unwrap_or(self.flow.most).as_bps();
        let bps =
            if has_just_changed { now.max(self.before.as_bps()) * 2 } else { (now as f64 * MARGIN) as u64 };
        Rate::from_bps(bps)
    }

    /// Follows the flow's age and use, while the path is not lowered.
    fn refresh(&mut self, now: Instant, params: &FeedbackParams) {
        let PathFlow { most, minimum, priority, .. } = self.flow;
        let bps = (self.peak * MARGIN) as u64;
        self.reference =
            if self.heard.is_some() { Rate::from_bps(bps).clamp(minimum, most.max(minimum)) } else { most };
        self.rank = rank(params.order, priority, minimum, self.reference, now.saturating_since(self.since));
    }
}

impl PathFeedback {
    /// The feedback of a path without flows and peers. The first summary is sent one interval from now.
    ///
    /// # Errors
    /// When a parameter is not allowed.
    pub fn new(now: Instant, start: PathStart) -> Result<Self, ParameterError> {
        let PathStart { params, path, host, number } = start;
        params.validate()?;
        if number > MOST_NUMBER {
            return Err(ParameterError::new("number", number, format!("at most {MOST_NUMBER}")));
        }
        Ok(Self {
            controller: Some(PathController::new(now, Cutoff::NONE, &params)),
            next_tick: now.saturating_add(params.interval),
            params,
            path,
            host,
            number,
            members: BTreeMap::new(),
            peers: BTreeMap::new(),
            leader: host,
            leader_since: now,
            is_confirming: false,
            was_exhausted: false,
            directive: Directive { coordinator: host, epoch: number, cutoff: Cutoff::NONE },
            epoch: number,
            is_raised: false,
            since: now,
            forgotten: None,
            next_urgent: now,
            outputs: VecDeque::new(),
            past: ControllerStats::default(),
        })
    }

    /// Sets the other hosts of the path. Summaries of others are refused.
    pub fn set_peers(&mut self, now: Instant, peers: &BTreeSet<HostId>) {
        self.peers.retain(|host, _| peers.contains(host));
        for host in peers.iter().filter(|host| **host != self.host) {
            self.peers.entry(*host).or_insert(Peer { heard: now, is_silent: false, last: None });
        }
        self.choose_leader(now);
    }

    /// Adds a flow, or changes its rates and edges.
    ///
    /// # Errors
    /// When a value is not allowed: the minimum exceeds the most, or an edge is no number.
    pub fn set_flow(&mut self, now: Instant, id: FlowId, flow: PathFlow) -> Result<(), ParameterError> {
        flow.edges.validate()?;
        if flow.most > MOST_RATE {
            return Err(ParameterError::new("most", flow.most, format!("at most {MOST_RATE}")));
        }
        if flow.minimum > flow.most {
            let most = format!("at most the most that the flow may send, which is {}", flow.most);
            return Err(ParameterError::new("minimum", flow.minimum, most));
        }
        if let Some(member) = self.members.get_mut(&id) {
            member.flow = flow;
            member.predictor.set_edges(flow.edges);
            member.reference = member.reference.clamp(flow.minimum, flow.most);
        } else {
            let mut member = Member {
                flow,
                since: now,
                predictor: Predictor::new(flow.edges, &self.params),
                prediction: FlowPrediction::UNKNOWN,
                heard: None,
                fresh: 0,
                used: Rate::ZERO,
                peak: 0.0,
                rank: 0,
                reference: flow.most,
                limit: None,
                before: flow.most,
            };
            member.refresh(now, &self.params);
            self.members.insert(id, member);
        }
        self.limit(id);
        Ok(())
    }

    /// Changes the most that a flow may send, at least its minimum, if there is such a flow.
    pub fn set_most(&mut self, id: FlowId, most: Rate) {
        if let Some(member) = self.members.get_mut(&id) {
            member.flow.most = most.clamp(member.flow.minimum, MOST_RATE.max(member.flow.minimum));
            member.reference = member.reference.min(member.flow.most);
            self.limit(id);
        }
    }

    /// Removes a flow.
    pub fn remove_flow(&mut self, id: FlowId) {
        self.members.remove(&id);
    }

    /// Takes a report of a flow. Returns the prediction; `None` if there is no such flow.
    pub fn report(&mut self, now: Instant, id: FlowId, report: &FlowReport) -> Option<FlowPrediction> {
        let member = self.members.get_mut(&id)?;
        let delivery = &report.delivery;
        member.heard = Some(now);
        let credible = member.credible(now.saturating_since(self.since) < self.params.silence);
        member.used = delivery.throughput().min(credible);
        member.peak = (member.used.as_bps() as f64).max(member.peak * FADING);
        if self.directive.cutoff == Cutoff::NONE {
            member.refresh(now, &self.params);
        }
        // The oldest message of the interval was sent a delay before it began.
        let delay = delivery.delay.map_or(0, |delay| delay.quantile.as_nanos());
        let sent = Instant::from_nanos(delivery.since.as_nanos().saturating_sub(delay));
        member.fresh += u32::from(sent >= self.since);
        if self.forgotten.is_some_and(|forgotten| sent < forgotten) {
            member.predictor.note_delay(report);
        } else {
            let rate = member.limit.unwrap_or(member.flow.most);
            member.predictor.add(now, report, rate);
            member.prediction = member.predictor.prediction(now, &self.params);
            if member.prediction.is_disturbed {
                self.hurry(now);
            }
        }
        self.members.get(&id).map(|member| member.prediction)
    }

    /// Takes a message of another host, which the owner has authenticated.
    ///
    /// # Errors
    /// When it is no summary of that host as a peer on this path, or not newer than an earlier one. Then it changes nothing.
    pub fn receive_from(&mut self, now: Instant, sender: HostId, message: &[u8]) -> Result<(), SummaryError> {
        let summary = PathSummary::decode(message)?;
        let PathSummary { host, path, number, directive, state, .. } = summary;
        if host != sender {
            return Err(SummaryError::Stranger(host));
        }
        if path != self.path {
            return Err(SummaryError::Path(path));
        }
        let peer = self.peers.get_mut(&host).ok_or(SummaryError::Stranger(host))?;
        if let Some(last) = peer.last.filter(|last| last.number >= number) {
            return Err(SummaryError::Stale { number, last: last.number });
        }
        *peer = Peer { heard: now, is_silent: false, last: Some(summary) };
        self.choose_leader(now);
        if host == self.leader && directive.coordinator == host {
            self.follow(now, directive);
        } else if self.controller.is_some() && state.disturbed > 0.0 {
            self.hurry(now);
        }
        Ok(())
    }

    /// The time at which [`PathFeedback::handle_deadline`] is to be called.
    pub const fn deadline(&self) -> Instant {
        self.next_tick
    }

    /// Handles a due deadline: decides, if this host coordinates, and sends a summary.
    pub fn handle_deadline(&mut self, now: Instant) {
        if now >= self.next_tick {
            self.next_tick = now.saturating_add(self.params.interval);
            self.step(now);
        }
    }

    /// Takes the next output.
    pub fn poll(&mut self) -> Option<PathOutput> {
        self.outputs.pop_front()
    }

    /// The directive that this host follows.
    pub const fn directive(&self) -> Directive {
        self.directive
    }

    /// The other hosts, each with a flag whether it reports.
    pub fn peers(&self, now: Instant) -> impl Iterator<Item = (HostId, bool)> {
        let silence = self.params.silence;
        self.peers.iter().map(move |(host, peer)| {
            (*host, peer.last.is_some() && now.saturating_since(peer.heard) < silence)
        })
    }

    /// The host that coordinates, as far as this host knows.
    pub const fn coordinator(&self) -> HostId {
        self.leader
    }

    /// The prediction for a flow; `None` if there is no such flow.
    pub fn prediction(&self, id: FlowId) -> Option<FlowPrediction> {
        self.members.get(&id).map(|member| member.prediction)
    }

    /// The limit of a flow; `None` if it has none.
    pub fn limit_of(&self, id: FlowId) -> Option<Rate> {
        self.members.get(&id)?.limit
    }

    /// Counters of this host's decisions as the coordinator.
    pub fn stats(&self) -> ControllerStats {
        let now = self.controller.as_ref().map(PathController::stats).unwrap_or_default();
        ControllerStats {
            lowered: self.past.lowered + now.lowered,
            raised: self.past.raised + now.raised,
            probes: self.past.probes + now.probes,
            failed: self.past.failed + now.failed,
        }
    }

    /// The state of a flow as data; `None` if there is no such flow.
    pub fn record(&self, now: Instant, id: FlowId) -> Option<PathFlowRecord> {
        self.members.get(&id).map(|member| member.record(now, id))
    }

    /// The state as data: the directive, the peers and the flows. Reports are not in it: those of two seconds replace them.
    pub fn snapshot(&self, now: Instant) -> PathSnapshot {
        PathSnapshot {
            path: self.path.0,
            host: self.host.0,
            number: self.number,
            epoch: self.epoch,
            cutoff: self.directive.cutoff.to_bits(),
            peers: self.peers.keys().map(|host| host.0).collect(),
            flows: self.members.iter().map(|(id, member)| member.record(now, *id)).collect(),
        }
    }

    /// Feedback that continues from a snapshot, with the same limits. `number` is one above those of all summaries that
    /// this host has sent since, such as the time in nanoseconds since 1970. An output [`PathOutput::Limit`] says each
    /// limit again.
    ///
    /// # Errors
    /// When a value is not allowed.
    pub fn restore(
        now: Instant,
        params: FeedbackParams,
        number: u64,
        snapshot: &PathSnapshot,
    ) -> Result<Self, ParameterError> {
        let number = number.max(snapshot.number).max(snapshot.epoch);
        let (path, host) = (PathId(snapshot.path), HostId(snapshot.host));
        let mut this = Self::new(now, PathStart { params, path, host, number })?;
        let range = || format!("0 to {}", Cutoff::ALL.to_bits());
        let cutoff = Cutoff::from_bits(snapshot.cutoff);
        let cutoff = cutoff.ok_or_else(|| ParameterError::new("cutoff", snapshot.cutoff, range()))?;
        this.directive.cutoff = cutoff;
        this.forgotten = Some(now);
        this.controller = Some(PathController::new(now, cutoff, &this.params));
        for state in &snapshot.flows {
            let edges = FlowEdges { delay: state.delay_ms, loss: state.loss_percent };
            let (most, minimum) = (Rate::from_bps(state.most_bps), Rate::from_bps(state.minimum_bps));
            this.set_flow(
                now,
                state.flow,
                PathFlow { user: state.user, most, minimum, priority: state.priority, edges },
            )?;
            if state.rank >= RANKS {
                return Err(ParameterError::new("rank", state.rank, format!("0 to {}", RANKS - 1)));
            }
            let member = this.members.get_mut(&state.flow).expect("the flow was added");
            member.since = Instant::from_nanos(now.as_nanos().saturating_sub(state.age_ns));
            member.peak = state.peak_bps.min(MOST_RATE.as_bps()) as f64;
            member.rank = state.rank;
            member.reference = Rate::from_bps(state.reference_bps).clamp(minimum, most);
            this.limit(state.flow);
        }
        this.set_peers(now, &snapshot.peers.iter().copied().map(HostId).collect());
        Ok(this)
    }

    /// Handles the next deadline at once, at most four times in an interval.
    fn hurry(&mut self, now: Instant) {
        if now >= self.next_urgent {
            self.next_urgent = now.saturating_add(self.params.interval / 4);
            self.step(now);
        }
    }

    fn step(&mut self, now: Instant) {
        self.choose_leader(now);
        if self.directive.cutoff == Cutoff::NONE {
            for member in self.members.values_mut() {
                member.refresh(now, &self.params);
            }
        }
        let state = self.state(now);
        if self.controller.is_some() {
            self.coordinate(now, &state);
            let state = self.state(now);
            let message = self.summary(&state);
            if !self.peers.is_empty() {
                self.outputs.push_back(PathOutput::Broadcast { message });
            }
        } else {
            let message = self.summary(&state);
            self.outputs.push_back(PathOutput::Send { to: self.leader, message });
        }
    }

    fn summary(&mut self, state: &HostState) -> Vec<u8> {
        self.number += 1;
        let (order, directive) = (self.params.order, self.directive);
        PathSummary { order, host: self.host, path: self.path, number: self.number, directive, state: *state }
            .encode()
    }

    /// State of this host's flows.
    fn state(&self, now: Instant) -> HostState {
        let mut state = HostState { ahead: 1.0, ..HostState::default() };
        let (mut ready, mut queues) = (0, Vec::new());
        let mut users: BTreeMap<UserId, Votes> = BTreeMap::new();
        for member in self.members.values().filter(|member| member.heard.is_some()) {
            // A flow whose reports are lost still sends.
            let load = &mut state.loads.0[member.rank];
            let (used, minimum) = (member.used.as_bps(), member.flow.minimum.as_bps());
            load.add(RankLoad { used, minimum, reference: member.reference.as_bps() });
            if !member.is_heard(now, self.params.silence) {
                continue;
            }
            state.flows += 1;
            let votes = users.entry(member.flow.user).or_default();
            votes.flows += 1;
            if let Some(queue) = member.predictor.queue() {
                votes.queued += 1;
                queues.push(queue);
            }
            ready += u32::from(member.fresh >= self.params.least);
            if member.predictor.reports() >= self.params.least as usize {
                votes.disturbed += u32::from(member.prediction.is_disturbed);
                votes.ahead.push(member.prediction.ahead);
                state.ahead = state.ahead.min(member.prediction.ahead);
            }
        }
        let share = self.params.corroboration / 2.0;
        let mut ahead: Vec<f64> = users.values_mut().map(|votes| all_but(share, &mut votes.ahead)).collect();
        state.ahead_of_most = all_but(share, &mut ahead);
        let mean = |of: fn(&Votes) -> u32| {
            let shares = users.values().map(|votes| f64::from(of(votes)) / f64::from(votes.flows));
            shares.sum::<f64>() / users.len().max(1) as f64
        };
        (state.disturbed, state.queued) = (mean(|votes| votes.disturbed), mean(|votes| votes.queued));
        if let Some(middle) = queues.len().checked_sub(1) {
            state.queue = *queues.select_nth_unstable(middle / 2).1;
        }
        state.is_ready = state.flows > 0 && ready * 2 >= state.flows;
        state
    }

    /// Decides as the coordinator.
    fn coordinate(&mut self, now: Instant, own: &HostState) {
        let (view, following) = self.view(now, own);
        if self.controller.as_mut().is_some_and(|controller| controller.correct(now, &view, &self.params)) {
            self.give(now, view.hosts);
            return;
        }
        if self.is_confirming {
            if f64::from(following) >= NEARLY_ALL * f64::from(view.hosts) {
                self.is_confirming = false;
                self.announce(now, self.directive.cutoff);
            }
            return;
        }
        let Some(controller) = &mut self.controller else { return };
        let has_changed = controller.decide(now, &view, &self.params);
        let is_exhausted = controller.is_exhausted();
        if has_changed {
            self.give(now, view.hosts);
        } else if is_exhausted && view.ahead < 0.0 && view.ready > 0 && !self.was_exhausted {
            self.was_exhausted = true;
            self.outputs.push_back(PathOutput::Exhausted);
        }
        self.was_exhausted &= is_exhausted;
    }

    /// Gives the controller's cutoff as a directive to so many hosts.
    fn give(&mut self, now: Instant, hosts: u32) {
        let Some(cutoff) = self.controller.as_ref().map(PathController::cutoff) else { return };
        // Without other hosts there is none to wait for.
        self.is_confirming = hosts > 1 && cutoff > self.directive.cutoff;
        self.announce(now, cutoff);
    }

    /// State of the path, and the number of hosts that follow the directive.
    fn view(&self, now: Instant, own: &HostState) -> (PathView, u32) {
        let mut view = PathView { ahead: 1.0, ..PathView::default() };
        let (mut following, mut disturbed, mut queued) = (0, 0.0, 0.0);
        let (mut queues, mut ahead) = (Vec::new(), Vec::new());
        let fresh = self.peers.values().filter(|peer| now.saturating_since(peer.heard) < self.params.silence);
        let others = fresh.filter_map(|peer| peer.last.as_ref()).map(|last| (last.directive, &last.state));
        for (directive, state) in others.chain([(self.directive, own)]) {
            view.loads.add(&state.loads);
            if state.flows == 0 {
                continue;
            }
            view.hosts += 1;
            queued += state.queued;
            if state.queued > 0.0 {
                queues.push(state.queue);
            }
            let follows = directive == self.directive;
            following += u32::from(follows);
            view.ready += u32::from(follows && state.is_ready);
            if self.is_raised || (follows && state.is_ready) {
                view.ahead = view.ahead.min(state.ahead);
                disturbed += state.disturbed;
                ahead.push(state.ahead_of_most);
            }
        }
        view.disturbed = disturbed / f64::from(view.hosts.max(1));
        view.queued = queued / f64::from(view.hosts.max(1));
        view.ahead_of_most = all_but(self.params.corroboration / 2.0, &mut ahead);
        if let Some(middle) = queues.len().checked_sub(1) {
            view.queue = *queues.select_nth_unstable(middle / 2).1;
        }
        (view, following)
    }

    /// Gives a directive as the coordinator.
    fn announce(&mut self, now: Instant, cutoff: Cutoff) {
        self.epoch += 1;
        self.follow(now, Directive { coordinator: self.host, epoch: self.epoch, cutoff });
    }

    /// Follows a directive.
    fn follow(&mut self, now: Instant, directive: Directive) {
        if directive == self.directive {
            return;
        }
        let is_other_cutoff = directive.cutoff != self.directive.cutoff;
        self.is_raised = directive.cutoff < self.directive.cutoff;
        self.directive = directive;
        self.since = now;
        for member in self.members.values_mut() {
            member.fresh = 0;
        }
        if !self.is_raised {
            self.forgotten = Some(now);
            for member in self.members.values_mut() {
                member.predictor.forget();
                member.prediction = FlowPrediction::UNKNOWN;
            }
        }
        if is_other_cutoff {
            for id in self.members.keys().copied().collect::<Vec<_>>() {
                self.limit(id);
            }
        }
    }

    /// Sets the limit of a flow for the directive.
    fn limit(&mut self, id: FlowId) {
        let Some(member) = self.members.get_mut(&id) else { return };
        let limit = self.directive.cutoff.limit(member.rank, member.flow.minimum, member.reference);
        if limit != member.limit {
            member.before = member.limit.unwrap_or(member.flow.most);
            member.limit = limit;
            self.outputs.push_back(PathOutput::Limit { flow: id, limit });
        }
    }

    /// Chooses the host with the lowest number that reports.
    fn choose_leader(&mut self, now: Instant) {
        let silence = self.params.silence;
        if let Some(peer) = self.peers.get_mut(&self.leader) {
            let heard = peer.heard.max(self.leader_since);
            peer.is_silent |= now.saturating_since(heard) >= silence;
        }
        let first = self.peers.iter().find(|(_, peer)| !peer.is_silent).map(|(host, _)| *host);
        let leader = first.map_or(self.host, |first| first.min(self.host));
        if leader == self.leader {
            return;
        }
        (self.leader, self.leader_since) = (leader, now);
        if let Some(controller) = self.controller.take() {
            let stats = controller.stats();
            self.past.lowered += stats.lowered;
            self.past.raised += stats.raised;
            self.past.probes += stats.probes;
            self.past.failed += stats.failed;
        }
        if leader == self.host {
            let cutoff = self.directive.cutoff;
            self.controller = Some(PathController::new(now, cutoff, &self.params));
            self.is_confirming = true;
            self.announce(now, cutoff);
        }
    }
}
