//! The checks of an AQM's description and parameters.

use crate::AqmSpec;
use crate::registry::{self, AqmDescription};
use cutline_params::conformance::Made;
use cutline_params::{ParameterValue, conformance};

fn about(aqm: &AqmSpec) -> AqmDescription {
    let name = aqm.name();
    let mut found = registry::describe().into_iter().filter(|about| about.name == name);
    let about = found.next().unwrap_or_else(|| panic!("{name}: the registry should describe it"));
    assert!(found.next().is_none(), "{name}: two AQMs have this name");
    about
}

/// Makes an AQM of this name.
fn make(name: &str) -> impl Fn(&[(&str, ParameterValue)]) -> Made + use<'_> {
    move |values| AqmSpec::from_values(name, values.iter().cloned()).map(|aqm| aqm.values())
}

/// The description is complete: title, source, and the effect of each parameter.
pub fn description_is_complete(aqm: &AqmSpec) {
    let AqmDescription { name, title, source, parameters, takes_tsq } = about(aqm);
    let complete = conformance::is_kebab(name) && !title.is_empty() && !source.is_empty();
    assert!(complete, "{name}: name, title and source");
    assert!(takes_tsq == aqm.takes_tsq(), "{name}: the description says whether TSQ works on it");
    conformance::parameters_are_complete(name, &parameters);
}

/// Without settings every parameter has the default of its description, and each default can be set.
pub fn defaults_are_what_the_description_says(aqm: &AqmSpec) {
    let AqmDescription { name, parameters, .. } = about(aqm);
    conformance::defaults_are_what_the_description_says(name, &parameters, &make(name));
}

/// A value that is out of range or of another kind is refused with the parameter's name, the value and the allowed values;
/// an unknown name is refused, too.
pub fn bad_parameters_are_refused_by_name(aqm: &AqmSpec) {
    let name = aqm.name();
    conformance::bad_parameters_are_refused_by_name(name, &about(aqm).parameters, &make(name));
}
