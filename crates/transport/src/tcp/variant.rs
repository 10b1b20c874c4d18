//! Where ns-2's TCP does otherwise than the RFCs. The defaults are the RFCs'.

use cutline_params::{Choice, Parameters};
use cutline_units::Duration;

/// How `NewReno`'s window grows by a segment a round trip in congestion avoidance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Choice)]
pub enum Avoidance {
    /// By a segment when a window of bytes has been acknowledged (RFC 5681 section 3.1, recommended).
    #[default]
    Bytes,
    /// By `mss * mss / cwnd` with each acknowledgement (RFC 5681 equation 3), as ns-2 does: half a segment ahead of the
    /// other on average, as the window need not start from a whole number of segments.
    Acknowledgements,
}

/// The window after fast recovery (RFC 6582 section 3.2, step 3, full acknowledgements).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Choice)]
pub enum FullAck {
    /// Option 1: `min(ssthresh, max(flight, mss) + mss)`, so that no burst follows.
    #[default]
    FlightPlusOne,
    /// Option 2: `ssthresh`.
    Ssthresh,
    /// `ssthresh`, or what partial acknowledgements have deflated the window to if that is less: ns-2's
    /// (`exit_recovery_fix_ 0`), from which slow start leads back to `ssthresh`. There the acknowledgement that ends
    /// recovery also makes the window grow, as any other does.
    Deflated,
}

/// What a loss halves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Choice)]
pub enum Halving {
    /// The bytes in flight (RFC 5681 equation 4); a timeout of a segment that the timer has sent before halves nothing.
    #[default]
    Flight,
    /// The congestion window, as ns-2 does. A timeout in fast recovery halves it a second time, where RFC 5681 halves
    /// the flight, which has hardly changed; each further timeout in a row leaves two segments. The threshold of slow
    /// start is cut to whole segments, the window after fast recovery is not.
    Window,
}

/// Which acknowledgements yield a sample of the round-trip time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Choice)]
pub enum RttSampling {
    /// One a round trip, for which the gains of RFC 6298 were made (its section 3).
    #[default]
    OncePerRoundTrip,
    /// One segment of new data is timed at a time, and none across a fast retransmit or a timeout: Karn's rule (RFC
    /// 6298 section 3), for which no timestamps are needed. What was sent again yields no sample, so a backed-off
    /// timeout stays until new data is acknowledged. ns-2's, whose timestamps are off.
    OneSegment,
    /// Each one that acknowledges new data: the estimate then forgets within a fraction of a window.
    EveryAck,
}

/// What ns-2 does in another way than the RFCs.
#[derive(Clone, Copy, Debug, PartialEq, Parameters)]
pub struct Variant {
    /// How the window of NewReno grows in congestion avoidance.
    #[param(default = Avoidance::Bytes, source = "RFC 5681 section 3.1; ns-2: acknowledgements")]
    pub avoidance: Avoidance,
    /// The window after fast recovery.
    #[param(default = FullAck::FlightPlusOne, source = "RFC 6582 section 3.2 option 1; ns-2: deflated")]
    pub full_ack: FullAck,
    /// What a loss halves.
    #[param(default = Halving::Flight, source = "RFC 5681 equation 4; ns-2: window")]
    pub halving: Halving,
    /// Which acknowledgements yield a sample of the round-trip time.
    #[param(default = RttSampling::OncePerRoundTrip, source = "RFC 6298 section 3; ns-2: one-segment")]
    pub rtt_sampling: RttSampling,
    /// The window grows only while it is what limits the sender.
    #[param(default = true, source = "RFC 9438 section 5.8, RFC 7661; ns-2: false")]
    pub grow_only_when_limited: bool,
    /// Limited transmit answers every duplicate outside fast recovery, also those at or below `recover`, and then sends
    /// again, too.
    #[param(default = false, source = "RFC 3042 section 2; ns-2: true")]
    pub limited_transmit_always: bool,
    /// The most segments of new data that one acknowledgement sets free in fast recovery without SACK; off is what the
    /// window allows.
    #[param(
        default = None,
        range = (1, 1000),
        unit = "packets",
        source = "RFC 6582 section 3.2 step 3 leaves it open; ns-2's `recov_maxburst_` is 2"
    )]
    pub recovery_burst: Option<u32>,
    /// The least that 4 RTTVAR adds to SRTT in the timeout, beside the clock's granularity.
    ///
    /// ns-2 averages in whole ticks and rounds down, so its 4 RTTVAR stops falling at three ticks.
    #[param(
        default = Duration::ZERO,
        range = (Duration::ZERO, Duration::from_secs(1)),
        source = "RFC 6298 section 2.3; ns-2: 30 ms"
    )]
    pub least_variation: Duration,
}

impl Variant {
    /// ns-2.35's.
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
        }
    }
}
