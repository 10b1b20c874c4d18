//! State of the library in this process: the settings, the table of counters, and the kind of each file
//! descriptor.

use cutline_marking::MarkSettings;
use cutline_marking::settings::{TABLE_VARIABLE, VARIABLE};
use cutline_marking::table::{self, SocketKind, SocketTable, Total};
use cutline_units::{Bytes, Dscp, Rate};
use libc::{c_char, c_int, c_void};
use std::ffi::CStr;
use std::mem::size_of;
use std::ptr::null_mut;
use std::slice::from_raw_parts;
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, Ordering};

use crate::libc_functions as real;
use crate::sandbox::{self, Group};
use crate::socket;

/// File descriptors from this one on are marked, but not paced or counted.
const DESCRIPTORS: usize = 1 << 16;

/// State of each file descriptor: its kind above [`KIND_SHIFT`], and the number of its record plus one below
/// it.
static FILES: [AtomicU32; DESCRIPTORS] = [const { AtomicU32::new(0) }; DESCRIPTORS];
/// The largest file descriptor that was noted.
static HIGHEST: AtomicI32 = AtomicI32::new(0);
const KIND_SHIFT: u32 = 28;
const RECORD_MASK: u32 = (1 << KIND_SHIFT) - 1;
/// Not a socket of IPv4 or IPv6.
const OTHER_FILE: u32 = 15 << KIND_SHIFT;
/// Got from another process.
const INHERITED: u32 = 14 << KIND_SHIFT;
/// Descriptors that a program may be started with are below this number. Those of sockets among them are noted at the start.
const STARTED_WITH: c_int = 256;

/// The kind of a file descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum File {
    /// Opened by no function that we have seen: a file, a pipe, or a socket that was made by a system call
    /// alone.
    Unknown,
    /// Got from another process, by exec or in a message. If it is a socket, it is set up when it first sends.
    Inherited,
    /// Not a socket of IPv4 or IPv6.
    Other,
    /// A socket, with the number of its record.
    Socket(SocketKind, Option<u32>),
}

/// Stage of reading the settings.
static STAGE: AtomicU8 = AtomicU8::new(UNREAD);
const UNREAD: u8 = 0;
const READING: u8 = 1;
/// Settings were found.
const ACTIVE: u8 = 2;
/// No settings: every function is libc's.
const INERT: u8 = 3;

/// The settings, each plus one, so that zero is `None`.
static DSCP: AtomicU32 = AtomicU32::new(0);
static PRIORITY: AtomicU32 = AtomicU32::new(0);
static RATE: AtomicU64 = AtomicU64::new(0);
static UNSENT: AtomicU64 = AtomicU64::new(0);

/// The table in memory, null if there is none.
static TABLE: AtomicPtr<AtomicU64> = AtomicPtr::new(null_mut());

/// The process whose descriptors [`FILES`] describes. A child of `vfork` has another number.
static OWNER: AtomicI32 = AtomicI32::new(0);

/// Called by the dynamic linker when the library is loaded.
#[used]
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn() = start;

/// Called by the dynamic linker when the process exits.
#[used]
#[unsafe(link_section = ".fini_array")]
static END: extern "C" fn() = end;

extern "C" fn start() {
    let errno = Errno::save();
    read();
    errno.restore();
}

extern "C" fn end() {
    sample_all(true);
}

/// Reads the counters of all TCP connections. `is_complete` is true if the process, or its program, ends now.
pub(crate) fn sample_all(is_complete: bool) {
    if STAGE.load(Ordering::Acquire) != ACTIVE {
        return;
    }
    let errno = Errno::save();
    let mut sockets =
        descriptors().filter(|&fd| matches!(file(fd), File::Socket(SocketKind::Tcp, _))).peekable();
    if sockets.peek().is_some() && is_owner() {
        sockets.for_each(|fd| socket::sample(fd, is_complete));
    }
    errno.restore();
}

/// The file descriptors that may have been noted.
pub(crate) fn descriptors() -> impl Iterator<Item = c_int> {
    0..=HIGHEST.load(Ordering::Relaxed)
}

extern "C" fn in_child() {
    if sandbox::allows(Group::Process) {
        // SAFETY: getpid has no requirements.
        OWNER.store(unsafe { libc::getpid() }, Ordering::Relaxed);
    }
    add(Total::Processes, 1);
}

/// Reads the settings, once. Other libraries may open sockets before this one is initialised.
fn read() {
    if STAGE.compare_exchange(UNREAD, READING, Ordering::Acquire, Ordering::Relaxed).is_err() {
        return;
    }
    real::find_all();
    // Built like this it would end a program whose thread is cancelled (see the workspace's profile `preload`).
    let is_built_right = cfg!(panic = "unwind");
    let settings: Option<MarkSettings> =
        variable(VARIABLE).filter(|_| is_built_right).and_then(|text| text.to_str().ok()?.parse().ok());
    let Some(settings) = settings else {
        STAGE.store(INERT, Ordering::Release);
        return;
    };
    DSCP.store(settings.dscp.map_or(0, |dscp| u32::from(dscp.get()) + 1), Ordering::Relaxed);
    PRIORITY.store(settings.priority.map_or(0, |priority| u32::from(priority) + 1), Ordering::Relaxed);
    RATE.store(settings.rate.map_or(0, |rate| rate.as_bps().saturating_add(1)), Ordering::Relaxed);
    UNSENT.store(settings.unsent.map_or(0, |unsent| unsent.get().saturating_add(1)), Ordering::Relaxed);
    if let Some(memory) = variable(TABLE_VARIABLE).and_then(map) {
        TABLE.store(memory, Ordering::Relaxed);
    }
    STAGE.store(ACTIVE, Ordering::Release);
    in_child();
    // SAFETY: at_quick_exit and pthread_atfork may be called at any time; the handlers only use atomics and system calls.
    unsafe { at_quick_exit(end) };
    (0..STARTED_WITH).filter(|&fd| socket::is_of_a_network(fd)).for_each(|fd| set_file(fd, File::Inherited));
    // SAFETY: the handler may be called in any child; it only stores into atomics.
    unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
}

/// The settings; `None` if the library does nothing in this process.
pub(crate) fn settings() -> Option<MarkSettings> {
    if STAGE.load(Ordering::Acquire) == UNREAD {
        read();
    }
    if STAGE.load(Ordering::Acquire) != ACTIVE {
        return None;
    }
    let small = |value: &AtomicU32| u8::try_from(value.load(Ordering::Relaxed).checked_sub(1)?).ok();
    let large = |value: &AtomicU64| value.load(Ordering::Relaxed).checked_sub(1);
    Some(MarkSettings {
        dscp: small(&DSCP).and_then(Dscp::new),
        priority: small(&PRIORITY),
        rate: large(&RATE).map(Rate::from_bps),
        unsent: large(&UNSENT).map(Bytes::new),
    })
}

/// Returns whether packets are marked.
pub(crate) fn marks() -> bool {
    settings().is_some_and(|settings| settings.dscp.is_some())
}

/// The table of counters.
pub(crate) fn table() -> Option<SocketTable<'static>> {
    let memory = TABLE.load(Ordering::Relaxed);
    if memory.is_null() {
        return None;
    }
    // SAFETY: `map` has mapped so many aligned words, which stay mapped as long as the process lives. Every process accesses
    // them as atomics alone.
    SocketTable::new(unsafe { from_raw_parts(memory, table::WORDS) })
}

/// Adds to a total.
pub(crate) fn add(total: Total, count: u64) {
    if let Some(table) = table().filter(|_| count > 0) {
        table.add(total, count);
    }
}

/// Returns the kind of a file descriptor.
pub(crate) fn file(fd: c_int) -> File {
    let Some(word) = entry(fd).map(|entry| entry.load(Ordering::Relaxed)) else { return File::Other };
    match (word, SocketKind::from_number(word >> KIND_SHIFT)) {
        (0, _) => File::Unknown,
        (INHERITED, _) => File::Inherited,
        (word, Some(kind)) => File::Socket(kind, (word & RECORD_MASK).checked_sub(1)),
        _ => File::Other,
    }
}

/// Notes the kind of a file descriptor.
pub(crate) fn set_file(fd: c_int, file: File) {
    let word = match file {
        File::Unknown => 0,
        File::Other => OTHER_FILE,
        File::Inherited => INHERITED,
        File::Socket(kind, record) => {
            (kind as u32) << KIND_SHIFT | record.map_or(0, |record| record.saturating_add(1) & RECORD_MASK)
        }
    };
    if let Some(entry) = entry(fd) {
        if word != 0 {
            HIGHEST.fetch_max(fd, Ordering::Relaxed);
        }
        entry.store(word, Ordering::Relaxed);
    }
}

fn entry(fd: c_int) -> Option<&'static AtomicU32> {
    FILES.get(usize::try_from(fd).ok()?)
}

/// Returns whether the noted descriptors are those of this process. A sandbox without getpid(2) is expected
/// to have no children of vfork(2).
pub(crate) fn is_owner() -> bool {
    // SAFETY: getpid has no requirements.
    !sandbox::allows(Group::Process) || OWNER.load(Ordering::Relaxed) == unsafe { libc::getpid() }
}

/// The number of this process.
pub(crate) fn process() -> u32 {
    OWNER.load(Ordering::Relaxed) as u32
}

/// The value of an environment variable.
fn variable(name: &str) -> Option<&'static CStr> {
    let mut buffer = [0_u8; 32];
    buffer.get_mut(..name.len())?.copy_from_slice(name.as_bytes());
    let name = CStr::from_bytes_until_nul(&buffer).ok()?;
    // SAFETY: the name ends with a zero byte. The environment is read once, before the program can change it.
    let value: *const c_char = unsafe { libc::getenv(name.as_ptr()) };
    // SAFETY: a value that is there ends with a zero byte.
    (!value.is_null()).then(|| unsafe { CStr::from_ptr(value) })
}

const _: () = assert!(size_of::<AtomicU64>() == size_of::<u64>());

/// Maps the table's file.
fn map(path: &CStr) -> Option<*mut AtomicU64> {
    // SAFETY: the path ends with a zero byte.
    let fd = unsafe { libc::open(path.as_ptr(), libc::O_RDWR | libc::O_CLOEXEC | libc::O_NOFOLLOW) };
    if fd < 0 {
        return None;
    }
    // SAFETY: all-zero bits are a valid stat.
    let mut status: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: there is room for the status.
    let is_known = unsafe { libc::fstat(fd, &raw mut status) } == 0;
    // A shorter file would end the process at the first access behind its end.
    let memory = if is_known && status.st_size >= table::BYTES as i64 {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory that exists.
        unsafe { libc::mmap(null_mut(), table::BYTES, access, libc::MAP_SHARED, fd, 0) }
    } else {
        libc::MAP_FAILED
    };
    // SAFETY: the descriptor was opened above.
    unsafe { real::close(fd) };
    (memory != libc::MAP_FAILED).then_some(memory.cast())
}

unsafe extern "C" {
    /// `at_quick_exit`(3), which the crate `libc` does not declare.
    fn at_quick_exit(function: extern "C" fn()) -> c_int;
}

/// The thread's `errno`, to be put back.
#[derive(Clone, Copy)]
pub(crate) struct Errno(c_int);

impl Errno {
    pub(crate) fn save() -> Self {
        // SAFETY: libc has an `errno` for each thread, which only this thread touches.
        Self(unsafe { *libc::__errno_location() })
    }

    pub(crate) fn restore(self) {
        // SAFETY: as above.
        unsafe { *libc::__errno_location() = self.0 };
    }
}

/// A pointer to a value, as socket options take it.
pub(crate) const fn pointer<T>(value: &T) -> *const c_void {
    std::ptr::from_ref(value).cast()
}
