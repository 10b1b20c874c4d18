//! The interfaces of the file, which come and go.
//!
//! The engine knows an interface from the first time that it is there, under the same number forever. While it is absent, no route leads
//! there, so the engine ends its reservations; when it is there again, maybe with another number of the kernel or
//! another address, routes and reservations come back as after any change of routes.

use crate::config::{DaemonConfig, InterfaceSpec};
use crate::error::DaemonError;
use crate::installers::Installers;
use crate::network::{KernelInterface, Network};
use cutline_netlink::Interface;
use cutline_rsvp::engine::{Engine, InterfaceConfig, InterfaceId};
use cutline_units::IpVersion;
use std::net::IpAddr;

/// An interface of the file.
#[derive(Clone, Debug, Default)]
struct Slot {
    /// The engine's number, since it was there for the first time.
    id: Option<InterfaceId>,
    /// State of the kernel's interface; `None` while there is none.
    seen: Option<Seen>,
    /// Reason why the interface cannot be used.
    problem: Option<String>,
    /// True if a problem of its installer was reported.
    is_reported: bool,
}

/// Properties of an interface of the kernel that matter here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Seen {
    index: u32,
    address: IpAddr,
    mtu: u32,
}

/// All interfaces of the file, in its order.
#[derive(Clone, Debug)]
pub struct Interfaces {
    slots: Vec<Slot>,
}

impl Interfaces {
    /// Creates this number of interfaces, all absent.
    pub fn new(count: usize) -> Self {
        Self { slots: vec![Slot::default(); count] }
    }

    /// The engine's number of each.
    pub fn ids(&self) -> impl Iterator<Item = Option<InterfaceId>> {
        self.slots.iter().map(|slot| slot.id)
    }

    /// The place of an interface in the file.
    pub fn position(&self, id: InterfaceId) -> Option<usize> {
        self.slots.iter().position(|slot| slot.id == Some(id))
    }

    /// Returns the reason why nothing can be reserved on each interface, or is not in effect.
    pub fn problems(&self, installers: &mut Installers) -> Vec<Option<String>> {
        let problem =
            |slot: &Slot| slot.problem.clone().or_else(|| slot.id.and_then(|id| installers.problem(id)));
        self.slots.iter().map(problem).collect()
    }

    /// Returns the problems that have begun or ended since the last call: the name of the interface and the
    /// problem.
    pub fn new_problems(
        &mut self,
        config: &DaemonConfig,
        installers: &mut Installers,
    ) -> Vec<(String, Option<String>)> {
        let problems = self.problems(installers);
        let each = self.slots.iter_mut().zip(&config.interfaces).zip(problems);
        each.filter_map(|((slot, spec), problem)| {
            let is_new = problem.is_some() != slot.is_reported;
            slot.is_reported = problem.is_some();
            is_new.then(|| (spec.name.clone(), problem))
        })
        .collect()
    }

    /// Removes interfaces that have disappeared or changed. Returns whether there were any. Reservations on them end when the
    /// engine receives the routes.
    pub fn detach(
        &mut self,
        config: &DaemonConfig,
        all: &[Interface],
        network: &mut Network,
        installers: &mut Installers,
    ) -> bool {
        let mut has_gone = false;
        for (slot, spec) in self.slots.iter_mut().zip(&config.interfaces) {
            let (Some(id), Some(seen)) = (slot.id, slot.seen) else { continue };
            if look(spec, all).ok().map(|(now, _)| now) != Some(seen) {
                slot.seen = None;
                network.remove_link(id);
                has_gone = true;
            }
        }
        // One that has only another address keeps its traffic control.
        let is_ours = |name: &str| config.interfaces.iter().any(|spec| spec.name == name);
        installers.keep(|index| all.iter().any(|its| its.index == index && is_ours(&its.name)));
        has_gone
    }

    /// Takes over those that are present and unused. Returns the first error; the others are used nevertheless.
    pub fn attach(
        &mut self,
        config: &DaemonConfig,
        all: &[Interface],
        engine: &mut Engine,
        network: &mut Network,
        installers: &mut Installers,
    ) -> Option<DaemonError> {
        let mut first = None;
        for (slot, spec) in
            self.slots.iter_mut().zip(&config.interfaces).filter(|(slot, _)| slot.seen.is_none())
        {
            let (seen, interface) = match look(spec, all) {
                Ok(found) => found,
                Err(why) => {
                    slot.problem = Some(why);
                    continue;
                }
            };
            let outcome = known(slot.id, spec, seen, engine).and_then(|id| {
                let Seen { index, address, .. } = seen;
                network.add_link(
                    KernelInterface { id, index, version: spec.version, address },
                    spec.encapsulation,
                )?;
                installers.attach(id, spec, interface).inspect_err(|_| network.remove_link(id))?;
                Ok(id)
            });
            match outcome {
                Ok(id) => {
                    (slot.id, slot.seen, slot.problem) = (Some(id), Some(seen), None);
                }
                Err(error) => {
                    slot.problem = Some(error.to_string());
                    first.get_or_insert(error);
                }
            }
        }
        first
    }
}

/// Makes an interface known to the engine.
fn known(
    id: Option<InterfaceId>,
    spec: &InterfaceSpec,
    seen: Seen,
    engine: &mut Engine,
) -> Result<InterfaceId, DaemonError> {
    if let Some(id) = id {
        engine.set_link(id, seen.address, seen.mtu);
        return Ok(id);
    }
    Ok(engine.add_interface(InterfaceConfig {
        mtu: seen.mtu,
        share: spec.control.controls().then(|| spec.share.clone()),
        integrity: spec.integrity()?,
        encapsulation: spec.encapsulation,
        ..InterfaceConfig::new(seen.address, spec.rate)
    })?)
}

/// Returns the interface that a start would take over at this time: it exists and has an address.
pub fn present<'i>(spec: &InterfaceSpec, all: &'i [Interface]) -> Option<&'i Interface> {
    look(spec, all).ok().map(|(_, interface)| interface)
}

/// Looks for an interface, and an address of its version of IP.
fn look<'i>(spec: &InterfaceSpec, all: &'i [Interface]) -> Result<(Seen, &'i Interface), String> {
    let interface = all.iter().find(|interface| interface.name == spec.name);
    let interface = interface.ok_or("there is no interface of this name; it is used when it appears")?;
    let is_link_local = |address: &IpAddr| matches!(address, IpAddr::V6(v6) if v6.is_unicast_link_local());
    let mut its = interface.addresses.iter().map(|own| own.address);
    let address = its.find(|address| IpVersion::of(*address) == spec.version && !is_link_local(address));
    let version = if spec.version == IpVersion::V4 { 4 } else { 6 };
    let address =
        address.ok_or_else(|| format!("it has no address of IPv{version}; it is used when it has one"))?;
    let mtu = u32::try_from(interface.mtu.get()).unwrap_or(u32::MAX);
    Ok((Seen { index: interface.index, address, mtu }, interface))
}
