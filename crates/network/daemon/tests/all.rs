//! The tests of this crate that use it from outside, in one program: it is linked once, and its tests run beside each other.

mod common;

mod capacity;
mod clients;
mod interfaces;
mod ipv6;
mod manager;
mod monitor;
mod output;
mod policy_routing;
mod reservations;
mod sockets;
mod strangers;
mod taken_away;
