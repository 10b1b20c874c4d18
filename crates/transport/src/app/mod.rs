//! Applications: what writes into a sender, and what waits for its bytes to arrive.
//!
//! Whoever drives one asks `deadline`, calls `poll` from then on until it answers `None`, hands each [`Write`]
//! to the sender, and tells `on_delivered` how many bytes the receiver has in order:
//!
//! | application | writes | waits for delivery | source |
//! | --- | --- | --- | --- |
//! | [`Bulk`] | without end | no | |
//! | [`Cbr`] | a message each interval | no | |
//! | [`OnOff`] | at a constant rate, in bursts | no | Willinger et al. 1997 for Pareto bursts |
//! | [`Poisson`] | messages at random times | no | |
//! | [`Trace`] | what was recorded | no | |
//! | [`talk_spurt`] | an on/off source with the numbers of speech | no | ITU-T P.59 |
//! | [`Files`] | one file after the other | yes | |
//! | [`RequestResponse`] | pages with their objects | yes | Mah 1997; Barford and Crovella 1998 |
//!
//! All chance comes from the stream that is handed in, and only in `start` and `poll`.

mod cbr;
mod distribution;
mod files;
mod on_off;
mod poisson;
mod request_response;
pub mod talk_spurt;
mod trace;

pub use cbr::{Cbr, CbrParams};
pub use distribution::Distribution;
pub use files::{Files, FilesParams};
pub use on_off::{OnOff, OnOffParams};
pub use poisson::{Poisson, PoissonParams};
pub use request_response::{RequestResponse, RequestResponseParams};
pub use trace::{Recorded, Trace, TraceParams};

use cutline_units::{Duration, Instant, RandomStream};

use cutline_params::ParameterError;

/// What an application hands to its sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Write {
    /// A message of this many bytes.
    Bytes(u64),
    /// Always more (`write_unlimited`).
    Unlimited,
}

/// A file or a response that has arrived whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// When it was asked for.
    pub started: Instant,
    /// How long it took from then to its last byte in order at the receiver.
    pub latency: Duration,
    /// How long it was, bytes.
    pub bytes: u64,
}

/// What an application is.
#[derive(Clone, Debug, PartialEq)]
pub enum Params {
    /// Data without end.
    Bulk,
    /// A message each interval.
    Cbr(CbrParams),
    /// Constant-rate bursts.
    OnOff(OnOffParams),
    /// One file after the other.
    Files(FilesParams),
    /// Web-like pages.
    RequestResponse(RequestResponseParams),
    /// Speech with silence suppression.
    TalkSpurt(talk_spurt::TalkSpurtParams),
    /// Messages at random times.
    Poisson(PoissonParams),
    /// What was recorded.
    Trace(TraceParams),
}

/// An application at work.
#[derive(Clone, Debug)]
pub enum App {
    /// Data without end.
    Bulk(Bulk),
    /// A message each interval.
    Cbr(Cbr),
    /// Constant-rate bursts, speech among them.
    OnOff(OnOff),
    /// One file after the other.
    Files(Files),
    /// Web-like pages.
    RequestResponse(Box<RequestResponse>),
    /// Messages at random times.
    Poisson(Box<Poisson>),
    /// What was recorded.
    Trace(Box<Trace>),
}

/// Data without end, from the start.
#[derive(Clone, Copy, Debug)]
pub struct Bulk {
    deadline: Instant,
}

impl Params {
    /// Checks every field against its range.
    ///
    /// # Errors
    /// The first field that is out of range, with its value and what is allowed.
    pub fn validate(&self) -> Result<(), ParameterError> {
        match self {
            Self::Bulk => Ok(()),
            Self::Cbr(params) => params.validate(),
            Self::OnOff(params) => params.validate(),
            Self::Files(params) => params.validate(),
            Self::RequestResponse(params) => params.validate(),
            Self::TalkSpurt(params) => params.validate(),
            Self::Poisson(params) => params.validate(),
            Self::Trace(params) => params.validate(),
        }
    }

    /// The application, beginning at `at`. The parameters must be valid.
    pub fn start(&self, at: Instant, rng: &mut RandomStream) -> App {
        debug_assert_eq!(self.validate(), Ok(()), "validate parameters where they are read");
        match self {
            Self::Bulk => App::Bulk(Bulk { deadline: at }),
            Self::Cbr(params) => App::Cbr(Cbr::new(params, at, rng)),
            Self::OnOff(params) => App::OnOff(OnOff::new(params, at, rng)),
            Self::Files(params) => App::Files(Files::new(params, at)),
            Self::RequestResponse(params) => App::RequestResponse(Box::new(RequestResponse::new(params, at))),
            Self::TalkSpurt(params) => App::OnOff(OnOff::new(&params.on_off(), at, rng)),
            Self::Poisson(params) => App::Poisson(Box::new(Poisson::new(params, at, rng))),
            Self::Trace(params) => App::Trace(Box::new(Trace::new(params, at))),
        }
    }

    /// Whether it waits for every byte to arrive, so that only a reliable transport can carry it.
    pub const fn needs_reliability(&self) -> bool {
        matches!(self, Self::Files(_) | Self::RequestResponse(_))
    }
}

impl App {
    /// When it next has something to write; [`Instant::FAR_FUTURE`] while it waits for delivery, or for ever.
    #[inline]
    pub fn deadline(&self) -> Instant {
        match self {
            Self::Bulk(app) => app.deadline,
            Self::Cbr(app) => app.deadline(),
            Self::OnOff(app) => app.deadline(),
            Self::Files(app) => app.deadline(),
            Self::RequestResponse(app) => app.deadline(),
            Self::Poisson(app) => app.deadline(),
            Self::Trace(app) => app.deadline(),
        }
    }

    /// The next write that is due by `now`; ask until there is none.
    pub fn poll(&mut self, now: Instant, rng: &mut RandomStream) -> Option<Write> {
        if now < self.deadline() {
            return None;
        }
        match self {
            Self::Bulk(app) => Some(app.begin()),
            Self::Cbr(app) => Some(Write::Bytes(app.send())),
            Self::OnOff(app) => app.poll(now, rng).map(Write::Bytes),
            Self::Files(app) => Some(Write::Bytes(app.begin(now, rng))),
            Self::RequestResponse(app) => app.poll(now, rng).map(Write::Bytes),
            Self::Poisson(app) => Some(Write::Bytes(app.send(rng))),
            Self::Trace(app) => Some(Write::Bytes(app.send())),
        }
    }

    /// The receiver has `total` bytes in order, counted from the flow's start. What that completes, if it
    /// completes something.
    #[inline]
    pub fn on_delivered(&mut self, now: Instant, total: u64) -> Option<Completion> {
        match self {
            Self::Bulk(_) | Self::Cbr(_) | Self::OnOff(_) | Self::Poisson(_) | Self::Trace(_) => None,
            Self::Files(app) => app.on_delivered(now, total),
            Self::RequestResponse(app) => app.on_delivered(now, total),
        }
    }
}

impl Bulk {
    fn begin(&mut self) -> Write {
        self.deadline = Instant::FAR_FUTURE;
        Write::Unlimited
    }
}

#[cfg(test)]
#[path = "app_tests.rs"]
mod tests;
