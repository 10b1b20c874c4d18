//! The tests of this crate that use it from outside, in one program: it is linked once, and its tests run beside each other.

mod architecture;
mod citations;
mod external_aqm;
mod external_traffic;
mod markdown;
mod names;
mod packages;
mod prose;
mod real_time;
mod recipes;
mod rows;
mod skips;
mod sleeps;
mod unsafe_code;
