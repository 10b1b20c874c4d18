//! Strict TOML documents: a mistake is an error with file, line, key, value and the allowed values, never a default.
//!
//! Scenarios, studies and the files of daemons are read with it. A [`Document`] is the tree of a file in which every key and
//! value knows its [`Span`]. It can be changed by overrides before it is read. [`read`] hands out a [`TableReader`], which
//! reads key by key, each value of a [`ValueKind`], and collects every [`Problem`]: unknown keys with the nearest right name,
//! missing keys, values that are not allowed. A value that can be checked only after reading is a [`Located`].
//!
//! ```
//! use cutline_config::{Document, kind, read};
//!
//! let document = Document::parse("rate = '15 Mbits'", "link.toml")?;
//! let errors = read(&document, |root| {
//!     let rate = root.required("rate", &kind::rate());
//!     root.finish();
//!     rate
//! });
//! let message = errors.unwrap_err().to_string();
//! assert!(message.starts_with("link.toml:1:8: key \"rate\": value '15 Mbits' is not allowed: expected a rate"));
//! # Ok::<(), cutline_config::Errors>(())
//! ```
//!
//! [`quantity`] parses rates, times and sizes as people write them; [`kind`] has the kinds of value that keys have;
//! [`parameter`] reads parameters as `cutline-params` describes them. Tables that several kinds of file share are in
//! `cutline-tables`.

mod distribution;
mod document;
mod json;
pub mod kind;
mod located;
pub mod parameter;
mod path;
mod problem;
pub mod quantity;
mod reader;
mod span;
mod suggestion;
mod value;

pub use document::Document;
pub use kind::ValueKind;
pub use located::Located;
pub use problem::{Errors, Location, Problem};
pub use reader::{TableReader, read};
pub use span::Span;
pub use suggestion::suggestion;
pub use value::{Node, Table, TableEntry, Value};
