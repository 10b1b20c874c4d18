//! The tests of this crate, in one program: it is linked once, and its tests run beside each other.

mod direct;
mod protection;
mod sockets;
