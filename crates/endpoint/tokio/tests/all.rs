//! Descriptors, frames below IP, options and protected threads, in one program: it is linked once, and its tests run beside each other.

mod descriptors;
mod direct;
mod options;
mod protection;
