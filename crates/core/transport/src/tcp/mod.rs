//! TCP at segment level: the segments, windows and timers of a connection.
//!
//! Sequence numbers count bytes from 0 in 64 bits, so nothing wraps. Only one direction carries data;
//! acknowledgements are pure. FIN takes one sequence number, as in RFC 9293.
//!
//! | file | contents | source |
//! | --- | --- | --- |
//! | `sender` | acknowledgements, the timer, ECN echoes | RFC 5681, RFC 6298, RFC 3168 |
//! | `output` | segments that may leave now | RFC 5681, RFC 3042, RFC 1122 |
//! | `recovery` | fast retransmit and recovery, timeouts | RFC 6582, RFC 6675, RFC 6298 section 5 |
//! | `scoreboard` | data that the receiver has selectively acknowledged | RFC 6675 |
//! | `rack`, `prr` | losses found by time, probes, and the window in recovery | RFC 8985, RFC 6937 |
//! | `rack::paced`, `delivery` | departures at a rate, and samples of the delivery rate | draft-ietf-ccwg-bbr |
//! | `rtt` | smoothed round-trip time and timeout | RFC 6298 |
//! | `newreno`, `cubic`, `dctcp` | how the window grows and shrinks | RFC 5681, RFC 9438, RFC 8257 |
//! | `prague` | the same, paced, and less dependent on the round trip | draft-briscoe-iccrg-prague-congestion-control |
//! | `ledbat` | the same for background traffic, by the delay that it adds | RFC 6817 |
//! | `bbr`, `bbr::v3` | a model of the path sets window and rate | Cardwell et al. 2016, draft-ietf-ccwg-bbr |
//! | `congestion`, `control`, `external` | their interface, their list, those of other crates | |
//! | `receiver` | reassembly, acknowledgements, ECN echo | RFC 5681 section 4.2, RFC 2018, RFC 3168, RFC 7323 |
//!
//! Not modelled: the three-way handshake (the connection exists from the first segment), urgent data, a receiver whose
//! window closes ([`Params::max_window`] is a constant limit), reneging, path MTU discovery.

mod bbr;
mod congestion;
mod control;
mod cubic;
mod cubic_whole;
mod dctcp;
mod delivery;
mod external;
mod hystart;
mod ledbat;
mod newreno;
mod output;
mod params;
mod prague;
mod prr;
mod rack;
mod receiver;
mod recovery;
mod rtt;
mod scoreboard;
mod sender;
mod transport;
mod variant;

pub use bbr::{Bbr, Bbr3};
pub use congestion::{
    Acked, Acknowledgement, CongestionAlgorithm, CongestionControl, ControlDescription, NoParams, Window,
};
pub(crate) use control::Control;
pub use control::{Algorithm, congestion_controls, register_congestion_control, register_external_control};
pub use cubic::Cubic;
pub use dctcp::Dctcp;
pub use delivery::{LossState, LostSegment, RateSample};
pub use external::{DynControl, ExternalAlgorithm};
pub use ledbat::{Ledbat, LedbatParams};
pub use newreno::NewReno;
pub use params::{InitialWindow, Params};
pub use prague::Prague;
pub use receiver::{Receiver, ReceiverStats};
pub use rtt::RttEstimator;
pub use sender::{Sender, Stats};
pub use transport::Tcp;
pub use variant::{Avoidance, FullAck, Halving, RttSampling, Variant};

use cutline_units::Instant;

/// The header of a data segment: 24 bytes, `Copy`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The sequence number of the first byte.
    pub seq: u64,
    /// Time at which the segment left: the value of the timestamp option (RFC 7323).
    pub sent_at: Instant,
    /// Payload without FIN, bytes.
    pub len: u32,
    /// True if it carries bytes that were sent before. Such segments are not ECN-capable (RFC 3168 section
    /// 6.1.5).
    pub retransmission: bool,
    /// True if it is the first new segment after a reduction of the window (RFC 3168 section 6.1.2).
    pub cwr: bool,
    /// True if its last byte is the connection's last. FIN takes one sequence number.
    pub fin: bool,
}

impl Segment {
    /// Returns the sequence number after this segment.
    pub const fn end(&self) -> u64 {
        self.seq + self.len as u64 + self.fin as u64
    }
}

/// The header of an acknowledgement: 48 bytes, `Copy`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack {
    /// The next sequence number expected: everything below has arrived.
    pub ack: u64,
    /// The timestamp echoed (RFC 7323 section 4.3).
    pub echo: Instant,
    /// Blocks that have arrived beyond `ack`, when SACK is in use.
    pub sack: SackBlocks,
    /// ECN echo: a segment was marked (RFC 3168 section 6.1.3).
    pub ece: bool,
    /// Count of marked segments that have arrived, modulo 2^32. It is the counter of accurate ECN (RFC 9768 section 3.2.2), of which
    /// the header has three bits.
    pub marked: u32,
}

/// Up to three ranges that the receiver holds beyond the acknowledgement, the most recent first
/// (RFC 2018 section 4). No more fit next to a timestamp option.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlocks {
    /// First byte and byte after the last, as offsets from the acknowledgement; an empty block is (0, 0).
    blocks: [(u32, u32); 3],
}

impl SackBlocks {
    /// No blocks.
    pub const NONE: Self = Self { blocks: [(0, 0); 3] };

    /// Creates blocks from the first three of `ranges`, which are sequence numbers beyond `ack`.
    pub fn from_ranges(ack: u64, ranges: impl IntoIterator<Item = (u64, u64)>) -> Self {
        let mut sack = Self::NONE;
        for (block, (start, end)) in sack.blocks.iter_mut().zip(ranges) {
            debug_assert!(ack < start && start < end, "SACK block {start}..{end} is not beyond {ack}");
            // Blocks more than 4 GB ahead are left out. The sender learns of them later.
            if let (Ok(start), Ok(end)) = (u32::try_from(start - ack), u32::try_from(end - ack)) {
                *block = (start, end);
            }
        }
        sack
    }

    /// Returns the ranges as sequence numbers, the most recent first.
    pub fn ranges(self, ack: u64) -> impl Iterator<Item = (u64, u64)> {
        let filled = self.blocks.into_iter().filter(|block| block.1 != 0);
        filled.map(move |(start, end)| (ack + u64::from(start), ack + u64::from(end)))
    }

    /// Copies the blocks one by one, so that an acknowledgement without blocks, which is the common case, stays in
    /// registers.
    #[inline]
    const fn by_block(self) -> Self {
        let Self { blocks: [first, second, third] } = self;
        Self { blocks: [first, second, third] }
    }

    /// Returns whether there is no block.
    pub const fn is_empty(&self) -> bool {
        self.blocks[0].1 == 0
    }
}
