//! Congestion controls of other crates: registered while the program runs, then used by name like this crate's own.
//!
//! - A Rust type that implements [`CongestionAlgorithm`] only needs a call of [`register_congestion_control`](super::register_congestion_control) before
//!   the first file is read.
//! - Anything else, such as a control written in another language, implements [`ExternalAlgorithm`], which describes it as
//!   data and starts it, and is passed to [`register_external_control`](super::register_external_control).
//!
//! The sender corrects values that a control must not return: a window has at least one segment, a threshold at least two,
//! and both have an upper bound; a pacing rate has at least 1 kbit/s. [`conformance`](crate::conformance) has the checks that every control must pass.

use super::congestion::{
    Acked, Acknowledgement, CongestionAlgorithm, CongestionControl, ControlDescription, Window,
};
use super::{LostSegment, Params, RateSample};
use cutline_params::{Configured, ParameterValue, Registered, RegisteredType};
use cutline_units::{Instant, Rate};
use std::fmt::Debug;

/// The description and the start of a congestion control of another crate.
pub trait ExternalAlgorithm: Registered {
    /// Returns the name, the source and the parameters. They must not change.
    fn describe(&self) -> ControlDescription;

    /// Starts the control of a new connection with TCP's parameters `tcp`. `values` come from
    /// [`complete`](Registered::complete).
    fn begin(&self, values: &[(&'static str, ParameterValue)], tcp: &Params) -> Box<dyn DynControl>;
}

/// A congestion control behind a pointer. It is implemented for every control that is `Clone`, `Debug` and `Send`.
pub trait DynControl: CongestionControl + Debug + Send + Sync {
    /// Returns a copy.
    fn boxed_clone(&self) -> Box<dyn DynControl>;
}

impl<C: CongestionControl + Clone + Debug + Send + Sync + 'static> DynControl for C {
    fn boxed_clone(&self) -> Box<dyn DynControl> {
        Box::new(self.clone())
    }
}

impl Clone for Box<dyn DynControl> {
    fn clone(&self) -> Self {
        (**self).boxed_clone()
    }
}

/// Returns the control of a new connection.
pub(super) fn begin(algorithm: &Configured<dyn ExternalAlgorithm>, tcp: &Params) -> ExternalControl {
    let control = algorithm.thing().begin(algorithm.values(), tcp);
    ExternalControl { control, mss: tcp.mss.into() }
}

/// Limits the results of a control to the bounds of the window.
#[derive(Clone, Debug)]
pub(crate) struct ExternalControl {
    control: Box<dyn DynControl>,
    mss: u64,
}

/// The largest window, bytes: 1 TiB.
const MOST: u64 = 1 << 40;
/// The lowest pacing rate. At a rate of zero, nothing would ever leave.
const SLOWEST: Rate = Rate::from_bps(1000);

impl ExternalControl {
    fn threshold(&self, answer: u64) -> u64 {
        answer.clamp(2 * self.mss, MOST)
    }

    fn bound(&self, window: &mut Window) {
        window.cwnd = window.cwnd.clamp(self.mss, MOST);
        window.ssthresh = window.ssthresh.max(2 * self.mss);
    }
}

impl CongestionControl for ExternalControl {
    #[inline(never)]
    fn acknowledged(&mut self, acknowledgement: &Acknowledgement) {
        self.control.acknowledged(acknowledgement);
    }

    #[inline(never)]
    fn slow_start(&mut self, window: &mut Window, acked: &Acked, most: u64) {
        self.control.slow_start(window, acked, most);
        self.bound(window);
    }

    #[inline(never)]
    fn avoid(&mut self, window: &mut Window, acked: &Acked, mss: u64) {
        self.control.avoid(window, acked, mss);
        self.bound(window);
    }

    fn congested(&mut self, window: &Window, flight: u64, mss: u64) -> u64 {
        let answer = self.control.congested(window, flight, mss);
        self.threshold(answer)
    }

    fn marked(&mut self, window: &Window, flight: u64, mss: u64) -> u64 {
        let answer = self.control.marked(window, flight, mss);
        self.threshold(answer)
    }

    fn timed_out(&mut self) {
        self.control.timed_out();
    }

    fn application_limited(&mut self, now: Instant) {
        self.control.application_limited(now);
    }

    fn delivered(&mut self, window: &mut Window, sample: &RateSample) {
        self.control.delivered(window, sample);
        self.bound(window);
    }

    fn lost(&mut self, window: &Window, loss: &LostSegment) {
        self.control.lost(window, loss);
    }

    fn restarted(&mut self, window: &mut Window, now: Instant) {
        self.control.restarted(window, now);
        self.bound(window);
    }

    fn spurious(&mut self) {
        self.control.spurious();
    }

    fn pacing_rate(&self) -> Option<Rate> {
        self.control.pacing_rate().map(|rate| rate.max(SLOWEST))
    }

    fn limits_itself(&self) -> bool {
        self.control.limits_itself()
    }
}

/// The external congestion control of a type.
pub(super) type Typed<A> = RegisteredType<A, <A as CongestionAlgorithm>::Params>;

impl<A> ExternalAlgorithm for Typed<A>
where
    A: CongestionAlgorithm + Clone + Debug + Send + Sync + 'static,
{
    fn describe(&self) -> ControlDescription {
        ControlDescription::from_algorithm::<A>()
    }

    fn begin(&self, values: &[(&'static str, ParameterValue)], tcp: &Params) -> Box<dyn DynControl> {
        Box::new(A::begin(&Self::params(values), tcp))
    }
}
