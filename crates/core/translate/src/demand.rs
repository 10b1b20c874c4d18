//! A parameter of the generic specification that a class of applications sets.

use crate::decision::{Decision, Layer};
use cutline_params::{ParameterError, ParameterType, ParameterValue, Parameters as _};
use cutline_quality::spec::{Coerced, SpecParameter, Specification};

/// A parameter that a class sets, and why.
#[derive(Clone, Debug)]
pub(crate) struct Demand {
    parameter: SpecParameter,
    value: ParameterValue,
    reason: String,
    source: &'static str,
}

impl Demand {
    /// Sets a parameter to a value of its own type.
    #[expect(clippy::needless_pass_by_value, reason = "the values are numbers")]
    pub(crate) fn new(
        parameter: SpecParameter,
        value: impl ParameterType,
        source: &'static str,
        reason: impl Into<String>,
    ) -> Self {
        Self { parameter, value: value.to_value(), reason: reason.into(), source }
    }

    /// Every message arrives, and in order: for classes whose data is of no use otherwise.
    pub(crate) fn complete() -> [Self; 2] {
        let source = "ITU-T G.1010 table I.2";
        [
            Self::new(SpecParameter::Loss, 0.0, source, "data with a part missing is of no use"),
            Self::new(
                SpecParameter::Reordering,
                false,
                source,
                "the data is used in the order in which it was sent",
            ),
        ]
    }

    /// The specification that sets these parameters and coerces all, and the decisions with their reasons.
    ///
    /// # Errors
    /// When a value is outside of the range of a specification.
    pub(crate) fn specification(demands: &[Self]) -> Result<(Specification, Vec<Decision>), ParameterError> {
        let values = demands.iter().map(|demand| (demand.parameter.name(), demand.value.clone()));
        let spec = Specification { coerced: Coerced::ALL, ..Specification::from_values(values)? };
        let decision = |demand: &Self| Decision {
            layer: Layer::ApplicationProfile,
            setting: demand.parameter.name(),
            value: Some(demand.parameter.about().with_unit(&readable(&demand.value))),
            reason: demand.reason.clone(),
            source: demand.source,
        };
        Ok((spec, demands.iter().map(decision).collect()))
    }
}

/// A value for people: numbers to the fourth decimal.
fn readable(value: &ParameterValue) -> ParameterValue {
    match value {
        ParameterValue::Number(x) => ParameterValue::Number((x * 1e4).round() / 1e4),
        value => value.clone(),
    }
}
