//! Waiting.

use cutline_sys::now;
use cutline_units::Instant;

/// Waits until a time. It returns at once if the time has come.
pub fn sleep_until(time: Instant) {
    loop {
        let left = time.saturating_since(now());
        if left.is_zero() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_nanos(left.as_nanos()));
    }
}
