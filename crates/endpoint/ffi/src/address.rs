//! Socket addresses as C has them.

use crate::error::Failure;
use libc::{
    AF_INET, AF_INET6, in_addr, in6_addr, sa_family_t, sockaddr, sockaddr_in, sockaddr_in6, socklen_t,
};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::ptr;

/// The address at a pointer.
///
/// # Safety
/// A pointer that is not null must be to `length` bytes.
pub unsafe fn read(address: *const sockaddr, length: socklen_t) -> Result<SocketAddr, Failure> {
    let length = length as usize;
    if address.is_null() {
        return Err(Failure::null("address"));
    }
    let too_short = |least: usize| {
        Failure::argument(format!("an address of {length} bytes: this family has at least {least}"))
    };
    if length < size_of::<sa_family_t>() {
        return Err(too_short(size_of::<sa_family_t>()));
    }
    // SAFETY: the family is at the beginning, and as many bytes are there; they need not be aligned.
    let family = i32::from(unsafe { address.cast::<sa_family_t>().read_unaligned() });
    match family {
        AF_INET if length >= size_of::<sockaddr_in>() => {
            // SAFETY: as many bytes are there, and any are an address.
            let it = unsafe { address.cast::<sockaddr_in>().read_unaligned() };
            let ip = Ipv4Addr::from(it.sin_addr.s_addr.to_ne_bytes());
            Ok(SocketAddrV4::new(ip, u16::from_be(it.sin_port)).into())
        }
        AF_INET6 if length >= size_of::<sockaddr_in6>() => {
            // SAFETY: as many bytes are there, and any are an address.
            let it = unsafe { address.cast::<sockaddr_in6>().read_unaligned() };
            let (ip, port) = (Ipv6Addr::from(it.sin6_addr.s6_addr), u16::from_be(it.sin6_port));
            Ok(SocketAddrV6::new(ip, port, it.sin6_flowinfo, it.sin6_scope_id).into())
        }
        AF_INET => Err(too_short(size_of::<sockaddr_in>())),
        AF_INET6 => Err(too_short(size_of::<sockaddr_in6>())),
        family => {
            Err(Failure::argument(format!("address family {family}: allowed are AF_INET and AF_INET6")))
        }
    }
}

/// Writes an address as getpeername does: as much as fits, and its whole length. Both pointers may be null.
///
/// # Safety
/// `length` must be null or to a number, and `room` then null or to as many bytes.
pub unsafe fn write(address: SocketAddr, room: *mut sockaddr, length: *mut socklen_t) -> Result<(), Failure> {
    if room.is_null() {
        return Ok(());
    }
    if length.is_null() {
        return Err(Failure::null("length"));
    }
    match address {
        SocketAddr::V4(it) => {
            let it = sockaddr_in {
                sin_family: AF_INET as sa_family_t,
                sin_port: it.port().to_be(),
                sin_addr: in_addr { s_addr: u32::from_ne_bytes(it.ip().octets()) },
                sin_zero: [0; 8],
            };
            // SAFETY: the caller's promise.
            unsafe { copy(&it, room, length) };
        }
        SocketAddr::V6(it) => {
            let it = sockaddr_in6 {
                sin6_family: AF_INET6 as sa_family_t,
                sin6_port: it.port().to_be(),
                sin6_flowinfo: it.flowinfo(),
                sin6_addr: in6_addr { s6_addr: it.ip().octets() },
                sin6_scope_id: it.scope_id(),
            };
            // SAFETY: the caller's promise.
            unsafe { copy(&it, room, length) };
        }
    }
    Ok(())
}

/// Copies as much of an address as fits.
///
/// # Safety
/// As [`write()`]; no pointer is null.
unsafe fn copy<T>(address: &T, room: *mut sockaddr, length: *mut socklen_t) {
    // SAFETY: as many bytes are there, and no more than the address has are copied.
    unsafe {
        let bytes = (length.read() as usize).min(size_of::<T>());
        ptr::copy_nonoverlapping(ptr::from_ref(address).cast::<u8>(), room.cast(), bytes);
        length.write(size_of::<T>() as socklen_t);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::zeroed;

    #[test]
    fn written_values_are_read_back_unchanged() {
        for text in ["192.0.2.1:5004", "[2001:db8::1]:53"] {
            let address: SocketAddr = text.parse().unwrap();
            // SAFETY: all-zero bits are an address of no family.
            let mut room: libc::sockaddr_storage = unsafe { zeroed() };
            let mut length = size_of::<libc::sockaddr_storage>() as socklen_t;
            let place = (&raw mut room).cast::<sockaddr>();
            // SAFETY: there is room for any address.
            unsafe { write(address, place, &raw mut length) }.unwrap();
            // SAFETY: as many bytes are there.
            let again = [length, length - 1, 1, 0].map(|length| unsafe { read(place, length) });
            assert_eq!(again[0].as_ref().ok(), Some(&address));
            assert!(again[1..].iter().all(Result::is_err), "{again:?}");
        }
        let unix = sockaddr { sa_family: libc::AF_UNIX as sa_family_t, sa_data: [0; 14] };
        // SAFETY: as many bytes are there.
        assert!(unsafe { read(&raw const unix, size_of::<sockaddr>() as socklen_t) }.is_err());
    }

    #[test]
    fn no_more_than_there_is_room_for_is_written() {
        let mut room = [0xaa_u8; 8];
        let mut length = 4;
        let address: SocketAddr = "192.0.2.1:5004".parse().unwrap();
        // SAFETY: there is room for the four bytes that it may write.
        unsafe { write(address, room.as_mut_ptr().cast(), &raw mut length) }.unwrap();
        assert_eq!((room[3], &room[4..], length), (0x8c, &[0xaa; 4][..], 16));
    }
}
