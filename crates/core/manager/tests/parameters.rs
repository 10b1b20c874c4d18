//! Parameters of the crate: described, with defaults that hold, and refused by name.

use cutline_manager::feedback::FeedbackParams;
use cutline_manager::resources::ResourceParams;
use cutline_params::{ParameterValue, Parameters, conformance};
use cutline_units::Duration;

fn check<P: Parameters>(name: &str) {
    let make = |values: &[(&str, ParameterValue)]| Ok(P::from_values(values.iter().cloned())?.values());
    let parameters = P::describe();
    conformance::parameters_are_complete(name, &parameters);
    conformance::defaults_are_what_the_description_says(name, &parameters, &make);
    conformance::bad_parameters_are_refused_by_name(name, &parameters, &make);
}

#[test]
fn parameters_keep_to_the_house_rules() {
    check::<ResourceParams>("resources");
    check::<FeedbackParams>("feedback");
}

#[test]
fn parameters_that_do_not_go_together_are_refused() {
    let error = |params: FeedbackParams| params.validate().unwrap_err().to_string();
    let defaults = FeedbackParams::default;
    let few = FeedbackParams { window: 3, ..defaults() };
    assert_eq!(error(few), "least = 4: allowed is at most window, which is 3");
    let near = FeedbackParams { near: 0.5, ..defaults() };
    assert_eq!(error(near), "near = 0.5: allowed is at most inside, which is 0.3");
    let rest = FeedbackParams { rest: Duration::from_secs(60), ..defaults() };
    assert_eq!(error(rest), "rest = 60 s: allowed is at most longest-rest, which is 32 s");
}
