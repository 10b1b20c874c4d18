//! Events, the MIB, and requests of another specification.

use crate::borrow;
use crate::error::{Failure, call};
use crate::options;
use crate::socket::Socket;
use cutline_bindings::{Mib, Options, ReservationEvent, SessionEvent};
use std::ffi::{c_int, c_void};
use std::ptr;
use std::time::Duration;

/// Takes the next event of a connection. The call waits for at most `timeout_ms`; 0 does not wait, and -1 waits without a limit.
/// `event->size` must be set to sizeof *event. Returns 1, or 0 if there was no event.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cutline_next_event(
    socket: *mut Socket,
    event: *mut SessionEvent,
    timeout_ms: c_int,
) -> c_int {
    call(-1, || {
        // SAFETY: the caller of a function of C guarantees that its arguments are valid.
        let socket = unsafe { borrow(socket, "socket") }?;
        // Before the event is taken, so that none is lost.
        // SAFETY: as above.
        unsafe { room(event, "event") }?;
        let time = u64::try_from(timeout_ms).map_or(Duration::MAX, Duration::from_millis);
        match socket.connection("events")?.next_event(time)? {
            Some(found) => {
                // SAFETY: as above.
                unsafe { fill(&SessionEvent::from(&found), event, "event") }?;
                Ok(1)
            }
            None => Ok(0),
        }
    })
}

/// An event handler of C.
pub type Handler = Option<unsafe extern "C" fn(event: *const SessionEvent, data: *mut c_void)>;

/// Data pointer of a handler, which is passed to the thread that calls it.
struct Data(*mut c_void);

// SAFETY: it is never read here; the caller promises that the thread of the library may have it.
unsafe impl Send for Data {}

impl Data {
    const fn get(&self) -> *mut c_void {
        self.0
    }
}

/// Sets the event handler of a connection; a null pointer removes it. The handler is called first with the events that were not
/// taken yet, and then with each new event. `data` is passed to the handler. cutline_next_event() still returns the events, too.
/// A thread of the library, which serves all connections, calls the handler. The handler may call all functions of this library
/// except cutline_close() of this socket, and must return soon. The event is valid until the handler returns. When this call or
/// cutline_close() returns, an earlier handler no longer runs, unless the handler itself makes the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cutline_on_event(socket: *mut Socket, handler: Handler, data: *mut c_void) -> c_int {
    call(-1, || {
        // SAFETY: the caller of a function of C promises what its arguments are.
        let socket = unsafe { borrow(socket, "socket") }?;
        let Some(handler) = handler else {
            socket.connection("events")?.remove_handler();
            return Ok(0);
        };
        let data = Data(data);
        socket.connection("events")?.on_event(move |found| {
            let event = SessionEvent::from(&found);
            // SAFETY: the caller promises that the function may be called so until it is removed.
            unsafe { handler(&raw const event, data.get()) };
        });
        Ok(0)
    })
}

/// Reads the state and the measurements of a connection. `mib->size` must be set to sizeof *mib.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cutline_get_mib(socket: *mut Socket, mib: *mut Mib) -> c_int {
    call(-1, || {
        // SAFETY: the caller of a function of C promises what its arguments are.
        let socket = unsafe { borrow(socket, "socket") }?;
        let found = Mib::from(&socket.connection("the MIB")?.mib());
        // SAFETY: as above.
        unsafe { fill(&found, mib, "mib") }?;
        Ok(0)
    })
}

/// Takes the next event of a connection's reservation, without waiting. `event->size` must be set to sizeof *event. Returns 1, or
/// 0 if there was no event; without the option `service` there are none. The state of the reservation is in the MIB.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cutline_next_reservation_event(
    socket: *mut Socket,
    event: *mut ReservationEvent,
) -> c_int {
    call(-1, || {
        // SAFETY: the caller of a function of C promises what its arguments are.
        let socket = unsafe { borrow(socket, "socket") }?;
        // Before the event is taken, so that none is lost.
        // SAFETY: as above.
        unsafe { room(event, "event") }?;
        let Some(found) = socket.connection("events")?.reservation_event() else { return Ok(0) };
        // SAFETY: as above.
        unsafe { fill(&ReservationEvent::from(&found), event, "event") }?;
        Ok(1)
    })
}

/// Requests the specification of these options from the peer. The outcome is an event. Until then, the previous agreement holds.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cutline_renegotiate(socket: *mut Socket, options: *const Options) -> c_int {
    call(-1, || {
        // SAFETY: the caller of a function of C promises what its arguments are.
        let (socket, options) = unsafe { (borrow(socket, "socket")?, options::or_default(options)) };
        let specification = options.specification().map_err(Failure::argument)?;
        socket.connection("negotiating")?.renegotiate(specification);
        Ok(0)
    })
}

/// Returns the number of bytes of a struct for which the caller has room.
///
/// # Safety
/// A pointer that is not null must be to a struct that begins with its size, of as many bytes.
unsafe fn room<T>(to: *const T, what: &str) -> Result<usize, Failure> {
    if to.is_null() {
        return Err(Failure::null(what));
    }
    // SAFETY: every such struct begins with its size.
    let size = unsafe { to.cast::<usize>().read() };
    let (least, most) = (size_of::<usize>(), 1 << 20);
    if !(least..=most).contains(&size) {
        let allowed = format!("{what}.size = {size}: set it to the size of the struct, {}", size_of::<T>());
        return Err(Failure::argument(allowed));
    }
    Ok(size)
}

/// Fills a struct of the caller, which may be that of an earlier or a later version: as much as both have. Its size becomes the number of
/// bytes filled.
///
/// # Safety
/// As [`room`].
unsafe fn fill<T>(value: &T, to: *mut T, what: &str) -> Result<(), Failure> {
    // SAFETY: the caller's promise.
    let bytes = unsafe { room(to, what) }?.min(size_of::<T>());
    // SAFETY: no more than either has is copied, and the size is at the beginning.
    unsafe {
        ptr::copy_nonoverlapping(ptr::from_ref(value).cast::<u8>(), to.cast(), bytes);
        to.cast::<usize>().write(bytes);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[repr(C)]
    #[derive(Debug, PartialEq)]
    struct Two {
        size: usize,
        value: u64,
    }

    #[test]
    fn callers_of_other_versions_get_the_common_fields() {
        let value = Two { size: 16, value: 7 };
        let filled = |size| {
            let mut to = [size, 99, 99];
            // SAFETY: there is room for the struct.
            let outcome = unsafe { fill(&value, to.as_mut_ptr().cast(), "it") };
            outcome.map(|()| to)
        };
        assert_eq!(filled(16).unwrap(), [16, 7, 99]);
        assert_eq!(filled(8).unwrap(), [8, 99, 99], "an earlier version, with the size alone");
        assert_eq!(filled(24).unwrap(), [16, 7, 99], "a later version");
        for wrong in [0, 7, usize::MAX] {
            assert!(filled(wrong).is_err());
        }
    }
}
