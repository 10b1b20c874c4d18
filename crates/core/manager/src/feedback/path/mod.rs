//! Feedback of a path at a host: its flows, the summaries of other hosts, and the directive that all follow.
//!
//! ```text
//!   reports of flows -> Predictor -> HostState --+                       +--> limits of flows
//!                                                |                       |
//!             summaries of other hosts ----> PathView -> PathController -> Directive --> summary to all hosts
//!                          (at the coordinator only)
//! ```
//!
//! ```text
//! member        a flow with its reports
//! state         the state of this host's flows, and of the path
//! coordination  the coordinator and its directives
//! snapshot      the state as data
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

mod coordination;
mod member;
mod snapshot;
mod state;

pub use snapshot::{PathFlowRecord, PathSnapshot};

use super::controller::{ControllerStats, PathController};
use super::cutoff::Cutoff;
use super::params::FeedbackParams;
use super::predictor::{FlowEdges, FlowPrediction, FlowReport, Predictor};
use super::summary::{Directive, HostId, HostState, PathId, PathSummary, SummaryError};
use crate::resources::{FlowId, MOST_RATE, UserId};
use cutline_params::{ParameterError, Parameters as _};
use cutline_units::{Instant, Rate};
use member::{FADING, Member};
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

    /// Raises the number of the next summary above `number`, if it is not: a host that has started with a clock in the past is refused
    /// until its numbers are those of the right time.
    pub fn raise_number(&mut self, number: u64) {
        self.number = self.number.max(number.min(MOST_NUMBER));
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
}
