//! What can be set of RED, and of those that have RED's parameters among theirs.
//!
//! Each parameter is a function that makes the [`Field`] for any [`HasRed`], so that it is said once; what differs between the
//! algorithms, defaults and their sources, are its arguments.

use crate::{Field, Parameter, ParameterError, Parameters, Value};
use cutline_units::Duration;

/// How a queue is measured, and whether large packets are likelier to be hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// In packets; every packet is hit alike.
    Packets,
    /// In bytes; a packet is hit in proportion to its size.
    Bytes,
}

/// How hits are spaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spacing {
    /// Uniformly over 1 to 1 / p - 1 (Floyd and Jacobson, figure 2).
    Uniform,
    /// Uniformly over 1 / p to 2 / p - 1, as ns-2 does unless told otherwise.
    Wait,
    /// Each packet for itself: geometrically.
    None,
}

const MODES: &[&str] = &["packets", "bytes"];
const SPACINGS: &[&str] = &["uniform", "wait", "none"];

/// What can be set; see the table above. Adaptive RED and RED-Worcester have most of it too.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RedParams {
    /// Below this average nothing is hit, packets; `None` is automatic.
    pub min_th: Option<f64>,
    /// The end of the slope, packets; `None` is automatic.
    pub max_th: Option<f64>,
    /// The probability at the end of the slope.
    pub max_p: f64,
    /// The weight of a sample in the average; `None` is automatic.
    pub w_q: Option<f64>,
    /// Whether the probability rises on from `max_p` at `max_th` to 1 at twice that, instead of jumping to 1.
    pub gentle: bool,
    /// How the queue is measured.
    pub mode: Mode,
    /// How hits are spaced.
    pub spacing: Spacing,
    /// The packet size that turns bytes into packets, B.
    pub mean_packet: u64,
    /// Whether thresholds and weight are automatic whatever they are set to.
    pub automatic: bool,
    /// The average delay that automatic thresholds aim at.
    pub target_delay: Duration,
    /// Whether ns-2's rules hold where they differ from the papers'.
    pub ns2: bool,
}

impl Default for RedParams {
    fn default() -> Self {
        Self {
            min_th: Some(5.0),
            max_th: Some(15.0),
            max_p: 0.02,
            w_q: Some(0.002),
            gentle: false,
            mode: Mode::Packets,
            spacing: Spacing::Uniform,
            mean_packet: 1000,
            automatic: false,
            target_delay: Duration::from_millis(5),
            ns2: false,
        }
    }
}

impl Parameters for RedParams {
    const FIELDS: &'static [Field<Self>] = &[
        min_th(Some(5.0), "Floyd and Jacobson 1993, section VI"),
        max_th(Some(15.0), "Floyd and Jacobson 1993, section VI"),
        max_p(0.02, "Floyd and Jacobson 1993, section VI"),
        w_q(Some(0.002), "Floyd and Jacobson 1993, section VI"),
        gentle(false, "Floyd and Jacobson 1993; Floyd 2000 recommends true"),
        mode(),
        spacing(),
        mean_packet(),
        Field {
            about: Parameter::flag(
                "automatic",
                false,
                "Floyd and Jacobson 1993",
                "set the thresholds and w-q from the link's rate, as Adaptive RED does",
            ),
            get: |params| Some(Value::Flag(params.automatic)),
            set: |params, value| params.automatic = value.is_set(),
        },
        target_delay(),
        ns2(),
    ];

    fn check_together(&self) -> Result<(), ParameterError> {
        check_thresholds(self)
    }
}

/// Parameters that have RED's among them.
pub(crate) trait HasRed {
    fn red(&self) -> &RedParams;
    fn red_mut(&mut self) -> &mut RedParams;
}

impl HasRed for RedParams {
    fn red(&self) -> &RedParams {
        self
    }
    fn red_mut(&mut self) -> &mut RedParams {
        self
    }
}

const THRESHOLDS: (f64, f64) = (0.0, 1e7);

pub(crate) const fn min_th<P: HasRed>(default: Option<f64>, source: &'static str) -> Field<P> {
    let doc = "below this average nothing is hit";
    Field {
        about: Parameter::number("min-th", "packets", THRESHOLDS, default, source, doc),
        get: |params| params.red().min_th.map(Value::Number),
        set: |params, value| params.red_mut().min_th = Some(value.number()),
    }
}

pub(crate) const fn max_th<P: HasRed>(default: Option<f64>, source: &'static str) -> Field<P> {
    let doc = "the average at which the probability has risen to max-p; above min-th";
    Field {
        about: Parameter::number("max-th", "packets", THRESHOLDS, default, source, doc),
        get: |params| params.red().max_th.map(Value::Number),
        set: |params, value| params.red_mut().max_th = Some(value.number()),
    }
}

pub(crate) const fn max_p<P: HasRed>(default: f64, source: &'static str) -> Field<P> {
    let doc = "the probability at max-th; where it adapts, what it begins with";
    Field {
        about: Parameter::number("max-p", "", (1e-4, 1.0), Some(default), source, doc),
        get: |params| Some(Value::Number(params.red().max_p)),
        set: |params, value| params.red_mut().max_p = value.number(),
    }
}

pub(crate) const fn w_q<P: HasRed>(default: Option<f64>, source: &'static str) -> Field<P> {
    let doc = "the weight of each arrival in the average queue";
    Field {
        about: Parameter::number("w-q", "", (1e-6, 1.0), default, source, doc),
        get: |params| params.red().w_q.map(Value::Number),
        set: |params, value| params.red_mut().w_q = Some(value.number()),
    }
}

pub(crate) const fn gentle<P: HasRed>(default: bool, source: &'static str) -> Field<P> {
    let doc = "let the probability rise from max-p at max-th to 1 at twice that, instead of jumping";
    Field {
        about: Parameter::flag("gentle", default, source, doc),
        get: |params| Some(Value::Flag(params.red().gentle)),
        set: |params, value| params.red_mut().gentle = value.is_set(),
    }
}

pub(crate) const fn mode<P: HasRed>() -> Field<P> {
    let source = "Floyd and Jacobson 1993, section VII";
    let doc = "measure the queue in packets, or in bytes and hit packets in proportion to their size";
    Field {
        about: Parameter::choice("mode", MODES, "packets", source, doc),
        get: |params| Some(Value::Choice(MODES[params.red().mode as usize].into())),
        set: |params, value| {
            params.red_mut().mode = [Mode::Packets, Mode::Bytes][value.index_in(MODES)];
        },
    }
}

pub(crate) const fn spacing<P: HasRed>() -> Field<P> {
    let doc = "packets from hit to hit: uniform over 1 to 1/p - 1, wait for 1/p and uniform over the next 1/p, or none";
    Field {
        about: Parameter::choice("spacing", SPACINGS, "uniform", "Floyd and Jacobson 1993, figure 2", doc),
        get: |params| Some(Value::Choice(SPACINGS[params.red().spacing as usize].into())),
        set: |params, value| {
            let spacings = [Spacing::Uniform, Spacing::Wait, Spacing::None];
            params.red_mut().spacing = spacings[value.index_in(SPACINGS)];
        },
    }
}

pub(crate) const fn mean_packet<P: HasRed>() -> Field<P> {
    let (source, doc) = ("the papers' packets", "the packet that turns bytes into packets");
    Field {
        about: Parameter::whole("mean-packet", "B", (1, 1_000_000), Some(1000), source, doc),
        get: |params| Some(Value::Count(params.red().mean_packet)),
        set: |params, value| params.red_mut().mean_packet = value.count(),
    }
}

pub(crate) const fn target_delay<P: HasRed>() -> Field<P> {
    let range = (Duration::from_micros(100), Duration::from_secs(10));
    let (source, doc) =
        ("Adaptive RED 2001, section 6", "the average delay that automatic thresholds aim at");
    Field {
        about: Parameter::time("target-delay", range, Some(Duration::from_millis(5)), source, doc),
        get: |params| Some(Value::Duration(params.red().target_delay)),
        set: |params, value| params.red_mut().target_delay = value.duration(),
    }
}

pub(crate) const fn ns2<P: HasRed>() -> Field<P> {
    let doc = "spare the first packet above min-th and those that find fewer than two waiting; where max-p adapts, step as ns-2";
    Field {
        about: Parameter::flag("ns-2", false, "the papers; ns-2.35 for true", doc),
        get: |params| Some(Value::Flag(params.red().ns2)),
        set: |params, value| params.red_mut().ns2 = value.is_set(),
    }
}

pub(crate) fn check_thresholds(params: &impl HasRed) -> Result<(), ParameterError> {
    let RedParams { min_th, max_th, automatic, .. } = *params.red();
    let refuse = |value: f64, allowed: String| {
        Err(ParameterError {
            parameter: "max-th".to_owned(),
            value: value.to_string(),
            allowed,
            nearest: None,
        })
    };
    match (min_th, max_th) {
        _ if automatic => Ok(()),
        (Some(min), Some(max)) if max <= min => refuse(max, format!("more than min-th = {min}")),
        (None, Some(max)) => refuse(max, "set together with min-th, or not at all".to_owned()),
        _ => Ok(()),
    }
}
