//! What can be set of RED. Adaptive RED and RED-Worcester have these parameters as a group, with other defaults.

use cutline_params::{Choice, ParameterError, Parameters};
use cutline_units::Duration;

/// How a queue is measured, and whether large packets are likelier to be hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum Mode {
    /// In packets; every packet is hit alike.
    Packets,
    /// In bytes; a packet is hit in proportion to its size.
    Bytes,
}

/// How hits are spaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum Spacing {
    /// Uniformly over 1 to 1 / p - 1 (Floyd and Jacobson, figure 2).
    Uniform,
    /// Uniformly over 1 / p to 2 / p - 1, as ns-2 does unless told otherwise.
    Wait,
    /// Each packet for itself: geometrically.
    None,
}

const SECTION_VI: &str = "Floyd and Jacobson 1993, section VI";
const THRESHOLDS: (f64, f64) = (0.0, 1e7);

/// What can be set. Adaptive RED and RED-Worcester have most of it too.
#[derive(Clone, Copy, Debug, PartialEq, Parameters)]
#[parameters(check = check_thresholds)]
pub struct RedParams {
    /// Below this average nothing is hit; off is automatic.
    #[param(default = Some(5.0), range = THRESHOLDS, unit = "packets", source = SECTION_VI)]
    pub min_th: Option<f64>,
    /// The average at which the probability has risen to max-p; above min-th; off is automatic.
    #[param(default = Some(15.0), range = THRESHOLDS, unit = "packets", source = SECTION_VI)]
    pub max_th: Option<f64>,
    /// The probability at max-th; where it adapts, what it begins with.
    #[param(default = 0.02, range = (1e-4, 1.0), source = SECTION_VI)]
    pub max_p: f64,
    /// The weight of each arrival in the average queue; off is automatic.
    #[param(default = Some(0.002), range = (1e-6, 1.0), source = SECTION_VI)]
    pub w_q: Option<f64>,
    /// Let the probability rise from max-p at max-th to 1 at twice that, instead of jumping.
    #[param(default = false, source = "Floyd and Jacobson 1993; Floyd 2000 recommends true")]
    pub gentle: bool,
    /// Measure the queue in packets, or in bytes and hit packets in proportion to their size.
    #[param(default = Mode::Packets, source = "Floyd and Jacobson 1993, section VII")]
    pub mode: Mode,
    /// Packets from hit to hit: uniform over 1 to 1/p - 1, wait for 1/p and uniform over the next 1/p, or none.
    #[param(default = Spacing::Uniform, source = "Floyd and Jacobson 1993, figure 2")]
    pub spacing: Spacing,
    /// The packet that turns bytes into packets.
    #[param(default = 1000, range = (1, 1_000_000), unit = "B", source = "the papers' packets")]
    pub mean_packet: u64,
    /// Set the thresholds and w-q from the link's rate, as Adaptive RED does.
    #[param(default = false, source = "Floyd and Jacobson 1993")]
    pub automatic: bool,
    /// The average delay that automatic thresholds aim at.
    #[param(
        default = Duration::from_millis(5),
        range = (Duration::from_micros(100), Duration::from_secs(10)),
        source = "Adaptive RED 2001, section 6"
    )]
    pub target_delay: Duration,
    /// Spare the first packet above min-th and those that find fewer than two waiting; where max-p adapts, step as
    /// ns-2.
    #[param(name = "ns-2", default = false, source = "the papers; ns-2.35 for true")]
    pub ns2: bool,
}

pub(crate) fn check_thresholds(params: &RedParams) -> Result<(), ParameterError> {
    let RedParams { min_th, max_th, automatic, .. } = *params;
    let refuse = |value: f64, allowed: String| Err(ParameterError::new("max-th", value, allowed));
    match (min_th, max_th) {
        _ if automatic => Ok(()),
        (Some(min), Some(max)) if max <= min => refuse(max, format!("more than min-th = {min}")),
        (None, Some(max)) => refuse(max, "set together with min-th, or not at all".to_owned()),
        _ => Ok(()),
    }
}
