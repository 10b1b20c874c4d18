//! The parameters for the points at which the TCP of ns-2 or of Linux differs from the RFCs. The defaults follow the RFCs.

use cutline_params::{Choice, Parameters};
use cutline_units::Duration;

/// Growth of `NewReno`'s window by a segment per round trip in congestion avoidance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Choice)]
pub enum Avoidance {
    /// By a segment when a window of bytes has been acknowledged, as RFC 5681 section 3.1 recommends.
    #[default]
    Bytes,
    /// By `mss * mss / cwnd` with each acknowledgement (RFC 5681 eq. 3), as in ns-2. The window is half a segment larger on
    /// average, because it grows before the whole window has been acknowledged.
    Acknowledgements,
}

/// The window after fast recovery (full acknowledgements in RFC 6582 section 3.2, step 3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Choice)]
pub enum FullAck {
    /// Option 1: `min(ssthresh, max(flight, mss) + mss)`, which prevents a burst.
    #[default]
    FlightPlusOne,
    /// Option 2: `ssthresh`.
    Ssthresh,
    /// Option 2, and the acknowledgement that ends recovery makes the window grow as any other does, by all that it delivers, as in
    /// Linux.
    SsthreshAndGrowth,
    /// `ssthresh`, or the window that partial acknowledgements have deflated if that is less, as in ns-2
    /// (`exit_recovery_fix_ 0`). Slow start then leads back to `ssthresh`. The acknowledgement that ends recovery also
    /// makes the window grow, as any other does.
    Deflated,
}

/// Quantity that a loss halves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Choice)]
pub enum Halving {
    /// The bytes in flight (RFC 5681 eq. 4). A second timeout of the same segment halves nothing.
    #[default]
    Flight,
    /// The congestion window, as in ns-2. A timeout in fast recovery halves it a second time; RFC 5681 halves the flight,
    /// which has hardly changed. Each further timeout in a row leaves two segments. The threshold of slow start is
    /// truncated to whole segments; the window after fast recovery is not.
    Window,
    /// The congestion window, once for all that was outstanding when the loss was found, as in Linux: a timeout in fast recovery, and
    /// each further one in a row, halves nothing.
    WindowOnce,
}

/// Acknowledgements that yield a sample of the round-trip time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Choice)]
pub enum RttSampling {
    /// One per round trip, for which the gains of the averages are meant (RFC 6298 section 3).
    #[default]
    OncePerRoundTrip,
    /// The sender times one segment of new data at a time, and none across a fast retransmit or a timeout. This is Karn's
    /// algorithm (RFC 6298 section 3), which needs no timestamps. Retransmissions yield no sample, so a backed-off timeout
    /// stays until new data is acknowledged. ns-2 does this, because its timestamps are off.
    OneSegment,
    /// Each one that acknowledges new data. The estimate then remembers less than a window.
    EveryAck,
    /// Each one that acknowledges new data, and RTTVAR is the largest deviation of a round trip, as in Linux
    /// ([`RttEstimator`](super::RttEstimator)).
    Peaks,
}

/// Parameters for the points at which ns-2 or Linux differs from the RFCs.
#[derive(Clone, Copy, Debug, PartialEq, Parameters)]
pub struct Variant {
    /// Growth of NewReno's window in congestion avoidance.
    #[param(default = Avoidance::Bytes, source = "RFC 5681 section 3.1; ns-2: acknowledgements")]
    pub avoidance: Avoidance,
    /// The window after fast recovery.
    #[param(default = FullAck::FlightPlusOne, source = "RFC 6582 section 3.2 option 1; ns-2: deflated; Linux: ssthresh-and-growth")]
    pub full_ack: FullAck,
    /// Quantity that a loss halves.
    #[param(default = Halving::Flight, source = "RFC 5681 eq. 4; ns-2: window; Linux: window-once")]
    pub halving: Halving,
    /// Acknowledgements that yield a sample of the round-trip time.
    #[param(default = RttSampling::OncePerRoundTrip, source = "RFC 6298 section 3; ns-2: one-segment; Linux: peaks")]
    pub rtt_sampling: RttSampling,
    /// The window grows only while it limits the sender.
    #[param(default = true, source = "RFC 9438 section 5.8; ns-2: false")]
    pub grow_only_when_limited: bool,
    /// Limited transmit responds to every duplicate outside fast recovery, also to those at or below `recover`. After a
    /// timeout it then retransmits old data, too.
    #[param(default = false, source = "RFC 3042 section 2; ns-2: true")]
    pub limited_transmit_always: bool,
    /// The most segments of new data that one acknowledgement releases in fast recovery without SACK; off is as many as
    /// the window allows.
    #[param(
        default = None,
        range = (1, 1000),
        unit = "packets",
        source = "RFC 6582 section 3.2 has no limit; ns-2's `recov_maxburst_` is 2"
    )]
    pub recovery_burst: Option<u32>,
    /// The least value of the term 4 RTTVAR in the timeout, if it is more than the clock's granularity.
    ///
    /// ns-2 averages in whole ticks and rounds down, so its 4 RTTVAR never falls below three ticks. Linux keeps it at 200 ms or more, which
    /// spares it most timeouts where round trips vary with a queue.
    #[param(
        default = Duration::ZERO,
        range = (Duration::ZERO, Duration::from_secs(1)),
        source = "RFC 6298 section 2.3; ns-2: 30 ms; Linux: 200 ms"
    )]
    pub least_variation: Duration,
    /// A loss leaves a threshold of whole segments, rounded down.
    ///
    /// Linux counts its window in segments. In bytes, half of seven segments sends three, but must acknowledge three and a half before it
    /// sends four. With windows below ten segments that is a tenth of the growth.
    #[param(default = false, source = "RFC 5681 eq. 4 is in bytes; Linux: true")]
    pub whole_segments: bool,
}

impl Variant {
    /// Returns the behaviour of Linux 6.
    pub const fn linux() -> Self {
        Self {
            avoidance: Avoidance::Bytes,
            full_ack: FullAck::SsthreshAndGrowth,
            halving: Halving::WindowOnce,
            rtt_sampling: RttSampling::Peaks,
            grow_only_when_limited: true,
            limited_transmit_always: false,
            recovery_burst: None,
            least_variation: Duration::from_millis(200),
            whole_segments: true,
        }
    }

    /// Returns the values of ns-2.35.
    pub const fn ns2() -> Self {
        Self {
            avoidance: Avoidance::Acknowledgements,
            full_ack: FullAck::Deflated,
            halving: Halving::Window,
            rtt_sampling: RttSampling::OneSegment,
            grow_only_when_limited: false,
            limited_transmit_always: true,
            recovery_burst: Some(2),
            least_variation: Duration::from_millis(30),
            whole_segments: false,
        }
    }
}
