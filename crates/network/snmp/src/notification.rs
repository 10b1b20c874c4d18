//! Notifications: violations that begin and end, and reservations that are refused.
//!
//! Each second the present rows are compared with those of a second ago ([`Watch`]).

use crate::names::{NOTIFICATIONS, ROOT};
use crate::snapshot::{Index, Snapshot};
use crate::table::Module;
use async_snmp::{Oid, VarBind};
use cutline_monitor::{PlaceClaim, share_places};
use std::collections::{BTreeMap, BTreeSet};

/// Type of a notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotificationType {
    /// Last arc of its name.
    pub arc: u32,
    /// Its descriptor.
    pub name: &'static str,
    /// Objects that it carries.
    pub objects: &'static [&'static str],
    /// Its meaning.
    pub description: &'static str,
}

/// Types of notifications of CUTLINE-QOS-MIB.
pub const NOTIFICATION_TYPES: &[NotificationType] = &[VIOLATION, VIOLATION_END, RESERVATION_FAILURE];

const VIOLATION: NotificationType = NotificationType {
    arc: 1,
    name: "cqosViolationBegin",
    objects: &[
        "cqosSocketProgram",
        "cqosSocketLocal",
        "cqosSocketPeer",
        "cqosViolationLimit",
        "cqosViolationMeasured",
        "cqosViolationOrigin",
    ],
    description: "A measure of a direction of a QoS socket has left its region of operation. The index of the last objects names the direction and the measure.",
};
const VIOLATION_END: NotificationType = NotificationType {
    arc: 2,
    name: "cqosViolationEnd",
    objects: &[
        "cqosSocketProgram",
        "cqosSocketLocal",
        "cqosSocketPeer",
        "cqosViolationLimit",
        "cqosViolationMeasured",
    ],
    description: "A violation has ended, or its socket is closed. The objects are those of the violation's last second.",
};
const RESERVATION_FAILURE: NotificationType = NotificationType {
    arc: 3,
    name: "cqosReservationFailure",
    objects: &[
        "cqosSocketProgram",
        "cqosSocketLocal",
        "cqosSocketPeer",
        "cqosSocketReservation",
        "cqosSocketRefusal",
    ],
    description: "A reservation for the traffic of a QoS socket was refused, or has ended although it was wanted.",
};

/// A notification that is due.
#[derive(Clone, Debug, PartialEq)]
pub struct Notification {
    /// Name of its type.
    pub kind: Oid,
    /// User of the socket.
    pub uid: u32,
    /// Time since the monitor's start when it became due, hundredths of a second.
    pub uptime: u32,
    /// Objects that it carries.
    pub objects: Vec<VarBind>,
}

/// The most notifications of a second, and the most that wait for a receiver: a storm of them would hide the important ones.
pub const MOST: usize = 1000;

/// Rows of the second before, with the objects that a notification of their end carries.
#[derive(Debug)]
pub struct Watch {
    of_violation: Vec<CarriedObject>,
    of_failure: Vec<CarriedObject>,
    /// Violations under way, each with the user of its socket.
    violations: BTreeMap<Index, (u32, Vec<VarBind>)>,
    failures: BTreeSet<Index>,
    /// Notifications that were not made because there were too many.
    dropped: u64,
}

/// Text states of a reservation that has failed: `refused` and `ended`.
const FAILED: [&str; 2] = ["refused", "ended"];

impl Watch {
    /// Returns a watch that has seen no row yet.
    pub fn new(module: &Module) -> Self {
        Self {
            of_violation: CarriedObject::find(module, &VIOLATION),
            of_failure: CarriedObject::find(module, &RESERVATION_FAILURE),
            violations: BTreeMap::new(),
            failures: BTreeSet::new(),
            dropped: 0,
        }
    }

    /// Returns the number of notifications that were not made since the last call of this.
    pub const fn take_dropped(&mut self) -> u64 {
        std::mem::replace(&mut self.dropped, 0)
    }

    /// Returns the notifications of changes since the last call. If there are too many, each user has a share of them.
    pub fn look(&mut self, module: &Module, snapshot: &Snapshot) -> Vec<Notification> {
        let users: BTreeMap<u32, u32> =
            snapshot.sockets().iter().map(|(index, socket)| (index[0], socket.process.uid)).collect();
        let user_of = |index: &Index| users.get(&index[0]).copied().unwrap_or_default();
        let uptime = snapshot.uptime;
        let mut found = Vec::new();
        let mut add = |kind: &NotificationType, uid, objects| {
            let kind = Oid::from_slice(&[ROOT, &[NOTIFICATIONS, kind.arc]].concat());
            found.push(Notification { kind, uid, uptime, objects });
        };
        let violations: BTreeMap<Index, (u32, Vec<VarBind>)> = snapshot
            .violations()
            .iter()
            .map(|(index, _)| {
                let objects = objects(module, snapshot, &self.of_violation, index);
                (index.clone(), (user_of(index), objects))
            })
            .collect();
        for (index, (uid, objects)) in &violations {
            if !self.violations.contains_key(index) {
                add(&VIOLATION, *uid, objects.clone());
            }
        }
        for (index, (uid, mut objects)) in std::mem::take(&mut self.violations) {
            if !violations.contains_key(&index) {
                objects.truncate(VIOLATION_END.objects.len());
                add(&VIOLATION_END, uid, objects);
            }
        }
        self.violations = violations;
        let is_failed = |reservation: &str| FAILED.contains(&reservation);
        let failures: BTreeSet<Index> = snapshot
            .sockets()
            .iter()
            .filter(|(_, socket)| is_failed(&socket.row.reservation))
            .map(|(index, _)| index.clone())
            .collect();
        for index in &failures {
            if !self.failures.contains(index) {
                let objects = objects(module, snapshot, &self.of_failure, index);
                add(&RESERVATION_FAILURE, user_of(index), objects);
            }
        }
        self.failures = failures;
        self.dropped += share_places(&mut found, MOST, |notification| PlaceClaim::Turn(notification.uid));
        found
    }
}

/// An object that a notification carries: the beginning of its name, and the number of arcs of the row's index that follow. A socket's index
/// has fewer than that of a measure.
#[derive(Clone, Debug, PartialEq)]
struct CarriedObject {
    name: Vec<u32>,
    index: usize,
}

impl CarriedObject {
    /// Finds the objects of a type in a module.
    fn find(module: &Module, kind: &NotificationType) -> Vec<Self> {
        let of = |wanted: &&str| {
            module.groups.iter().find_map(|group| {
                let object = group.objects().into_iter().find(|object| object.name == **wanted)?;
                let definition = group.definition();
                let name = [module.root.as_slice(), &[definition.arc, 1, object.arc]].concat();
                Some(Self { name, index: definition.index.len() })
            })
        };
        kind.objects.iter().filter_map(of).collect()
    }
}

/// Returns the objects of a notification about a row.
fn objects(module: &Module, snapshot: &Snapshot, carried: &[CarriedObject], index: &Index) -> Vec<VarBind> {
    let of = |object: &CarriedObject| {
        let name = [object.name.as_slice(), &index[..object.index.min(index.len())]].concat();
        let value = module.get(snapshot, &name).ok()??;
        Some(VarBind::new(Oid::from_slice(&name), value))
    };
    carried.iter().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutline_monitor::{MonitoredHost, Process, PublicationLimits, PublishedLine};
    use cutline_publish::VERSION;
    use serde_json::json;

    /// A user states more violations than there are notifications, and has published before all others.
    #[test]
    fn a_user_takes_no_notifications_of_others() {
        let host = MonitoredHost::new(PublicationLimits::DEFAULT);
        let module = crate::mib::module();
        let mut watch = Watch::new(&module);
        let violated = json!({ "violations": [{ "measure": "delay" }] });
        for (uid, sockets) in [(1000, 3 * MOST as u64), (0, 4), (1001, 2)] {
            let mut registry = host.registry();
            let id = registry.open(Process { pid: uid, uid }).unwrap();
            let hello = json!({ "hello": { "version": VERSION, "program": "video" } });
            let socket = |number: u64| json!({ "socket": { "socket": number, "receive": violated } });
            for line in std::iter::once(hello).chain((1..=sockets).map(socket)) {
                let line = PublishedLine::parse(line.to_string().as_bytes()).unwrap();
                registry.take(id, line).unwrap();
            }
        }
        let found = watch.look(&module, &Snapshot::take(&host));
        let of = |uid| found.iter().filter(|notification| notification.uid == uid).count();
        assert_eq!([0, 1001, 1000].map(of), [4, 2, MOST - 6]);
        assert_eq!(watch.take_dropped(), 2 * MOST as u64 + 6);
        // Ends are those of the same users.
        let found = watch.look(&module, &Snapshot::take(&MonitoredHost::new(PublicationLimits::DEFAULT)));
        assert_eq!(found.iter().filter(|notification| notification.uid == 0).count(), 4);
    }

    /// A reservation that was held and has ended is notified as well as one that was refused, each once.
    #[test]
    fn a_reservation_that_fails_or_ends_is_notified_once() {
        let host = MonitoredHost::new(PublicationLimits::DEFAULT);
        let module = crate::mib::module();
        let mut watch = Watch::new(&module);
        let id = host.registry().open(Process { pid: 7, uid: 1000 }).unwrap();
        let put = |line: serde_json::Value| {
            let line = PublishedLine::parse(line.to_string().as_bytes()).unwrap();
            host.registry().take(id, line).unwrap();
        };
        put(json!({ "hello": { "version": VERSION, "program": "video" } }));
        let failure = Oid::from_slice(&[ROOT, &[NOTIFICATIONS, RESERVATION_FAILURE.arc]].concat());
        for (state, is_notified) in
            [("reserved", false), ("ended", true), ("ended", false), ("reserved", false), ("refused", true)]
        {
            put(json!({ "socket": { "socket": 3, "reservation": state, "refusal": "preempted" } }));
            let found = watch.look(&module, &Snapshot::take(&host));
            assert_eq!(found.len(), usize::from(is_notified), "{state}: {found:?}");
            assert!(found.iter().all(|notification| notification.kind == failure), "{found:?}");
        }
    }

    #[test]
    fn every_object_that_a_notification_carries_is_in_the_module() {
        let module = crate::mib::module();
        for kind in NOTIFICATION_TYPES {
            assert_eq!(CarriedObject::find(&module, kind).len(), kind.objects.len(), "{}", kind.name);
        }
    }
}
