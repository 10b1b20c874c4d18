//! The tests of this crate that use it from outside, in one program: it is linked once, and its tests run beside each other.

mod common;

mod adaptive;
mod cascade;
mod folder;
mod qos;
mod qsock;
mod quanta;
mod redw;
mod studies;
mod tsq;
