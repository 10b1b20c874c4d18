//! The group `system` of SNMPv2-MIB (RFC 3418).

use crate::mib::ROOT;
use crate::object::{Object, Syntax, computed, text};
use crate::options::SystemTexts;
use crate::snapshot::Snapshot;
use crate::table::{Definition, Module, Scalars};
use async_snmp::{Oid, Value};

/// Name of `mib-2`, which has the group and others.
pub const MIB_2: &[u32] = &[1, 3, 6, 1, 2, 1];
/// Layers that the host serves: internet, end-to-end and applications (`sysServices`).
const SERVICES: i32 = 4 + 8 + 64;

/// Returns the group.
pub fn module(texts: &SystemTexts) -> Module {
    let object = |arc, name: &str| Object {
        arc,
        name: name.to_owned(),
        syntax: Syntax::Elsewhere,
        units: "",
        description: String::new(),
    };
    let fixed = |arc, name: &str, value: &str| {
        let value = text(value);
        computed(object(arc, name), move |_: &Snapshot| Some(value.clone()))
    };
    let about = format!("Cutline {}, monitor of the host", env!("CARGO_PKG_VERSION"));
    let objects = vec![
        fixed(1, "sysDescr", &about),
        computed(object(2, "sysObjectID"), |_| Some(Value::ObjectIdentifier(Oid::from_slice(ROOT)))),
        computed(object(3, "sysUpTime"), |snapshot: &Snapshot| Some(Value::TimeTicks(snapshot.uptime))),
        fixed(4, "sysContact", &texts.contact),
        fixed(5, "sysName", &texts.name),
        fixed(6, "sysLocation", &texts.location),
        computed(object(7, "sysServices"), |_| Some(Value::Integer(SERVICES))),
    ];
    let definition =
        Definition { arc: 1, name: "system", description: "The system.", row: "", index: Vec::new() };
    Module { root: MIB_2.to_vec(), groups: vec![Box::new(Scalars { definition, objects })] }
}
