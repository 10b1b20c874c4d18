//! What is set for a TFRC flow.

use cutline_units::{Bytes, Duration};

use super::Packet;
use crate::ParamError;
use crate::error::require;

/// What is set for a TFRC flow. `Copy`; share one behind an `Arc` among all its flows.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each is an independent option of an RFC or of ns-2")]
pub struct Params {
    /// The segment size s of the equation and the largest payload, bytes, 1..65,535. Default 1000. A source of
    /// smaller messages should have its own size here.
    pub segment_size: u32,
    /// Bytes on the wire beside the payload, 0..1000. Default 40; 0 for ns-2's packets.
    pub header_bytes: u32,
    /// A feedback packet on the wire, bytes, 1..1500. Default 40, as ns-2's `TFRCSink`.
    pub feedback_bytes: u32,
    /// How many packets may wait to be sent, 1..100,000; more are dropped at the sender. Default 2: an
    /// interactive source would rather lose a packet than send it late.
    pub send_buffer: u32,
    /// The gain q of the round-trip time's average, 0..1 (RFC 5348 4.3 step 2). Default 0.9; ns-2's `df_` is
    /// 0.95.
    pub q: f64,
    /// The instantaneous rate falls while the round-trip time is above its average (RFC 5348 4.5), which
    /// damps oscillation at a drop-tail queue. Default true; ns-2's `ca_ 1` too.
    pub reduce_oscillation: bool,
    /// The gain `q2` of the average of the round-trip time's root, 0..1 (RFC 5348 4.5). Default 0.9; ns-2's `df_` is
    /// 0.95 here too, so a queue that grows holds it back for longer: its slow start overshoots less.
    pub q2: f64,
    /// A long interval without loss makes the older ones count less (RFC 5348 5.5). Default true; ns-2's
    /// `discount_ 1` too.
    pub history_discounting: bool,
    /// The tick of the clock from which the equation's `t_RTO` is estimated as TCP's was in 1988, in whole ticks (1 ms..1 s);
    /// `None` (default): `t_RTO = 4 R` (RFC 5348 3.1). ns-2's `tcp_tick_` is 0.1 s.
    pub rto_tick: Option<Duration>,
    /// X rises by at most `s / R` for each round trip that has passed, as TCP's window does, instead of at once to what
    /// the equation says. Default false (RFC 5348 4.3 step 4); ns-2 does so after the first loss event.
    pub gradual_increase: bool,
    /// The longest time between two packets (`t_mbi`), 1 s..1 h. Default 64 s.
    pub t_mbi: Duration,
    /// The least time of the nofeedback timer, at most 10 s. Default 0, as RFC 5348 4.3 step 3; a process that wakes up
    /// later than four round trips of a short path needs one, or it would halve its rate for its own lateness.
    pub least_nofeedback: Duration,
    /// The granularity of the sender's timer (RFC 5348 4.6), at most 1 s: a packet may leave up to half of it
    /// early. Default 0: timers here are exact.
    pub t_gran: Duration,
    /// Packets are ECN-capable and marks count as losses. Default false.
    pub ecn: bool,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            segment_size: 1000,
            header_bytes: 40,
            feedback_bytes: 40,
            send_buffer: 2,
            q: 0.9,
            reduce_oscillation: true,
            q2: 0.9,
            history_discounting: true,
            rto_tick: None,
            gradual_increase: false,
            t_mbi: Duration::from_secs(64),
            least_nofeedback: Duration::ZERO,
            t_gran: Duration::ZERO,
            ecn: false,
        }
    }
}

impl Params {
    /// The defaults of ns-2.35's `Agent/TFRC` (`ns-default.tcl`): `packetSize_ 1000` on the wire all told,
    /// `df_ 0.95`, `ca_ 1`, `discount_ 1`, and an unbounded send buffer (`maxqueue_`).
    ///
    /// What still differs: ns-2 follows the older RFC 3448 where the sender is limited by the application.
    pub fn ns2() -> Self {
        Self {
            header_bytes: 0,
            q: 0.95,
            q2: 0.95,
            send_buffer: 100_000,
            rto_tick: Some(Duration::from_millis(100)),
            gradual_increase: true,
            ..Self::default()
        }
    }

    /// Checks every field against its range.
    ///
    /// # Errors
    /// The first field that is out of range, with its value and what is allowed.
    pub fn validate(&self) -> Result<(), ParamError> {
        let size = self.segment_size;
        require((1..=65_535).contains(&size), "segment_size", size, "1..65535 bytes")?;
        require(self.header_bytes <= 1000, "header_bytes", self.header_bytes, "0..1000 bytes")?;
        let feedback = self.feedback_bytes;
        require((1..=1500).contains(&feedback), "feedback_bytes", feedback, "1..1500 bytes")?;
        let buffer = self.send_buffer;
        require((1..=100_000).contains(&buffer), "send_buffer", buffer, "1..100000 packets")?;
        require((0.0..1.0).contains(&self.q), "q", self.q, "0..1, below 1")?;
        require((0.0..1.0).contains(&self.q2), "q2", self.q2, "0..1, below 1")?;
        let second = Duration::from_secs(1);
        let tick = self.rto_tick.unwrap_or(second);
        require((Duration::from_millis(1)..=second).contains(&tick), "rto_tick", tick, "1 ms..1 s")?;
        let interval = second..=Duration::from_secs(3600);
        require(interval.contains(&self.t_mbi), "t_mbi", self.t_mbi, "1 s..1 h")?;
        let least = self.least_nofeedback;
        require(least <= Duration::from_secs(10), "least_nofeedback", least, "at most 10 s")?;
        require(self.t_gran <= second, "t_gran", self.t_gran, "at most 1 s")
    }

    /// `s`, bytes.
    pub(super) fn s(&self) -> f64 {
        f64::from(self.segment_size)
    }

    /// The initial window of RFC 3390 (RFC 5348 4.2), bytes.
    pub fn initial_window_bytes(&self) -> f64 {
        (4.0 * self.s()).min((2.0 * self.s()).max(4380.0))
    }

    /// The least rate, `s / t_mbi`, bytes per second.
    pub(super) fn least_rate(&self) -> f64 {
        self.s() / self.t_mbi.as_secs_f64()
    }

    /// A packet's size on the wire.
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
            ("segment_size", Params { segment_size: 0, ..base }),
            ("header_bytes", Params { header_bytes: 1001, ..base }),
            ("feedback_bytes", Params { feedback_bytes: 0, ..base }),
            ("send_buffer", Params { send_buffer: 0, ..base }),
            ("q", Params { q: 1.0, ..base }),
            ("q2", Params { q2: 1.0, ..base }),
            ("rto_tick", Params { rto_tick: Some(Duration::from_micros(999)), ..base }),
            ("t_mbi", Params { t_mbi: Duration::ZERO, ..base }),
            ("least_nofeedback", Params { least_nofeedback: Duration::from_secs(11), ..base }),
            ("t_gran", Params { t_gran: Duration::from_secs(2), ..base }),
        ];
        for (field, params) in bad {
            assert_eq!(params.validate().unwrap_err().field, field);
        }
    }
}
