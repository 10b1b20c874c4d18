//! The tests of this crate that use it from outside, in one program: it is linked once, and its tests run beside each other.
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "processes and readers take real time"
)]

mod capacity;
mod common;
mod dashboard;
mod local;
mod page;
mod web;
