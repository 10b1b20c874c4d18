//! Links of ATM with AAL5: packets in cells of 53 B, of which 48 B are payload (ITU-T I.361, I.363.5; QUANTA section 2).
//!
//! A packet longer than a CSPDU (the PDU of AAL5's convergence sublayer) is cut into several. A CSPDU gets a trailer of 8 B and is padded to
//! whole cells. The header of RFC 2684 identifies the protocol of an IP packet; the paper's "direct" connections have none, since they are
//! circuits of their own (`encapsulation = 0`).
//!
//! ```text
//! cells(b) = ceil((b + encapsulation + 8) / 48) for each CSPDU, bytes on the link = 53 cells
//! ```
//!
//! A CSPDU that lacks a cell is discarded as a whole, and so is the packet that lacks a CSPDU (QUANTA section 2, queues Q3 and Q4). Cells are
//! lost by an impairment whose `unit` is `cell`: with independent losses with probability p, a packet of n cells is lost with probability
//! 1 - (1 - p)^n.
//!
//! Worked: a CSPDU of 9148 B without encapsulation has 191 cells, 10,123 B. With p = 1e-4 it is lost with probability 1.89 %, and a block of
//! 64 KB, eight CSPDUs with 1,369 cells, with 12.8 %.
//!
//! A connection with a constant bit rate (CBR) is a link of the requested rate in front of the shared one: its queue is Q1 of the paper. A
//! connection with an available bit rate (ABR) has no such link. Hosts of 1995 did not adapt to feedback; one that does is a flow of the
//! transport `abr` (`cutline_transport::abr`), and `efci` is the threshold of the switch. Not here: explicit rates, and queues that drop
//! single cells; a full queue drops packets, as with early packet discard.

use cutline_params::Parameters;
use cutline_units::{Bytes, Rate};

/// A cell and its payload, B.
const CELL: u32 = 53;
const CELL_PAYLOAD: u32 = 48;
/// The trailer of a CSPDU, B.
const TRAILER: u32 = 8;

/// The parameters of AAL5 on a link.
#[derive(Clone, Debug, PartialEq, Parameters)]
pub struct Aal5Params {
    /// The longest CSPDU without its trailer; longer packets are cut.
    #[param(default = Bytes::new(9148), range = (48, 65_535), unit = "B", source = "QUANTA section 2; RFC 2225: 9188")]
    pub cspdu: Bytes,
    /// The header that identifies the protocol in each CSPDU.
    #[param(default = Bytes::new(8), range = (0, 40), unit = "B", source = "RFC 2684 section 5: LLC and SNAP")]
    pub encapsulation: Bytes,
    /// Backlog, in cells of payload, above which arriving cells get the indication of congestion (EFCI), to which `abr` and all transports with
    /// ECN respond; off is never.
    #[param(default = None, range = (0, 1_000_000), unit = "cells", source = "off: CBR does not respond")]
    pub efci: Option<u32>,
}

impl Aal5Params {
    /// Returns the number of cells of a packet of `size` bytes.
    pub const fn cells(&self, size: u32) -> u32 {
        let (longest, encapsulation) = (self.cspdu.get() as u32, self.encapsulation.get() as u32);
        let (whole, rest) = (size / longest, size % longest);
        let of_whole = (longest + encapsulation + TRAILER).div_ceil(CELL_PAYLOAD);
        let of_rest = if rest == 0 { 0 } else { (rest + encapsulation + TRAILER).div_ceil(CELL_PAYLOAD) };
        whole * of_whole + of_rest
    }

    /// Returns the bytes that a packet of `size` bytes occupies on the link.
    pub const fn on_link(&self, size: u32) -> u32 {
        self.cells(size) * CELL
    }

    /// Returns whether cells that find this backlog get the indication of congestion.
    pub fn indicates_congestion(&self, backlog: Bytes) -> bool {
        self.efci.is_some_and(|cells| backlog.get() > u64::from(cells) * u64::from(CELL_PAYLOAD))
    }

    /// Returns the payload of cells per second of a link of this rate: the largest service rate of a queue.
    pub fn payload_rate(rate: Rate) -> Rate {
        Rate::from_bps((u128::from(rate.as_bps()) * u128::from(CELL_PAYLOAD) / u128::from(CELL)) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutline_params::{ParameterValue, conformance};

    fn direct() -> Aal5Params {
        Aal5Params { encapsulation: Bytes::ZERO, ..Aal5Params::default() }
    }

    #[test]
    fn packets_fill_whole_cells() {
        let cells = |size: u32| (direct().cells(size), Aal5Params::default().cells(size));
        // An acknowledgement of 40 B fits one cell with its trailer, and two with the header of RFC 2684.
        assert_eq!(cells(40), (1, 2));
        assert_eq!(cells(41), (2, 2));
        assert_eq!([direct().cells(9148), direct().on_link(9148)], [191, 10_123]);
        // 64 KB: seven CSPDUs of 9148 B, and 1500 B in 32 cells.
        assert_eq!(direct().cells(65_536), 7 * 191 + 32);
        assert_eq!(direct().cells(9149), 191 + 1);
        assert_eq!(Aal5Params::payload_rate(Rate::from_mbps(53)), Rate::from_mbps(48));
    }

    #[test]
    fn a_backlog_above_the_threshold_indicates_congestion() {
        let params = Aal5Params { efci: Some(100), ..direct() };
        let indicates = |bytes| params.indicates_congestion(Bytes::new(bytes));
        assert_eq!([0, 4800, 4801].map(indicates), [false, false, true]);
        assert!(!direct().indicates_congestion(Bytes::new(1_000_000)));
    }

    #[test]
    fn the_parameters_are_described_and_bad_ones_refused() {
        let parameters = Aal5Params::describe();
        let make = |values: &[(&str, ParameterValue)]| {
            Aal5Params::from_values(values.iter().map(|(name, value)| (*name, value.clone())))
                .map(|params| params.values())
        };
        conformance::parameters_are_complete("aal5", &parameters);
        conformance::defaults_are_what_the_description_says("aal5", &parameters, &make);
        conformance::bad_parameters_are_refused_by_name("aal5", &parameters, &make);
    }
}
