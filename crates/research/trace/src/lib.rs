//! Writes a run as files for common tools: packets for Wireshark, interval series for flent's plotter.
//!
//! ```text
//! capture   a scenario's run, and its packets at a link as they come: the links, and the times of writing
//! pcapng    the file: interfaces, blocks, comments
//! frame     the packet: an observation of the simulator as IPv4 with TCP or UDP
//! payload   the first bytes of a datagram: headers of TFRC and UDP
//! flent     interval series as a flent data file
//! ```
//!
//! Nothing is invented that the simulator does not have: there is no handshake, no payload and no real address. Further
//! fields of a header (addresses, ports, windows) follow fixed rules, which [`pcapng`] and `docs/guide/traces.md` describe.
//! So the same seed gives the same bytes.

mod capture;
pub mod flent;
mod frame;
mod payload;
pub mod pcapng;

pub use capture::{Capture, link_named, simulate_captured, with_return};
pub use flent::FlentError;

use cutline_scenario::SimulateError;
use std::io;

/// Reason why a run's packets cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// The simulation has no result.
    #[error(transparent)]
    Simulate(#[from] SimulateError),
    /// No such link.
    #[error("there is no link `{name}`; there are: {known}")]
    UnknownLink {
        /// The requested name.
        name: String,
        /// The names of the links that exist.
        known: String,
    },
    /// A packet that IPv4 cannot carry.
    #[error(
        "a packet of flow `{flow}` has {size} bytes with its headers, more than the 65535 that IPv4 can carry"
    )]
    TooLong {
        /// The flow's name.
        flow: String,
        /// IPv4 header, TCP or UDP header and payload, bytes.
        size: usize,
    },
    /// The file cannot be written.
    #[error("{0}")]
    Io(#[from] io::Error),
}
