//! The protocols of the end system. Each is sans-IO: messages and deadlines come in, messages and events go out. It reads no
//! clock, opens no socket, and takes its random numbers from the caller, so the same object works in a socket and as an agent
//! in the simulator.
//!
//! - [`negotiation`]: both ends of a connection agree on what it needs.
//! - [`frame`]: what messages of the application and reports look like on the wire.
//! - [`pacing`]: when an application may send.
//! - [`authentication`]: the key that both ends may share, and the tags of messages.

pub mod authentication;
pub mod frame;
pub mod negotiation;
pub mod pacing;
