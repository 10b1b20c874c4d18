//! Things chosen by name, to which other crates add while the program runs.

use crate::{Names, Parameter, ParameterError};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{PoisonError, RwLock};

/// A table of entries by name: those that other crates add to the ones that a crate has itself.
///
/// A crate has one `static` table for each kind of entry, such as AQMs or sources of traffic, and a trait that is the `T`
/// of its entries: the description of an entry, and the function that builds it. The crate's own entries stay in an enum, for speed;
/// the table only knows the names.
///
/// The table is the process's, like a driver table: a program registers its own entries before it reads its first
/// file. Entries are never changed or removed. So a name that has been read means the same for as long as the process
/// runs, whatever its threads do. [`Registry::all`] lists by name, not in the order of registration.
///
/// ```
/// use cutline_params::{Registry, RegistryError};
///
/// trait Shape: Send + Sync { fn corners(&self) -> u32; }
/// static SHAPES: Registry<dyn Shape> = Registry::new(&["circle"], &["shape"]);
///
/// struct Square;
/// impl Shape for Square { fn corners(&self) -> u32 { 4 } }
///
/// SHAPES.add("square", &[], Box::new(Square))?;
/// assert_eq!(SHAPES.get("square").map(Shape::corners), Some(4));
/// let twice = SHAPES.add("square", &[], Box::new(Square)).unwrap_err();
/// assert_eq!(twice.to_string(), "there is a \"square\" already");
/// assert!(SHAPES.add("circle", &[], Box::new(Square)).is_err());
/// # Ok::<(), RegistryError>(())
/// ```
#[derive(Debug)]
pub struct Registry<T: ?Sized + 'static> {
    /// The names that are not for others to use.
    taken: &'static [&'static str],
    /// The names that parameters cannot have.
    keys: &'static [&'static str],
    entries: RwLock<BTreeMap<&'static str, &'static T>>,
}

/// Reason why a registration is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RegistryError {
    /// A name, of the entry or of a parameter, is not in kebab-case.
    NotKebabCase(String),
    /// An entry of this name is registered already.
    Taken(String),
    /// Two parameters have this name.
    ParameterTwice(String),
    /// A parameter has the name of a key that is beside it in files.
    Key(String),
    /// The default of a parameter is not allowed.
    Default(ParameterError),
}

impl<T: ?Sized + Sync> Registry<T> {
    /// An empty table. Nothing can be registered under the names in `taken`, and no parameter can have a name in `keys`:
    /// the other keys of a file beside the parameters.
    pub const fn new(taken: &'static [&'static str], keys: &'static [&'static str]) -> Self {
        Self { taken, keys, entries: RwLock::new(BTreeMap::new()) }
    }

    /// Adds an entry with these parameters for as long as the process runs.
    ///
    /// # Errors
    /// When the name is taken or not in kebab-case, or the parameters are not sound.
    pub fn add(
        &self,
        name: &'static str,
        parameters: &[&Parameter],
        thing: Box<T>,
    ) -> Result<(), RegistryError> {
        check_name(name)?;
        check_parameters(parameters, self.keys)?;
        // Nothing panics while the lock is held, so a poisoned table is sound all the same.
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        if self.taken.contains(&name) || entries.contains_key(name) {
            return Err(RegistryError::Taken(name.to_owned()));
        }
        entries.insert(name, Box::leak(thing));
        Ok(())
    }

    /// The entry that was registered under this name.
    pub fn get(&self, name: &str) -> Option<&'static T> {
        self.entries.read().unwrap_or_else(PoisonError::into_inner).get(name).copied()
    }

    /// Everything registered, in the order of the names.
    pub fn all(&self) -> Vec<&'static T> {
        self.entries.read().unwrap_or_else(PoisonError::into_inner).values().copied().collect()
    }

    /// Every name there is: those the table was made with, then those registered.
    pub fn names(&self) -> Vec<&'static str> {
        let entries = self.entries.read().unwrap_or_else(PoisonError::into_inner);
        self.taken.iter().chain(entries.keys()).copied().collect()
    }
}

impl<T: ?Sized + Sync + fmt::Debug> Names for Registry<T> {
    fn names(&self) -> Vec<&'static str> {
        Self::names(self)
    }
}

fn check_name(name: &str) -> Result<(), RegistryError> {
    let is_word =
        |word: &str| !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    if name.split('-').all(is_word) { Ok(()) } else { Err(RegistryError::NotKebabCase(name.to_owned())) }
}

fn check_parameters(parameters: &[&Parameter], keys: &[&str]) -> Result<(), RegistryError> {
    for (at, parameter) in parameters.iter().enumerate() {
        check_name(parameter.name)?;
        if parameters[..at].iter().any(|other| other.name == parameter.name) {
            return Err(RegistryError::ParameterTwice(parameter.name.to_owned()));
        }
        if keys.contains(&parameter.name) {
            return Err(RegistryError::Key(parameter.name.to_owned()));
        }
        parameter.check(&parameter.default).map_err(RegistryError::Default)?;
    }
    Ok(())
}

impl fmt::Display for RegistryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotKebabCase(name) => {
                write!(f, "the name {name:?} is not in kebab-case (lower-case letters, digits, hyphens)")
            }
            Self::Taken(name) => write!(f, "there is a {name:?} already"),
            Self::ParameterTwice(name) => write!(f, "two parameters have the name {name:?}"),
            Self::Key(name) => write!(f, "no parameter can have the name {name:?}: it is a key of its own"),
            Self::Default(error) => write!(f, "the default is not allowed: {error}"),
        }
    }
}

impl std::error::Error for RegistryError {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ParameterKind, ParameterValue};

    static NUMBERS: Registry<u32> = Registry::new(&["one"], &["limit"]);

    fn parameter(name: &'static str, default: u64) -> Parameter {
        let kind = ParameterKind::Count { least: 1, most: 5 };
        let (default, optional) = (ParameterValue::Count(default), false);
        Parameter {
            name,
            unit: "",
            kind,
            optional,
            on: None,
            required: false,
            default,
            source: "a test",
            doc: "a test",
        }
    }

    #[test]
    fn entries_are_listed_by_name_in_any_order_of_registration() {
        NUMBERS.add("three", &[], Box::new(3)).unwrap();
        NUMBERS.add("four", &[&parameter("size", 2)], Box::new(4)).unwrap();
        assert_eq!(NUMBERS.all(), [&4, &3]);
        assert_eq!(NUMBERS.names(), ["one", "four", "three"]);
        assert_eq!((NUMBERS.get("three"), NUMBERS.get("one")), (Some(&3), None));
        let taken = |name| NUMBERS.add(name, &[], Box::new(0)).unwrap_err();
        assert_eq!(taken("one"), RegistryError::Taken("one".to_owned()), "the crate's own");
        assert_eq!(taken("three"), RegistryError::Taken("three".to_owned()));
        assert_eq!(NUMBERS.get("three"), Some(&3), "it stays what it was");
    }

    #[test]
    fn unsound_descriptions_are_refused() {
        let refused = |name, parameters: &[&Parameter]| {
            NUMBERS.add(name, parameters, Box::new(0)).unwrap_err().to_string()
        };
        for name in ["Five", "five_", "five six", "-five", ""] {
            let expected = format!("the name {name:?} is not in kebab-case");
            assert!(refused(name, &[]).starts_with(&expected), "{name}");
        }
        let (low, high) = (parameter("size", 1), parameter("size", 6));
        assert_eq!(refused("five", &[&low, &low]), "two parameters have the name \"size\"");
        let limit = parameter("limit", 1);
        assert_eq!(
            refused("five", &[&limit]),
            "no parameter can have the name \"limit\": it is a key of its own"
        );
        let expected = "the default is not allowed: size = 6: allowed is a whole number from 1 to 5";
        assert_eq!(refused("five", &[&high]), expected);
        assert_eq!(NUMBERS.get("five"), None);
    }
}
