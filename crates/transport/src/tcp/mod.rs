//! TCP at segment level: what a connection does to a network, byte for byte and timer for timer.
//!
//! Sequence numbers count bytes from 0 in 64 bits, so nothing wraps. Only one direction carries data;
//! acknowledgements are pure. FIN takes one sequence number, as in RFC 9293.
//!
//! | file | what | source |
//! | --- | --- | --- |
//! | `sender` | acknowledgements, the timer, ECN echoes | RFC 5681, 6298, 3168 |
//! | `output` | what may leave now | RFC 5681, 3042, 1122 |
//! | `recovery` | fast retransmit and recovery, timeouts | RFC 6582, 6675, 6298 section 5 |
//! | `scoreboard` | what the receiver has selectively acknowledged | RFC 6675 |
//! | `rtt` | smoothed round-trip time and timeout | RFC 6298 |
//! | `newreno`, `cubic`, `dctcp` | how the window grows and shrinks | RFC 5681, 9438, 8257 |
//! | `congestion`, `control`, `external` | their interface, their list, those of other crates | |
//! | `receiver` | reassembly, acknowledgements, ECN echo | RFC 5681 section 4.2, 2018, 3168, 7323 |
//!
//! Not modelled: the three-way handshake (the connection exists from the first segment), urgent data, a
//! receiver whose window closes (see [`Params::max_window`] for one that limits), reneging, path MTU discovery.

mod congestion;
mod control;
mod cubic;
mod dctcp;
mod external;
mod newreno;
mod output;
mod params;
mod receiver;
mod recovery;
mod rtt;
mod scoreboard;
mod sender;
mod transport;
mod variant;

pub use congestion::{Acked, Acknowledgement, CongestionAlgorithm, CongestionControl, NoParams, Window};
pub(crate) use control::Control;
pub use control::{Algorithm, ControlDescription, congestion_controls};
pub use cubic::Cubic;
pub use dctcp::Dctcp;
pub use external::{DynControl, ExternalAlgorithm, register_congestion_control, register_external_control};
pub use newreno::NewReno;
pub use params::{InitialWindow, Params};
pub use receiver::{Receiver, ReceiverStats};
pub use rtt::RttEstimator;
pub use sender::{Sender, Stats};
pub use transport::Tcp;
pub use variant::{Avoidance, FullAck, Halving, RttSampling, Variant};

use cutline_units::Instant;

/// A data segment on its way to the receiver: 24 bytes, `Copy`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The sequence number of the first byte.
    pub seq: u64,
    /// When it left: the timestamp option's value (RFC 7323).
    pub sent_at: Instant,
    /// Payload, bytes. FIN is not counted.
    pub len: u32,
    /// It carries bytes that were sent before. Such segments are not ECN-capable (RFC 3168 section 6.1.5).
    pub retransmission: bool,
    /// The sender has reduced its window since it heard of congestion (RFC 3168 section 6.1.2).
    pub cwr: bool,
    /// Nothing follows the last byte of this segment; takes one sequence number.
    pub fin: bool,
}

impl Segment {
    /// The sequence number after this segment.
    pub const fn end(&self) -> u64 {
        self.seq + self.len as u64 + self.fin as u64
    }
}

/// An acknowledgement on its way to the sender: 48 bytes, `Copy`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack {
    /// The next sequence number expected: all below has arrived.
    pub ack: u64,
    /// The timestamp echoed (RFC 7323 section 4.3).
    pub echo: Instant,
    /// What has arrived beyond `ack`, when SACK is in use.
    pub sack: SackBlocks,
    /// Congestion was marked (RFC 3168 section 6.1.3).
    pub ece: bool,
}

/// Up to three ranges that the receiver holds beyond the acknowledgement, the most recent first (RFC 2018
/// section 4). Three is what fits beside a timestamp option.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlocks {
    /// First byte and byte after the last, as offsets from the acknowledgement; an empty block is (0, 0).
    blocks: [(u32, u32); 3],
}

impl SackBlocks {
    /// No range.
    pub const NONE: Self = Self { blocks: [(0, 0); 3] };

    /// The first three of `ranges`, absolute and beyond `ack`.
    pub fn from_ranges(ack: u64, ranges: impl IntoIterator<Item = (u64, u64)>) -> Self {
        let mut sack = Self::NONE;
        for (block, (start, end)) in sack.blocks.iter_mut().zip(ranges) {
            debug_assert!(ack < start && start < end, "SACK block {start}..{end} is not beyond {ack}");
            // A window beyond 4 GB leaves its farthest blocks out; the sender then learns of them later.
            if let (Ok(start), Ok(end)) = (u32::try_from(start - ack), u32::try_from(end - ack)) {
                *block = (start, end);
            }
        }
        sack
    }

    /// The ranges, absolute, the most recent first.
    pub fn ranges(self, ack: u64) -> impl Iterator<Item = (u64, u64)> {
        let filled = self.blocks.into_iter().filter(|block| block.1 != 0);
        filled.map(move |(start, end)| (ack + u64::from(start), ack + u64::from(end)))
    }

    /// The same, copied block by block, so that the blocks of the common acknowledgement without any stay in registers.
    #[inline]
    const fn by_block(self) -> Self {
        let Self { blocks: [first, second, third] } = self;
        Self { blocks: [first, second, third] }
    }

    /// Whether there is no range.
    pub const fn is_empty(&self) -> bool {
        self.blocks[0].1 == 0
    }
}
