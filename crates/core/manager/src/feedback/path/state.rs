//! The state of this host's flows and that of the whole path, as the coordinator sees it: loads, and votes on whether the path is
//! overloaded.

use super::PathFeedback;
use crate::feedback::controller::PathView;
use crate::feedback::cutoff::RankLoad;
use crate::feedback::summary::HostState;
use crate::resources::UserId;
use cutline_units::Instant;
use std::collections::BTreeMap;

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

impl PathFeedback {
    /// State of this host's flows.
    pub(super) fn state(&self, now: Instant) -> HostState {
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

    /// State of the path, and the number of hosts that follow the directive.
    pub(super) fn view(&self, now: Instant, own: &HostState) -> (PathView, u32) {
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
}
