//! The output of a TCP sender: the next segment that the windows allow.
//!
//! `transmit` is the fast path for plain data. It checks the congestion window and the receiver's window only. Every rare
//! state (recovery, limited transmit, SACK, Nagle, FIN, CWR) sets `careful`. `transmit_slow_path` then checks everything.

use cutline_units::Instant;

use super::sender::{NONE_TIMED, Phase};
use super::{Segment, Sender};

impl Sender {
    /// Returns the next segment that may leave now. The caller must call this until it returns `None`.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "as Sender::on_ack")]
    pub fn transmit(&mut self, now: Instant) -> Option<Segment> {
        if self.careful {
            return self.transmit_slow_path(now);
        }
        let out = self.next - self.una;
        if out == 0 {
            self.restart_if_idle(now);
        }
        let len = (self.end - self.next).min(u64::from(self.mss));
        if len == 0 || out + len > self.window.cwnd.min(self.max_window) {
            self.note_window_limited(out);
            return None;
        }
        Some(self.send_next(now, len))
    }

    /// Returns whether something other than the window decides on the next segment, or the next segment is not plain data.
    /// SACK and Nagle always take the slow path. So does fast recovery, which begins with duplicates.
    fn needs_slow_path(&self) -> bool {
        let always = self.scoreboard.is_some() || self.rack.is_some() || self.params.nagle;
        always || self.dup_acks > 0 || self.retransmit_first || self.cwr || self.closed
    }

    /// Does the same as [`Sender::transmit`] in every state.
    #[inline(never)]
    fn transmit_slow_path(&mut self, now: Instant) -> Option<Segment> {
        if self.rack.is_some() {
            return self.transmit_with_rack(now);
        }
        if self.retransmit_first || (self.phase == Phase::Recovery && self.scoreboard.is_some()) {
            return self.transmit_in_recovery(now);
        }
        if self.una == self.next {
            self.restart_if_idle(now);
        }
        self.skip_sacked();
        let pipe = self.pipe();
        let len = (self.end - self.next).min(self.longest_segment());
        if len == 0 || !self.windows_allow(pipe, len) || self.nagle_holds(len) || self.burst_limit_reached() {
            self.note_window_limited(pipe);
            self.careful = self.needs_slow_path();
            return None;
        }
        if self.next == self.high_water && self.dup_acks > 0 && self.phase == Phase::Open {
            self.limited_bytes += len as u32;
        }
        self.burst_left = self.burst_left.saturating_sub(1);
        let seq = self.next;
        let segment = self.send_next(now, len);
        Some(self.set_flags(segment, seq + len))
    }

    /// Returns whether this acknowledgement has released its limit of segments
    /// ([`Variant::recovery_burst`](super::Variant::recovery_burst)).
    fn burst_limit_reached(&self) -> bool {
        self.phase == Phase::Recovery && self.burst_left == 0
    }

    /// Notes whether the window limits the sender: it has no room for another segment (RFC 9438 section 5.8).
    #[inline]
    pub(super) fn note_window_limited(&mut self, out: u64) {
        self.window_limited = out + u64::from(self.mss) > self.window.cwnd;
    }

    /// Moves `next` over data that the receiver holds. After a timeout, that data is not sent again.
    fn skip_sacked(&mut self) {
        if let Some(scoreboard) = &self.scoreboard
            && self.next < self.high_water
        {
            self.next = scoreboard.hole_from(self.next).0.min(self.high_water);
        }
    }

    /// Returns the longest segment that may start at `next`: the mss, or less if the receiver holds the data after it.
    fn longest_segment(&self) -> u64 {
        let mss = u64::from(self.mss);
        match &self.scoreboard {
            Some(scoreboard) if self.next < self.high_water => {
                mss.min(scoreboard.hole_from(self.next).1 - self.next)
            }
            _ => mss,
        }
    }

    /// Returns the bytes that count as outstanding, except in fast recovery with SACK.
    pub(super) fn pipe(&self) -> u64 {
        let sent = self.next - self.una;
        if let Some(rack) = &self.rack {
            return rack.pipe(sent);
        }
        // Without limited transmit, duplicates release nothing before recovery (RFC 6675 section 5, step 3).
        if !self.params.limited_transmit && self.dup_acks > 0 {
            return sent;
        }
        self.scoreboard.as_ref().map_or(sent, |scoreboard| sent - scoreboard.sacked_below(self.next))
    }

    /// Returns whether both windows allow `len` more bytes. Congestion control counts the pipe; the receiver's window is a
    /// range of sequence numbers.
    fn windows_allow(&self, pipe: u64, len: u64) -> bool {
        pipe + len <= self.window.cwnd + self.limited_transmit()
            && self.next - self.una + len <= self.max_window
    }

    /// Returns the excess over the window by limited transmit: a segment for each of the first two duplicates
    /// (RFC 3042 section 2). With SACK, the pipe includes this already.
    fn limited_transmit(&self) -> u64 {
        let applies = self.params.limited_transmit
            && self.phase == Phase::Open
            && self.scoreboard.is_none()
            && (self.params.variant.limited_transmit_always || self.may_fast_retransmit());
        if applies { u64::from(self.dup_acks.min(2)) * u64::from(self.mss) } else { 0 }
    }

    /// Returns whether Nagle's algorithm holds back a segment of `len` bytes (RFC 1122 section 4.2.3.4).
    pub(super) fn nagle_holds(&self, len: u64) -> bool {
        len < u64::from(self.mss) && self.params.nagle && self.next > self.una && !self.closed
    }

    /// Sends `len` bytes at `next`.
    #[inline]
    pub(super) fn send_next(&mut self, now: Instant, len: u64) -> Segment {
        let seq = self.next;
        self.next += len;
        let retransmission = seq < self.high_water;
        if self.timed == NONE_TIMED && !retransmission {
            (self.timed, self.sample_from) = (self.next, now);
        }
        self.high_water = self.high_water.max(self.next);
        self.depart(now, seq, len, retransmission)
    }

    /// Returns a segment of `len` bytes at `seq` that leaves now, and starts the timer if it is not running.
    #[inline]
    pub(super) fn depart(&mut self, now: Instant, seq: u64, len: u64, retransmission: bool) -> Segment {
        if self.deadline == Instant::FAR_FUTURE {
            // RFC 6298 section 5.1
            self.deadline = now + self.rtt.rto();
        }
        self.last_sent = now;
        self.stats.retransmissions += u32::from(retransmission);
        Segment { seq, sent_at: now, len: len as u32, retransmission, cwr: false, fin: false }
    }

    /// Sets the flags of a segment that ends at `end`.
    pub(super) fn set_flags(&mut self, mut segment: Segment, end: u64) -> Segment {
        segment.fin = self.closed && end == self.end;
        if segment.fin {
            segment.len -= 1;
        }
        // CWR is set on the first new data after the reduction (RFC 3168 section 6.1.2).
        segment.cwr = self.cwr && !segment.retransmission;
        self.cwr &= segment.retransmission;
        segment
    }

    /// Returns the length of the next segment of new data; `None` if there is none.
    pub(super) fn new_data(&self) -> Option<u64> {
        let len = (self.end - self.high_water).min(u64::from(self.mss));
        (len > 0).then_some(len)
    }

    /// Reduces the window of a connection that was idle for more than an RTO (RFC 5681 section 4.1).
    #[cold]
    pub(super) fn restart_if_idle(&mut self, now: Instant) {
        let idle = self.una == self.high_water && now.saturating_since(self.last_sent) > self.rtt.rto();
        if idle && self.params.idle_restart {
            self.window.cwnd = self.window.cwnd.min(self.params.initial_window_bytes());
        }
    }
}
