//! Checks of a description: rules for everything that has parameters.
//!
//! The conformance suites of the crates with registries call these; each check panics with the fault.

use crate::{Parameter, ParameterError, ParameterKind, ParameterValue};
use cutline_units::{Distribution, Duration};

/// The values of all parameters of a created object, or the reason of a failure.
pub type Made = Result<Vec<(&'static str, ParameterValue)>, ParameterError>;

/// Creates an object with these values.
pub type Make<'a> = &'a dyn Fn(&[(&str, ParameterValue)]) -> Made;

/// Every parameter has a name in kebab-case, a text, and a source for its default.
///
/// # Panics
/// When one has not.
pub fn parameters_are_complete(name: &str, parameters: &[&Parameter]) {
    for Parameter { name: parameter, source, doc, required, .. } in parameters {
        let complete = is_kebab(parameter) && (*required || !source.is_empty()) && !doc.is_empty();
        assert!(complete, "{name}: the parameter {parameter} has a name in kebab-case, a source and a text");
    }
}

/// Returns whether a name is made of lower-case letters, digits and hyphens.
pub fn is_kebab(name: &str) -> bool {
    name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
}

/// Without settings every parameter has the default of its description, and each default can be set. Without a required
/// one nothing is made.
///
/// # Panics
/// When that does not hold.
pub fn defaults_are_what_the_description_says(name: &str, parameters: &[&Parameter], make: Make<'_>) {
    let required = required(parameters);
    let unset = make(&required).unwrap_or_else(|error| panic!("{name}: its defaults: {error}"));
    let described: Vec<_> = parameters.iter().map(|about| (about.name, about.default.clone())).collect();
    assert!(unset == described, "{name}: {unset:?} should be {described:?}");
    for (parameter, default) in described {
        let mut values = required.clone();
        values.push((parameter, default));
        let set = make(&values);
        assert!(set.as_ref() == Ok(&unset), "{name}: setting {parameter} to its default changes it: {set:?}");
    }
    for (missing, _) in &required {
        let others: Vec<_> = required.iter().filter(|(other, _)| other != missing).cloned().collect();
        let error = make(&others).err();
        let named = error.as_ref().is_some_and(|error| error.is_missing() && error.parameter == *missing);
        assert!(named, "{name}: without {missing} it should say that it is missing: {error:?}");
    }
}

/// A value that is out of range or of another kind is refused with the parameter's name, the value and the allowed values;
/// an unknown name is refused, too.
///
/// # Panics
/// When one is not.
pub fn bad_parameters_are_refused_by_name(name: &str, parameters: &[&Parameter], make: Make<'_>) {
    let refused = |parameter: &'static str, bad: ParameterValue| {
        let expected = format!("{parameter} = {bad}: allowed is ");
        let mut values = required(parameters);
        values.push((parameter, bad));
        let error = make(&values).err().map(|error| error.to_string()).unwrap_or_default();
        assert!(error.starts_with(&expected), "{name}: {error:?} should begin with {expected:?}");
    };
    for parameter in parameters {
        for bad in bad_values(parameter.kind) {
            refused(parameter.name, bad);
        }
    }
    refused("no-such-parameter", ParameterValue::Flag(true));
}

/// The required parameters with their examples.
pub fn required(parameters: &[&Parameter]) -> Vec<(&'static str, ParameterValue)> {
    let required = parameters.iter().filter(|about| about.required);
    required.map(|about| (about.name, about.default.clone())).collect()
}

/// Values that a parameter of this kind must refuse: beyond either end, no number, of another kind.
pub fn bad_values(kind: ParameterKind) -> Vec<ParameterValue> {
    let mut bad = match kind {
        ParameterKind::Number { least, most } => {
            [least - 1.0, most * 2.0 + 1.0, f64::NAN, f64::INFINITY].map(ParameterValue::Number).to_vec()
        }
        ParameterKind::Frequency { least, most } => {
            [least - 1.0, 0.0, most * 2.0, f64::NAN].map(ParameterValue::Frequency).to_vec()
        }
        ParameterKind::Count { least, most } | ParameterKind::CountOr { least, most, .. } => {
            let below = least.checked_sub(1).into_iter();
            below.chain(most.checked_add(1)).map(ParameterValue::Count).collect()
        }
        ParameterKind::Duration { least, most } => {
            let one = Duration::from_nanos(1);
            [least.saturating_sub(one), most + one]
                .into_iter()
                .filter(|time| !(least..=most).contains(time))
                .map(ParameterValue::Duration)
                .collect()
        }
        ParameterKind::Durations { len, least, most } => {
            let one = Duration::from_nanos(1);
            let lists = [vec![least; len + 1], vec![most + one; len], vec![]];
            lists.map(|list| ParameterValue::Durations(list.into())).into()
        }
        ParameterKind::Counts { len, least, most } => {
            let lists = [vec![least; len + 1], vec![most + 1; len], vec![]];
            lists.map(|list| ParameterValue::Counts(list.into())).into()
        }
        ParameterKind::Distribution { least, most } => [
            Distribution::Fixed(least - 1.0),
            Distribution::Fixed(most * 2.0),
            Distribution::Exponential { mean: f64::NAN },
            Distribution::Pareto { minimum: most, shape: 1.5, maximum: Some(least) },
        ]
        .map(ParameterValue::Distribution)
        .to_vec(),
        ParameterKind::Choice(_) | ParameterKind::Registered(_) => {
            vec![ParameterValue::Choice("no such choice".into())]
        }
        ParameterKind::Flag => vec![],
    };
    bad.push(if kind == ParameterKind::Flag { ParameterValue::Count(1) } else { ParameterValue::Flag(true) });
    bad
}
