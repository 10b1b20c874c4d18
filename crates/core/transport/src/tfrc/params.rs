//! The parameters of a TFRC flow.

use super::Packet;
use cutline_params::Parameters;
use cutline_units::{Bytes, Duration};

const SECOND: Duration = Duration::from_secs(1);
const GAINS: (f64, f64) = (0.0, 0.999_999);

/// The parameters of a TFRC flow. Flows with the same parameters share them behind an `Arc`.
#[derive(Clone, Copy, Debug, PartialEq, Parameters)]
#[expect(clippy::struct_excessive_bools, reason = "each is an independent option of an RFC or of ns-2")]
pub struct Params {
    /// The segment size s of the equation, and the largest payload. For a source of smaller messages, set the size of its
    /// messages.
    #[param(name = "packet-size", default = 1000, range = (1, 65_535), unit = "B", source = "the papers' packet")]
    pub segment_size: u32,
    /// The size of a packet's headers on the wire.
    #[param(name = "header", default = 40, range = (0, 1000), unit = "B", source = "as TCP; ns-2: 0")]
    pub header_bytes: u32,
    /// A feedback packet's size on the wire.
    #[param(name = "feedback-size", default = 40, range = (1, 1500), unit = "B", source = "as ns-2's `TFRCSink`")]
    pub feedback_bytes: u32,
    /// Number of packets that may wait to be sent; off is any number. The sender drops those that do not fit.
    #[param(
        default = Some(2),
        range = (1, 100_000),
        unit = "packets",
        source = "ours: an interactive source would rather lose a packet than send it late; ns-2: off"
    )]
    pub send_buffer: Option<u32>,
    /// The filter constant q of the average round-trip time.
    #[param(default = 0.9, range = GAINS, source = "RFC 5348 section 4.3 step 2; ns-2's `df_` is 0.95")]
    pub q: f64,
    /// The instantaneous rate falls while the round-trip time is above its average, which damps oscillations at a
    /// drop-tail queue.
    #[param(default = true, source = "RFC 5348 section 4.5; ns-2's `ca_` too")]
    pub reduce_oscillation: bool,
    /// The filter constant q2 of the average square root of the round-trip time.
    ///
    /// In ns-2 it is 0.95, so a growing queue slows the flow for longer, and its slow start overshoots less.
    #[param(default = 0.9, range = GAINS, source = "RFC 5348 section 4.5; ns-2's `df_` is 0.95")]
    pub q2: f64,
    /// A long interval without loss reduces the weight of the older ones.
    #[param(default = true, source = "RFC 5348 section 5.5; ns-2's `discount_` too")]
    pub history_discounting: bool,
    /// The tick of a coarse clock from which the timeout of the equation is estimated, as in early TCPs; off is four
    /// round-trip times.
    #[param(
        default = None,
        range = (Duration::from_millis(1), SECOND),
        source = "RFC 5348 section 3.1; ns-2's `tcp_tick_` is 100 ms"
    )]
    pub rto_tick: Option<Duration>,
    /// The rate rises by at most s / R per round trip, as with TCP's window, instead of at once to the result of the
    /// equation.
    #[param(
        default = false,
        source = "RFC 5348 section 4.3 step 4; ns-2 does so after the first loss event"
    )]
    pub gradual_increase: bool,
    /// The factor 3 sqrt(3 b p / 8) of the timeout in the equation is at most 1, as in Padhye's full model: from p = 0.30 on the
    /// rate is higher, at p = 0.4 by a seventh.
    #[param(default = false, source = "RFC 5348 section 3.1 has no bound; ns-2: true")]
    pub bound_timeouts: bool,
    /// The rate at which packets were received limits the allowed rate to no less than a packet in a round trip.
    #[param(default = false, source = "RFC 5348 section 4.3 step 4: to no less than s / t_mbi; ns-2: true")]
    pub packet_per_round_trip: bool,
    /// Lower bound of the nofeedback timer in round trips.
    #[param(default = 4, range = (1, 100), source = "RFC 5348 section 4.3 step 3; ns-2: 2")]
    pub nofeedback_round_trips: u32,
    /// The nofeedback timer halves the rate, whatever was received before.
    #[param(default = false, source = "RFC 5348 section 4.4: it halves the limit; ns-2: true")]
    pub nofeedback_halves: bool,
    /// The longest time between two packets.
    #[param(
        default = Duration::from_secs(64),
        range = (SECOND, Duration::from_secs(3600)),
        source = "RFC 5348 section 4.3"
    )]
    pub t_mbi: Duration,
    /// The shortest time of the nofeedback timer. A process that may wake up more than four round trips late needs one:
    /// otherwise its own lateness would halve its rate.
    #[param(
        default = Duration::ZERO,
        range = (Duration::ZERO, Duration::from_secs(10)),
        source = "RFC 5348 section 4.3 step 3 has none"
    )]
    pub least_nofeedback: Duration,
    /// The granularity of the sender's timer. A packet may leave up to half of it early.
    #[param(default = Duration::ZERO, range = (Duration::ZERO, SECOND), source = "RFC 5348 section 8.3; timers here are exact")]
    pub t_gran: Duration,
    /// Packets are ECN-capable, and marks count as losses.
    #[param(default = false, skip)]
    pub ecn: bool,
}

impl Params {
    /// Returns the defaults of ns-2.35's `Agent/TFRC` (`ns-default.tcl`): `packetSize_ 1000` on the wire in total,
    /// `df_ 0.95`, `ca_ 1`, `discount_ 1`, and an unbounded send buffer (`maxqueue_`).
    ///
    /// One difference remains: ns-2 follows the older RFC 3448 where the application limits the sender.
    pub fn ns2() -> Self {
        Self {
            header_bytes: 0,
            q: 0.95,
            q2: 0.95,
            send_buffer: None,
            rto_tick: Some(Duration::from_millis(100)),
            gradual_increase: true,
            bound_timeouts: true,
            packet_per_round_trip: true,
            nofeedback_round_trips: 2,
            nofeedback_halves: true,
            ..Self::default()
        }
    }

    /// Returns `s`, bytes.
    pub(super) fn s(&self) -> f64 {
        f64::from(self.segment_size)
    }

    /// Returns the initial window `W_init`, bytes (RFC 5348 section 4.2).
    pub fn initial_window_bytes(&self) -> f64 {
        (4.0 * self.s()).min((2.0 * self.s()).max(4380.0))
    }

    /// Returns the least rate, `s / t_mbi`, bytes per second.
    pub(super) fn least_rate(&self) -> f64 {
        self.s() / self.t_mbi.as_secs_f64()
    }

    /// Returns the size of a packet on the wire.
    pub const fn wire_bytes(&self, packet: &Packet) -> Bytes {
        Bytes::new(packet.len as u64 + self.header_bytes as u64)
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
    fn each_bad_value_is_named() {
        let base = Params::default();
        let bad = [
            ("packet-size", Params { segment_size: 0, ..base }),
            ("header", Params { header_bytes: 1001, ..base }),
            ("feedback-size", Params { feedback_bytes: 0, ..base }),
            ("send-buffer", Params { send_buffer: Some(0), ..base }),
            ("q", Params { q: 1.0, ..base }),
            ("q2", Params { q2: 1.0, ..base }),
            ("rto-tick", Params { rto_tick: Some(Duration::from_micros(999)), ..base }),
            ("nofeedback-round-trips", Params { nofeedback_round_trips: 0, ..base }),
            ("t-mbi", Params { t_mbi: Duration::ZERO, ..base }),
            ("least-nofeedback", Params { least_nofeedback: Duration::from_secs(11), ..base }),
            ("t-gran", Params { t_gran: Duration::from_secs(2), ..base }),
        ];
        for (name, params) in bad {
            assert_eq!(params.validate().unwrap_err().parameter, name);
        }
    }
}
