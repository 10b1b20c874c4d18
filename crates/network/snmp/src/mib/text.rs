//! The text of the module, in SMIv2 (RFC 2578 to 2580).

use super::{NOTIFICATIONS, OBJECTS, ROOT, module};
use crate::notification::NOTIFICATION_TYPES;
use crate::object::{Object, Syntax, capitalised};
use crate::table::Group;
use std::fmt::Write as _;

/// Time of the module's last change.
const LAST_UPDATED: &str = "202611290000Z";
/// Width of a line of the text.
const WIDTH: usize = 96;

/// Returns the text of CUTLINE-QOS-MIB.
pub fn text() -> String {
    let module = module();
    let mut text = head();
    for group in &module.groups {
        if group.definition().index.is_empty() {
            add_scalars(&mut text, &**group);
        } else {
            add_table(&mut text, &**group, &module.groups);
        }
    }
    add_notifications(&mut text);
    add_conformance(&mut text, &module.groups);
    text.push_str("END\n");
    text
}

fn head() -> String {
    let [.., enterprise, experimental, playpen, own] = ROOT else { unreachable!("the name has more arcs") };
    format!(
        "CUTLINE-QOS-MIB DEFINITIONS ::= BEGIN

IMPORTS
    MODULE-IDENTITY, OBJECT-TYPE, NOTIFICATION-TYPE,
    Counter64, Gauge32, Unsigned32, enterprises
        FROM SNMPv2-SMI
    TEXTUAL-CONVENTION, TruthValue
        FROM SNMPv2-TC
    MODULE-COMPLIANCE, OBJECT-GROUP, NOTIFICATION-GROUP
        FROM SNMPv2-CONF
    CounterBasedGauge64
        FROM HCNUM-TC;

cutlineQosMIB MODULE-IDENTITY
    LAST-UPDATED \"{LAST_UPDATED}\"
    ORGANIZATION \"The Cutline contributors\"
    CONTACT-INFO \"The Cutline contributors, by the project's issue tracker\"
    DESCRIPTION
{}
    REVISION \"{LAST_UPDATED}\"
    DESCRIPTION
        \"The first version.\"
    ::= {{ cqosPlaypen {} }}

cqosEnterprise    OBJECT IDENTIFIER ::= {{ enterprises {} }}
cqosExperimental  OBJECT IDENTIFIER ::= {{ cqosEnterprise {} }}
cqosPlaypen       OBJECT IDENTIFIER ::= {{ cqosExperimental {} }}
cqosNotifications OBJECT IDENTIFIER ::= {{ cutlineQosMIB {NOTIFICATIONS} }}
cqosObjects       OBJECT IDENTIFIER ::= {{ cutlineQosMIB {OBJECTS} }}
cqosConformance   OBJECT IDENTIFIER ::= {{ cutlineQosMIB 2 }}

CqosText ::= TEXTUAL-CONVENTION
    DISPLAY-HINT \"255t\"
    STATUS current
    DESCRIPTION
        \"Text in UTF-8, as SnmpAdminString of RFC 3411. It is cut at the end where it is too long.\"
    SYNTAX OCTET STRING (SIZE (0..255))

",
        quoted(
            "What the applications and routers of a host demand and deliver: QoS sockets with their \
             specifications, measurements and violations, and the queues of routers. A value that is not \
             known has no instance. The module is below an arc for experiments, until Cutline has an \
             enterprise number."
        ),
        own,
        enterprise,
        experimental,
        playpen,
    )
}

/// Returns a text in quotes, on lines of its own.
fn quoted(text: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.replace('"', "'").split_whitespace() {
        let line = lines.last_mut().expect("there is a line");
        if !line.is_empty() && line.len() + word.len() + 10 > WIDTH {
            lines.push(word.to_owned());
        } else {
            let gap = if line.is_empty() { "" } else { " " };
            let _ = write!(line, "{gap}{word}");
        }
    }
    format!("        \"{}\"", lines.join("\n         "))
}

fn syntax(syntax: Syntax) -> String {
    match syntax {
        Syntax::Counter64 => "Counter64".to_owned(),
        Syntax::Gauge32 => "Gauge32".to_owned(),
        Syntax::Gauge64 => "CounterBasedGauge64".to_owned(),
        Syntax::Unsigned32 => "Unsigned32".to_owned(),
        Syntax::Text => "CqosText".to_owned(),
        Syntax::Truth => "TruthValue".to_owned(),
        Syntax::Enumeration(names) => {
            let names: Vec<String> = names.iter().map(|(name, number)| format!("{name}({number})")).collect();
            format!("INTEGER {{ {} }}", names.join(", "))
        }
        Syntax::Elsewhere => unreachable!("objects of other modules are not written"),
    }
}

fn add_object(text: &mut String, object: &Object, parent: &str, access: &str) {
    let units =
        if object.units.is_empty() { String::new() } else { format!("    UNITS \"{}\"\n", object.units) };
    // An object of an index needs a range (RFC 2578, section 7.7).
    let range =
        if access == NOT_ACCESSIBLE && object.syntax == Syntax::Unsigned32 { " (1..4294967295)" } else { "" };
    let _ = write!(
        text,
        "{} OBJECT-TYPE\n    SYNTAX {}{range}\n{units}    MAX-ACCESS {access}\n    STATUS current\n    DESCRIPTION\n{}\n    ::= {{ {parent} {} }}\n\n",
        object.name,
        syntax(object.syntax),
        quoted(&object.description),
        object.arc,
    );
}

/// Access of an object of an index.
const NOT_ACCESSIBLE: &str = "not-accessible";

fn add_scalars(text: &mut String, group: &dyn Group) {
    let definition = group.definition();
    let _ = write!(
        text,
        "-- {}\n\n{} OBJECT IDENTIFIER ::= {{ cqosObjects {} }}\n\n",
        definition.description, definition.name, definition.arc
    );
    for object in group.objects() {
        add_object(text, object, definition.name, "read-only");
    }
}

fn add_table(text: &mut String, group: &dyn Group, groups: &[Box<dyn Group>]) {
    let definition = group.definition();
    let name = definition.name;
    let entry = format!("{}Entry", capitalised(name));
    let index: Vec<&str> = definition.index.iter().map(|object| object.name.as_str()).collect();
    // Objects of an index that another table has defined already are not defined again.
    let is_own = |object: &&Object| {
        let earlier = groups.iter().take_while(|other| other.definition().arc < definition.arc);
        !earlier.flat_map(|other| &other.definition().index).any(|known| known.name == object.name)
    };
    let own: Vec<&Object> = definition.index.iter().filter(is_own).collect();
    let members = own.iter().copied().chain(group.objects());
    let members: Vec<String> =
        members.map(|object| format!("    {} {}", object.name, base(object.syntax))).collect();
    let _ = write!(
        text,
        "{name}Table OBJECT-TYPE\n    SYNTAX SEQUENCE OF {entry}\n    MAX-ACCESS {NOT_ACCESSIBLE}\n    STATUS current\n    DESCRIPTION\n{}\n    ::= {{ cqosObjects {} }}\n\n\
         {name}Entry OBJECT-TYPE\n    SYNTAX {entry}\n    MAX-ACCESS {NOT_ACCESSIBLE}\n    STATUS current\n    DESCRIPTION\n{}\n    INDEX {{ {} }}\n    ::= {{ {name}Table 1 }}\n\n\
         {entry} ::= SEQUENCE {{\n{}\n}}\n\n",
        quoted(definition.description),
        definition.arc,
        quoted(definition.row),
        index.join(", "),
        members.join(",\n"),
    );
    for object in own {
        add_object(text, object, &format!("{name}Entry"), NOT_ACCESSIBLE);
    }
    let writable = group.writable();
    for object in group.objects() {
        let access = if writable.contains(&object.name.as_str()) { "read-write" } else { "read-only" };
        add_object(text, object, &format!("{name}Entry"), access);
    }
}

/// Returns a syntax as a member of a sequence, where names of numbers are left out.
fn base(of: Syntax) -> String {
    match of {
        Syntax::Enumeration(_) => "INTEGER".to_owned(),
        other => syntax(other),
    }
}

fn add_notifications(text: &mut String) {
    for kind in NOTIFICATION_TYPES {
        let _ = write!(
            text,
            "{} NOTIFICATION-TYPE\n    OBJECTS {{ {} }}\n    STATUS current\n    DESCRIPTION\n{}\n    ::= {{ cqosNotifications {} }}\n\n",
            kind.name,
            kind.objects.join(", "),
            quoted(kind.description),
            kind.arc,
        );
    }
}

fn add_conformance(text: &mut String, groups: &[Box<dyn Group>]) {
    text.push_str(
        "cqosGroups      OBJECT IDENTIFIER ::= { cqosConformance 1 }\n\
         cqosCompliances OBJECT IDENTIFIER ::= { cqosConformance 2 }\n\n",
    );
    let mut names = Vec::new();
    for (arc, group) in (1..).zip(groups) {
        let definition = group.definition();
        let name = format!("{}Group", definition.name);
        let objects: Vec<&str> = group.objects().iter().map(|object| object.name.as_str()).collect();
        let _ = write!(
            text,
            "{name} OBJECT-GROUP\n    OBJECTS {{\n        {}\n    }}\n    STATUS current\n    DESCRIPTION\n{}\n    ::= {{ cqosGroups {arc} }}\n\n",
            objects.join(",\n        "),
            quoted(definition.description),
        );
        names.push(name);
    }
    let notifications: Vec<&str> = NOTIFICATION_TYPES.iter().map(|kind| kind.name).collect();
    let _ = write!(
        text,
        "cqosNotificationGroup NOTIFICATION-GROUP\n    NOTIFICATIONS {{ {} }}\n    STATUS current\n    DESCRIPTION\n        \"Notifications of violations and refused reservations.\"\n    ::= {{ cqosGroups {} }}\n\n",
        notifications.join(", "),
        groups.len() + 1,
    );
    names.push("cqosNotificationGroup".to_owned());
    let _ = write!(
        text,
        "cqosCompliance MODULE-COMPLIANCE\n    STATUS current\n    DESCRIPTION\n        \"An agent that has the whole module.\"\n    MODULE\n    MANDATORY-GROUPS {{\n        {}\n    }}\n    ::= {{ cqosCompliances 1 }}\n\n",
        names.join(",\n        "),
    );
}
