//! Ctrl-C: the first one ends the command in order, the second one at once.

use crate::exit::Failure;
use crate::message;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Returns a flag that the first Ctrl-C (or SIGTERM) sets. The second one ends the program with exit code 130. The
/// function may be called once per process.
///
/// `kept` is a sentence for the user about the work done so far, such as "Finished runs are kept."
///
/// # Errors
/// When the signal handler cannot be installed.
pub fn cancel_flag(kept: String) -> Result<Arc<AtomicBool>, Failure> {
    let flag = Arc::new(AtomicBool::new(false));
    let set = Arc::clone(&flag);
    let handler = move || {
        if set.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
        message::write(format!("\nstopping. {kept} Press Ctrl-C again to stop at once.\n"), None);
    };
    ctrlc::set_handler(handler)
        .map_err(|error| Failure::Failed(format!("the handler of Ctrl-C cannot be installed: {error}")))?;
    Ok(flag)
}
