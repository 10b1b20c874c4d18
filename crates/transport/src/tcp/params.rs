//! What is set for a TCP connection, with defaults from the RFCs; [`Params::ns2`] has those of ns-2.35.

use crate::ParamError;
use crate::error::require;
use cutline_units::{Bytes, Duration};

use super::Segment;

/// How the window grows and shrinks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Algorithm {
    /// RFC 5681: one segment a round trip, half at a loss.
    #[default]
    NewReno,
    /// RFC 9438: a cubic of the time since the last loss, 0.7 at a loss.
    Cubic,
}

/// How `NewReno`'s window grows by a segment a round trip in congestion avoidance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Avoidance {
    /// By a segment when a window of bytes has been acknowledged (RFC 5681 3.1, recommended).
    #[default]
    Bytes,
    /// By `mss * mss / cwnd` with each acknowledgement (RFC 5681 eq. 3), as ns-2 does: half a segment ahead of the
    /// other on average, as the window need not start from a whole number of segments.
    Acknowledgements,
}

/// The congestion window before the first acknowledgement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InitialWindow {
    /// RFC 6928: `min(10 mss, max(2 mss, 14,600 B))`.
    #[default]
    Rfc6928,
    /// RFC 3390: `min(4 mss, max(2 mss, 4,380 B))`.
    Rfc3390,
    /// This many segments; ns-2's `windowInit_` is 2.
    Segments(u32),
}

/// The window after fast recovery (RFC 6582 section 3.2, step 3, full acknowledgements).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Halving {
    /// The bytes in flight (RFC 5681 eq. 4); a timeout of a segment that the timer has sent before halves nothing.
    #[default]
    Flight,
    /// The congestion window, as ns-2 does. A timeout in fast recovery
    /// halves it a second time, where RFC 5681 halves the flight, which has hardly changed; each further timeout in a
    /// row leaves two segments. The threshold of slow start is cut to whole segments, the window after fast recovery is not.
    Window,
}

/// Which acknowledgements yield a sample of the round-trip time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RttSampling {
    /// One a round trip, for which the gains of RFC 6298 were made (its section 3).
    #[default]
    OncePerRoundTrip,
    /// One segment of new data is timed at a time, and none across a fast retransmit or a timeout: Karn's rule (RFC
    /// 6298 3), for which no timestamps are needed. What was sent again yields no sample, so a backed-off timeout stays
    /// until new data is acknowledged. ns-2's, whose timestamps are off.
    OneSegment,
    /// Each one that acknowledges new data: the estimate then forgets within a fraction of a window.
    EveryAck,
}

/// What is set for a TCP connection. `Copy`; share one behind an `Arc` among all its connections.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each is an independent option of an RFC or of ns-2")]
pub struct Params {
    /// Largest payload of a segment, bytes, 1..65,535. Default 1000, the papers' packet.
    pub mss: u32,
    /// Bytes on the wire beside the payload, 0..1000. Default 40 (IPv4 and TCP without options). The papers'
    /// "1000 B packets" are ns-2's, whose packets have 1000 B on the wire, all told: set 0 for those.
    pub header_bytes: u32,
    /// An acknowledgement on the wire, bytes, 1..1500. Default 40.
    pub ack_bytes: u32,
    /// How the window grows and shrinks. Default `NewReno`.
    pub algorithm: Algorithm,
    /// How the window of `NewReno` grows in congestion avoidance. Default by bytes.
    pub avoidance: Avoidance,
    /// The window before the first acknowledgement. Default RFC 6928.
    pub initial_window: InitialWindow,
    /// The receiver's window, bytes, at least one mss; `None` (default) never limits. ns-2's `window_` is 20
    /// segments, which holds a flow to 20 segments a round trip whatever the network offers.
    pub max_window: Option<u64>,
    /// Slow start's first end, bytes, at least 2 mss; `None` (default) is "arbitrarily high" (RFC 5681 3.1).
    pub initial_ssthresh: Option<u64>,
    /// Selective acknowledgements and RFC 6675 recovery instead of RFC 6582's. Default false.
    pub sack: bool,
    /// A new segment for each of the first two duplicate acknowledgements (RFC 3042). Default true; ns-2's
    /// `singledup_ 1` too.
    pub limited_transmit: bool,
    /// Limited transmit answers every duplicate outside fast recovery, also those at or below `recover`, which come when
    /// a timeout has sent again what the receiver holds; it then sends again, too. Default false: RFC 3042 2 sends what
    /// was never sent before, and only where three duplicates would tell of a loss. ns-2 does: true.
    pub limited_transmit_always: bool,
    /// Segments are ECN-capable and marks are answered (RFC 3168). Default false.
    pub ecn: bool,
    /// How long an acknowledgement may be held back for a second segment (RFC 5681 4.2), at most 500 ms.
    /// `None` (default) acknowledges each segment at once, as ns-2's `TCPSink` does; RFC 1122's usual is 200 ms.
    pub delayed_ack: Option<Duration>,
    /// Slow start grows by at most this many segments an acknowledgement, 1..100: the L of RFC 3465. Default
    /// 1 (RFC 5681 eq. 2).
    pub abc_limit: u32,
    /// An idle time beyond one RTO takes the window back to the initial one (RFC 5681 4.1). Default true;
    /// ns-2's `slow_start_restart_ true` too.
    pub idle_restart: bool,
    /// The window grows only while it is what limits the sender (RFC 9438 5.8, RFC 7661). Default true; ns-2
    /// grows it regardless.
    pub grow_only_when_limited: bool,
    /// A small segment waits while data is outstanding (RFC 1122 4.2.3.4, Nagle). Default false.
    pub nagle: bool,
    /// The window after fast recovery. Default option 1 of RFC 6582.
    pub full_ack: FullAck,
    /// What a loss halves. Default the flight.
    pub halving: Halving,
    /// Only the first partial acknowledgement restarts the timer (RFC 6582 3.2 step 3; RFC 3782 4 calls it "Impatient"). Default
    /// true; ns-2's `newreno_changes1_ 1` too. False is "Slow-but-Steady" (RFC 3782 4).
    pub impatient: bool,
    /// The most segments of new data that one acknowledgement sets free in fast recovery without SACK, 1..1000: the
    /// limit on bursts of RFC 6582 3.2 step 3, which leaves it to the sender. `None` (default): what the window
    /// allows. ns-2's `recov_maxburst_` is 2.
    pub recovery_burst: Option<u32>,
    /// Duplicates at or below `recover` still count when the window is over one segment and the last
    /// acknowledgement moved by at most 4 (RFC 6582 4.1). Default false; ns-2's `bugFix_ack_ false` too.
    pub ack_heuristic: bool,
    /// What the timeout is before the first sample. Default 1 s (RFC 6298 2.1); ns-2's `rtxcur_init_` is 3 s.
    pub initial_rto: Duration,
    /// The least timeout. Default 1 s (RFC 6298 2.4); ns-2's `minrto_` is 0.2 s.
    pub min_rto: Duration,
    /// The largest timeout, at least `min_rto`. Default 60 s (RFC 6298 2.5), ns-2's `maxrto_` too.
    pub max_rto: Duration,
    /// The granularity G of the clock that times round trips (RFC 6298), over 0, at most 1 s. Samples are
    /// rounded to it. Default 1 ms; ns-2's `tcpTick_` is 10 ms.
    pub clock_granularity: Duration,
    /// The least that 4 RTTVAR adds to SRTT in the timeout, beside the clock's granularity (RFC 6298 2.3), at most
    /// 1 s. Default 0. ns-2 averages in whole ticks and rounds down, so its 4 RTTVAR stops falling at three ticks: 30 ms.
    pub least_variation: Duration,
    /// Which acknowledgements yield a sample. Default one a round trip.
    pub rtt_sampling: RttSampling,
    /// How many bytes that have never been sent may wait. A write that does not fit is refused whole, so the
    /// delay of a constant-rate source over a slow path stays bounded. `None` (default): no bound.
    pub send_buffer: Option<u64>,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            mss: 1000,
            header_bytes: 40,
            ack_bytes: 40,
            algorithm: Algorithm::NewReno,
            avoidance: Avoidance::Bytes,
            initial_window: InitialWindow::Rfc6928,
            max_window: None,
            initial_ssthresh: None,
            sack: false,
            limited_transmit: true,
            limited_transmit_always: false,
            ecn: false,
            delayed_ack: None,
            abc_limit: 1,
            idle_restart: true,
            grow_only_when_limited: true,
            nagle: false,
            full_ack: FullAck::FlightPlusOne,
            halving: Halving::Flight,
            impatient: true,
            recovery_burst: None,
            ack_heuristic: false,
            initial_rto: Duration::from_secs(1),
            min_rto: Duration::from_secs(1),
            max_rto: Duration::from_secs(60),
            clock_granularity: Duration::from_millis(1),
            least_variation: Duration::ZERO,
            rtt_sampling: RttSampling::OncePerRoundTrip,
            send_buffer: None,
        }
    }
}

impl Params {
    /// The defaults of ns-2.35's `Agent/TCP/Newreno` and `Agent/TCPSink` (`ns-default.tcl`): `packetSize_ 1000`
    /// counted on the wire without headers, `window_ 20`, `windowInit_ 2`, `singledup_ 1`, `minrto_ 0.2`,
    /// `maxrto_ 60`, `rtxcur_init_ 3`, `tcpTick_ 0.01`, `slow_start_restart_ true`, `exit_recovery_fix_ 0`,
    /// `newreno_changes1_ 1`, `recov_maxburst_ 2`, sinks that acknowledge each packet with 40 B.
    ///
    /// What still differs: ns-2 sends a SYN first (`syn_ true`), so a flow begins a round trip later and with a sample.
    pub fn ns2() -> Self {
        Self {
            header_bytes: 0,
            avoidance: Avoidance::Acknowledgements,
            initial_window: InitialWindow::Segments(2),
            max_window: Some(20 * 1000),
            grow_only_when_limited: false,
            full_ack: FullAck::Deflated,
            halving: Halving::Window,
            recovery_burst: Some(2),
            limited_transmit_always: true,
            initial_rto: Duration::from_secs(3),
            min_rto: Duration::from_millis(200),
            clock_granularity: Duration::from_millis(10),
            least_variation: Duration::from_millis(30),
            rtt_sampling: RttSampling::OneSegment,
            ..Self::default()
        }
    }

    /// Checks every field against its range.
    ///
    /// # Errors
    /// The first field that is out of range, with its value and what is allowed.
    pub fn validate(&self) -> Result<(), ParamError> {
        require((1..=65_535).contains(&self.mss), "mss", self.mss, "1..65535 bytes")?;
        require(self.header_bytes <= 1000, "header_bytes", self.header_bytes, "0..1000 bytes")?;
        require((1..=1500).contains(&self.ack_bytes), "ack_bytes", self.ack_bytes, "1..1500 bytes")?;
        require((1..=100).contains(&self.abc_limit), "abc_limit", self.abc_limit, "1..100 segments")?;
        self.validate_windows()?;
        self.validate_timers()
    }

    fn validate_windows(&self) -> Result<(), ParamError> {
        let mss = u64::from(self.mss);
        if let InitialWindow::Segments(n) = self.initial_window {
            require((1..=1000).contains(&n), "initial_window", n, "1..1000 segments")?;
        }
        if let Some(n) = self.recovery_burst {
            require((1..=1000).contains(&n), "recovery_burst", n, "1..1000 segments")?;
        }
        if let Some(bytes) = self.max_window {
            require(bytes >= mss, "max_window", bytes, "at least one mss, in bytes")?;
        }
        if let Some(bytes) = self.initial_ssthresh {
            require(bytes >= 2 * mss, "initial_ssthresh", bytes, "at least two mss, in bytes")?;
        }
        if let Some(bytes) = self.send_buffer {
            require(bytes > 0, "send_buffer", bytes, "at least one byte")?;
        }
        Ok(())
    }

    fn validate_timers(&self) -> Result<(), ParamError> {
        let (granularity, hour) = (self.clock_granularity, Duration::from_secs(3600));
        if let Some(delay) = self.delayed_ack {
            let allowed = !delay.is_zero() && delay <= Duration::from_millis(500);
            require(allowed, "delayed_ack", delay, "over 0, at most 500 ms (RFC 5681 4.2)")?;
        }
        let fine = !granularity.is_zero() && granularity <= Duration::from_secs(1);
        require(fine, "clock_granularity", granularity, "over 0, at most 1 s")?;
        let least = self.least_variation;
        require(least <= Duration::from_secs(1), "least_variation", least, "at most 1 s")?;
        require(!self.min_rto.is_zero(), "min_rto", self.min_rto, "over 0")?;
        let bounded = self.min_rto <= self.max_rto && self.max_rto <= hour;
        require(bounded, "max_rto", self.max_rto, "at least min_rto, at most 1 hour")?;
        let initial = !self.initial_rto.is_zero() && self.initial_rto <= self.max_rto;
        require(initial, "initial_rto", self.initial_rto, "over 0, at most max_rto")
    }

    /// The initial window, bytes.
    pub fn initial_window_bytes(&self) -> u64 {
        let mss = u64::from(self.mss);
        match self.initial_window {
            InitialWindow::Rfc6928 => (10 * mss).min((2 * mss).max(14_600)),
            InitialWindow::Rfc3390 => (4 * mss).min((2 * mss).max(4_380)),
            InitialWindow::Segments(n) => u64::from(n) * mss,
        }
    }

    /// A segment's size on the wire.
    pub const fn wire_bytes(&self, segment: &Segment) -> Bytes {
        Bytes::new(segment.len as u64 + self.header_bytes as u64)
    }

    /// Whether a router may mark this segment instead of dropping it: never a retransmission (RFC 3168 6.1.5).
    pub const fn ecn_capable(&self, segment: &Segment) -> bool {
        self.ecn && !segment.retransmission
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_valid() {
        assert_eq!(Params::default().validate(), Ok(()));
        assert_eq!(Params::ns2().validate(), Ok(()));
    }

    #[test]
    fn initial_windows_of_the_rfcs() {
        let bytes = |mss, initial_window| Params { mss, initial_window, ..Params::default() };
        // RFC 6928 section 2: 10 segments of 1460 B; large segments get fewer.
        assert_eq!(bytes(1460, InitialWindow::Rfc6928).initial_window_bytes(), 14_600);
        assert_eq!(bytes(9000, InitialWindow::Rfc6928).initial_window_bytes(), 18_000);
        // RFC 3390 section 1: 4, 3 and 2 segments.
        assert_eq!(bytes(1000, InitialWindow::Rfc3390).initial_window_bytes(), 4_000);
        assert_eq!(bytes(1460, InitialWindow::Rfc3390).initial_window_bytes(), 4_380);
        assert_eq!(bytes(2500, InitialWindow::Rfc3390).initial_window_bytes(), 5_000);
        assert_eq!(bytes(500, InitialWindow::Segments(2)).initial_window_bytes(), 1_000);
    }

    #[test]
    fn each_bad_value_is_named() {
        let base = Params::default();
        let bad = [
            ("mss", Params { mss: 0, ..base }),
            ("header_bytes", Params { header_bytes: 1001, ..base }),
            ("ack_bytes", Params { ack_bytes: 0, ..base }),
            ("abc_limit", Params { abc_limit: 0, ..base }),
            ("initial_window", Params { initial_window: InitialWindow::Segments(0), ..base }),
            ("recovery_burst", Params { recovery_burst: Some(0), ..base }),
            ("max_window", Params { max_window: Some(999), ..base }),
            ("initial_ssthresh", Params { initial_ssthresh: Some(1999), ..base }),
            ("send_buffer", Params { send_buffer: Some(0), ..base }),
            ("delayed_ack", Params { delayed_ack: Some(Duration::from_millis(501)), ..base }),
            ("clock_granularity", Params { clock_granularity: Duration::ZERO, ..base }),
            ("least_variation", Params { least_variation: Duration::from_secs(2), ..base }),
            ("min_rto", Params { min_rto: Duration::ZERO, ..base }),
            ("max_rto", Params { max_rto: Duration::from_millis(999), ..base }),
            ("initial_rto", Params { initial_rto: Duration::from_secs(61), ..base }),
        ];
        for (field, params) in bad {
            let error = params.validate().expect_err(field);
            assert_eq!(error.field, field, "{error}");
        }
        let error = Params { max_window: Some(999), ..base }.validate().unwrap_err();
        assert_eq!(error.to_string(), "max_window = 999: at least one mss, in bytes");
    }
}
