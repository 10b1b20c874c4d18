//! TFRC by hand: the two ends of a flow, whose packets the caller carries, and the throughput equation over arrays.

use crate::clock::{self, Clock};
use crate::errors;
use crate::quality::{packed, values};
use crate::queue::{ParameterParts, parts};
use cutline_config::parameter;
use cutline_params::{ParameterError, Parameters as _};
use cutline_transport::tfrc::{self, Feedback, Packet, Params, Receiver, Sender};
use cutline_units::Duration;
use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::sync::Arc;

/// Number, time of departure (s), the sender's round-trip time (s), and payload (B) of a packet.
type PacketParts = (u64, f64, f64, u32);
/// Echoed time of departure (s), delay since the arrival (s), receive rate (bit/s), and loss event rate of a report.
type FeedbackParts = (f64, f64, f64, f64);
/// Name and value of a counter.
type Counter = (&'static str, u64);

/// Reads parameters, as name and value. A plain number has the unit of its parameter.
fn params(given: &[(String, String)]) -> PyResult<Arc<Params>> {
    let refused = |error: &ParameterError| errors::parameter(&error.parameter, &error.to_string());
    let described = Params::describe();
    let mut values = Vec::new();
    for (name, text) in given {
        let Some(described) = described.iter().find(|one| one.name == name) else {
            let names: Vec<&str> = described.iter().map(|one| one.name).collect();
            let unknown = ParameterError::unknown(name, text, &names);
            return Err(refused(&unknown));
        };
        let value = parameter::parse(described, text).map_err(|allowed| {
            errors::parameter(name, &format!("{text} is not allowed: expected {allowed}"))
        })?;
        values.push((described.name, value));
    }
    Params::from_values(values).map(Arc::new).map_err(|error| refused(&error))
}

fn packet_parts(packet: &Packet) -> PacketParts {
    (packet.seq, packet.sent_at.as_secs_f64(), packet.rtt.as_secs_f64(), packet.len)
}

fn feedback_parts(feedback: &Feedback) -> FeedbackParts {
    (feedback.echo.as_secs_f64(), feedback.t_delay.as_secs_f64(), feedback.x_recv * 8.0, feedback.p)
}

/// The sending end of a TFRC flow.
#[pyclass(module = "cutline._native")]
pub struct TfrcSender {
    sender: Sender,
    clock: Clock,
}

#[pymethods]
impl TfrcSender {
    #[new]
    #[expect(clippy::needless_pass_by_value, reason = "Python gives a list")]
    fn new(values: Vec<(String, String)>) -> PyResult<Self> {
        let mut clock = Clock::new();
        Ok(Self { sender: Sender::new(&params(&values)?, clock.at(0.0)?), clock })
    }

    /// Takes a message of the application; returns whether everything fitted the send buffer.
    fn write(&mut self, bytes: u32) -> bool {
        self.sender.write(u64::from(bytes))
    }

    /// Starts or ends an endless supply.
    fn supply(&mut self, is_endless: bool) {
        if is_endless { self.sender.write_unlimited() } else { self.sender.end_supply() }
    }

    /// Handles the timers that have expired, and takes the next packet that may leave now.
    fn transmit(&mut self, now: f64) -> PyResult<Option<PacketParts>> {
        let now = self.clock.at(now)?;
        self.sender.on_deadline(now);
        Ok(self.sender.transmit(now).as_ref().map(packet_parts))
    }

    /// Handles a report of the receiver.
    fn on_feedback(&mut self, now: f64, feedback: FeedbackParts) -> PyResult<()> {
        let (echo, delay, bps, p) = feedback;
        if !(0.0..1e18).contains(&bps) {
            let message = format!("{bps} is not allowed: expected bit/s, not negative, below 1e18");
            return Err(errors::argument("received_bps", &message));
        }
        if !(0.0..=1.0).contains(&p) {
            let message = format!("{p} is not allowed: expected a rate from 0 to 1");
            return Err(errors::argument("loss_event_rate", &message));
        }
        let feedback = Feedback {
            echo: clock::instant("echo_s", echo)?,
            t_delay: clock::duration("delay_s", delay)?,
            x_recv: bps / 8.0,
            p,
        };
        let now = self.clock.at(now)?;
        self.sender.on_feedback(now, &feedback);
        Ok(())
    }

    /// Returns the time of the sender's next action.
    fn deadline(&self) -> Option<f64> {
        clock::deadline(self.sender.deadline())
    }

    /// Returns the allowed and the instantaneous rate, bit/s, the average round-trip time, s, and the loss event rate last reported.
    fn state(&self) -> (f64, f64, f64, f64) {
        let sender = &self.sender;
        let rates = (sender.rate() * 8.0, sender.instantaneous_rate() * 8.0);
        (rates.0, rates.1, sender.rtt().as_secs_f64(), sender.loss_event_rate())
    }

    /// Returns the number of waiting packets, without those of an endless supply.
    fn backlog(&self) -> usize {
        self.sender.backlog()
    }

    /// Returns the counters.
    fn stats(&self) -> Vec<Counter> {
        let stats = self.sender.stats();
        vec![
            ("packets", stats.packets),
            ("bytes", stats.bytes),
            ("dropped_at_sender", stats.dropped_at_sender),
            ("feedback", stats.feedback),
            ("nofeedback", stats.nofeedback),
        ]
    }
}

/// The receiving end of a TFRC flow.
#[pyclass(module = "cutline._native")]
pub struct TfrcReceiver {
    receiver: Receiver,
    clock: Clock,
}

#[pymethods]
impl TfrcReceiver {
    #[new]
    #[expect(clippy::needless_pass_by_value, reason = "Python gives a list")]
    fn new(values: Vec<(String, String)>) -> PyResult<Self> {
        Ok(Self { receiver: Receiver::new(&params(&values)?), clock: Clock::new() })
    }

    /// Handles a packet. Returns the report that leaves at once, if any.
    fn on_packet(
        &mut self,
        now: f64,
        packet: PacketParts,
        is_marked: bool,
    ) -> PyResult<Option<FeedbackParts>> {
        let (seq, sent, rtt, len) = packet;
        let packet = Packet {
            seq,
            sent_at: clock::instant("sent_s", sent)?,
            rtt: clock::duration("rtt_s", rtt)?,
            len,
        };
        let now = self.clock.at(now)?;
        Ok(self.receiver.on_packet(now, &packet, is_marked).as_ref().map(feedback_parts))
    }

    /// Returns the report if it is due.
    fn on_deadline(&mut self, now: f64) -> PyResult<Option<FeedbackParts>> {
        let now = self.clock.at(now)?;
        Ok(self.receiver.on_deadline(now).as_ref().map(feedback_parts))
    }

    /// Returns the time of the next report.
    fn deadline(&self) -> Option<f64> {
        clock::deadline(self.receiver.deadline())
    }

    /// Returns the current loss event rate.
    fn loss_event_rate(&self) -> f64 {
        self.receiver.loss_event_rate()
    }

    /// Returns the counters.
    fn stats(&self) -> Vec<Counter> {
        let stats = self.receiver.stats();
        vec![
            ("packets", stats.packets),
            ("bytes", stats.bytes),
            ("lost", stats.lost),
            ("marked", stats.marked),
            ("loss_events", stats.loss_events),
            ("feedback", stats.feedback),
        ]
    }
}

/// Segment sizes, B, round-trip times, s, and a third quantity from above 0 to `most`, of the same number.
fn arguments(
    py: Python<'_>,
    segments: &PyBuffer<f64>,
    rtts: &PyBuffer<f64>,
    (name, unit, most): (&'static str, &str, f64),
    third: &PyBuffer<f64>,
) -> PyResult<Vec<(f64, Duration, f64)>> {
    let segments =
        above_zero("segment_bytes", "bytes", 1e9, values(py, "segment_bytes", "bytes", segments)?)?;
    let rtts = above_zero("rtt_s", "seconds", 1e9, values(py, "rtt_s", "seconds", rtts)?)?;
    let third = above_zero(name, unit, most, values(py, name, unit, third)?)?;
    let times = rtts.into_iter().map(|rtt| Duration::from_secs_f64(rtt).max(Duration::from_nanos(1)));
    Ok(segments.into_iter().zip(times).zip(third).map(|((s, r), x)| (s, r, x)).collect())
}

fn above_zero(parameter: &'static str, unit: &str, most: f64, values: Vec<f64>) -> PyResult<Vec<f64>> {
    match values.iter().find(|value| **value == 0.0 || **value > most) {
        Some(wrong) => Err(errors::argument(
            parameter,
            &format!("{wrong} is not allowed: expected {unit}, above 0, up to {most}"),
        )),
        None => Ok(values),
    }
}

/// Returns the throughput, bit/s, of each segment size, round-trip time and loss event rate.
#[pyfunction]
fn tfrc_throughput<'py>(
    py: Python<'py>,
    segments: PyBuffer<f64>,
    rtts: PyBuffer<f64>,
    rates: PyBuffer<f64>,
) -> PyResult<Bound<'py, PyBytes>> {
    let given = arguments(py, &segments, &rtts, ("loss_event_rate", "a rate", 1.0), &rates)?;
    Ok(packed(py, given.into_iter().map(|(s, r, p)| tfrc::throughput(s, r, p) * 8.0)))
}

/// Returns the loss event rate of each segment size, round-trip time and throughput, bit/s.
#[pyfunction]
fn tfrc_loss_event_rate<'py>(
    py: Python<'py>,
    segments: PyBuffer<f64>,
    rtts: PyBuffer<f64>,
    throughputs: PyBuffer<f64>,
) -> PyResult<Bound<'py, PyBytes>> {
    let given = arguments(py, &segments, &rtts, ("throughput_bps", "bit/s", 1e18), &throughputs)?;
    Ok(packed(py, given.into_iter().map(|(s, r, x)| tfrc::loss_event_rate(s, r, x / 8.0))))
}

/// Returns the parameters of TFRC.
#[pyfunction]
fn tfrc_parameters() -> Vec<ParameterParts> {
    Params::describe().into_iter().map(parts).collect()
}

/// Adds the two ends, the functions and the parameters.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<TfrcSender>()?;
    module.add_class::<TfrcReceiver>()?;
    module.add_function(wrap_pyfunction!(tfrc_throughput, module)?)?;
    module.add_function(wrap_pyfunction!(tfrc_loss_event_rate, module)?)?;
    module.add_function(wrap_pyfunction!(tfrc_parameters, module)?)
}
