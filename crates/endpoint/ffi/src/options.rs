//! Options of sockets.

use crate::error::{Failure, call};
use crate::{borrow, borrow_mut};
use cutline_bindings::Options;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr;

/// A text of the caller.
///
/// # Safety
/// A pointer that is not null must be to bytes with a zero at their end.
pub unsafe fn text<'a>(pointer: *const c_char, what: &str) -> Result<&'a str, Failure> {
    if pointer.is_null() {
        return Err(Failure::null(what));
    }
    // SAFETY: the caller's promise.
    let text = unsafe { CStr::from_ptr(pointer) };
    text.to_str().map_err(|_| Failure::argument(format!("{what} is not UTF-8")))
}

/// Options in the place of a null pointer.
///
/// # Safety
/// As [`borrow`].
pub unsafe fn or_default(options: *const Options) -> Options {
    // SAFETY: the caller's promise.
    unsafe { options.as_ref() }.cloned().unwrap_or_default()
}

/// Returns new options. `class` is the class of application whose requirements both directions begin with, such as "video"; a
/// null pointer means no requirements. Free the options with cutline_options_free.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cutline_options_new(class: *const c_char) -> *mut Options {
    call(ptr::null_mut(), || {
        let mut options = Options::default();
        if !class.is_null() {
            // SAFETY: the caller of a function of C guarantees that its arguments are valid.
            let class = unsafe { text(class, "class") }?;
            options.set("class", class).map_err(Failure::argument)?;
        }
        Ok(Box::into_raw(Box::new(options)))
    })
}

/// Sets one option by the name and the text that a specification file has: cutline_options_set(o, "send.max-delay", "150 ms").
/// Options are checked against each other when a socket is created, so they can be set in any order.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cutline_options_set(
    options: *mut Options,
    name: *const c_char,
    value: *const c_char,
) -> c_int {
    call(-1, || {
        // SAFETY: the caller of a function of C promises what its arguments are.
        let (options, name, value) =
            unsafe { (borrow_mut(options, "options")?, text(name, "name")?, text(value, "value")?) };
        options.set(name, value).map_err(Failure::argument)?;
        Ok(0)
    })
}

/// Reads all options from a document, TOML or JSON. It replaces earlier options, except the key.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cutline_options_read(options: *mut Options, document: *const c_char) -> c_int {
    call(-1, || {
        // SAFETY: the caller of a function of C promises what its arguments are.
        let (options, document) = unsafe { (borrow_mut(options, "options")?, text(document, "document")?) };
        options.read(document).map_err(Failure::argument)?;
        Ok(0)
    })
}

/// Sets the key, of 32 to 4096 bytes, that the peer must prove to have.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cutline_options_set_key(
    options: *mut Options,
    key: *const c_void,
    length: usize,
) -> c_int {
    call(-1, || {
        // SAFETY: the caller of a function of C promises what its arguments are.
        let (options, key) = unsafe { (borrow_mut(options, "options")?, bytes(key, length, "key")?) };
        options.set_key(key).map_err(Failure::argument)?;
        Ok(0)
    })
}

/// Checks the options against each other, as the creation of a socket does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cutline_options_check(options: *const Options) -> c_int {
    call(-1, || {
        // SAFETY: the caller of a function of C promises what its arguments are.
        let options = unsafe { borrow(options, "options") }?;
        options.qos_options().map_err(Failure::argument)?;
        Ok(0)
    })
}

/// Frees options. Sockets that were created with them are not affected. A null pointer is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cutline_options_free(options: *mut Options) {
    call((), || {
        if !options.is_null() {
            // SAFETY: the caller promises that a call above returned it, and that it is not used again.
            drop(unsafe { Box::from_raw(options) });
        }
        Ok(())
    });
}

/// Bytes of the caller. The pointer may be null if there are none.
///
/// # Safety
/// The pointer must be to as many bytes.
pub unsafe fn bytes<'a>(pointer: *const c_void, length: usize, what: &str) -> Result<&'a [u8], Failure> {
    if length == 0 {
        return Ok(&[]);
    }
    if pointer.is_null() {
        return Err(Failure::null(what));
    }
    if isize::try_from(length).is_err() {
        return Err(Failure::argument(format!("{what} of {length} bytes: no memory is as long")));
    }
    // SAFETY: the caller's promise; the length is one that memory can have.
    Ok(unsafe { std::slice::from_raw_parts(pointer.cast(), length) })
}

/// Buffer of the caller. The pointer may be null if the length is 0.
///
/// # Safety
/// The pointer must be to as many bytes, which nothing else uses during this call.
pub unsafe fn room<'a>(pointer: *mut c_void, length: usize, what: &str) -> Result<&'a mut [u8], Failure> {
    // SAFETY: the same promise.
    let bytes = unsafe { bytes(pointer, length, what) }?;
    if bytes.is_empty() {
        return Ok(&mut []);
    }
    // SAFETY: the caller's promise; pointer and length were checked, and the slice above is no longer used. Memory that was
    // never written is not read: calls that receive only write.
    Ok(unsafe { std::slice::from_raw_parts_mut(pointer.cast(), length) })
}
