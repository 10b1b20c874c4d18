//! A recorded trace: messages at the times and with the sizes that were recorded, once or over and over.
//!
//! Chance has no part in it, so every flow with the same trace and start writes the same. A trace that is repeated begins
//! again `pause` after its last message.

use super::{TrafficSource, Write};
use crate::error::require;
use cutline_params::ParameterError;
use cutline_units::{Duration, Instant, RandomStream};
use std::sync::Arc;

/// A recorded message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// When it was written, from the trace's beginning.
    pub at: Duration,
    /// Its payload, 1..1,000,000,000 bytes.
    pub bytes: u64,
}

/// What is set for a trace.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceParams {
    /// The messages in the order of their times, at least one; shared by all flows that play them.
    pub messages: Arc<[Recorded]>,
    /// The time from the last message to the first of the next round, over 0; `None`: it is played once.
    pub repeat: Option<Duration>,
}

/// A trace being played.
#[derive(Clone, Debug)]
pub struct Trace {
    params: TraceParams,
    next: usize,
    /// When this round began.
    began: Instant,
}

impl TraceParams {
    /// Checks every field against its range.
    ///
    /// # Errors
    /// The first field that is out of range, with its value and what is allowed.
    pub fn validate(&self) -> Result<(), ParameterError> {
        let messages = &self.messages;
        require(!messages.is_empty(), "messages", "none", "at least one")?;
        for message in messages.iter() {
            let fits = (1..=1_000_000_000).contains(&message.bytes);
            require(fits, "messages", format!("{} B", message.bytes), "1..1000000000 bytes each")?;
        }
        let backwards = messages.windows(2).find(|pair| pair[1].at < pair[0].at);
        let at = backwards.map_or(Duration::ZERO, |pair| pair[1].at);
        require(backwards.is_none(), "messages", at, "times that do not go backwards")?;
        let pause = self.repeat.unwrap_or(Duration::MAX);
        require(!pause.is_zero(), "repeat", pause, "over 0")
    }
}

impl Trace {
    /// A trace that begins at `at`.
    pub fn new(params: &TraceParams, at: Instant) -> Self {
        Self { params: params.clone(), next: 0, began: at }
    }
}

impl TrafficSource for Trace {
    /// When the next message is due; [`Instant::FAR_FUTURE`] after the last.
    fn deadline(&self) -> Instant {
        self.params.messages.get(self.next).map_or(Instant::FAR_FUTURE, |it| self.began.saturating_add(it.at))
    }

    /// The message that is due.
    fn poll(&mut self, now: Instant, _random: &mut RandomStream) -> Option<Write> {
        if now < self.deadline() {
            return None;
        }
        let Recorded { at, bytes } = *self.params.messages.get(self.next)?;
        self.next += 1;
        if let Some(pause) = self.params.repeat.filter(|_| self.next == self.params.messages.len()) {
            self.began = self.began.saturating_add(at).saturating_add(pause);
            self.next = 0;
        }
        Some(Write::Bytes(bytes))
    }
}
