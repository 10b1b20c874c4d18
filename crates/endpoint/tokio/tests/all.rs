//! Frames below IP and protected threads, in one program: it is linked once, and its tests run beside each other.

mod direct;
mod protection;
