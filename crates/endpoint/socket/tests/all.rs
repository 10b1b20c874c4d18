//! The tests of this crate that use it from outside, in one program: it is linked once, and its tests run beside each other.

mod addresses;
mod allocation;
mod close;
mod connecting;
mod dependencies;
mod descriptors;
mod examples;
mod feedback;
mod marks;
mod publication;
mod reconnect;
mod replay;
