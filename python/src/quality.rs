//! The quality functions, over whole arrays.

use crate::errors;
use cutline_quality::{Class, Combination, Power, UnknownName};
use cutline_units::{Duration, Rate};
use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// The largest delay and throughput that are distinguished: quality is constant beyond them.
const LARGEST_DELAY_S: f64 = 1e9;
const LARGEST_BPS: f64 = 1e18;

fn named<T>(parameter: &'static str, found: Result<T, UnknownName>) -> PyResult<T> {
    found.map_err(|error| errors::argument(parameter, &error.to_string()))
}

/// Returns the class of a name, for transfers of a size.
fn class(name: &str, size_kbit: Option<u64>) -> PyResult<Class> {
    let class = named("application", Class::parse(name))?;
    let Some(kbit) = size_kbit else { return Ok(class) };
    let wrong = || {
        errors::argument("size_kbit", &format!("{kbit} is not allowed: {name} transfers nothing of a size"))
    };
    class.with_size_kbit(kbit).ok_or_else(wrong)
}

/// Returns the numbers of a buffer, none of which is below 0.
pub fn values(
    py: Python<'_>,
    parameter: &'static str,
    unit: &str,
    buffer: &PyBuffer<f64>,
) -> PyResult<Vec<f64>> {
    let values = buffer.to_vec(py)?;
    match values.iter().find(|value| value.is_nan() || **value < 0.0) {
        Some(wrong) => Err(errors::argument(
            parameter,
            &format!("{wrong} is not allowed: expected {unit}, not negative"),
        )),
        None => Ok(values),
    }
}

fn delay(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds.min(LARGEST_DELAY_S))
}

fn rate(bps: f64) -> Rate {
    Rate::from_bps(bps.min(LARGEST_BPS).round() as u64)
}

/// Packs results, which NumPy reads in place.
pub fn packed<'py>(py: Python<'py>, results: impl Iterator<Item = f64>) -> Bound<'py, PyBytes> {
    let bytes: Vec<u8> = results.flat_map(f64::to_ne_bytes).collect();
    PyBytes::new(py, &bytes)
}

/// Returns the quality of each delay, s, and throughput, bit/s; of one of them if the other is `None`.
#[pyfunction]
fn quality<'py>(
    py: Python<'py>,
    application: &str,
    size_kbit: Option<u64>,
    combination: &str,
    delays: Option<PyBuffer<f64>>,
    throughputs: Option<PyBuffer<f64>>,
) -> PyResult<Bound<'py, PyBytes>> {
    let class = class(application, size_kbit)?;
    let combination = named("combination", Combination::parse(combination))?;
    let delays = delays.map(|buffer| values(py, "delay_s", "seconds", &buffer)).transpose()?;
    let throughputs = throughputs.map(|buffer| values(py, "throughput_bps", "bit/s", &buffer)).transpose()?;
    Ok(match (delays, throughputs) {
        (Some(delays), Some(throughputs)) => {
            let pairs = delays.into_iter().zip(throughputs);
            packed(py, pairs.map(|(d, t)| class.quality(delay(d), rate(t), combination).get()))
        }
        (Some(delays), None) => packed(py, delays.into_iter().map(|d| class.delay_quality(delay(d)).get())),
        (None, Some(throughputs)) => {
            packed(py, throughputs.into_iter().map(|t| class.throughput_quality(rate(t)).get()))
        }
        (None, None) => PyBytes::new(py, &[]),
    })
}

/// Returns the power metric of each throughput, bit/s, and queuing delay, s.
#[pyfunction]
fn power<'py>(
    py: Python<'py>,
    alpha: f64,
    throughputs: PyBuffer<f64>,
    delays: PyBuffer<f64>,
) -> PyResult<Bound<'py, PyBytes>> {
    let power = Power::new(alpha).map_err(|error| errors::argument("alpha", &error.to_string()))?;
    let throughputs = values(py, "throughput_bps", "bit/s", &throughputs)?;
    let delays = values(py, "queuing_delay_s", "seconds", &delays)?;
    Ok(packed(py, throughputs.into_iter().zip(delays).map(|(t, d)| power.qos(rate(t), delay(d)))))
}

/// Adds the functions and the names of the classes.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("CLASSES", Class::ALL.map(Class::name).to_vec())?;
    module.add_function(wrap_pyfunction!(quality, module)?)?;
    module.add_function(wrap_pyfunction!(power, module)?)
}
