//! A struct of parameters.

use crate::{Parameter, ParameterError, ParameterField, ParameterValue};

/// A set of parameters with a description of each. Derive it; see the crate's documentation.
pub trait Parameters: Default + 'static {
    /// Every parameter, in the order in which it should be listed.
    fn fields() -> &'static [ParameterField<Self>];

    /// Checks that parameters that are each allowed are also allowed together.
    ///
    /// # Errors
    /// When they do not.
    fn check_together(&self) -> Result<(), ParameterError> {
        Ok(())
    }

    /// The descriptions.
    fn describe() -> Vec<&'static Parameter> {
        Self::fields().iter().map(|field| &field.about).collect()
    }

    /// The defaults, changed by `values`.
    ///
    /// # Errors
    /// When a required parameter is missing, a name is unknown, a value is not allowed, or values do not go together.
    fn from_values<'v>(
        values: impl IntoIterator<Item = (&'v str, ParameterValue)>,
    ) -> Result<Self, ParameterError> {
        let values: Vec<_> = values.into_iter().collect();
        check_complete(Self::fields().iter().map(|field| &field.about), &values)?;
        Self::default().with_values(values)
    }

    /// Returns these parameters, changed by `values`.
    ///
    /// # Errors
    /// When a name is unknown, a value is not allowed, or values do not go together.
    fn with_values<'v>(
        mut self,
        values: impl IntoIterator<Item = (&'v str, ParameterValue)>,
    ) -> Result<Self, ParameterError> {
        for (name, value) in values {
            let field = Self::field(name, &value)?;
            field.about.check(&value)?;
            field.set(&mut self, &value);
        }
        self.check_together()?;
        Ok(self)
    }

    /// The field of a name; `value` is only for the error.
    ///
    /// # Errors
    /// When there is none.
    fn field(name: &str, value: &ParameterValue) -> Result<&'static ParameterField<Self>, ParameterError> {
        let found = Self::fields().iter().find(|field| field.about.name == name);
        found.ok_or_else(|| {
            let names: Vec<_> = Self::fields().iter().map(|field| field.about.name).collect();
            ParameterError::unknown(name, value, &names)
        })
    }

    /// Checks values that were set in code rather than by [`Parameters::from_values`].
    ///
    /// # Errors
    /// When one is not allowed, or they do not go together.
    fn validate(&self) -> Result<(), ParameterError> {
        for field in Self::fields() {
            field.about.check(&field.get(self))?;
        }
        self.check_together()
    }

    /// Every parameter with its value.
    fn values(&self) -> Vec<(&'static str, ParameterValue)> {
        Self::fields().iter().map(|field| (field.about.name, field.get(self))).collect()
    }
}

/// Checks that `values` has every required parameter.
fn check_complete<'p>(
    mut parameters: impl Iterator<Item = &'p Parameter>,
    values: &[(&str, ParameterValue)],
) -> Result<(), ParameterError> {
    let given = |about: &Parameter| values.iter().any(|(name, _)| *name == about.name);
    let missing = parameters.find(|about| about.required && !given(about));
    missing.map_or(Ok(()), |about| Err(ParameterError::missing(about)))
}

/// The values of all `parameters`, in their order: the defaults, changed by `values`. For sets of parameters that are
/// no Rust struct; [`Parameters::from_values`] does the same for those that are.
///
/// # Errors
/// When a required parameter is missing, a name is unknown or a value is not allowed.
pub fn complete(
    parameters: &[&'static Parameter],
    values: &[(&str, ParameterValue)],
) -> Result<Vec<(&'static str, ParameterValue)>, ParameterError> {
    check_complete(parameters.iter().copied(), values)?;
    let mut all: Vec<_> = parameters.iter().map(|about| (about.name, about.default.clone())).collect();
    for (name, value) in values {
        let Some(at) = parameters.iter().position(|about| about.name == *name) else {
            let names: Vec<_> = parameters.iter().map(|about| about.name).collect();
            return Err(ParameterError::unknown(name, value, &names));
        };
        parameters[at].check(value)?;
        all[at].1 = value.clone();
    }
    Ok(all)
}
