//! The types that a parameter's field may have.

use crate::{Choice, ParameterKind, ParameterValue};
use cutline_units::{Bytes, Distribution, Duration, Hint, IpVersion, Rate};

/// A type of field. Enums get it with the derive of [`crate::Choice`].
pub trait ParameterType: Sized + 'static {
    /// Type of the attribute `range`.
    type Range;

    /// True if the parameter can be switched off.
    const OPTIONAL: bool = false;

    /// Returns the allowed values.
    fn kind(range: Self::Range) -> ParameterKind;

    /// Returns the current value.
    fn to_value(&self) -> ParameterValue;

    /// Takes a value that has been checked.
    fn from_value(value: &ParameterValue) -> Self;
}

fn unchecked(value: &ParameterValue, what: &str) -> ! {
    panic!("{value} has been checked to be {what}")
}

impl ParameterType for f64 {
    type Range = (f64, f64);

    fn kind((least, most): (f64, f64)) -> ParameterKind {
        ParameterKind::Number { least, most }
    }

    fn to_value(&self) -> ParameterValue {
        ParameterValue::Number(*self)
    }

    fn from_value(value: &ParameterValue) -> Self {
        match *value {
            ParameterValue::Number(x) | ParameterValue::Frequency(x) => x,
            ParameterValue::Count(n) => n as f64,
            _ => unchecked(value, "a number"),
        }
    }
}

/// Whole numbers of any width. A range beyond the width is a mistake of the struct's author.
macro_rules! whole {
    ($($type:ty),+) => {$(
        impl ParameterType for $type {
            type Range = (u64, u64);

            fn kind((least, most): (u64, u64)) -> ParameterKind {
                assert!(<$type>::try_from(most).is_ok(), "{most} fits into the field");
                ParameterKind::Count { least, most }
            }

            fn to_value(&self) -> ParameterValue {
                ParameterValue::Count(u64::from(*self))
            }

            fn from_value(value: &ParameterValue) -> Self {
                let ParameterValue::Count(n) = *value else { unchecked(value, "a whole number") };
                <$type>::try_from(n).unwrap_or_else(|_| unchecked(value, "within its range"))
            }
        }
    )+};
}

whole!(u8, u16, u32, u64);

impl ParameterType for Duration {
    type Range = (Self, Self);

    fn kind((least, most): (Self, Self)) -> ParameterKind {
        ParameterKind::Duration { least, most }
    }

    fn to_value(&self) -> ParameterValue {
        ParameterValue::Duration(*self)
    }

    fn from_value(value: &ParameterValue) -> Self {
        let ParameterValue::Duration(time) = *value else { unchecked(value, "a time") };
        time
    }
}

impl ParameterType for Hint {
    type Range = (u64, u64);

    fn kind((least, most): (u64, u64)) -> ParameterKind {
        ParameterKind::Count { least, most }
    }

    fn to_value(&self) -> ParameterValue {
        ParameterValue::Count(u64::from(self.level()))
    }

    fn from_value(value: &ParameterValue) -> Self {
        Self::from_level(u16::from_value(value))
    }
}

/// A rate; its unit is `bit/s`.
impl ParameterType for Rate {
    type Range = (u64, u64);

    fn kind((least, most): (u64, u64)) -> ParameterKind {
        ParameterKind::Count { least, most }
    }

    fn to_value(&self) -> ParameterValue {
        ParameterValue::Count(self.as_bps())
    }

    fn from_value(value: &ParameterValue) -> Self {
        Self::from_bps(u64::from_value(value))
    }
}

/// A size; its unit is `B`.
impl ParameterType for Bytes {
    type Range = (u64, u64);

    fn kind((least, most): (u64, u64)) -> ParameterKind {
        ParameterKind::Count { least, most }
    }

    fn to_value(&self) -> ParameterValue {
        ParameterValue::Count(self.get())
    }

    fn from_value(value: &ParameterValue) -> Self {
        Self::new(u64::from_value(value))
    }
}

/// A random quantity; with the unit `B` files write sizes in it, with `s` durations.
impl ParameterType for Distribution {
    type Range = (f64, f64);

    fn kind((least, most): (f64, f64)) -> ParameterKind {
        ParameterKind::Distribution { least, most }
    }

    fn to_value(&self) -> ParameterValue {
        ParameterValue::Distribution(*self)
    }

    fn from_value(value: &ParameterValue) -> Self {
        let ParameterValue::Distribution(distribution) = *value else { unchecked(value, "a distribution") };
        distribution
    }
}

impl ParameterType for bool {
    type Range = ();

    fn kind((): ()) -> ParameterKind {
        ParameterKind::Flag
    }

    fn to_value(&self) -> ParameterValue {
        ParameterValue::Flag(*self)
    }

    fn from_value(value: &ParameterValue) -> Self {
        let ParameterValue::Flag(flag) = *value else { unchecked(value, "true or false") };
        flag
    }
}

impl Choice for IpVersion {
    const NAMES: &'static [&'static str] = &["ipv4", "ipv6"];
    const ALL: &'static [Self] = &[Self::V4, Self::V6];
}

impl ParameterType for IpVersion {
    type Range = ();

    fn kind((): ()) -> ParameterKind {
        ParameterKind::Choice(Self::NAMES)
    }

    fn to_value(&self) -> ParameterValue {
        ParameterValue::Choice(self.name().into())
    }

    fn from_value(value: &ParameterValue) -> Self {
        let ParameterValue::Choice(name) = value else { unchecked(value, "a name") };
        Self::from_name(name).unwrap_or_else(|| unchecked(value, "one of the names"))
    }
}

impl<const N: usize> ParameterType for [Duration; N] {
    type Range = (Duration, Duration);

    fn kind((least, most): (Duration, Duration)) -> ParameterKind {
        ParameterKind::Durations { len: N, least, most }
    }

    fn to_value(&self) -> ParameterValue {
        ParameterValue::Durations(self.to_vec().into())
    }

    fn from_value(value: &ParameterValue) -> Self {
        let ParameterValue::Durations(times) = value else { unchecked(value, "a list of times") };
        (&**times).try_into().unwrap_or_else(|_| unchecked(value, "a list of the right length"))
    }
}

impl<const N: usize> ParameterType for [u64; N] {
    type Range = (u64, u64);

    fn kind((least, most): (u64, u64)) -> ParameterKind {
        ParameterKind::Counts { len: N, least, most }
    }

    fn to_value(&self) -> ParameterValue {
        ParameterValue::Counts(self.to_vec().into())
    }

    fn from_value(value: &ParameterValue) -> Self {
        let ParameterValue::Counts(counts) = value else { unchecked(value, "a list of whole numbers") };
        (&**counts).try_into().unwrap_or_else(|_| unchecked(value, "a list of the right length"))
    }
}

impl<T: ParameterType> ParameterType for Option<T> {
    type Range = T::Range;

    const OPTIONAL: bool = true;

    fn kind(range: T::Range) -> ParameterKind {
        T::kind(range)
    }

    fn to_value(&self) -> ParameterValue {
        self.as_ref().map_or(ParameterValue::Off, T::to_value)
    }

    fn from_value(value: &ParameterValue) -> Self {
        (*value != ParameterValue::Off).then(|| T::from_value(value))
    }
}
