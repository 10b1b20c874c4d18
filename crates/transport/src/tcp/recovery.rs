//! How a sender finds a loss and mends it: fast retransmit and fast recovery, and the timeout.
//!
//! Without SACK (RFC 6582, `NewReno`): the third duplicate acknowledgement means that the segment at `una` is
//! lost. It is sent again; `ssthresh = max(flight / 2, 2 mss)`, `cwnd = ssthresh + 3 mss`; each further
//! duplicate adds an mss, as it says that a segment has left the network. An acknowledgement below `recover`
//! is partial: the next hole is sent again and cwnd deflates by what was acknowledged. At `recover` it is over.
//!
//! With SACK (RFC 6675): the same entry, also when the scoreboard says that `una` is lost; then `pipe` is kept
//! under cwnd by `NextSeg`'s four rules.
//!
//! At a timeout (RFC 6298 5, RFC 5681 3.1): one segment of window, half the flight as threshold, everything
//! from `una` on again.
//!
//! `recover` also keeps one loss from being answered twice: duplicates count only once an acknowledgement is
//! beyond it (RFC 6582 3.2 step 1).

use cutline_units::Instant;

use super::scoreboard::{DUP_THRESH, Resend};
use super::sender::Phase;
use super::{FullAck, Halving, Segment, Sender};

impl Sender {
    /// A duplicate acknowledgement (RFC 5681 2): nothing new, with data outstanding.
    #[cold]
    pub(super) fn on_duplicate(&mut self, now: Instant) {
        self.careful = true;
        self.allow_burst();
        self.dup_acks = self.dup_acks.saturating_add(1);
        match self.phase {
            Phase::Open if self.loss_is_evident() && self.may_fast_retransmit() => self.enter_recovery(now),
            Phase::Open => {}
            Phase::Recovery => self.on_duplicate_in_recovery(),
        }
    }

    /// RFC 5681 3.2 step 2; RFC 6675 5 step 2.
    fn loss_is_evident(&self) -> bool {
        let lost = |scoreboard: &super::scoreboard::Scoreboard| scoreboard.is_lost(self.una);
        self.dup_acks >= DUP_THRESH || self.scoreboard.as_deref().is_some_and(lost)
    }

    /// RFC 6582 3.2 step 2, and its section 4.1 when that is asked for.
    pub(super) fn may_fast_retransmit(&self) -> bool {
        let mss = u64::from(self.mss);
        let covers_more = self.recover == 0 || self.una > self.recover;
        covers_more || (self.params.ack_heuristic && self.window.cwnd > mss && self.last_advance <= 4 * mss)
    }

    /// RFC 5681's flight size: what is outstanding without what limited transmit sent.
    pub(super) fn flight_size(&self) -> u64 {
        (self.next - self.una).saturating_sub(u64::from(self.limited_bytes))
    }

    /// What a loss halves, bytes ([`Params::halving`](super::Params::halving)).
    pub(super) fn halved(&self) -> u64 {
        let window = match (self.params.variant.halving, self.phase) {
            (Halving::Flight, _) => return self.flight_size(),
            (Halving::Window, Phase::Open) => self.window.cwnd,
            // What duplicates have inflated the window by is no part of it.
            (Halving::Window, Phase::Recovery) => self.window.cwnd.min(self.window.ssthresh),
        };
        window.min(self.max_window)
    }

    /// What slow start will end at: ns-2 keeps it in whole segments, and cuts off what the window itself keeps.
    fn threshold(&self, half: u64) -> u64 {
        match self.params.variant.halving {
            Halving::Flight => half,
            Halving::Window => half - half % u64::from(self.mss),
        }
    }

    fn enter_recovery(&mut self, now: Instant) {
        let mss = u64::from(self.mss);
        self.stats.fast_retransmits += 1;
        self.window.ssthresh = self.control.congested(&self.window, self.halved(), mss);
        self.phase = Phase::Recovery;
        self.partial_ack = false;
        self.recover = self.high_water;
        self.window.cwnd = self.window.ssthresh;
        match &mut self.scoreboard {
            Some(scoreboard) => {
                scoreboard.begin_recovery(self.una);
                scoreboard.set_pipe(self.una, self.high_water);
            }
            // RFC 5681 3.2 step 3: the three segments that caused the duplicates have left.
            None => self.window.cwnd += u64::from(DUP_THRESH) * mss,
        }
        self.limited_bytes = 0;
        self.retransmit_first = true;
        self.forget_timed_segment();
        self.note_reduction();
        self.restart_timer(now);
    }

    fn on_duplicate_in_recovery(&mut self) {
        match &mut self.scoreboard {
            Some(scoreboard) => scoreboard.set_pipe(self.una, self.high_water),
            // RFC 5681 3.2 step 4
            None => self.window.cwnd += u64::from(self.mss),
        }
    }

    /// New data was acknowledged during fast recovery.
    #[cold]
    pub(super) fn on_ack_in_recovery(&mut self, now: Instant, acked: u64) {
        self.careful = true;
        self.allow_burst();
        if self.una >= self.recover {
            self.leave_recovery(now);
            if self.params.variant.full_ack == FullAck::Deflated {
                self.grow(now, acked);
            }
            return;
        }
        if let Some(scoreboard) = &mut self.scoreboard {
            // RFC 6675 5 step B
            scoreboard.set_pipe(self.una, self.high_water);
            self.restart_timer(now);
            return;
        }
        self.on_partial_ack(now, acked);
    }

    /// Each acknowledgement in recovery sets free a burst of its own.
    fn allow_burst(&mut self) {
        self.burst_left = self.params.variant.recovery_burst.unwrap_or(u32::MAX);
    }

    /// RFC 6582 3.2 step 3, partial acknowledgements.
    fn on_partial_ack(&mut self, now: Instant, acked: u64) {
        let mss = u64::from(self.mss);
        let credit = if acked >= mss { mss } else { 0 };
        self.window.cwnd = (self.window.cwnd.saturating_sub(acked) + credit).max(mss);
        self.retransmit_first = true;
        if !self.partial_ack || !self.params.impatient {
            self.restart_timer(now);
        }
        self.partial_ack = true;
    }

    /// RFC 6582 3.2 step 3, full acknowledgements; RFC 6675 5 step A.
    fn leave_recovery(&mut self, now: Instant) {
        let mss = u64::from(self.mss);
        let flight = self.next - self.una;
        self.window.cwnd = match (self.scoreboard.is_some(), self.params.variant.full_ack) {
            (false, FullAck::FlightPlusOne) => self.window.ssthresh.min(flight.max(mss) + mss),
            (false, FullAck::Deflated) => self.window.ssthresh.min(self.window.cwnd),
            _ => self.window.ssthresh,
        };
        self.window.ssthresh = self.threshold(self.window.ssthresh);
        self.phase = Phase::Open;
        self.dup_acks = 0;
        self.retransmit_first = false;
        self.restart_timer(now);
    }

    /// RFC 6298 5.4 to 5.7, RFC 5681 3.1 and RFC 6582 3.2 step 4.
    #[cold]
    pub(super) fn on_timeout(&mut self, now: Instant) {
        let mss = u64::from(self.mss);
        self.stats.timeouts += 1;
        if self.timeouts_in_a_row == 0 || self.params.variant.halving == Halving::Window {
            // RFC 5681 3.1: held when the segment was already sent again by the timer.
            let half = self.control.congested(&self.window, self.halved(), mss);
            self.window.ssthresh = self.threshold(half);
        }
        self.control.timed_out();
        self.timeouts_in_a_row = self.timeouts_in_a_row.saturating_add(1);
        self.window.cwnd = mss;
        self.recover = self.high_water;
        self.phase = Phase::Open;
        self.dup_acks = 0;
        self.limited_bytes = 0;
        self.retransmit_first = false;
        self.next = self.una;
        self.forget_timed_segment();
        self.note_reduction();
        self.rtt.back_off(&self.params);
        self.restart_timer(now);
    }

    /// The first hole, whatever the window says; then, with SACK, what `NextSeg` names while pipe allows.
    #[cold]
    pub(super) fn transmit_in_recovery(&mut self, now: Instant) -> Option<Segment> {
        let mss = u64::from(self.mss);
        if self.retransmit_first {
            self.retransmit_first = false;
            let hole = self.scoreboard.as_ref().map_or(u64::MAX, |board| board.hole_from(self.una).1);
            let len = mss.min(self.high_water.min(hole) - self.una);
            return Some(self.resend(now, Resend { seq: self.una, len }, true));
        }
        // RFC 6675 5 step C
        if self.window.cwnd < self.recovery_pipe() + mss {
            return None;
        }
        self.next_segment(now)
    }

    pub(super) fn recovery_pipe(&self) -> u64 {
        self.scoreboard.as_ref().map_or(self.next - self.una, |scoreboard| scoreboard.pipe())
    }

    /// `NextSeg` of RFC 6675 section 4.
    fn next_segment(&mut self, now: Instant) -> Option<Segment> {
        let mss = u64::from(self.mss);
        let scoreboard = self.scoreboard.as_ref()?;
        if let Some(lost) = scoreboard.lost_segment(self.una, mss) {
            return Some(self.resend(now, lost, true));
        }
        let room = self.high_water + mss - self.una <= self.max_window;
        if let Some(len) = self.new_data().filter(|_| room) {
            self.next = self.high_water;
            let segment = self.send_next(now, len);
            self.scoreboard.as_mut()?.sent(len);
            return Some(self.finish(segment, self.next));
        }
        if let Some(hole) = self.scoreboard.as_ref()?.unsacked_segment(self.una, mss) {
            return Some(self.resend(now, hole, true));
        }
        let scoreboard = self.scoreboard.as_mut()?;
        let rescue = scoreboard.rescue_segment(self.una, self.high_water, self.recover, mss)?;
        Some(self.resend(now, rescue, false))
    }

    /// Sends a range again; `marks` it as retransmitted unless it is a rescue (RFC 6675 4, rule 4).
    fn resend(&mut self, now: Instant, again: Resend, marks: bool) -> Segment {
        if let Some(scoreboard) = &mut self.scoreboard {
            let end = if marks { again.seq + again.len } else { 0 };
            scoreboard.retransmitted(end, again.len);
        }
        let segment = self.depart(now, again.seq, again.len, true);
        self.finish(segment, again.seq + again.len)
    }
}
