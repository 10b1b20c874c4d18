//! The tests of this crate that use it from outside, in one program: it is linked once, and its tests run beside each other.

mod connections;
mod hosts;
mod impairment;
mod programs;
mod routed;
