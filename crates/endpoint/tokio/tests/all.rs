//! Frames below IP, options and protected threads, in one program: it is linked once, and its tests run beside each other.

mod direct;
mod options;
mod protection;
