//! Requirements of an application on a stream of messages, parameter by parameter (QoSockets section II).
//!
//! A [`Specification`] is for one direction of a connection. Every parameter may be left open, which demands nothing:
//!
//! | parameter | QoSockets | meaning | the weaker of two |
//! | --- | --- | --- | --- |
//! | `min-rate` | `min_rate` | the lowest acceptable rate, messages/s | smaller |
//! | `max-rate` | `max_rate` | the highest useful rate, messages/s | smaller |
//! | `peak-rate` | `peak_rate` | the highest rate of a burst, messages/s | smaller |
//! | `size` | `size` | the longest message | smaller |
//! | `min-delay` | `min_delay` | the delay below which less is worth no more | larger |
//! | `max-delay` | `max_delay` | the longest acceptable one-way delay | larger |
//! | `max-gap` | `int_delay` | the longest time between the arrivals of two messages | larger |
//! | `jitter` | `jitter` | the largest change of delay between consecutive messages | larger |
//! | `loss` | `loss` | the largest share of messages lost, per cent | larger |
//! | `recovery` | `rec_time` | the longest time to recover a broken connection | larger |
//! | `reordering` | `permt` | whether messages may be delivered out of order | yes |
//!
//! The two ends of a connection [agree](agree()) on one specification. Where they differ, an end that
//! [coerces](Specification::coerced) a parameter takes the weaker value; one that does not keeps its own, and the
//! connection is refused.
//!
//! From a specification follows the [`Region`] of operation (QUANTA section 4): for each measure the range from the best
//! to the worst that is acceptable.
//!
//! ```
//! use cutline_quality::spec::{Specification, agree};
//!
//! // The example of QoSockets section II: a sender's peak of 64 and a receiver's of 60 become 60 for both.
//! let end = |peak: f64| Specification::builder().peak_rate(peak).coerce_all().build().unwrap();
//! let agreed = agree(&end(64.0), &end(60.0)).unwrap();
//! assert_eq!(agreed.effective.peak_rate, Some(60.0));
//! ```

mod agreement;
mod builder;
mod coerced;
mod preset;
mod region;
mod taps;
mod weaker;

pub use agreement::{Agreement, AgreementItem, Conflict, Conflicts, agree};
pub use builder::Builder;
pub use coerced::{Coerced, SpecParameter};
pub use preset::Preset;
pub use region::{Axis, Interval, Measure, Region};
pub use taps::{CapacityProfile, TapsProperties};

use cutline_params::{ParameterError, ParameterValue, Parameters};
use cutline_units::{Bytes, Duration, Rate};

const SLOWEST: f64 = 0.001;
const FASTEST: f64 = 10_000_000.0;
const HOUR: Duration = Duration::from_secs(3600);
const SHORTEST: Duration = Duration::from_nanos(1);
const OPEN: &str = "open: demands nothing";

/// Requirements on one direction of a stream. A parameter that is `None` is open.
#[derive(Clone, Debug, PartialEq, Parameters)]
#[parameters(check = Specification::go_together)]
pub struct Specification {
    /// The lowest acceptable rate of messages; at most max-rate.
    #[param(default = None, range = (SLOWEST, FASTEST), unit = "messages/s", source = OPEN)]
    pub min_rate: Option<f64>,
    /// The highest useful rate of messages; at most peak-rate.
    #[param(default = None, range = (SLOWEST, FASTEST), unit = "messages/s", source = OPEN)]
    pub max_rate: Option<f64>,
    /// The highest rate of messages in a burst.
    #[param(default = None, range = (SLOWEST, FASTEST), unit = "messages/s", source = OPEN)]
    pub peak_rate: Option<f64>,
    /// The longest message.
    #[param(default = None, range = (1, 1_000_000_000), unit = "B", source = OPEN)]
    pub size: Option<Bytes>,
    /// The one-way delay below which less is worth no more; at most max-delay.
    #[param(default = None, range = (Duration::ZERO, HOUR), source = OPEN)]
    pub min_delay: Option<Duration>,
    /// The longest acceptable one-way delay.
    #[param(default = None, range = (SHORTEST, HOUR), source = OPEN)]
    pub max_delay: Option<Duration>,
    /// The longest time between the arrivals of two messages.
    #[param(default = None, range = (SHORTEST, HOUR), source = OPEN)]
    pub max_gap: Option<Duration>,
    /// The largest change of the one-way delay from one message to the next.
    #[param(default = None, range = (Duration::ZERO, HOUR), source = OPEN)]
    pub jitter: Option<Duration>,
    /// The largest share of messages that may be lost.
    #[param(default = None, range = (0.0, 100.0), unit = "%", source = OPEN)]
    pub loss: Option<f64>,
    /// The longest time until a broken connection carries messages again.
    #[param(default = None, range = (SHORTEST, HOUR), source = OPEN)]
    pub recovery: Option<Duration>,
    /// True if messages may be delivered in another order than they were sent in.
    #[param(default = None, source = OPEN)]
    pub reordering: Option<bool>,
    /// The parameters that this end is willing to weaken, so that both ends agree (QoSockets section II).
    #[param(default = Coerced::NONE, skip)]
    pub coerced: Coerced,
}

/// Requirements on both directions of a connection, as one end sees them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ConnectionSpecification {
    /// Requirements on the traffic that this end sends.
    pub send: Specification,
    /// Requirements on the traffic that this end receives.
    pub receive: Specification,
    /// Treatment of the traffic by the network, if the application states it.
    pub profile: Option<CapacityProfile>,
}

impl Specification {
    /// A specification that demands nothing.
    pub const OPEN: Self = Self {
        min_rate: None,
        max_rate: None,
        peak_rate: None,
        size: None,
        min_delay: None,
        max_delay: None,
        max_gap: None,
        jitter: None,
        loss: None,
        recovery: None,
        reordering: None,
        coerced: Coerced::NONE,
    };

    /// The value of a parameter; `None` where it is open.
    pub fn get(&self, parameter: SpecParameter) -> Option<ParameterValue> {
        Some(parameter.field().get(self)).filter(|value| *value != ParameterValue::Off)
    }

    /// The lowest acceptable throughput (QoSockets eq. 1); `None` while rate or size are open.
    pub fn min_throughput(&self) -> Option<Rate> {
        throughput(self.min_rate, self.size)
    }

    /// The highest useful throughput (QoSockets eq. 1); `None` while rate or size are open.
    pub fn max_throughput(&self) -> Option<Rate> {
        throughput(self.max_rate, self.size)
    }

    /// The throughput of a burst (QoSockets eq. 1); `None` while rate or size are open.
    pub fn peak_throughput(&self) -> Option<Rate> {
        throughput(self.peak_rate, self.size)
    }

    /// Checks that no parameter demands more than in another specification.
    ///
    /// # Errors
    /// The first parameter that does, its value, and the allowed values.
    pub fn demands_no_more_than(&self, other: &Self) -> Result<(), ParameterError> {
        for parameter in SpecParameter::ALL {
            let Some(value) = self.get(parameter) else { continue };
            let allowed = match other.get(parameter) {
                None => "off".to_owned(),
                Some(limit) if value != limit && !parameter.is_weaker(&value, &limit) => {
                    let side = if parameter.larger_is_weaker() { "at least" } else { "at most" };
                    format!("{side} {limit}")
                }
                Some(_) => continue,
            };
            return Err(ParameterError::new(parameter.name(), value, allowed));
        }
        Ok(())
    }

    /// The first pair of limits that contradict each other, and the values of both.
    fn contradiction(&self) -> Option<[(SpecParameter, ParameterValue); 2]> {
        SpecParameter::ORDERED.into_iter().find_map(|pair| {
            let [lower, upper] = pair.map(|parameter| self.get(parameter));
            let (lower, upper) = (lower?, upper?);
            (magnitude(&lower) > magnitude(&upper)).then_some([(pair[0], lower), (pair[1], upper)])
        })
    }

    fn go_together(&self) -> Result<(), ParameterError> {
        self.contradiction().map_or(Ok(()), |[(lower, value), (upper, most)]| {
            Err(ParameterError::new(
                lower.name(),
                value,
                format!("at most {}, which is {most}", upper.name()),
            ))
        })
    }
}

/// Bits per second; a rate of messages times their size (QoSockets eq. 1).
fn throughput(rate: Option<f64>, size: Option<Bytes>) -> Option<Rate> {
    let bits = rate? * size?.get() as f64 * 8.0;
    Some(Rate::from_bps(bits.round() as u64))
}

/// A value by which two of the same parameter are compared. Durations are exact up to an hour.
fn magnitude(value: &ParameterValue) -> f64 {
    match value {
        ParameterValue::Number(x) => *x,
        ParameterValue::Count(n) => *n as f64,
        ParameterValue::Duration(time) => time.as_nanos() as f64,
        ParameterValue::Flag(flag) => f64::from(*flag),
        value => panic!("{value} is of no kind that a specification has"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutline_params::conformance;

    #[test]
    fn the_parameters_are_described_and_bad_ones_refused() {
        let parameters = Specification::describe();
        let make = |values: &[(&str, ParameterValue)]| {
            Specification::from_values(values.iter().map(|(name, value)| (*name, value.clone())))
                .map(|spec| spec.values())
        };
        conformance::parameters_are_complete("specification", &parameters);
        conformance::defaults_are_what_the_description_says("specification", &parameters, &make);
        conformance::bad_parameters_are_refused_by_name("specification", &parameters, &make);
        assert_eq!(Specification::default(), Specification::OPEN);
    }

    #[test]
    fn a_throughput_is_a_rate_times_a_size() {
        // QoSockets eq. 1, with NetVideo's specification: 614.4 kbit/s, and 1024 kbit/s at the peak (section IV).
        let video = Specification::builder().rates(60.0, 80.0, 100.0).size(Bytes::new(1280)).build().unwrap();
        assert_eq!(video.min_throughput(), Some(Rate::from_bps(614_400)));
        assert_eq!(video.max_throughput(), Some(Rate::from_bps(819_200)));
        assert_eq!(video.peak_throughput(), Some(Rate::from_kbps(1024)));
        assert_eq!(Specification { size: None, ..video }.min_throughput(), None);
    }

    #[test]
    fn a_specification_that_demands_more_is_named() {
        let video = Preset::Video.specification();
        let weaker =
            video.clone().change().min_rate(10.0).max_delay(Duration::from_millis(500)).build().unwrap();
        assert_eq!(video.demands_no_more_than(&video), Ok(()));
        assert_eq!(weaker.demands_no_more_than(&video), Ok(()));
        assert_eq!(Specification::OPEN.demands_no_more_than(&video), Ok(()));
        let error = |one: &Specification, other| one.demands_no_more_than(other).unwrap_err().to_string();
        assert_eq!(error(&video, &weaker), "min-rate = 40: allowed is at most 10");
        let late = Specification { min_rate: None, ..video.clone() };
        assert_eq!(error(&late, &weaker), "max-delay = 400 ms: allowed is at least 500 ms");
        assert_eq!(error(&video, &late), "min-rate = 40: allowed is off");
    }

    #[test]
    fn limits_that_contradict_each_other_are_refused() {
        let rates = |min, max, peak| {
            let spec = Specification { min_rate: min, max_rate: max, peak_rate: peak, ..Specification::OPEN };
            spec.validate().map_err(|error| error.to_string())
        };
        assert_eq!(rates(Some(1.0), Some(1.0), Some(1.0)), Ok(()));
        assert_eq!(rates(Some(5.0), None, None), Ok(()));
        let error = "min-rate = 2: allowed is at most max-rate, which is 1";
        assert_eq!(rates(Some(2.0), Some(1.0), None), Err(error.to_owned()));
        let error = "min-rate = 2: allowed is at most peak-rate, which is 1";
        assert_eq!(rates(Some(2.0), None, Some(1.0)), Err(error.to_owned()));
        let [short, long] = [5, 6].map(Duration::from_millis);
        let delays = Specification { min_delay: Some(long), max_delay: Some(short), ..Specification::OPEN };
        let error = delays.validate().unwrap_err().to_string();
        assert_eq!(error, "min-delay = 6 ms: allowed is at most max-delay, which is 5 ms");
    }
}
