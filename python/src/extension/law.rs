//! Laws in Python: the methods of `DropProbability`.

use super::{Class, Object, method, seconds};
use cutline_aqm::registry::{AqmDescription, ExternalAqm, ExternalValues, Product};
use cutline_aqm::{Arrival, DropProbability, Limit, Readings, Verdict};
use cutline_params::{ParameterError, ParameterValue};
use cutline_units::{Instant, Probability, Rate};
use pyo3::prelude::*;

/// A packet that arrives at a queue.
#[pyclass(module = "cutline.extend", frozen, get_all)]
pub struct Packet {
    /// Bytes on the wire.
    size: u32,
    /// The delay hint, 1 to 16.
    hint: u16,
    /// A number that all packets of the flow share.
    flow: u32,
    /// True if the packet may be marked.
    ecn_capable: bool,
    /// True if the sender responds to marks in proportion to their share.
    scalable: bool,
    /// Time that the packet has spent in earlier queues, seconds.
    waited: f64,
}

impl From<Arrival> for Packet {
    fn from(arrival: Arrival) -> Self {
        Self {
            size: arrival.size,
            hint: arrival.hint.level(),
            flow: arrival.flow,
            ecn_capable: arrival.ecn_capable,
            scalable: arrival.scalable,
            waited: arrival.waited.as_secs_f64(),
        }
    }
}

/// The backlog of a queue. The packet in service has left it and is not counted.
#[pyclass(module = "cutline.extend", frozen, get_all)]
pub struct Backlog {
    /// Packets waiting.
    packets: u32,
    /// Bytes waiting.
    bytes: u64,
}

impl From<cutline_aqm::Backlog> for Backlog {
    fn from(backlog: cutline_aqm::Backlog) -> Self {
        Self { packets: backlog.packets, bytes: backlog.bytes }
    }
}

impl ExternalAqm for &'static Class {
    fn describe(&self) -> AqmDescription {
        let (name, title, source, parameters) = (self.name, self.title, self.source, self.parameters.clone());
        AqmDescription { name, title, source, parameters, takes_tsq: true }
    }

    fn build(
        &self,
        values: &[(&'static str, ParameterValue)],
        _limit: Limit,
        _ecn: bool,
        rate: Rate,
    ) -> Result<Product, ParameterError> {
        Ok(Product::Law(Box::new(Law::new(self, values.to_vec(), rate))))
    }

    fn moderate_values(&self) -> ExternalValues {
        self.definition().moderate.clone()
    }
}

/// Methods that a class defines.
#[derive(Clone, Copy, Debug)]
struct Defined {
    advance: bool,
    probability: bool,
    may_mark: bool,
    readings: bool,
    judged: bool,
    departed: bool,
    reorders: bool,
    set_rate: bool,
    reset: bool,
}

/// A law of Python.
#[derive(Clone, Debug)]
struct Law {
    object: Object,
    values: ExternalValues,
    rate: Rate,
    reorders: bool,
    defined: Defined,
    /// The last result of `arrive`.
    last: Probability,
}

impl Law {
    fn new(class: &'static Class, values: ExternalValues, rate: Rate) -> Self {
        let begin = |object: &Bound<'_, PyAny>| {
            object.setattr("rate", rate.as_bps() as f64)?;
            object.call_method0("begin").map(drop)
        };
        let object = class.object(&values, begin);
        let has = |name| object.defines(name);
        let defined = Defined {
            advance: has("advance"),
            probability: has("probability"),
            may_mark: has("may_mark"),
            readings: has("readings"),
            judged: has("judged"),
            departed: has("departed"),
            reorders: has("reorders"),
            set_rate: has("set_rate"),
            reset: has("reset"),
        };
        Self { object, values, rate, reorders: false, defined, last: Probability::ZERO }
    }

    fn checked(&self, name: &str, answer: &Bound<'_, PyAny>) -> PyResult<Probability> {
        let refusal = |_| self.object.refusal(name, answer, "a probability from 0 to 1");
        let p = answer.extract::<f64>().map_err(refusal)?;
        Probability::new(p).map_err(|_| self.object.refusal(name, p, "a probability from 0 to 1"))
    }
}

impl DropProbability for Law {
    fn advance(&mut self, now: Instant, backlog: cutline_aqm::Backlog) {
        if self.defined.advance {
            let arguments = (seconds(now), Backlog::from(backlog));
            self.object.call(method!("advance"), arguments, |_, _| Ok(()));
        }
    }

    fn arrive(&mut self, now: Instant, arrival: Arrival, backlog: cutline_aqm::Backlog) -> Probability {
        let arguments = (seconds(now), Packet::from(arrival), Backlog::from(backlog));
        self.last =
            self.object.call(method!("arrive"), arguments, |_, answer| self.checked("arrive", &answer));
        self.last
    }

    fn probability(&self) -> Option<Probability> {
        if !self.defined.probability {
            return Some(self.last);
        }
        let take = |_: &Bound<'_, PyAny>, answer: Bound<'_, PyAny>| {
            if answer.is_none() { Ok(None) } else { self.checked("probability", &answer).map(Some) }
        };
        self.object.call(method!("probability"), (), take)
    }

    fn may_mark(&self) -> bool {
        if !self.defined.may_mark {
            return true;
        }
        self.object.call(method!("may_mark"), (), |_, answer| answer.is_truthy())
    }

    fn readings(&self) -> Readings {
        if !self.defined.readings {
            return Readings::default();
        }
        let take = |_: &Bound<'_, PyAny>, answer: Bound<'_, PyAny>| {
            let of = |name: &str| -> PyResult<Option<f64>> {
                let found = answer.call_method1("get", (name,))?;
                found.extract()
            };
            Ok(Readings {
                average: of("average")?,
                max_p: of("max_p")?,
                target: of("target")?,
                ..Readings::default()
            })
        };
        self.object.call(method!("readings"), (), take)
    }

    fn judged(&mut self, now: Instant, arrival: Arrival, verdict: Verdict) {
        if self.defined.judged {
            let (verdict, reason) = match verdict {
                Verdict::Pass => ("pass", None),
                Verdict::Mark => ("mark", None),
                Verdict::Drop(reason) => ("drop", Some(reason.name())),
            };
            let arguments = (seconds(now), Packet::from(arrival), verdict, reason);
            self.object.call(method!("judged"), arguments, |_, _| Ok(()));
        }
    }

    fn departed(&mut self, now: Instant, size: u32, arrived: Instant, backlog: cutline_aqm::Backlog) {
        if self.defined.departed {
            let arguments = (seconds(now), size, seconds(arrived), Backlog::from(backlog));
            self.object.call(method!("departed"), arguments, |_, _| Ok(()));
        }
    }

    fn reorders(&mut self) {
        self.reorders = true;
        if self.defined.reorders {
            self.object.call(method!("reorders"), (), |_, _| Ok(()));
        }
    }

    fn set_rate(&mut self, now: Instant, rate: Rate) {
        self.rate = rate;
        if self.defined.set_rate {
            let arguments = (seconds(now), rate.as_bps() as f64);
            self.object.call(method!("set_rate"), arguments, |_, _| Ok(()));
        }
    }

    /// Calls the class's own method, or creates a new object.
    fn reset(&mut self, now: Instant) {
        self.last = Probability::ZERO;
        if self.defined.reset {
            let arguments = (seconds(now),);
            return self.object.call(method!("reset"), arguments, |_, _| Ok(()));
        }
        let reorders = self.reorders;
        *self = Self::new(self.object.class, std::mem::take(&mut self.values), self.rate);
        if reorders {
            self.reorders();
        }
    }
}
