//! Real applications of the QoSockets paper's testbed: programs that know nothing of QoS sockets, and that `cutline gateway` carries.
//!
//! ```text
//! child     a program that runs, with an end that is certain
//! decoder   decoders of a film as the load of a processor
//! netvideo  NetVideo: ffmpeg sends and receives moving pictures, and the received pictures are compared with the sent ones
//! dirm      DIRM: a CORBA client asks a server for pictures, over omniORB
//! ```
//!
//! Each program runs in the given place, in a network namespace or here, for a time that is limited. Its output is parsed into plain
//! structs.

mod child;
pub(crate) mod decoder;
pub mod dirm;
pub mod netvideo;

pub use child::ProgramError;
