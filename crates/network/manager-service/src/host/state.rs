//! State that outlives the process: its take-over from an earlier process, the journal, and snapshots.

use super::{HostSession, ManagedHost, SECOND};
use crate::paths::PathSocket;
use crate::store::{Change, SessionRecord, StoredState};
use cutline_manager::resources::{ClientKey, FlowId};
use cutline_units::Instant;
use std::collections::BTreeMap;

impl ManagedHost {
    /// Takes sessions and flows over from an earlier process. Flows without a session end.
    pub(super) fn take_over(&mut self, now: Instant, stored: StoredState) {
        self.next_key = stored.next_key;
        let until = Some(now.saturating_add(self.spec.resources.lease));
        for SessionRecord { key, token, user } in stored.sessions {
            self.next_key = self.next_key.max(key.0 + 1);
            self.tokens.insert(token.clone(), key);
            let flows = BTreeMap::new();
            let (pid, next_renewal) = (None, Instant::ZERO);
            self.sessions.insert(key, HostSession { token, user, pid, flows, until, next_renewal });
        }
        for (flow, place) in stored.places {
            let is_there = self.manager.resources().flow(flow).is_some_and(|its| its.client == place.key);
            if let (true, Some(session)) = (is_there, self.sessions.get_mut(&place.key)) {
                session.flows.insert(place.id, flow);
                self.places.insert(flow, place);
            }
        }
        let lost: Vec<(ClientKey, FlowId)> = {
            let all = self.manager.resources().flows().filter(|flow| !self.places.contains_key(flow));
            all.filter_map(|flow| Some((self.manager.resources().flow(flow)?.client, flow))).collect()
        };
        for (client, flow) in lost {
            self.manager.release(client, flow);
        }
        self.taken_over = self.places.len() as u64;
        if let Some(paths) = &mut self.paths {
            paths.set_numbers(&stored.numbers);
        }
        // Clients could not report meanwhile.
        self.manager.renew_all(now);
        if self.taken_over > 0 {
            let sessions = self.sessions.values().filter(|session| !session.flows.is_empty()).count();
            self.notices.push(format!(
                "the resource manager has restored {} flows of {sessions} clients",
                self.taken_over
            ));
        }
    }

    /// Writes the changes into the journal, or a snapshot if it is time.
    pub fn commit(&mut self, now: Instant) {
        for flow in std::mem::take(&mut self.touched) {
            if let (Some(place), Some(record)) = (self.places.get(&flow), self.manager.record(now, flow)) {
                self.changes.push(Change::Flow(Box::new(record), *place));
            }
        }
        let mut changes = std::mem::take(&mut self.changes);
        let stats = *self.manager.resources().stats();
        if std::mem::replace(&mut self.committed_stats, stats) != stats {
            changes.push(Change::Counters(stats));
        }
        self.is_stale |= self.store.note_changes(&changes);
        if self.is_stale && now >= self.next_snapshot {
            self.is_stale = false;
            self.next_snapshot = now.saturating_add(SECOND);
            let state = self.state(now);
            self.store.replace(state);
        }
        self.notices.extend(self.store.problem());
    }

    /// Writes a snapshot, as at the end of the process.
    pub fn save(&mut self, now: Instant) {
        let state = self.state(now);
        self.store.replace(state);
    }

    fn state(&mut self, now: Instant) -> StoredState {
        let session = |(key, session): (&ClientKey, &HostSession)| SessionRecord {
            key: *key,
            token: session.token.clone(),
            user: session.user,
        };
        StoredState {
            next_key: self.next_key,
            manager: self.manager.snapshot(now),
            sessions: self.sessions.iter().map(session).collect(),
            places: self.places.iter().map(|(flow, place)| (*flow, *place)).collect(),
            numbers: self.paths.as_ref().map(PathSocket::numbers).unwrap_or_default(),
            classed: self.kernel_classes.names(),
        }
    }
}
