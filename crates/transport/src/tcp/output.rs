//! What a sender lets out: the next segment that the windows allow, and nothing more.
//!
//! `transmit` is the path of a plain segment and knows little: data, the congestion window, the receiver's
//! window. Whatever is rare (recovery, limited transmit, SACK, Nagle, FIN, CWR) sets `careful`, and
//! `transmit_with_care` then looks at everything.

use cutline_units::Instant;

use super::sender::{NONE_TIMED, Phase};
use super::{Segment, Sender};

impl Sender {
    /// The next segment that may leave now; ask until there is none.
    #[inline]
    pub fn transmit(&mut self, now: Instant) -> Option<Segment> {
        if self.careful {
            return self.transmit_with_care(now);
        }
        let out = self.next - self.una;
        if out == 0 {
            self.restart_if_idle(now);
        }
        let len = (self.end - self.next).min(u64::from(self.mss));
        if len == 0 || out + len > self.window.cwnd.min(self.max_window) {
            self.note_what_limits(out);
            return None;
        }
        Some(self.send_next(now, len))
    }

    /// Whether anything but the window decides what leaves next, or it is more than plain data. SACK and Nagle
    /// always need care; fast recovery does, as it began with duplicates.
    fn needs_care(&self) -> bool {
        let always = self.scoreboard.is_some() || self.params.nagle;
        always || self.dup_acks > 0 || self.retransmit_first || self.cwr || self.closed
    }

    /// [`Sender::transmit`] with everything that is rare.
    #[inline(never)]
    fn transmit_with_care(&mut self, now: Instant) -> Option<Segment> {
        if self.retransmit_first || (self.phase == Phase::Recovery && self.scoreboard.is_some()) {
            return self.transmit_in_recovery(now);
        }
        if self.una == self.next {
            self.restart_if_idle(now);
        }
        self.skip_sacked();
        let pipe = self.pipe();
        let len = (self.end - self.next).min(self.longest_segment());
        if len == 0 || !self.windows_allow(pipe, len) || self.nagle_holds(len) || self.burst_is_spent() {
            self.note_what_limits(pipe);
            self.careful = self.needs_care();
            return None;
        }
        if self.next == self.high_water && self.dup_acks > 0 && self.phase == Phase::Open {
            self.limited_bytes += len as u32;
        }
        self.burst_left = self.burst_left.saturating_sub(1);
        let seq = self.next;
        let segment = self.send_next(now, len);
        Some(self.finish(segment, seq + len))
    }

    /// Whether this acknowledgement has set free all that one may ([`Variant::recovery_burst`](super::Variant::recovery_burst)).
    fn burst_is_spent(&self) -> bool {
        self.phase == Phase::Recovery && self.burst_left == 0
    }

    /// RFC 9438 5.8: a window that is full, to less than a segment, is what limits.
    #[inline]
    fn note_what_limits(&mut self, out: u64) {
        self.window_limited = out + u64::from(self.mss) > self.window.cwnd;
    }

    /// After a timeout: what the receiver holds is not sent again.
    fn skip_sacked(&mut self) {
        if let Some(scoreboard) = &self.scoreboard
            && self.next < self.high_water
        {
            self.next = scoreboard.hole_from(self.next).0.min(self.high_water);
        }
    }

    /// The longest segment that may start at `next`: the mss, or up to what the receiver already holds.
    fn longest_segment(&self) -> u64 {
        let mss = u64::from(self.mss);
        match &self.scoreboard {
            Some(scoreboard) if self.next < self.high_water => {
                mss.min(scoreboard.hole_from(self.next).1 - self.next)
            }
            _ => mss,
        }
    }

    /// Bytes that count as outstanding outside fast recovery with SACK.
    pub(super) fn pipe(&self) -> u64 {
        let sent = self.next - self.una;
        self.scoreboard.as_ref().map_or(sent, |scoreboard| sent - scoreboard.sacked_below(self.next))
    }

    /// Congestion control counts what is in the pipe; the receiver's window is a range of sequence numbers.
    fn windows_allow(&self, pipe: u64, len: u64) -> bool {
        pipe + len <= self.window.cwnd + self.limited_transmit()
            && self.next - self.una + len <= self.max_window
    }

    /// RFC 3042: a segment for each of the first two duplicates. SACK's pipe has that in it.
    fn limited_transmit(&self) -> u64 {
        let applies = self.params.limited_transmit
            && self.phase == Phase::Open
            && self.scoreboard.is_none()
            && (self.params.variant.limited_transmit_always || self.may_fast_retransmit());
        if applies { u64::from(self.dup_acks.min(2)) * u64::from(self.mss) } else { 0 }
    }

    fn nagle_holds(&self, len: u64) -> bool {
        len < u64::from(self.mss) && self.params.nagle && self.next > self.una && !self.closed
    }

    /// Sends what is at `next`.
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

    /// Counts a segment of `len` bytes from `seq`, and sees that the timer runs.
    #[inline]
    pub(super) fn depart(&mut self, now: Instant, seq: u64, len: u64, retransmission: bool) -> Segment {
        if self.deadline == Instant::FAR_FUTURE {
            // RFC 6298 5.1
            self.deadline = now + self.rtt.rto();
        }
        self.last_sent = now;
        self.stats.segments += 1;
        self.stats.bytes += len;
        self.stats.retransmissions += u32::from(retransmission);
        Segment { seq, sent_at: now, len: len as u32, retransmission, cwr: false, fin: false }
    }

    /// Gives the segment that ends at `end` its flags.
    pub(super) fn finish(&mut self, mut segment: Segment, end: u64) -> Segment {
        segment.fin = self.closed && end == self.end;
        if segment.fin {
            segment.len -= 1;
            self.stats.bytes -= 1;
        }
        // RFC 3168 6.1.2: on the first new data after the reduction.
        segment.cwr = self.cwr && !segment.retransmission;
        self.cwr &= segment.retransmission;
        segment
    }

    /// Whether there is something new to send, at most an mss of it.
    pub(super) fn new_data(&self) -> Option<u64> {
        let len = (self.end - self.high_water).min(u64::from(self.mss));
        (len > 0).then_some(len)
    }

    /// RFC 5681 4.1: the window of a connection that was idle says nothing about the network of today.
    #[cold]
    fn restart_if_idle(&mut self, now: Instant) {
        let idle = self.una == self.high_water && now.saturating_since(self.last_sent) > self.rtt.rto();
        if idle && self.params.idle_restart {
            self.window.cwnd = self.window.cwnd.min(self.params.initial_window_bytes());
        }
    }
}
