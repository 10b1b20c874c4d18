//! How many descriptors this process may have open.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the limit of open descriptors as far as the system allows. The default of 1024 is for programs that use `select` (getrlimit(2)).
/// A program that starts others must not call this.
pub fn allow_most() {
    let limit = getrlimit(Resource::Nofile);
    // It may be raised to the maximum without a privilege.
    let _unchanged = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}
