//! Errors of a failed call: `errno`, a kind, and a text for each thread.

use cutline_bindings::{CallFailure, ProtectionError, errno_of};
use cutline_socket::{Interruptible, QosError};
use std::cell::RefCell;
use std::ffi::{CString, c_char, c_int};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The kind of the last error of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum ErrorCode {
    /// No error.
    None = 0,
    /// An argument or an option is not allowed.
    Argument = 1,
    /// The ends do not agree on a specification; or, with if-refused = fail, the network has not reserved it.
    Refused = 2,
    /// The peer is no QoS socket, or has another key.
    NoPeer = 3,
    /// A system call failed: errno gives the reason.
    System = 4,
    /// Internal error; the socket may be unusable.
    Internal = 5,
    /// The connection was lost and is being restored. This call had no effect; the next call uses the new connection.
    Lost = 6,
}

/// The error of a call, which is reported to the caller.
#[derive(Debug)]
pub struct Failure {
    code: ErrorCode,
    errno: c_int,
    text: String,
}

struct Last {
    code: ErrorCode,
    text: CString,
}

thread_local! {
    static LAST: RefCell<Last> = RefCell::new(Last { code: ErrorCode::None, text: CString::default() });
}

impl Failure {
    /// An argument that is not allowed.
    pub fn argument(text: impl Into<String>) -> Self {
        Self { code: ErrorCode::Argument, errno: libc::EINVAL, text: text.into() }
    }

    /// A null pointer.
    pub fn null(what: &str) -> Self {
        Self::argument(format!("{what} is a null pointer"))
    }

    fn internal() -> Self {
        let text = "a defect in libcutline; its message is on standard error".to_owned();
        Self { code: ErrorCode::Internal, errno: libc::EIO, text }
    }

    /// Hands the error to the caller's thread.
    fn publish(self) {
        let text = CString::new(self.text.replace('\0', " ")).unwrap_or_default();
        // While a thread ends its text may be gone already; errno is not.
        let _gone = LAST.try_with(|last| *last.borrow_mut() = Last { code: self.code, text });
        // SAFETY: it points to this thread's errno.
        unsafe { *libc::__errno_location() = self.errno };
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match CallFailure::from(error) {
            CallFailure::Qos(error) => error.into(),
            CallFailure::Unsupported(call) => {
                Self { code: ErrorCode::Argument, errno: libc::EOPNOTSUPP, text: call.to_string() }
            }
            CallFailure::Io(error) => {
                let is_ours = error.kind() == io::ErrorKind::InvalidInput && error.raw_os_error().is_none();
                let code = if is_ours { ErrorCode::Argument } else { ErrorCode::System };
                Self { code, errno: number(&error), text: error.to_string() }
            }
        }
    }
}

impl From<ProtectionError> for Failure {
    fn from(error: ProtectionError) -> Self {
        let text = error.to_string();
        match error {
            ProtectionError::Protected => Self { code: ErrorCode::Argument, errno: libc::EBUSY, text },
            ProtectionError::Unprotected => Self::argument(text),
            ProtectionError::Refused(source) => {
                Self { code: ErrorCode::System, errno: number(&source), text }
            }
        }
    }
}

impl From<QosError> for Failure {
    fn from(error: QosError) -> Self {
        let errno = match &error {
            QosError::Option(_) => libc::EINVAL,
            QosError::Refused { .. }
            | QosError::NoPeer(_)
            | QosError::Reservation(_)
            | QosError::Unallocated(_) => libc::ECONNREFUSED,
            QosError::Lost(_) => libc::ECONNABORTED,
            QosError::Inherited => libc::ENOTCONN,
            QosError::Replaced => libc::ECONNRESET,
            QosError::NotRecovered { .. } | QosError::Silent(_) => libc::ETIMEDOUT,
            QosError::System { source, .. } => number(source),
        };
        Self { code: kind_of(&error), errno, text: error.to_string() }
    }
}

fn kind_of(error: &QosError) -> ErrorCode {
    match error {
        QosError::Option(_) => ErrorCode::Argument,
        QosError::Refused { .. } | QosError::Reservation(_) | QosError::Unallocated(_) => ErrorCode::Refused,
        QosError::NoPeer(_) => ErrorCode::NoPeer,
        QosError::Lost(_) => ErrorCode::Lost,
        QosError::NotRecovered { .. }
        | QosError::Silent(_)
        | QosError::Inherited
        | QosError::Replaced
        | QosError::System { .. } => ErrorCode::System,
    }
}

/// The system's number of an error.
fn number(error: &io::Error) -> c_int {
    errno_of(error).unwrap_or(libc::EIO)
}

/// Carries out a call of C. A failure or panic is an error of the caller's thread, and `failed` is returned.
pub fn call<T>(failed: T, act: impl FnOnce() -> Result<T, Failure>) -> T {
    // Signal handlers of C run while a call waits; then it fails with EINTR, as poll(2) does.
    let act = AssertUnwindSafe(|| Interruptible::once().run(act));
    let outcome = catch_unwind(act).unwrap_or_else(|_| Err(Failure::internal()));
    outcome.unwrap_or_else(|failure| {
        failure.publish();
        failed
    })
}

/// Returns the message of the last failed call of this thread: the field, its value and the allowed values. The text is empty if
/// no call has failed. It is valid until the next call of this library by this thread.
#[unsafe(no_mangle)]
pub extern "C" fn cutline_error() -> *const c_char {
    // The text is on the heap and stays where it is until another one replaces it.
    LAST.try_with(|last| last.borrow().text.as_ptr()).unwrap_or(c"".as_ptr())
}

/// Returns the kind of the last error of this thread: one of CUTLINE_ERROR_*.
#[unsafe(no_mangle)]
pub extern "C" fn cutline_error_code() -> c_int {
    LAST.try_with(|last| last.borrow().code as c_int).unwrap_or(ErrorCode::Internal as c_int)
}

/// Returns the version of the library.
#[unsafe(no_mangle)]
pub extern "C" fn cutline_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CStr;

    #[test]
    fn a_panic_does_not_leave_the_library() {
        let outcome = call(-1, || panic!("on purpose"));
        assert_eq!((outcome, cutline_error_code()), (-1, ErrorCode::Internal as c_int));
        // SAFETY: the text is there until the next call of this thread.
        let text = unsafe { CStr::from_ptr(cutline_error()) }.to_str().unwrap();
        assert!(text.contains("defect"), "{text}");
        assert_eq!(io::Error::last_os_error().raw_os_error(), Some(libc::EIO));
    }

    #[test]
    fn errors_keep_the_systems_number() {
        let of = |error: io::Error| Failure::from(error).errno;
        assert_eq!(of(io::Error::from_raw_os_error(libc::ENOBUFS)), libc::ENOBUFS);
        assert_eq!(of(io::ErrorKind::WouldBlock.into()), libc::EAGAIN);
        let system = QosError::System { doing: "cannot", source: io::Error::from_raw_os_error(libc::EMFILE) };
        assert_eq!(Failure::from(system).errno, libc::EMFILE);
        assert_eq!(Failure::argument("a\0b").text, "a\0b");
    }
}
