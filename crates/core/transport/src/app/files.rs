//! Files, one after the other: each begins a think time after the last has been delivered.
//!
//! In short transfers the share of slow start and of small windows is large, so they show the effect of a queue on "mice".
//! The latency is the time from the first write of a file to its last byte in order at the receiver. The application needs
//! a reliable transport without a bounded send buffer.

use super::ranges::{FILES, TIMES, seconds};
use super::{Application, Completion, TrafficSource, Write};
use cutline_params::Parameters;
use cutline_units::{Distribution, Instant, RandomStream};

/// The parameters of a source of files.
#[derive(Clone, Copy, Debug, PartialEq, Parameters)]
pub struct FilesParams {
    /// Size of a file; a draw below 1 B counts as 1 B.
    #[param(example = Distribution::Fixed(100_000.0), range = FILES, unit = "B")]
    pub size: Distribution,
    /// Time from a file's delivery to the next file.
    #[param(default = Distribution::Fixed(0.0), range = TIMES, unit = "s", source = "ours: one after the other")]
    pub think_time: Distribution,
}

/// A running source of files.
#[derive(Clone, Debug)]
pub struct Files {
    params: FilesParams,
    deadline: Instant,
    /// Drawn with the file, so that a delivery needs no random numbers.
    think_time: f64,
    started: Instant,
    bytes: u64,
    /// The number of bytes that the receiver has when the file is complete.
    complete_at: u64,
}

impl Application for Files {
    type Params = FilesParams;

    const NAME: &'static str = "files";
    const TITLE: &'static str = "Files, one after the other";
    const SOURCE: &'static str = "short-lived transfers";
    const WAITS_FOR_DELIVERY: bool = true;

    /// Starts the first file at `at`.
    fn start(params: &FilesParams, at: Instant, _random: &mut RandomStream) -> Self {
        Self { params: *params, deadline: at, think_time: 0.0, started: at, bytes: 0, complete_at: 0 }
    }
}

impl TrafficSource for Files {
    /// Start of the next file; [`Instant::FAR_FUTURE`] during a transfer.
    #[inline]
    fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Starts a file.
    fn poll(&mut self, now: Instant, random: &mut RandomStream) -> Option<Write> {
        if now < self.deadline {
            return None;
        }
        self.bytes = (self.params.size.sample(random).round() as u64).max(1);
        self.think_time = self.params.think_time.sample(random);
        self.complete_at += self.bytes;
        self.started = now;
        self.deadline = Instant::FAR_FUTURE;
        Some(Write::Bytes(self.bytes))
    }

    fn on_delivered(&mut self, now: Instant, total: u64) -> Option<Completion> {
        if self.deadline != Instant::FAR_FUTURE || total < self.complete_at {
            return None;
        }
        self.deadline = now + seconds(self.think_time);
        Some(Completion { started: self.started, latency: now - self.started, bytes: self.bytes })
    }
}
