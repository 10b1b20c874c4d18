//! QoS sockets for C: the library `libcutline`, whose header is `include/cutline.h`.
//!
//! The calls are close to those of Berkeley's sockets. A socket is an opaque handle; its calls return -1 (or a null pointer) and
//! set `errno` when they fail, and `cutline_error` describes the fault in words.
//!
//! ```text
//! options   requirements of an application, by name and text
//! socket    connect, listen, accept, send, receive
//! observe   events and the MIB
//! thread    protection of the calling thread
//! error     why a call failed
//! address   socket addresses of C
//! ```
//!
//! A test writes the header from these files: their functions, and the comments above them, which are therefore in C's words.
#![expect(unsafe_code, reason = "the pointers of C")]
#![allow(
    clippy::missing_safety_doc,
    clippy::doc_markdown,
    reason = "the comments are those of the header, which says what holds for all pointers"
)]

mod address;
mod error;
mod observe;
mod options;
mod socket;
mod thread;

pub use error::ErrorCode;

/// Borrows the object behind a pointer of the caller.
///
/// # Safety
/// A pointer that is not null must be one that a call of this library has returned and that was not freed.
unsafe fn borrow<'a, T>(pointer: *const T, what: &str) -> Result<&'a T, error::Failure> {
    // SAFETY: the caller's promise.
    unsafe { pointer.as_ref() }.ok_or_else(|| error::Failure::null(what))
}

/// As [`borrow`], for objects that are changed.
///
/// # Safety
/// As [`borrow`]; nothing else uses it during this call.
unsafe fn borrow_mut<'a, T>(pointer: *mut T, what: &str) -> Result<&'a mut T, error::Failure> {
    // SAFETY: the caller's promise.
    unsafe { pointer.as_mut() }.ok_or_else(|| error::Failure::null(what))
}
