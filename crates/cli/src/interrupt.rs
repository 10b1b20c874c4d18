//! Ctrl-C: the first asks to stop, the second stops.

use crate::exit::Failure;
use crate::message;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A flag that the first Ctrl-C (or SIGTERM) sets; the second ends the program with 130. Called once a process.
///
/// `kept` says what becomes of the work done so far, such as that a resume goes on from there.
///
/// # Errors
/// When the system does not let signals be handled.
pub fn cancel_flag(kept: String) -> Result<Arc<AtomicBool>, Failure> {
    let flag = Arc::new(AtomicBool::new(false));
    let set = Arc::clone(&flag);
    let handler = move || {
        if set.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
        message::write(format!("\nstopping. {kept} Ctrl-C again stops at once.\n"), None);
    };
    ctrlc::set_handler(handler)
        .map_err(|error| Failure::Failed(format!("signals cannot be handled: {error}")))?;
    Ok(flag)
}
