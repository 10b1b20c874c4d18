//! Parameters of RED.

use super::spacing::Spacing;
use super::variant::RedVariant;
use crate::standing;
use cutline_params::{Choice, ParameterError, Parameters};
use cutline_units::{Bytes, Duration, Rate};

/// Unit of the queue's length, and whether large packets are likelier to be hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum RedMode {
    /// In packets; every packet is hit alike.
    Packets,
    /// In bytes; a packet is hit in proportion to its size.
    Bytes,
}

const SECTION_VI: &str = "Floyd and Jacobson 1993 section VI";
const THRESHOLDS: (f64, f64) = (0.0, 1e7);

/// Parameters of RED.
#[derive(Clone, Copy, Debug, PartialEq, Parameters)]
#[parameters(check = check_thresholds)]
pub struct RedParams {
    /// Average queue below which no packet is hit; off is automatic, from the link's rate.
    #[param(default = Some(5.0), range = THRESHOLDS, unit = "packets", source = SECTION_VI)]
    pub min_th: Option<f64>,
    /// Average queue at which the probability reaches max-p, above min-th; off is automatic, 3 min-th.
    #[param(default = Some(15.0), range = THRESHOLDS, unit = "packets", source = SECTION_VI)]
    pub max_th: Option<f64>,
    /// Probability at max-th; the initial value if max-p adapts.
    #[param(default = 0.02, range = (1e-4, 1.0), source = SECTION_VI)]
    pub max_p: f64,
    /// The weight of each arrival in the average queue; off is automatic, from the link's rate.
    #[param(default = Some(0.002), range = (1e-6, 1.0), source = SECTION_VI)]
    pub w_q: Option<f64>,
    /// Rise of the probability from max-p at max-th to 1 at twice max-th, instead of a jump to 1.
    #[param(default = false, source = "Floyd and Jacobson 1993; Floyd 2000 recommends true")]
    pub gentle: bool,
    /// Unit of the queue's length: packets, or bytes, in which a packet is hit in proportion to its size.
    #[param(default = RedMode::Packets, source = "Floyd and Jacobson 1993 section VII")]
    pub mode: RedMode,
    /// Number of packets between hits: uniform over 1 to 1/p - 1; wait for 1/p, then uniform over the next 1/p; none draws for each packet.
    #[param(default = Spacing::Uniform, source = "Floyd and Jacobson 1993 figure 2")]
    pub spacing: Spacing,
    /// Packet size that converts bytes to packets.
    #[param(default = 1000, range = (1, 1_000_000), unit = "B", source = "the papers' packets")]
    pub mean_packet: u64,
    /// Target of the average delay from which an automatic min-th follows.
    #[param(
        default = Duration::from_millis(5),
        range = (Duration::from_micros(100), Duration::from_secs(10)),
        source = "Adaptive RED 2001 section 6"
    )]
    pub target_delay: Duration,
    /// Variant of RED: that of the papers, or that of ns-2.
    #[param(default = RedVariant::Papers, source = "the papers; ns-2.35 for ns-2")]
    pub variant: RedVariant,
}

pub(crate) fn check_thresholds(params: &RedParams) -> Result<(), ParameterError> {
    let RedParams { min_th, max_th, .. } = *params;
    let refuse = |value: f64, allowed: String| Err(ParameterError::new("max-th", value, allowed));
    match (min_th, max_th) {
        (Some(min), Some(max)) if max <= min => refuse(max, format!("more than min-th = {min}")),
        (None, Some(max)) => refuse(max, "set together with min-th, or not at all".to_owned()),
        _ => Ok(()),
    }
}

/// Settings of RED that are automatic unless they are set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Automatic {
    /// Lower threshold, packets.
    pub min_th: f64,
    /// Upper threshold, packets.
    pub max_th: f64,
    /// Weight of an arrival in the average.
    pub w_q: f64,
}

impl RedParams {
    /// Returns the thresholds and the weight in front of a link of this rate, as they are set or as they follow from the rate.
    pub fn automatic(&self, rate: Rate) -> Automatic {
        let per_second = rate.as_bps() as f64 / Bytes::new(self.mean_packet).bits() as f64;
        let min_th =
            self.min_th.unwrap_or_else(|| automatic_min_th(per_second, self.target_delay.as_secs_f64()));
        let max_th = self.max_th.unwrap_or(3.0 * min_th);
        Automatic { min_th, max_th, w_q: self.w_q.unwrap_or_else(|| automatic_weight(per_second)) }
    }

    /// Returns the drain time of a queue in the middle of the thresholds.
    pub(crate) fn standing_delay(&self, rate: Rate) -> Duration {
        match (self.min_th, self.max_th) {
            (Some(min), Some(max)) => {
                standing::bytes(f64::midpoint(min, max) * self.mean_packet as f64, rate)
            }
            // An automatic min-th is at the target delay, and max-th at three times that.
            _ => self.target_delay * 2,
        }
    }

    /// Returns these parameters with distant thresholds, for [`Aqm::moderate_params`](crate::Aqm::moderate_params).
    pub(crate) fn moderate(self, max_p: f64) -> Self {
        Self { min_th: Some(20.0), max_th: Some(300.0), max_p, ..self }
    }
}

/// `w_q` of Adaptive RED 2001 section 5: the average's time constant is one second.
fn automatic_weight(packets_per_second: f64) -> f64 {
    -(-1.0 / packets_per_second).exp_m1()
}

/// min_th of Adaptive RED 2001 section 6.
fn automatic_min_th(packets_per_second: f64, target_delay: f64) -> f64 {
    (packets_per_second * target_delay / 2.0).max(5.0)
}
