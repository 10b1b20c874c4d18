//! The parameters of a NADA flow.

use cutline_params::{ParameterError, Parameters};
use cutline_units::{Duration, Rate};

const MS: fn(u64) -> Duration = Duration::from_millis;
/// The rates of encoders, bit/s.
const RATES: (u64, u64) = (1000, 100_000_000_000);
const SECOND: Duration = Duration::from_secs(1);

/// The parameters of a NADA flow. Flows with the same parameters share them behind an `Arc`.
#[derive(Clone, Copy, Debug, PartialEq, Parameters)]
#[parameters(check = check)]
pub struct Params {
    /// The largest payload of a packet, and of a message of another application than the encoder. Frames are split into packets of equal
    /// size.
    #[param(default = 1000, range = (64, 65_535), unit = "B", source = "the papers' packet")]
    pub packet_size: u32,
    /// The size of a packet's headers on the wire.
    #[param(name = "header", default = 40, range = (0, 1000), unit = "B", source = "IPv4, UDP and RTP")]
    pub header_bytes: u32,
    /// A report's size on the wire.
    #[param(name = "feedback-size", default = 200, range = (1, 1500), unit = "B", source = "RFC 8698 section 6.3")]
    pub feedback_bytes: u32,
    /// The lowest rate of the encoder (`RMIN`).
    #[param(default = Rate::from_kbps(150), range = RATES, unit = "bit/s", source = "RFC 8698 table 2")]
    pub min_rate: Rate,
    /// The highest rate of the encoder (`RMAX`).
    #[param(default = Rate::from_kbps(1500), range = RATES, unit = "bit/s", source = "RFC 8698 table 2")]
    pub max_rate: Rate,
    /// Weight of the flow among flows of NADA (`PRIO`).
    #[param(default = 1.0, range = (0.01, 100.0), source = "RFC 8698 table 2")]
    pub priority: f64,
    /// The congestion signal at which a flow has its highest rate (`XREF`).
    #[param(default = MS(10), range = (MS(1), SECOND), source = "RFC 8698 table 2")]
    pub reference_delay: Duration,
    /// Gain of gradual updates (`KAPPA`).
    #[param(default = 0.5, range = (0.01, 10.0), source = "RFC 8698 table 2")]
    pub kappa: f64,
    /// Gain of changes of the signal (`ETA`).
    #[param(default = 2.0, range = (0.0, 20.0), source = "RFC 8698 table 2")]
    pub eta: f64,
    /// Upper bound of the round-trip time in gradual updates (`TAU`).
    #[param(default = MS(500), range = (MS(10), Duration::from_secs(10)), source = "RFC 8698 table 2")]
    pub tau: Duration,
    /// Interval between reports, in whole milliseconds (`DELTA`).
    #[param(default = MS(100), range = (MS(10), SECOND), source = "RFC 8698 table 2")]
    pub feedback_interval: Duration,
    /// Time over which the receiver measures, in whole milliseconds (`LOGWIN`); at least the interval between reports.
    #[param(default = MS(500), range = (MS(10), Duration::from_secs(10)), source = "RFC 8698 table 2")]
    pub log_window: Duration,
    /// Queuing delay from which on the path counts as used (`QEPS`).
    #[param(default = MS(10), range = (Duration::ZERO, SECOND), source = "RFC 8698 table 2")]
    pub queue_threshold: Duration,
    /// Bound on the delay of filters (`DFILT`).
    #[param(default = MS(120), range = (Duration::ZERO, SECOND), source = "RFC 8698 table 2")]
    pub filter_delay: Duration,
    /// Largest increase in one report of accelerated ramp-up, as a share of the received rate (`GAMMA_MAX`).
    #[param(default = 0.5, range = (0.0, 10.0), source = "RFC 8698 table 2")]
    pub gamma_max: f64,
    /// Largest queuing delay that accelerated ramp-up may cause (`QBOUND`).
    #[param(default = MS(50), range = (Duration::ZERO, SECOND), source = "RFC 8698 table 2")]
    pub queue_bound: Duration,
    /// Number of average loss intervals after which a loss is forgotten (`MULTILOSS`).
    #[param(default = 7.0, range = (0.0, 1000.0), source = "RFC 8698 table 2")]
    pub loss_expiry: f64,
    /// Queuing delay above which delay counts less while there are losses (`QTH`).
    #[param(default = MS(50), range = (MS(1), SECOND), source = "RFC 8698 table 2")]
    pub warping_threshold: Duration,
    /// Exponent with which delay counts less (`LAMBDA`).
    #[param(default = 0.5, range = (0.0, 10.0), source = "RFC 8698 table 2")]
    pub lambda: f64,
    /// The reference loss ratio (`PLRREF`).
    #[param(default = 0.01, range = (1e-6, 1.0), source = "RFC 8698 table 2")]
    pub reference_loss: f64,
    /// The reference marking ratio (`PMRREF`).
    #[param(default = 0.01, range = (1e-6, 1.0), source = "RFC 8698 table 2")]
    pub reference_marking: f64,
    /// Delay that the reference loss ratio counts as (`DLOSS`).
    #[param(default = MS(10), range = (Duration::ZERO, SECOND), source = "RFC 8698 table 2")]
    pub loss_delay: Duration,
    /// Delay that the reference marking ratio counts as (`DMARK`).
    #[param(default = MS(2), range = (Duration::ZERO, SECOND), source = "RFC 8698 table 2")]
    pub mark_delay: Duration,
    /// Frames per second of the encoder (`FPS`).
    #[param(default = 30.0, range = (1.0, 1000.0), source = "RFC 8698 table 2")]
    pub frame_rate: f64,
    /// Part of the waiting bytes by which the sending rate is raised (`BETA_S`).
    #[param(default = 0.1, range = (0.0, 1.0), source = "RFC 8698 table 2")]
    pub beta_s: f64,
    /// Part of the waiting bytes by which the encoder's rate is lowered (`BETA_V`).
    #[param(default = 0.1, range = (0.0, 1.0), source = "RFC 8698 table 2")]
    pub beta_v: f64,
    /// Weight of the newest report in the ratios of losses and marks (`ALPHA`).
    #[param(default = 0.1, range = (0.001, 1.0), source = "RFC 8698 table 2")]
    pub alpha: f64,
    /// A gradual update raises the rate at most to that of accelerated ramp-up. Without this bound the rate jumps to the highest one while
    /// the signal of many losses fades, and they come again.
    #[param(default = true, source = "ours: RFC 8698 has no bound")]
    pub bounded_increase: bool,
    /// Time without reports after which the rate is halved.
    #[param(default = SECOND, range = (MS(100), Duration::from_secs(60)), source = "ours: RFC 8698 has none")]
    pub feedback_timeout: Duration,
    /// Number of packets that may wait to be sent; off is any number. The sender drops those that do not fit.
    #[param(default = Some(200), range = (1, 100_000), unit = "packets", source = "ours: RFC 8698 section 10 bounds the buffer")]
    pub send_buffer: Option<u32>,
    /// Packets are ECN-capable.
    #[param(default = false, skip)]
    pub ecn: bool,
}

fn check(params: &Params) -> Result<(), ParameterError> {
    let Params { min_rate, max_rate, feedback_interval, log_window, .. } = *params;
    if min_rate > max_rate {
        return Err(ParameterError::new("min-rate", min_rate, format!("at most max-rate, {max_rate}")));
    }
    for (name, time) in [("feedback-interval", feedback_interval), ("log-window", log_window)] {
        if !time.as_nanos().is_multiple_of(1_000_000) {
            return Err(ParameterError::new(name, time, "whole milliseconds"));
        }
    }
    if feedback_interval > log_window {
        let allowed = format!("at most log-window, {log_window}");
        return Err(ParameterError::new("feedback-interval", feedback_interval, allowed));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_contradict_each_other_are_named() {
        let error = |params: Params| params.validate().unwrap_err().parameter;
        assert_eq!(error(Params { min_rate: Rate::from_mbps(2), ..Params::default() }), "min-rate");
        assert_eq!(error(Params { log_window: MS(50), ..Params::default() }), "feedback-interval");
        let odd = Duration::from_micros(100_500);
        assert_eq!(error(Params { feedback_interval: odd, ..Params::default() }), "feedback-interval");
        assert_eq!(error(Params { log_window: odd, ..Params::default() }), "log-window");
    }
}
