//! Marking by a control group: eBPF programs in the kernel mark and pace every socket of the group's processes.
//!
//! ```text
//! group     the control group of a run: a folder that is removed with it
//! programs  the eBPF programs
//! attached  the programs at their hooks
//! running   marking of running programs
//! ```
//!
//! The hooks of the group set options when a socket connects, listens or sends. They miss packets: those with a mark in a control
//! message, IPv4 packets of IPv6 sockets, and the first datagram of an IPv6 socket that is not connected. So a program at
//! each interface also looks at every packet that leaves, and marks those of the group that have another code point.

mod attached;
mod group;
mod programs;
mod running;

pub use attached::Attached;
pub use group::{ControlGroup, available, sweep};
pub use running::{MarkingTarget, Running};
