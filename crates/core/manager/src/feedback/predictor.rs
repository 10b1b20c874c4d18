//! Prediction of where in its region of operation a flow will be (QUANTA section 5, global monitoring).
//!
//! Each report adds the mean of an interval's delays to a series, whose [`Trend`] is estimated. If it differs from none by
//! [`FeedbackParams::confidence`], the delay that is compared with the edge of the region is
//!
//! ```text
//! d(t) = a + b (t - t_n) + q            t = now + horizon
//! ```
//!
//! with q the median distance of an interval's quantile from its mean. Without a trend it is the median of the window's
//! quantiles: half of all intervals have to be near the edge. The time from the last value to now is part of the
//! prediction, so late reports lead to earlier decisions.
//!
//! *Headroom* is the position between the edge and the best delay, or the shortest one that was seen, if that is
//! longer: a path of 500 ms in a region of up to 700 ms has 200 ms for queues, and headroom 1 if there is none.
//!
//! *Backlog*: the backlog at the sender takes `backlog / rate` to leave. A message that is sent now has at least this
//! delay, so the same is done for this series, and the later one counts.
//!
//! *Loss* has no trend. L messages of the window's n are lost; `100 (L - z sqrt L) / n` per cent is compared with the
//! edge, which is exceeded by chance with the probability that belongs to z (L is about Poisson distributed, and its
//! standard deviation the root).
//!
//! A flow whose shortest delay of 64 reports is near the edge cannot be helped by lower rates. Its delay is left out.

use super::params::FeedbackParams;
use super::trend::{Trend, TrendSeries};
use cutline_params::ParameterError;
use cutline_quality::spec::{Axis, Measure, Region};
use cutline_signal::monitor::Delivery;
use cutline_units::{Bytes, Duration, Instant, Rate};
use std::collections::VecDeque;

/// Report of a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FlowReport {
    /// Traffic that was delivered in an interval, and its measures, with the sender's clock.
    pub delivery: Delivery,
    /// Data that wait at the sender.
    pub backlog: Bytes,
}

/// Edges of a flow's region of operation that depend on the load of its path.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FlowEdges {
    /// The best and the worst acceptable delay, ms; `None` if any is acceptable.
    pub delay: Option<(f64, f64)>,
    /// The worst acceptable loss, per cent; `None` if any is acceptable.
    pub loss: Option<f64>,
}

impl FlowEdges {
    /// Checks that edges are numbers.
    ///
    /// # Errors
    /// When an edge is negative or no number, or the worst delay is better than the best.
    pub fn validate(&self) -> Result<(), ParameterError> {
        if let Some((best, worst)) = self.delay {
            if !(0.0..=MOST_DELAY).contains(&best) {
                return Err(ParameterError::new("delay", best, format!("0 to {MOST_DELAY} ms")));
            }
            if !(best..=MOST_DELAY).contains(&worst) {
                return Err(ParameterError::new(
                    "delay",
                    worst,
                    format!("the best, which is {best}, to {MOST_DELAY} ms"),
                ));
            }
        }
        match self.loss.filter(|loss| !(0.0..=100.0).contains(loss)) {
            Some(loss) => Err(ParameterError::new("loss", loss, "0 to 100 %")),
            None => Ok(()),
        }
    }

    /// The edges of a region.
    pub fn new(region: &Region) -> Self {
        let axis = |measure| region.axis(measure);
        Self {
            delay: axis(Measure::Delay).map(|axis| (axis.best, axis.worst)),
            loss: axis(Measure::Loss).map(|axis| axis.worst),
        }
    }

    fn delay_axis(&self) -> Option<Axis> {
        self.delay.map(|(best, worst)| Axis { measure: Measure::Delay, best, worst })
    }

    fn loss_axis(&self) -> Option<Axis> {
        self.loss.map(|worst| Axis { measure: Measure::Loss, best: 0.0, worst })
    }
}

/// Prediction for a flow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlowPrediction {
    /// Position of the worst measure now: 1 at the best, 0 at the edge of the region, below 0 outside.
    pub headroom: f64,
    /// The same after the horizon.
    pub ahead: f64,
    /// True if the flow is, or will be, near its edge, or its delay grows.
    pub is_disturbed: bool,
}

impl FlowPrediction {
    /// The prediction for a flow of which nothing is known.
    pub const UNKNOWN: Self = Self { headroom: 1.0, ahead: 1.0, is_disturbed: false };
}

/// Predictor of a flow.
#[derive(Clone, Debug)]
pub struct Predictor {
    edges: FlowEdges,
    /// Means of delays, ms.
    means: TrendSeries,
    /// Quantiles of delays, ms.
    quantiles: TrendSeries,
    /// Distances of quantiles from means, ms.
    distances: TrendSeries,
    /// Times in which the backlog leaves, ms.
    backlogs: TrendSeries,
    /// Messages sent and lost in each interval.
    losses: VecDeque<(u64, i64)>,
    window: usize,
    /// The shortest mean, ms.
    base: f64,
    /// The last mean, ms.
    last: Option<f64>,
    /// Number of reports with delays.
    delays: u32,
}

/// The share of the room in a region that a delay exceeds the shortest one by, if there is a queue.
const QUEUED: f64 = 0.2;
/// The longest delay of a region, ms: an hour.
const MOST_DELAY: f64 = 3_600_000.0;
/// The most messages of an interval that count.
const MANY: u64 = 1 << 40;
/// Number of reports after which the shortest delay counts as that of the path without queues. Queues that
/// were there at first have shrunk by then, because rates were lowered.
const KNOWN: u32 = 16;
/// Number of reports after which a delay near the edge counts as one that no rate can reduce.
const HOPELESS: u32 = 64;
/// The shortest distance of the best delay from the edge, as a share of the edge.
const NARROWEST: f64 = 0.1;

impl Predictor {
    /// A predictor that knows nothing yet.
    pub fn new(edges: FlowEdges, params: &FeedbackParams) -> Self {
        let series = TrendSeries::new(params.window);
        Self {
            edges,
            means: series.clone(),
            quantiles: series.clone(),
            distances: series.clone(),
            backlogs: series,
            losses: VecDeque::new(),
            window: params.window as usize,
            base: f64::INFINITY,
            last: None,
            delays: 0,
        }
    }

    /// Sets other edges. The reports stay.
    pub const fn set_edges(&mut self, edges: FlowEdges) {
        self.edges = edges;
    }

    /// Adds a report of a flow that sends at most at `rate`. One that claims to be of the future counts as one of now.
    pub fn add(&mut self, now: Instant, report: &FlowReport, rate: Rate) {
        let FlowReport { delivery, backlog } = report;
        let at = delivery.until.min(now);
        if let Some(spread) = delivery.delay {
            let (mean, quantile) = (spread.mean.as_millis_f64(), spread.quantile.as_millis_f64());
            self.means.add(at, mean);
            self.quantiles.add(at, quantile);
            self.distances.add(at, quantile - mean);
        }
        self.note_delay(report);
        let rate = Rate::from_bps(rate.as_bps().max(1));
        self.backlogs.add(at, rate.transmission_time(*backlog).as_millis_f64());
        if self.losses.len() == self.window {
            self.losses.pop_front();
        }
        // Sums of a window do not overflow.
        self.losses.push_back((delivery.sent.min(MANY), delivery.lost.clamp(-(MANY as i64), MANY as i64)));
    }

    /// Forgets all reports but the shortest delay, because rates have changed.
    pub fn forget(&mut self) {
        for series in [&mut self.means, &mut self.quantiles, &mut self.distances, &mut self.backlogs] {
            series.clear();
        }
        self.losses.clear();
    }

    /// Returns the number of reports in the window.
    pub fn reports(&self) -> usize {
        self.losses.len()
    }

    /// The queue that the last report shows, if it is a fifth of the room in the region or more.
    pub fn queue(&self) -> Option<Duration> {
        let axis = self.edges.delay_axis()?;
        let excess = self.last? - self.base;
        let room = axis.worst - axis.best.max(self.base);
        (excess > 0.0 && excess >= QUEUED * room).then(|| Duration::from_secs_f64(excess / 1e3))
    }

    /// Adds the delay of a report that is no evidence on the present rates, but still on the queue.
    pub fn note_delay(&mut self, report: &FlowReport) {
        if let Some(spread) = report.delivery.delay {
            let mean = spread.mean.as_millis_f64();
            self.last = Some(mean);
            self.base = self.base.min(mean);
            self.delays = self.delays.saturating_add(1);
        }
    }

    /// The prediction now.
    pub fn prediction(&self, now: Instant, params: &FeedbackParams) -> FlowPrediction {
        let loss = self
            .edges
            .loss_axis()
            .map_or(1.0, |axis| axis.position(self.certain_loss(params.confidence)).clamp(-1.0, 1.0));
        let delays = self.means.trend(params.least);
        let backlogs = self.backlogs.trend(params.least);
        let until = now.saturating_add(params.horizon);
        let is_certain = |trend: &Trend| trend.z.abs() >= params.confidence;
        let rises = |trend: &Trend| {
            let growth = trend.growth(params.horizon);
            trend.z >= params.confidence && growth >= params.rise.as_millis_f64()
        };
        let is_rising = delays.as_ref().is_some_and(rises) || backlogs.as_ref().is_some_and(rises);
        let (mut headroom, mut ahead) = (loss, loss);
        if let Some(axis) = self.axis(params) {
            let position = |ms: Option<f64>| ms.map_or(1.0, |ms| axis.position(ms).clamp(-1.0, 1.0));
            // A queue that drains ends at the delay of the path, which is not known at first.
            let shortest = if self.delays >= KNOWN { self.base } else { 0.0 };
            let delay_now = self.quantiles.median_of_latest(self.window);
            let distance = self.distances.median_of_latest(self.window).unwrap_or(0.0);
            let delay_ahead = match delays.filter(is_certain) {
                Some(trend) => Some((trend.value_at(until) + distance).max(shortest)),
                None => delay_now,
            };
            let backlog_now = self.backlogs.median_of_latest(self.window);
            let backlog_ahead = match backlogs.filter(is_certain) {
                Some(trend) => Some(trend.value_at(until).max(0.0)),
                None => backlog_now,
            };
            headroom = headroom.min(position(delay_now)).min(position(backlog_now));
            ahead = ahead.min(position(delay_ahead)).min(position(backlog_ahead));
        }
        FlowPrediction { headroom, ahead, is_disturbed: is_rising || ahead < params.near }
    }

    /// The axis of the delay, from the best that the path allows; `None` if any is acceptable, or no rate can reduce it.
    fn axis(&self, params: &FeedbackParams) -> Option<Axis> {
        let axis = self.edges.delay_axis()?;
        if self.delays >= HOPELESS && axis.position(self.base) < params.near {
            return None;
        }
        let best = if self.delays >= KNOWN {
            axis.best.max(self.base.min(axis.worst * (1.0 - NARROWEST)))
        } else {
            axis.best
        };
        Some(Axis { best, ..axis })
    }

    /// The loss that exceeds chance, per cent.
    fn certain_loss(&self, confidence: f64) -> f64 {
        let sent: u64 = self.losses.iter().map(|(sent, _)| sent).sum();
        let lost = self.losses.iter().map(|(_, lost)| lost).sum::<i64>().max(0) as f64;
        if sent == 0 { 0.0 } else { 100.0 * (lost - confidence * lost.sqrt()).max(0.0) / sent as f64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutline_signal::monitor::Spread;

    const EDGES: FlowEdges = FlowEdges { delay: Some((0.0, 100.0)), loss: Some(1.0) };

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    fn report(ms: u64, delay_ms: u64, lost: i64) -> FlowReport {
        let delay = Duration::from_millis(delay_ms);
        let quantile = delay + Duration::from_millis(4);
        let delivery = Delivery {
            since: at(ms - 500),
            until: at(ms),
            sent: 100,
            messages: (100 - lost) as u64,
            lost,
            delay: Some(Spread { mean: delay, quantile, worst: quantile }),
            ..Delivery::default()
        };
        FlowReport { delivery, backlog: Bytes::ZERO }
    }

    fn predictor(delays: &[u64]) -> Predictor {
        let mut predictor = Predictor::new(EDGES, &FeedbackParams::default());
        for (number, delay) in delays.iter().enumerate() {
            predictor.add(at(999_999), &report((number as u64 + 1) * 500, *delay, 0), Rate::from_mbps(1));
        }
        predictor
    }

    fn prediction(delays: &[u64]) -> FlowPrediction {
        predictor(delays).prediction(at(delays.len() as u64 * 500), &FeedbackParams::default())
    }

    /// QUANTA section 5, global monitoring: the delay grows by 10 ms in half a second from 20 ms, so in 2 s it is 90 + 4.
    #[test]
    fn a_growing_delay_is_seen_before_it_is_at_the_edge() {
        let FlowPrediction { headroom, ahead, is_disturbed } = prediction(&[20, 30, 40, 50]);
        assert!((headroom - 0.66).abs() < 1e-9, "the lower median is 34 ms: {headroom}");
        assert!((ahead - 0.06).abs() < 1e-9 && is_disturbed, "{ahead}");
        // A report that is late by a second is that much nearer.
        let late = predictor(&[20, 30, 40, 50]).prediction(at(3000), &FeedbackParams::default());
        assert!((late.ahead + 0.14).abs() < 1e-9, "{late:?}");
    }

    #[test]
    fn a_delay_without_trend_counts_as_it_is() {
        let calm = prediction(&[50, 48, 53, 49, 51, 47, 52, 50]);
        assert!(calm.ahead > 0.4 && !calm.is_disturbed, "{calm:?}");
        let peak = prediction(&[20, 21, 20, 22, 95, 21, 20, 22]);
        assert!(peak.ahead > 0.7 && !peak.is_disturbed, "one interval is no trend: {peak:?}");
        let outside = prediction(&[20, 120, 125, 118]);
        assert!(outside.ahead < 0.0 && outside.is_disturbed, "{outside:?}");
        assert_eq!(predictor(&[]).prediction(at(0), &FeedbackParams::default()), FlowPrediction::UNKNOWN);
    }

    #[test]
    fn a_queue_that_drains_is_no_reason() {
        let draining = prediction(&[180, 160, 140, 120, 100]);
        assert!(draining.headroom < 0.0 && draining.ahead > 0.7, "{draining:?}");
        assert!(!draining.is_disturbed);
    }

    #[test]
    fn a_delay_that_no_rate_can_mend_is_left_out() {
        let satellite = |reports: usize| prediction(&[250, 251, 249, 252].repeat(reports / 4));
        assert!(satellite(60).is_disturbed, "the path may be full");
        assert_eq!((satellite(64).ahead, satellite(64).is_disturbed), (1.0, false));
    }

    #[test]
    fn a_backlog_is_a_delay_to_come() {
        let mut predictor = predictor(&[20, 20, 20, 20]);
        let params = FeedbackParams::default();
        for (number, bytes) in [3_000, 6_000, 9_000, 12_000].into_iter().enumerate() {
            let report = report(2500 + number as u64 * 500, 20, 0);
            predictor.add(
                at(999_999),
                &FlowReport { backlog: Bytes::new(bytes), ..report },
                Rate::from_mbps(1),
            );
        }
        // 96 ms now, and up to 48 ms more each second.
        let prediction = predictor.prediction(at(4000), &params);
        assert!(prediction.is_disturbed && prediction.ahead < 0.1, "{prediction:?}");
    }

    #[test]
    fn a_loss_counts_beyond_chance() {
        let params = FeedbackParams::default();
        let loss = |lost: &[i64]| {
            let mut predictor = Predictor::new(EDGES, &params);
            for (number, lost) in lost.iter().enumerate() {
                predictor.add(at(999_999), &report((number as u64 + 1) * 500, 20, *lost), Rate::from_mbps(1));
            }
            predictor.prediction(at(4000), &params).ahead
        };
        // 1 % of 800 is allowed: 8. With 11 lost, 11 - 1.65 x 3.3 = 5.5 are certain.
        assert!((loss(&[2, 0, 3, 1, 0, 2, 2, 1]) - 0.316).abs() < 0.01);
        assert!(loss(&[4, 3, 2, 3, 2, 2, 3, 1]) < 0.0);
        assert_eq!(loss(&[0, -3, 0]), 0.76, "the delay alone");
    }

    #[test]
    fn edges_are_those_of_the_region() {
        use cutline_quality::spec::Specification;
        let spec = Specification::builder().max_delay(Duration::from_millis(150)).loss(2.0).build().unwrap();
        let edges = FlowEdges::new(&Region::new(&spec));
        assert_eq!(edges, FlowEdges { delay: Some((0.0, 150.0)), loss: Some(2.0) });
        assert_eq!(FlowEdges::new(&Region::new(&Specification::OPEN)), FlowEdges::default());
    }
}
