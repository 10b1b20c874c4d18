//! Queues that are stepped by hand, for teaching and tests: the objects that the simulator and the router have.

use crate::clock::Clock;
use crate::errors;
use crate::extension::guard;
use cutline_aqm::registry;
use cutline_aqm::{AnyQueue, Arrival, Queue as _, Verdict};
use cutline_config::{Document, quantity, read};
use cutline_params::Parameter;
use cutline_tables::queue::{self, Named};
use cutline_units::{Hint, RandomStream, Streams};
use pyo3::prelude::*;

/// A queue in front of a link. Packets are numbers.
#[pyclass(module = "cutline._native")]
pub struct Queue {
    queue: AnyQueue<u64>,
    random: RandomStream,
    clock: Clock,
    /// Packets that were stored and have been dropped since: number, size and reason.
    shed: Vec<(u64, u32, &'static str)>,
}

/// Number and size of a packet, the time at which it arrived, and whether it is marked now.
type Departure = (u64, u32, f64, bool);

impl Queue {
    /// Takes the packets that the queue has dropped. Required after every arrival and departure.
    fn collect(&mut self) {
        while let Some(shed) = self.queue.shed() {
            self.shed.push((shed.packet, shed.size, shed.reason.name()));
        }
    }
}

#[pymethods]
impl Queue {
    /// Builds a queue from a table of a scenario, in a document with the key `queue`, in front of a link of a rate.
    #[staticmethod]
    fn build(document: &str, rate: &str, seed: u64) -> PyResult<Self> {
        let problems = |errors: &cutline_config::Errors| errors::keys(errors, "queue");
        let document = Document::parse(document, "queue").map_err(|errors| problems(&errors))?;
        let config = read(&document, |root| {
            let queue = queue::required(root, "queue", &Named::new());
            root.finish();
            queue
        });
        let config = config.map_err(|errors| problems(&errors))?;
        let rate =
            quantity::rate(rate).map_err(|error| errors::argument("rate", &format!("{rate:?}: {error}")))?;
        let queue = guard(|| config.at_rate(rate).and_then(|spec| spec.build()))?;
        let queue = queue.map_err(|error| errors::parameter(&error.parameter, &error.to_string()))?;
        let random = Streams::new(seed).stream("queue", "aqm");
        Ok(Self { queue, random, clock: Clock::new(), shed: Vec::new() })
    }

    /// Offers a packet. Returns the verdict, `pass`, `mark` or `drop`, and the reason of a drop.
    fn enqueue(
        &mut self,
        now: f64,
        packet: u64,
        size: u32,
        hint: u16,
        flow: u32,
        ecn: (bool, bool),
    ) -> PyResult<(&'static str, Option<&'static str>)> {
        let now = self.clock.at(now)?;
        let (ecn_capable, scalable) = ecn;
        let arrival = Arrival { flow, ecn_capable, scalable, ..Arrival::new(size, Hint::from_level(hint)) };
        let (queue, random) = (&mut self.queue, &mut self.random);
        let verdict = guard(|| queue.enqueue(now, arrival, packet, random))?;
        self.collect();
        Ok(match verdict {
            Verdict::Pass => ("pass", None),
            Verdict::Mark => ("mark", None),
            Verdict::Drop(reason) => ("drop", Some(reason.name())),
        })
    }

    /// Takes the next packet.
    fn dequeue(&mut self, now: f64) -> PyResult<Option<Departure>> {
        let now = self.clock.at(now)?;
        let queue = &mut self.queue;
        let departure = guard(|| queue.dequeue(now))?;
        self.collect();
        Ok(departure.map(|found| (found.packet, found.size, found.arrived.as_secs_f64(), found.marked)))
    }

    /// Returns the packets that were stored and have been dropped since, and forgets them.
    fn shed(&mut self) -> Vec<(u64, u32, &'static str)> {
        std::mem::take(&mut self.shed)
    }

    /// Takes the steps of the control law that are due.
    fn advance(&mut self, now: f64) -> PyResult<()> {
        let now = self.clock.at(now)?;
        let queue = &mut self.queue;
        guard(|| queue.advance(now))
    }

    /// Changes the rate of the link.
    fn set_rate(&mut self, now: f64, rate: &str) -> PyResult<()> {
        let now = self.clock.at(now)?;
        let rate =
            quantity::rate(rate).map_err(|error| errors::argument("rate", &format!("{rate:?}: {error}")))?;
        let queue = &mut self.queue;
        guard(|| queue.set_rate(now, rate))
    }

    /// Returns the packets and bytes that wait.
    fn backlog(&self) -> (u32, u64) {
        let backlog = self.queue.backlog();
        (backlog.packets, backlog.bytes)
    }

    /// Returns the AQM's probability; `None` if it has none.
    fn probability(&self) -> PyResult<Option<f64>> {
        let queue = &self.queue;
        guard(|| queue.probability().map(|probability| probability.get()))
    }

    /// Returns the average queue, the largest probability and the target of RED and its variants.
    fn readings(&self) -> PyResult<(Option<f64>, Option<f64>, Option<f64>)> {
        let queue = &self.queue;
        let readings = guard(|| queue.readings())?;
        Ok((readings.average, readings.max_p, readings.target))
    }

    /// Returns the counters: name, packets and bytes.
    fn stats(&self) -> Vec<(&'static str, u64, u64)> {
        let stats = self.queue.stats();
        let counts = [
            ("arrived", stats.arrived()),
            ("enqueued", stats.enqueued),
            ("dequeued", stats.dequeued),
            ("marked", stats.marked),
            ("dropped", stats.dropped_in_all()),
            ("dropped_early", stats.dropped(cutline_aqm::DropReason::Early)),
            ("dropped_full", stats.dropped(cutline_aqm::DropReason::Overflow)),
        ];
        counts.map(|(name, count)| (name, count.packets, count.bytes)).to_vec()
    }
}

/// Name, kind, allowed values, default, source of the default and meaning of a parameter.
pub type ParameterParts = (&'static str, &'static str, String, String, &'static str, &'static str);
/// Name, title, source, whether TSQ works over it, and the parameters of an AQM.
type AqmParts = (&'static str, &'static str, &'static str, bool, Vec<ParameterParts>);

/// Returns the description of a parameter.
pub fn parts(one: &'static Parameter) -> ParameterParts {
    (one.name, one.kind.name(), one.allowed(), one.default_text(), one.source, one.doc)
}

/// Returns the AQMs of the registry.
#[pyfunction]
pub fn aqms() -> Vec<AqmParts> {
    let aqm = |found: registry::AqmDescription| {
        let parameters = found.parameters.iter().copied().map(parts).collect();
        (found.name, found.title, found.source, found.takes_tsq, parameters)
    };
    registry::describe().into_iter().map(aqm).collect()
}

/// Returns the parameters of TSQ.
#[pyfunction]
pub fn tsq_parameters() -> Vec<ParameterParts> {
    use cutline_params::Parameters as _;
    cutline_aqm::TsqParams::describe().into_iter().map(parts).collect()
}

/// Adds the queue and the registry.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Queue>()?;
    module.add_function(wrap_pyfunction!(aqms, module)?)?;
    module.add_function(wrap_pyfunction!(tsq_parameters, module)?)
}
