//! Protection of the calling thread: the class behind `cutline.socket.protected_thread`.

use crate::socket::system;
use cutline_bindings::{ProtectionError, ProtectionNumber, ThreadPriority, protect_thread, unprotect_thread};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

/// The protection of a thread, which that thread alone can end.
#[pyclass(module = "cutline._native", frozen)]
struct ThreadProtection {
    number: ProtectionNumber,
    priority: ThreadPriority,
}

fn failed(error: ProtectionError) -> PyErr {
    let text = error.to_string();
    match error {
        ProtectionError::Refused(source) => system(&source, text),
        ProtectionError::Protected | ProtectionError::Unprotected => PyRuntimeError::new_err(text),
    }
}

#[pymethods]
impl ThreadProtection {
    /// Protects the calling thread.
    #[staticmethod]
    fn begin(priority: &str) -> PyResult<Self> {
        let Some(wanted) = ThreadPriority::ALL.iter().find(|wanted| wanted.name() == priority) else {
            let names: Vec<_> =
                ThreadPriority::ALL.iter().map(|wanted| format!("\"{}\"", wanted.name())).collect();
            let why = format!("priority = {priority:?}: allowed are {}", names.join(", "));
            return Err(PyValueError::new_err(why));
        };
        let (priority, number) = protect_thread(*wanted).map_err(failed)?;
        Ok(Self { number, priority })
    }

    /// Returns the priority of the thread.
    fn priority(&self) -> &'static str {
        self.priority.name()
    }

    /// Ends the protection.
    fn end(&self) -> PyResult<()> {
        unprotect_thread(Some(self.number)).map_err(failed)
    }
}

/// Adds the class.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<ThreadProtection>()
}
