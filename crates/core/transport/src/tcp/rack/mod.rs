//! RACK-TLP (RFC 8985): losses that are found by time, and a probe before the timer.
//!
//! *RACK*: each segment remembers when it was last sent. A segment is lost if one that was sent later has arrived, and it was sent
//! more than a round trip and a reordering window before now (RFC 8985 section 6.2). So a lost retransmission is found, too, which
//! counting duplicates never finds, and so are losses of the last segments of a flight.
//!
//! *TLP*: if no acknowledgement comes for two round trips, the sender sends new data, or the last segment again, and waits for
//! its acknowledgement (RFC 8985 section 7). A loss at the end of a flight is then repaired by fast recovery, without a timeout.
//!
//! The variables are those of RFC 8985 section 5.3: `xmit_ts`, `end_seq`, `rtt`, `min_rtt`, `fack`, `reordering_seen`.
//!
//! Worked: min RTT 100 ms, and the last segment that arrived took 120 ms and was sent at 50 ms. At 171 ms, a segment sent at 49 ms is
//! lost if reordering was never seen and three segments are `SACKed` (window 0: 49 + 120 < 171); otherwise the window is 25 ms, and it is
//! lost at 194 ms.
//!
//! Not implemented: a reordering window that grows with duplicate SACKs (RFC 8985 section 6.2, step 4), because the receiver sends none.

mod paced;
mod sender;

pub(super) use sender::RackRecovery;

use super::SackBlocks;
use super::delivery::{Arrival, Sampler};
use super::scoreboard::DUP_THRESH;
use cutline_units::{Duration, Instant};
use std::collections::VecDeque;

/// A segment that was sent and is not acknowledged cumulatively.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent properties of a segment, a byte each")]
struct Sent {
    seq: u64,
    end: u64,
    /// Time at which the segment was last sent.
    at: Instant,
    /// The receiver holds it.
    is_sacked: bool,
    /// Its last transmission but the retransmission that is under way is lost.
    is_lost: bool,
    /// A retransmission is under way.
    is_resent: bool,
    /// True if the segment was sent more than once.
    was_resent: bool,
}

impl Sent {
    fn len(&self) -> u64 {
        self.end - self.seq
    }

    fn arrival(&self) -> Arrival {
        Arrival { sent_at: self.at, end: self.end, bytes: self.len() }
    }
}

/// Segments that an acknowledgement has newly delivered.
#[derive(Clone, Copy, Debug, Default)]
struct Arrived {
    /// Newly acknowledged or `SACKed`, bytes.
    bytes: u64,
    /// A segment was newly `SACKed` that was sent before the first outstanding one was sent last.
    is_before_first: bool,
}

/// A probe that is under way.
#[derive(Clone, Copy, Debug)]
struct Probe {
    /// The sequence number after it.
    end: u64,
    is_retransmission: bool,
}

/// Purpose of [`Sender::deadline`](super::Sender::deadline).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Timer {
    /// The retransmission timeout.
    #[default]
    Retransmission,
    /// The time after which a probe is sent.
    Probe,
    /// The time at which a segment counts as lost unless it is acknowledged before.
    Reordering,
}

/// The segments of a flight, and their fate.
#[derive(Clone, Debug)]
pub(crate) struct Rack {
    /// In the order of their sequence numbers.
    segments: VecDeque<Sent>,
    /// `RACK.xmit_ts` and `RACK.end_seq`: the time of transmission and the end of the last sent segment among those that have arrived.
    newest: (Instant, u64),
    /// `RACK.rtt`.
    rtt: Duration,
    min_rtt: Duration,
    /// `RACK.fack`: the end of the highest segment that has arrived.
    fack: u64,
    reordering_seen: bool,
    /// Number of `SACKed` segments.
    sacked_segments: u32,
    sacked: u64,
    lost: u64,
    resent: u64,
    /// Below this, segments may have been sent after others with higher numbers.
    resent_below: u64,
    probe: Option<Probe>,
    timer: Timer,
    /// Time of the retransmission timeout.
    rto_at: Instant,
    /// The delivery rate, for a control that is paced.
    sampler: Option<Box<Sampler>>,
}

impl Default for Rack {
    fn default() -> Self {
        Self {
            segments: VecDeque::new(),
            newest: (Instant::ZERO, 0),
            rtt: Duration::ZERO,
            min_rtt: Duration::MAX,
            fack: 0,
            reordering_seen: false,
            sacked_segments: 0,
            sacked: 0,
            lost: 0,
            resent: 0,
            resent_below: 0,
            probe: None,
            timer: Timer::Retransmission,
            rto_at: Instant::FAR_FUTURE,
            sampler: None,
        }
    }
}

impl Rack {
    /// Returns the bytes in the network if `outstanding` are not acknowledged: without data that is `SACKed` or lost, and with data that was
    /// sent again.
    fn pipe(&self, outstanding: u64) -> u64 {
        (outstanding + self.resent).saturating_sub(self.sacked + self.lost)
    }

    /// Notes a segment of new data.
    fn sent(&mut self, now: Instant, seq: u64, end: u64) {
        let flags = (false, false, false, false);
        let (is_sacked, is_lost, is_resent, was_resent) = flags;
        self.segments.push_back(Sent { seq, end, at: now, is_sacked, is_lost, is_resent, was_resent });
    }

    /// Notes that the segment at `seq` is sent again.
    fn sent_again(&mut self, now: Instant, seq: u64) {
        let at = self.segments.partition_point(|segment| segment.seq < seq);
        let segment = &mut self.segments[at];
        if !segment.is_resent {
            self.resent += segment.len();
        }
        (segment.at, segment.is_resent, segment.was_resent) = (now, true, true);
        self.resent_below = self.resent_below.max(segment.end);
    }

    /// Returns the first segment that is lost and was not sent again since.
    fn next_lost(&self) -> Option<(u64, u64)> {
        if self.lost == 0 {
            return None;
        }
        let waits = |segment: &&Sent| segment.is_lost && !segment.is_resent;
        self.segments.iter().find(waits).map(|segment| (segment.seq, segment.end))
    }

    /// Returns the last segment that the receiver does not hold.
    fn last_missing(&self) -> Option<(u64, u64)> {
        let missing = self.segments.iter().rev().find(|segment| !segment.is_sacked);
        missing.map(|segment| (segment.seq, segment.end))
    }

    /// Takes an acknowledgement (RFC 8985 section 6.2, steps 1 to 3). `echo` is the time of the segment that caused it.
    fn acknowledge(&mut self, now: Instant, ack: u64, sack: SackBlocks, echo: Instant) -> Arrived {
        let mut arrived = Arrived::default();
        while let Some(segment) = self.segments.front().copied().filter(|segment| segment.end <= ack) {
            self.segments.pop_front();
            self.forget(&segment);
            if self.sampler.is_some() {
                self.sample_first(now, &segment);
            }
            if segment.is_sacked {
                self.sacked -= segment.len();
                self.sacked_segments -= 1;
            } else {
                arrived.bytes += segment.len();
                self.note_arrival(now, &segment, Some(echo));
            }
        }
        let first_at = self.segments.front().map_or(Instant::ZERO, |first| first.at);
        for (start, end) in sack.ranges(ack) {
            let first = self.segments.partition_point(|segment| segment.seq < start);
            for at in first..self.segments.len() {
                let segment = self.segments[at];
                if segment.end > end {
                    break;
                }
                if segment.is_sacked {
                    continue;
                }
                self.forget(&segment);
                if let Some(sampler) = &mut self.sampler {
                    sampler.acknowledge(now, at, segment.arrival());
                }
                let place = &mut self.segments[at];
                (place.is_sacked, place.is_lost, place.is_resent) = (true, false, false);
                self.sacked += segment.len();
                self.sacked_segments += 1;
                arrived.is_before_first |= segment.at < first_at;
                arrived.bytes += segment.len();
                self.note_arrival(now, &segment, None);
            }
        }
        arrived
    }

    /// Notes for the delivery rate that the first segment is acknowledged.
    #[cold]
    fn sample_first(&mut self, now: Instant, segment: &Sent) {
        if let Some(sampler) = &mut self.sampler {
            sampler.acknowledge_first(now, (!segment.is_sacked).then(|| segment.arrival()));
        }
    }

    /// Removes a segment from the lost and the retransmitted ones.
    fn forget(&mut self, segment: &Sent) {
        self.lost -= if segment.is_lost { segment.len() } else { 0 };
        self.resent -= if segment.is_resent { segment.len() } else { 0 };
    }

    /// Notes that a segment has arrived. `echo` is the sending time of the copy that arrived; behind a hole, acknowledgements do not tell it,
    /// because they echo the last segment in order (RFC 7323 section 4.3).
    fn note_arrival(&mut self, now: Instant, segment: &Sent, echo: Option<Instant>) {
        if segment.end > self.fack {
            self.fack = segment.end;
        } else if !segment.was_resent {
            self.reordering_seen = true;
        }
        let rtt = now.saturating_since(segment.at);
        // An earlier transmission has arrived, and not the last (RFC 8985 section 6.2, step 2).
        let is_older = echo.is_some_and(|echo| echo < segment.at) || rtt < self.min_rtt;
        if segment.was_resent && is_older {
            return;
        }
        self.min_rtt = self.min_rtt.min(rtt);
        if let Some(sampler) = &mut self.sampler {
            sampler.note_round_trip(rtt);
        }
        if (segment.at, segment.end) > self.newest {
            self.newest = (segment.at, segment.end);
            self.rtt = rtt;
        }
    }

    /// Returns the reordering window (RFC 8985 section 6.2, step 4).
    fn reordering_window(&self, srtt: Duration, in_recovery: bool) -> Duration {
        let enough = self.sacked_segments >= u32::from(DUP_THRESH);
        if !self.reordering_seen && (in_recovery || enough) {
            return Duration::ZERO;
        }
        (self.min_rtt / 4).min(srtt)
    }

    /// Finds segments that are lost (RFC 8985 section 6.2, step 5). Returns whether there are new ones, and the time until
    /// another one is, unless it is acknowledged.
    fn detect(&mut self, now: Instant, srtt: Duration, in_recovery: bool) -> (bool, Option<Duration>) {
        // Where segments arrive in the order in which they were sent, none that is outstanding was sent before one that has arrived.
        if self.sacked == 0 && self.segments.front().is_none_or(|first| first.seq >= self.resent_below) {
            return (false, None);
        }
        let patience = self.rtt + self.reordering_window(srtt, in_recovery);
        let (mut found, mut wait) = (false, None);
        for at in 0..self.segments.len() {
            let segment = &mut self.segments[at];
            let waits_already = segment.is_lost && !segment.is_resent;
            if segment.is_sacked || waits_already || (segment.at, segment.end) >= self.newest {
                continue;
            }
            let left = (segment.at + patience).saturating_since(now);
            if left.is_zero() {
                found = true;
                self.lose(now, at);
            } else {
                wait = wait.max(Some(left));
            }
        }
        (found, wait)
    }

    /// Marks a segment as lost, with its retransmission if that is under way.
    fn lose(&mut self, now: Instant, at: usize) {
        let segment = &mut self.segments[at];
        if let Some(sampler) = &mut self.sampler
            && (segment.is_resent || !segment.is_lost)
        {
            sampler.lose(now, at, segment.seq, segment.len());
        }
        if segment.is_resent {
            segment.is_resent = false;
            self.resent -= segment.len();
        }
        if !segment.is_lost {
            segment.is_lost = true;
            self.lost += segment.len();
        }
    }

    /// Marks as lost at a timeout: the first segment, and all that were sent a round trip ago (RFC 8985 section 6.3).
    fn lose_at_timeout(&mut self, now: Instant, srtt: Duration) {
        let patience = self.rtt + self.reordering_window(srtt, true);
        for at in 0..self.segments.len() {
            let segment = &self.segments[at];
            if !segment.is_sacked && (at == 0 || segment.at + patience <= now) {
                self.lose(now, at);
            }
        }
    }

    /// Takes back that segments are lost: the timeout was spurious.
    fn lose_nothing(&mut self) {
        for segment in &mut self.segments {
            segment.is_lost = false;
            segment.is_resent = false;
        }
        (self.lost, self.resent) = (0, 0);
    }

    /// Evaluates an acknowledgement of the probe (RFC 8985 section 7.4.2). Returns whether the probe has repaired a loss.
    fn end_probe(&mut self, ack: u64, advances: bool, sack: SackBlocks) -> bool {
        let Some(probe) = self.probe.filter(|probe| ack >= probe.end) else { return false };
        if !probe.is_retransmission || ack > probe.end {
            self.probe = None;
            return probe.is_retransmission;
        }
        // Both copies have arrived if a second acknowledgement of the same number comes.
        if !advances && sack.is_empty() {
            self.probe = None;
        }
        false
    }
}
