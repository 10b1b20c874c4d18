//! The parameters of a TCP connection, with the defaults of the RFCs. [`Params::ns2`] has those of ns-2.35.

use super::{Algorithm, LedbatParams, RttSampling, Segment, Variant};
use cutline_params::{ParameterError, ParameterKind, ParameterType, ParameterValue, Parameters};
use cutline_units::{Bytes, Duration, Ecn};

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

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3600);
const NANOSECOND: Duration = Duration::from_nanos(1);
const SEGMENTS: (u64, u64) = (1, 1_000_000);

/// The parameters of a TCP connection. Connections with the same parameters share them behind an `Arc`.
#[derive(Clone, Debug, PartialEq, Parameters)]
#[parameters(check = check)]
#[expect(clippy::struct_excessive_bools, reason = "each is an independent option of an RFC")]
pub struct Params {
    /// Growth and reduction of the window. A registered one may have keys of its own.
    #[param(name = "congestion-control", default = Algorithm::NewReno, source = "RFC 5681; the papers' TCP")]
    pub algorithm: Algorithm,
    /// The largest payload of a segment.
    #[param(default = 1000, range = (1, 65_535), unit = "B", source = "the papers' packet")]
    pub mss: u32,
    /// The size of a segment's headers on the wire.
    ///
    /// The papers' "1000 B packets" are those of ns-2, which have 1000 B on the wire in total: set 0 for those.
    #[param(name = "header", default = 40, range = (0, 1000), unit = "B", source = "IPv4 and TCP without options")]
    pub header_bytes: u32,
    /// An acknowledgement's size on the wire.
    #[param(name = "ack-size", default = 40, range = (1, 1500), unit = "B", source = "IPv4 and TCP without options")]
    pub ack_bytes: u32,
    /// The window before the first acknowledgement.
    #[param(default = InitialWindow::Rfc6928, range = (1, 1000), unit = "packets", source = "RFC 6928 section 2")]
    pub initial_window: InitialWindow,
    /// The receiver's window, in segments; off is unlimited.
    #[param(default = None, range = SEGMENTS, unit = "packets", source = "ours; ns-2's `window_` is 20")]
    pub max_window: Option<u32>,
    /// The window at which the first slow start ends, in segments; off is arbitrarily high.
    #[param(default = None, range = (2, 1_000_000), unit = "packets", source = "RFC 5681 section 3.1")]
    pub initial_ssthresh: Option<u32>,
    /// Selective acknowledgements, and the recovery of RFC 6675 instead of that of RFC 6582.
    #[param(default = false, source = "the papers' TCP")]
    pub sack: bool,
    /// Losses are found by time, and a probe precedes the timeout (RACK-TLP); the window falls in proportion to deliveries (PRR).
    /// Needs sack.
    #[param(default = false, source = "RFC 8985, RFC 6937; Linux: true")]
    pub rack: bool,
    /// The first two duplicate acknowledgements release a new segment each (limited transmit), with SACK as many as have arrived.
    #[param(default = true, source = "RFC 3042, RFC 6675 section 5 step 3; ns-2's `singledup_ 1` too")]
    pub limited_transmit: bool,
    /// The ECN code point of new segments. The ends respond to marks if it is ECN-capable (RFC 3168).
    #[param(default = Ecn::NotEct, skip)]
    pub ecn: Ecn,
    /// Largest delay of an acknowledgement that waits for a second segment; `true` is the usual 200 ms.
    #[param(
        default = None,
        range = (NANOSECOND, Duration::from_millis(500)),
        on = Duration::from_millis(200),
        source = "off: as ns-2's `TCPSink`; RFC 5681 section 4.2 allows 500 ms"
    )]
    pub delayed_ack: Option<Duration>,
    /// The most segments by which an acknowledgement increases the window in slow start: the L of RFC 3465.
    #[param(default = 1, range = (1, 100), source = "RFC 5681 eq. 2")]
    pub abc_limit: u32,
    /// CUBIC's slow start ends early, when delays grow or acknowledgements arrive in a long train (`HyStart`). Other controls ignore it.
    #[param(default = false, source = "RFC 9438 section 4.10 permits plain slow start; Linux: true")]
    pub hystart: bool,
    /// An idle time of more than one timeout reduces the window to the initial one.
    #[param(default = true, source = "RFC 5681 section 4.1; ns-2's `slow_start_restart_` too")]
    pub idle_restart: bool,
    /// A small segment waits while data is outstanding (Nagle's algorithm).
    #[param(default = false, source = "media write small messages; RFC 1122 section 4.2.3.4 recommends it")]
    pub nagle: bool,
    /// Only the first partial acknowledgement restarts the timer ("Impatient"); false is "Slow-but-Steady".
    #[param(default = true, source = "RFC 6582 section 3.2 step 3; ns-2's `newreno_changes1_` too")]
    pub impatient: bool,
    /// Duplicates at or below `recover` also count if the window is more than one segment and the last acknowledgement
    /// advanced by at most four.
    #[param(default = false, source = "optional in RFC 6582 section 4; ns-2's `bugFix_ack_` is false")]
    pub ack_heuristic: bool,
    /// The retransmission timeout before the first sample.
    #[param(default = SECOND, range = (NANOSECOND, HOUR), source = "RFC 6298 section 2.1; ns-2 has 3 s")]
    pub initial_rto: Duration,
    /// The shortest retransmission timeout.
    #[param(default = SECOND, range = (NANOSECOND, HOUR), source = "RFC 6298 section 2.4; ns-2 has 200 ms")]
    pub min_rto: Duration,
    /// The longest retransmission timeout, at least min-rto.
    #[param(
        default = Duration::from_secs(60),
        range = (NANOSECOND, HOUR),
        source = "RFC 6298 section 2.5; ns-2 too"
    )]
    pub max_rto: Duration,
    /// The granularity G of the clock that measures round trips. Samples are rounded to it.
    #[param(
        default = Duration::from_millis(1),
        range = (NANOSECOND, SECOND),
        source = "RFC 6298 section 4: 100 ms or finer; ns-2's `tcpTick_` is 10 ms"
    )]
    pub clock_granularity: Duration,
    /// Send buffer in segments of unsent data. A write that does not fit is refused as a whole, so the delay
    /// of a constant-rate source over a slow path stays bounded.
    #[param(default = None, range = SEGMENTS, unit = "packets", source = "ours")]
    pub send_buffer: Option<u32>,
    /// LEDBAT's target and gain.
    #[group]
    pub ledbat: LedbatParams,
    /// The points at which ns-2 differs from the RFCs.
    #[group]
    pub variant: Variant,
}

fn check(params: &Params) -> Result<(), ParameterError> {
    let Params { initial_rto, min_rto, max_rto, .. } = *params;
    if min_rto > max_rto {
        return Err(ParameterError::new("max-rto", max_rto, format!("at least min-rto = {min_rto}")));
    }
    if params.rack && !params.sack {
        return Err(ParameterError::new("rack", true, "false, or true with sack = true"));
    }
    if params.rack && !params.limited_transmit {
        return Err(ParameterError::new(
            "limited-transmit",
            false,
            "true with rack = true: arrived data has left the network",
        ));
    }
    if params.rack && params.variant.rtt_sampling == RttSampling::OneSegment {
        return Err(ParameterError::new(
            "rack",
            true,
            "false with rtt-sampling = one-segment: it needs the echo of timestamps",
        ));
    }
    if params.algorithm.is_paced() && !params.rack {
        let allowed = format!("true with congestion-control = {}", params.algorithm.name());
        return Err(ParameterError::new("rack", false, allowed));
    }
    if initial_rto > max_rto {
        return Err(ParameterError::new("initial-rto", initial_rto, format!("at most max-rto = {max_rto}")));
    }
    Ok(())
}

impl ParameterType for InitialWindow {
    type Range = (u64, u64);

    fn kind((least, most): (u64, u64)) -> ParameterKind {
        ParameterKind::CountOr { least, most, names: &["rfc6928", "rfc3390"] }
    }

    fn to_value(&self) -> ParameterValue {
        match self {
            Self::Rfc6928 => ParameterValue::Choice("rfc6928".into()),
            Self::Rfc3390 => ParameterValue::Choice("rfc3390".into()),
            Self::Segments(n) => ParameterValue::Count(u64::from(*n)),
        }
    }

    fn from_value(value: &ParameterValue) -> Self {
        match value {
            ParameterValue::Count(segments) => Self::Segments(*segments as u32),
            ParameterValue::Choice(name) if name == "rfc3390" => Self::Rfc3390,
            _ => Self::Rfc6928,
        }
    }
}

impl Params {
    /// Returns the defaults of ns-2.35's `Agent/TCP/Newreno` and `Agent/TCPSink` (`ns-default.tcl`): `packetSize_ 1000`
    /// on the wire without headers, `window_ 20`, `windowInit_ 2`, `singledup_ 1`, `minrto_ 0.2`, `maxrto_ 60`,
    /// `rtxcur_init_ 3`, `tcpTick_ 0.01`, `slow_start_restart_ true`, `newreno_changes1_ 1`, sinks that acknowledge each
    /// packet with 40 B, and [`Variant::ns2`].
    ///
    /// One difference remains: ns-2 sends a SYN first (`syn_ true`), so a flow begins a round trip later and with a sample.
    pub fn ns2() -> Self {
        Self {
            header_bytes: 0,
            initial_window: InitialWindow::Segments(2),
            max_window: Some(20),
            initial_rto: Duration::from_secs(3),
            min_rto: Duration::from_millis(200),
            clock_granularity: Duration::from_millis(10),
            variant: Variant::ns2(),
            ..Self::default()
        }
    }

    /// Returns the behaviour of Linux 6 without any setting: 1448 B segments with timestamps, SACK, RACK-TLP and PRR, timeouts of 200 ms to
    /// 120 s, acknowledgements that wait for 40 ms, slow start by all that is acknowledged (no limit L), and [`Variant::linux`].
    ///
    /// The congestion control is CUBIC with `HyStart`, as in most configurations. Not modelled: pacing of CUBIC, quick
    /// acknowledgements at a connection's beginning, autotuned buffers.
    pub fn linux() -> Self {
        Self {
            algorithm: Algorithm::Cubic,
            mss: 1448,
            header_bytes: 52,
            ack_bytes: 52,
            sack: true,
            rack: true,
            delayed_ack: Some(Duration::from_millis(40)),
            abc_limit: 100,
            hystart: true,
            min_rto: Duration::from_millis(200),
            max_rto: Duration::from_secs(120),
            variant: Variant::linux(),
            ..Self::default()
        }
    }

    /// Returns the payload of this many full segments, bytes.
    pub const fn bytes_of(&self, segments: u32) -> u64 {
        segments as u64 * self.mss as u64
    }

    /// Returns the initial window, bytes (RFC 6928 section 2, RFC 3390 section 1).
    pub fn initial_window_bytes(&self) -> u64 {
        let mss = u64::from(self.mss);
        match self.initial_window {
            InitialWindow::Rfc6928 => (10 * mss).min((2 * mss).max(14_600)),
            InitialWindow::Rfc3390 => (4 * mss).min((2 * mss).max(4_380)),
            InitialWindow::Segments(n) => u64::from(n) * mss,
        }
    }

    /// Returns the size of a segment on the wire.
    pub const fn wire_bytes(&self, segment: &Segment) -> Bytes {
        Bytes::new(segment.len as u64 + self.header_bytes as u64)
    }

    /// Returns whether a router may mark this segment instead of dropping it. Retransmissions are never ECN-capable
    /// (RFC 3168 section 6.1.5).
    pub const fn ecn_capable(&self, segment: &Segment) -> bool {
        self.ecn.is_capable() && !segment.retransmission
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_valid() {
        assert_eq!(Params::default().validate(), Ok(()));
        assert_eq!(Params::ns2().validate(), Ok(()));
        assert_eq!(Params::linux().validate(), Ok(()));
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
    fn retransmissions_are_not_ecn_capable() {
        let capable = |ecn, retransmission| {
            let sent_at = cutline_units::Instant::ZERO;
            let segment = Segment { seq: 0, sent_at, len: 1000, retransmission, cwr: false, fin: false };
            Params { ecn, ..Params::default() }.ecn_capable(&segment)
        };
        // RFC 3168 section 6.1.5: no ECT code point on a retransmitted packet.
        assert!(capable(Ecn::Ect0, false) && !capable(Ecn::Ect0, true));
        assert!(!capable(Ecn::NotEct, false));
    }

    #[test]
    fn an_initial_window_is_a_number_or_a_name() {
        for window in [InitialWindow::Rfc6928, InitialWindow::Rfc3390, InitialWindow::Segments(7)] {
            assert_eq!(InitialWindow::from_value(&window.to_value()), window);
        }
    }

    #[test]
    fn each_bad_value_is_named() {
        let base = Params::default;
        let bad = [
            ("mss", Params { mss: 0, ..base() }),
            ("header", Params { header_bytes: 1001, ..base() }),
            ("ack-size", Params { ack_bytes: 0, ..base() }),
            ("abc-limit", Params { abc_limit: 0, ..base() }),
            ("initial-window", Params { initial_window: InitialWindow::Segments(0), ..base() }),
            (
                "recovery-burst",
                Params { variant: Variant { recovery_burst: Some(0), ..base().variant }, ..base() },
            ),
            ("max-window", Params { max_window: Some(0), ..base() }),
            ("initial-ssthresh", Params { initial_ssthresh: Some(1), ..base() }),
            ("send-buffer", Params { send_buffer: Some(0), ..base() }),
            ("delayed-ack", Params { delayed_ack: Some(Duration::from_millis(501)), ..base() }),
            ("clock-granularity", Params { clock_granularity: Duration::ZERO, ..base() }),
            (
                "least-variation",
                Params { variant: Variant { least_variation: HOUR, ..base().variant }, ..base() },
            ),
            (
                "ledbat-target",
                Params {
                    ledbat: LedbatParams { target: Duration::from_millis(101), ..base().ledbat },
                    ..base()
                },
            ),
            ("ledbat-gain", Params { ledbat: LedbatParams { gain: 0.0, ..base().ledbat }, ..base() }),
            ("min-rto", Params { min_rto: Duration::ZERO, ..base() }),
            ("max-rto", Params { max_rto: Duration::from_millis(999), ..base() }),
            ("initial-rto", Params { initial_rto: Duration::from_secs(61), ..base() }),
        ];
        for (name, params) in bad {
            let error = params.validate().expect_err(name);
            assert_eq!(error.parameter, name, "{error}");
        }
        let error = Params { max_rto: Duration::from_millis(999), ..base() }.validate().unwrap_err();
        assert_eq!(error.to_string(), "max-rto = 999 ms: allowed is at least min-rto = 1 s");
    }
}
