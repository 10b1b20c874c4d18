//! INTSRV-MIB (RFC 2213): reservations at the interfaces, and the flows with reservations.

use super::rsvp::definition;
use super::{ACTIVE, CONTROLLED_LOAD, column, integer, octets, port, prefix_length, session_type};
use crate::object::{gauge, truth};
use crate::snapshot::{InstalledInstance, LinkInstance, Snapshot};
use crate::table::{Module, Table};
use async_snmp::Value;

/// Name of the module.
pub const ROOT: &[u32] = &[1, 3, 6, 1, 2, 1, 52];

/// Owner of a flow: neither RSVP nor management, but this host alone.
const BY_OTHER: i32 = 1;
/// Owner of a flow: RSVP.
const BY_RSVP: i32 = 2;

/// Returns the module.
pub fn module() -> Module {
    Module { root: [ROOT, &[1]].concat(), groups: vec![Box::new(interfaces()), Box::new(flows())] }
}

fn interfaces() -> Table<LinkInstance> {
    Table {
        definition: definition(1, "intSrvIfAttrib"),
        columns: vec![
            column(1, "intSrvIfAttribAllocatedBits", |row: &LinkInstance| {
                row.row().reserved_bps.map(integer)
            }),
            column(2, "intSrvIfAttribMaxAllocatedBits", |row: &LinkInstance| {
                row.row().reservable_bps.map(integer)
            }),
            column(4, "intSrvIfAttribFlows", |row: &LinkInstance| row.row().reservations.map(gauge)),
            column(5, "intSrvIfAttribPropagationDelay", |_: &LinkInstance| Some(Value::Integer(0))),
            column(6, "intSrvIfAttribStatus", |_: &LinkInstance| Some(Value::Integer(ACTIVE))),
        ],
        rows: Snapshot::links,
    }
}

/// Returns the flows: reservations that are installed at an interface of this host, those of sessions first.
fn flows() -> Table<InstalledInstance> {
    let destination = |row: &InstalledInstance| row.destination;
    let sender = |row: &InstalledInstance| row.sender;
    Table {
        definition: definition(2, "intSrvFlow"),
        columns: vec![
            column(2, "intSrvFlowType", move |row| Some(session_type(destination(row).ip()))),
            column(3, "intSrvFlowOwner", |row: &InstalledInstance| {
                Some(Value::Integer(if row.is_of_session { BY_RSVP } else { BY_OTHER }))
            }),
            column(4, "intSrvFlowDestAddr", move |row| Some(octets(destination(row).ip()))),
            column(5, "intSrvFlowSenderAddr", move |row| sender(row).map(|sender| octets(sender.ip()))),
            column(6, "intSrvFlowDestAddrLength", move |row| Some(prefix_length(destination(row).ip()))),
            column(7, "intSrvFlowSenderAddrLength", move |row| {
                sender(row).map(|sender| prefix_length(sender.ip()))
            }),
            column(8, "intSrvFlowProtocol", |row: &InstalledInstance| Some(integer(row.protocol.into()))),
            column(9, "intSrvFlowDestPort", move |row| Some(port(destination(row).port()))),
            column(10, "intSrvFlowPort", move |row| {
                Some(port(sender(row).map_or(0, |sender| sender.port())))
            }),
            column(12, "intSrvFlowInterface", |row: &InstalledInstance| {
                row.interface.map(|index| integer(index.into()))
            }),
            column(14, "intSrvFlowRate", |row: &InstalledInstance| Some(integer(row.bucket.rate.as_bps()))),
            column(15, "intSrvFlowBurst", |row: &InstalledInstance| Some(integer(row.bucket.bucket.get()))),
            column(18, "intSrvFlowMinTU", |row: &InstalledInstance| {
                Some(integer(row.bucket.min_policed.get()))
            }),
            column(19, "intSrvFlowMaxTU", |row: &InstalledInstance| {
                Some(integer(row.bucket.max_packet.get()))
            }),
            // Packets that exceed the bucket become best effort.
            column(22, "intSrvFlowDiscard", |_: &InstalledInstance| Some(truth(false))),
            column(23, "intSrvFlowService", |_: &InstalledInstance| Some(Value::Integer(CONTROLLED_LOAD))),
            column(25, "intSrvFlowStatus", |_: &InstalledInstance| Some(Value::Integer(ACTIVE))),
        ],
        rows: Snapshot::flows,
    }
}
