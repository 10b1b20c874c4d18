//! RED, random early detection: the drop probability grows with the average queue.
//!
//! Source: S. Floyd, V. Jacobson, "Random early detection gateways for congestion avoidance", IEEE/ACM
//! Transactions on Networking, August 1993, figures 1 and 2 and section VII; gentle: S. Floyd, "Recommendation on
//! using the gentle variant of RED", March 2000; automatic settings: S. Floyd, R. Gummadi, S. Shenker, "Adaptive
//! RED", August 2001, sections 5 and 6.
//!
//! ```text
//! avg <- (1 - w_q) avg + w_q q                      on every arrival
//! avg <- (1 - w_q)^(m+1) avg                        on one that finds the queue empty, after m packet times idle
//! p_b = max_p (avg - min_th) / (max_th - min_th)    min_th <= avg < max_th
//!     = max_p + (1 - max_p) (avg - max_th) / max_th      gentle, max_th <= avg < 2 max_th
//!     = 0 below, 1 beyond
//! p_b <- p_b size / mean-packet                     mode bytes
//! p_a = p_b / (1 - count p_b)                       spacing uniform; count = packets since the last hit
//! ```
//!
//! Four choices make a RED. They do not depend on each other:
//!
//! | parameter | values | effect |
//! | --- | --- | --- |
//! | `mode` | packets, bytes | how the queue is measured, and whether large packets are hit more often |
//! | `gentle` | false, true | the probability above `max_th`: a jump to 1, or a second slope |
//! | `spacing` | uniform, wait, none | how many packets pass from hit to hit |
//! | `variant` | papers, ns-2 | which packets are spared, and how Adaptive RED steps |
//!
//! **Automatic settings.** A threshold or weight that is off follows from the link's rate. With C the rate in packets of
//! `mean-packet` a second, w_q = 1 - exp(-1 / C), min_th = max(5, C target-delay / 2) and max_th = 3 min_th.
//!
//! **Mode bytes.** The queue is measured in bytes and divided by `mean-packet`. Thresholds are packets in either mode.
//!
//! **Spacing.** As in figure 2, a hit sets `count` to 0, and each packet adds 1 before it is judged. So the packet
//! after a hit has p_b / (1 - p_b), and the gap from hit to hit is uniform over 1 to 1 / p_b - 1 packets. (The paper's
//! text counts the packets that were spared, and has 1 to 1 / p_b. This holds only for the first hit, because `count`
//! begins with -1.) Spacing `wait` lets 1 / p_b - 1 packets pass after a hit, and hits one of the next 1 / p_b. Spacing
//! `none` draws for each packet alone.
//!
//! Worked numbers: an average of 10 packets between 5 and 15 gives p_b = 0.01, and p_a = 0.01 / (1 - 50 x 0.01)
//! = 0.02 for the 50th packet since a hit (`the_probability_halfway_between_the_thresholds`). At p_b = 0.02 the gaps between hits are
//! uniform over 1..49 (`gaps_are_uniform`), with `wait` over 50..99 (`waiting_hits_within_the_second_stretch`). At
//! 5 Mbit/s and 1000 B, w_q = 1 - exp(-1/625) = 0.0015987 (`automatic_settings`).
//!
//! **ns-2.** ns-2's code spares two packets that the papers hit: the first one after the average was below min_th, with
//! which it begins to count, and any packet that finds fewer than two waiting. The variant `ns-2` does the same
//! (`ns_2_does_not_drop_the_first_packet_or_those_of_a_short_queue`). An average beyond the end of the slope hits the first packet, too.
//!
//! **Under TSQ.** This law answers p_a, and TSQ scales it: a packet that cuts in line pays its charge on the probability that the tail
//! would pay at that moment. A hit resets the count whichever packet is hit, so all hits together are spaced. The
//! recorded probability is p_b of a packet of the mean size.
//!
//! Departures:
//! - An arrival at an empty queue is itself a sample of 0. So the exponent is m + 1 where figure 2 has m, as in ns-2.
//! - The packet in service has left the queue. The queue is idle once that packet is on the wire.
//! - An arrival that a full queue refuses counts in the average like any other. It is not a hit.
//!
//! Not implemented: dropping from the head or at random places of the queue.
//!
//! # Validation
//!
//! - Slope, average, idle time and automatic settings by hand: `the_probability_halfway_between_the_thresholds`,
//!   `gentle_red_rises_until_twice_the_threshold`, `in_bytes_size_counts_twice`, `the_average_follows_its_weight`,
//!   `idle_time_counts_as_small_packets_that_could_have_passed`, `automatic_settings`.
//! - The distribution of the gaps over a million packets: `gaps_are_uniform`,
//!   `waiting_hits_within_the_second_stretch`.
//! - Against ns-2's RED, gentle, with spacing wait, in packets: the cases named red of docs/validation/ns2.md, five
//!   mixes of NewReno and TFRC and an overload of UDP. Uniform spacing is checked by the comparison of Adaptive RED
//!   ([`crate::ared`]).
//! - Not checked against another engine: mode bytes, a slope that is not gentle, spacing none.

mod params;
mod slope;
mod spacing;
mod variant;

use crate::{Aqm, Arrival, Backlog, DrainRate, DropProbability, DropReason, Limit, Readings, Verdict};
use cutline_params::{ParameterError, Parameters as _};
use cutline_units::{Bytes, Duration, Instant, Probability, Rate};

pub(crate) use params::check_thresholds;
pub use params::{Automatic, RedMode, RedParams};
pub(crate) use slope::Slope;
pub use spacing::Spacing;
pub use variant::RedVariant;

/// State of RED.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Vars {
    /// The average queue, packets.
    avg: f64,
    /// Packets since the last hit, the present one included; -1 while nothing can be hit.
    count: i64,
    /// Time at which the last packet of the queue has left the link. The link is idle from then on unless
    /// another comes.
    idle_from: Instant,
    /// Of a packet of the mean size.
    p_b: Probability,
}

/// RED without its `max_p`, which variants of it move.
#[derive(Clone, Copy, Debug)]
pub struct Core {
    params: RedParams,
    pub(crate) slope: Slope,
    w_q: f64,
    /// ln(1 - w_q).
    ln_keep: f64,
    /// Transmission time of a packet of the mean size, ns.
    packet_ns: f64,
    drain: DrainRate,
    vars: Vars,
}

impl Core {
    pub(crate) fn new(params: &RedParams, rate: Rate) -> Self {
        let gentle_from = (params.variant == RedVariant::Ns2).then_some(params.max_p);
        let slope = Slope { min_th: 0.0, max_th: 0.0, gentle: params.gentle, gentle_from };
        let drain = DrainRate::new(rate);
        let vars = Vars::new(Instant::ZERO);
        let mut core = Self { params: *params, slope, w_q: 0.0, ln_keep: 0.0, packet_ns: 0.0, drain, vars };
        core.set_rate(rate);
        core
    }

    /// Sets the values that follow from the link's rate.
    pub(crate) fn set_rate(&mut self, rate: Rate) {
        let params = self.params;
        let per_second = rate.as_bps() as f64 / Bytes::new(params.mean_packet).bits() as f64;
        self.drain = DrainRate::new(rate);
        self.packet_ns = 1e9 / per_second;
        let Automatic { min_th, max_th, w_q } = params.automatic(rate);
        self.w_q = w_q;
        self.ln_keep = (-w_q).ln_1p();
        (self.slope.min_th, self.slope.max_th) = (min_th, max_th);
    }

    /// Averages over an arrival and answers p_a.
    #[inline]
    pub(crate) fn arrive(
        &mut self,
        now: Instant,
        arrival: Arrival,
        backlog: Backlog,
        max_p: f64,
    ) -> Probability {
        self.average(now, backlog);
        let p_b = self.slope.probability(self.vars.avg, max_p);
        self.vars.p_b = Probability::clamped(p_b);
        let mean_packet = self.params.mean_packet as f64;
        let p_b = match self.params.mode {
            RedMode::Bytes if p_b < 1.0 => p_b * f64::from(arrival.size) / mean_packet,
            _ => p_b,
        };
        if self.params.variant == RedVariant::Ns2 && self.is_spared(p_b, backlog) {
            return Probability::ZERO;
        }
        self.vars.count = if p_b > 0.0 { self.vars.count + 1 } else { -1 };
        self.params.spacing.probability(p_b, self.vars.count as f64)
    }

    /// Returns whether ns-2 spares a packet ([`RedVariant::Ns2`]): in a short queue, and the first above
    /// `min_th`, with which it begins to count.
    fn is_spared(&mut self, p_b: f64, backlog: Backlog) -> bool {
        if backlog.packets < 2 {
            self.vars.count = -1;
            return true;
        }
        let is_first = p_b > 0.0 && p_b < 1.0 && self.vars.count < 0;
        if is_first {
            self.vars.count = 1;
        }
        is_first
    }

    #[inline]
    fn average(&mut self, now: Instant, backlog: Backlog) {
        if backlog.packets == 0 {
            self.vars.avg = self.average_while_idle(now) * (1.0 - self.w_q);
            self.vars.idle_from = self.vars.idle_from.max(now);
        } else {
            self.vars.avg += self.w_q * (self.length(backlog) - self.vars.avg);
        }
    }

    /// The average as it is at `at`, if the queue has been empty since its last packet left.
    #[inline]
    pub(crate) fn average_while_idle(&self, at: Instant) -> f64 {
        let idle = at.saturating_since(self.vars.idle_from);
        if idle.is_zero() || self.vars.avg == 0.0 {
            return self.vars.avg;
        }
        let decayed = self.vars.avg * (idle.as_nanos() as f64 / self.packet_ns * self.ln_keep).exp();
        if decayed < NOTHING { 0.0 } else { decayed }
    }

    /// Returns the time at which the average of an empty queue falls to `level` if nothing arrives.
    pub(crate) fn idle_until(&self, level: f64) -> Instant {
        let packets = (level.max(NOTHING) / self.vars.avg).ln() / self.ln_keep;
        self.vars.idle_from.saturating_add(Duration::from_secs_f64(packets * self.packet_ns * 1e-9))
    }

    /// The average as of the last arrival.
    pub(crate) const fn avg(&self) -> f64 {
        self.vars.avg
    }

    /// The size of a packet of which the queue is counted in, B.
    #[inline]
    pub(crate) fn counted_size(&self, size: u32) -> f64 {
        match self.params.mode {
            RedMode::Packets => f64::from(size),
            RedMode::Bytes => self.params.mean_packet as f64,
        }
    }

    /// The queue in packets.
    #[inline]
    fn length(&self, backlog: Backlog) -> f64 {
        match self.params.mode {
            RedMode::Packets => f64::from(backlog.packets),
            RedMode::Bytes => backlog.bytes as f64 / self.params.mean_packet as f64,
        }
    }
}

/// An average below this is none.
const NOTHING: f64 = 1e-9;

impl Vars {
    const fn new(now: Instant) -> Self {
        Self { avg: 0.0, count: -1, idle_from: now, p_b: Probability::ZERO }
    }
}

/// Control of `max_p`. RED, Adaptive RED and RED-Worcester differ in it alone.
pub trait Steering {
    /// The probability at the end of the slope.
    fn max_p(&self) -> f64;

    /// The average that is aimed at, packets.
    fn target(&self, _core: &Core) -> Option<f64> {
        None
    }

    /// Takes the steps that are due at `now`; the queue has been `backlog` since the last call.
    #[inline]
    fn advance(&mut self, _now: Instant, _backlog: Backlog, _core: &Core) {}

    /// A packet arrives.
    #[inline]
    fn arrive(&mut self, _arrival: Arrival, _core: &Core) {}

    /// The link's rate from now on.
    fn set_rate(&mut self, _rate: Rate) {}

    /// Forgets everything learnt.
    fn reset(&mut self, _now: Instant, _core: &Core) {}
}

/// RED and the adaptation of its `max_p`.
#[derive(Clone, Copy, Debug)]
pub struct Steered<S> {
    pub(crate) core: Core,
    pub(crate) steering: S,
}

/// RED.
pub type Red = Steered<Fixed>;

/// A constant `max_p`.
#[derive(Clone, Copy, Debug)]
pub struct Fixed(f64);

impl Steering for Fixed {
    #[inline]
    fn max_p(&self) -> f64 {
        self.0
    }
}

impl Aqm for Red {
    type Params = RedParams;
    const NAME: &'static str = "red";
    const TITLE: &'static str = "RED";
    const SOURCE: &'static str = "Floyd, Jacobson, IEEE/ACM ToN 1993";

    fn build(params: &RedParams, rate: Rate) -> Result<Self, ParameterError> {
        params.validate()?;
        Ok(Self { core: Core::new(params, rate), steering: Fixed(params.max_p) })
    }

    fn standing_delay(params: &RedParams, _limit: Limit, rate: Rate) -> Option<Duration> {
        Some(params.standing_delay(rate))
    }

    fn moderate_params() -> RedParams {
        RedParams::default().moderate(0.8)
    }
}

impl<S: Steering> DropProbability for Steered<S> {
    #[inline]
    fn advance(&mut self, now: Instant, backlog: Backlog) {
        self.steering.advance(now, backlog, &self.core);
    }

    #[inline]
    fn arrive(&mut self, now: Instant, arrival: Arrival, backlog: Backlog) -> Probability {
        self.steering.arrive(arrival, &self.core);
        self.core.arrive(now, arrival, backlog, self.steering.max_p())
    }

    fn probability(&self) -> Option<Probability> {
        Some(self.core.vars.p_b)
    }

    fn readings(&self) -> Readings {
        let Self { core, steering } = self;
        Readings {
            average: Some(core.avg()),
            max_p: Some(steering.max_p()),
            target: steering.target(core),
            sieve: None,
        }
    }

    #[inline]
    fn judged(&mut self, _now: Instant, _arrival: Arrival, verdict: Verdict) {
        if matches!(verdict, Verdict::Mark | Verdict::Drop(DropReason::Early)) {
            self.core.vars.count = 0;
        }
    }

    #[inline]
    fn departed(&mut self, now: Instant, size: u32, _arrived: Instant, backlog: Backlog) {
        if backlog.packets == 0 {
            self.core.vars.idle_from = now.saturating_add(self.core.drain.time(u64::from(size)));
        }
    }

    fn set_rate(&mut self, _now: Instant, rate: Rate) {
        self.core.set_rate(rate);
        self.steering.set_rate(rate);
    }

    fn reset(&mut self, now: Instant) {
        self.core.vars = Vars::new(now);
        self.steering.reset(now, &self.core);
    }
}

#[cfg(test)]
mod tests;
