//! Classes of the kernel's traffic control for the flows of an interface: class-based scheduling (QUANTA section 5) beside the traffic
//! of all other programs.
//!
//! ```text
//! real-time    served at the sum of the granted rates
//! time-shared  served at the sum of the promised rates
//! best effort  all other traffic of the host
//! ```
//!
//! Packets beyond the rate of a class take turns with best effort ([`HtbShaper`]), so each class is policed as a whole.

use crate::config::ManagedInterface;
use cutline_allocation::status::{InterfaceClassesStatus, KernelClassStatus};
use cutline_flow::{FlowSelector, TrafficSpec};
use cutline_netlink::{ClassId, Counters, Error, HtbShaper, Interface, ShaperOptions, TrafficMonitor, sweep};
use cutline_sys::now;
use cutline_units::{Bytes, Duration, Instant, Rate};
use std::collections::{BTreeMap, BTreeSet};

/// Shortest time between two changes of the classes: flows that begin together change them once.
const PAUSE: Duration = Duration::from_millis(100);
/// Time for which changes may keep requests waiting: a filter takes up to a millisecond. The rest follows in the next turn.
const TURN: Duration = Duration::from_millis(20);
/// Interval at which classes that another program has removed are noticed.
const CHECK: Duration = Duration::from_secs(1);
/// Interval of attempts while the classes cannot be installed.
const RETRY: Duration = Duration::from_secs(10);
/// Traffic that a class may send at once: that of this time, and at least [`LEAST_PACKETS`].
const BURST: Duration = Duration::from_millis(10);
/// Two of the interface's largest packets, so that one may arrive while another waits.
const LEAST_PACKETS: u64 = 2;
/// Packets for which the rate of a class includes the headers of the link: those of a call. Rates of flows do not include them.
const SMALL_PACKET: Bytes = Bytes::new(200);

/// The classes in the order of their service.
const NAMES: [&str; 2] = ["real-time", "time-shared"];

/// A class as the flows need it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WantedClass {
    /// Sum of the rates of its flows, with the headers of IP.
    pub rate: Rate,
    /// Packets of its flows.
    pub packets: BTreeSet<FlowSelector>,
}

/// Classes by interface: real-time, time-shared.
pub type WantedClasses = BTreeMap<String, [WantedClass; 2]>;

/// Classes of the kernel on the managed interfaces that have them.
#[derive(Debug, Default)]
pub struct KernelClasses {
    interfaces: Vec<InterfaceClasses>,
    /// Reports of changes by other programs; `None` as long as no interface has classes.
    monitor: Option<TrafficMonitor>,
    /// Numbers of the interfaces that other programs have changed since the last check.
    touched: BTreeSet<u32>,
    /// True if flows have changed since the last update.
    is_stale: bool,
    /// Earliest time of the next update.
    next_update: Instant,
    next_check: Instant,
    /// The last counters, with their time.
    statuses: Option<(Instant, Vec<InterfaceClassesStatus>)>,
    notices: Vec<String>,
}

/// Classes of an interface.
#[derive(Debug)]
struct InterfaceClasses {
    name: String,
    rate: Rate,
    /// `None` until the discipline can be installed.
    shaper: Option<HtbShaper>,
    /// The kernel's number of the interface, since the discipline was installed.
    index: Option<u32>,
    /// True if the discipline was installed since changes were last taken: the leftovers that were removed before are no other program's change.
    is_new: bool,
    classes: [Option<InstalledClass>; 2],
    /// Reason why the classes are not as wanted.
    problem: Option<String>,
    /// Time of the next attempt, if there is a problem.
    retry: Instant,
}

#[derive(Debug)]
struct InstalledClass {
    id: ClassId,
    spec: TrafficSpec,
    packets: BTreeSet<FlowSelector>,
}

impl KernelClasses {
    /// Takes the interfaces of the file. The classes of an interface that has another rate, or is to have none, are removed.
    pub fn set_interfaces(&mut self, interfaces: &[ManagedInterface]) {
        let wanted = interfaces.iter().filter(|interface| interface.has_classes);
        let mut before = std::mem::take(&mut self.interfaces);
        for ManagedInterface { name, rate, .. } in wanted {
            let place = before.iter().position(|its| its.name == *name && its.rate == *rate);
            let own = place.map(|place| before.swap_remove(place));
            self.interfaces.push(own.unwrap_or_else(|| InterfaceClasses::new(name.clone(), *rate)));
        }
        if !self.interfaces.is_empty() && self.monitor.is_none() {
            match TrafficMonitor::open() {
                Ok(monitor) => self.monitor = Some(monitor),
                Err(error) => {
                    self.notices
                        .push(format!("changes of classes by other programs are not noticed: {error}"));
                }
            }
        }
        self.touch();
    }

    /// Returns the names of the interfaces that have classes, or are to have them.
    pub fn names(&self) -> Vec<String> {
        self.interfaces.iter().map(|interface| interface.name.clone()).collect()
    }

    /// Removes the classes that an earlier manager, which was killed, has left at these interfaces. Those of an interface that has classes
    /// now are removed when its own are installed.
    pub fn remove_leftovers(&mut self, names: &[String]) {
        for name in names {
            // With an interface that has gone, its classes have gone.
            let Ok(interface) = Interface::named(name) else { continue };
            if self.interfaces.iter().any(|its| its.name == *name) {
                continue;
            }
            match sweep(&interface) {
                Ok(false) => {}
                Ok(true) => self.notices.push(format!(
                    "classes of `{name}`: those that an earlier resource manager had left are removed"
                )),
                Err(error) => self.notices.push(format!(
                    "classes of `{name}`: those that an earlier resource manager has left cannot be removed: {error}"
                )),
            }
        }
    }

    /// Notes that flows have changed.
    pub const fn touch(&mut self) {
        self.is_stale = true;
    }

    /// Returns the time of the next update.
    pub fn deadline(&self) -> Instant {
        if self.interfaces.is_empty() {
            Instant::FAR_FUTURE
        } else if self.is_stale {
            self.next_update.min(self.next_check)
        } else {
            self.next_check
        }
    }

    /// Makes the classes as wanted, if it is time.
    pub fn update(&mut self, now: Instant, wanted: impl FnOnce() -> WantedClasses) {
        if now < self.deadline() {
            return;
        }
        self.take_changes();
        if now >= self.next_check {
            self.next_check = now.saturating_add(CHECK);
            let touched = std::mem::take(&mut self.touched);
            for interface in &mut self.interfaces {
                let is_whole = !interface.index.is_some_and(|index| touched.contains(&index));
                self.is_stale |= interface.check(now, is_whole, &mut self.notices);
            }
        }
        if !std::mem::take(&mut self.is_stale) {
            return;
        }
        self.next_update = now.saturating_add(PAUSE);
        self.statuses = None;
        let mut wanted = wanted();
        for interface in &mut self.interfaces {
            let classes = wanted.remove(&interface.name).unwrap_or_default();
            if !interface.update(now, &classes, &mut self.notices) {
                (self.is_stale, self.next_update) = (true, now);
            }
        }
        self.take_changes();
    }

    /// Takes the reports of changes by other programs. Without a report, and when some were lost, a check still finds whether the
    /// discipline is there.
    fn take_changes(&mut self) {
        let Some(monitor) = &mut self.monitor else { return };
        let shapers = self.interfaces.iter().filter_map(|interface| interface.shaper.as_ref());
        let ports: Vec<u32> = shapers.filter_map(|shaper| shaper.port().ok()).collect();
        let Ok(touched) = monitor.take(|port| ports.contains(&port)) else { return };
        self.touched.extend(touched.interfaces);
        for interface in &mut self.interfaces {
            if std::mem::take(&mut interface.is_new) {
                interface.index.map(|index| self.touched.remove(&index));
            }
        }
    }

    /// Returns the counters of all classes. The kernel is asked at most ten times a second, however many clients want them.
    pub fn statuses(&mut self, now: Instant) -> Vec<InterfaceClassesStatus> {
        let recent = self.statuses.take().filter(|(at, _)| now.saturating_since(*at) < PAUSE);
        let ask = || (now, self.interfaces.iter_mut().map(InterfaceClasses::status).collect());
        self.statuses.insert(recent.unwrap_or_else(ask)).1.clone()
    }

    /// Takes the notices for the log.
    pub fn notices(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notices)
    }
}

impl InterfaceClasses {
    const fn new(name: String, rate: Rate) -> Self {
        let (index, classes) = (None, [None, None]);
        Self { name, rate, shaper: None, index, is_new: false, classes, problem: None, retry: Instant::ZERO }
    }

    /// Checks that the classes are still there, and `is_whole`: no other program has changed them. Returns true if they have to be made again.
    fn check(&mut self, now: Instant, is_whole: bool, notices: &mut Vec<String>) -> bool {
        if self.problem.is_some() {
            return now >= self.retry;
        }
        match self.shaper.as_mut().map(|shaper| shaper.restore(is_whole)) {
            None | Some(Ok(false)) => return false,
            Some(Ok(true)) => {
                notices.push(self.made_again());
            }
            Some(Err(error)) => {
                self.shaper = None;
                self.fail(now, &error, notices);
            }
        }
        self.classes = [None, None];
        true
    }

    fn made_again(&self) -> String {
        format!(
            "classes of `{}`: another program has removed or changed them; they are made again",
            self.name
        )
    }

    /// Notes a failure. It is reported once.
    fn fail(&mut self, now: Instant, error: &Error, notices: &mut Vec<String>) {
        let why = error.to_string();
        if self.problem.as_ref() != Some(&why) {
            notices.push(format!(
                "classes of `{}`: {why}: its flows are not scheduled by the kernel",
                self.name
            ));
        }
        (self.problem, self.retry) = (Some(why), now.saturating_add(RETRY));
    }

    /// Makes the classes as wanted. Returns false if a turn was not long enough for all changes.
    fn update(&mut self, now: Instant, wanted: &[WantedClass; 2], notices: &mut Vec<String>) -> bool {
        if self.problem.is_some() && now < self.retry {
            return true;
        }
        let until = now.saturating_add(TURN);
        let mut made = self.make(wanted, until);
        // Another program may have removed a class or a filter, which is reported later: all is made again from the beginning, once.
        if made.is_err() && self.shaper.is_some() {
            self.classes = [None, None];
            // The report is done with as well then.
            self.is_new = true;
            let restored = self.shaper.as_mut().map_or(Ok(false), |shaper| shaper.restore(false));
            if restored.is_ok() {
                notices.push(self.made_again());
            }
            made = restored.and_then(|_| self.make(wanted, until));
        }
        match made {
            Ok(is_whole) => {
                if self.problem.take().is_some() {
                    notices.push(format!("classes of `{}`: they are in effect", self.name));
                }
                is_whole
            }
            Err(error) => {
                // The next attempt installs the discipline again.
                (self.shaper, self.classes) = (None, [None, None]);
                self.fail(now, &error, notices);
                true
            }
        }
    }

    /// Makes the classes as wanted, as far as it goes until `until`. Returns true if that is all.
    fn make(&mut self, wanted: &[WantedClass; 2], until: Instant) -> Result<bool, Error> {
        let shaper = if let Some(shaper) = &mut self.shaper {
            shaper
        } else {
            let interface = Interface::named(&self.name)?;
            // The remains of a process that was killed.
            sweep(&interface)?;
            (self.index, self.is_new) = (Some(interface.index), true);
            self.shaper.insert(HtbShaper::install(&interface, self.rate, ShaperOptions::default())?)
        };
        let specs = specs(wanted, shaper.reservable(), shaper.largest_packet());
        for (class, wanted) in self.classes.iter_mut().zip(wanted) {
            release(shaper, class, &wanted.packets)?;
        }
        // What shrinks makes room for what grows.
        let mut order = [0, 1];
        let grows = |class: &usize| match (&self.classes[*class], &specs[*class]) {
            (Some(installed), Some(spec)) => spec.rate > installed.spec.rate,
            (installed, _) => installed.is_none(),
        };
        order.sort_by_key(grows);
        let mut is_whole = true;
        for class in order {
            is_whole &= make(shaper, &mut self.classes[class], specs[class], &wanted[class].packets, until)?;
        }
        Ok(is_whole)
    }

    fn status(&mut self) -> InterfaceClassesStatus {
        let mut counters = BTreeMap::new();
        let mut best_effort = Counters::default();
        if let Some(shaper) = self.shaper.as_mut().filter(|_| self.problem.is_none()) {
            counters = shaper.counters().unwrap_or_default();
            best_effort = shaper.best_effort().unwrap_or_default();
        }
        let status = |class: &str, flows: usize, rate_bps, counters: Counters| KernelClassStatus {
            class: class.to_owned(),
            flows: flows as u64,
            rate_bps,
            sent_packets: counters.packets.into(),
            sent_bytes: counters.bytes,
            excess_packets: counters.excess.into(),
            dropped_packets: counters.drops.into(),
            waiting_packets: counters.waiting.into(),
        };
        let mut classes: Vec<KernelClassStatus> = Vec::with_capacity(3);
        for (name, installed) in NAMES.into_iter().zip(&self.classes) {
            let Some(InstalledClass { id, spec, packets }) = installed else { continue };
            let counters = counters.get(id).copied().unwrap_or_default();
            classes.push(status(name, packets.len(), spec.rate.as_bps(), counters));
        }
        if self.shaper.is_some() {
            classes.push(status("other", 0, 0, best_effort));
        }
        InterfaceClassesStatus { interface: self.name.clone(), problem: self.problem.clone(), classes }
    }
}

/// Removes the filters of packets that a class is no longer for. They may be those of another class now.
fn release(
    shaper: &mut HtbShaper,
    class: &mut Option<InstalledClass>,
    packets: &BTreeSet<FlowSelector>,
) -> Result<(), Error> {
    // A class without packets is removed as a whole.
    let Some(installed) = class.as_mut().filter(|_| !packets.is_empty()) else { return Ok(()) };
    let gone: Vec<FlowSelector> = installed.packets.difference(packets).copied().collect();
    for filter in gone {
        shaper.remove_filter(installed.id, &filter)?;
        installed.packets.remove(&filter);
    }
    Ok(())
}

/// Makes a class as wanted: its rate, and the filters of its packets, as far as it goes until `until`. A class without packets is removed.
/// Returns true if that is all.
fn make(
    shaper: &mut HtbShaper,
    class: &mut Option<InstalledClass>,
    spec: Option<TrafficSpec>,
    packets: &BTreeSet<FlowSelector>,
    until: Instant,
) -> Result<bool, Error> {
    let Some(spec) = spec else {
        class.take().map_or(Ok(()), |installed| shaper.remove(installed.id))?;
        return Ok(true);
    };
    let installed = match class {
        Some(installed) => installed,
        None => class.insert(InstalledClass { id: shaper.add(&spec, &[])?, spec, packets: BTreeSet::new() }),
    };
    if installed.spec != spec {
        shaper.change(installed.id, &spec)?;
        installed.spec = spec;
    }
    let new: Vec<FlowSelector> = packets.difference(&installed.packets).copied().collect();
    for filter in new {
        if now() >= until {
            return Ok(false);
        }
        shaper.add_filter(installed.id, &filter)?;
        installed.packets.insert(filter);
    }
    Ok(true)
}

/// Returns the token buckets of classes on an interface whose packets have up to `largest` bytes; `None` for one without packets. Rates that do
/// not fit, because of the headers of the link, shrink by the same factor.
fn specs(wanted: &[WantedClass; 2], reservable: Rate, largest: Bytes) -> [Option<TrafficSpec>; 2] {
    /// A rate with the headers of Ethernet, 14 B for each small packet, may not exceed what can be reserved.
    const HEADERS: f64 = 1.0 + 14.0 / SMALL_PACKET.get() as f64;
    let all: u64 = wanted.iter().map(|class| class.rate.as_bps()).sum();
    let most = reservable.as_bps().saturating_sub(2 * LEAST_RATE.as_bps()) as f64 / HEADERS;
    let factor = if all as f64 > most { most / all as f64 } else { 1.0 };
    let max_packet = largest.min(TrafficSpec::MAX_PACKET);
    let least_bucket = Bytes::new(LEAST_PACKETS * max_packet.get());
    [0, 1].map(|place| {
        let WantedClass { rate, packets } = &wanted[place];
        let rate = Rate::from_bps((rate.as_bps() as f64 * factor) as u64).max(LEAST_RATE);
        (!packets.is_empty()).then_some(TrafficSpec {
            rate,
            bucket: rate.bytes_in(BURST).max(least_bucket),
            peak: TrafficSpec::UNKNOWN_PEAK,
            min_policed: SMALL_PACKET.min(max_packet),
            max_packet,
        })
    })
}

/// The rate of a class whose flows have no promise.
const LEAST_RATE: Rate = Rate::from_bps(8000);
