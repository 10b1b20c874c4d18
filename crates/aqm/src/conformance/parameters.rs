//! The checks of an AQM's description and parameters.

use crate::AqmSpec;
use crate::registry::{self, AqmDescription};
use cutline_params::{Kind, Parameter, Value};
use cutline_units::Duration;

fn about(aqm: &AqmSpec) -> AqmDescription {
    let name = aqm.name();
    let mut found = registry::describe().into_iter().filter(|about| about.name == name);
    let about = found.next().unwrap_or_else(|| panic!("{name}: the registry should describe it"));
    assert!(found.next().is_none(), "{name}: two AQMs have this name");
    about
}

/// Everything that a person looks for is there: title, source, and what each parameter does.
pub fn description_is_complete(aqm: &AqmSpec) {
    let AqmDescription { name, title, source, parameters, takes_tsq } = about(aqm);
    let kebab = |name: &str| name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
    assert!(kebab(name) && !title.is_empty() && !source.is_empty(), "{name}: name, title and source");
    assert!(takes_tsq == aqm.takes_tsq(), "{name}: the description says whether TSQ works on it");
    for Parameter { name: parameter, source, doc, .. } in parameters {
        let complete = kebab(parameter) && !source.is_empty() && !doc.is_empty();
        assert!(complete, "{name}: the parameter {parameter} has a name in kebab-case, a source and a text");
    }
}

/// Without settings every parameter has the default of its description, and each default can be set.
pub fn defaults_are_what_the_description_says(aqm: &AqmSpec) {
    let AqmDescription { name, parameters, .. } = about(aqm);
    let unset =
        AqmSpec::from_values(name, []).unwrap_or_else(|error| panic!("{name}: its defaults: {error}"));
    let described: Vec<_> = parameters.iter().map(|about| (about.name, about.default.clone())).collect();
    assert!(unset.values() == described, "{name}: {:?} should be {described:?}", unset.values());
    for (parameter, default) in described {
        let set = AqmSpec::from_values(name, [(parameter, default)]);
        assert!(set.as_ref() == Ok(&unset), "{name}: setting {parameter} to its default changes it: {set:?}");
    }
}

/// A value that is out of range or of another kind is refused with the parameter's name, the value and what is allowed;
/// an unknown name is refused, too.
pub fn bad_parameters_are_refused_by_name(aqm: &AqmSpec) {
    let name = aqm.name();
    for parameter in about(aqm).parameters {
        for bad in bad_values(parameter.kind) {
            let expected = format!("{} = {bad}: allowed is ", parameter.name);
            let set = AqmSpec::from_values(name, [(parameter.name, bad)]);
            let error = set.err().map(|error| error.to_string()).unwrap_or_default();
            assert!(error.starts_with(&expected), "{name}: {error:?} should begin with {expected:?}");
        }
    }
    let unknown = AqmSpec::from_values(name, [("no-such-parameter", Value::Flag(true))]);
    let error = unknown.err().map(|error| error.to_string()).unwrap_or_default();
    assert!(error.starts_with("no-such-parameter = true: allowed is "), "{name}: {error:?}");
}

/// Values that a parameter of this kind must refuse: beyond either end, no number, of another kind.
pub fn bad_values(kind: Kind) -> Vec<Value> {
    let mut bad = match kind {
        Kind::Number { least, most } => {
            [least - 1.0, most * 2.0 + 1.0, f64::NAN, f64::INFINITY].map(Value::Number).to_vec()
        }
        Kind::Frequency { least, most } => {
            [least - 1.0, 0.0, most * 2.0, f64::NAN].map(Value::Frequency).to_vec()
        }
        Kind::Count { least, most } | Kind::CountOr { least, most, .. } => {
            let below = least.checked_sub(1).into_iter();
            below.chain(most.checked_add(1)).map(Value::Count).collect()
        }
        Kind::Duration { least, most } => {
            let one = Duration::from_nanos(1);
            [least.saturating_sub(one), most + one]
                .into_iter()
                .filter(|time| !(least..=most).contains(time))
                .map(Value::Duration)
                .collect()
        }
        Kind::Durations { len, least, most } => {
            let one = Duration::from_nanos(1);
            let lists = [vec![least; len + 1], vec![most + one; len], vec![]];
            lists.map(|list| Value::Durations(list.into())).into()
        }
        Kind::Counts { len, least, most } => {
            let lists = [vec![least; len + 1], vec![most + 1; len], vec![]];
            lists.map(|list| Value::Counts(list.into())).into()
        }
        Kind::Choice(_) => vec![Value::Choice("no such choice".into())],
        Kind::Flag => vec![],
    };
    bad.push(if kind == Kind::Flag { Value::Count(1) } else { Value::Flag(true) });
    bad
}
