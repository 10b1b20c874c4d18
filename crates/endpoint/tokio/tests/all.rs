//! Descriptors, frames below IP, processes that end, options and protected threads, in one program: it is linked once, and its tests run
//! beside each other.

mod descriptors;
mod direct;
mod leave;
mod options;
mod protection;
