//! Sources of traffic in Python: the methods of `TrafficSource`.

use super::{Class, Object, method, raise, seconds};
use crate::errors;
use cutline_params::ParameterValue;
use cutline_transport::app::{
    ApplicationDescription, Completion, DynSource, ExternalApplication, TrafficSource, Write,
};
use cutline_units::{Instant, RandomStream};
use pyo3::prelude::*;

/// The largest number of writes at one time.
const MOST_WRITES: u32 = 10_000;

impl ExternalApplication for &'static Class {
    fn describe(&self) -> ApplicationDescription {
        let definition = self.definition();
        ApplicationDescription {
            name: self.name,
            title: self.title,
            source: self.source,
            parameters: self.parameters.clone(),
            waits_for_delivery: definition.waits_for_delivery,
            endless: definition.endless,
        }
    }

    fn start(
        &self,
        values: &[(&'static str, ParameterValue)],
        at: Instant,
        random: &mut RandomStream,
    ) -> Box<dyn DynSource> {
        // Python's generator gets its seed from the stream of this flow.
        let half = |random: &mut RandomStream| (random.uniform() * 2_f64.powi(32)) as u64;
        let seed = half(random) << 32 | half(random);
        let begin = |object: &Bound<'_, PyAny>| {
            let py = object.py();
            object.setattr("random", py.import("random")?.call_method1("Random", (seed,))?)?;
            object.setattr("deadline", py.None())?;
            object.call_method1("begin", (seconds(at),)).map(drop)
        };
        let object = self.object(values, begin);
        let delivered = object.defines("delivered");
        let mut source = Source { object, delivered, deadline: at, wrote_at: at, writes: 0 };
        source.deadline = Python::attach(|py| source.read_deadline(source.object.object.bind(py)))
            .unwrap_or_else(|error| raise(error));
        Box::new(source)
    }
}

/// A source of traffic of Python.
#[derive(Clone, Debug)]
struct Source {
    object: Object,
    /// True if the class has the method.
    delivered: bool,
    deadline: Instant,
    /// Time of the last write, and the number of writes at this time.
    wrote_at: Instant,
    writes: u32,
}

impl Source {
    /// Reads the deadline that a method has set.
    fn read_deadline(&self, object: &Bound<'_, PyAny>) -> PyResult<Instant> {
        let found = object.getattr(pyo3::intern!(object.py(), "deadline"))?;
        if found.is_none() {
            return Ok(Instant::FAR_FUTURE);
        }
        let allowed = "a time in seconds from 0, or None while there is nothing to write";
        let refusal = || {
            errors::extension(format!("{}.deadline is {found}: expected {allowed}", self.object.class.name))
        };
        let at = found.extract::<f64>().map_err(|_| refusal())?;
        match at {
            _ if at.is_nan() || at < 0.0 => Err(refusal()),
            _ if at >= 1e9 => Ok(Instant::FAR_FUTURE),
            _ => Ok(Instant::from_nanos((at * 1e9).round() as u64)),
        }
    }

    /// Converts the answer of `write`.
    fn write(&self, answer: &Bound<'_, PyAny>) -> PyResult<Option<Write>> {
        if answer.is_none() {
            return Ok(None);
        }
        let allowed = "a number of bytes from 1, None, or math.inf of an endless source";
        let refusal = || self.object.refusal("write", answer, allowed);
        let bytes = answer.extract::<f64>().map_err(|_| refusal())?;
        match bytes {
            _ if bytes == f64::INFINITY && self.object.definition.endless => Ok(Some(Write::Unlimited)),
            _ if (1.0..9e15).contains(&bytes) => Ok(Some(Write::Bytes(bytes as u64))),
            _ => Err(refusal()),
        }
    }

    fn check_progress(&mut self, now: Instant, wrote: bool) -> PyResult<()> {
        self.writes = if self.wrote_at == now { self.writes + 1 } else { 1 };
        self.wrote_at = now;
        let name = self.object.class.name;
        if self.deadline <= now && (!wrote || self.writes > MOST_WRITES) {
            return Err(errors::extension(format!(
                "{name}.deadline is {} after write at {}: expected a later time, or None",
                seconds(self.deadline),
                seconds(now)
            )));
        }
        Ok(())
    }
}

impl TrafficSource for Source {
    fn deadline(&self) -> Instant {
        self.deadline
    }

    fn poll(&mut self, now: Instant, _random: &mut RandomStream) -> Option<Write> {
        if now < self.deadline {
            return None;
        }
        let take = |object: &Bound<'_, PyAny>, answer: Bound<'_, PyAny>| {
            Ok((self.write(&answer)?, self.read_deadline(object)?))
        };
        let (write, deadline) = self.object.call(method!("write"), (seconds(now),), take);
        self.deadline = deadline;
        self.check_progress(now, write.is_some()).unwrap_or_else(|error| raise(error));
        write
    }

    fn on_delivered(&mut self, now: Instant, total: u64) -> Option<Completion> {
        if !self.delivered {
            return None;
        }
        let take = |object: &Bound<'_, PyAny>, answer: Bound<'_, PyAny>| {
            let allowed = "None, or the time at which a transfer started and its bytes";
            let completion = if answer.is_none() {
                None
            } else {
                let refusal = || self.object.refusal("delivered", &answer, allowed);
                let (started, bytes) = answer.extract::<(f64, u64)>().map_err(|_| refusal())?;
                let from = Instant::from_nanos((started.max(0.0) * 1e9).round() as u64);
                if started.is_nan() || started < 0.0 || from > now || bytes == 0 {
                    return Err(refusal());
                }
                Some(Completion { started: from, latency: now - from, bytes })
            };
            Ok((completion, self.read_deadline(object)?))
        };
        let arguments = (seconds(now), total);
        let (completion, deadline) = self.object.call(method!("delivered"), arguments, take);
        self.deadline = deadline;
        completion
    }
}
