//! Cutline for Python: the module `cutline._native`, behind the package's classes.
//!
//! It is a thin layer: reading, decisions and computations are in the crates that the command uses, too. The classes that people use
//! are in Python, in `cutline/`.
//!
//! ```text
//! errors      exceptions
//! socket      QoS sockets
//! scenario    scenarios
//! execution   runs in the background
//! results     results, summaries and comparisons
//! sweep       sweeps over machines
//! thread      protection of receiving threads
//! table       tables, in Arrow's C data interface
//! laboratory  runs with real packets
//! picture     pictures of results and figures of studies, as documents
//! queue       queues that are stepped by hand, and the registry of AQMs
//! tfrc        TFRC by hand: the ends of a flow, and the throughput equation over arrays
//! clock       the time of objects that are stepped by hand
//! extension   laws, sources of traffic and congestion controls that are written in Python
//! quality     the quality functions over arrays
//! translation the consequences of an application's needs
//! ```

mod clock;
mod errors;
mod execution;
mod extension;
mod laboratory;
mod picture;
mod quality;
mod queue;
mod results;
mod scenario;
mod socket;
mod sweep;
mod table;
mod tfrc;
mod thread;
mod translation;

use pyo3::prelude::*;

/// Module behind the package `cutline`.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    socket::register(module)?;
    thread::register(module)?;
    queue::register(module)?;
    quality::register(module)?;
    tfrc::register(module)?;
    translation::register(module)?;
    extension::register(module)?;
    picture::register(module)?;
    laboratory::register(module)?;
    sweep::register(module)?;
    module.add_class::<scenario::ScenarioFile>()?;
    module.add_class::<execution::Execution>()?;
    module.add_class::<results::Results>()?;
    module.add_class::<table::Batches>()?;
    Ok(())
}
