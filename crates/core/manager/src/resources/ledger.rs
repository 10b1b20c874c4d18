//! Accounts of resources in whole numbers: promises, the shares of real-time flows, and the minima and demands of
//! time-shared ones.

use super::capacity::{Capacities, CarrierKind, CpuShare, InterfaceIndex, ResourceKind};
use super::fill::{COMBINED, CPU, DATAGRAMS, INTERFACES, TCP};
use super::params::ResourceParams;
use super::request::FlowRequest;
use std::collections::BTreeSet;

/// The places of the resources that a flow uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Places {
    pub carrier: usize,
    pub interface: Option<usize>,
}

/// Amounts of a resource that may be given; `None` is everything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Bound {
    /// To all flows together.
    pub capacity: Option<u64>,
    /// For certain.
    pub committable: Option<u64>,
}

/// Accounts by place.
#[derive(Clone, Debug, Default)]
pub(super) struct Ledger {
    interfaces: Vec<InterfaceIndex>,
    pub bounds: Vec<Bound>,
    /// Rates that real-time flows were promised, and minima of time-shared ones.
    pub committed: Vec<u64>,
    /// Rates that real-time flows may use now.
    pub real_time: Vec<u64>,
    /// Minima of time-shared flows.
    pub minima: Vec<u64>,
    /// The most that time-shared flows may use.
    pub wanted: Vec<u64>,
}

impl Places {
    /// The charges of a flow at a rate, each with its place.
    pub fn charges(self, request: &FlowRequest, bps: u64) -> impl Iterator<Item = (usize, u64)> + use<> {
        let cpu = request.cpu_at(bps);
        let cpu = (request.cpu.as_millionths() > 0).then_some((CPU, cpu));
        let interface = self.interface.map(|place| (place, bps));
        [(self.carrier, bps), (COMBINED, bps)].into_iter().chain(cpu).chain(interface)
    }
}

impl Ledger {
    /// Empty accounts, with places for the interfaces of the host, and for others that flows use.
    pub fn new(params: &ResourceParams, capacities: &Capacities, used: &BTreeSet<InterfaceIndex>) -> Self {
        let share = |capacity: u64| (capacity as f64 * params.committed_share) as u64;
        let plain = |capacity: Option<u64>| Bound { capacity, committable: capacity.map(share) };
        let rate = |rate: Option<cutline_units::Rate>| plain(rate.map(cutline_units::Rate::as_bps));
        let Capacities { tcp, datagrams, combined, cpu, interfaces } = capacities;
        let mut bounds =
            vec![rate(*tcp), rate(*datagrams), rate(*combined), plain(cpu.map(CpuShare::as_millionths))];
        let all: BTreeSet<InterfaceIndex> = interfaces.keys().chain(used).copied().collect();
        for index in &all {
            let found = interfaces.get(index).copied().unwrap_or_default();
            let (rate, reserved) = (found.rate.as_bps(), found.reserved.as_bps());
            let left = |of: u64| Some(of.saturating_sub(reserved));
            bounds.push(Bound { capacity: left(rate), committable: left(share(rate)) });
        }
        let none = vec![0; bounds.len()];
        Self {
            interfaces: all.into_iter().collect(),
            committed: none.clone(),
            real_time: none.clone(),
            minima: none.clone(),
            wanted: none,
            bounds,
        }
    }

    /// The places of a flow; `None` if its interface has none.
    pub fn places(&self, request: &FlowRequest) -> Option<Places> {
        let carrier = match request.carrier {
            CarrierKind::Tcp => TCP,
            CarrierKind::Datagrams => DATAGRAMS,
        };
        let interface = match request.interface.filter(|_| !request.is_reserved) {
            Some(index) => Some(INTERFACES + self.interfaces.binary_search(&index).ok()?),
            None => None,
        };
        Some(Places { carrier, interface })
    }

    /// The resource of a place.
    pub fn kind(&self, place: usize) -> ResourceKind {
        match place {
            TCP => ResourceKind::Tcp,
            DATAGRAMS => ResourceKind::Datagrams,
            COMBINED => ResourceKind::Combined,
            CPU => ResourceKind::Cpu,
            _ => ResourceKind::Interface(self.interfaces[place - INTERFACES]),
        }
    }

    /// The place of a resource; `None` if it has none.
    pub fn place(&self, kind: ResourceKind) -> Option<usize> {
        (0..self.bounds.len()).find(|place| self.kind(*place) == kind)
    }

    /// The amount of a place that time-shared flows may use, their minima included; `None` is everything.
    pub fn left_to_share(&self, place: usize) -> Option<u64> {
        Some(self.bounds[place].capacity?.saturating_sub(self.real_time[place]))
    }
}

/// Adds charges to an account.
pub(super) fn add(account: &mut [u64], charges: impl Iterator<Item = (usize, u64)>) {
    for (place, amount) in charges {
        account[place] += amount;
    }
}

/// Takes charges from an account.
pub(super) fn subtract(account: &mut [u64], charges: impl Iterator<Item = (usize, u64)>) {
    for (place, amount) in charges {
        account[place] -= amount;
    }
}
