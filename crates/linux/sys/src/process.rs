//! The end of the process, and its copies by fork(2).
#![expect(unsafe_code, reason = "a destructor of the program, and pthread_atfork, which no safe crate wraps")]

use crate::lock;
use std::panic::catch_unwind;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, Once, OnceLock};

/// Calls at the end of the process, in the order of their registration.
static AT_EXIT: PerProcess<Mutex<Calls>> = PerProcess::new();

type Calls = Vec<fn()>;

/// Calls `act` when the process ends by `exit`, or by returning from `main`; not when a signal ends it, nor after `_exit` and `abort`. It is
/// called after the functions of `atexit` and after the destructors of the users of this library. A function that is registered twice is called
/// once.
pub fn at_exit(act: fn()) {
    let mut calls = lock(AT_EXIT.get());
    if !calls.iter().any(|call| std::ptr::fn_addr_eq(*call, act)) {
        calls.push(act);
    }
}

/// The destructor of the program or library that this is linked into (ELF, `DT_FINI_ARRAY`).
// SAFETY: the section has pointers to functions of this type, which run when nothing else of the program does but its threads.
#[used]
#[unsafe(link_section = ".fini_array")]
static DESTRUCTOR: extern "C" fn() = run;

extern "C" fn run() {
    // A thread that is stopped with this lock would stop the exit.
    let Ok(mut calls) = AT_EXIT.get().try_lock() else { return };
    let taken = std::mem::take(&mut *calls);
    drop(calls);
    for call in taken {
        // A panic may not leave a function of C. It has been printed.
        let _panicked = catch_unwind(call);
    }
}

/// Number of forks between this process and the ancestor that first used the library.
static GENERATION: AtomicU32 = AtomicU32::new(0);

/// Returns a number that differs between a process and its copies by fork. It counts from the first call on; a copy by `vfork`, or by
/// clone(2) without the C library, has the number of its parent.
pub fn generation() -> u32 {
    static WATCHED: Once = Once::new();
    WATCHED.call_once(|| {
        // SAFETY: the handler only changes an atomic, which is allowed after a fork of a process with several threads. Without memory for it
        // copies are not distinguished.
        let _unwatched = unsafe { libc::pthread_atfork(None, None, Some(forked)) };
    });
    GENERATION.load(Ordering::Relaxed)
}

unsafe extern "C" fn forked() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
}

/// Number of generations of processes that have values of their own; later ones share that of the last.
const GENERATIONS: usize = 64;

/// Something that each process has of its own. In a copy by fork, that of the parent may be in the middle of a change by a thread which the
/// copy does not have, such as locked forever; so the copy begins with another one.
#[derive(Debug)]
pub struct PerProcess<T>([OnceLock<T>; GENERATIONS]);

impl<T> PerProcess<T> {
    /// Nothing yet.
    pub const fn new() -> Self {
        Self([const { OnceLock::new() }; GENERATIONS])
    }
}

impl<T> Default for PerProcess<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Default> PerProcess<T> {
    /// Returns that of this process, which is made with the first call.
    pub fn get(&self) -> &T {
        let number = usize::try_from(generation()).unwrap_or(usize::MAX);
        self.0[number.min(GENERATIONS - 1)].get_or_init(T::default)
    }
}
