//! Applications of other crates: registered while the program runs, then used by name like this crate's own.
//!
//! - A Rust type that implements [`Application`] only needs a call of [`register_application`] before the first file
//!   is read.
//! - Anything else, such as a source written in another language, implements [`ExternalApplication`], which describes it as
//!   data and starts it, and is given to [`register`].
//!
//! Registered applications are listed by [`describe`](super::describe) and described by the same
//! [`Parameter`](cutline_params::Parameter)s. [`conformance`](crate::conformance) has the checks that every application must
//! pass.

use super::{Application, ApplicationDescription, NAMES, TrafficSource};
use cutline_params::{
    Configured, ParameterError, ParameterValue, Registered, RegisteredType, Registry, RegistryError,
};
use cutline_units::{Distribution, Instant, RandomStream};
use std::fmt::Debug;

/// The description and the start of an application of another crate.
pub trait ExternalApplication: Registered {
    /// Returns the name, the source and the parameters. They must not change.
    fn describe(&self) -> ApplicationDescription;

    /// Starts the application at `at`. `values` come from [`complete`](Registered::complete).
    fn start(
        &self,
        values: &[(&'static str, ParameterValue)],
        at: Instant,
        random: &mut RandomStream,
    ) -> Box<dyn DynSource>;

    /// Returns the distribution of the sizes of its messages, bytes; `None` if it does not write messages.
    fn message_size(&self, _values: &[(&'static str, ParameterValue)]) -> Option<Distribution> {
        None
    }
}

/// A running application behind a pointer. It is implemented for every application that is `Clone`, `Debug` and `Send`.
pub trait DynSource: TrafficSource + Debug + Send + Sync {
    /// Returns a copy.
    fn boxed_clone(&self) -> Box<dyn DynSource>;
}

impl<S: TrafficSource + Clone + Debug + Send + Sync + 'static> DynSource for S {
    fn boxed_clone(&self) -> Box<dyn DynSource> {
        Box::new(self.clone())
    }
}

impl Clone for Box<dyn DynSource> {
    fn clone(&self) -> Self {
        (**self).boxed_clone()
    }
}

/// The keys of an application's table in a file that are not parameters.
const APP_KEYS: &[&str] = &["kind"];

static EXTERNAL: Registry<dyn ExternalApplication> = Registry::new(NAMES, APP_KEYS);

/// Adds an application under its name, for as long as the process runs.
///
/// # Errors
/// When the name is taken or not in kebab-case, or the parameters are not sound.
pub fn register(application: Box<dyn ExternalApplication>) -> Result<(), RegistryError> {
    EXTERNAL.register(application)
}

/// Adds a type's application under its name, for as long as the process runs.
///
/// # Errors
/// As [`register`].
pub fn register_application<A>() -> Result<(), RegistryError>
where
    A: Application + Clone + Debug + Send + Sync + 'static,
{
    register(Box::new(Typed::<A>::new(A::NAME)))
}

/// Returns all registered applications in the order of their names.
pub(super) fn describe() -> impl Iterator<Item = ApplicationDescription> {
    EXTERNAL.all().into_iter().map(ExternalApplication::describe)
}

/// Returns the registered application of that name.
pub(super) fn configure<'v>(
    name: &str,
    values: impl IntoIterator<Item = (&'v str, ParameterValue)>,
) -> Result<Configured<dyn ExternalApplication>, ParameterError> {
    EXTERNAL.configure("kind", name, values)
}

/// Starts a registered application at `at`.
pub(super) fn start(
    application: &Configured<dyn ExternalApplication>,
    at: Instant,
    random: &mut RandomStream,
) -> Box<dyn DynSource> {
    application.thing().start(application.values(), at, random)
}

/// The external application of a type.
type Typed<A> = RegisteredType<A, <A as Application>::Params>;

impl<A> ExternalApplication for Typed<A>
where
    A: Application + Clone + Debug + Send + Sync + 'static,
{
    fn describe(&self) -> ApplicationDescription {
        ApplicationDescription::from_application::<A>()
    }

    fn start(
        &self,
        values: &[(&'static str, ParameterValue)],
        at: Instant,
        random: &mut RandomStream,
    ) -> Box<dyn DynSource> {
        Box::new(A::start(&Self::params(values), at, random))
    }

    fn message_size(&self, values: &[(&'static str, ParameterValue)]) -> Option<Distribution> {
        A::message_size(&Self::params(values))
    }
}
