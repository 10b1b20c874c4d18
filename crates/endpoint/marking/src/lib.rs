//! Settings of the sockets of unchanged programs, and their counters.
//!
//! Everything here is also used inside such a program, by the preloaded library. So the functions that run there do not
//! allocate, take no locks, read no clock and do not panic. The counters are atomics in memory that processes share.
//!
//! ```text
//! settings  settings of every socket, and its form in the environment
//! control   the traffic class in a message's control messages
//! pacer     when a datagram may be sent
//! table     the counters
//! seccomp   the verdict of a program's filter on a system call
//! ```

pub mod control;
pub mod pacer;
pub mod seccomp;
pub mod settings;
pub mod table;

pub use settings::{MarkSettings, SettingsError};
