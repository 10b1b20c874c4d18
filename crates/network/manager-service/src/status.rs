//! State of the manager as a document.

use crate::host::ManagedHost;
use crate::store::FlowPlace;
use cutline_allocation::status::{
    CapacityStatus, FlowStatus, HostStatus, ManagerCounters, ManagerStatus, PathStatus, UserStatus,
};
use cutline_manager::resources::{CarrierKind, FlowId, ResourceKind, SchedulingClass, UserId};
use cutline_units::{Instant, Rate};
use std::collections::BTreeMap;

/// Wire units of one rank.
const RANK: f64 = 65_536.0;

impl ManagedHost {
    /// The state, as a user sees it: root sees all flows, others those of their own. The caller adds its clients.
    pub fn status(&mut self, now: Instant, started: Instant, viewer: u32) -> ManagerStatus {
        let is_shown = |user: UserId| viewer == 0 || user.0 == viewer;
        let places: Vec<(FlowId, FlowPlace)> =
            self.places.iter().map(|(flow, place)| (*flow, *place)).collect();
        let (mut users, mut flows) = (BTreeMap::<u32, UserStatus>::new(), Vec::new());
        for (flow, place) in &places {
            let user = self.manager.resources().flow(*flow).map(|request| request.user);
            if !user.is_some_and(is_shown) {
                continue;
            }
            let Some(status) = self.flow_status(now, *flow, place) else { continue };
            let user = users.entry(status.uid).or_default();
            user.flows += 1;
            user.promised_bps += status.promised_bps;
            user.granted_bps += status.granted_bps;
            flows.push(status);
        }
        for (uid, user) in &mut users {
            (user.uid, user.weight) = (*uid, self.weight_of(UserId(*uid)));
        }
        let stats = *self.manager.resources().stats();
        ManagerStatus {
            elapsed_s: now.saturating_since(started).as_secs_f64(),
            taken_over: self.taken_over,
            capacities: self.capacities(),
            users: users.into_values().collect(),
            all_flows: places.len() as u64,
            flows,
            paths: self.path_statuses(now),
            kernel_classes: self.kernel_classes.statuses(now),
            clients: 0,
            refused_clients: 0,
            counters: ManagerCounters {
                admitted: stats.admitted,
                reduced: stats.reduced,
                refused: stats.refused,
                released: stats.released,
                revoked: stats.revoked,
                expired: stats.expired,
            },
        }
    }

    fn flow_status(&mut self, now: Instant, flow: FlowId, place: &FlowPlace) -> Option<FlowStatus> {
        let found = self.manager.allocation(flow)?;
        let request = found.request;
        let path = self.manager.path_of(flow);
        let prediction = path.and_then(|path| self.manager.path(path)?.prediction(flow));
        Some(FlowStatus {
            flow: flow.0,
            uid: request.user.0,
            pid: self.sessions.get(&place.key).and_then(|session| session.pid),
            class: match request.class {
                SchedulingClass::RealTime => "real-time".to_owned(),
                SchedulingClass::TimeShared => "time-shared".to_owned(),
            },
            carrier: match request.carrier {
                CarrierKind::Tcp => "tcp".to_owned(),
                CarrierKind::Datagrams => "datagrams".to_owned(),
            },
            source: place.source,
            destination: place.destination,
            interface: request
                .interface
                .map(|index| self.interfaces.get(&index).cloned().unwrap_or_else(|| index.to_string())),
            path: path.map(|path| path.0),
            desired_bps: request.desired.as_bps(),
            minimum_bps: request.minimum.as_bps(),
            promised_bps: found.promised.as_bps(),
            granted_bps: found.granted.as_bps(),
            limit_bps: found.limit.map(Rate::as_bps),
            limited_by: found.limited_by.map(|resource| self.name_of(resource)),
            priority: request.priority,
            weight: request.weight,
            lease_s: found.lease.saturating_since(now).as_secs_f64(),
            missed_deadlines: self.missed.get(&flow).copied().unwrap_or_default(),
            ahead: prediction.map(|prediction| prediction.ahead),
        })
    }

    fn capacities(&mut self) -> Vec<CapacityStatus> {
        let capacities = self.manager.resources().capacities().clone();
        let bps = |rate: Option<Rate>| rate.map(Rate::as_bps);
        let mut all = vec![
            ("tcp".to_owned(), ResourceKind::Tcp, bps(capacities.tcp), 0),
            ("datagrams".to_owned(), ResourceKind::Datagrams, bps(capacities.datagrams), 0),
            ("combined".to_owned(), ResourceKind::Combined, bps(capacities.combined), 0),
            (
                "cpu".to_owned(),
                ResourceKind::Cpu,
                capacities.cpu.map(cutline_manager::resources::CpuShare::as_millionths),
                0,
            ),
        ];
        for (index, interface) in &capacities.interfaces {
            let name = self.interfaces.get(index).cloned().unwrap_or_else(|| index.to_string());
            let (rate, reserved) = (interface.rate.as_bps(), interface.reserved.as_bps());
            all.push((name, ResourceKind::Interface(*index), Some(rate), reserved));
        }
        let measured = all.into_iter().filter_map(|(resource, kind, capacity, reserved)| {
            Some(CapacityStatus {
                resource,
                unit: kind.unit().to_owned(),
                capacity: capacity?,
                reserved,
                promised: self.manager.resources().committed(kind),
                in_use: self.manager.in_use(kind),
            })
        });
        measured.collect()
    }

    fn path_statuses(&self, now: Instant) -> Vec<PathStatus> {
        let of = |path: &crate::config::ManagedPath| {
            let feedback = self.manager.path(path.path)?;
            let (directive, stats) = (feedback.directive(), feedback.stats());
            let counts = self.paths.as_ref().map(|paths| paths.counts(path.path)).unwrap_or_default();
            let heard: BTreeMap<_, _> = feedback.peers(now).collect();
            let host = |peer: &crate::config::ManagerPeer| HostStatus {
                host: peer.host.0,
                address: peer.address,
                is_heard: heard.get(&peer.host).copied().unwrap_or(false),
            };
            Some(PathStatus {
                path: path.path.0,
                host: self.spec.host.0,
                coordinator: feedback.coordinator().0,
                epoch: directive.epoch,
                cutoff: f64::from(directive.cutoff.to_bits()) / RANK,
                hosts: path.peers.iter().map(host).collect(),
                lowered: stats.lowered,
                raised: stats.raised,
                sent: counts.sent,
                received: counts.received,
                forged: counts.forged,
                refused: counts.refused,
            })
        };
        self.spec.paths.iter().filter_map(of).collect()
    }
}
