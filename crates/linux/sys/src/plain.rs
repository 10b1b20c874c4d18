//! Types that may be shared with the kernel.
#![expect(unsafe_code, reason = "a promise about memory layout that the compiler cannot check")]

/// A type that the kernel may read and write as bytes.
///
/// # Safety
/// Any bits must be a valid value; there must be no padding, and no pointer or file descriptor that a value owns.
pub unsafe trait Plain: Copy + 'static {}

/// Implements [`Plain`] for types that keep its promise, which the type's size also shows: that of its fields.
macro_rules! plain {
    ($($type:ty: $size:literal,)*) => {$(
        const _: () = assert!(size_of::<$type>() == $size);
        // SAFETY: an integer, or a C struct of integers whose sizes add up to the size of the whole.
        unsafe impl Plain for $type {}
    )*};
}

plain! {
    i32: 4,
    u32: 4,
    u64: 8,
    libc::packet_mreq: 16,
    libc::tpacket2_hdr: 32,
    libc::tpacket_req: 16,
    libc::tpacket_stats: 8,
    libc::ucred: 12,
    libc::xdp_desc: 16,
}

// SAFETY: bytes.
unsafe impl<const N: usize> Plain for [u8; N] {}
