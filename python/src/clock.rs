//! The time of objects that are stepped by hand: each call passes the time, in seconds.

use crate::errors;
use cutline_units::{Duration, Instant};
use pyo3::prelude::*;

/// The latest time, s. Nanoseconds are exact in a float up to some 100 days.
const END_S: f64 = 1e9;

/// Time of the last call. It never decreases.
#[derive(Debug)]
pub struct Clock {
    now: Instant,
}

impl Clock {
    /// Creates a clock at 0 s.
    pub const fn new() -> Self {
        Self { now: Instant::ZERO }
    }

    /// Advances the time.
    pub fn at(&mut self, now: f64) -> PyResult<Instant> {
        let allowed = (0.0..END_S).contains(&now);
        let instant = Instant::from_nanos((now * 1e9).round() as u64);
        if !allowed || instant < self.now {
            let earliest = self.now.as_secs_f64();
            let message = format!(
                "{now} is not allowed: expected seconds from {earliest}, the time of the last call, below 1e9"
            );
            return Err(errors::argument("now", &message));
        }
        self.now = instant;
        Ok(instant)
    }
}

/// Returns a time other than that of a call.
pub fn instant(parameter: &'static str, seconds: f64) -> PyResult<Instant> {
    duration(parameter, seconds).map(|since| Instant::ZERO + since)
}

/// Returns a length of time.
pub fn duration(parameter: &'static str, seconds: f64) -> PyResult<Duration> {
    if !(0.0..END_S).contains(&seconds) {
        let message = format!("{seconds} is not allowed: expected seconds from 0, below 1e9");
        return Err(errors::argument(parameter, &message));
    }
    Ok(Duration::from_nanos((seconds * 1e9).round() as u64))
}

/// Returns a deadline in seconds; `None` if there is none.
pub fn deadline(at: Instant) -> Option<f64> {
    (at != Instant::FAR_FUTURE).then(|| at.as_secs_f64())
}
