//! ABR, the available bit rate service of ATM (ATM Forum, Traffic Management Specification 4.0, af-tm-0056; QUANTA section 2): a source whose
//! cell rate follows the congestion that switches indicate.
//!
//! The source puts a resource management (RM) cell among its cells, one in [`Params::nrm`]. The destination returns it. A switch whose queue is
//! long sets a bit in the cells that pass it (EFCI), and the destination copies the bit of the last cell into the returned RM cell (CI). Each
//! returned RM cell changes the allowed cell rate (ACR):
//!
//! ```text
//! CI = 0    ACR := min(ACR + RIF PCR, PCR)
//! CI = 1    ACR := max(ACR - RDF ACR, MCR)
//! ```
//!
//! Worked: with PCR = 10 Mbit/s and RIF = 1/16, a source at 5 Mbit/s sends an RM cell each 32 * 424 bit / 5 Mbit/s = 2.71 ms, and each of them
//! raises the rate by 625 kbit/s, or lowers it by 312.5 kbit/s (`the_worked_example`).
//!
//! | file | contents | source |
//! | --- | --- | --- |
//! | `sender` | allowed rate, RM cells, pace | source behaviours 1 to 3, 5, 6 and 8 |
//! | `receiver` | return of RM cells | destination behaviours 1 and 2 |
//!
//! Packets are simulated, not cells:
//!
//! - The RM cells of a packet are counted, and take their time on a link of ATM: 48 B each, which are a cell. They share the packet's fate and
//!   its mark. The RM cells of a packet return in one reply.
//! - A packet leaves as a whole, and the pause behind it lasts until its cells would have left at ACR. A change of ACR changes the rest of the
//!   pause.
//! - The rate never falls below 10 cells per second, TCR. The specification permits rates down to 0, at which a source probes with RM cells
//!   out of its rate.
//!
//! Switches that change the RM cells themselves are not here: explicit rates, and the bit against increases (NI).

mod params;
mod receiver;
mod sender;
mod transport;

pub use params::Params;
pub use receiver::Receiver;
pub use sender::{Sender, Stats};
pub use transport::Abr;

use cutline_units::Instant;

/// Payload of a cell, bytes.
const CELL_PAYLOAD: u32 = 48;
/// Trailer of AAL5, bytes.
const TRAILER: u32 = 8;

/// The header of a data packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// The sequence number: 0, 1, 2, ... in the order of departure.
    pub seq: u64,
    /// Time at which the packet left.
    pub sent_at: Instant,
    /// Payload, bytes.
    pub len: u32,
    /// Number of RM cells among its cells.
    pub rm_cells: u32,
}

/// RM cells that the destination returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Feedback {
    /// Number of the cells.
    pub cells: u32,
    /// Indication of congestion (CI).
    pub is_congested: bool,
}

/// Returns the number of cells of a packet of `size` bytes, without its RM cells.
const fn cells(size: u32) -> u32 {
    (size + TRAILER).div_ceil(CELL_PAYLOAD)
}
