//! Files, one after the other: each begins a think time after the last has been delivered.
//!
//! With short-lived transfers the share of slow start grows, and with it the share of small windows: what a
//! queue does to "mice" shows here. Latency counts from the file's first write to its last byte in order at
//! the receiver. Needs a reliable transport without a bounded send buffer.

use super::ranges::{FILES, TIMES, seconds};
use super::{Application, Completion, TrafficSource, Write};
use cutline_params::Parameters;
use cutline_units::{Distribution, Instant, RandomStream};

/// What is set for a source of files.
#[derive(Clone, Copy, Debug, PartialEq, Parameters)]
pub struct FilesParams {
    /// Size of a file; a draw below 1 B counts as 1 B.
    #[param(example = Distribution::Fixed(100_000.0), range = FILES, unit = "B")]
    pub size: Distribution,
    /// Time from a file's delivery to the next file.
    #[param(default = Distribution::Fixed(0.0), range = TIMES, unit = "s", source = "ours: one after the other")]
    pub think_time: Distribution,
}

/// A source of files at work.
#[derive(Clone, Debug)]
pub struct Files {
    params: FilesParams,
    deadline: Instant,
    /// Drawn with the file, so that a delivery needs no random numbers.
    think_time: f64,
    started: Instant,
    bytes: u64,
    /// What the receiver has when the file is complete.
    complete_at: u64,
}

impl Application for Files {
    type Params = FilesParams;

    const NAME: &'static str = "files";
    const TITLE: &'static str = "Files, one after the other";
    const SOURCE: &'static str = "short-lived transfers";
    const WAITS_FOR_DELIVERY: bool = true;

    /// The first file begins at `at`.
    fn start(params: &FilesParams, at: Instant, _random: &mut RandomStream) -> Self {
        Self { params: *params, deadline: at, think_time: 0.0, started: at, bytes: 0, complete_at: 0 }
    }
}

impl TrafficSource for Files {
    /// When the next file begins; [`Instant::FAR_FUTURE`] while one is on its way.
    #[inline]
    fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Begins a file.
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
