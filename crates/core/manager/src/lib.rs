//! Resource manager of a host and feedback of a path (QUANTA section 5), sans-IO: requests, reports, messages and the
//! time come in; answers, events and messages go out. It reads no clock, opens no socket and draws no random numbers,
//! so the same object works in a daemon and as an agent in the simulator.
//!
//! A [`Manager`] is both of these together:
//!
//! - [`resources`]: the shares of a host: capacities, admission by class, fair shares, leases, and degradation
//!   when capacities shrink.
//! - [`feedback`]: the capacity of a path: prediction of degradation, graceful lowering in an order, raises with
//!   hysteresis, summaries between hosts.
//!
//! [`scheduling`] orders the messages of managed flows on their host: by deadline, by weight, within the rates of their
//! classes.
//!
//! ```
//! use cutline_manager::feedback::{FeedbackParams, HostId};
//! use cutline_manager::resources::{
//!     AllocationEvent, Capacities, CarrierKind, ClientKey, CpuShare, FlowRequest, ResourceParams, SchedulingClass, UserId,
//! };
//! use cutline_manager::{Manager, ManagerOutput, ManagerStart};
//! use cutline_units::{Instant, Rate};
//!
//! let capacities = Capacities { datagrams: Some(Rate::from_mbps(100)), ..Capacities::default() };
//! let (resources, feedback) = (ResourceParams::default(), FeedbackParams::default());
//! let mut manager = Manager::new(ManagerStart { resources, feedback, capacities, host: HostId(1), number: 0 })?;
//! let video = FlowRequest {
//!     user: UserId(1000),
//!     client: ClientKey(1),
//!     class: SchedulingClass::RealTime,
//!     carrier: CarrierKind::Datagrams,
//!     interface: None,
//!     is_reserved: false,
//!     desired: Rate::from_mbps(8),
//!     minimum: Rate::from_mbps(2),
//!     cpu: CpuShare::ZERO,
//!     priority: 10,
//!     weight: 1,
//! };
//! let flow = manager.request(Instant::ZERO, video, None)?.flow().expect("there is room");
//! let granted = AllocationEvent::Granted { flow, rate: Rate::from_mbps(8) };
//! assert_eq!(manager.poll(), Some(ManagerOutput::Allocation(granted)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The local socket and its clients, the measurement of capacities, and the scheduler that enforces rates are not part of this crate.

pub mod feedback;
mod manager;
pub mod resources;
pub mod scheduling;

pub use manager::{
    FlowRoute, MANAGER_SNAPSHOT_VERSION, ManagedFlowRecord, Manager, ManagerOutput, ManagerSnapshot,
    ManagerStart,
};
