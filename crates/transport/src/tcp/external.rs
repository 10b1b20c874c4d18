//! Congestion controls of other crates: registered while the program runs, then used by name like this crate's own.
//!
//! - A Rust type that implements [`CongestionAlgorithm`] only needs a call of [`register_congestion_control`] before
//!   the first file is read.
//! - Anything else, such as a control written in another language, implements [`ExternalAlgorithm`], which describes it as
//!   data and starts it, and is passed to [`register_external_control`].
//!
//! The sender corrects values that a control must not return: a window has at least one segment, a threshold at least two,
//! and both have an upper bound. [`conformance`](crate::conformance) has the checks that every control must pass.

use super::congestion::{Acked, Acknowledgement, CongestionAlgorithm, CongestionControl, Window};
use super::control::{ControlDescription, NAMES};
use super::{Algorithm, Params};
use cutline_params::{
    Configured, Parameter, ParameterError, Parameters as _, Registered, Registry, RegistryError, Value,
};
use cutline_units::Instant;
use std::fmt::{self, Debug};
use std::marker::PhantomData;

/// The description and the start of a congestion control of another crate.
pub trait ExternalAlgorithm: Registered {
    /// Returns the name, the source and the parameters. They must not change.
    fn describe(&self) -> ControlDescription;

    /// Starts the control of a new connection with TCP's parameters `tcp`. `values` come from
    /// [`complete`](Registered::complete).
    fn begin(&self, values: &[(&'static str, Value)], tcp: &Params) -> Box<dyn DynControl>;
}

/// A congestion control behind a pointer. It is implemented for every control that is `Clone`, `Debug` and `Send`.
pub trait DynControl: CongestionControl + Debug + Send + Sync {
    /// Returns a copy.
    fn boxed_clone(&self) -> Box<dyn DynControl>;
}

impl<C: CongestionControl + Clone + Debug + Send + Sync + 'static> DynControl for C {
    fn boxed_clone(&self) -> Box<dyn DynControl> {
        Box::new(self.clone())
    }
}

impl Clone for Box<dyn DynControl> {
    fn clone(&self) -> Self {
        (**self).boxed_clone()
    }
}

/// The keys of TCP's table in a file that are not parameters.
const TCP_KEYS: &[&str] = &["protocol", "defaults"];

/// The congestion control of the kernel that scenarios can choose in the laboratory.
const BBR: &str = "bbr";

pub(super) static CONTROLS: Registry<dyn ExternalAlgorithm> = Registry::new(NAMES, TCP_KEYS);

/// Adds a congestion control under its name, for as long as the process runs.
///
/// # Errors
/// When the name is taken or not in kebab-case, the parameters are not sound, or a parameter has the name of one of TCP.
pub fn register_external_control(algorithm: Box<dyn ExternalAlgorithm>) -> Result<(), RegistryError> {
    if algorithm.name() == BBR {
        return Err(RegistryError::Taken(BBR.to_owned()));
    }
    let is_tcps = |name| Params::fields().iter().any(|field| field.about.name == name);
    if let Some(parameter) = algorithm.parameters().iter().find(|parameter| is_tcps(parameter.name)) {
        return Err(RegistryError::Key(parameter.name.to_owned()));
    }
    CONTROLS.register(algorithm)
}

/// Adds a type's congestion control under its name, for as long as the process runs.
///
/// # Errors
/// As [`register_external_control`].
pub fn register_congestion_control<A>() -> Result<(), RegistryError>
where
    A: CongestionAlgorithm + Clone + Debug + Send + Sync + 'static,
{
    register_external_control(Box::new(Typed::<A>(PhantomData)))
}

/// Returns all registered congestion controls in the order of their names.
pub(super) fn describe() -> impl Iterator<Item = ControlDescription> {
    CONTROLS.all().into_iter().map(ExternalAlgorithm::describe)
}

/// Returns the control of a new connection.
pub(super) fn begin(algorithm: &Configured<dyn ExternalAlgorithm>, tcp: &Params) -> ExternalControl {
    let control = algorithm.thing().begin(algorithm.values(), tcp);
    ExternalControl { control, mss: tcp.mss.into() }
}

/// Returns the parameters of the registered control that the values choose; none for a control of this crate.
pub(super) fn chosen(values: &[(&str, Value)]) -> Vec<&'static Parameter> {
    let control = values.iter().rev().find(|(name, _)| *name == "congestion-control");
    let Some((_, Value::Choice(name))) = control else { return Vec::new() };
    CONTROLS.get(name).map(Registered::parameters).unwrap_or_default()
}

/// Returns TCP's parameters with these values. Some of them may belong to a registered congestion control.
pub(super) fn with_values(defaults: Params, values: Vec<(&str, Value)>) -> Result<Params, ParameterError> {
    let keys = chosen(&values);
    let is_the_controls = |(name, _): &(&str, Value)| keys.iter().any(|parameter| parameter.name == *name);
    let (own, tcps): (Vec<_>, Vec<_>) = values.into_iter().partition(is_the_controls);
    let mut params = defaults.with_values(tcps)?;
    if let Algorithm::External(algorithm) = &params.algorithm {
        params.algorithm = Algorithm::from_values(algorithm.thing().name(), own)?;
    }
    Ok(params)
}

/// Limits the results of a control to the bounds of the window.
#[derive(Clone, Debug)]
pub(crate) struct ExternalControl {
    control: Box<dyn DynControl>,
    mss: u64,
}

/// The largest window, bytes: 1 TiB.
const MOST: u64 = 1 << 40;

impl ExternalControl {
    fn threshold(&self, answer: u64) -> u64 {
        answer.clamp(2 * self.mss, MOST)
    }

    fn bound(&self, window: &mut Window) {
        window.cwnd = window.cwnd.clamp(self.mss, MOST);
        window.ssthresh = window.ssthresh.max(2 * self.mss);
    }
}

impl CongestionControl for ExternalControl {
    #[inline(never)]
    fn acknowledged(&mut self, acknowledgement: &Acknowledgement) {
        self.control.acknowledged(acknowledgement);
    }

    #[inline(never)]
    fn slow_start(&mut self, window: &mut Window, acked: &Acked, most: u64) {
        self.control.slow_start(window, acked, most);
        self.bound(window);
    }

    #[inline(never)]
    fn avoid(&mut self, window: &mut Window, acked: &Acked, mss: u64) {
        self.control.avoid(window, acked, mss);
        self.bound(window);
    }

    fn congested(&mut self, window: &Window, flight: u64, mss: u64) -> u64 {
        let answer = self.control.congested(window, flight, mss);
        self.threshold(answer)
    }

    fn marked(&mut self, window: &Window, flight: u64, mss: u64) -> u64 {
        let answer = self.control.marked(window, flight, mss);
        self.threshold(answer)
    }

    fn timed_out(&mut self) {
        self.control.timed_out();
    }

    fn application_limited(&mut self, now: Instant) {
        self.control.application_limited(now);
    }
}

/// The external congestion control of a type.
struct Typed<A>(PhantomData<fn() -> A>);

impl<A: CongestionAlgorithm> Debug for Typed<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(A::NAME)
    }
}

impl<A: CongestionAlgorithm> Registered for Typed<A> {
    fn name(&self) -> &'static str {
        A::NAME
    }

    fn parameters(&self) -> Vec<&'static Parameter> {
        A::Params::describe()
    }

    fn complete(&self, values: &[(&str, Value)]) -> Result<Vec<(&'static str, Value)>, ParameterError> {
        Ok(A::Params::from_values(values.iter().cloned())?.values())
    }
}

impl<A> ExternalAlgorithm for Typed<A>
where
    A: CongestionAlgorithm + Clone + Debug + Send + Sync + 'static,
{
    fn describe(&self) -> ControlDescription {
        ControlDescription::from_algorithm::<A>()
    }

    fn begin(&self, values: &[(&'static str, Value)], tcp: &Params) -> Box<dyn DynControl> {
        let params = A::Params::from_values(values.iter().cloned()).expect("they have been checked");
        Box::new(A::begin(&params, tcp))
    }
}
