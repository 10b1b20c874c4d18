//! The kernel's traffic control: a class of HTB for each reservation.
//!
//! Others may take it away (`tc qdisc del dev X root`) or change its content. The kernel reports that, and all of it is
//! installed again: the discipline at once, the reservations in turns, because each takes a millisecond with thousands
//! of them. Where an operator has set another
//! discipline, which the operator may have meant, the reservations are given up, unless the file has `replace`.

use super::{InstallError, Installer, ReservedCount};
use cutline_flow::{FlowSelector, TrafficSpec};
use cutline_netlink::{ClassId, Counters, Error, HtbShaper, Interface, ShaperOptions, sweep};
use cutline_rsvp::admission::ReservationHandle;
use cutline_rsvp::engine::Control;
use cutline_sys::now;
use cutline_units::{Duration, Instant, Rate};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};

/// Time for which installing again may keep other work waiting.
const TURN: Duration = Duration::from_millis(20);
/// Shortest time between two installations: another program may remove ours again and again.
const PAUSE: Duration = Duration::from_secs(1);
/// Interval of attempts while another discipline is installed.
const RETRY: Duration = Duration::from_secs(10);

/// Classes in the shaper of an interface, for both versions of IP.
#[derive(Debug)]
pub struct TrafficControl {
    shaper: Arc<Mutex<HtbShaper>>,
    classes: BTreeMap<ReservationHandle, ClassId>,
    desired: BTreeMap<ReservationHandle, DesiredReservation>,
    /// Reservations that are to be installed again.
    pending: BTreeSet<ReservationHandle>,
    health: Health,
    /// Time at which the installation may be repeated.
    next: Instant,
    notices: Vec<String>,
    /// Reservations that are lost, until they are reported.
    lost: Vec<(ReservationHandle, InstallError)>,
}

/// A reservation, as it is installed again.
#[derive(Clone, Debug)]
struct DesiredReservation {
    reservation: TrafficSpec,
    filters: Vec<FlowSelector>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Health {
    Fine,
    /// Another program has changed it, or may have.
    Touched {
        is_sure: bool,
    },
    /// Not installed, for this reason.
    Lost(String),
}

impl TrafficControl {
    /// Takes over an interface. Leftovers of an earlier, killed process are removed.
    ///
    /// # Errors
    /// When another program has set a queueing discipline there, or the process may not.
    pub fn install(interface: &Interface, rate: Rate, options: ShaperOptions) -> Result<Self, Error> {
        sweep(interface)?;
        Ok(Self::of(Arc::new(Mutex::new(HtbShaper::install(interface, rate, options)?))))
    }

    /// Uses a shaper that others use, too.
    pub const fn of(shaper: Arc<Mutex<HtbShaper>>) -> Self {
        Self {
            shaper,
            classes: BTreeMap::new(),
            desired: BTreeMap::new(),
            pending: BTreeSet::new(),
            health: Health::Fine,
            next: Instant::ZERO,
            notices: Vec::new(),
            lost: Vec::new(),
        }
    }

    /// Returns the number of the socket by which the shaper changes traffic control.
    pub fn port(&self) -> Option<u32> {
        self.shaper().port().ok()
    }

    fn class(&self, handle: ReservationHandle) -> Result<ClassId, InstallError> {
        self.classes.get(&handle).copied().ok_or(InstallError::Unknown)
    }

    fn shaper(&self) -> MutexGuard<'_, HtbShaper> {
        cutline_sys::lock(&self.shaper)
    }

    /// Installs the discipline again if another program has removed or changed it. The reservations follow, or are lost if it cannot be installed.
    fn mend(&mut self, at: Instant) {
        let is_whole = self.health != Health::Touched { is_sure: true };
        let was_lost = matches!(self.health, Health::Lost(_));
        self.next = at + PAUSE;
        let restored = self.shaper().restore(is_whole);
        match restored {
            Ok(false) => self.health = Health::Fine,
            Ok(true) => {
                self.health = Health::Fine;
                self.classes.clear();
                self.pending = self.desired.keys().copied().collect();
                let count = self.pending.len();
                let what =
                    if was_lost { "it is free again" } else { "another program has removed or changed it" };
                self.notices.push(format!(
                    "traffic control: {what}: it is installed again, and {count} reservations follow"
                ));
            }
            Err(error) => {
                self.health = Health::Lost(format!("traffic control was taken away: {error}"));
                self.next = at + RETRY;
                self.classes.clear();
                self.pending.clear();
                let lost = |handle| (handle, InstallError::Other(error.to_string()));
                self.lost.extend(std::mem::take(&mut self.desired).into_keys().map(lost));
            }
        }
    }

    /// Installs some of the reservations again.
    fn install_pending(&mut self) {
        let until = now() + TURN;
        while let Some(handle) = self.pending.pop_first() {
            let Some(DesiredReservation { reservation, filters }) = self.desired.get(&handle).cloned() else {
                continue;
            };
            let added = self.shaper().add(&reservation, &filters);
            match added {
                Ok(class) => drop(self.classes.insert(handle, class)),
                Err(error) => {
                    self.desired.remove(&handle);
                    self.lost.push((handle, error.into()));
                }
            }
            if now() >= until {
                break;
            }
        }
    }

    /// Adds a class. If the kernel refuses it because another program has removed the discipline, which may not have been reported yet, the discipline
    /// comes first.
    fn add(&mut self, desired: &DesiredReservation) -> Result<ClassId, InstallError> {
        if let Health::Lost(why) = &self.health {
            return Err(InstallError::Other(why.clone()));
        }
        let added = self.shaper().add(&desired.reservation, &desired.filters);
        let error = match added {
            Ok(class) => return Ok(class),
            Err(error) if error.is_refusal() && self.health == Health::Fine => error,
            Err(error) => return Err(error.into()),
        };
        self.health = Health::Touched { is_sure: false };
        self.mend(now());
        // It was whole, or cannot be installed.
        if self.health != Health::Fine || !self.classes.is_empty() {
            return Err(error.into());
        }
        Ok(self.shaper().add(&desired.reservation, &desired.filters)?)
    }

    /// Changes a reservation that is installed, or is to be.
    fn change(
        &mut self,
        handle: ReservationHandle,
        store: impl FnOnce(&mut DesiredReservation),
        apply: impl FnOnce(&mut HtbShaper, ClassId) -> Result<(), Error>,
    ) -> Result<(), InstallError> {
        if !self.pending.contains(&handle) {
            let class = self.class(handle)?;
            apply(&mut self.shaper(), class)?;
        }
        store(self.desired.get_mut(&handle).ok_or(InstallError::Unknown)?);
        Ok(())
    }
}

impl Installer for TrafficControl {
    fn apply(&mut self, control: &Control) -> Result<(), InstallError> {
        match control {
            Control::Add(flow) => {
                let desired = DesiredReservation {
                    reservation: flow.tspec.traffic().installable(),
                    filters: flow.selectors(),
                };
                let class = self.add(&desired)?;
                self.classes.insert(flow.handle, class);
                self.desired.insert(flow.handle, desired);
                Ok(())
            }
            Control::Modify(flow) => {
                let changed = flow.tspec.traffic().installable();
                let store = |desired: &mut DesiredReservation| desired.reservation = changed;
                self.change(flow.handle, store, |shaper, class| shaper.change(class, &changed))
            }
            Control::AddFilter { handle, session, sender, .. } => {
                let filter = session.selector(Some(sender));
                let store = |desired: &mut DesiredReservation| desired.filters.push(filter);
                self.change(*handle, store, |shaper, class| shaper.add_filter(class, &filter))
            }
            Control::RemoveFilter { handle, session, sender, .. } => {
                let filter = session.selector(Some(sender));
                let store = |desired: &mut DesiredReservation| desired.filters.retain(|its| *its != filter);
                self.change(*handle, store, |shaper, class| shaper.remove_filter(class, &filter))
            }
            Control::Delete { handle, .. } => {
                self.desired.remove(handle);
                self.pending.remove(handle);
                // One that could not be installed is deleted, too.
                let Some(class) = self.classes.remove(handle) else { return Ok(()) };
                Ok(self.shaper().remove(class)?)
            }
        }
    }

    fn counters(&mut self) -> BTreeMap<ReservationHandle, ReservedCount> {
        let counted = |counters: &Counters| ReservedCount {
            packets: counters.packets.into(),
            bytes: counters.bytes,
            excess: counters.excess.into(),
            dropped: counters.drops.into(),
        };
        let all = self.shaper().counters().unwrap_or_default();
        self.classes.iter().filter_map(|(handle, class)| Some((*handle, counted(all.get(class)?)))).collect()
    }

    fn touched(&mut self, is_sure: bool) {
        let was_sure = self.health == Health::Touched { is_sure: true };
        if matches!(self.health, Health::Lost(_)) {
            // The other discipline may have gone.
            self.next = self.next.min(now() + PAUSE);
        } else {
            self.health = Health::Touched { is_sure: is_sure || was_sure };
        }
    }

    fn maintain(&mut self, at: Instant) -> Vec<(ReservationHandle, InstallError)> {
        if self.health != Health::Fine && at >= self.next {
            self.mend(at);
        }
        if !self.pending.is_empty() {
            self.install_pending();
        }
        std::mem::take(&mut self.lost)
    }

    fn notices(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notices)
    }

    fn problem(&self) -> Option<String> {
        match &self.health {
            Health::Lost(why) => Some(why.clone()),
            Health::Touched { is_sure: true } => {
                Some("another program has changed its traffic control".to_owned())
            }
            _ if !self.pending.is_empty() => {
                Some(format!("{} reservations are yet to be installed again", self.pending.len()))
            }
            _ => None,
        }
    }
}
