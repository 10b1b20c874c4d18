//! RSVP-MIB (RFC 2206): sessions, senders and reservations of `cutlined`.
//!
//! Its objects may be created by a manager in the text of the RFC; here all of them are read alone (its section on compliance allows it).
//! Columns that `cutlined` does not know, such as AdSpecs of senders, are left out.

use super::{ACTIVE, CONTROLLED_LOAD, column, integer, octets, port, prefix_length, session_type};
use crate::object::{MibColumn, gauge, truth};
use crate::snapshot::{LinkInstance, ReservationInstance, SenderInstance, SessionInstance, Snapshot};
use crate::table::{Definition, Module, Scalars, Table};
use async_snmp::Value;
use cutline_flow::TrafficSpec;
use std::net::IpAddr;

/// Name of the module.
pub const ROOT: &[u32] = &[1, 3, 6, 1, 2, 1, 51];

/// Returns the module's tables and its scalar objects, which are below different names.
pub fn modules() -> Vec<Module> {
    let tables = Module {
        root: [ROOT, &[1]].concat(),
        groups: vec![
            Box::new(sessions()),
            Box::new(senders()),
            Box::new(reservations()),
            Box::new(interfaces()),
        ],
    };
    let bad_packets =
        column(1, "rsvpBadPackets", |snapshot: &Snapshot| snapshot.malformed_messages().map(gauge));
    let scalars = Scalars { definition: definition(2, "rsvpGenObjects"), objects: vec![bad_packets] };
    vec![tables, Module { root: ROOT.to_vec(), groups: vec![Box::new(scalars)] }]
}

/// Returns the definition of a table of another module.
pub fn definition(arc: u32, name: &'static str) -> Definition {
    Definition { arc, name, description: "", row: "", index: Vec::new() }
}

fn sessions() -> Table<SessionInstance> {
    let destination = |row: &SessionInstance| row.row().destination.ip();
    Table {
        definition: definition(1, "rsvpSession"),
        columns: vec![
            column(2, "rsvpSessionType", move |row| Some(session_type(destination(row)))),
            column(3, "rsvpSessionDestAddr", move |row| Some(octets(destination(row)))),
            column(4, "rsvpSessionDestAddrLength", move |row| Some(prefix_length(destination(row)))),
            column(5, "rsvpSessionProtocol", |row: &SessionInstance| {
                Some(integer(row.row().protocol.into()))
            }),
            column(6, "rsvpSessionPort", |row: &SessionInstance| Some(port(row.row().destination.port()))),
            column(7, "rsvpSessionSenders", |row: &SessionInstance| {
                Some(gauge(row.row().senders.len() as u64))
            }),
            column(8, "rsvpSessionReceivers", |row: &SessionInstance| {
                Some(gauge(row.row().reservations.len() as u64))
            }),
        ],
        rows: Snapshot::sessions,
    }
}

/// A value of a token bucket: the end of its object's name, and the value.
type TrafficValue = (&'static str, fn(TrafficSpec) -> u64);

/// Returns the five columns of a token bucket, from this arc on.
fn traffic<R: 'static>(first: u32, prefix: &str, of: fn(&R) -> TrafficSpec) -> Vec<MibColumn<R>> {
    let values: [TrafficValue; 5] = [
        ("Rate", |spec| spec.rate.as_bps()),
        ("PeakRate", |spec| spec.peak.as_bps()),
        ("Burst", |spec| spec.bucket.get()),
        ("MinTU", |spec| spec.min_policed.get()),
        ("MaxTU", |spec| spec.max_packet.get()),
    ];
    let make = |(arc, (name, value)): (u32, TrafficValue)| {
        column(arc, &format!("{prefix}TSpec{name}"), move |row: &R| Some(integer(value(of(row)))))
    };
    (first..).zip(values).map(make).collect()
}

fn senders() -> Table<SenderInstance> {
    let destination = |row: &SenderInstance| row.session.row().destination;
    let source = |row: &SenderInstance| row.row().source;
    let mut columns = vec![
        column(2, "rsvpSenderType", move |row| Some(session_type(destination(row).ip()))),
        column(3, "rsvpSenderDestAddr", move |row| Some(octets(destination(row).ip()))),
        column(4, "rsvpSenderAddr", move |row| Some(octets(source(row).ip()))),
        column(5, "rsvpSenderDestAddrLength", move |row| Some(prefix_length(destination(row).ip()))),
        column(6, "rsvpSenderAddrLength", move |row| Some(prefix_length(source(row).ip()))),
        column(7, "rsvpSenderProtocol", |row: &SenderInstance| {
            Some(integer(row.session.row().protocol.into()))
        }),
        column(8, "rsvpSenderDestPort", move |row| Some(port(destination(row).port()))),
        column(9, "rsvpSenderPort", move |row| Some(port(source(row).port()))),
        // A sender at this host has no previous hop.
        column(11, "rsvpSenderHopAddr", |row: &SenderInstance| row.row().from.map(octets)),
        column(13, "rsvpSenderInterface", |row: &SenderInstance| {
            row.session.interface(row.row().from_interface.as_ref()).map(|index| integer(index.into()))
        }),
    ];
    columns.extend(traffic(14, "rsvpSender", |row: &SenderInstance| row.row().bucket));
    columns.push(column(44, "rsvpSenderStatus", |_: &SenderInstance| Some(Value::Integer(ACTIVE))));
    Table { definition: definition(2, "rsvpSender"), columns, rows: Snapshot::senders }
}

fn reservations() -> Table<ReservationInstance> {
    let destination = |row: &ReservationInstance| row.session.row().destination;
    // A reservation for several senders names the first one; one for all has no address (RFC 2206: 0.0.0.0).
    let sender = |row: &ReservationInstance| row.row().senders.first().copied();
    let sender_address = move |row: &ReservationInstance| match (sender(row), destination(row).ip()) {
        (Some(sender), _) => sender.ip(),
        (None, IpAddr::V4(_)) => IpAddr::from([0; 4]),
        (None, IpAddr::V6(_)) => IpAddr::from([0; 16]),
    };
    let mut columns = vec![
        column(2, "rsvpResvType", move |row| Some(session_type(destination(row).ip()))),
        column(3, "rsvpResvDestAddr", move |row| Some(octets(destination(row).ip()))),
        column(4, "rsvpResvSenderAddr", move |row| Some(octets(sender_address(row)))),
        column(5, "rsvpResvDestAddrLength", move |row| Some(prefix_length(destination(row).ip()))),
        column(6, "rsvpResvSenderAddrLength", move |row| Some(prefix_length(sender_address(row)))),
        column(7, "rsvpResvProtocol", |row: &ReservationInstance| {
            Some(integer(row.session.row().protocol.into()))
        }),
        column(8, "rsvpResvDestPort", move |row| Some(port(destination(row).port()))),
        column(9, "rsvpResvPort", move |row| Some(port(sender(row).map_or(0, |sender| sender.port())))),
        column(10, "rsvpResvHopAddr", |row: &ReservationInstance| row.row().next.map(octets)),
        column(12, "rsvpResvInterface", |row: &ReservationInstance| {
            row.session.interface(row.row().interface.as_ref()).map(|index| integer(index.into()))
        }),
        column(13, "rsvpResvService", |_: &ReservationInstance| Some(Value::Integer(CONTROLLED_LOAD))),
    ];
    columns.extend(traffic(14, "rsvpResv", |row: &ReservationInstance| row.row().bucket));
    columns.extend([
        column(23, "rsvpResvShared", |row: &ReservationInstance| Some(truth(row.row().style != "FF"))),
        column(24, "rsvpResvExplicit", |row: &ReservationInstance| Some(truth(row.row().style != "WF"))),
        column(28, "rsvpResvStatus", |_: &ReservationInstance| Some(Value::Integer(ACTIVE))),
    ]);
    Table { definition: definition(4, "rsvpResv"), columns, rows: Snapshot::session_reservations }
}

fn interfaces() -> Table<LinkInstance> {
    Table {
        definition: definition(6, "rsvpIf"),
        columns: vec![
            column(9, "rsvpIfEnabled", |_: &LinkInstance| Some(truth(true))),
            column(11, "rsvpIfStatus", |_: &LinkInstance| Some(Value::Integer(ACTIVE))),
        ],
        rows: Snapshot::links,
    }
}
