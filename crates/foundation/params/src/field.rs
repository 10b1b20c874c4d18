//! A parameter and the place in a struct that holds it.

use crate::{Parameter, ParameterKind, ParameterType, ParameterValue};
use std::fmt;
use std::sync::Arc;

/// Reads a parameter.
type Get<P> = Arc<dyn Fn(&P) -> ParameterValue + Send + Sync>;

/// Sets a parameter.
type Set<P> = Arc<dyn Fn(&mut P, &ParameterValue) + Send + Sync>;

/// A parameter and how it is read from and written to the struct `P` that holds it.
#[derive(Clone)]
pub struct ParameterField<P> {
    /// The parameter's description.
    pub about: Parameter,
    get: Get<P>,
    set: Set<P>,
}

/// Access to a `T` inside a struct `P`.
#[derive(Debug)]
pub struct Accessor<P, T> {
    /// The `T` to be read.
    pub get: fn(&P) -> &T,
    /// The `T` to be changed.
    pub get_mut: fn(&mut P) -> &mut T,
}

impl<P: 'static> ParameterField<P> {
    /// The field of a struct's own; the derive calls this. `default` is the struct of defaults, in which a required
    /// parameter has its example.
    pub fn new<T: ParameterType>(
        name: &'static str,
        (unit, source, doc): (&'static str, &'static str, &'static str),
        (kind, on, required): (ParameterKind, Option<T>, bool),
        default: &P,
        Accessor { get, get_mut }: Accessor<P, T>,
    ) -> Self {
        let default = kind.present(get(default).to_value());
        let on = on.map(|value| value.to_value());
        Self {
            about: Parameter { name, unit, kind, optional: T::OPTIONAL, on, required, default, source, doc },
            get: Arc::new(move |params| kind.present(get(params).to_value())),
            set: Arc::new(move |params, value| *get_mut(params) = T::from_value(value)),
        }
    }

    /// The field of a group `G` in a struct; the derive calls this. `source` replaces where the default comes from. A group
    /// that has a default in the struct requires nothing.
    pub fn in_group<G: 'static>(
        field: &ParameterField<G>,
        (source, has_default): (Option<&'static str>, bool),
        default: &P,
        Accessor { get, get_mut }: Accessor<P, G>,
    ) -> Self {
        let (inner_get, inner_set) = (Arc::clone(&field.get), Arc::clone(&field.set));
        let source = source.unwrap_or(field.about.source);
        let required = field.about.required && !has_default;
        Self {
            about: Parameter { default: inner_get(get(default)), source, required, ..field.about.clone() },
            get: Arc::new(move |params| inner_get(get(params))),
            set: Arc::new(move |params, value| inner_set(get_mut(params), value)),
        }
    }

    /// Returns the value of the parameter; [`ParameterValue::Off`] if it is switched off.
    pub fn get(&self, params: &P) -> ParameterValue {
        (self.get)(params)
    }

    /// Sets the parameter to a value that [`Parameter::check`] has passed.
    pub fn set(&self, params: &mut P, value: &ParameterValue) {
        (self.set)(params, value);
    }
}

impl<P> fmt::Debug for ParameterField<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Field").field(&self.about).finish()
    }
}
