//! The resource manager of the host in `cutlined`: the table `[manager]` of its file.

use crate::error::DaemonError;
use crate::keys;
use crate::machine::{check_address, check_socket};
use cutline_manager_service::{ManagerService, ManagerSpec, PathKey};
use cutline_rsvp::integrity::Algorithm;
use std::path::Path;

/// Reads the keys of summaries.
fn keys_of(spec: &ManagerSpec) -> Result<Vec<PathKey>, DaemonError> {
    spec.keys.as_deref().map_or(Ok(Vec::new()), path_keys)
}

/// Reads a file of keys, which has the form of those of neighbours.
fn path_keys(path: &Path) -> Result<Vec<PathKey>, DaemonError> {
    let keys = keys::load(path)?;
    if keys.iter().any(|key| key.algorithm != Algorithm::HmacSha256) {
        let (file, why) = (path.display().to_string(), "algorithm: allowed is hmac-sha-256 for summaries");
        return Err(DaemonError::Keys { file, why: why.to_owned() });
    }
    Ok(keys.into_iter().map(|key| PathKey { id: key.id, secret: key.secret }).collect())
}

/// Checks the settings of the resource manager and its file of keys, as its start does.
///
/// # Errors
/// When something is not allowed.
pub fn check_manager(spec: &ManagerSpec) -> Result<(), DaemonError> {
    Ok(ManagerService::check(spec, &keys_of(spec)?)?)
}

/// Checks that the resource manager can start on this machine now. One that runs is no obstacle.
///
/// # Errors
/// When it cannot start.
pub fn check_manager_machine(spec: &ManagerSpec) -> Result<(), DaemonError> {
    check_socket(&spec.socket)?;
    Ok(spec.listen.map_or(Ok(()), check_address)?)
}

/// Starts the resource manager. It works until it is dropped. `say` gets its messages.
///
/// # Errors
/// When a file of keys cannot be used, another one runs, or something is not available.
pub fn start_manager(
    spec: &ManagerSpec,
    say: impl Fn(String) + Send + 'static,
) -> Result<ManagerService, DaemonError> {
    Ok(ManagerService::start(spec.clone(), &keys_of(spec)?, say)?)
}
