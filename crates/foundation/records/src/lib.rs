//! JSON documents: their schemas, and records whose fields are described once.
//!
//! A document is a type that derives `Serialize` and `JsonSchema`; the documentation comments of its fields are the
//! descriptions in its schema ([`schema_of`]). Counters are in a [`Record`], which the macro [`record!`] declares: each
//! field with its name, unit, kind and meaning. The JSON document, its schema, printed tables and exporters of statistics
//! all follow that list.
//!
//! ```text
//! buckets      counts by buckets, as histograms of exporters
//! description  name, unit, meaning and heading of a field
//! record       records, and their fields as data
//! schema       the JSON Schema of a document: complete and closed (feature `schema`)
//! ```

mod buckets;
mod description;
mod record;
#[cfg(feature = "schema")]
mod schema;

pub use buckets::{BucketCounts, total};
pub use description::{Description, Heading};
pub use record::{Field, FieldKind, Record};
#[cfg(feature = "schema")]
pub use schema::schema_of;

/// Items that the macros need.
#[doc(hidden)]
pub mod private {
    pub use crate::record::value;
}
