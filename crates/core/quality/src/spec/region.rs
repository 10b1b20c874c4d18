//! The region of operation, and the position of an application in it (QUANTA section 4).

use super::Specification;
use cutline_units::Duration;
use std::fmt;

/// Measure of a stream that has a best and a worst acceptable value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Measure {
    /// Messages delivered, messages/s.
    Rate,
    /// One-way delay, ms.
    Delay,
    /// Time between the arrivals of two messages, ms.
    Gap,
    /// Change of the one-way delay from one message to the next, ms.
    Jitter,
    /// Messages lost, per cent.
    Loss,
    /// Time to recover a broken connection, ms.
    Recovery,
}

impl Measure {
    /// Every measure, in the order of a region's axes.
    pub const ALL: [Self; 6] = [Self::Rate, Self::Delay, Self::Gap, Self::Jitter, Self::Loss, Self::Recovery];

    /// The name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rate => "rate",
            Self::Delay => "delay",
            Self::Gap => "gap",
            Self::Jitter => "jitter",
            Self::Loss => "loss",
            Self::Recovery => "recovery",
        }
    }

    /// Returns the unit of the values of this dimension.
    pub const fn unit(self) -> &'static str {
        match self {
            Self::Rate => "messages/s",
            Self::Delay | Self::Gap | Self::Jitter | Self::Recovery => "ms",
            Self::Loss => "%",
        }
    }

    /// The best and the worst value that a specification accepts; `None` where it accepts any.
    fn limits(self, spec: &Specification) -> Option<(f64, f64)> {
        let up_to = |longest: Option<Duration>| Some((0.0, ms(longest?)));
        match self {
            Self::Rate => match (spec.min_rate, spec.max_rate.or(spec.peak_rate)) {
                (None, None) => None,
                // More than the least is as good as the least if no useful rate is given.
                (Some(least), best) => Some((best.unwrap_or(least), least)),
                (None, Some(best)) => Some((best, 0.0)),
            },
            Self::Delay => Some((spec.min_delay.map_or(0.0, ms), ms(spec.max_delay?))),
            Self::Gap => up_to(spec.max_gap),
            Self::Jitter => up_to(spec.jitter),
            Self::Loss => Some((0.0, spec.loss?)),
            Self::Recovery => up_to(spec.recovery),
        }
    }
}

impl fmt::Display for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

fn ms(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1e6
}

/// The acceptable values of one measure, in its unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Axis {
    /// The measure.
    pub measure: Measure,
    /// The best value; a better one has no further use.
    pub best: f64,
    /// The worst acceptable value.
    pub worst: f64,
}

impl Axis {
    /// Returns the position of a value: 1 at the best and beyond, 0 at the worst, below 0 where it is not
    /// acceptable. On an axis whose best is its worst, and that so has no length, a value that is not
    /// acceptable lies at -1.
    pub fn position(&self, value: f64) -> f64 {
        let Self { best, worst, .. } = *self;
        if !self.accepts(value) && best == worst {
            return -1.0;
        }
        if best == worst { 1.0 } else { ((value - worst) / (best - worst)).min(1.0) }
    }

    /// Returns whether a value is at least as good as the worst acceptable.
    pub fn accepts(&self, value: f64) -> bool {
        if self.larger_is_better() { value >= self.worst } else { value <= self.worst }
    }

    /// The value at a position from 0, the worst, to 1, the best.
    pub fn at(&self, position: f64) -> f64 {
        self.worst + position.clamp(0.0, 1.0) * (self.best - self.worst)
    }

    /// The worse of two values.
    pub fn worse(&self, one: f64, other: f64) -> f64 {
        if self.larger_is_better() { one.min(other) } else { one.max(other) }
    }

    /// The better of two values.
    fn better(&self, one: f64, other: f64) -> f64 {
        if self.larger_is_better() { one.max(other) } else { one.min(other) }
    }

    const fn larger_is_better(&self) -> bool {
        matches!(self.measure, Measure::Rate)
    }
}

/// The region of operation: an axis for each measure that has limits. While an application stays in it, it behaves
/// predictably.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Region {
    axes: Vec<Axis>,
}

impl Region {
    /// The region that a specification describes.
    pub fn new(spec: &Specification) -> Self {
        let axis = |measure: Measure| measure.limits(spec).map(|(best, worst)| Axis { measure, best, worst });
        Self { axes: Measure::ALL.into_iter().filter_map(axis).collect() }
    }

    /// The axes, in the order of [`Measure::ALL`].
    pub fn axes(&self) -> &[Axis] {
        &self.axes
    }

    /// The axis of a measure; `None` where any value is acceptable.
    pub fn axis(&self, measure: Measure) -> Option<&Axis> {
        self.axes.iter().find(|axis| axis.measure == measure)
    }
}

/// The interval of operation: on each axis of a region the values that were measured, from the best to the worst.
#[derive(Clone, Debug, PartialEq)]
pub struct Interval {
    region: Region,
    /// The best and the worst value of each axis; `None` before the first.
    seen: Vec<Option<(f64, f64)>>,
}

impl Interval {
    /// An interval in which nothing has been measured.
    pub fn new(region: Region) -> Self {
        let seen = vec![None; region.axes.len()];
        Self { region, seen }
    }

    /// The region that the values are compared with.
    pub const fn region(&self) -> &Region {
        &self.region
    }

    /// Takes a measured value, in the measure's unit. A measure without an axis is ignored.
    pub fn observe(&mut self, measure: Measure, value: f64) {
        let Some(at) = self.region.axes.iter().position(|axis| axis.measure == measure) else { return };
        let axis = &self.region.axes[at];
        let (best, worst) = self.seen[at].unwrap_or((value, value));
        self.seen[at] = Some((axis.better(best, value), axis.worse(worst, value)));
    }

    /// Each axis on which something was measured, with the best and the worst value.
    pub fn seen(&self) -> impl Iterator<Item = (&Axis, f64, f64)> {
        let pairs = self.region.axes.iter().zip(&self.seen);
        pairs.filter_map(|(axis, seen)| seen.map(|(best, worst)| (axis, best, worst)))
    }

    /// The axes on which the worst value is not acceptable, with that value.
    pub fn outside(&self) -> impl Iterator<Item = (&Axis, f64)> {
        self.seen().filter(|(axis, _, worst)| !axis.accepts(*worst)).map(|(axis, _, worst)| (axis, worst))
    }

    /// Returns whether every value that was measured is acceptable.
    pub fn is_inside(&self) -> bool {
        self.outside().next().is_none()
    }

    /// Resets the measurements.
    pub fn clear(&mut self) {
        self.seen.fill(None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Specification of NetVideo (QoSockets section IV).
    fn video() -> Specification {
        let ms = Duration::from_millis;
        let spec = Specification::builder().rates(60.0, 80.0, 100.0).min_delay(ms(0)).max_delay(ms(100));
        spec.max_gap(ms(50)).loss(5.0).recovery(ms(5000)).build().unwrap()
    }

    #[test]
    fn a_region_extends_from_the_best_to_the_worst() {
        let region = Region::new(&video());
        let axes: Vec<_> =
            region.axes().iter().map(|axis| (axis.measure.name(), axis.best, axis.worst)).collect();
        let expected = [
            ("rate", 80.0, 60.0),
            ("delay", 0.0, 100.0),
            ("gap", 0.0, 50.0),
            ("loss", 0.0, 5.0),
            ("recovery", 0.0, 5000.0),
        ];
        assert_eq!(axes, expected);
        assert_eq!(region.axis(Measure::Jitter), None, "NetVideo leaves it open");
        assert!(Region::new(&Specification::OPEN).axes().is_empty());
    }

    #[test]
    fn a_position_is_one_at_the_best_and_zero_at_the_worst() {
        let region = Region::new(&video());
        let rate = region.axis(Measure::Rate).unwrap();
        assert_eq!(
            [90.0, 80.0, 70.0, 60.0, 50.0].map(|value| rate.position(value)),
            [1.0, 1.0, 0.5, 0.0, -0.5]
        );
        let delay = region.axis(Measure::Delay).unwrap();
        assert_eq!([0.0, 25.0, 100.0, 150.0].map(|value| delay.position(value)), [1.0, 0.75, 0.0, -0.5]);
        assert_eq!([0.0, 0.75, 1.0, 2.0].map(|position| delay.at(position)), [100.0, 25.0, 0.0, 0.0]);
    }

    #[test]
    fn a_limit_without_a_range_is_kept_or_not() {
        let lossless = Specification::builder().loss(0.0).rates(1.0, 1.0, 3.0).build().unwrap();
        let region = Region::new(&lossless);
        let loss = region.axis(Measure::Loss).unwrap();
        assert_eq!((loss.position(0.0), loss.position(0.1)), (1.0, -1.0));
        let rate = region.axis(Measure::Rate).unwrap();
        assert_eq!((rate.position(3.0), rate.position(0.9)), (1.0, -1.0));
    }

    #[test]
    fn an_open_end_of_the_rate_is_the_least_or_nothing() {
        let rates =
            |spec: Specification| Region::new(&spec).axis(Measure::Rate).map(|axis| (axis.best, axis.worst));
        let least = Specification::builder().min_rate(5.0).build().unwrap();
        let most = Specification::builder().peak_rate(9.0).build().unwrap();
        assert_eq!((rates(least), rates(most)), (Some((5.0, 5.0)), Some((9.0, 0.0))));
    }

    #[test]
    fn an_interval_has_what_was_measured_and_names_what_is_outside() {
        let mut interval = Interval::new(Region::new(&video()));
        assert!(interval.is_inside());
        for delay in [20.0, 80.0, 40.0] {
            interval.observe(Measure::Delay, delay);
        }
        interval.observe(Measure::Rate, 75.0);
        interval.observe(Measure::Jitter, 1e9);
        let seen: Vec<_> = interval.seen().map(|(axis, best, worst)| (axis.measure, best, worst)).collect();
        assert_eq!(seen, [(Measure::Rate, 75.0, 75.0), (Measure::Delay, 20.0, 80.0)]);
        assert!(interval.is_inside(), "jitter has no limit");
        interval.observe(Measure::Rate, 59.0);
        interval.observe(Measure::Delay, 101.0);
        let outside: Vec<_> = interval.outside().map(|(axis, worst)| (axis.measure, worst)).collect();
        assert_eq!(outside, [(Measure::Rate, 59.0), (Measure::Delay, 101.0)]);
        interval.clear();
        assert!(interval.is_inside() && interval.seen().next().is_none());
    }
}
