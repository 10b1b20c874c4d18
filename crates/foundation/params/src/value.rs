//! A parameter's value, whatever its type.

use cutline_units::{Distribution, Duration};
use std::borrow::Cow;
use std::fmt;

/// A value for a parameter, parsed but not checked.
#[derive(Clone, Debug, PartialEq)]
pub enum ParameterValue {
    /// A plain number, or one in the parameter's unit.
    Number(f64),
    /// A whole number, or one in the parameter's unit.
    Count(u64),
    /// A time.
    Duration(Duration),
    /// A frequency, Hz.
    Frequency(f64),
    /// Yes or no.
    Flag(bool),
    /// One of several names.
    Choice(Cow<'static, str>),
    /// A list of times.
    Durations(Cow<'static, [Duration]>),
    /// A list of whole numbers.
    Counts(Cow<'static, [u64]>),
    /// A random quantity, in the parameter's unit.
    Distribution(Distribution),
    /// Nothing: the parameter is switched off.
    Off,
}

impl fmt::Display for ParameterValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(x) => x.fmt(f),
            Self::Count(n) => n.fmt(f),
            Self::Duration(t) => t.fmt(f),
            Self::Frequency(hz) => write!(f, "{hz} Hz"),
            Self::Flag(flag) => flag.fmt(f),
            Self::Choice(name) => name.fmt(f),
            Self::Durations(times) => write_list(f, times),
            Self::Counts(counts) => write_list(f, counts),
            Self::Distribution(distribution) => distribution.fmt(f),
            Self::Off => f.write_str("off"),
        }
    }
}

fn write_list(f: &mut fmt::Formatter<'_>, items: &[impl fmt::Display]) -> fmt::Result {
    let items: Vec<_> = items.iter().map(ToString::to_string).collect();
    write!(f, "[{}]", items.join(", "))
}
