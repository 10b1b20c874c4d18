//! The values that a parameter may have.

use crate::ParameterValue;
use cutline_units::Duration;
use std::fmt;

/// The values that a parameter may have. Ranges include their ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ParameterKind {
    /// A number; a count is taken as well.
    Number {
        /// The smallest allowed.
        least: f64,
        /// The largest allowed.
        most: f64,
    },
    /// A whole number.
    Count {
        /// The smallest allowed.
        least: u64,
        /// The largest allowed.
        most: u64,
    },
    /// A time.
    Duration {
        /// The shortest allowed.
        least: Duration,
        /// The longest allowed.
        most: Duration,
    },
    /// A frequency.
    Frequency {
        /// The smallest allowed, Hz.
        least: f64,
        /// The largest allowed, Hz.
        most: f64,
    },
    /// Yes or no.
    Flag,
    /// One of these names.
    Choice(&'static [&'static str]),
    /// One of the names of a table to which other crates add.
    Registered(&'static dyn Names),
    /// A whole number, or one of these names.
    CountOr {
        /// The smallest allowed.
        least: u64,
        /// The largest allowed.
        most: u64,
        /// The names.
        names: &'static [&'static str],
    },
    /// A list of times.
    Durations {
        /// Number of values.
        len: usize,
        /// The shortest allowed for each.
        least: Duration,
        /// The longest allowed for each.
        most: Duration,
    },
    /// A list of whole numbers.
    Counts {
        /// Number of values.
        len: usize,
        /// The smallest allowed for each.
        least: u64,
        /// The largest allowed for each.
        most: u64,
    },
    /// A random quantity, or a fixed one.
    Distribution {
        /// The smallest allowed for a fixed quantity, a mean, a median, a minimum and a maximum.
        least: f64,
        /// The largest allowed for each of them.
        most: f64,
    },
}

/// A table of names that grows while the program starts, such as a [`Registry`](crate::Registry).
pub trait Names: fmt::Debug + Sync {
    /// Every name there is.
    fn names(&self) -> Vec<&'static str>;
}

/// Two tables are the same if they are one.
impl PartialEq for dyn Names {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::addr_eq(self, other)
    }
}

impl ParameterKind {
    /// Returns whether `value` is of this kind and within its range.
    pub fn allows(self, value: &ParameterValue) -> bool {
        match (self, value) {
            (Self::Number { least, most }, ParameterValue::Number(x)) => (least..=most).contains(x),
            (Self::Number { least, most }, ParameterValue::Count(n)) => (least..=most).contains(&(*n as f64)),
            (Self::Count { least, most } | Self::CountOr { least, most, .. }, ParameterValue::Count(n)) => {
                (least..=most).contains(n)
            }
            (Self::Duration { least, most }, ParameterValue::Duration(t)) => (least..=most).contains(t),
            (Self::Frequency { least, most }, ParameterValue::Frequency(hz)) => (least..=most).contains(hz),
            (Self::Flag, ParameterValue::Flag(_)) => true,
            (Self::Choice(names) | Self::CountOr { names, .. }, ParameterValue::Choice(name)) => {
                names.contains(&&**name)
            }
            (Self::Registered(table), ParameterValue::Choice(name)) => table.names().contains(&&**name),
            (Self::Durations { len, least, most }, ParameterValue::Durations(times)) => {
                times.len() == len && times.iter().all(|time| (least..=most).contains(time))
            }
            (Self::Counts { len, least, most }, ParameterValue::Counts(counts)) => {
                counts.len() == len && counts.iter().all(|n| (least..=most).contains(n))
            }
            (Self::Distribution { least, most }, ParameterValue::Distribution(distribution)) => {
                distribution.is_sound() && distribution.quantities().all(|x| (least..=most).contains(&x))
            }
            _ => false,
        }
    }

    /// A number as a frequency; the derive calls this for `hertz`.
    pub fn in_hertz(self) -> Self {
        let Self::Number { least, most } = self else { panic!("a frequency is a number, not {self}") };
        Self::Frequency { least, most }
    }

    /// `value` as a value of this kind, where a type of field has several.
    pub(crate) fn present(self, value: ParameterValue) -> ParameterValue {
        match (self, value) {
            (Self::Frequency { .. }, ParameterValue::Number(hz)) => ParameterValue::Frequency(hz),
            (_, value) => value,
        }
    }

    /// The kind's name, as `cutline aqm show --json` writes it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Number { .. } => "number",
            Self::Count { .. } => "count",
            Self::Duration { .. } => "duration",
            Self::Frequency { .. } => "frequency",
            Self::Flag => "flag",
            Self::Choice(_) | Self::Registered(_) => "choice",
            Self::CountOr { .. } => "count or choice",
            Self::Durations { .. } => "durations",
            Self::Counts { .. } => "counts",
            Self::Distribution { .. } => "distribution",
        }
    }
}

impl fmt::Display for ParameterKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number { least, most } => write!(f, "a number from {least} to {most}"),
            Self::Count { least, most } => write!(f, "a whole number from {least} to {most}"),
            Self::Duration { least, most } => write!(f, "a time from {least} to {most}"),
            Self::Frequency { least, most } => write!(f, "a frequency from {least} Hz to {most} Hz"),
            Self::Flag => write!(f, "true or false"),
            Self::Choice(names) => write!(f, "one of {}", names.join(", ")),
            Self::Registered(table) => write!(f, "one of {}", table.names().join(", ")),
            Self::CountOr { least, most, names } => {
                write!(f, "a whole number from {least} to {most}, or one of {}", names.join(", "))
            }
            Self::Durations { len, least, most } => {
                write!(f, "a list of {len} times from {least} to {most}")
            }
            Self::Counts { len, least, most } => {
                write!(f, "a list of {len} whole numbers from {least} to {most}")
            }
            Self::Distribution { least, most } => {
                write!(f, "a number from {least} to {most}, or a distribution of such numbers")
            }
        }
    }
}
