//! The parameters by name, and sets of them.

use super::Specification;
use cutline_params::{Parameter, ParameterError, ParameterField, ParameterValue, Parameters as _};
use std::fmt;

/// A parameter of a [`Specification`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SpecParameter {
    /// `min-rate`
    MinRate,
    /// `max-rate`
    MaxRate,
    /// `peak-rate`
    PeakRate,
    /// `size`
    Size,
    /// `min-delay`
    MinDelay,
    /// `max-delay`
    MaxDelay,
    /// `max-gap`
    MaxGap,
    /// `jitter`
    Jitter,
    /// `loss`
    Loss,
    /// `recovery`
    Recovery,
    /// `reordering`
    Reordering,
}

impl SpecParameter {
    /// Every parameter, in the order of the specification's fields.
    pub const ALL: [Self; 11] = [
        Self::MinRate,
        Self::MaxRate,
        Self::PeakRate,
        Self::Size,
        Self::MinDelay,
        Self::MaxDelay,
        Self::MaxGap,
        Self::Jitter,
        Self::Loss,
        Self::Recovery,
        Self::Reordering,
    ];

    /// Pairs of which the first may not exceed the second.
    pub(super) const ORDERED: [[Self; 2]; 4] = [
        [Self::MinRate, Self::MaxRate],
        [Self::MaxRate, Self::PeakRate],
        [Self::MinRate, Self::PeakRate],
        [Self::MinDelay, Self::MaxDelay],
    ];

    /// Returns the field of a specification that holds the parameter.
    pub(super) fn field(self) -> &'static ParameterField<Specification> {
        &Specification::fields()[self as usize]
    }

    /// The description.
    pub fn about(self) -> &'static Parameter {
        &self.field().about
    }

    /// The name, as files write it.
    pub fn name(self) -> &'static str {
        self.about().name
    }

    /// The parameter of that name, in Cutline's spelling or in that of QoSockets section II, with `_` or `-`.
    ///
    /// # Errors
    /// When there is none; the error has the nearest name.
    pub fn parse(name: &str) -> Result<Self, ParameterError> {
        let ours = match name.replace('_', "-").as_str() {
            "int-delay" => "max-gap".to_owned(),
            "rec-time" => "recovery".to_owned(),
            "permt" => "reordering".to_owned(),
            other => other.to_owned(),
        };
        let found = Self::ALL.into_iter().find(|parameter| parameter.name() == ours);
        found.ok_or_else(|| ParameterError::unknown_choice("parameter", name, &Self::ALL.map(Self::name)))
    }

    /// Returns whether a larger value demands less.
    pub const fn larger_is_weaker(self) -> bool {
        match self {
            Self::MinRate | Self::MaxRate | Self::PeakRate | Self::Size => false,
            Self::MinDelay
            | Self::MaxDelay
            | Self::MaxGap
            | Self::Jitter
            | Self::Loss
            | Self::Recovery
            | Self::Reordering => true,
        }
    }

    /// Returns whether `value` demands less than `other`.
    pub(super) fn is_weaker(self, value: &ParameterValue, other: &ParameterValue) -> bool {
        let [value, other] = [value, other].map(super::magnitude);
        if self.larger_is_weaker() { value > other } else { value < other }
    }
}

impl fmt::Display for SpecParameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A set of parameters: those that an end is willing to weaken.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Coerced(u16);

impl Coerced {
    /// None of them.
    pub const NONE: Self = Self(0);
    /// All of them.
    pub const ALL: Self = Self((1 << SpecParameter::ALL.len()) - 1);

    /// Returns these parameters, and one more.
    #[must_use]
    pub const fn with(self, parameter: SpecParameter) -> Self {
        Self(self.0 | 1 << parameter as u16)
    }

    /// Returns whether a parameter is one of them.
    pub const fn contains(self, parameter: SpecParameter) -> bool {
        self.0 & (1 << parameter as u16) != 0
    }

    /// One bit for each parameter, in the order of [`SpecParameter::ALL`]; the lowest is the first.
    pub const fn bits(self) -> u16 {
        self.0
    }

    /// The set with these [`bits`](Self::bits); `None` if there is a bit for no parameter.
    pub const fn from_bits(bits: u16) -> Option<Self> {
        if bits & !Self::ALL.0 == 0 { Some(Self(bits)) } else { None }
    }

    /// Returns the parameters of the set.
    pub fn iter(self) -> impl Iterator<Item = SpecParameter> {
        SpecParameter::ALL.into_iter().filter(move |parameter| self.contains(*parameter))
    }
}

impl FromIterator<SpecParameter> for Coerced {
    fn from_iter<I: IntoIterator<Item = SpecParameter>>(parameters: I) -> Self {
        parameters.into_iter().fold(Self::NONE, Self::with)
    }
}

impl fmt::Debug for Coerced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_named_as_their_fields() {
        let fields: Vec<_> = Specification::describe().iter().map(|about| about.name).collect();
        assert_eq!(SpecParameter::ALL.map(SpecParameter::name).to_vec(), fields);
        for parameter in SpecParameter::ALL {
            assert_eq!(SpecParameter::parse(parameter.name()), Ok(parameter));
        }
    }

    #[test]
    fn the_papers_names_are_understood() {
        // QoSockets section II.
        let names = [
            "min_rate",
            "max_rate",
            "peak_rate",
            "size",
            "min_delay",
            "max_delay",
            "int_delay",
            "jitter",
            "loss",
            "rec_time",
            "permt",
        ];
        assert_eq!(names.map(|name| SpecParameter::parse(name).unwrap()), SpecParameter::ALL);
        let error = SpecParameter::parse("max-dealy").unwrap_err();
        assert_eq!(error.nearest, Some("max-delay"));
    }

    #[test]
    fn a_set_has_its_inserted_parameters() {
        let set: Coerced = [SpecParameter::Loss, SpecParameter::MinRate].into_iter().collect();
        assert_eq!(set.iter().collect::<Vec<_>>(), [SpecParameter::MinRate, SpecParameter::Loss]);
        assert_eq!((Coerced::from_bits(set.bits()), Coerced::from_bits(1 << 11)), (Some(set), None));
        assert!(Coerced::ALL.iter().eq(SpecParameter::ALL) && Coerced::NONE.iter().next().is_none());
    }
}
