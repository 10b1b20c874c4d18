//! Parameters as data: name, unit, range, default, source and a sentence, beside the field they set.
//!
//! Scenario files, the command line's listings and the pages of the documentation all read the same table, the
//! `FIELDS` of an algorithm's parameters, and so does the check that refuses a bad value.

use cutline_units::Duration;
use std::borrow::Cow;
use std::fmt;

/// A value for a parameter, parsed but not checked.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A plain number, or one in the parameter's unit.
    Number(f64),
    /// A whole number of things.
    Count(u64),
    /// A time.
    Duration(Duration),
    /// How often, in Hz.
    Frequency(f64),
    /// Yes or no.
    Flag(bool),
    /// One of several names.
    Choice(Cow<'static, str>),
    /// A list of times.
    Durations(Cow<'static, [Duration]>),
    /// A list of whole numbers.
    Counts(Cow<'static, [u64]>),
}

/// Which values a parameter may have. Ranges include their ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// A number; a count is taken as well.
    Number {
        /// The least allowed.
        least: f64,
        /// The most allowed.
        most: f64,
    },
    /// A whole number.
    Count {
        /// The least allowed.
        least: u64,
        /// The most allowed.
        most: u64,
    },
    /// A time.
    Duration {
        /// The least allowed.
        least: Duration,
        /// The most allowed.
        most: Duration,
    },
    /// Hz.
    Frequency {
        /// The least allowed, Hz.
        least: f64,
        /// The most allowed, Hz.
        most: f64,
    },
    /// Yes or no.
    Flag,
    /// One of these names.
    Choice(&'static [&'static str]),
    /// A list of times.
    Durations {
        /// How many.
        len: usize,
        /// The least allowed for each.
        least: Duration,
        /// The most allowed for each.
        most: Duration,
    },
    /// A list of whole numbers.
    Counts {
        /// How many.
        len: usize,
        /// The least allowed for each.
        least: u64,
        /// The most allowed for each.
        most: u64,
    },
}

/// All there is to say about a parameter.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// The name, in kebab-case.
    pub name: &'static str,
    /// The unit of a number or count, such as `packets`; empty where there is none or the kind says it.
    pub unit: &'static str,
    /// Which values are allowed.
    pub kind: Kind,
    /// The default; `None` for a parameter that is off unless set.
    pub default: Option<Value>,
    /// Where the default comes from.
    pub source: &'static str,
    /// What it does, in a sentence.
    pub doc: &'static str,
}

/// A parameter and how it is read from and written to the struct that holds it.
#[derive(Debug)]
pub struct Field<P> {
    /// The description.
    pub about: Parameter,
    /// What is set; `None` for a parameter that is off.
    pub get: fn(&P) -> Option<Value>,
    /// Sets a value that [`Parameter::check`] has passed.
    pub set: fn(&mut P, &Value),
}

/// A set of parameters with a description of each.
pub trait Parameters: Default + 'static {
    /// Every parameter, in the order in which it should be listed.
    const FIELDS: &'static [Field<Self>];

    /// Whether parameters that are each allowed also go together.
    ///
    /// # Errors
    /// When they do not.
    fn check_together(&self) -> Result<(), ParameterError> {
        Ok(())
    }

    /// The descriptions.
    fn describe() -> Vec<&'static Parameter> {
        Self::FIELDS.iter().map(|field| &field.about).collect()
    }

    /// The defaults, changed by `values`.
    ///
    /// # Errors
    /// When a name is unknown, a value is not allowed, or values do not go together.
    fn from_values<'v>(values: impl IntoIterator<Item = (&'v str, Value)>) -> Result<Self, ParameterError> {
        let mut params = Self::default();
        for (name, value) in values {
            let field = Self::field(name, &value)?;
            field.about.check(&value)?;
            (field.set)(&mut params, &value);
        }
        params.check_together()?;
        Ok(params)
    }

    /// The field of a name; `value` is only for the error.
    ///
    /// # Errors
    /// When there is none.
    fn field(name: &str, value: &Value) -> Result<&'static Field<Self>, ParameterError> {
        let found = Self::FIELDS.iter().find(|field| field.about.name == name);
        found.ok_or_else(|| {
            let names: Vec<_> = Self::FIELDS.iter().map(|field| field.about.name).collect();
            ParameterError::unknown(name, value, &names)
        })
    }

    /// Checks values that were set in code rather than by [`Parameters::from_values`].
    ///
    /// # Errors
    /// When one is not allowed, or they do not go together.
    fn validate(&self) -> Result<(), ParameterError> {
        for field in Self::FIELDS {
            if let Some(value) = (field.get)(self) {
                field.about.check(&value)?;
            }
        }
        self.check_together()
    }

    /// Every parameter with what it is set to.
    fn values(&self) -> Vec<(&'static str, Option<Value>)> {
        Self::FIELDS.iter().map(|field| (field.about.name, (field.get)(self))).collect()
    }
}

/// A parameter that is not allowed: which, what was asked for, and what is allowed instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParameterError {
    /// The parameter's name, or what was given for one.
    pub parameter: String,
    /// The value given.
    pub value: String,
    /// What is allowed.
    pub allowed: String,
    /// The right name, if this looks like a slip.
    pub nearest: Option<&'static str>,
}

/// The kinds of parameter in one line each: name, unit, range, default, source, meaning.
impl Parameter {
    pub(crate) const fn number(
        name: &'static str,
        unit: &'static str,
        (least, most): (f64, f64),
        default: Option<f64>,
        source: &'static str,
        doc: &'static str,
    ) -> Self {
        let default = match default {
            Some(x) => Some(Value::Number(x)),
            None => None,
        };
        Self { name, unit, kind: Kind::Number { least, most }, default, source, doc }
    }

    pub(crate) const fn whole(
        name: &'static str,
        unit: &'static str,
        (least, most): (u64, u64),
        default: Option<u64>,
        source: &'static str,
        doc: &'static str,
    ) -> Self {
        let default = match default {
            Some(n) => Some(Value::Count(n)),
            None => None,
        };
        Self { name, unit, kind: Kind::Count { least, most }, default, source, doc }
    }

    pub(crate) const fn time(
        name: &'static str,
        (least, most): (Duration, Duration),
        default: Option<Duration>,
        source: &'static str,
        doc: &'static str,
    ) -> Self {
        let default = match default {
            Some(time) => Some(Value::Duration(time)),
            None => None,
        };
        Self { name, unit: "", kind: Kind::Duration { least, most }, default, source, doc }
    }

    pub(crate) const fn flag(
        name: &'static str,
        default: bool,
        source: &'static str,
        doc: &'static str,
    ) -> Self {
        Self { name, unit: "", kind: Kind::Flag, default: Some(Value::Flag(default)), source, doc }
    }

    pub(crate) const fn choice(
        name: &'static str,
        names: &'static [&'static str],
        default: &'static str,
        source: &'static str,
        doc: &'static str,
    ) -> Self {
        let default = Some(Value::Choice(Cow::Borrowed(default)));
        Self { name, unit: "", kind: Kind::Choice(names), default, source, doc }
    }
}

impl Parameter {
    /// Whether `value` is allowed.
    ///
    /// # Errors
    /// When it is of another kind or out of range.
    pub fn check(&self, value: &Value) -> Result<(), ParameterError> {
        if self.kind.allows(value) {
            return Ok(());
        }
        let nearest = match (self.kind, value) {
            (Kind::Choice(names), Value::Choice(given)) => nearest(given, names),
            _ => None,
        };
        let (parameter, value, allowed) = (self.name.to_owned(), value.to_string(), self.allowed());
        Err(ParameterError { parameter, value, allowed, nearest })
    }

    /// Which values are allowed, with the unit, as a person writes it.
    pub fn allowed(&self) -> String {
        let unit = if self.unit.is_empty() { String::new() } else { format!(" {}", self.unit) };
        format!("{}{unit}", self.kind)
    }

    /// The default as a person writes it: small numbers with an exponent, `off` for none.
    pub fn default_text(&self) -> String {
        match &self.default {
            None => "off".to_owned(),
            Some(Value::Number(x)) if *x != 0.0 && x.abs() < 1e-3 => format!("{x:e}"),
            Some(value) => value.to_string(),
        }
    }
}

impl Kind {
    fn allows(self, value: &Value) -> bool {
        match (self, value) {
            (Self::Number { least, most }, Value::Number(x)) => (least..=most).contains(x),
            (Self::Number { least, most }, Value::Count(n)) => (least..=most).contains(&(*n as f64)),
            (Self::Count { least, most }, Value::Count(n)) => (least..=most).contains(n),
            (Self::Duration { least, most }, Value::Duration(t)) => (least..=most).contains(t),
            (Self::Frequency { least, most }, Value::Frequency(hz)) => (least..=most).contains(hz),
            (Self::Flag, Value::Flag(_)) => true,
            (Self::Choice(names), Value::Choice(name)) => names.contains(&&**name),
            (Self::Durations { len, least, most }, Value::Durations(times)) => {
                times.len() == len && times.iter().all(|time| (least..=most).contains(time))
            }
            (Self::Counts { len, least, most }, Value::Counts(counts)) => {
                counts.len() == len && counts.iter().all(|n| (least..=most).contains(n))
            }
            _ => false,
        }
    }
}

impl Value {
    /// The number; a count counts as one.
    pub fn number(&self) -> f64 {
        match *self {
            Self::Number(x) => x,
            Self::Count(n) => n as f64,
            _ => panic!("{self} has been checked to be a number"),
        }
    }

    /// The count.
    pub fn count(&self) -> u64 {
        let Self::Count(n) = *self else { panic!("{self} has been checked to be a count") };
        n
    }

    /// The duration.
    pub fn duration(&self) -> Duration {
        let Self::Duration(t) = *self else { panic!("{self} has been checked to be a duration") };
        t
    }

    /// Yes or no.
    pub fn is_set(&self) -> bool {
        let Self::Flag(flag) = *self else { panic!("{self} has been checked to be true or false") };
        flag
    }

    /// Which of the names of a choice, counted from 0.
    pub(crate) fn index_in(&self, names: &[&str]) -> usize {
        let Self::Choice(name) = self else { panic!("{self} has been checked to be a choice") };
        let found = names.iter().position(|other| other == name);
        found.unwrap_or_else(|| panic!("{name} has been checked to be one of {names:?}"))
    }

    /// One time for each of several things.
    pub fn durations(&self) -> &[Duration] {
        let Self::Durations(times) = self else { panic!("{self} has been checked to be a list of times") };
        times
    }

    /// One whole number for each of several things.
    pub fn counts(&self) -> &[u64] {
        let Self::Counts(counts) = self else { panic!("{self} has been checked to be a list of counts") };
        counts
    }

    /// The frequency in Hz.
    pub fn hertz(&self) -> f64 {
        let Self::Frequency(hz) = *self else { panic!("{self} has been checked to be a frequency") };
        hz
    }
}

impl ParameterError {
    /// A parameter whose value is none of `names`.
    pub(crate) fn unknown_choice(parameter: &str, value: &str, names: &[&'static str]) -> Self {
        let (parameter, allowed) = (parameter.to_owned(), format!("one of {}", names.join(", ")));
        Self { parameter, value: value.to_owned(), allowed, nearest: nearest(value, names) }
    }

    /// A name that is none of `names`.
    pub(crate) fn unknown(name: &str, value: &dyn fmt::Display, names: &[&'static str]) -> Self {
        let allowed = match names {
            [] => "no parameter at all".to_owned(),
            names => format!("one of the names {}", names.join(", ")),
        };
        let nearest = nearest(name, names);
        Self { parameter: name.to_owned(), value: value.to_string(), allowed, nearest }
    }
}

impl fmt::Display for Value {
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
        }
    }
}

fn write_list(f: &mut fmt::Formatter<'_>, items: &[impl fmt::Display]) -> fmt::Result {
    let items: Vec<_> = items.iter().map(ToString::to_string).collect();
    write!(f, "[{}]", items.join(", "))
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number { least, most } => write!(f, "a number from {least} to {most}"),
            Self::Count { least, most } => write!(f, "a whole number from {least} to {most}"),
            Self::Duration { least, most } => write!(f, "a time from {least} to {most}"),
            Self::Frequency { least, most } => write!(f, "a frequency from {least} Hz to {most} Hz"),
            Self::Flag => write!(f, "true or false"),
            Self::Choice(names) => write!(f, "one of {}", names.join(", ")),
            Self::Durations { len, least, most } => {
                write!(f, "a list of {len} times from {least} to {most}")
            }
            Self::Counts { len, least, most } => {
                write!(f, "a list of {len} whole numbers from {least} to {most}")
            }
        }
    }
}

impl fmt::Display for ParameterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { parameter, value, allowed, .. } = self;
        write!(f, "{parameter} = {value}: allowed is {allowed}")?;
        self.nearest.map_or(Ok(()), |name| write!(f, "; did you mean {name}?"))
    }
}

impl std::error::Error for ParameterError {}

/// The name that `given` is most likely a slip of: at most a third of its letters differ.
fn nearest(given: &str, names: &[&'static str]) -> Option<&'static str> {
    let near = names.iter().map(|&name| (edits(given, name), name)).min()?;
    (near.0 <= near.1.len().div_ceil(3)).then_some(near.1)
}

/// How many letters must be added, taken away or changed to turn `a` into `b` (Levenshtein 1966).
fn edits(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.chars().count()).collect();
    for (i, letter) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, other) in b.chars().enumerate() {
            let change = diagonal + usize::from(letter != other);
            diagonal = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[row.len() - 1]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_count_letters() {
        for (a, b, n) in
            [("", "abc", 3), ("q-ref", "q-ref", 0), ("qref", "q-ref", 1), ("kitten", "sitting", 3)]
        {
            assert_eq!(edits(a, b), n, "{a} {b}");
        }
    }

    #[test]
    fn a_slip_is_named_and_nonsense_is_not() {
        let names = ["frequency", "q-ref"];
        assert_eq!(nearest("freqency", &names), Some("frequency"));
        assert_eq!(nearest("bandwidth", &names), None);
        assert_eq!(nearest("x", &[]), None);
    }

    #[test]
    fn values_of_another_kind_are_refused_with_what_is_allowed() {
        let kind = Kind::Duration { least: Duration::from_millis(1), most: Duration::from_secs(1) };
        let l = Parameter { name: "l", unit: "", kind, default: None, source: "", doc: "" };
        let error = l.check(&Value::Number(3.0)).unwrap_err().to_string();
        assert_eq!(error, "l = 3: allowed is a time from 1 ms to 1 s");
        assert!(l.check(&Value::Duration(Duration::from_millis(40))).is_ok());
    }

    #[test]
    fn choices_name_the_nearest() {
        let kind = Kind::Choice(&["automatic", "fixed"]);
        let mode = Parameter { name: "mode", unit: "", kind, default: None, source: "", doc: "" };
        let error = mode.check(&Value::Choice("automtic".into())).unwrap_err().to_string();
        assert_eq!(error, "mode = automtic: allowed is one of automatic, fixed; did you mean automatic?");
    }
}
