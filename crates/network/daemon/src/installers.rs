//! Installers of the interfaces.

use crate::config::{InstallerKind, InterfaceSpec};
use crate::error::DaemonError;
use crate::installer::{InstallError, Installer, ReservedCount, RouterClass, TrafficControl};
use cutline_netlink::{Interface, Touched, sweep};
use cutline_rsvp::admission::ReservationHandle;
use cutline_rsvp::engine::{Control, InterfaceId};
use cutline_units::Instant;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// Installers that the program provides, by the name of the interface.
pub type CustomInstallers = BTreeMap<String, Box<dyn Installer>>;

/// Key of the installer of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
enum InstallerKey {
    /// Traffic control, at the kernel's number of the interface.
    Kernel(u32),
    /// The router with this socket.
    Router(PathBuf),
    /// Installer that the program provides, by the name of the interface.
    Custom(String),
}

/// All installers.
#[derive(Debug, Default)]
pub struct Installers {
    kernel: BTreeMap<u32, TrafficControl>,
    routers: BTreeMap<PathBuf, RouterClass>,
    custom: CustomInstallers,
    /// Names of the interfaces at which the resource manager has classes.
    classed: BTreeSet<String>,
    /// Installers of interfaces; none if the traffic there is not controlled. If the kernel's interface has
    /// gone, its shaper has, too.
    places: BTreeMap<InterfaceId, InstallerKey>,
    /// The interface of each reservation.
    installed: BTreeMap<ReservationHandle, InterfaceId>,
}

impl Installers {
    /// Creates the set with these installers, which take precedence over the file. The interfaces of `classed` are those at which the resource
    /// manager has classes.
    pub fn new(custom: CustomInstallers, classed: BTreeSet<String>) -> Self {
        Self { custom, classed, ..Self::default() }
    }

    /// Removes the leftovers of an earlier agent from an interface. Classes of the resource manager are none.
    fn remove_leftovers(&self, name: &str, interface: &Interface) -> Result<(), DaemonError> {
        if !self.classed.contains(name) {
            sweep(interface)?;
        }
        Ok(())
    }

    /// Takes an interface over.
    ///
    /// # Errors
    /// When another program controls its traffic, or the process may not.
    pub fn attach(
        &mut self,
        id: InterfaceId,
        spec: &InterfaceSpec,
        interface: &Interface,
    ) -> Result<(), DaemonError> {
        if self.custom.contains_key(&spec.name) {
            self.places.insert(id, InstallerKey::Custom(spec.name.clone()));
            return Ok(());
        }
        match &spec.control {
            InstallerKind::Tc { .. } => {
                // Both versions of IP share a shaper.
                if let Entry::Vacant(free) = self.kernel.entry(interface.index) {
                    let options = spec.control.options().unwrap_or_default();
                    free.insert(TrafficControl::install(interface, spec.rate, options)?);
                }
                self.places.insert(id, InstallerKey::Kernel(interface.index));
            }
            InstallerKind::Router { socket, direction } => {
                // An earlier agent may have had another file.
                self.remove_leftovers(&spec.name, interface)?;
                let router = self.routers.entry(socket.clone());
                router.or_insert_with(|| RouterClass::open(socket.clone())).add_interface(id, *direction);
                self.places.insert(id, InstallerKey::Router(socket.clone()));
            }
            InstallerKind::None => self.remove_leftovers(&spec.name, interface)?,
        }
        Ok(())
    }

    /// Removes the traffic control of interfaces that are not among these numbers.
    pub fn keep(&mut self, is_there: impl Fn(u32) -> bool) {
        self.kernel.retain(|index, _| is_there(*index));
    }

    /// Removes all reservations from traffic control and routers at once, which is faster than one after the other.
    pub fn clear(&mut self) {
        self.places.retain(|_, place| matches!(place, InstallerKey::Custom(_)));
        self.kernel.clear();
        self.routers.clear();
    }

    /// Carries out an order on an interface.
    pub fn apply(
        &mut self,
        interface: InterfaceId,
        handle: ReservationHandle,
        control: &Control,
    ) -> Result<(), InstallError> {
        let is_deletion = matches!(control, Control::Delete { .. });
        if is_deletion {
            self.installed.remove(&handle);
        } else {
            self.installed.insert(handle, interface);
        }
        match self.at(interface) {
            Some(installer) => installer.apply(control),
            // It went with its interface.
            None if is_deletion => Ok(()),
            None => Err(InstallError::Unknown),
        }
    }

    fn at(&mut self, interface: InterfaceId) -> Option<&mut dyn Installer> {
        match self.places.get(&interface)? {
            InstallerKey::Kernel(index) => self.kernel.get_mut(index).map(|installer| installer as _),
            InstallerKey::Router(socket) => self.routers.get_mut(socket).map(|installer| installer as _),
            InstallerKey::Custom(name) => self.custom.get_mut(name).map(|installer| &mut **installer as _),
        }
    }

    fn all(&mut self) -> impl Iterator<Item = &mut dyn Installer> {
        let kernel = self.kernel.values_mut().map(|installer| installer as &mut dyn Installer);
        let routers = self.routers.values_mut().map(|installer| installer as &mut dyn Installer);
        let custom = self.custom.values_mut().map(|installer| &mut **installer as &mut dyn Installer);
        kernel.chain(routers).chain(custom)
    }

    /// Returns the numbers of the sockets by which traffic control is changed here.
    pub fn ports(&self) -> BTreeSet<u32> {
        self.kernel.values().filter_map(TrafficControl::port).collect()
    }

    /// Notes that another program has changed traffic control.
    pub fn touched(&mut self, touched: &Touched) {
        for (index, its) in &mut self.kernel {
            let is_sure = touched.interfaces.contains(index);
            if is_sure || touched.is_incomplete {
                its.touched(is_sure);
            }
        }
    }

    /// Takes the pending notes about an interface for the operator.
    pub fn notices(&mut self, interface: InterfaceId) -> Vec<String> {
        self.at(interface).map(Installer::notices).unwrap_or_default()
    }

    /// Runs timers. Returns the reservations that are lost, with their interfaces and the reasons.
    pub fn maintain(&mut self, now: Instant) -> Vec<(InterfaceId, ReservationHandle, InstallError)> {
        let lost: Vec<_> = self.all().flat_map(|installer| installer.maintain(now)).collect();
        let placed = |(handle, error)| Some((*self.installed.get(&handle)?, handle, error));
        lost.into_iter().filter_map(placed).collect()
    }

    /// Returns the reason why nothing is in effect on an interface at this time, if there is one.
    pub fn problem(&mut self, interface: InterfaceId) -> Option<String> {
        self.at(interface)?.problem()
    }

    /// Returns the counters of each interface.
    pub fn counters(&mut self) -> BTreeMap<InterfaceId, ReservedCount> {
        let all: Vec<_> = self.all().flat_map(Installer::counters).collect();
        let mut counted: BTreeMap<InterfaceId, ReservedCount> = BTreeMap::new();
        for (handle, counts) in all {
            if let Some(interface) = self.installed.get(&handle) {
                *counted.entry(*interface).or_default() += counts;
            }
        }
        counted
    }
}
