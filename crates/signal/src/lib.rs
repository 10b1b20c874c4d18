//! The protocols of the end system. Each is sans-IO: messages and deadlines come in, messages and events go out. It reads no
//! clock, opens no socket, and takes its random numbers from the caller, so the same object works in a socket and as an agent
//! in the simulator.
//!
//! - [`negotiation`]: both ends of a connection agree on what it needs.
//! - [`authentication`]: the key that both ends may share, and the tags of messages.
//! - [`clock`]: the offset between the clocks of two ends, and its error.
//! - [`monitor`]: what is sent and received, measured at both ends, and what they report to each other.
//! - [`violation`]: whether that is what was agreed on.
//! - [`operation`]: moves a sender inside its region of operation.
//! - [`mib`]: all that is known of a connection, as one struct.

pub mod authentication;
pub mod clock;
pub mod mib;
pub mod monitor;
pub mod negotiation;
pub mod operation;
pub mod violation;
