//! A sender that recovers with [RACK-TLP](super): its acknowledgements, its timers, and its next segment.
//!
//! After a timeout, the congestion window is one segment above the pipe, and slow start retransmits lost data
//! (RFC 5681 section 3.1). Losses that are found before `recover` is acknowledged do not reduce the window again. If the first
//! acknowledgement after a timeout echoes the time of an earlier transmission, nothing was lost: the timeout was spurious, and the
//! window is restored (RFC 3522, RFC 4015).
//!
//! A [paced](super::paced) control sets its window in every phase, also in recovery.

use super::super::prr::{Delivery, Reduction};
use super::super::sender::Phase;
use super::super::{Ack, Acknowledgement, FullAck, Halving, Segment, Sender, Window};
use super::paced::Pacing;
use super::{Probe, Rack, Timer};
use cutline_units::{Duration, Instant};

/// `TLP.max_ack_delay`: the longest delay of an acknowledgement of a single segment (RFC 8985 section 7.2; the value is Linux's).
const MAX_ACK_DELAY: Duration = Duration::from_millis(200);
/// The probe timeout without a sample of the round-trip time (RFC 8985 section 7.2).
const FIRST_PROBE: Duration = Duration::from_secs(1);

/// A sender's recovery with RACK-TLP.
#[derive(Clone, Debug, Default)]
pub(crate) struct RackRecovery {
    pub(super) rack: Rack,
    reduction: Reduction,
    /// The window before a timeout, and the time at which the first segment was sent again after it.
    before_timeout: Option<(Window, Instant)>,
    /// The timeout's losses are being sent again; `recover` is not acknowledged.
    pub(super) after_timeout: bool,
    /// A probe leaves next.
    probe_is_due: bool,
    /// True if the round-trip time was sampled since the last probe.
    sampled: bool,
    /// Number of probes sent.
    probes: u32,
    /// The departures of a paced control.
    pub(super) pacing: Pacing,
}

impl RackRecovery {
    pub(crate) fn probes(&self) -> u32 {
        self.probes
    }

    pub(crate) fn pipe(&self, outstanding: u64) -> u64 {
        self.rack.pipe(outstanding)
    }
}

impl Sender {
    /// Takes the state of recovery out of its place, so that it can be changed beside the sender.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "each acknowledgement and each segment needs it")]
    fn take_rack(&mut self) -> Box<RackRecovery> {
        self.rack.take().expect("only a sender with RACK-TLP comes here")
    }

    /// Returns the state of recovery to its place.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "as take_rack")]
    fn put_rack(&mut self, rack: Box<RackRecovery>) {
        // The place is empty: there is nothing to drop.
        std::mem::forget(self.rack.replace(rack));
    }

    /// Handles an acknowledgement.
    #[inline(never)]
    pub(in super::super) fn on_ack_with_rack(&mut self, now: Instant, ack: &Ack) {
        if ack.ack < self.una {
            return;
        }
        let mut state = self.take_rack();
        if state.is_paced() {
            self.acknowledge_paced(now, ack, &mut state);
        } else {
            self.acknowledge::<false>(now, ack, &mut state);
        }
        self.put_rack(state);
    }

    /// Handles an acknowledgement, with a control that is paced or not.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "a sender without pacing does not pay for it")]
    pub(super) fn acknowledge<const PACED: bool>(
        &mut self,
        now: Instant,
        ack: &Ack,
        state: &mut RackRecovery,
    ) {
        let reduced = ack.ece && self.on_ecn_echo(ack.ack);
        let acked = ack.ack - self.una;
        let prior_in_flight = if PACED { state.begin_sample(self.next - self.una) } else { 0 };
        let arrived = state.rack.acknowledge(now, ack.ack, ack.sack, ack.echo);
        if acked > 0 {
            self.advance(now, ack, acked, state);
        }
        if arrived.is_before_first {
            // Data sent before the first segment's retransmission still arrives, so its acknowledgement is not due yet. As in Linux.
            state.rack.rto_at = now + self.rtt.rto();
        }
        let repaired = state.rack.end_probe(ack.ack, acked > 0, ack.sack);
        let (found, wait) = state.rack.detect(now, self.srtt(), self.phase == Phase::Recovery);
        let is_over = self.una >= self.recover;
        match self.phase {
            Phase::Recovery if is_over => {
                self.phase = Phase::Open;
                if !PACED {
                    // RFC 6937 section 3: the window ends at the threshold.
                    self.window.cwnd = self.window.ssthresh;
                }
                if !PACED && self.params.variant.full_ack == FullAck::SsthreshAndGrowth && !reduced {
                    self.grow(now, arrived.bytes);
                }
            }
            Phase::Recovery if PACED => {}
            Phase::Recovery => {
                let delivery = Delivery { bytes: arrived.bytes, is_progress: acked > 0 && !found };
                self.set_reduced_window(delivery, state);
            }
            Phase::Open => {
                if state.after_timeout && is_over {
                    state.after_timeout = false;
                }
                if acked > 0 && !reduced && !PACED {
                    self.grow(now, acked);
                }
            }
        }
        if self.phase == Phase::Open && !state.after_timeout {
            if state.rack.lost > 0 {
                self.begin_recovery_with_rack(state);
                if !PACED {
                    self.set_reduced_window(Delivery { bytes: arrived.bytes, is_progress: false }, state);
                }
            } else if repaired && !PACED {
                // RFC 8985 section 7.4.2: the loss counts, although nothing is left to repair.
                self.window.ssthresh = self.halved_threshold();
                self.window.cwnd = self.window.cwnd.min(self.window.ssthresh);
                self.note_reduction();
            }
        }
        if PACED {
            self.report_delivery(now, arrived.bytes, ack.marked, prior_in_flight, state);
        }
        self.set_timer(now, wait, state);
    }

    /// Handles that `una` moves.
    fn advance(&mut self, now: Instant, ack: &Ack, acked: u64, state: &mut RackRecovery) {
        self.una = ack.ack;
        self.next = self.next.max(ack.ack);
        let (una, next, marked, echo) = (self.una, self.next, ack.ece, ack.echo);
        self.control.acknowledged(|| Acknowledgement { now, bytes: acked, marked, una, next, echo });
        self.timeouts_in_a_row = 0;
        if ack.echo >= self.sample_from {
            self.sample_round_trip(now, ack.echo);
            state.sampled = true;
        }
        if let Some((window, resent_at)) = state.before_timeout.take()
            && ack.echo < resent_at
        {
            if state.is_paced() {
                self.control.spurious();
            } else {
                self.window = window;
            }
            state.after_timeout = false;
            state.rack.lose_nothing();
        }
        state.rack.rto_at = now + self.rtt.rto();
    }

    fn halved_threshold(&mut self) -> u64 {
        let mss = u64::from(self.mss);
        let threshold = self.control.congested(&self.window, self.halved(), mss);
        self.whole(threshold)
    }

    fn begin_recovery_with_rack(&mut self, state: &mut RackRecovery) {
        state.reduction = Reduction::begin(self.window.cwnd);
        self.window.ssthresh = self.halved_threshold();
        self.phase = Phase::Recovery;
        self.recover = self.high_water;
        state.rack.probe = None;
        self.note_reduction();
    }

    /// Sets the window in recovery by proportional rate reduction; a paced control sets its own.
    fn set_reduced_window(&mut self, delivery: Delivery, state: &mut RackRecovery) {
        let pipe = state.rack.pipe(self.next - self.una);
        let mss = u64::from(self.mss);
        self.window.cwnd = state.reduction.window(delivery, pipe, self.window.ssthresh, mss);
    }

    /// Sets the timer: to the end of a reordering window, to the time of a probe, or to the retransmission timeout.
    fn set_timer(&mut self, now: Instant, wait: Option<Duration>, state: &mut RackRecovery) {
        if self.una == self.high_water {
            state.rack.rto_at = Instant::FAR_FUTURE;
        }
        let rto_at = state.rack.rto_at;
        (state.rack.timer, self.deadline) = if self.una == self.high_water {
            (Timer::Retransmission, rto_at)
        } else if let Some(wait) = wait {
            (Timer::Reordering, (now + wait).min(rto_at))
        } else if self.may_probe(state) {
            (Timer::Probe, (now + self.probe_timeout()).min(rto_at))
        } else {
            (Timer::Retransmission, rto_at)
        };
    }

    /// Returns whether a probe may be scheduled (RFC 8985 section 7.2).
    fn may_probe(&self, state: &RackRecovery) -> bool {
        let is_open = self.phase == Phase::Open && !state.after_timeout;
        is_open && state.rack.sacked == 0 && state.rack.probe.is_none()
    }

    fn probe_timeout(&self) -> Duration {
        if self.srtt().is_zero() {
            return FIRST_PROBE;
        }
        let is_single = self.next - self.una <= u64::from(self.mss);
        self.srtt() * 2 + if is_single { MAX_ACK_DELAY } else { Duration::ZERO }
    }

    /// Handles the timer that is due.
    #[cold]
    pub(in super::super) fn on_deadline_with_rack(&mut self, now: Instant) {
        let mut state = self.take_rack();
        if state.is_paced() {
            self.begin_paced(&state);
        }
        match state.rack.timer {
            // Only the next departure is due.
            _ if now < self.deadline => {}
            Timer::Reordering => {
                let in_recovery = self.phase == Phase::Recovery;
                let (found, wait) = state.rack.detect(now, self.srtt(), in_recovery);
                if found && self.phase == Phase::Open && !state.after_timeout {
                    self.begin_recovery_with_rack(&mut state);
                }
                self.report_losses(&mut state);
                if found && self.phase == Phase::Recovery && !state.is_paced() {
                    self.set_reduced_window(Delivery { bytes: 0, is_progress: false }, &mut state);
                }
                if now >= state.rack.rto_at {
                    self.time_out(now, &mut state);
                } else {
                    self.set_timer(now, wait, &mut state);
                }
            }
            Timer::Probe => {
                state.probe_is_due = state.sampled || self.srtt().is_zero();
                state.rack.timer = Timer::Retransmission;
                state.rack.rto_at = now + self.rtt.rto();
                self.deadline = state.rack.rto_at;
            }
            Timer::Retransmission => self.time_out(now, &mut state),
        }
        if state.is_paced() {
            self.end_paced(&mut state);
        }
        self.put_rack(state);
    }

    /// Handles a retransmission timeout (RFC 6298 section 5, RFC 5681 section 3.1, RFC 8985 section 6.3).
    fn time_out(&mut self, now: Instant, state: &mut RackRecovery) {
        let mss = u64::from(self.mss);
        self.stats.timeouts += 1;
        let reduces = match self.params.variant.halving {
            Halving::Window => true,
            // The losses of one window reduce it once.
            Halving::WindowOnce => self.phase == Phase::Open && !state.after_timeout,
            Halving::Flight => self.timeouts_in_a_row == 0,
        };
        if self.timeouts_in_a_row == 0 {
            state.before_timeout = Some((self.window, now));
        }
        if reduces {
            self.window.ssthresh = self.halved_threshold();
        }
        self.control.timed_out();
        self.timeouts_in_a_row = self.timeouts_in_a_row.saturating_add(1);
        state.rack.lose_at_timeout(now, self.srtt());
        self.report_losses(state);
        state.rack.probe = None;
        state.probe_is_due = false;
        self.window.cwnd = state.rack.pipe(self.next - self.una) + mss;
        self.recover = self.high_water;
        self.phase = Phase::Open;
        state.after_timeout = true;
        self.note_reduction();
        self.rtt.back_off(&self.params);
        state.rack.rto_at = now + self.rtt.rto();
        state.rack.timer = Timer::Retransmission;
        self.deadline = state.rack.rto_at;
    }

    /// Returns the next segment that may leave now.
    #[inline(never)]
    pub(in super::super) fn transmit_with_rack(&mut self, now: Instant) -> Option<Segment> {
        let mut state = self.take_rack();
        let segment = if state.is_paced() {
            self.transmit_paced(now, &mut state)
        } else {
            self.transmit_steps::<false>(now, &mut state)
        };
        self.put_rack(state);
        segment
    }

    /// Returns the next segment, with a control that is paced or not.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "as acknowledge")]
    pub(super) fn transmit_steps<const PACED: bool>(
        &mut self,
        now: Instant,
        state: &mut RackRecovery,
    ) -> Option<Segment> {
        let segment = self.next_with_rack::<PACED>(now, state);
        if PACED {
            self.note_departure(now, segment.as_ref(), state);
        }
        if let Some(segment) = &segment {
            state.reduction.sent(u64::from(segment.len));
            let is_new = !segment.retransmission;
            if state.rack.rto_at == Instant::FAR_FUTURE {
                state.rack.rto_at = now + self.rtt.rto();
            }
            if is_new && state.rack.timer != Timer::Reordering && state.rack.probe.is_none() {
                self.set_timer(now, None, state);
            }
        }
        segment
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the segment stays in registers")]
    fn next_with_rack<const PACED: bool>(
        &mut self,
        now: Instant,
        state: &mut RackRecovery,
    ) -> Option<Segment> {
        if !PACED && self.una == self.next {
            self.restart_if_idle(now);
        }
        if std::mem::take(&mut state.probe_is_due) && self.una < self.next {
            return self.probe(now, state);
        }
        let pipe = state.rack.pipe(self.next - self.una);
        if let Some((seq, end)) = state.rack.next_lost() {
            if pipe + (end - seq) > self.window.cwnd || (PACED && state.pacing.holds(now)) {
                self.note_window_limited(pipe);
                return None;
            }
            return Some(self.send_again(now, seq, end, state));
        }
        let len = (self.end - self.next).min(u64::from(self.mss));
        let fits = pipe + len <= self.window.cwnd && self.next - self.una + len <= self.max_window;
        if len == 0 || !fits || self.nagle_holds(len) || (PACED && state.pacing.holds(now)) {
            self.note_window_limited(pipe);
            return None;
        }
        Some(self.send_new(now, len, state))
    }

    fn send_new(&mut self, now: Instant, len: u64, state: &mut RackRecovery) -> Segment {
        let seq = self.next;
        let segment = self.send_next(now, len);
        state.rack.sent(now, seq, self.next);
        self.set_flags(segment, seq + len)
    }

    fn send_again(&mut self, now: Instant, seq: u64, end: u64, state: &mut RackRecovery) -> Segment {
        state.rack.sent_again(now, seq);
        if seq == self.una {
            // The first segment has a whole timeout for its acknowledgement, as in Linux.
            state.rack.rto_at = now + self.rtt.rto();
            if state.rack.timer == Timer::Retransmission {
                self.deadline = state.rack.rto_at;
            }
        }
        let segment = self.depart(now, seq, end - seq, true);
        self.set_flags(segment, end)
    }

    /// Sends a probe: new data if there is some, and the last segment again if not (RFC 8985 section 7.3).
    fn probe(&mut self, now: Instant, state: &mut RackRecovery) -> Option<Segment> {
        state.sampled = false;
        state.probes += 1;
        let len = (self.end - self.next).min(u64::from(self.mss));
        let is_new = len > 0 && self.next - self.una + len <= self.max_window;
        let segment = if is_new {
            self.send_new(now, len, state)
        } else {
            let (seq, end) = state.rack.last_missing()?;
            self.send_again(now, seq, end, state)
        };
        state.rack.probe = Some(Probe { end: self.next, is_retransmission: !is_new });
        Some(segment)
    }
}
