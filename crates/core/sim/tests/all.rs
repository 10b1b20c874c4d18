//! The tests of this crate that use it from outside, in one program: it is linked once, and its tests run beside each other.

mod common;

mod aal5;
mod abr;
mod adaptive;
mod agents;
mod external;
mod impairment;
mod managed;
mod media;
mod network;
mod pass_on;
mod qos;
mod rsvp;
mod stages;
mod watch;
