//! A value that takes long to compute. It is computed again only after ten times as long.

use cutline_sys::now;
use cutline_units::Instant;

/// Divisor of the share of time that may be spent on computing the value.
const SHARE: u64 = 10;

/// A cached value, and the time until which it is kept.
#[derive(Debug, Default)]
pub struct ThrottledCache<T> {
    value: Option<(T, Instant)>,
}

impl<T> ThrottledCache<T> {
    /// Returns the value, from `get` if the last one is old enough.
    pub fn get(&mut self, get: impl FnOnce() -> T) -> &T {
        let begun = now();
        let is_old = self.value.as_ref().is_none_or(|(_, until)| begun >= *until);
        let value = if is_old {
            let value = get();
            let ended = now();
            (value, ended + ended.saturating_since(begun) * SHARE)
        } else {
            self.value.take().expect("there is one that is not old")
        };
        &self.value.insert(value).0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutline_units::Duration;

    #[test]
    fn a_value_that_took_long_is_kept_for_ten_times_as_long() {
        let mut cache = ThrottledCache::default();
        let slow = |value| {
            move || {
                let end = now() + Duration::from_millis(50);
                while now() < end {
                    std::thread::yield_now();
                }
                value
            }
        };
        let begun = now();
        assert_eq!(*cache.get(slow(1)), 1);
        let again = *cache.get(|| 2);
        // It is kept for half a second at least, and this machine may have taken longer.
        assert!(again == 1 || now() >= begun + Duration::from_millis(550));
        while now() < begun + Duration::from_millis(550) || *cache.get(|| 3) == 1 {
            std::thread::yield_now();
        }
        assert_ne!(*cache.get(|| 3), 1);
    }
}
