//! The protocols of the end system. Each is sans-IO: messages and deadlines come in, messages and events go out. It reads no
//! clock, opens no socket, and takes its random numbers from the caller, so the same object works in a socket and as an agent
//! in the simulator.
//!
//! - [`session`]: one end of a connection: all of what follows together.
//! - [`negotiation`]: both ends of a connection agree on what it needs.
//! - [`presence`]: detection of this protocol at the other end, before a stream begins.
//! - [`frame`]: what messages of the application and reports look like on the wire.
//! - [`pacing`]: when an application may send.
//! - [`rate_control`]: TFRC beside that, if the application asks for it.
//! - [`clock`]: the offset between the clocks of two ends, and its error.
//! - [`monitor`]: what is sent and received, measured at both ends, and what they report to each other.
//! - [`violation`]: whether that is what was agreed on.
//! - [`operation`]: moves a sender inside its region of operation.
//! - [`renegotiation`]: asks for another specification when that does not help, and for the better one again.
//! - [`mib`]: all that is known of a connection, as one struct.
//! - [`authentication`]: the key that both ends may share, and the tags of messages.

pub mod authentication;
pub mod clock;
pub mod frame;
pub mod mib;
pub mod monitor;
pub mod negotiation;
pub mod operation;
pub mod pacing;
pub mod presence;
pub mod rate_control;
pub mod renegotiation;
pub mod session;
pub mod violation;
