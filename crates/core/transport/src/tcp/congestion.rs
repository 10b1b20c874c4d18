//! The congestion window, and the interface of the congestion controls that set it.
//!
//! [`CongestionControl`] is the state of one connection. [`CongestionAlgorithm`] has its name and its parameters, and
//! creates it. The [list](super::control) of the controls in this crate dispatches by a `match`. Those of other crates
//! implement the same two traits and are registered ([`register_congestion_control`](super::register_congestion_control)).
//!
//! The sender does the rest: it counts outstanding data, detects losses, allows at most one reduction per window of
//! data, and handles fast recovery and the timer (RFC 5681, RFC 6582, RFC 6675, RFC 6298). Segments leave when the window
//! allows.
//!
//! A control with [`PACED`](CongestionAlgorithm::PACED) models the path instead. It receives samples of the delivery rate
//! ([`RateSample`]), sets the window in every phase ([`delivered`](CongestionControl::delivered)), and a rate at which segments
//! leave ([`pacing_rate`](CongestionControl::pacing_rate)). Its sender needs RACK-TLP, which remembers each segment.

use super::{LostSegment, Params, RateSample};
use cutline_params::{Parameter, Parameters};
use cutline_units::{Duration, Instant, Rate};
use std::fmt::Debug;

/// The congestion window, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Congestion window: the number of bytes that may be outstanding.
    pub cwnd: u64,
    /// The window grows by slow start below this threshold, and by congestion avoidance from it on.
    pub ssthresh: u64,
}

/// Input of a congestion control for an acknowledgement of new data when the window may grow.
#[derive(Clone, Copy, Debug)]
pub struct Acked {
    /// Bytes newly acknowledged.
    pub bytes: u64,
    /// Time of arrival.
    pub now: Instant,
    /// The smoothed round-trip time; zero before the first sample.
    pub srtt: Duration,
}

/// An acknowledgement of new data.
#[derive(Clone, Copy, Debug)]
pub struct Acknowledgement {
    /// Time of arrival.
    pub now: Instant,
    /// Bytes newly acknowledged.
    pub bytes: u64,
    /// True if it echoes a mark; never if the sender's packets are not ECN-capable.
    pub marked: bool,
    /// Everything below this sequence number has arrived.
    pub una: u64,
    /// Everything below this sequence number has been sent.
    pub next: u64,
    /// Time at which the acknowledged segment left: `now` minus this is the round-trip time, without
    /// smoothing.
    pub echo: Instant,
}

/// Growth of a window, and its reduction at a congestion event.
///
/// For an acknowledgement of new data the sender calls [`acknowledged`](Self::acknowledged) in any case. Outside fast
/// recovery it then calls one of [`slow_start`](Self::slow_start), [`avoid`](Self::avoid) and
/// [`application_limited`](Self::application_limited).
pub trait CongestionControl {
    /// Handles an acknowledgement of new data.
    #[inline]
    fn acknowledged(&mut self, _acknowledgement: &Acknowledgement) {}

    /// Increases the window in slow start: new data was acknowledged, the window is below its threshold and limited the
    /// sender. `most` is the largest increase. The default is RFC 5681 eq. 2 with the limit L of RFC 3465 section 2.2. A
    /// control that ends slow start early sets the threshold.
    #[inline]
    fn slow_start(&mut self, window: &mut Window, acked: &Acked, most: u64) {
        window.cwnd += acked.bytes.min(most);
    }

    /// Increases the window in congestion avoidance: new data was acknowledged, and the window limited the sender.
    fn avoid(&mut self, window: &mut Window, acked: &Acked, mss: u64);

    /// Returns the slow start threshold after a loss with `flight` bytes outstanding: at least two segments. Does not set the
    /// window.
    fn congested(&mut self, window: &Window, flight: u64, mss: u64) -> u64;

    /// Returns the slow start threshold after a mark: at least two segments.
    #[inline]
    fn marked(&mut self, window: &Window, flight: u64, mss: u64) -> u64 {
        self.congested(window, flight, mss)
    }

    /// Handles a timeout. For the first timeout in a row, `congested` was called before.
    fn timed_out(&mut self) {}

    /// Handles new data acknowledged while the application, and not the window, limited the sender.
    fn application_limited(&mut self, _now: Instant) {}

    /// Handles an acknowledgement, and sets the window. Only for a paced control, and in the place of `slow_start`, `avoid` and
    /// `application_limited`. It is called in every phase, after [`lost`](Self::lost) for each segment that was found lost. After a
    /// timeout, the sender has set the window to a segment more than the flight.
    fn delivered(&mut self, _window: &mut Window, _sample: &RateSample) {}

    /// Handles the loss of a segment. Only for a paced control.
    fn lost(&mut self, _window: &Window, _loss: &LostSegment) {}

    /// Handles the first departure after an idle time in which the application had nothing to send. Only for a paced control.
    fn restarted(&mut self, _window: &mut Window, _now: Instant) {}

    /// Handles a spurious timeout: nothing was lost. Only for a paced control.
    fn spurious(&mut self) {}

    /// Returns the rate at which segments leave at most, in payload. `None` is no limit; a paced control always has one.
    fn pacing_rate(&self) -> Option<Rate> {
        None
    }

    /// Returns whether the control keeps the sender below what the path delivers, so that its samples count as those of an
    /// application that has little to send. Only for a paced control.
    fn limits_itself(&self) -> bool {
        false
    }
}

/// A kind of congestion control: its name, its parameters, and its creation.
pub trait CongestionAlgorithm: CongestionControl + Sized {
    /// Parameters in addition to TCP's: keys of the transport's table.
    type Params: Parameters + Clone + Debug + PartialEq + Send + Sync;

    /// The value of `congestion-control` in scenario files.
    const NAME: &'static str;
    /// The name as people write it.
    const TITLE: &'static str;
    /// The paper or RFC.
    const SOURCE: &'static str;
    /// True if the control responds to the share of marks, and not to each mark as to a loss (RFC 9330). It
    /// then needs ECN, may use ECT(1), and its receiver echoes the mark of each segment (RFC 8257 section
    /// 3.2).
    const SCALABLE: bool = false;
    /// True if the control sets the window and a pacing rate from samples of the delivery rate. Its thresholds after losses and
    /// marks have no effect: it returns that of the window unchanged. It needs [`Params::rack`].
    const PACED: bool = false;

    /// Creates the control of a new connection with TCP's parameters `tcp`.
    fn begin(params: &Self::Params, tcp: &Params) -> Self;
}

/// The description of a congestion control.
#[derive(Clone, Debug)]
pub struct ControlDescription {
    /// The value of `congestion-control` in scenario files.
    pub name: &'static str,
    /// The name as people write it.
    pub title: &'static str,
    /// The paper or RFC.
    pub source: &'static str,
    /// Parameters beside those of TCP.
    pub parameters: Vec<&'static Parameter>,
    /// True if it answers marks by their share.
    pub scalable: bool,
    /// True if it is paced, and needs [`Params::rack`].
    pub paced: bool,
}

impl ControlDescription {
    pub(super) fn from_algorithm<A: CongestionAlgorithm>() -> Self {
        Self {
            name: A::NAME,
            title: A::TITLE,
            source: A::SOURCE,
            parameters: A::Params::describe(),
            scalable: A::SCALABLE,
            paced: A::PACED,
        }
    }
}

/// A congestion control without parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Parameters)]
pub struct NoParams {}

impl<C: CongestionControl + ?Sized> CongestionControl for Box<C> {
    #[inline]
    fn acknowledged(&mut self, acknowledgement: &Acknowledgement) {
        (**self).acknowledged(acknowledgement);
    }

    #[inline]
    fn slow_start(&mut self, window: &mut Window, acked: &Acked, most: u64) {
        (**self).slow_start(window, acked, most);
    }

    #[inline]
    fn avoid(&mut self, window: &mut Window, acked: &Acked, mss: u64) {
        (**self).avoid(window, acked, mss);
    }

    #[inline]
    fn congested(&mut self, window: &Window, flight: u64, mss: u64) -> u64 {
        (**self).congested(window, flight, mss)
    }

    #[inline]
    fn marked(&mut self, window: &Window, flight: u64, mss: u64) -> u64 {
        (**self).marked(window, flight, mss)
    }

    #[inline]
    fn timed_out(&mut self) {
        (**self).timed_out();
    }

    #[inline]
    fn application_limited(&mut self, now: Instant) {
        (**self).application_limited(now);
    }

    #[inline]
    fn delivered(&mut self, window: &mut Window, sample: &RateSample) {
        (**self).delivered(window, sample);
    }

    #[inline]
    fn lost(&mut self, window: &Window, loss: &LostSegment) {
        (**self).lost(window, loss);
    }

    #[inline]
    fn restarted(&mut self, window: &mut Window, now: Instant) {
        (**self).restarted(window, now);
    }

    #[inline]
    fn spurious(&mut self) {
        (**self).spurious();
    }

    #[inline]
    fn pacing_rate(&self) -> Option<Rate> {
        (**self).pacing_rate()
    }

    #[inline]
    fn limits_itself(&self) -> bool {
        (**self).limits_itself()
    }
}

/// Rare controls are boxed, so that the others stay small.
impl<T: CongestionAlgorithm> CongestionAlgorithm for Box<T> {
    type Params = T::Params;

    const NAME: &'static str = T::NAME;
    const TITLE: &'static str = T::TITLE;
    const SOURCE: &'static str = T::SOURCE;
    const SCALABLE: bool = T::SCALABLE;
    const PACED: bool = T::PACED;

    fn begin(params: &T::Params, tcp: &Params) -> Self {
        Self::new(T::begin(params, tcp))
    }
}
