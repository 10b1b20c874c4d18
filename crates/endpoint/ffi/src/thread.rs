//! Protection of the calling thread.

use crate::error::{Failure, call};
use cutline_bindings::{ThreadPriority, protect_thread, unprotect_thread};
use std::ffi::c_int;

/// Protects the calling thread from the other work of its processor until cutline_unprotect_thread() or the end of the thread. A
/// protected thread runs before normal threads, and so does the library's own thread meanwhile. `priority` is one of
/// CUTLINE_THREAD_PRIORITY_*. The protection is for threads that receive messages and do a bounded amount of work for each.
/// Threads and processes that the thread starts are not protected. Returns the priority in effect, or -1 with EPERM or EACCES if
/// the process may not have it, and with EBUSY if the thread is protected already.
#[unsafe(no_mangle)]
pub extern "C" fn cutline_protect_thread(priority: c_int) -> c_int {
    call(-1, || {
        let wanted = ThreadPriority::ALL.iter().find(|wanted| **wanted as c_int == priority);
        let Some(wanted) = wanted else {
            let allowed = "allowed are CUTLINE_THREAD_PRIORITY_HIGHEST, _REAL_TIME and _NICE";
            return Err(Failure::argument(format!("priority = {priority}: {allowed}")));
        };
        let (had, _) = protect_thread(*wanted)?;
        Ok(had as c_int)
    })
}

/// Ends the protection of the calling thread, and restores its previous priority. Returns -1 with EINVAL if the thread is not
/// protected: no thread can end the protection of another one.
#[unsafe(no_mangle)]
pub extern "C" fn cutline_unprotect_thread() -> c_int {
    call(-1, || {
        unprotect_thread(None)?;
        Ok(0)
    })
}
