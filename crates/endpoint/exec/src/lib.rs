//! QoS for programs that know nothing of it: `cutline exec`.
//!
//! There are two methods to mark a program's sockets. A *preloaded library* is in front of libc's functions inside the program. A
//! *control group* with eBPF programs is behind the system calls, inside the kernel. [`choose`] looks at the program and
//! returns the marking method, its reason and its limits; [`run`] starts the program, waits for it and reads the counters.
//!
//! ```text
//! program   kind of program in a file
//! marking_method the method that works for it
//! options   the program to start, and the settings of its sockets
//! library   where the preloaded library is
//! cgroup    the control group and its eBPF programs
//! run       starting the program, and waiting for it
//! ending    how it ended
//! counters  the file that the program's processes count in
//! publication rows for the monitor of this host
//! report    record of the delivery
//! systemd   settings that mark a service
//! ```

pub mod cgroup;
mod counters;
mod ending;
mod error;
mod library;
mod marking_method;
mod options;
mod program;
mod publication;
mod report;
mod run;
mod systemd;

pub use ending::ProgramEnding;
pub use error::ExecError;
pub use library::{LIBRARY_VARIABLE, find_library};
pub use marking_method::{MarkingChoice, MarkingMethod, choose};
pub use options::ExecOptions;
pub use program::{Obstacle, Program};
pub use report::{ExecDocument, SocketDocument, SocketTotals};
pub use run::run;
pub use systemd::systemd_unit;
