//! Parameters of the feedback of a path.

use crate::resources::LoweringOrder;
use cutline_params::{ParameterError, Parameters};
use cutline_units::Duration;

/// Parameters of the feedback of a path. All hosts of a path use the same.
#[derive(Clone, Debug, PartialEq, Parameters)]
#[parameters(check = FeedbackParams::go_together)]
pub struct FeedbackParams {
    /// Time between two summaries.
    #[param(
        default = Duration::from_millis(500),
        range = (Duration::from_millis(10), Duration::from_secs(60)),
        source = "ours: the interval of reports, QoSockets eq. 2 and 3"
    )]
    pub interval: Duration,
    /// Number of reports from which a trend is estimated; at least `least`.
    #[param(default = 8, range = (3, 32), source = "ours: 4 s; more reports are steadier and later")]
    pub window: u32,
    /// The fewest reports from which a trend is estimated.
    #[param(default = 4, range = (3, 32), source = "ours: the fewest of which an order by chance is rarer than 5 %")]
    pub least: u32,
    /// Time ahead for which delays are predicted.
    #[param(
        default = Duration::from_secs(2),
        range = (Duration::ZERO, Duration::from_secs(60)),
        source = "ours: a report, a summary and a directive, each with 0.5 s of delay, and half a second"
    )]
    pub horizon: Duration,
    /// Standard deviations by which a trend differs from none, and a loss from its limit.
    #[param(default = 1.65, range = (0.0, 10.0), source = "one-sided 5 % of the normal distribution")]
    pub confidence: f64,
    /// The least growth of the delay within the horizon that counts as a disturbance.
    #[param(
        default = Duration::from_millis(5),
        range = (Duration::ZERO, Duration::from_secs(10)),
        source = "ours: queues of less harm no class of applications"
    )]
    pub rise: Duration,
    /// The predicted headroom below which flows are lowered; 0 is the edge of the region.
    #[param(default = 0.1, range = (0.0, 1.0), source = "ours: as `near` of a connection's own controller")]
    pub near: f64,
    /// The predicted headroom above which flows are raised; at least near.
    #[param(default = 0.3, range = (0.0, 1.0), source = "ours: as `inside` of a connection's own controller")]
    pub inside: f64,
    /// The share of the flows, averaged over hosts, that is disturbed if the path is the reason.
    #[param(default = 0.25, range = (0.0, 1.0), source = "ours: one flow in four; fewer have another reason, and adapt by themselves")]
    pub corroboration: f64,
    /// Factor by which the delivered rate is lowered.
    #[param(default = 0.85, range = (0.1, 0.99), source = "ours: the rest empties a queue of 150 ms within a second")]
    pub decrease: f64,
    /// Time in which a queue is to empty.
    #[param(
        default = Duration::from_secs(4),
        range = (Duration::from_millis(100), Duration::from_secs(600)),
        source = "ours: a queue of 0.6 s is the first that lowers flows further than decrease"
    )]
    pub drain: Duration,
    /// Size of a raise, as a share of the rate of all flows.
    #[param(default = 0.05, range = (0.001, 0.5), source = "ours: as `step` of a connection's own controller")]
    pub step: f64,
    /// The time between two raises, and the first patience before a probe; at most longest-rest.
    #[param(
        default = Duration::from_secs(2),
        range = (Duration::from_millis(10), Duration::from_secs(600)),
        source = "ours: four intervals, from which a trend is estimated"
    )]
    pub rest: Duration,
    /// The longest patience before a probe.
    #[param(
        default = Duration::from_secs(32),
        range = (Duration::from_millis(10), Duration::from_secs(3600)),
        source = "ours: how late a path that recovers is noticed"
    )]
    pub longest_rest: Duration,
    /// Time without a summary after which a host counts as silent, and without a report a flow.
    #[param(
        default = Duration::from_secs(4),
        range = (Duration::from_millis(10), Duration::from_secs(600)),
        source = "ours: of 8 summaries 1 in 15,000 times all are lost, at a loss of 30 %"
    )]
    pub silence: Duration,
    /// Order in which flows are lowered.
    #[param(default = LoweringOrder::Priority, source = "ours: priority is the only order that an application can influence")]
    pub order: LoweringOrder,
}

impl FeedbackParams {
    /// Returns the parameters of a controller without prediction, to which the median of three intervals counts: the baseline of comparisons.
    pub fn reacting() -> Self {
        Self { horizon: Duration::ZERO, confidence: 10.0, window: 3, least: 3, ..Self::default() }
    }

    fn go_together(&self) -> Result<(), ParameterError> {
        if self.least > self.window {
            return Err(ParameterError::new(
                "least",
                self.least,
                format!("at most window, which is {}", self.window),
            ));
        }
        if self.near > self.inside {
            return Err(ParameterError::new(
                "near",
                self.near,
                format!("at most inside, which is {}", self.inside),
            ));
        }
        if self.rest > self.longest_rest {
            let most = format!("at most longest-rest, which is {}", self.longest_rest);
            return Err(ParameterError::new("rest", self.rest, most));
        }
        Ok(())
    }
}
