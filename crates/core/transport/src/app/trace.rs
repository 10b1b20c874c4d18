//! A recorded trace: messages with recorded times and sizes, played once or repeatedly.
//!
//! There are no random numbers, so flows with the same trace and start write the same messages. A repeated trace starts
//! again `repeat` after its last message.

use super::{TrafficSource, Write};
use crate::error::require;
use cutline_params::ParameterError;
use cutline_units::{Duration, Instant, RandomStream};
use std::sync::Arc;

/// A recorded message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// Time since the start of the trace.
    pub at: Duration,
    /// Payload, 1..1,000,000,000 bytes.
    pub bytes: u64,
}

/// The parameters of a trace.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceParams {
    /// At least one message, ordered by time. All flows that play them share the list.
    pub messages: Arc<[Recorded]>,
    /// The time from the last message to the first one of the next round, above zero; `None` to play the trace once.
    pub repeat: Option<Duration>,
}

/// A trace that is being played.
#[derive(Clone, Debug)]
pub struct TracePlayback {
    params: TraceParams,
    next: usize,
    /// Start of this round.
    began: Instant,
}

impl TraceParams {
    /// Checks every field against its range.
    ///
    /// # Errors
    /// The first field that is out of range, with its value and the allowed range.
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

impl TracePlayback {
    /// Starts the trace at `at`.
    pub fn new(params: &TraceParams, at: Instant) -> Self {
        Self { params: params.clone(), next: 0, began: at }
    }
}

impl TrafficSource for TracePlayback {
    /// Time of the next message; [`Instant::FAR_FUTURE`] after the last one.
    fn deadline(&self) -> Instant {
        self.params.messages.get(self.next).map_or(Instant::FAR_FUTURE, |it| self.began.saturating_add(it.at))
    }

    /// Returns the message that is due.
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
