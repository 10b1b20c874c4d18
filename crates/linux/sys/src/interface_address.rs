//! The interface that has an address of this host (getifaddrs(3)).
#![expect(unsafe_code, reason = "getifaddrs, whose result is a list of pointers")]

use crate::datagrams::{NAME, address};
use crate::sockopt::check;
use std::ffi::CStr;
use std::io;
use std::mem::size_of;
use std::net::IpAddr;
use std::ptr::{copy_nonoverlapping, null_mut};

/// Returns the name of the interface that has an address, in the network namespace of the calling thread; `None` if none has it.
///
/// # Errors
/// When the kernel does not list the addresses.
pub(crate) fn name_of_address(ip: IpAddr) -> io::Result<Option<String>> {
    let mut first = null_mut();
    // SAFETY: the function writes a pointer to a list, or fails and writes nothing.
    check(unsafe { libc::getifaddrs(&raw mut first) }.into())?;
    let (mut next, mut found) = (first, None);
    while !next.is_null() && found.is_none() {
        // SAFETY: it is an element of the list, which lives until it is freed below.
        let entry = unsafe { *next };
        next = entry.ifa_next;
        if entry.ifa_addr.is_null() {
            continue;
        }
        // SAFETY: an address begins with its family.
        let length = match i32::from(unsafe { (*entry.ifa_addr).sa_family }) {
            libc::AF_INET => size_of::<libc::sockaddr_in>(),
            libc::AF_INET6 => size_of::<libc::sockaddr_in6>(),
            _ => continue,
        };
        let mut name = [0; NAME];
        // SAFETY: an address of this family is so long, and so is the room for it.
        unsafe { copy_nonoverlapping(entry.ifa_addr.cast::<u8>(), name.as_mut_ptr(), length) };
        if address(&name).is_some_and(|address| address.ip() == ip.to_canonical()) {
            // SAFETY: the name of an entry is a string that ends with a zero and lives as long as the list.
            found = Some(unsafe { CStr::from_ptr(entry.ifa_name) }.to_string_lossy().into_owned());
        }
    }
    // SAFETY: the list is freed once, and nothing of it is used afterwards.
    unsafe { libc::freeifaddrs(first) };
    Ok(found)
}
