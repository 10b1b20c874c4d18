//! Laws, sources of traffic and congestion controls that are written in Python.
//!
//! A class of Python is registered under its name, as a type of another crate is, and scenarios then use it by this name. Each queue,
//! flow or connection has an object of the class. Its methods are those of the trait in Rust; a method that the class does not define
//! costs no call.
//!
//! The traits have no errors. An exception of a method therefore unwinds the simulation up to [`guard`], which returns it.

mod check;
mod control;
mod law;
mod source;

use crate::errors;
use cutline_params::{Parameter, ParameterError, ParameterKind, ParameterValue, Registered, RegistryError};
use cutline_units::{Duration, Instant};
use pyo3::call::PyCallArgs;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// An exception that unwinds a simulation.
struct Raised(PyErr);

/// Calls a function that may call methods of Python.
///
/// # Errors
/// The exception that such a method raised.
pub fn guard<T>(work: impl FnOnce() -> T) -> PyResult<T> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| match panic.downcast::<Raised>() {
        Ok(raised) => raised.0,
        Err(panic) => resume_unwind(panic),
    })
}

/// Ends the simulation with an exception. No message is printed.
fn raise(error: PyErr) -> ! {
    resume_unwind(Box::new(Raised(error)))
}

/// Kind of an extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Law,
    Source,
    Control,
}

/// A registered class, for as long as the process runs.
struct Class {
    name: &'static str,
    title: &'static str,
    source: &'static str,
    parameters: Vec<&'static Parameter>,
    /// The class of Python. A class of the same name and with the same parameters replaces it, as a notebook's cell does that runs
    /// again.
    definition: Mutex<Arc<Definition>>,
}

/// A class of Python.
struct Definition {
    class: Py<PyAny>,
    /// Methods that it defines itself.
    methods: Vec<String>,
    /// True if a source waits until every byte has arrived.
    waits_for_delivery: bool,
    /// True if the supply of data of a source is unlimited.
    endless: bool,
    /// True if a congestion control answers marks by their share.
    scalable: bool,
    /// The parameters of a law with which the conformance suite runs it under TSQ.
    moderate: Vec<(&'static str, ParameterValue)>,
}

impl fmt::Debug for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// The registered classes.
static CLASSES: Mutex<BTreeMap<(Kind, &'static str), &'static Class>> = Mutex::new(BTreeMap::new());

fn classes() -> MutexGuard<'static, BTreeMap<(Kind, &'static str), &'static Class>> {
    CLASSES.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Class {
    fn definition(&self) -> Arc<Definition> {
        Arc::clone(&self.definition.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Makes an object with these values of the parameters. `begin` gives the arguments of the method of this name.
    fn object(
        &'static self,
        values: &[(&'static str, ParameterValue)],
        begin: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<()>,
    ) -> Object {
        let definition = self.definition();
        let made = Python::attach(|py| {
            let attributes = PyDict::new(py);
            for (name, value) in values {
                attributes.set_item(name.replace('-', "_"), python(py, value)?)?;
            }
            let object = definition.class.bind(py).call_method1("_made", (attributes,))?;
            begin(&object)?;
            Ok(object.unbind())
        });
        let object = made.unwrap_or_else(|error| raise(error));
        Object { class: self, definition, object }
    }
}

impl Registered for &'static Class {
    fn name(&self) -> &'static str {
        self.name
    }

    fn parameters(&self) -> Vec<&'static Parameter> {
        self.parameters.clone()
    }
}

/// An object of a registered class.
struct Object {
    class: &'static Class,
    definition: Arc<Definition>,
    object: Py<PyAny>,
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.class.name)
    }
}

/// Returns a deep copy.
impl Clone for Object {
    fn clone(&self) -> Self {
        let copy =
            Python::attach(|py| Ok(py.import("copy")?.call_method1("deepcopy", (&self.object,))?.unbind()));
        let object = copy.unwrap_or_else(|error| raise(error));
        Self { class: self.class, definition: Arc::clone(&self.definition), object }
    }
}

impl Object {
    fn defines(&self, method: &str) -> bool {
        self.definition.methods.iter().any(|one| one == method)
    }

    /// Calls a method. `take` converts its answer.
    fn call<T>(
        &self,
        method: for<'py> fn(Python<'py>) -> &'py Bound<'py, PyString>,
        arguments: impl for<'py> PyCallArgs<'py>,
        take: impl for<'py> FnOnce(&Bound<'py, PyAny>, Bound<'py, PyAny>) -> PyResult<T>,
    ) -> T {
        let called = Python::attach(|py| {
            let object = self.object.bind(py);
            let answer = object.call_method1(method(py), arguments)?;
            take(object, answer)
        });
        called.unwrap_or_else(|error| raise(error))
    }

    /// Returns the exception for an answer that is not allowed.
    fn refusal(&self, method: &str, answer: impl fmt::Display, allowed: &str) -> PyErr {
        errors::extension(format!("{}.{method} returned {answer}: expected {allowed}", self.class.name))
    }
}

/// Writes a function that returns a method's name, which Python keeps for the next call.
macro_rules! method {
    ($name:literal) => {
        |py| pyo3::intern!(py, $name)
    };
}
use method;

/// Returns a time as Python has it, in seconds.
fn seconds(at: Instant) -> f64 {
    at.as_nanos() as f64 / 1e9
}

/// Returns a value of a parameter as Python has it; times are in seconds.
fn python<'py>(py: Python<'py>, value: &ParameterValue) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        ParameterValue::Number(number) | ParameterValue::Frequency(number) => {
            number.into_pyobject(py)?.into_any()
        }
        ParameterValue::Count(count) => count.into_pyobject(py)?.into_any(),
        ParameterValue::Duration(time) => time.as_secs_f64().into_pyobject(py)?.into_any(),
        ParameterValue::Flag(flag) => flag.into_pyobject(py)?.to_owned().into_any(),
        ParameterValue::Choice(name) => name.as_ref().into_pyobject(py)?.into_any(),
        _ => py.None().into_bound(py),
    })
}

/// A parameter as the classes of Python describe it.
#[derive(FromPyObject)]
struct Described {
    name: String,
    kind: String,
    unit: String,
    least: f64,
    most: f64,
    choices: Vec<String>,
    default: Given,
    source: String,
    doc: String,
}

/// A value of a parameter.
#[derive(FromPyObject)]
enum Given {
    Flag(bool),
    Choice(String),
    Number(f64),
}

fn leaked(text: String) -> &'static str {
    Box::leak(text.into_boxed_str())
}

impl Described {
    fn parameter(self) -> PyResult<Parameter> {
        let kind = match &*self.kind {
            "number" => ParameterKind::Number { least: self.least, most: self.most },
            "count" => ParameterKind::Count { least: self.least as u64, most: self.most as u64 },
            "time" => ParameterKind::Duration {
                least: Duration::from_secs_f64(self.least),
                most: Duration::from_secs_f64(self.most),
            },
            "flag" => ParameterKind::Flag,
            "choice" => {
                let names: Vec<&'static str> = self.choices.into_iter().map(leaked).collect();
                ParameterKind::Choice(names.leak())
            }
            other => return Err(PyRuntimeError::new_err(format!("a parameter of the kind {other}"))),
        };
        let default = value(kind, &self.default)?;
        Ok(Parameter {
            name: leaked(self.name),
            unit: leaked(self.unit),
            kind,
            optional: false,
            on: None,
            required: false,
            default,
            source: leaked(self.source),
            doc: leaked(self.doc),
        })
    }
}

/// Returns a value of a parameter of this kind.
fn value(kind: ParameterKind, given: &Given) -> PyResult<ParameterValue> {
    Ok(match (kind, given) {
        (ParameterKind::Number { .. }, Given::Number(number)) => ParameterValue::Number(*number),
        (ParameterKind::Count { .. }, Given::Number(number)) => ParameterValue::Count(*number as u64),
        (ParameterKind::Duration { .. }, Given::Number(number)) => {
            ParameterValue::Duration(Duration::from_secs_f64(*number))
        }
        (ParameterKind::Flag, Given::Flag(flag)) => ParameterValue::Flag(*flag),
        (ParameterKind::Choice(_), Given::Choice(name)) => ParameterValue::Choice(name.clone().into()),
        _ => return Err(PyRuntimeError::new_err("the value is of another kind than the parameter")),
    })
}

/// The description of a class: as `cutline.extend` reads it.
#[derive(FromPyObject)]
struct Description {
    kind: String,
    name: String,
    title: String,
    source: String,
    parameters: Vec<Described>,
    methods: Vec<String>,
    waits_for_delivery: bool,
    endless: bool,
    scalable: bool,
    moderate: Vec<(String, Given)>,
}

/// Registers a class. `description` has the attributes of [`Description`]. A class of the same name with the same parameters replaces
/// the earlier one.
#[pyfunction]
fn register_extension(class: Py<PyAny>, description: Description) -> PyResult<()> {
    let kind = match &*description.kind {
        "law" => Kind::Law,
        "source" => Kind::Source,
        _ => Kind::Control,
    };
    let parameters =
        description.parameters.into_iter().map(Described::parameter).collect::<PyResult<Vec<_>>>()?;
    let parameters: Vec<&'static Parameter> =
        parameters.into_iter().map(|parameter| &*Box::leak(Box::new(parameter))).collect();
    let of_name = |name: &str| {
        let found = parameters.iter().find(|parameter| parameter.name == name);
        found.copied().ok_or_else(|| errors::argument("moderate", &format!("there is no parameter {name}")))
    };
    let mut moderate = Vec::new();
    for (name, given) in &description.moderate {
        let parameter = of_name(name)?;
        moderate.push((parameter.name, value(parameter.kind, given)?));
    }
    let definition = Definition {
        class,
        methods: description.methods,
        waits_for_delivery: description.waits_for_delivery,
        endless: description.endless,
        scalable: description.scalable,
        moderate,
    };
    let known = classes().get(&(kind, &*description.name)).copied();
    if let Some(known) = known {
        return replace(known, &parameters, definition);
    }
    let class: &'static Class = Box::leak(Box::new(Class {
        name: leaked(description.name),
        title: leaked(description.title),
        source: leaked(description.source),
        parameters,
        definition: Mutex::new(Arc::new(definition)),
    }));
    let registered = match kind {
        Kind::Law => cutline_aqm::registry::register(Box::new(class)),
        Kind::Source => cutline_transport::app::register(Box::new(class)),
        Kind::Control => cutline_transport::tcp::register_external_control(Box::new(class)),
    };
    registered.map_err(|error| refused(class.name, &error))?;
    classes().insert((kind, class.name), class);
    Ok(())
}

fn refused(name: &str, error: &RegistryError) -> PyErr {
    errors::argument("name", &format!("{name} cannot be registered: {error}"))
}

fn replace(known: &Class, parameters: &[&Parameter], definition: Definition) -> PyResult<()> {
    let described = |all: &[&Parameter]| format!("{all:?}");
    if described(&known.parameters) != described(parameters) {
        let message = format!(
            "{} is registered with other parameters, and scenarios may have been read with them: choose another name, or start Python \
             again",
            known.name
        );
        return Err(errors::argument("name", &message));
    }
    *known.definition.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(definition);
    Ok(())
}

/// Returns the parameter's error as an exception.
fn parameter(error: &ParameterError) -> PyErr {
    errors::parameter(&error.parameter, &error.to_string())
}

/// Adds the functions for extensions.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<law::Packet>()?;
    module.add_class::<law::Backlog>()?;
    module.add_class::<control::Window>()?;
    module.add_class::<control::Acked>()?;
    module.add_class::<control::Acknowledgement>()?;
    check::register(module)?;
    module.add_function(wrap_pyfunction!(register_extension, module)?)
}
