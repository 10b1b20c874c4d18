//! Coordination of the hosts of a path: the choice of the coordinator, its directives, and the hosts that follow them.

use super::{PathFeedback, PathOutput};
use crate::feedback::controller::PathController;
use crate::feedback::cutoff::Cutoff;
use crate::feedback::predictor::FlowPrediction;
use crate::feedback::summary::{Directive, HostState};
use cutline_units::Instant;

/// The share of hosts that follow a directive when it is confirmed.
const NEARLY_ALL: f64 = 0.9;

impl PathFeedback {
    /// Chooses the host with the lowest number that reports.
    pub(super) fn choose_leader(&mut self, now: Instant) {
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

    /// Decides as the coordinator.
    pub(super) fn coordinate(&mut self, now: Instant, own: &HostState) {
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

    /// Gives a directive as the coordinator.
    fn announce(&mut self, now: Instant, cutoff: Cutoff) {
        self.epoch += 1;
        self.follow(now, Directive { coordinator: self.host, epoch: self.epoch, cutoff });
    }

    /// Follows a directive.
    pub(super) fn follow(&mut self, now: Instant, directive: Directive) {
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
}
