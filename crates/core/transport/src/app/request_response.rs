//! Web-like requests and responses: a reader requests a page, receives the main object, requests the embedded objects,
//! reads, and requests the next page.
//!
//! The structure is that of Mah, "An Empirical Model of HTTP Network Traffic" (INFOCOM 1997). Barford and Crovella
//! (SIGMETRICS 1998) have objects with a lognormal body (mu 9.357, sigma 1.318: median 11.58 KB, mean 27.6 KB), embedded
//! objects by Pareto (shape 2.43, minimum 1: mean 1.70) and think times by Pareto (shape 1.5, minimum 1 s). All embedded
//! objects are requested at once when the main object has arrived, as HTTP/2 does on one connection. A request reaches the
//! server after `request_delay`; its packets are not sent.
//!
//! A page has two completions: the main object, and all embedded objects together, if there are any. The latency is the
//! time from the request to the last byte in order at the receiver. The application needs a reliable transport without a
//! bounded send buffer.

use super::ranges::{DAY, FILES, TIMES, seconds};
use super::{Application, Completion, TrafficSource, Write};
use cutline_params::Parameters;
use cutline_units::{Distribution, Duration, Instant, RandomStream};

/// The largest number of objects in a page.
const MOST_EMBEDDED: f64 = 1000.0;

/// The parameters of a reader of pages.
#[derive(Clone, Copy, Debug, PartialEq, Parameters)]
pub struct RequestResponseParams {
    /// Size of an object; a draw below 1 B counts as 1 B.
    #[param(example = Distribution::Lognormal { median: 11_580.0, sigma: 1.318 }, range = FILES, unit = "B")]
    pub object: Distribution,
    /// Number of objects embedded in a page, rounded down, at most 1000.
    #[param(default = Distribution::Fixed(0.0), range = (0.0, 1e6), source = "ours: a page is one object")]
    pub embedded: Distribution,
    /// Time from a page's last byte to the next request.
    #[param(default = Distribution::Fixed(0.0), range = TIMES, unit = "s", source = "ours: one after the other")]
    pub think_time: Distribution,
    /// Time that a request takes to the server.
    #[param(default = Duration::ZERO, range = (Duration::ZERO, DAY), source = "ours: the server is near")]
    pub request_delay: Duration,
}

/// The state of the reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Reading: the next request leaves at this time.
    Thinking(Instant),
    /// A request reaches the server at this time.
    Requested(Instant),
    /// The response is being transferred.
    Receiving,
}

/// A reader of pages, and the server that answers it.
#[derive(Clone, Debug)]
pub struct RequestResponse {
    params: RequestResponseParams,
    state: State,
    /// Bytes of the main object and of the embedded ones, until they are written.
    main: u64,
    embedded: u64,
    think_time: f64,
    started: Instant,
    bytes: u64,
    complete_at: u64,
}

impl Application for RequestResponse {
    type Params = RequestResponseParams;

    const NAME: &'static str = "request-response";
    const TITLE: &'static str = "Pages with their objects";
    const SOURCE: &'static str = "Mah 1997; Barford and Crovella 1998";
    const WAITS_FOR_DELIVERY: bool = true;

    /// Starts the first request at `at`.
    fn start(params: &RequestResponseParams, at: Instant, _random: &mut RandomStream) -> Self {
        Self {
            params: *params,
            state: State::Thinking(at),
            main: 0,
            embedded: 0,
            think_time: 0.0,
            started: at,
            bytes: 0,
            complete_at: 0,
        }
    }
}

impl TrafficSource for RequestResponse {
    /// Time of the next request or response; [`Instant::FAR_FUTURE`] during a transfer.
    fn deadline(&self) -> Instant {
        match self.state {
            State::Thinking(until) | State::Requested(until) => until,
            State::Receiving => Instant::FAR_FUTURE,
        }
    }

    /// Returns the server's write that is due by `now`.
    fn poll(&mut self, now: Instant, random: &mut RandomStream) -> Option<Write> {
        if let State::Thinking(until) = self.state
            && until <= now
        {
            self.draw_page(random);
            self.request(now);
        }
        match self.state {
            State::Requested(arrives) if arrives <= now => Some(Write::Bytes(self.respond())),
            _ => None,
        }
    }

    fn on_delivered(&mut self, now: Instant, total: u64) -> Option<Completion> {
        if self.state != State::Receiving || total < self.complete_at {
            return None;
        }
        let done = Completion { started: self.started, latency: now - self.started, bytes: self.bytes };
        if self.embedded > 0 {
            self.request(now);
        } else {
            self.state = State::Thinking(now + seconds(self.think_time));
        }
        Some(done)
    }
}

impl RequestResponse {
    /// Draws the whole next page, so that a delivery needs no random numbers.
    fn draw_page(&mut self, rng: &mut RandomStream) {
        let object = |rng: &mut RandomStream| (self.params.object.sample(rng).round() as u64).max(1);
        let main = object(rng);
        let count = self.params.embedded.sample(rng).min(MOST_EMBEDDED) as u64;
        let embedded = (0..count).map(|_| object(rng)).sum();
        (self.main, self.embedded) = (main, embedded);
        self.think_time = self.params.think_time.sample(rng);
    }

    fn request(&mut self, now: Instant) {
        self.started = now;
        self.state = State::Requested(now + self.params.request_delay);
    }

    /// Handles the arrival of the main object, then of all embedded ones.
    fn respond(&mut self) -> u64 {
        self.bytes = if self.main > 0 { self.main } else { std::mem::take(&mut self.embedded) };
        self.main = 0;
        self.complete_at += self.bytes;
        self.state = State::Receiving;
        self.bytes
    }
}
