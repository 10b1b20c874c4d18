//! Standard modules, with values from the monitor and from `cutlined`.

pub mod intsrv;
pub mod rsvp;
pub mod system;

use crate::object::{MibColumn, Object, Syntax, computed};
use async_snmp::Value;
use std::net::IpAddr;

/// Status of a row that is in effect: `active` of `RowStatus` (RFC 2579).
const ACTIVE: i32 = 1;
/// Controlled load (`QosService` of RFC 2213).
const CONTROLLED_LOAD: i32 = 5;

/// Returns a column. Its definition is in the text of another module; here are its arc and descriptor.
fn column<R>(
    arc: u32,
    name: &str,
    read: impl Fn(&R) -> Option<Value> + Send + Sync + 'static,
) -> MibColumn<R> {
    let (name, description) = (name.to_owned(), String::new());
    computed(Object { arc, name, syntax: Syntax::Elsewhere, units: "", description }, read)
}

/// Returns a number as an integer; a larger one than it can hold as the largest.
fn integer(number: u64) -> Value {
    Value::Integer(i32::try_from(number).unwrap_or(i32::MAX))
}

/// Returns the bytes of an address.
fn octets(address: IpAddr) -> Value {
    match address {
        IpAddr::V4(address) => Value::OctetString(address.octets().to_vec().into()),
        IpAddr::V6(address) => Value::OctetString(address.octets().to_vec().into()),
    }
}

/// Returns the length of an address as a prefix, bits.
fn prefix_length(address: IpAddr) -> Value {
    integer(if address.is_ipv4() { 32 } else { 128 })
}

/// Returns the type of a session: the C-Type of its object (RFC 2205, section A.1).
fn session_type(address: IpAddr) -> Value {
    integer(if address.is_ipv4() { 1 } else { 2 })
}

/// Returns a port as two bytes.
fn port(port: u16) -> Value {
    Value::OctetString(port.to_be_bytes().to_vec().into())
}
