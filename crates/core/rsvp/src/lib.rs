//! RSVP, the reservation protocol of Integrated Services (RFC 2205), without IO. Messages, deadlines, calls of applications and answers of
//! routing come in; messages, requests to traffic control, questions to routing and events go out. Nothing here reads a clock,
//! opens a socket or draws random numbers of its own, so the same object works in a daemon and as an agent in the simulator. Hosts and
//! routers are the same [`engine::Engine`].
//!
//! - [`engine`]: the protocol: soft state, styles and merging, errors, blockade (RFC 2209), refresh reduction (RFC 2961).
//! - [`message`] and [`object`]: messages on the wire.
//! - [`intserv`]: token buckets, flowspecs and AdSpecs (RFC 2210).
//! - [`admission`]: the reservable share of a link (RFC 2211).
//! - [`integrity`]: authentication of neighbours (RFC 2747).
//! - [`encapsulation`]: UDP where raw sockets are not available.

pub mod admission;
pub mod encapsulation;
pub mod engine;
pub mod integrity;
pub mod intserv;
pub mod message;
pub mod object;
