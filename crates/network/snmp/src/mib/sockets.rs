//! QoS sockets: the requirements of their ends, and the delivery.

use super::buckets::{self, BucketWords};
use super::index;
use crate::object::Form::{Named, Seconds, Text, Truth, Usual};
use crate::object::{MibColumn, Object, Request, Syntax, capitalised, columns, computed, gauge, text};
use crate::snapshot::{DirectionInstance, ItemInstance, MEASURES, Snapshot, SocketInstance};
use crate::table::{Definition, Table};
use async_snmp::Value;
use async_snmp::handler::SetTestError;
use cutline_publish::{DirectionRow, ManagerRequest, SpreadRow};
use cutline_quality::spec::Measure;

/// States of a connection.
const STATES: &[(&str, i32)] = &[("joining", 1), ("agreed", 2), ("alone", 3), ("reconnecting", 4)];
/// States of a reservation.
const RESERVATIONS: &[(&str, i32)] =
    &[("none", 1), ("waiting", 2), ("reserved", 3), ("refused", 4), ("ended", 5)];
/// Origins of violations.
const ORIGINS: &[(&str, i32)] = &[("sendingHost", 1), ("network", 2), ("receivingHost", 3)];
/// Directions of a socket.
const DIRECTIONS: &[(&str, i32)] = &[("send", 1), ("receive", 2)];

/// Returns the sockets.
pub fn sockets() -> Table<SocketInstance> {
    let prefix = "cqosSocket";
    let number = |arc, name: &str, description: &str| Object {
        arc,
        name: format!("{prefix}{name}"),
        syntax: Syntax::Unsigned32,
        units: "",
        description: description.to_owned(),
    };
    let of_process = vec![
        computed(number(3, "Pid", "Number of the process."), |row: &SocketInstance| {
            Some(gauge(row.process.pid.into()))
        }),
        computed(number(4, "Uid", "User of the process."), |row: &SocketInstance| {
            Some(gauge(row.process.uid.into()))
        }),
        computed(
            Object { syntax: Syntax::Text, ..number(5, "Program", "Name of the program, as it states it.") },
            |row: &SocketInstance| Some(text(&row.program)),
        ),
    ];
    let of_row = [
        (6, "transport", Usual),
        (7, "local", Usual),
        (8, "peer", Usual),
        (9, "opened_unix_s", Seconds),
        (10, "state", Named(STATES)),
        (11, "hint", Usual),
        (12, "rtt_ms", Usual),
        (13, "clock_error_ms", Usual),
        (14, "retransmissions", Usual),
        (15, "reconnections", Usual),
        (16, "target_rate", Usual),
        (17, "send_queue_bytes", Usual),
        (18, "waits", Usual),
        (19, "reservation", Named(RESERVATIONS)),
        (20, "reserved_bps", Usual),
        (21, "refusal", Text),
        (22, "managed", Truth),
    ];
    let renegotiate = Object {
        syntax: Syntax::Enumeration(RENEGOTIATE),
        ..number(
            23,
            "Renegotiate",
            "Setting it to renegotiate(2) negotiates the owner's first specification again, where the owner allows it. Reading it returns none(1).",
        )
    };
    let renegotiate =
        computed(renegotiate, |_: &SocketInstance| Some(Value::Integer(1))).writable(renegotiation);
    Table {
        definition: Definition {
            arc: 2,
            name: prefix,
            description: "QoS sockets of the host's processes.",
            row: "A QoS socket, at one of its two ends.",
            index: socket_index(prefix),
        },
        columns: [of_process, columns(prefix, |row: &SocketInstance| Some(&*row.row), &of_row)]
            .into_iter()
            .flatten()
            .chain([renegotiate])
            .collect(),
        rows: Snapshot::sockets,
    }
}

/// Values of the object that requests a new negotiation.
const RENEGOTIATE: &[(&str, i32)] = &[("none", 1), ("renegotiate", 2)];

/// Returns the request for a new negotiation.
fn renegotiation(row: &SocketInstance, value: &Value) -> Request {
    match value {
        _ if !row.row.managed => Err(SetTestError::NoAccess),
        Value::Integer(2) => Ok(ManagerRequest::Renegotiate { socket: row.row.socket }),
        Value::Integer(_) => Err(SetTestError::WrongValue),
        _ => Err(SetTestError::WrongType),
    }
}

/// Returns the request for a weaker limit. A value out of the range of any specification is wrong, and one that demands more than the
/// present limit is inconsistent with it (RFC 3416 section 4.2.5).
fn weaker_limit(row: &ItemInstance, value: &Value) -> Request {
    let (socket, receive) = row.socket();
    let limit = row.limit().ok_or(SetTestError::NoCreation)?;
    if !socket.managed {
        return Err(SetTestError::NoAccess);
    }
    let Value::Gauge32(number) = value else { return Err(SetTestError::WrongType) };
    let worst = if *value == thousandths(limit.worst) {
        // A manager that sets the value that it has read changes nothing, although that value is rounded.
        limit.worst
    } else {
        f64::from(*number) / 1e3
    };
    let is_weaker = if limit.measure == "rate" { worst <= limit.worst } else { worst >= limit.worst };
    let measure = Measure::ALL.into_iter().find(|measure| measure.name() == limit.measure);
    let measure = measure.ok_or(SetTestError::NoCreation)?;
    if worst != limit.worst && measure.check_limit(worst).is_err() {
        return Err(SetTestError::WrongValue);
    }
    if !is_weaker {
        return Err(SetTestError::InconsistentValue);
    }
    Ok(ManagerRequest::Limit { socket: socket.socket, receive, measure: limit.measure.clone(), worst })
}

/// Returns the index of a socket.
fn socket_index(prefix: &str) -> Vec<Object> {
    let publisher = "Number of the publisher: a connection of the process to the monitor. A process that starts again has another one.";
    vec![
        index(1, &format!("{prefix}Publisher"), Syntax::Unsigned32, publisher),
        index(2, &format!("{prefix}Number"), Syntax::Unsigned32, "Number of the socket in its process."),
    ]
}

/// Returns the index of a direction of a socket.
fn direction_index() -> Vec<Object> {
    let direction =
        "The direction: in which this end sends, as the peer reports it, or in which this end receives.";
    [
        socket_index("cqosSocket"),
        vec![index(1, "cqosDirDirection", Syntax::Enumeration(DIRECTIONS), direction)],
    ]
    .concat()
}

/// Returns the index of a measure of a direction.
fn measure_index(prefix: &str) -> Vec<Object> {
    let measure = "The measure. Its unit is messages per second (rate), milliseconds (delay, gap, jitter, recovery) or per cent (loss).";
    [direction_index(), vec![index(1, &format!("{prefix}Measure"), Syntax::Enumeration(MEASURES), measure)]]
        .concat()
}

/// Returns the directions of sockets.
pub fn directions() -> Table<DirectionInstance> {
    let prefix = "cqosDir";
    let fields = [
        (2, "offered", Usual),
        (3, "requested", Usual),
        (4, "effective", Usual),
        (5, "sent_messages", Usual),
        (6, "sent_bytes", Usual),
        (7, "held_ms", Usual),
        (8, "received_messages", Usual),
        (9, "received_bytes", Usual),
        (10, "lost_messages", Usual),
        (11, "late_messages", Usual),
        (12, "unread_ms", Usual),
        (13, "rate", Usual),
        (14, "throughput_bps", Usual),
        (15, "loss_percent", Usual),
        (16, "gap_ms", Usual),
        (17, "violations_begun", Usual),
    ];
    let spreads = [
        spread(18, "last_delay", |row| row.last_delay.as_ref()),
        spread(23, "last_jitter", |row| row.last_jitter.as_ref()),
        spread(28, "delay", |row| row.delay.as_ref()),
        spread(33, "jitter", |row| row.jitter.as_ref()),
    ];
    let of = |fields: &[_]| columns(prefix, |row: &DirectionInstance| Some(row.row()), fields);
    let mut all = of(&fields);
    all.extend(spreads.into_iter().flatten());
    all.extend(of(&[(38, "overflowed_datagrams", Usual)]));
    Table {
        definition: Definition {
            arc: 3,
            name: prefix,
            description: "Directions of QoS sockets: the requirements, and the delivery.",
            row: "A direction of a QoS socket.",
            index: direction_index(),
        },
        columns: all,
        rows: Snapshot::directions,
    }
}

/// A value of a distribution: the end of its object's name, its meaning, and the value.
type SpreadValue = (&'static str, &'static str, fn(&SpreadRow) -> Option<f64>);

/// Returns the five values of a distribution of times, from this arc on. `name` is that of the field in the record.
fn spread(
    first: u32,
    name: &'static str,
    of: fn(&DirectionRow) -> Option<&SpreadRow>,
) -> Vec<MibColumn<DirectionInstance>> {
    let words: String = name.split('_').map(capitalised).collect();
    let about = cutline_records::Record::fields;
    let meaning =
        about().into_iter().find(|field: &cutline_records::Field<DirectionRow>| field.about.name == name);
    let meaning =
        meaning.map_or_else(String::new, |field| field.about.meaning.replace("; null ", "; absent "));
    let values: [SpreadValue; 5] = [
        ("Mean", "Mean", |row| Some(row.mean_ms)),
        ("P50", "Median", |row| row.p50_ms),
        ("P90", "90th percentile", |row| row.p90_ms),
        ("P99", "99th percentile", |row| Some(row.p99_ms)),
        ("Max", "Maximum", |row| Some(row.max_ms)),
    ];
    let column = |(arc, (suffix, which, value)): (u32, SpreadValue)| {
        let object = Object {
            arc,
            name: format!("cqosDir{words}{suffix}"),
            syntax: Syntax::Gauge32,
            units: "microseconds",
            description: format!("{which} of: {meaning}"),
        };
        computed(object, move |row: &DirectionInstance| of(row.row()).and_then(value).map(thousandths))
    };
    (first..).zip(values).map(column).collect()
}

/// Returns a number in thousandths, such as a time in ms as whole microseconds.
fn thousandths(number: f64) -> Value {
    gauge((number * 1e3).round() as u64)
}

/// Arc of the limits that managers may weaken.
const WORST: u32 = 3;

/// Returns the column of the limits as one that managers may set, which its meaning states.
fn set_by_managers(mut column: MibColumn<ItemInstance>) -> MibColumn<ItemInstance> {
    column.object.description.push_str(
        " Where the owner of the socket allows it, a manager may set a value that demands less: a lower rate, or more of another \
         measure. A value out of the range of a specification is answered by wrongValue, and one that demands more by inconsistentValue.",
    );
    column.writable(weaker_limit)
}

/// Returns the limits of all directions: the regions of operation.
pub fn limits() -> Table<ItemInstance> {
    let fields = [
        (2, "best", Usual),
        (3, "worst", Usual),
        (4, "best_measured", Usual),
        (5, "worst_measured", Usual),
        (6, "begun", Usual),
    ];
    Table {
        definition: Definition {
            arc: 4,
            name: "cqosLimit",
            description: "Measures with limits: the region of operation of each direction, and the measurements in it.",
            row: "A measure that has a limit.",
            index: measure_index("cqosLimit"),
        },
        columns: columns("cqosLimit", ItemInstance::limit, &fields)
            .into_iter()
            .map(|column| if column.object.arc == WORST { set_by_managers(column) } else { column })
            .collect(),
        rows: Snapshot::limits,
    }
}

/// Returns the violations under way.
pub fn violations() -> Table<ItemInstance> {
    let fields =
        [(2, "limit", Usual), (3, "measured", Usual), (4, "origin", Named(ORIGINS)), (5, "for_s", Usual)];
    Table {
        definition: Definition {
            arc: 5,
            name: "cqosViolation",
            description: "Violations under way. A row appears when a violation begins, and disappears with its end.",
            row: "A violation of a limit.",
            index: measure_index("cqosViolation"),
        },
        columns: columns("cqosViolation", ItemInstance::violation, &fields),
        rows: Snapshot::violations,
    }
}

/// Returns the buckets of one-way delays.
pub fn delays() -> Table<ItemInstance> {
    let words = BucketWords {
        prefix: "cqosDelay",
        times: "delays",
        counts: "Messages",
        units: "messages",
        meaning: "Messages whose delay is in the bucket, since the beginning.",
    };
    Table {
        definition: Definition {
            arc: 6,
            name: "cqosDelay",
            description: "One-way delays of messages by buckets, where this end receives.",
            row: "A bucket of delays.",
            index: [
                direction_index(),
                vec![index(1, "cqosDelayBucket", Syntax::Unsigned32, "Number of the bucket, from 1 on.")],
            ]
            .concat(),
        },
        columns: buckets::columns(&words, ItemInstance::bucket),
        rows: Snapshot::delays,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutline_publish::SocketRow;
    use cutline_records::{FieldKind, Record};

    /// Asserts that a table has a column for each field of a record that is a value, but for those in the index.
    fn has_all<R: 'static, P: Record>(table: &Table<R>, prefix: &str, indexed: &[&str]) {
        for field in P::fields() {
            let is_value = matches!(field.kind, FieldKind::Counter | FieldKind::Gauge | FieldKind::Label);
            if !is_value || indexed.contains(&field.about.name) {
                continue;
            }
            let words: String = field.about.name.split('_').map(capitalised).collect();
            let has = table.columns.iter().any(|column| {
                let name = column.object.name.strip_prefix(prefix).unwrap_or_default();
                !name.is_empty() && words.starts_with(name)
            });
            assert!(has, "no column for `{}`", field.about.name);
        }
    }

    #[test]
    fn every_field_of_the_records_is_a_column() {
        has_all::<_, SocketRow>(&sockets(), "cqosSocket", &["socket"]);
        has_all::<_, DirectionRow>(&directions(), "cqosDir", &[]);
        has_all::<_, cutline_publish::LimitRow>(&limits(), "cqosLimit", &["measure"]);
        has_all::<_, cutline_publish::ViolationRow>(&violations(), "cqosViolation", &["measure"]);
        assert_eq!(SpreadRow::fields().len(), spread(1, "delay", |row| row.delay.as_ref()).len());
    }
}
