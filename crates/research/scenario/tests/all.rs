//! The tests of this crate that use it from outside, in one program: it is linked once, and its tests run beside each other.

mod broken;
mod congestion_controls;
mod engines;
mod execution;
mod experiments;
mod goldens;
mod guide_pages;
mod parallel;
mod rate_courses;
mod runner;
mod scalable;
mod scenario;
mod topology;
