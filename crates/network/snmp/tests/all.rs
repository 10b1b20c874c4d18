//! Tests of SNMP, in one program: it is linked once, and its tests run beside each other.
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "managers and processes take real time"
)]

mod agent;
mod agentx;
mod capacity;
mod common;
mod mib;
mod notifications;
mod standard;
