//! Publication: a process reports the traffic of its sockets to the monitor of its host.
//!
//! The monitor listens at a local socket, [`DEFAULT_SOCKET`], to which every user may write. A process that has QoS sockets
//! connects to it and sends [rows](SocketRow): one for each socket, at most once a second, and only those that have changed. The
//! kernel reports the process and the user of a connection. When the process ends, however it ends, its connection is
//! closed and its rows are gone.
//!
//! Publication costs nothing for each message: rows are made from counters that exist anyway. Without a monitor a process tries to
//! connect every few seconds, which fails at once. The environment variable [`VARIABLE`] names another socket, or is `off`.
//!
//! ```text
//! rows       the published records: each field with its name, unit, kind and meaning
//! publisher  a process's connection to the monitor; it never waits
//! request    requests of managers, which the monitor passes on
//! testing    rows for tests and benchmarks (feature `testing`)
//! ```

mod publisher;
mod request;
mod rows;
#[cfg(feature = "testing")]
pub mod testing;

pub use publisher::{PUBLISH_EVERY, Publisher, RowSnapshot, SEARCH_EVERY};
pub use request::{ManagerRequest, RequestLines};
pub use rows::{
    DELAY_BOUNDS_MS, DirectionRow, LimitRow, ProgramRow, RowKind, SocketRow, SpreadRow, ViolationRow, unit_of,
};

use rustix::process::{getegid, geteuid, getgid, getuid};
use std::ffi::OsString;
use std::path::PathBuf;

/// Path of the monitor's socket unless [`VARIABLE`] names another one.
pub const DEFAULT_SOCKET: &str = "/run/cutline/publish.sock";
/// Environment variable with the path of the monitor's socket, or `off`: then nothing is published.
pub const VARIABLE: &str = "CUTLINE_PUBLISH";
/// Version of the protocol, in the first line of a publisher.
pub const VERSION: u32 = 1;
/// The longest line of the protocol without its end, bytes.
pub const LONGEST_LINE: usize = 256 << 10;

/// Returns the path of the monitor's socket, from the environment of this process; `None` if it publishes nothing. A program that runs
/// as another user than its caller ignores the environment, which is the caller's.
pub fn socket_path() -> Option<PathBuf> {
    let has_own_rights = getuid() == geteuid() && getgid() == getegid();
    path_of(std::env::var_os(VARIABLE).filter(|_| has_own_rights))
}

fn path_of(variable: Option<OsString>) -> Option<PathBuf> {
    match variable {
        Some(value) if value == "off" => None,
        Some(value) if !value.is_empty() => Some(value.into()),
        _ => Some(DEFAULT_SOCKET.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_names_the_socket_or_turns_publication_off() {
        let of = |value: Option<&str>| path_of(value.map(OsString::from));
        assert_eq!(of(None), Some(DEFAULT_SOCKET.into()));
        assert_eq!(of(Some("")), Some(DEFAULT_SOCKET.into()));
        assert_eq!(of(Some("/tmp/p.sock")), Some("/tmp/p.sock".into()));
        assert_eq!(of(Some("off")), None);
    }
}
