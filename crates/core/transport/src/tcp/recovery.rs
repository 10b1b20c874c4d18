//! Detection and repair of losses: fast retransmit and fast recovery, and the timeout.
//!
//! Without SACK (`NewReno`, RFC 6582): the third duplicate acknowledgement means that the segment at `una` is lost. The
//! sender retransmits it and sets `ssthresh = max(flight / 2, 2 mss)` and `cwnd = ssthresh + 3 mss`. Each further
//! duplicate adds an mss, because it shows that a segment has left the network. An acknowledgement below `recover` is
//! partial: the sender retransmits the next hole, and cwnd is deflated by the acknowledged bytes. An acknowledgement of
//! `recover` ends recovery.
//!
//! With SACK (RFC 6675): recovery begins in the same way, or when the scoreboard shows that `una` is lost. Then the sender
//! keeps `pipe` below cwnd and sends the segments that the four rules of `NextSeg` select.
//!
//! After a timeout (RFC 6298 section 5, RFC 5681 section 3.1) the window is one segment, the threshold is half the flight,
//! and the sender sends everything from `una` on again.
//!
//! `recover` also prevents a second response to the same loss: duplicates count only after an acknowledgement beyond it
//! (RFC 6582 section 3.2, step 2). With SACK this applies to one that reaches it, and only after a timeout in loss recovery
//! (RFC 6675 section 5.1): the scoreboard distinguishes old losses from new ones.

use cutline_units::Instant;

use super::scoreboard::{DUP_THRESH, Resend};
use super::sender::Phase;
use super::{FullAck, Halving, Segment, Sender};

impl Sender {
    /// Handles a duplicate acknowledgement, which acknowledges nothing new while data is outstanding (RFC 5681 section 2).
    #[cold]
    pub(super) fn on_duplicate(&mut self, now: Instant) {
        self.careful = true;
        self.allow_burst();
        self.dup_acks = self.dup_acks.saturating_add(1);
        match self.phase {
            Phase::Open if self.loss_is_detected() && self.may_fast_retransmit() => self.enter_recovery(now),
            Phase::Open => {}
            Phase::Recovery => self.on_duplicate_in_recovery(),
        }
    }

    /// Returns whether a loss is detected: by the third duplicate (RFC 5681 section 3.2, step 2), or by the scoreboard
    /// (RFC 6675 section 5, step 2).
    fn loss_is_detected(&self) -> bool {
        let lost = |scoreboard: &super::scoreboard::Scoreboard| scoreboard.is_lost(self.una);
        self.dup_acks >= DUP_THRESH || self.scoreboard.as_deref().is_some_and(lost)
    }

    /// Returns whether duplicates may begin a fast retransmit: the acknowledgement covers more than `recover`
    /// (RFC 6582 section 3.2, step 2), or the heuristic of RFC 6582 section 4.1 is on and allows it. With SACK, only a timeout in
    /// recovery prevents it, until `recover` is acknowledged (RFC 6675 section 5.1).
    pub(super) fn may_fast_retransmit(&self) -> bool {
        if self.scoreboard.is_some() {
            return !self.recovery_failed || self.una >= self.recover;
        }
        let covers_more = self.recover == 0 || self.una > self.recover;
        let is_wide = self.window.cwnd > u64::from(self.mss);
        covers_more || (self.params.ack_heuristic && is_wide && self.advanced_little)
    }

    /// Returns the flight size: outstanding data, without the segments of limited transmit (RFC 5681 section 3.2, step 2).
    pub(super) fn flight_size(&self) -> u64 {
        (self.next - self.una).saturating_sub(u64::from(self.limited_bytes))
    }

    /// Returns the bytes that a loss halves ([`Halving`]).
    pub(super) fn halved(&self) -> u64 {
        let window = match (self.params.variant.halving, self.phase) {
            (Halving::Flight, _) => return self.flight_size(),
            (Halving::Window | Halving::WindowOnce, Phase::Open) => self.window.cwnd,
            // The inflation by duplicates does not count.
            (Halving::Window | Halving::WindowOnce, Phase::Recovery) => {
                self.window.cwnd.min(self.window.ssthresh)
            }
        };
        window.min(self.max_window)
    }

    /// Returns a threshold, rounded down to whole segments if the variant does so.
    pub(super) fn whole(&self, threshold: u64) -> u64 {
        if self.params.variant.whole_segments {
            threshold - threshold % u64::from(self.mss)
        } else {
            threshold
        }
    }

    /// Returns the slow start threshold for half a window. ns-2 truncates it to whole segments, but not the window.
    fn threshold(&self, half: u64) -> u64 {
        match self.params.variant.halving {
            Halving::Flight | Halving::WindowOnce => half,
            Halving::Window => half - half % u64::from(self.mss),
        }
    }

    fn enter_recovery(&mut self, now: Instant) {
        let mss = u64::from(self.mss);
        let threshold = self.control.congested(&self.window, self.halved(), mss);
        self.window.ssthresh = self.whole(threshold);
        self.phase = Phase::Recovery;
        self.partial_ack = false;
        self.recover = self.high_water;
        self.window.cwnd = self.window.ssthresh;
        match &mut self.scoreboard {
            Some(scoreboard) => {
                scoreboard.begin_recovery(self.una);
                scoreboard.set_pipe(self.una, self.high_water);
            }
            // The three segments that caused the duplicates have left the network (RFC 5681 section 3.2, step 3).
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
            // A segment has left the network (RFC 5681 section 3.2, step 4).
            None => self.window.cwnd += u64::from(self.mss),
        }
    }

    /// Handles an acknowledgement of new data during fast recovery.
    #[cold]
    pub(super) fn on_ack_in_recovery(&mut self, now: Instant, acked: u64) {
        self.careful = true;
        self.allow_burst();
        if self.una >= self.recover {
            self.leave_recovery(now);
            if matches!(self.params.variant.full_ack, FullAck::Deflated | FullAck::SsthreshAndGrowth) {
                self.grow(now, acked);
            }
            return;
        }
        if let Some(scoreboard) = &mut self.scoreboard {
            // RFC 6675 section 5, step B
            scoreboard.set_pipe(self.una, self.high_water);
            self.restart_timer(now);
            return;
        }
        self.on_partial_ack(now, acked);
    }

    /// Allows another burst: the limit applies to each acknowledgement in recovery.
    fn allow_burst(&mut self) {
        self.burst_left = self.params.variant.recovery_burst.unwrap_or(u32::MAX);
    }

    /// Handles a partial acknowledgement (RFC 6582 section 3.2, step 3).
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

    /// Ends recovery after a full acknowledgement (RFC 6582 section 3.2, step 3; RFC 6675 section 5, step A).
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

    /// Handles a timeout (RFC 6298 sections 5.4, 5.5 and 5.6, RFC 5681 section 3.1, RFC 6582 section 3.2, step 4).
    #[cold]
    pub(super) fn on_timeout(&mut self, now: Instant) {
        let mss = u64::from(self.mss);
        self.stats.timeouts += 1;
        let reduces = match self.params.variant.halving {
            // If the timer has sent the segment before, ssthresh stays (RFC 5681 section 3.1).
            Halving::Flight => self.timeouts_in_a_row == 0,
            Halving::Window => true,
            Halving::WindowOnce => self.phase == Phase::Open && self.una >= self.recover,
        };
        if reduces {
            let half = self.control.congested(&self.window, self.halved(), mss);
            self.window.ssthresh = self.whole(self.threshold(half));
        }
        self.control.timed_out();
        self.recovery_failed =
            self.phase == Phase::Recovery || (self.recovery_failed && self.una < self.recover);
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

    /// Sends the first hole, whatever the window allows; then, with SACK, the segments that `NextSeg` selects while the pipe allows it.
    #[cold]
    pub(super) fn transmit_in_recovery(&mut self, now: Instant) -> Option<Segment> {
        let mss = u64::from(self.mss);
        if self.retransmit_first {
            self.retransmit_first = false;
            let hole = self.scoreboard.as_ref().map_or(u64::MAX, |board| board.hole_from(self.una).1);
            let len = mss.min(self.high_water.min(hole) - self.una);
            return Some(self.resend(now, Resend { seq: self.una, len }, true));
        }
        // RFC 6675 section 5, step C
        if self.window.cwnd < self.recovery_pipe() + mss {
            return None;
        }
        self.next_segment(now)
    }

    pub(super) fn recovery_pipe(&self) -> u64 {
        self.scoreboard.as_ref().map_or(self.next - self.una, |scoreboard| scoreboard.pipe())
    }

    /// Sends the segment that the rules of `NextSeg` select (RFC 6675 section 4).
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
            return Some(self.set_flags(segment, self.next));
        }
        if let Some(hole) = self.scoreboard.as_ref()?.unsacked_segment(self.una, mss) {
            return Some(self.resend(now, hole, true));
        }
        let scoreboard = self.scoreboard.as_mut()?;
        let rescue = scoreboard.rescue_segment(self.una, self.high_water, self.recover, mss)?;
        Some(self.resend(now, rescue, false))
    }

    /// Retransmits a range. `HighRxt` advances unless this is a rescue retransmission (RFC 6675 section 4, rule 4).
    fn resend(&mut self, now: Instant, again: Resend, advances: bool) -> Segment {
        if let Some(scoreboard) = &mut self.scoreboard {
            let end = if advances { again.seq + again.len } else { 0 };
            scoreboard.retransmitted(end, again.len);
        }
        let segment = self.depart(now, again.seq, again.len, true);
        self.set_flags(segment, again.seq + again.len)
    }
}
