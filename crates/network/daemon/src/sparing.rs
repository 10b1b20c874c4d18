//! A value that takes long to get, and is got again only after ten times as long.

use cutline_sys::now;
use cutline_units::Instant;

/// Share of the time that may be spent on the measurement: one part in so many.
const SHARE: u64 = 10;

/// The value, and when it may be got again.
#[derive(Debug, Default)]
pub struct Sparing<T> {
    value: Option<(T, Instant)>,
}

impl<T> Sparing<T> {
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
        let mut sparing = Sparing::default();
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
        assert_eq!(*sparing.get(slow(1)), 1);
        let again = *sparing.get(|| 2);
        // It is kept for half a second at least, and this machine may have taken longer.
        assert!(again == 1 || now() >= begun + Duration::from_millis(550));
        while now() < begun + Duration::from_millis(550) || *sparing.get(|| 3) == 1 {
            std::thread::yield_now();
        }
        assert_ne!(*sparing.get(|| 3), 1);
    }
}
