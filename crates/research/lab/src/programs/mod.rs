//! Real applications of the QoSockets paper's testbed: programs that know nothing of QoS sockets, and that `cutline gateway` carries.
//!
//! ```text
//! child     a program that runs, with an end that is certain
//! netvideo  NetVideo: ffmpeg sends and receives moving pictures, and what the viewer saw is compared with what was sent
//! dirm      DIRM: a CORBA client asks a server for pictures, over omniORB
//! ```
//!
//! Each program runs in a given network namespace or in that of the caller, for a limited time. Its output is parsed
//! into plain structs.

mod child;
pub mod dirm;
pub mod netvideo;

pub use child::ProgramError;
