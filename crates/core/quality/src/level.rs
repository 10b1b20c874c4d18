//! Quality as a number, and the ways to make one of two.
//!
//! TSQ section 2: 1 is the best quality, 0 is useless. The paper takes the lesser of delay quality and throughput quality,
//! and leaves "other combinations" to the future (section 6). Mean and product are such combinations. The three differ
//! for a flow that is good in one and bad in the other: for (1, 0.5) they give 0.5, 0.75 and 0.5; for (0.5, 0.5) they
//! give 0.5, 0.5 and 0.25.

use std::fmt;

/// A quality: a number from 0 (useless) to 1 (the best there is). NaN cannot be one.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Quality(f64);

/// Reason why a number is not a quality.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QualityError(f64);

/// Combination of delay quality and throughput quality.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Combination {
    /// The lesser of the two: TSQ eq. 1, and the default.
    #[default]
    Min,
    /// The arithmetic mean: one can make up for the other.
    Mean,
    /// The product: both count, and zero in one is zero in all.
    Product,
}

/// A name that is none of those there are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownName {
    /// Kind of the named object, such as `application class`.
    pub what: &'static str,
    /// The name that was given.
    pub given: String,
    /// The names there are.
    pub allowed: &'static [&'static str],
}

impl Quality {
    /// 0: useless.
    pub const WORST: Self = Self(0.0);
    /// 1: the best quality.
    pub const BEST: Self = Self(1.0);

    /// `q` if it lies in 0..=1.
    ///
    /// # Errors
    /// When `q` is below 0, above 1, or not a number.
    pub fn new(q: f64) -> Result<Self, QualityError> {
        if (0.0..=1.0).contains(&q) { Ok(Self(q)) } else { Err(QualityError(q)) }
    }

    /// The nearest quality to `q`. NaN becomes 0.
    pub const fn clamped(q: f64) -> Self {
        if q >= 1.0 {
            Self::BEST
        } else if q > 0.0 {
            Self(q)
        } else {
            Self::WORST
        }
    }

    /// The number.
    pub const fn get(self) -> f64 {
        self.0
    }
}

impl Combination {
    /// Every combination there is.
    pub const ALL: [Self; 3] = [Self::Min, Self::Mean, Self::Product];
    const NAMES: [&str; 3] = ["min", "mean", "product"];

    /// The combination of that name: `min`, `mean` or `product`.
    ///
    /// # Errors
    /// When there is none of that name.
    pub fn parse(name: &str) -> Result<Self, UnknownName> {
        let found = Self::ALL.into_iter().find(|combination| combination.name() == name);
        found.ok_or_else(|| UnknownName {
            what: "combination",
            given: name.to_owned(),
            allowed: &Self::NAMES,
        })
    }

    /// Returns the name in scenarios and reports.
    pub const fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    /// Combines two qualities into one.
    pub fn combine(self, delay: Quality, throughput: Quality) -> Quality {
        match self {
            Self::Min => Quality(delay.0.min(throughput.0)), // TSQ eq. 1
            Self::Mean => Quality(f64::midpoint(delay.0, throughput.0)),
            Self::Product => Quality(delay.0 * throughput.0),
        }
    }
}

impl fmt::Display for Quality {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for QualityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a quality is from 0 to 1, not {}", self.0)
    }
}

impl std::error::Error for QualityError {}

impl fmt::Display for Combination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl fmt::Display for UnknownName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "there is no {} \"{}\"; there are {}", self.what, self.given, self.allowed.join(", "))
    }
}

impl std::error::Error for UnknownName {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_zero_to_one() {
        assert_eq!(Quality::new(0.0), Ok(Quality::WORST));
        assert_eq!(Quality::new(1.0), Ok(Quality::BEST));
        for bad in [-0.01, 1.01, f64::NAN, f64::INFINITY] {
            assert!(Quality::new(bad).is_err(), "{bad}");
        }
        assert_eq!(Quality::new(2.0).unwrap_err().to_string(), "a quality is from 0 to 1, not 2");
    }

    #[test]
    fn clamping_cuts_off() {
        assert_eq!(Quality::clamped(-1.0), Quality::WORST);
        assert_eq!(Quality::clamped(f64::NAN), Quality::WORST);
        assert_eq!(Quality::clamped(9.0), Quality::BEST);
        assert_eq!(Quality::clamped(0.3).get(), 0.3);
    }

    #[test]
    fn the_header_s_examples_of_combining() {
        let of = |c: Combination, d, t| c.combine(Quality::clamped(d), Quality::clamped(t)).get();
        assert_eq!(Combination::ALL.map(|c| of(c, 1.0, 0.5)), [0.5, 0.75, 0.5]);
        assert_eq!(Combination::ALL.map(|c| of(c, 0.5, 0.5)), [0.5, 0.5, 0.25]);
    }

    #[test]
    fn combinations_are_found_by_name() {
        for combination in Combination::ALL {
            assert_eq!(Combination::parse(combination.name()), Ok(combination));
        }
        assert_eq!(
            Combination::parse("max").unwrap_err().to_string(),
            "there is no combination \"max\"; there are min, mean, product"
        );
    }
}
