//! The congestion window and the interface of the algorithms that set it. Each algorithm is a file; an enum dispatches.

use cutline_units::{Duration, Instant};

use super::{Algorithm, Cubic, Dctcp, NewReno, Params};

/// The congestion window, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// How many bytes may be outstanding.
    pub cwnd: u64,
    /// The window grows by slow start below this threshold, and by congestion avoidance from it on.
    pub ssthresh: u64,
}

/// What an algorithm learns from an acknowledgement of new data.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Acked {
    /// Bytes newly acknowledged.
    pub(crate) bytes: u64,
    pub(crate) now: Instant,
    /// The smoothed round-trip time; zero before the first sample.
    pub(crate) srtt: Duration,
}

/// How a window grows in congestion avoidance, and how a congestion event reduces it.
pub(crate) trait CongestionControl {
    /// Increases the window in congestion avoidance: new data was acknowledged, and the window limited the sender.
    fn avoid(&mut self, window: &mut Window, acked: &Acked, mss: u64);
    /// Returns the slow start threshold after a loss or a mark with `flight` bytes outstanding. Does not set the window.
    fn congested(&mut self, window: &Window, flight: u64, mss: u64) -> u64;
    /// Handles a timeout. For the first timeout in a row, `congested` was called before.
    fn timed_out(&mut self);
    /// Handles new data acknowledged while the application, and not the window, limited the sender.
    fn application_limited(&mut self, now: Instant);
}

/// The algorithm of one connection. `NewReno` is inline because it is small; the others are boxed because they are rare.
#[derive(Clone, Debug)]
pub(crate) enum Control {
    NewReno(NewReno),
    Cubic(Box<Cubic>),
    Dctcp(Box<Dctcp>),
}

impl Control {
    pub(crate) fn new(params: &Params) -> Self {
        match params.algorithm {
            Algorithm::NewReno => Self::NewReno(NewReno::new(params.variant.avoidance)),
            Algorithm::Cubic => Self::Cubic(Box::default()),
            Algorithm::Dctcp => Self::Dctcp(Box::default()),
        }
    }

    /// Increases the window by slow start or congestion avoidance.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "as Sender::on_ack")]
    pub(crate) fn grow(&mut self, window: &mut Window, acked: &Acked, params: &Params) {
        let mss = u64::from(params.mss);
        if window.cwnd < window.ssthresh {
            // RFC 5681 eq. 2, with the limit L of RFC 3465 section 2.2.
            window.cwnd += acked.bytes.min(mss * u64::from(params.abc_limit));
        } else {
            match self {
                Self::NewReno(newreno) => newreno.avoid(window, acked, mss),
                Self::Cubic(cubic) => cubic.avoid(window, acked, mss),
                Self::Dctcp(dctcp) => dctcp.avoid(window, acked, mss),
            }
        }
    }

    pub(crate) fn congested(&mut self, window: &Window, flight: u64, mss: u64) -> u64 {
        match self {
            Self::NewReno(newreno) => newreno.congested(window, flight, mss),
            Self::Cubic(cubic) => cubic.congested(window, flight, mss),
            Self::Dctcp(dctcp) => dctcp.congested(window, flight, mss),
        }
    }

    /// Returns the slow start threshold after a mark.
    pub(crate) fn marked(&mut self, window: &Window, flight: u64, mss: u64) -> u64 {
        match self {
            Self::Dctcp(dctcp) => dctcp.reduced(window, mss),
            _ => self.congested(window, flight, mss),
        }
    }

    pub(crate) fn timed_out(&mut self) {
        match self {
            Self::NewReno(newreno) => newreno.timed_out(),
            Self::Cubic(cubic) => cubic.timed_out(),
            Self::Dctcp(dctcp) => dctcp.timed_out(),
        }
    }

    #[inline(never)]
    pub(crate) fn application_limited(&mut self, now: Instant) {
        match self {
            Self::NewReno(newreno) => newreno.application_limited(now),
            Self::Cubic(cubic) => cubic.application_limited(now),
            Self::Dctcp(dctcp) => dctcp.application_limited(now),
        }
    }
}
