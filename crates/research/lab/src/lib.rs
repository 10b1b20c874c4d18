//! The laboratory: runs a scenario with real packets. The hosts are network namespaces with the kernel's TCP and UDP. The
//! queues and links between them are the simulator's code in real time.
//!
//! ```text
//! run          one run of a scenario: hosts, links, traffic, measures
//!   hosts      namespaces, addresses, routes
//!   tuning     the scenario's parameters of TCP as settings of Linux
//!   congestion whether the kernel has the congestion controls of the flows
//!   traffic    the flows as plans for the traffic generator
//!   connections  applications over QoS sockets in the place of flows
//!   links      the network between the hosts
//!     reader   the flow of a frame, and its role in the flow
//!     frames   storage of frames that are in the network
//!   timing     whether the timing of the run is valid
//!   side       the two sides of the network
//!   external_programs programs of the user's in the place of flows
//! shell        a program of the user's in the network, beside its flows
//! routed       a network of nodes whose routers, queues and links are the kernel's, with reservations
//! groups       groups of flows for the traffic generator without a network: from a file, or with the same parameters
//! loaded       a receiver whose processor other work loads
//! programs     real applications: NetVideo with ffmpeg, DIRM with a CORBA ORB
//! ```
//!
//! Laboratory and simulator measure the same quantities at the same points with the same code, and write the same tables.
//! They differ in the senders: handshakes, Linux's loss recovery and pacing, the kernel's timers.
//!
//! A flow may be a QoS connection ([`measure`]): an application over real QoS sockets, from the description that the simulator takes.
//!
//! The laboratory has no hints that adapt but those of QoS connections, and uses only this machine.

mod congestion;
mod connections;
mod error;
mod external_programs;
mod frames;
pub mod groups;
mod hosts;
mod links;
pub mod loaded;
pub mod programs;
mod reader;
pub mod routed;
mod run;
mod shell;
mod side;
mod threads;
mod timing;
mod traffic;
mod tuning;

pub use connections::Connections;
pub use error::LabError;
pub use external_programs::ExternalProgram;
pub use run::{LabOptions, MeasuredConnection, RunMeasurements, check, check_with, measure, permitted, run};
pub use shell::{Ended, ProgramHost, Shell, Traffic, shell};
pub use side::NetworkSide;
pub use timing::Bounds;
pub use tuning::Stack;
