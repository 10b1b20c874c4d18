//! The congestion signal and the reference rate (RFC 8698 sections 4.2 and 4.3).

use super::{Feedback, Params};
use cutline_units::{Duration, Instant};
use std::sync::Arc;

/// The largest congestion signal, s: 15 bits of 100 us (RFC 8698 section 5.3).
const LARGEST_SIGNAL: f64 = 3.2767;

/// Way in which a report changes the rate (`rmode`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The path is not full: the rate rises in proportion to the received rate (eqs. 3 and 4).
    RampUp,
    /// The rate follows the congestion signal and its changes (eqs. 5 to 7).
    Gradual,
}

/// The rate of a flow. All rates are in bit/s and include headers.
#[derive(Clone, Debug)]
pub struct RateController {
    params: Arc<Params>,
    reference: f64,
    lost: f64,
    marked: f64,
    /// The signal of the last report, s.
    signal: f64,
    mode: Mode,
    last: Option<Instant>,
}

impl RateController {
    /// Returns the controller of a flow that begins with the lowest rate.
    pub fn new(params: &Arc<Params>) -> Self {
        Self {
            reference: params.min_rate.as_bps() as f64,
            lost: 0.0,
            marked: 0.0,
            signal: 0.0,
            mode: Mode::RampUp,
            last: None,
            params: Arc::clone(params),
        }
    }

    /// Returns the reference rate, bit/s (`r_ref`).
    pub const fn reference(&self) -> f64 {
        self.reference
    }

    /// Returns the congestion signal of the last report, s (`x_curr`).
    pub const fn signal(&self) -> f64 {
        self.signal
    }

    /// Returns the mode that the last report had.
    pub const fn mode(&self) -> Mode {
        self.mode
    }

    /// Handles a report. `rtt` is the round-trip time.
    pub fn on_report(&mut self, now: Instant, rtt: Duration, report: &Feedback) {
        let params = Arc::clone(&self.params);
        let smooth = |old: f64, new: f64| params.alpha * new + (1.0 - params.alpha) * old;
        self.lost = smooth(self.lost, report.lost);
        self.marked = smooth(self.marked, report.marked);
        let square = |ratio: f64, reference: f64| (ratio / reference).powi(2);
        // Eq. 2.
        let signal = warped(&params, report)
            + params.mark_delay.as_secs_f64() * square(self.marked, params.reference_marking)
            + params.loss_delay.as_secs_f64() * square(self.lost, params.reference_loss);
        let signal = signal.min(LARGEST_SIGNAL);
        let is_unused = report.lost <= 0.0 && report.largest_delay < params.queue_threshold;
        self.mode = if is_unused { Mode::RampUp } else { Mode::Gradual };
        let raised = self.raised(rtt, report);
        match self.mode {
            Mode::RampUp => self.reference = self.reference.max(raised),
            Mode::Gradual => {
                let most = if params.bounded_increase { self.reference.max(raised) } else { f64::INFINITY };
                let interval = self.last.map_or(params.feedback_interval, |last| now.saturating_since(last));
                self.update(interval, signal);
                self.reference = self.reference.min(most);
            }
        }
        self.clip();
        (self.signal, self.last) = (signal, Some(now));
    }

    /// Halves the rate, because no reports arrive.
    pub fn halve(&mut self) {
        self.reference /= 2.0;
        self.clip();
    }

    /// The rate of accelerated ramp-up (eqs. 3 and 4).
    fn raised(&self, rtt: Duration, report: &Feedback) -> f64 {
        let Params { gamma_max, queue_bound, feedback_interval, filter_delay, .. } = *self.params;
        let observed = (rtt + feedback_interval + filter_delay).as_secs_f64();
        let gamma = gamma_max.min(queue_bound.as_secs_f64() / observed);
        (1.0 + gamma) * report.received.as_bps() as f64
    }

    /// Gradual update (eqs. 5 to 7).
    fn update(&mut self, interval: Duration, signal: f64) {
        let Params { priority, reference_delay, max_rate, kappa, eta, tau, .. } = *self.params;
        let tau = tau.as_secs_f64();
        let most = max_rate.as_bps() as f64;
        let offset = signal - priority * reference_delay.as_secs_f64() * most / self.reference;
        let change = signal - self.signal;
        let of_offset = kappa * interval.as_secs_f64() / tau * offset / tau;
        self.reference -= (of_offset + kappa * eta * change / tau) * self.reference;
    }

    /// Keeps the rate in its range (eqs. 8 and 9).
    fn clip(&mut self) {
        let (least, most) = (self.params.min_rate.as_bps() as f64, self.params.max_rate.as_bps() as f64);
        self.reference = self.reference.clamp(least, most);
    }
}

/// The queuing delay, s, which counts less above a threshold while there are losses (eq. 1). For the length of an average loss
/// interval after the last loss is forgotten, the value moves from the warped one to the other.
fn warped(params: &Params, report: &Feedback) -> f64 {
    let delay = report.queuing_delay.as_secs_f64();
    let threshold = params.warping_threshold.as_secs_f64();
    let expiry = params.loss_expiry * report.loss_interval;
    let since = report.since_loss as f64;
    if delay < threshold || report.loss_interval <= 0.0 || since >= expiry + report.loss_interval {
        return delay;
    }
    let warped = threshold * (-params.lambda * (delay - threshold) / threshold).exp();
    let share = ((since - expiry) / report.loss_interval).max(0.0);
    warped + (delay - warped) * share
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutline_units::Rate;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn controller(kbps: u64) -> RateController {
        let mut controller = RateController::new(&Arc::new(Params::default()));
        controller.reference = kbps as f64 * 1e3;
        controller
    }

    fn at(ms: u64) -> Instant {
        Instant::ZERO + MS(ms)
    }

    #[test]
    fn an_unused_path_raises_the_rate_by_the_delay_that_it_may_cause() {
        let mut controller = controller(150);
        let report = Feedback { received: Rate::from_kbps(400), ..Feedback::default() };
        controller.on_report(at(0), MS(80), &report);
        // Eq. 3: 50 ms over 80 + 100 + 120 ms is a sixth.
        assert!((controller.reference() - 400e3 * 7.0 / 6.0).abs() < 1.0, "{}", controller.reference());
        assert_eq!(controller.mode(), Mode::RampUp);
        // A lower rate received lowers nothing, and the rate ends at the highest one.
        controller.on_report(at(100), MS(80), &Feedback { received: Rate::from_kbps(100), ..report });
        assert!(controller.reference() > 400e3);
        controller.on_report(at(200), MS(80), &Feedback { received: Rate::from_mbps(5), ..report });
        assert!((controller.reference() - 1500e3).abs() < 1.0);
    }

    #[test]
    fn a_gradual_update_is_as_equation_7() {
        let mut controller = controller(1000);
        let queue = |ms| Feedback { queuing_delay: MS(ms), largest_delay: MS(ms), ..Feedback::default() };
        controller.on_report(at(0), MS(80), &queue(15));
        // 15 ms is the equilibrium of 1 Mbit/s, so only the change of 15 ms counts: 0.5 * 2 * 15 / 500.
        assert!((controller.reference() - 970e3).abs() < 1.0, "{}", controller.reference());
        assert_eq!(controller.mode(), Mode::Gradual);
        controller.on_report(at(100), MS(80), &queue(40));
        // The offset is 40 - 10 * 1500 / 970 = 24.536 ms, the change 25 ms.
        let expected = 970e3 * (1.0 - 0.5 * 0.2 * 24.536 / 500.0 - 25.0 / 500.0);
        assert!((controller.reference() - expected).abs() < 10.0, "{} {expected}", controller.reference());
    }

    #[test]
    fn losses_and_marks_count_as_delay() {
        let mut controller = controller(1000);
        let report = Feedback { lost: 0.1, marked: 0.2, largest_delay: MS(20), ..Feedback::default() };
        controller.on_report(at(0), MS(80), &report);
        // A tenth of the ratios: 0.01 lost counts 10 ms, 0.02 marked counts 2 ms times 4.
        assert!((controller.signal() - 0.018).abs() < 1e-9, "{}", controller.signal());
    }

    #[test]
    fn a_long_queue_counts_less_while_packets_are_lost() {
        let params = Params::default();
        let report = |since_loss, loss_interval| Feedback {
            queuing_delay: MS(150),
            since_loss,
            loss_interval,
            ..Feedback::default()
        };
        assert!((warped(&params, &report(10, 0.0)) - 0.15).abs() < 1e-12, "nothing was lost yet");
        let least = 0.05 * (-1.0_f64).exp();
        assert!((warped(&params, &report(10, 100.0)) - least).abs() < 1e-12);
        assert!((warped(&params, &report(750, 100.0)) - f64::midpoint(least, 0.15)).abs() < 1e-12);
        assert!((warped(&params, &report(800, 100.0)) - 0.15).abs() < 1e-12);
        let short = Feedback { queuing_delay: MS(49), ..report(10, 100.0) };
        assert!((warped(&params, &short) - 0.049).abs() < 1e-12);
    }
}
