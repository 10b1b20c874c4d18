//! The tests of this crate that use it from outside, in one program: it is linked once, and its tests run beside each other.

mod c;

mod close;
mod deadlines;
mod direct;
mod fork;
mod header;
mod programs;
mod protection;
mod reservations;
mod threads;
mod zone;
