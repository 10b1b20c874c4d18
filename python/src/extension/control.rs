//! Congestion controls in Python: the methods of `CongestionControl`.

use super::{Class, Object, method, raise, seconds};
use crate::errors;
use cutline_params::ParameterValue;
use cutline_transport::tcp::{
    self, CongestionControl, ControlDescription, DynControl, ExternalAlgorithm, Params,
};
use cutline_units::Instant;
use pyo3::prelude::*;

/// The congestion window, in bytes. Its attributes can be set.
#[pyclass(module = "cutline.extend")]
pub struct Window {
    cwnd: u64,
    ssthresh: u64,
}

/// Returns a number of bytes that Python has set.
fn bytes(name: &str, given: &Bound<'_, PyAny>) -> PyResult<u64> {
    let refusal =
        || errors::extension(format!("{name} = {given} is not allowed: expected a number of bytes from 0"));
    let number = given.extract::<f64>().map_err(|_| refusal())?;
    if number >= 0.0 { Ok(number as u64) } else { Err(refusal()) }
}

#[pymethods]
impl Window {
    /// Congestion window: the number of bytes that may be outstanding.
    #[getter]
    const fn cwnd(&self) -> u64 {
        self.cwnd
    }

    #[setter]
    fn set_cwnd(&mut self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.cwnd = bytes("window.cwnd", value)?;
        Ok(())
    }

    /// Slow-start threshold: below it the window grows by slow start, and from it on by congestion avoidance.
    #[getter]
    const fn ssthresh(&self) -> u64 {
        self.ssthresh
    }

    #[setter]
    fn set_ssthresh(&mut self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.ssthresh = bytes("window.ssthresh", value)?;
        Ok(())
    }
}

impl From<&tcp::Window> for Window {
    fn from(window: &tcp::Window) -> Self {
        Self { cwnd: window.cwnd, ssthresh: window.ssthresh }
    }
}

/// An acknowledgement of new data when the window may grow.
#[pyclass(module = "cutline.extend", frozen, get_all)]
pub struct Acked {
    /// Bytes newly acknowledged.
    bytes: u64,
    /// Time of arrival, seconds.
    now: f64,
    /// The smoothed round-trip time, seconds; 0 before the first sample.
    srtt: f64,
}

impl From<&tcp::Acked> for Acked {
    fn from(acked: &tcp::Acked) -> Self {
        Self { bytes: acked.bytes, now: seconds(acked.now), srtt: acked.srtt.as_secs_f64() }
    }
}

/// An acknowledgement of new data.
#[pyclass(module = "cutline.extend", frozen, get_all)]
pub struct Acknowledgement {
    /// Time of arrival, seconds.
    now: f64,
    /// Bytes newly acknowledged.
    bytes: u64,
    /// True if it echoes a mark.
    marked: bool,
    /// Everything below this sequence number has arrived.
    una: u64,
    /// Everything below this sequence number has been sent.
    next: u64,
    /// Time at which the acknowledged segment left, seconds: `now` less this is the round-trip time.
    echo: f64,
}

impl ExternalAlgorithm for &'static Class {
    fn describe(&self) -> ControlDescription {
        ControlDescription {
            name: self.name,
            title: self.title,
            source: self.source,
            parameters: self.parameters.clone(),
            scalable: self.definition().scalable,
            // A class of Python grows a window; it receives no samples of the delivery rate.
            paced: false,
        }
    }

    fn begin(&self, values: &[(&'static str, ParameterValue)], tcp: &Params) -> Box<dyn DynControl> {
        let mss = u64::from(tcp.mss);
        let begin = |object: &Bound<'_, PyAny>| {
            object.setattr("mss", mss)?;
            object.call_method0("begin").map(drop)
        };
        let object = self.object(values, begin);
        let has = |name| object.defines(name);
        let defined = Defined {
            acknowledged: has("acknowledged"),
            slow_start: has("slow_start"),
            marked: has("marked"),
            timed_out: has("timed_out"),
            application_limited: has("application_limited"),
        };
        Box::new(Control { object, defined })
    }
}

/// Optional methods that a class defines.
#[derive(Clone, Copy, Debug)]
struct Defined {
    acknowledged: bool,
    slow_start: bool,
    marked: bool,
    timed_out: bool,
    application_limited: bool,
}

/// A congestion control of Python.
#[derive(Clone, Debug)]
struct Control {
    object: Object,
    defined: Defined,
}

type Name = for<'py> fn(Python<'py>) -> &'py Bound<'py, pyo3::types::PyString>;

impl Control {
    /// Calls a method that may change the window. `most` is a further argument.
    fn change(&self, name: Name, window: &mut tcp::Window, acked: &tcp::Acked, most: Option<u64>) {
        let changed = Python::attach(|py| {
            let (object, passed) = (self.object.object.bind(py), Bound::new(py, Window::from(&*window))?);
            match most {
                Some(most) => object.call_method1(name(py), (&passed, Acked::from(acked), most))?,
                None => object.call_method1(name(py), (&passed, Acked::from(acked)))?,
            };
            let passed = passed.try_borrow()?;
            Ok((passed.cwnd, passed.ssthresh))
        });
        (window.cwnd, window.ssthresh) = changed.unwrap_or_else(|error| raise(error));
    }

    /// Calls a method that returns a threshold.
    fn threshold(&self, name: Name, called: &str, window: &tcp::Window, flight: u64) -> u64 {
        let arguments = (Window::from(window), flight);
        self.object.call(name, arguments, |_, answer| {
            let refusal = || self.object.refusal(called, &answer, "a threshold in bytes");
            let number = answer.extract::<f64>().map_err(|_| refusal())?;
            if number >= 0.0 { Ok(number as u64) } else { Err(refusal()) }
        })
    }
}

impl CongestionControl for Control {
    fn acknowledged(&mut self, acknowledgement: &tcp::Acknowledgement) {
        if self.defined.acknowledged {
            let tcp::Acknowledgement { now, bytes, marked, una, next, echo } = *acknowledgement;
            let passed = Acknowledgement { now: seconds(now), bytes, marked, una, next, echo: seconds(echo) };
            self.object.call(method!("acknowledged"), (passed,), |_, _| Ok(()));
        }
    }

    fn slow_start(&mut self, window: &mut tcp::Window, acked: &tcp::Acked, most: u64) {
        if self.defined.slow_start {
            self.change(method!("slow_start"), window, acked, Some(most));
        } else {
            // RFC 5681 eq. 2
            window.cwnd += acked.bytes.min(most);
        }
    }

    fn avoid(&mut self, window: &mut tcp::Window, acked: &tcp::Acked, _mss: u64) {
        self.change(method!("avoid"), window, acked, None);
    }

    fn congested(&mut self, window: &tcp::Window, flight: u64, _mss: u64) -> u64 {
        self.threshold(method!("congested"), "congested", window, flight)
    }

    fn marked(&mut self, window: &tcp::Window, flight: u64, mss: u64) -> u64 {
        if self.defined.marked {
            self.threshold(method!("marked"), "marked", window, flight)
        } else {
            self.congested(window, flight, mss)
        }
    }

    fn timed_out(&mut self) {
        if self.defined.timed_out {
            self.object.call(method!("timed_out"), (), |_, _| Ok(()));
        }
    }

    fn application_limited(&mut self, now: Instant) {
        if self.defined.application_limited {
            self.object.call(method!("application_limited"), (seconds(now),), |_, _| Ok(()));
        }
    }
}
