//! Registered entries with the values of their parameters.

use crate::{Parameter, ParameterError, ParameterValue, Parameters, Registry, RegistryError, complete};
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

/// Description of an entry of a [`Registry`]. It never changes.
pub trait Registered: fmt::Debug + Send + Sync {
    /// The name that it is chosen by.
    fn name(&self) -> &'static str;

    /// Returns the parameters that can be set.
    fn parameters(&self) -> Vec<&'static Parameter>;

    /// The values of all parameters: the defaults, changed by `values`.
    ///
    /// # Errors
    /// When a required parameter is missing, there is no such parameter, a value is not allowed, or values do not go
    /// together.
    fn complete(
        &self,
        values: &[(&str, ParameterValue)],
    ) -> Result<Vec<(&'static str, ParameterValue)>, ParameterError> {
        complete(&self.parameters(), values)
    }
}

/// A registered entry that is a Rust type `A` with parameters `P`. Its parameters and their checks are those of `P`.
pub struct RegisteredType<A, P> {
    name: &'static str,
    types: PhantomData<fn() -> (A, P)>,
}

impl<A, P: Parameters> RegisteredType<A, P> {
    /// The type's entry under this name.
    pub const fn new(name: &'static str) -> Self {
        Self { name, types: PhantomData }
    }

    /// The parameters with the values that [`Registered::complete`] has returned.
    pub fn params(values: &[(&'static str, ParameterValue)]) -> P {
        P::from_values(values.iter().cloned()).expect("the values have been checked")
    }
}

impl<A, P> fmt::Debug for RegisteredType<A, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl<A, P: Parameters> Registered for RegisteredType<A, P> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn parameters(&self) -> Vec<&'static Parameter> {
        P::describe()
    }

    fn complete(
        &self,
        values: &[(&str, ParameterValue)],
    ) -> Result<Vec<(&'static str, ParameterValue)>, ParameterError> {
        Ok(P::from_values(values.iter().cloned())?.values())
    }
}

/// A registered entry with the values of its parameters. Copies share the values.
pub struct Configured<T: ?Sized + 'static> {
    thing: &'static T,
    values: Arc<[(&'static str, ParameterValue)]>,
}

impl<T: Registered + ?Sized> Configured<T> {
    /// The registered entry.
    pub const fn thing(&self) -> &'static T {
        self.thing
    }

    /// Every parameter with its value.
    pub fn values(&self) -> &[(&'static str, ParameterValue)] {
        &self.values
    }
}

impl<T: ?Sized> Clone for Configured<T> {
    fn clone(&self) -> Self {
        Self { thing: self.thing, values: Arc::clone(&self.values) }
    }
}

/// A name belongs to one entry for as long as the process runs.
impl<T: Registered + ?Sized> PartialEq for Configured<T> {
    fn eq(&self, other: &Self) -> bool {
        (self.thing.name(), &self.values) == (other.thing.name(), &other.values)
    }
}

impl<T: Registered + ?Sized> fmt::Debug for Configured<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple(self.thing.name()).field(&self.values).finish()
    }
}

impl<T: Registered + ?Sized> Registry<T> {
    /// Adds an entry under the name in its description, for as long as the process runs.
    ///
    /// # Errors
    /// When the name is taken or not in kebab-case, or the parameters are not sound.
    pub fn register(&self, thing: Box<T>) -> Result<(), RegistryError> {
        let (name, parameters) = (thing.name(), thing.parameters());
        self.add(name, &parameters, thing)
    }

    /// The registered entry of that name with its defaults, changed by `values`. `key` is the key that chooses a name, for the
    /// error.
    ///
    /// # Errors
    /// When there is no such entry or parameter, a value is not allowed or a required one is missing.
    pub fn configure<'v>(
        &self,
        key: &str,
        name: &str,
        values: impl IntoIterator<Item = (&'v str, ParameterValue)>,
    ) -> Result<Configured<T>, ParameterError> {
        let unknown = || ParameterError::unknown_choice(key, name, &self.names());
        let thing = self.get(name).ok_or_else(unknown)?;
        let values: Vec<_> = values.into_iter().collect();
        Ok(Configured { thing, values: thing.complete(&values)?.into() })
    }
}
