//! The protocols of the end system. Each is sans-IO: messages and deadlines come in, messages and events go out. It reads no
//! clock, opens no socket, and takes its random numbers from the caller, so the same object works in a socket and as an agent
//! in the simulator.
//!
//! - [`session`]: one end of a connection: all of the following together.
//! - [`negotiation`]: both ends of a connection agree on its specification.
//! - [`presence`]: detection of this protocol at the peer, before a stream begins.
//! - [`frame`]: the format of the application's messages and of reports on the wire.
//! - [`pacing`]: the times at which an application may send.
//! - [`rate_control`]: TFRC beside that, if the application requests it.
//! - [`clock`]: the offset between the clocks of two ends, and its error.
//! - [`monitor`]: measures of the traffic sent and received at both ends, and the reports between them.
//! - [`violation`]: detection of violations of the agreement.
//! - [`operation`]: moves a sender inside its region of operation.
//! - [`renegotiation`]: requests another specification when that does not help, and for the better one again.
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
