//! Web-like requests and responses: a reader asks for a page, gets its main object, asks for the objects in
//! it, reads, and asks for the next.
//!
//! The structure is that of Mah, "An Empirical Model of HTTP Network Traffic" (INFOCOM 1997), with object
//! sizes and thinking times after Barford and Crovella (SIGMETRICS 1998). All of a page's embedded objects are
//! asked for at once when the main object is there, as HTTP/2 does on one connection. A request itself is
//! small and takes `request_delay` to reach the server; its packets are not sent.
//!
//! Two completions a page: the main object, and, when there are embedded ones, all of them; the latency of
//! each counts from its request to its last byte in order at the receiver. Needs a reliable transport without
//! a bounded send buffer.

use cutline_units::{Duration, Instant, RandomStream};

use super::on_off::seconds;
use super::{Completion, Distribution};
use cutline_params::ParameterError;

/// What is set for a reader of pages.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RequestResponseParams {
    /// Size of an object, bytes; a draw below 1 counts as 1. Default: lognormal body of Barford and Crovella,
    /// mu 9.357, sigma 1.318 (mean 27.6 kB).
    pub object: Distribution,
    /// Embedded objects of a page, rounded down. Default: Pareto of shape 2.43, least 1 (there: scale 1).
    pub embedded: Distribution,
    /// Time from a page's last byte to the next request, seconds. Default: Pareto of shape 1.5, least 1 s.
    pub think: Distribution,
    /// Time a request takes to the server. Default 0.
    pub request_delay: Duration,
}

/// What the reader is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Reading: the next request leaves at this time.
    Thinking(Instant),
    /// A request is on its way and reaches the server at this time.
    Requested(Instant),
    /// The response is on its way.
    Receiving,
}

/// A reader of pages, and the server that answers it.
#[derive(Clone, Debug)]
pub struct RequestResponse {
    params: RequestResponseParams,
    state: State,
    /// Bytes of the main object and of the embedded ones, while they are to come.
    main: u64,
    embedded: u64,
    think: f64,
    started: Instant,
    bytes: u64,
    complete_at: u64,
}

impl Default for RequestResponseParams {
    fn default() -> Self {
        Self {
            object: Distribution::Lognormal { mu: 9.357, sigma: 1.318 },
            embedded: Distribution::Pareto { shape: 2.43, scale: 1.0 },
            think: Distribution::Pareto { shape: 1.5, scale: 1.0 },
            request_delay: Duration::ZERO,
        }
    }
}

impl RequestResponseParams {
    /// Checks every field against its range.
    ///
    /// # Errors
    /// The first field that is out of range, with its value and what is allowed.
    pub fn validate(&self) -> Result<(), ParameterError> {
        self.object.validate("object")?;
        self.embedded.validate("embedded")?;
        self.think.validate("think")
    }
}

impl RequestResponse {
    /// A reader who asks for the first page at `at`.
    pub const fn new(params: &RequestResponseParams, at: Instant) -> Self {
        Self {
            params: *params,
            state: State::Thinking(at),
            main: 0,
            embedded: 0,
            think: 0.0,
            started: at,
            bytes: 0,
            complete_at: 0,
        }
    }

    /// When it next acts; [`Instant::FAR_FUTURE`] while a response is on its way.
    pub const fn deadline(&self) -> Instant {
        match self.state {
            State::Thinking(until) | State::Requested(until) => until,
            State::Receiving => Instant::FAR_FUTURE,
        }
    }

    /// What the server writes by `now`, bytes.
    pub fn poll(&mut self, now: Instant, rng: &mut RandomStream) -> Option<u64> {
        if let State::Thinking(until) = self.state
            && until <= now
        {
            self.draw_page(rng);
            self.request(now);
        }
        match self.state {
            State::Requested(arrives) if arrives <= now => Some(self.respond()),
            _ => None,
        }
    }

    /// The receiver has `total` bytes; the response, if that was its last.
    pub fn on_delivered(&mut self, now: Instant, total: u64) -> Option<Completion> {
        if self.state != State::Receiving || total < self.complete_at {
            return None;
        }
        let done = Completion { started: self.started, latency: now - self.started, bytes: self.bytes };
        if self.embedded > 0 {
            self.request(now);
        } else {
            self.state = State::Thinking(now + seconds(self.think));
        }
        Some(done)
    }

    /// Draws the next page whole, so that a delivery needs no random numbers.
    fn draw_page(&mut self, rng: &mut RandomStream) {
        let object = |rng: &mut RandomStream| (self.params.object.sample(rng).round() as u64).max(1);
        let main = object(rng);
        let count = self.params.embedded.sample(rng).min(1000.0) as u64;
        let embedded = (0..count).map(|_| object(rng)).sum();
        (self.main, self.embedded) = (main, embedded);
        self.think = self.params.think.sample(rng);
    }

    fn request(&mut self, now: Instant) {
        self.started = now;
        self.state = State::Requested(now + self.params.request_delay);
    }

    /// The main object first, then all embedded ones.
    fn respond(&mut self) -> u64 {
        self.bytes = if self.main > 0 { self.main } else { std::mem::take(&mut self.embedded) };
        self.main = 0;
        self.complete_at += self.bytes;
        self.state = State::Receiving;
        self.bytes
    }
}
