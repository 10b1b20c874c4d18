//! Weaker limits: the only change of a flow's specification that a manager of the host may make.

use super::{Measure, SpecParameter, Specification};
use cutline_params::{ParameterError, ParameterValue, Parameters as _};
use cutline_units::Duration;

impl Specification {
    /// Returns this specification with a weaker limit of one measure, in the measure's unit.
    ///
    /// # Errors
    /// When the measure has no limit here, when the value is out of its range, or when it demands more.
    pub fn with_weaker_limit(&self, measure: Measure, worst: f64) -> Result<Self, ParameterError> {
        let (parameter, value) = limit(measure, worst);
        if self.get(parameter).is_none() {
            return Err(ParameterError::new(parameter.name(), value, "off: it has no limit".to_owned()));
        }
        let weaker = self.with_value(parameter, &value)?;
        weaker.demands_no_more_than(self)?;
        Ok(weaker)
    }

    fn with_value(&self, parameter: SpecParameter, value: &ParameterValue) -> Result<Self, ParameterError> {
        let mut changed = self.clone();
        parameter.field().set(&mut changed, value);
        changed.validate()?;
        Ok(changed)
    }
}

impl Measure {
    /// Checks that a specification may have this limit of the measure, in the measure's unit.
    ///
    /// # Errors
    /// When the value is out of the range of the limit, whatever the specification is.
    pub fn check_limit(self, worst: f64) -> Result<(), ParameterError> {
        let (parameter, value) = limit(self, worst);
        Specification::OPEN.with_value(parameter, &value).map(drop)
    }
}

/// Returns the parameter that is the limit of a measure, and its value.
fn limit(measure: Measure, worst: f64) -> (SpecParameter, ParameterValue) {
    let time = || {
        let time = Duration::from_nanos((worst.clamp(0.0, 1e10) * 1e6).round() as u64);
        ParameterValue::Duration(time)
    };
    match measure {
        Measure::Rate => (SpecParameter::MinRate, ParameterValue::Number(worst)),
        Measure::Delay => (SpecParameter::MaxDelay, time()),
        Measure::Gap => (SpecParameter::MaxGap, time()),
        Measure::Jitter => (SpecParameter::Jitter, time()),
        Measure::Loss => (SpecParameter::Loss, ParameterValue::Number(worst)),
        Measure::Recovery => (SpecParameter::Recovery, time()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::Preset;

    #[test]
    fn a_limit_becomes_weaker_and_never_stronger() {
        let video = Preset::Video.specification();
        let (rate, delay) = (video.min_rate.unwrap(), video.max_delay.unwrap());
        let weaker = video.with_weaker_limit(Measure::Rate, rate / 2.0).unwrap();
        assert_eq!(weaker, Specification { min_rate: Some(rate / 2.0), ..video.clone() });
        let weaker = video.with_weaker_limit(Measure::Delay, delay.as_millis_f64() + 1.5).unwrap();
        assert_eq!(weaker.max_delay, Some(delay + Duration::from_micros(1500)));
        assert!(video.with_weaker_limit(Measure::Rate, rate * 2.0).is_err());
        assert!(video.with_weaker_limit(Measure::Delay, delay.as_millis_f64() / 2.0).is_err());
    }

    #[test]
    fn values_that_are_not_allowed_are_refused() {
        let video = Preset::Video.specification();
        for worst in [f64::NAN, f64::INFINITY, -1.0, 1e300, 0.0] {
            for measure in Measure::ALL {
                let weaker = video.with_weaker_limit(measure, worst);
                assert!(weaker.is_err() || measure == Measure::Rate && worst == 0.0, "{measure} {worst}");
            }
        }
        let why = Specification::OPEN.with_weaker_limit(Measure::Loss, 5.0).unwrap_err().to_string();
        assert!(why.contains("loss") && why.contains("no limit"), "{why}");
    }

    #[test]
    fn the_range_of_a_limit_does_not_depend_on_the_specification() {
        for (measure, allowed, refused) in [
            (Measure::Rate, [0.001, 1e7], [0.0, 1.1e7]),
            (Measure::Delay, [0.001, 3_600_000.0], [0.0, 3_600_000.1]),
            (Measure::Jitter, [0.0, 3_600_000.0], [3_600_001.0, 1e9]),
            (Measure::Loss, [0.0, 100.0], [-0.1, 100.001]),
        ] {
            for worst in allowed {
                assert_eq!(measure.check_limit(worst), Ok(()), "{measure} {worst}");
            }
            for worst in refused {
                assert!(measure.check_limit(worst).is_err(), "{measure} {worst}");
            }
        }
    }
}
