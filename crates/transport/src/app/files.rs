//! Files, one after the other: each begins a think time after the last has been delivered.
//!
//! With short-lived transfers the share of slow start grows, and with it the share of small windows: what a
//! queue does to "mice" shows here. Latency counts from the file's first write to its last byte in order at
//! the receiver. Needs a reliable transport without a bounded send buffer.

use cutline_units::{Instant, RandomStream};

use super::on_off::seconds;
use super::{Completion, Distribution};
use cutline_params::ParameterError;

/// What is set for a source of files.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FilesParams {
    /// Size of a file, bytes; a draw below 1 counts as 1.
    pub size: Distribution,
    /// Time from a delivery to the next file, seconds.
    pub think: Distribution,
}

/// A source of files at work.
#[derive(Clone, Debug)]
pub struct Files {
    params: FilesParams,
    deadline: Instant,
    /// Drawn with the file, so that a delivery needs no random numbers.
    think: f64,
    started: Instant,
    bytes: u64,
    /// What the receiver has when the file is complete.
    complete_at: u64,
}

impl FilesParams {
    /// Checks every field against its range.
    ///
    /// # Errors
    /// The first field that is out of range, with its value and what is allowed.
    pub fn validate(&self) -> Result<(), ParameterError> {
        self.size.validate("size")?;
        self.think.validate("think")
    }
}

impl Files {
    /// A source whose first file begins at `at`.
    pub const fn new(params: &FilesParams, at: Instant) -> Self {
        Self { params: *params, deadline: at, think: 0.0, started: at, bytes: 0, complete_at: 0 }
    }

    /// When the next file begins; [`Instant::FAR_FUTURE`] while one is on its way.
    pub const fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Begins a file and answers its size, bytes.
    pub fn begin(&mut self, now: Instant, rng: &mut RandomStream) -> u64 {
        self.bytes = (self.params.size.sample(rng).round() as u64).max(1);
        self.think = self.params.think.sample(rng);
        self.complete_at += self.bytes;
        self.started = now;
        self.deadline = Instant::FAR_FUTURE;
        self.bytes
    }

    /// The receiver has `total` bytes; the file, if that was its last.
    pub fn on_delivered(&mut self, now: Instant, total: u64) -> Option<Completion> {
        if self.deadline != Instant::FAR_FUTURE || total < self.complete_at {
            return None;
        }
        self.deadline = now + seconds(self.think);
        Some(Completion { started: self.started, latency: now - self.started, bytes: self.bytes })
    }
}
