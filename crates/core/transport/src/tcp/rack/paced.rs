//! A sender with a paced congestion control: the times at which segments leave, and the samples of the delivery rate.
//!
//! A control of [`PACED`](super::super::CongestionAlgorithm::PACED) sets the window and the rate with each acknowledgement, in the place of slow start,
//! congestion avoidance and proportional rate reduction. Detection and repair of losses are those of every sender with RACK-TLP.
//!
//! ```text
//! next_send = max(now, next_send) + payload / rate      with each departure (draft-ietf-ccwg-bbr "Pacing Rate")
//! ```
//!
//! Segments leave one by one, and not in the bursts of a kernel that sends several at once. Probes leave at once.
//!
//! Worked: at 8 Mbit/s, segments of 1000 B leave 1 ms apart.

use super::super::delivery::{LossState, RateSample};
use super::super::sender::Phase;
use super::super::{Ack, Segment, Sender};
use super::sender::RackRecovery;
use cutline_units::{Bytes, Instant};

/// The departures of a paced sender. The initial value holds nothing back.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pacing {
    /// The earliest departure of the next segment.
    next_send: Instant,
    /// Time at which a segment may leave that was held back; far in the future if none was.
    pub(super) wake_at: Instant,
    /// Time at which the timers of recovery expire. The sender's deadline also includes `wake_at`.
    pub(super) timer_at: Instant,
    /// The congestion window was full when this had been sent.
    limited_below: u64,
    /// Count of marked segments in the last acknowledgement.
    marked: u32,
}

impl Default for Pacing {
    fn default() -> Self {
        Self {
            next_send: Instant::ZERO,
            wake_at: Instant::FAR_FUTURE,
            timer_at: Instant::FAR_FUTURE,
            limited_below: 0,
            marked: 0,
        }
    }
}

impl Pacing {
    /// Returns whether a segment that is ready has to wait.
    pub(super) fn holds(&mut self, now: Instant) -> bool {
        let holds = now < self.next_send;
        if holds {
            self.wake_at = self.next_send;
        }
        holds
    }
}

impl RackRecovery {
    /// Creates the state of recovery; `is_paced` as the congestion control.
    pub(in super::super) fn new(is_paced: bool) -> Self {
        let mut state = Self::default();
        state.rack.sampler = is_paced.then(Box::default);
        state
    }

    pub(super) fn is_paced(&self) -> bool {
        self.rack.sampler.is_some()
    }

    /// Begins the sample of an acknowledgement. Returns the bytes in flight before it.
    pub(super) fn begin_sample(&mut self, outstanding: u64) -> u64 {
        if let Some(sampler) = &mut self.rack.sampler {
            sampler.begin();
        }
        self.rack.pipe(outstanding)
    }
}

impl Sender {
    /// Sets the deadline to that of the timers of recovery.
    pub(super) fn begin_paced(&mut self, state: &RackRecovery) {
        self.deadline = state.pacing.timer_at;
    }

    /// Keeps the deadline of the timers of recovery, and sets the sender's to the next departure if that is earlier.
    pub(super) fn end_paced(&mut self, state: &mut RackRecovery) {
        state.pacing.timer_at = self.deadline;
        self.deadline = self.deadline.min(state.pacing.wake_at);
    }

    /// Handles an acknowledgement.
    #[cold]
    pub(super) fn acknowledge_paced(&mut self, now: Instant, ack: &Ack, state: &mut RackRecovery) {
        self.begin_paced(state);
        self.acknowledge::<true>(now, ack, state);
        self.end_paced(state);
    }

    /// Returns the next segment that may leave now.
    #[cold]
    pub(super) fn transmit_paced(&mut self, now: Instant, state: &mut RackRecovery) -> Option<Segment> {
        self.begin_paced(state);
        state.pacing.wake_at = Instant::FAR_FUTURE;
        let segment = self.transmit_steps::<true>(now, state);
        self.end_paced(state);
        segment
    }

    /// Reports the segments that were found lost to the control.
    #[inline]
    pub(super) fn report_losses(&mut self, state: &mut RackRecovery) {
        let Some(sampler) = &mut state.rack.sampler else { return };
        let losses = sampler.take_losses();
        for loss in &losses {
            self.control.lost(&self.window, loss);
        }
        sampler.recycle(losses);
    }

    /// Reports an acknowledgement to the control, which sets the window.
    pub(super) fn report_delivery(
        &mut self,
        now: Instant,
        newly_delivered: u64,
        ack_marked: u32,
        prior_in_flight: u64,
        state: &mut RackRecovery,
    ) {
        let marked = ack_marked.wrapping_sub(state.pacing.marked);
        state.pacing.marked = ack_marked;
        self.report_losses(state);
        let in_flight = state.rack.pipe(self.next - self.una);
        let Some(sampler) = &mut state.rack.sampler else { return };
        let sample = sampler.sample(state.rack.min_rtt);
        let mss = u64::from(self.mss);
        let sample = RateSample {
            now,
            newly_delivered,
            newly_lost: sampler.newly_lost(),
            newly_marked: (u64::from(marked) * mss).min(newly_delivered),
            total_delivered: sampler.delivered(),
            total_lost: sampler.lost(),
            prior_delivered: sample.prior_delivered,
            delivered: sample.delivered,
            interval: sample.interval,
            is_app_limited: sample.is_app_limited,
            rtt: sampler.rtt(),
            is_ack_delayed: sample.tx_in_flight <= mss && newly_delivered <= mss,
            srtt: self.rtt.srtt(),
            prior_in_flight,
            in_flight,
            tx_in_flight: sample.tx_in_flight,
            lost_since_sent: sample.lost_since_sent,
            is_window_limited: self.una < state.pacing.limited_below,
            next_send: state.pacing.next_send,
            state: match self.phase {
                Phase::Recovery => LossState::Recovery,
                Phase::Open if state.after_timeout => LossState::Timeout,
                Phase::Open => LossState::Open,
            },
        };
        self.control.delivered(&mut self.window, &sample);
        if self.control.limits_itself() {
            sampler.limit_by_application(in_flight);
        }
    }

    /// Notes the departure of a segment, or why none leaves.
    pub(super) fn note_departure(
        &mut self,
        now: Instant,
        segment: Option<&Segment>,
        state: &mut RackRecovery,
    ) {
        let in_flight = state.rack.pipe(self.next - self.una);
        let has_lost = state.rack.next_lost().is_some();
        let Some(sampler) = &mut state.rack.sampler else { return };
        let Some(segment) = segment else {
            if self.window_limited {
                state.pacing.limited_below = self.next;
            }
            // Nothing is ready, and the window has room: draft-ietf-ccwg-bbr, CheckIfApplicationLimited().
            if self.end == self.next && !has_lost && in_flight < self.window.cwnd {
                sampler.limit_by_application(in_flight);
            }
            return;
        };
        let bytes = segment.end() - segment.seq;
        let before = in_flight.saturating_sub(bytes);
        if before == 0 && sampler.is_app_limited() {
            self.control.restarted(&mut self.window, now);
        }
        let index = state.rack.segments.partition_point(|sent| sent.seq < segment.seq);
        sampler.depart(now, index, before, bytes);
        if let Some(rate) = self.control.pacing_rate() {
            let wait = rate.transmission_time(Bytes::new(u64::from(segment.len)));
            state.pacing.next_send = state.pacing.next_send.max(now) + wait;
        }
    }
}
