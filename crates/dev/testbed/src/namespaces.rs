//! Permission of a test to use network namespaces.

use crate::skip;
use cutline_sys::SysError;
use cutline_sys::namespace::{Namespace, sweep};
use rustix::process::geteuid;
use std::sync::OnceLock;

/// Returns true if this process may make network namespaces. If not, the test is skipped ([`skip`]); `to_run` is the
/// command that runs it.
///
/// # Panics
/// When namespaces should work here and do not.
#[track_caller]
pub fn may_make_namespaces(to_run: &str) -> bool {
    static WHY_NOT: OnceLock<Option<String>> = OnceLock::new();
    let why_not = WHY_NOT.get_or_init(|| {
        if !geteuid().is_root() {
            return Some("network namespaces need root".to_owned());
        }
        sweep().expect("what ended processes have left can be removed");
        match Namespace::create("may") {
            // Root of a container may not.
            Err(SysError::Ip { message, .. }) if message.contains("not permitted") => Some(message),
            other => {
                other.expect("root can make network namespaces");
                None
            }
        }
    });
    if let Some(why) = why_not {
        skip(why, to_run);
    }
    why_not.is_none()
}
