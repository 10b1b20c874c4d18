//! Dropping of privileges once the router no longer needs them (capabilities(7)).
//!
//! Opening a packet socket needs `CAP_NET_RAW`; sending and receiving by an open one needs nothing. So the router drops all
//! privileges when its ports are open, except `CAP_NET_ADMIN` where it has turned offloads off and must turn them on
//! again.
//!
//! Capabilities belong to threads. A new thread inherits those of the thread that starts it, so privileges must be dropped
//! before any thread is started.
//!
//! Users are looked up in `/etc/passwd`, by name or number; NSS is not used.

use crate::ServiceError;
use cutline_sys::SysError;
use rustix::process::{Gid, Uid, getgid, getuid};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, capability_is_in_bounding_set, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities, set_keep_capabilities, set_no_new_privs,
    set_thread_groups, set_thread_res_gid, set_thread_res_uid,
};
use std::io;

/// A user that the process can become.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    name: String,
    id: u32,
    group: u32,
}

/// The privileges that are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Keep {
    /// `CAP_NET_ADMIN`, which turning offloads on needs.
    pub net_admin: bool,
}

const PASSWD: &str = "/etc/passwd";

impl User {
    /// Returns the user of this name, or with this number.
    ///
    /// # Errors
    /// When there is none.
    pub fn find(name: &str) -> Result<Self, ServiceError> {
        let table = std::fs::read_to_string(PASSWD)
            .map_err(|error| SysError::new(format!("{PASSWD} cannot be read"), error))?;
        Self::in_table(&table, name).ok_or_else(|| ServiceError::NoUser { name: name.to_owned() })
    }

    /// A line is `name:password:user:group:...` (passwd(5)).
    fn in_table(table: &str, name: &str) -> Option<Self> {
        let entry = |line: &str| {
            let mut fields = line.split(':');
            let (user, _password) = (fields.next()?.to_owned(), fields.next()?);
            Some(Self { name: user, id: fields.next()?.parse().ok()?, group: fields.next()?.parse().ok()? })
        };
        table.lines().filter_map(entry).find(|user| user.name == name || user.id.to_string() == name)
    }

    /// The user's number.
    pub const fn id(&self) -> u32 {
        self.id
    }

    /// The number of the user's primary group.
    pub const fn group(&self) -> u32 {
        self.group
    }
}

/// Drops every capability but those in `keep`, from all sets and for good, and becomes `user` if there is one. Capabilities
/// that the process lacks are not added.
///
/// # Errors
/// When the process has more than one thread already, or may not become that user.
pub fn drop_privileges(keep: Keep, user: Option<&User>) -> Result<(), SysError> {
    require_one_thread()?;
    let failed = |errno: rustix::io::Errno| SysError::new("privileges cannot be dropped", errno);
    let kept = if keep.net_admin { CapabilitySet::NET_ADMIN } else { CapabilitySet::empty() };
    let before = capabilities(None).map_err(failed)?;
    if before.effective.contains(CapabilitySet::SETPCAP) {
        limit_bounding_set(kept).map_err(failed)?;
    }
    clear_ambient_capability_set().map_err(failed)?;
    if let Some(user) = user {
        become_user(user).map_err(|errno| {
            SysError::new(format!("the process cannot become user `{}`", user.name), errno)
        })?;
    }
    set_no_new_privs(true).map_err(failed)?;
    let left = before.permitted & kept;
    let sets = CapabilitySets { effective: left, permitted: left, inheritable: CapabilitySet::empty() };
    set_capabilities(None, sets).map_err(failed)
}

/// Removes all but `kept` from the bounding set, up to the last capability that this kernel knows.
fn limit_bounding_set(kept: CapabilitySet) -> rustix::io::Result<()> {
    for bit in 0..u64::BITS {
        let one = CapabilitySet::from_bits_retain(1 << bit);
        let Ok(is_in) = capability_is_in_bounding_set(one) else { break };
        if is_in && !kept.contains(one) {
            remove_capability_from_bounding_set(one)?;
        }
    }
    Ok(())
}

/// Changes the group first, since afterwards the process may not. The caller drops the capabilities.
fn become_user(user: &User) -> rustix::io::Result<()> {
    let (uid, gid) = (Uid::from_raw(user.id), Gid::from_raw(user.group));
    if (getuid(), getgid()) == (uid, gid) {
        return Ok(());
    }
    set_keep_capabilities(true)?;
    set_thread_groups(&[])?;
    set_thread_res_gid(gid, gid, gid)?;
    set_thread_res_uid(uid, uid, uid)?;
    set_keep_capabilities(false)
}

fn require_one_thread() -> Result<(), SysError> {
    let failed = |error| SysError::new("privileges cannot be dropped", error);
    let threads = std::fs::read_dir("/proc/self/task").map_err(failed)?.count();
    if threads == 1 {
        return Ok(());
    }
    Err(failed(io::Error::other(format!("the process has {threads} threads already, not 1"))))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "root:x:0:0:root:/root:/bin/sh\nbroken\nrouter:x:991:992::/:/usr/sbin/nologin\n";

    #[test]
    fn users_are_found_by_name_and_number() {
        let router = User { name: "router".to_owned(), id: 991, group: 992 };
        assert_eq!(User::in_table(TABLE, "router"), Some(router.clone()));
        assert_eq!(User::in_table(TABLE, "991"), Some(router));
        assert_eq!(User::in_table(TABLE, "broken"), None);
        let error = User::find("no-such-user").unwrap_err().to_string();
        assert_eq!(error, "there is no user `no-such-user` in /etc/passwd");
    }

    /// The test harness itself has threads; a process with one thread is tested with the router.
    #[test]
    fn with_more_threads_than_one_nothing_is_dropped() {
        let (started, end) = (std::sync::Barrier::new(2), std::sync::Barrier::new(2));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                started.wait();
                end.wait();
            });
            started.wait();
            let error = drop_privileges(Keep::default(), None).unwrap_err().to_string();
            end.wait();
            assert!(error.contains("threads already"), "{error}");
        });
    }
}
