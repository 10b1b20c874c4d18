//! Resource manager of a host and feedback of a path (QUANTA section 5), sans-IO: requests, reports, messages and the
//! time come in; answers, events and messages go out. It reads no clock, opens no socket and draws no random numbers,
//! so the same object works in a daemon and as an agent in the simulator.
//!
//! A [`Manager`] is both of these together:
//!
//! - [`resources`]: who gets how much of a host: capacities, admission by class, fair shares, leases, and what happens
//!   when capacities shrink.
//! - [`feedback`]: how much a path carries: prediction of degradation, graceful lowering in an order, raises with
//!   hysteresis, summaries between hosts.
//!
//! What is absent: the local socket and its clients, the measurement of capacities, the scheduler that enforces rates.

pub mod feedback;
mod manager;
pub mod resources;

pub use manager::{
    FlowRoute, MANAGER_SNAPSHOT_VERSION, Manager, ManagerOutput, ManagerSnapshot, ManagerStart,
};
