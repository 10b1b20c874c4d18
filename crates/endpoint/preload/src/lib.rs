//! The library that `cutline exec` preloads into an unchanged program (`LD_PRELOAD`, ld.so(8)).
//!
//! It defines functions of libc that concern sockets. Each calls libc's own function, and sets or counts something before or
//! after it:
//!
//! | function | addition |
//! | --- | --- |
//! | `socket`, `accept`, `accept4` | the socket gets the mark, the priority, the pacing rate and short buffers |
//! | `connect` | the peer's address is noted |
//! | `setsockopt` | a mark of the program keeps its ECN bits and gets our code point; the lower pacing rate holds |
//! | `sendmsg`, `sendmmsg` | the same for marks in control messages; datagrams are paced and counted |
//! | `send`, `sendto`, `write`, `writev`, `pwritev2`, `sendfile`, `splice` | datagrams are paced and counted |
//! | `fdopen`, `dprintf`, `dup2` to stdout or stderr | libc's own later writes to a UDP socket are neither; the report says so |
//! | `aio_write`, `lio_listio` | libc's threads write, so datagrams are neither paced nor counted; the report says so |
//! | `recvmsg`, `recvmmsg` | sockets that arrive in a message are noted |
//! | `dup`, `dup2`, `dup3`, `fcntl` | the copy is the same socket in the counters |
//! | `close`, `close_range`, `closefrom`, `fclose`, `freopen` | a TCP connection's counters are read, and its number is free |
//! | `_exit`, `_Exit`, `quick_exit`, `execve` and its siblings | the counters of all TCP connections are read |
//! | `prctl`, `syscall` | a seccomp filter is evaluated for the calls of this library, before it is installed |
//! | `syscall` | sockets are made, set, copied and closed as by these functions; datagrams are neither paced nor counted |
//!
//! The kernel paces TCP by itself (`SO_MAX_PACING_RATE`), and counts its bytes.
//!
//! It must be harmless in any process:
//!
//! - Whatever cannot be done is left out, and counted: the program's call is made all the same, and its result returned.
//! - `errno` is the value that libc's function has set.
//! - There is no allocation, no lock, no thread, no signal handler and no output. The state is in atomics (`state`), so all
//!   functions may be called in a signal handler, after `fork` and by any number of threads.
//! - A child of `vfork` shares its parent's memory. It has another process number, and changes nothing but marks.
//! - A program that has given up system calls is not killed for one of ours (`sandbox`). Writing to a file or a pipe leads to no
//!   further system call in any case.
//! - Nothing panics: a panic could not leave a C function.
//!
//! Decisions about marks, times, counters and filters are in the crate `marking`, without `unsafe`.
//!
//! ```text
//! descriptors     functions that make, copy and close descriptors, and set options
//! sending         functions that send
//! process         functions that end a process, replace its program, or restrict its system calls
//! variadic        functions of both kinds with any number of arguments
//! socket          settings of a socket, pacing, counting
//! sandbox         which system calls of ours the program's seccomp filters allow
//! state           the settings, the table of counters, and the kind of each descriptor
//! libc_functions  libc's own functions
//! ```
#![expect(unsafe_code, reason = "functions with the names and types of libc's, which C programs call")]

mod descriptors;
mod libc_functions;
mod process;
mod sandbox;
mod sending;
mod socket;
mod state;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod variadic;

use libc::c_void;
use std::slice::from_raw_parts;

/// # Safety
/// There must be `length` bytes at `start`, which nothing writes to, unless it is null.
unsafe fn bytes<'b>(start: *const c_void, length: usize) -> Option<&'b [u8]> {
    // SAFETY: as the caller guarantees.
    (!start.is_null()).then(|| unsafe { from_raw_parts(start.cast(), length) })
}
