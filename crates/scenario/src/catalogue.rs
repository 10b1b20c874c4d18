//! Which AQMs there are and what may be set on them: the seam between the scenario file and the algorithms.
//!
//! The scenario reader knows no algorithm. It asks an [`AqmCatalogue`] for the names and the [`ParameterInfo`]s, reads
//! what the file says into a [`ParameterValue`] of the right kind, fills in defaults, and lets the catalogue check
//! the whole. Whoever has a registry of algorithms implements this trait for it.

use crate::kind;
use crate::reader::Kind;
use cutline_units::{Bytes, Duration, Probability, Rate};
use std::collections::BTreeMap;
use std::fmt;

/// The parameters of an AQM by name, defaults filled in; one that is off is left out.
pub type Parameters = BTreeMap<String, ParameterValue>;

/// What a parameter is set to.
#[derive(Clone, Debug, PartialEq)]
pub enum ParameterValue {
    /// A number without a unit.
    Number(f64),
    /// A number of packets.
    Packets(f64),
    /// A duration.
    Duration(Duration),
    /// A frequency in Hz.
    Frequency(f64),
    /// A probability.
    Probability(Probability),
    /// A bit rate.
    Rate(Rate),
    /// A size.
    Bytes(Bytes),
    /// On or off.
    Flag(bool),
    /// A word.
    Text(String),
}

/// The kind of a parameter: which quantity it is written as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParameterKind {
    /// `1.5`
    Number,
    /// `"200 packets"`
    Packets,
    /// `"15 ms"`
    Duration,
    /// `"170 Hz"`
    Frequency,
    /// `0.05` or `"5 %"`
    Probability,
    /// `"15 Mbit/s"`
    Rate,
    /// `"1000 B"`
    Bytes,
    /// `true`
    Flag,
    /// One of these words.
    Text(&'static [&'static str]),
}

/// One parameter of an AQM.
#[derive(Clone, Debug)]
pub struct ParameterInfo {
    /// Its name in a scenario: `mean-packet`.
    pub name: &'static str,
    /// Which quantity it is.
    pub kind: ParameterKind,
    /// The least and the largest value, in the unit that [`ParameterValue::magnitude`] answers in.
    pub range: (f64, f64),
    /// What it is when the file does not say; `None` for a parameter that is off unless set.
    pub default: Option<ParameterValue>,
    /// What it does, in a few words.
    pub meaning: &'static str,
}

/// Why a set of parameters makes no sense together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParameterProblem {
    /// The parameter to blame.
    pub name: &'static str,
    /// What is wrong, as the end of a sentence.
    pub text: String,
}

/// The AQMs that a scenario may name.
pub trait AqmCatalogue {
    /// Their names, in the order in which a message lists them.
    fn names(&self) -> Vec<&'static str>;

    /// The parameters of one of them; `None` when there is no such AQM.
    fn parameters(&self, aqm: &str) -> Option<Vec<ParameterInfo>>;

    /// Whether a complete set of parameters, each in its range, makes sense as a whole.
    ///
    /// # Errors
    /// The parameter to blame and why.
    fn check(&self, aqm: &str, parameters: &Parameters) -> Result<(), ParameterProblem>;
}

/// The AQMs of the TSQ paper's evaluation: drop-tail and PI.
#[derive(Clone, Copy, Debug, Default)]
pub struct BuiltIn;

impl AqmCatalogue for BuiltIn {
    fn names(&self) -> Vec<&'static str> {
        vec!["drop-tail", "pi"]
    }

    fn parameters(&self, aqm: &str) -> Option<Vec<ParameterInfo>> {
        match aqm {
            "drop-tail" => Some(Vec::new()),
            "pi" => Some(pi()),
            _ => None,
        }
    }

    fn check(&self, aqm: &str, parameters: &Parameters) -> Result<(), ParameterProblem> {
        let magnitude = |name| parameters.get(name).and_then(ParameterValue::magnitude);
        match (aqm, magnitude("a"), magnitude("b")) {
            // Hollot et al. 2001: with a <= b the controller's zero lies at or beyond 1 and it integrates nothing.
            ("pi", Some(a), Some(b)) if a <= b => {
                Err(ParameterProblem { name: "a", text: format!("a must be larger than b, which is {b:e}") })
            }
            _ => Ok(()),
        }
    }
}

/// PI as the TSQ paper sets it (section 4; Hollot et al. 2001).
fn pi() -> Vec<ParameterInfo> {
    use {ParameterKind as Kind, ParameterValue as Value};
    let parameter = |name, kind, range, default, meaning| ParameterInfo {
        name,
        kind,
        range,
        default: Some(default),
        meaning,
    };
    vec![
        parameter("a", Kind::Number, (0.0, 1.0), Value::Number(1.822e-5), "gain on the error now"),
        parameter(
            "b",
            Kind::Number,
            (0.0, 1.0),
            Value::Number(1.816e-5),
            "gain on the error at the last sample",
        ),
        parameter("q-ref", Kind::Packets, (0.0, 1e9), Value::Packets(200.0), "the backlog aimed at"),
        parameter("frequency", Kind::Frequency, (0.1, 1e6), Value::Frequency(170.0), "samples per second"),
        parameter(
            "mean-packet",
            Kind::Bytes,
            (1.0, 65_535.0),
            Value::Bytes(Bytes::new(1000)),
            "what turns bytes of backlog into packets",
        ),
    ]
}

impl ParameterValue {
    /// The value as a plain number: packets, seconds, hertz, bit/s, bytes; `None` for a flag or a word.
    pub fn magnitude(&self) -> Option<f64> {
        match self {
            Self::Number(x) | Self::Packets(x) | Self::Frequency(x) => Some(*x),
            Self::Duration(duration) => Some(duration.as_secs_f64()),
            Self::Probability(p) => Some(p.get()),
            Self::Rate(rate) => Some(rate.as_bps() as f64),
            Self::Bytes(bytes) => Some(bytes.get() as f64),
            Self::Flag(_) | Self::Text(_) => None,
        }
    }
}

/// As it would be written in a scenario, without quotes.
impl fmt::Display for ParameterValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(x) => write!(f, "{x}"),
            Self::Packets(x) => write!(f, "{x} packets"),
            Self::Duration(duration) => duration.fmt(f),
            Self::Frequency(x) => write!(f, "{x} Hz"),
            Self::Probability(p) => p.fmt(f),
            Self::Rate(rate) => rate.fmt(f),
            Self::Bytes(bytes) => bytes.fmt(f),
            Self::Flag(flag) => flag.fmt(f),
            Self::Text(text) => text.fmt(f),
        }
    }
}

impl ParameterKind {
    fn value(self, magnitude: f64) -> ParameterValue {
        match self {
            Self::Packets => ParameterValue::Packets(magnitude),
            Self::Duration => ParameterValue::Duration(Duration::from_secs_f64(magnitude)),
            Self::Frequency => ParameterValue::Frequency(magnitude),
            Self::Probability => ParameterValue::Probability(Probability::clamped(magnitude)),
            Self::Rate => ParameterValue::Rate(Rate::from_bps(magnitude as u64)),
            Self::Bytes => ParameterValue::Bytes(Bytes::new(magnitude as u64)),
            Self::Number | Self::Flag | Self::Text(_) => ParameterValue::Number(magnitude),
        }
    }
}

impl ParameterInfo {
    /// How a scenario's value of this parameter is read, range included.
    pub(crate) fn kind(&self) -> Kind<ParameterValue> {
        let kind = self.unbounded();
        let (low, high) = self.range;
        if matches!(self.kind, ParameterKind::Flag | ParameterKind::Text(_)) {
            return kind;
        }
        let condition = format!("from {} to {}", self.kind.value(low), self.kind.value(high));
        kind.only(&condition, move |value| value.magnitude().is_some_and(|x| (low..=high).contains(&x)))
    }

    fn unbounded(&self) -> Kind<ParameterValue> {
        match self.kind {
            ParameterKind::Number => kind::number().map(ParameterValue::Number),
            ParameterKind::Packets => kind::any_packets().map(|n| ParameterValue::Packets(n as f64)),
            ParameterKind::Duration => kind::duration().map(ParameterValue::Duration),
            ParameterKind::Frequency => kind::any_frequency().map(ParameterValue::Frequency),
            ParameterKind::Probability => kind::probability().map(ParameterValue::Probability),
            ParameterKind::Rate => kind::rate().map(ParameterValue::Rate),
            ParameterKind::Bytes => kind::size().map(ParameterValue::Bytes),
            ParameterKind::Flag => kind::flag().map(ParameterValue::Flag),
            ParameterKind::Text(words) => text_kind(words),
        }
    }
}

fn text_kind(words: &[&str]) -> Kind<ParameterValue> {
    let pairs: Vec<(&str, ParameterValue)> =
        words.iter().map(|word| (*word, ParameterValue::Text((*word).to_owned()))).collect();
    kind::one_of("one of", &pairs)
}
