//! Parameters as data: the settings of an algorithm, described once, beside the field that holds it.
//!
//! A struct of parameters derives [`Parameters`]; the attribute of each field gives its default, which values
//! are allowed and where the default comes from, and its documentation comment is the parameter's documentation:
//!
//! ```
//! use cutline_params::{Parameters, ParameterValue};
//! use cutline_units::Duration;
//!
//! /// The settings.
//! #[derive(Debug, Parameters)]
//! pub struct ControllerParams {
//!     /// The queuing delay to hold.
//!     #[param(default = Duration::from_millis(15), range = (Duration::from_millis(1), Duration::from_secs(1)),
//!         source = "RFC 8033 section 4.2")]
//!     pub target: Duration,
//!     /// The gain on the delay's distance from the target.
//!     #[param(default = 0.125, range = (0.0, 100.0), unit = "per s", source = "RFC 8033 section 4.2")]
//!     pub alpha: f64,
//! }
//!
//! let params = ControllerParams::from_values([("alpha", ParameterValue::Number(0.5))]).unwrap();
//! assert_eq!((params.target, params.alpha), (Duration::from_millis(15), 0.5));
//! let error = ControllerParams::from_values([("alpha", ParameterValue::Number(-1.0))]).unwrap_err();
//! assert_eq!(error.to_string(), "alpha = -1: allowed is a number from 0 to 100 per s");
//! ```
//!
//! From that one entry come the field, its default, the check of its range, the key in scenario files and `--set`, the
//! row of `cutline aqm show`, and the row of the documentation's table.
//!
//! | attribute of a field | meaning |
//! | --- | --- |
//! | `default = EXPR` | the default; this or `example` is there |
//! | `example = EXPR` | the parameter has no default and must be set; this is an example, and the value in the struct's `Default` |
//! | `range = (LEAST, MOST)` | the allowed values, ends included; there for numbers, counts, times and distributions |
//! | `source = "..."` | where the default comes from; there with every default |
//! | `unit = "..."` | the unit of a number or count (`packets`, `B`, `bit/s` are written with the unit in files) |
//! | `on = EXPR` | the value of `true` for a parameter that can be switched off |
//! | `hertz` | the number is a frequency |
//! | `name = "..."` | the parameter's name, where it is not the field's with `-` for `_` |
//! | `skip` | the field is no parameter: it has only a default |
//!
//! A field of type `Option<T>` can be switched off. A field whose type derives [`Choice`] takes one of its names.
//!
//! Parameters that several algorithms share are a struct of their own, and a field of each with `#[group(...)]`, where
//! `default = EXPR` gives other defaults, `source = "..."` another source for all of them, `sources(NAME = "...")` for
//! some, and `without(NAME)` leaves some out.
//!
//! `#[parameters(check = FUNCTION)]` on the struct names a function that checks parameters that are allowed each by
//! itself together: `fn(&Self) -> Result<(), ParameterError>`.
//!
//! Not included: reading files. `cutline-config` reads a value from a document or a text as its parameter asks.

mod choice;
mod configured;
pub mod conformance;
mod error;
mod field;
mod kind;
mod nearest;
mod parameter;
mod parameters;
mod registry;
mod types;
mod value;

pub use choice::Choice;
pub use configured::{Configured, Registered, RegisteredType};
pub use cutline_params_derive::{Choice, Parameters};
pub use error::ParameterError;
pub use field::{Accessor, ParameterField};
pub use kind::{Names, ParameterKind};
pub use nearest::nearest;
pub use parameter::Parameter;
pub use parameters::{Parameters, complete};
pub use registry::{Registry, RegistryError};
pub use types::ParameterType;
pub use value::ParameterValue;
