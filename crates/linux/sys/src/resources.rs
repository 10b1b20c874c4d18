//! Resource limits of this process, and memory that it returns.
#![expect(unsafe_code, reason = "mallopt, which no safe crate wraps")]

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Blocks of memory from this size on are given back as soon as they are free, bytes.
#[cfg(target_env = "gnu")]
const LARGE: i32 = 256 << 10;

/// Raises the limit of open descriptors as far as the system allows. The default of 1024 is for programs that use `select` (getrlimit(2)).
/// A program that starts others must not call this.
pub fn allow_most_descriptors() {
    let limit = getrlimit(Resource::Nofile);
    // It may be raised to the maximum without a privilege.
    let _unchanged = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}

/// Makes the allocator return large blocks of memory to the system as soon as they are free. GNU's allocator otherwise keeps blocks of the size
/// of those that were freed before, up to 32 MiB (mallopt(3)), and with them each page that any of their owners has touched: a service
/// with many sockets that come and go then grows to the whole size of their buffers.
pub fn return_large_blocks() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it only sets a number of the allocator, which has a lock of its own.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The memory of this process, kB.
    fn resident() -> usize {
        let text = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.split_whitespace().next().unwrap().parse().unwrap()
    }

    #[test]
    #[cfg_attr(miri, ignore = "needs the kernel's count of pages")]
    #[expect(clippy::disallowed_methods, reason = "memory that other tests give back is no event")]
    fn large_blocks_are_given_back() {
        return_large_blocks();
        let before = resident();
        // One that was freed decides about those to come, unless it is set otherwise.
        drop(vec![1_u8; 30 << 20]);
        // An allocation behind a block keeps it in the heap.
        let both: Vec<_> = (0..10).map(|_| (vec![1_u8; 8 << 20], vec![1_u8; 1000])).collect();
        let (large, small): (Vec<_>, Vec<_>) = both.into_iter().unzip();
        drop(large);
        // Tests of other threads have memory for a moment, too.
        let is_given_back = || resident() < before + 20_000;
        for _ in 0..3000 {
            if is_given_back() {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        assert!(is_given_back(), "{} kB, {before} before", resident());
        drop(small);
    }
}
