//! Applications of other crates: registered while the program runs, then used by name like this crate's own.
//!
//! - A Rust type that is an [`Application`] needs no more than [`register_application`], called once before the first file
//!   is read.
//! - Anything else, such as a source written in another language, implements [`ExternalApplication`], which describes it as
//!   data and starts it, and is given to [`register`].
//!
//! Registered applications are listed by [`describe`](super::describe) and described by the same
//! [`Parameter`](cutline_params::Parameter)s. [`conformance`](crate::conformance) has the checks that every one has to
//! pass.

use super::{Application, ApplicationDescription, NAMES, TrafficSource};
use cutline_params::{
    Configured, Parameter, ParameterError, Parameters as _, Registered, Registry, RegistryError, Value,
};
use cutline_units::{Distribution, Instant, RandomStream};
use std::fmt::{self, Debug};
use std::marker::PhantomData;

/// How an application that is not this crate's own is described and started.
pub trait ExternalApplication: Registered {
    /// The name, the source, and what can be set. Always the same.
    fn describe(&self) -> ApplicationDescription;

    /// The application, beginning at `at`. `values` come from [`complete`](Registered::complete).
    fn start(
        &self,
        values: &[(&'static str, Value)],
        at: Instant,
        random: &mut RandomStream,
    ) -> Box<dyn DynSource>;

    /// The distribution of its messages' sizes, bytes; `None` where it does not write messages.
    fn message_size(&self, _values: &[(&'static str, Value)]) -> Option<Distribution> {
        None
    }
}

/// An application at work behind a pointer. Every one that can be cloned, printed and sent to another thread is one.
pub trait DynSource: TrafficSource + Debug + Send + Sync {
    /// A copy.
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

/// What an application's table in a file says beside its parameters.
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
    register(Box::new(Typed::<A>(PhantomData)))
}

/// Every registered application, in the order of the names.
pub(super) fn describe() -> impl Iterator<Item = ApplicationDescription> {
    EXTERNAL.all().into_iter().map(ExternalApplication::describe)
}

/// The registered application of that name.
pub(super) fn configure<'v>(
    name: &str,
    values: impl IntoIterator<Item = (&'v str, Value)>,
) -> Result<Configured<dyn ExternalApplication>, ParameterError> {
    EXTERNAL.configure("kind", name, values)
}

/// A registered application, beginning at `at`.
pub(super) fn start(
    application: &Configured<dyn ExternalApplication>,
    at: Instant,
    random: &mut RandomStream,
) -> Box<dyn DynSource> {
    application.thing().start(application.values(), at, random)
}

/// The external application of a type.
struct Typed<A>(PhantomData<fn() -> A>);

impl<A: Application> Debug for Typed<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(A::NAME)
    }
}

impl<A: Application> Registered for Typed<A> {
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

impl<A> ExternalApplication for Typed<A>
where
    A: Application + Clone + Debug + Send + Sync + 'static,
{
    fn describe(&self) -> ApplicationDescription {
        ApplicationDescription::from_application::<A>()
    }

    fn start(
        &self,
        values: &[(&'static str, Value)],
        at: Instant,
        random: &mut RandomStream,
    ) -> Box<dyn DynSource> {
        Box::new(A::start(&params::<A>(values), at, random))
    }

    fn message_size(&self, values: &[(&'static str, Value)]) -> Option<Distribution> {
        A::message_size(&params::<A>(values))
    }
}

/// The parameters of values that [`Registered::complete`] has made.
fn params<A: Application>(values: &[(&'static str, Value)]) -> A::Params {
    A::Params::from_values(values.iter().cloned()).expect("they have been checked")
}
