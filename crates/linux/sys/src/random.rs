//! Random bytes of the kernel (getrandom(2)).

use rustix::rand::{GetRandomFlags, getrandom};
use std::io;

/// Returns unpredictable random bytes. Soon after the start of the machine it waits until the kernel has enough entropy.
///
/// # Errors
/// When the kernel has none, such as under a seccomp filter that refuses the call.
pub fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    let mut filled = 0;
    while filled < N {
        // Only more than 256 bytes may come in parts.
        filled += getrandom(&mut bytes[filled..], GetRandomFlags::empty())?;
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    #[test]
    fn all_bytes_are_random() {
        let [first, second]: [[u8; 600]; 2] = [super::random().unwrap(), super::random().unwrap()];
        assert_ne!(first[..16], second[..16]);
        assert_ne!(first[584..], second[584..]);
    }
}
