//! Services of the network for a flow: one interface, several services.
//!
//! An application, or a QoS socket for it, gives the limits of a flow's traffic in both directions ([`Demand`]) to a [`Provisioner`].
//! The result is a [`Grant`], which ends when it is dropped, or a [`Refusal`] with the reason and the traffic that would be granted.
//!
//! | service | effect | implemented by |
//! | --- | --- | --- |
//! | `mark` | nothing is reserved: the packets carry a hint, which the socket sets | the sender |
//! | `local` | a class of this host's traffic control for the flow's sent traffic | `cutlined` on this host |
//! | `rsvp` | a reservation along the path, for both directions | `cutlined` on each host and router |
//!
//! [`register`] adds others. `local` and `rsvp` need no privilege: `cutlined` listens at a local socket, and the permissions of its file define
//! which users may ask. Requests of a client end with its connection, so a killed application leaves nothing behind.
//!
//! ```no_run
//! use cutline_provision::{Access, Demand, Flow, TransportProtocol, open};
//! use cutline_flow::TrafficSpec;
//! use cutline_units::{Bytes, Duration, Rate};
//!
//! let flow = Flow {
//!     transport: TransportProtocol::Udp,
//!     source: "10.0.1.2:5000".parse()?,
//!     destination: "10.0.2.2:5000".parse()?,
//! };
//! let audio = TrafficSpec {
//!     rate: Rate::from_kbps(100),
//!     bucket: Bytes::new(2000),
//!     peak: Rate::from_mbps(1),
//!     min_policed: Bytes::new(64),
//!     max_packet: Bytes::new(200),
//! };
//! let rsvp = open("rsvp", &Access::default())?;
//! let mut grant = rsvp.request(&Demand::sending(flow, audio))?;
//! grant.wait(Duration::from_secs(5))?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! ```text
//! demand     a flow, and its traffic in both directions
//! grant      grants, their events, and refusals
//! services   the services, and the table of their names
//! protocol   messages between clients and cutlined
//! client     a client's connection to cutlined
//! status     the status of cutlined, as a document
//! ```

mod client;
mod demand;
mod grant;
pub mod protocol;
mod refusal;
mod services;
pub mod status;

pub use client::DaemonClient;
pub use cutline_flow::Direction;
pub use demand::{Demand, Flow, TransportProtocol};
pub use grant::{Grant, GrantEvent, GrantState};
pub use refusal::{Refusal, RefusalReason};
pub use services::{
    Access, DEFAULT_SOCKET, Provisioner, ReservationService, UnknownService, open, register, services,
};
