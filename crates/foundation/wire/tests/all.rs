//! Tests of the crate from outside.

mod direct;
mod headers;
