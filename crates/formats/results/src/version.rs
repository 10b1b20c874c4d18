//! The version of the tables.

/// The version of the tables. A column that is renamed or changes its meaning raises it. Tables of another version are
/// refused: [`Store::read_summary`](crate::Store::read_summary) reports it.
pub const SCHEMA_VERSION: u32 = 2;
