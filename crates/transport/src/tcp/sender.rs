//! The sending end: what it remembers, and what the application, an acknowledgement or the timer changes.
//!
//! At any time `una <= next <= high_water <= end`: acknowledged below `una`, sent since the last timeout below
//! `next`, sent at some time below `high_water`, written by the application below `end`. After a timeout
//! `next` falls back to `una` and everything is sent again as the window allows (go-back-N; what is `SACKed` is
//! skipped). What may leave is in `output`, how losses are
//! found and mended in `recovery`.
//!
//! Departures from the RFCs, on purpose:
//! - an ECN echo reduces the window to no less than two segments, as a loss does and as Linux has it; RFC 3168
//!   6.1.2 goes on down to one and then to the timer;
//! - the timer is restarted by a fast retransmit as well (RFC 6298 5 is silent), as BSD, Linux and ns-2 do:
//!   the retransmission deserves a whole RTO for its acknowledgement;
//! - segments are cut at the mss from wherever the window begins, so a retransmission after many small writes
//!   may carry more bytes than the original, as RFC 9293 3.7.1 allows.

use std::sync::Arc;

use cutline_params::Parameters as _;
use cutline_units::{Duration, Instant};

use super::congestion::{Acked, Acknowledgement};
use super::scoreboard::Scoreboard;
use super::{Ack, Control, Params, RttEstimator, RttSampling, Window};

/// Whether the window is moved by congestion control or by fast recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Slow start or congestion avoidance.
    Open,
    /// From a fast retransmit until `recover` is acknowledged.
    Recovery,
}

/// No segment is timed: the next of new data will be.
pub(super) const NONE_TIMED: u64 = 0;
/// Round trips are timed by the echo of timestamps.
const BY_ECHO: u64 = u64::MAX;

/// What is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Segments sent, retransmissions among them.
    pub segments: u64,
    /// Payload bytes sent, retransmissions among them.
    pub bytes: u64,
    /// Bytes the application wrote and the send buffer refused.
    pub refused_bytes: u64,
    /// Segments sent that carried bytes sent before.
    pub retransmissions: u32,
    /// Times that fast recovery was entered.
    pub fast_retransmits: u32,
    /// Times that the retransmission timer ran out.
    pub timeouts: u32,
    /// Times that the window was reduced for an ECN echo.
    pub ecn_reductions: u32,
}

/// The sending end of one connection.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "flags of a protocol's state, a byte each, read alone")]
pub struct Sender {
    pub(super) una: u64,
    pub(super) next: u64,
    pub(super) high_water: u64,
    /// What the application has written, with FIN; `u64::MAX` while that is without end.
    pub(super) end: u64,
    pub(super) window: Window,
    /// When the retransmission timer runs out.
    pub(super) deadline: Instant,
    pub(super) phase: Phase,
    /// The segment at `una` is to be sent again, whatever the window says.
    pub(super) retransmit_first: bool,
    /// The next new segment says that the window was reduced.
    pub(super) cwr: bool,
    pub(super) closed: bool,
    /// Something rare is going on, so `transmit` must look closely. Set by whatever is rare, taken back by the
    /// first `transmit` that finds all plain again.
    pub(super) careful: bool,
    /// The mss and the receiver's window, at hand.
    pub(super) mss: u32,
    pub(super) max_window: u64,
    /// When all that could leave had left, the congestion window was full.
    pub(super) window_limited: bool,
    pub(super) dup_acks: u8,
    /// Timeouts since the last acknowledgement of new data.
    pub(super) timeouts_in_a_row: u8,
    /// A partial acknowledgement came in this recovery.
    pub(super) partial_ack: bool,
    /// How many segments of new data this acknowledgement may still set free in fast recovery.
    pub(super) burst_left: u32,
    /// Bytes sent by limited transmit: no part of RFC 5681's flight size.
    pub(super) limited_bytes: u32,
    /// RFC 6582's `recover`: what had been sent when the last loss was found.
    pub(super) recover: u64,
    /// How far the last acknowledgement of new data moved `una`.
    pub(super) last_advance: u64,
    /// No second reduction for an ECN echo until this is acknowledged.
    ecn_recover: u64,
    pub(super) control: Control,
    pub(super) rtt: RttEstimator,
    /// An echo from before this yields no sample: one is enough for a round trip. With [`RttSampling::OneSegment`]:
    /// when the timed segment left.
    pub(super) sample_from: Instant,
    /// With [`RttSampling::OneSegment`]: where the timed segment ends, [`NONE_TIMED`] between two of them. Otherwise
    /// [`BY_ECHO`].
    pub(super) timed: u64,
    pub(super) last_sent: Instant,
    pub(super) scoreboard: Option<Box<Scoreboard>>,
    pub(super) params: Arc<Params>,
    pub(super) stats: Stats,
}

impl Sender {
    /// A connection with nothing to send yet. `params` must be valid ([`Params::validate`]).
    pub fn new(params: &Arc<Params>, now: Instant) -> Self {
        debug_assert_eq!(params.validate(), Ok(()), "validate parameters where they are read");
        Self {
            una: 0,
            next: 0,
            high_water: 0,
            end: 0,
            window: Window {
                cwnd: params.initial_window_bytes(),
                ssthresh: params.initial_ssthresh.map_or(u64::MAX, |segments| params.bytes_of(segments)),
            },
            deadline: Instant::FAR_FUTURE,
            phase: Phase::Open,
            retransmit_first: false,
            cwr: false,
            closed: false,
            careful: true,
            mss: params.mss,
            max_window: params.max_window.map_or(u64::MAX, |segments| params.bytes_of(segments)),
            window_limited: false,
            dup_acks: 0,
            timeouts_in_a_row: 0,
            partial_ack: false,
            burst_left: u32::MAX,
            limited_bytes: 0,
            recover: 0,
            last_advance: 0,
            ecn_recover: 0,
            control: Control::new(params),
            rtt: RttEstimator::new(params),
            sample_from: Instant::ZERO,
            timed: if params.variant.rtt_sampling == RttSampling::OneSegment { NONE_TIMED } else { BY_ECHO },
            last_sent: now,
            scoreboard: params.sack.then(Box::default),
            params: Arc::clone(params),
            stats: Stats::default(),
        }
    }

    /// The application has `bytes` more to send. False, and none of them taken, when they do not fit the send
    /// buffer ([`Params::send_buffer`]) or the connection is closed.
    pub fn write(&mut self, bytes: u64) -> bool {
        let backlog = self.end.saturating_sub(self.high_water);
        let fits = self.params.send_buffer.is_none_or(|limit| backlog + bytes <= self.params.bytes_of(limit));
        let taken = fits && !self.closed;
        if taken {
            self.end = self.end.saturating_add(bytes);
        } else {
            self.stats.refused_bytes += bytes;
        }
        taken
    }

    /// The application always has more to send.
    pub fn write_unlimited(&mut self) {
        if !self.closed {
            self.end = u64::MAX;
        }
    }

    /// An endless supply ends with what was sent.
    pub fn end_supply(&mut self) {
        if self.end == u64::MAX {
            self.end = self.high_water;
            self.careful = true;
        }
    }

    /// The application has written its last byte; FIN follows it. An endless supply ends with what was sent.
    pub fn close(&mut self) {
        if self.closed {
            return;
        }
        self.end_supply();
        self.closed = true;
        self.careful = true;
        self.end += 1;
    }

    /// An acknowledgement has arrived.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the acknowledgement is taken from its packet in registers")]
    pub fn on_ack(&mut self, now: Instant, ack: &Ack) {
        if let Some(scoreboard) = &mut self.scoreboard
            && (!ack.sack.is_empty() || !scoreboard.is_empty())
        {
            scoreboard.update(ack.ack.max(self.una), ack.ack, ack.sack, u64::from(self.mss));
        }
        let reduced = ack.ece && self.on_ecn_echo(ack.ack);
        if ack.ack > self.una {
            self.on_new_data(now, ack, reduced);
        } else if ack.ack == self.una && self.una < self.high_water {
            self.on_duplicate(now);
        }
    }

    /// The retransmission timer, [`Instant::FAR_FUTURE`] while nothing is outstanding.
    #[inline]
    pub const fn deadline(&self) -> Instant {
        self.deadline
    }

    /// It is `now`: acts if the deadline has come.
    #[inline]
    pub fn on_deadline(&mut self, now: Instant) {
        if now >= self.deadline {
            self.on_timeout(now);
        }
    }

    /// The congestion window, bytes; inflated by duplicates during `NewReno`'s fast recovery.
    pub const fn cwnd(&self) -> u64 {
        self.window.cwnd
    }

    /// The slow start threshold, bytes; `u64::MAX` before the first loss.
    pub const fn ssthresh(&self) -> u64 {
        self.window.ssthresh
    }

    /// Bytes acknowledged in order (FIN not counted).
    pub fn acked(&self) -> u64 {
        self.una - u64::from(self.is_finished())
    }

    /// Bytes sent since the last timeout and not acknowledged: RFC 6675's pipe with SACK.
    pub fn in_flight(&self) -> u64 {
        if self.phase == Phase::Recovery { self.recovery_pipe() } else { self.pipe() }
    }

    /// Bytes that were written and have never been sent; `u64::MAX` while there is no end of them.
    pub const fn backlog(&self) -> u64 {
        if self.end == u64::MAX { u64::MAX } else { self.end - self.high_water }
    }

    /// Whether everything, with FIN, is acknowledged.
    pub const fn is_finished(&self) -> bool {
        self.closed && self.una == self.end
    }

    /// Whether a loss is being mended: from a fast retransmit to the full acknowledgement.
    pub fn in_recovery(&self) -> bool {
        self.phase == Phase::Recovery
    }

    /// The smoothed round-trip time; zero before the first sample.
    pub const fn srtt(&self) -> Duration {
        self.rtt.srtt()
    }

    /// The retransmission timeout, with its backoff.
    pub const fn rto(&self) -> Duration {
        self.rtt.rto()
    }

    /// What was counted so far.
    pub const fn stats(&self) -> &Stats {
        &self.stats
    }

    /// What was set.
    pub fn params(&self) -> &Params {
        &self.params
    }

    /// The acknowledgement moves `una`.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "as on_ack")]
    fn on_new_data(&mut self, now: Instant, ack: &Ack, reduced: bool) {
        debug_assert!(ack.ack <= self.high_water, "the acknowledgement covers what was never sent");
        let acked = ack.ack - self.una;
        self.una = ack.ack;
        self.next = self.next.max(ack.ack);
        let (una, next, marked, echo) = (self.una, self.next, ack.ece, ack.echo);
        self.control.acknowledged(|| Acknowledgement { now, bytes: acked, marked, una, next, echo });
        self.last_advance = acked;
        self.timeouts_in_a_row = 0;
        if self.timed == BY_ECHO {
            if ack.echo >= self.sample_from {
                self.sample_round_trip(now, ack.echo);
            }
        } else {
            self.sample_timed_segment(now);
        }
        if self.phase == Phase::Recovery {
            self.on_ack_in_recovery(now, acked);
            return;
        }
        self.dup_acks = 0;
        self.limited_bytes = 0;
        self.restart_timer(now);
        if !reduced {
            self.grow(now, acked);
        }
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "as on_ack")]
    pub(super) fn grow(&mut self, now: Instant, acked: u64) {
        if self.window_limited || !self.params.variant.grow_only_when_limited {
            let acked = Acked { bytes: acked, now, srtt: self.rtt.srtt() };
            self.control.grow(&mut self.window, &acked, &self.params);
        } else {
            self.control.application_limited(now);
        }
    }

    #[inline(never)]
    fn sample_round_trip(&mut self, now: Instant, echo: Instant) {
        self.rtt.sample(now.saturating_since(echo), &self.params);
        if self.params.variant.rtt_sampling == RttSampling::OncePerRoundTrip {
            self.sample_from = now;
        }
    }

    /// Whether the timed segment is acknowledged; then the next may be timed.
    fn sample_timed_segment(&mut self, now: Instant) {
        if self.timed != NONE_TIMED && self.una >= self.timed {
            self.rtt.sample(now.saturating_since(self.sample_from), &self.params);
            self.timed = NONE_TIMED;
        }
    }

    /// What is sent again makes acknowledgements ambiguous: Karn's rule (RFC 6298 3).
    pub(super) fn forget_timed_segment(&mut self) {
        if self.timed != BY_ECHO {
            self.timed = NONE_TIMED;
        }
    }

    /// RFC 6298 5.2, 5.3.
    #[inline]
    pub(super) fn restart_timer(&mut self, now: Instant) {
        let outstanding = self.una < self.high_water;
        self.deadline = if outstanding { now + self.rtt.rto() } else { Instant::FAR_FUTURE };
    }

    /// Reduces the window for an ECN echo, at most once a window of data (RFC 3168 6.1.2). True if it did.
    #[cold]
    fn on_ecn_echo(&mut self, ack: u64) -> bool {
        let again = self.ecn_recover > 0 && ack <= self.ecn_recover;
        if !self.params.ecn.is_capable()
            || again
            || self.phase == Phase::Recovery
            || self.una == self.high_water
        {
            return false;
        }
        let mss = u64::from(self.mss);
        self.window.ssthresh = self.control.marked(&self.window, self.halved(), mss);
        // RFC 5681's floor of two segments is one for ssthresh: a window of one stays one.
        self.window.cwnd = self.window.cwnd.min(self.window.ssthresh);
        self.note_reduction();
        self.stats.ecn_reductions += 1;
        true
    }

    /// The window was reduced: the receiver is told so, and marks on what is out already are no news (RFC 3168
    /// 6.1.2).
    pub(super) fn note_reduction(&mut self) {
        self.careful = true;
        self.ecn_recover = self.high_water;
        self.cwr = self.params.ecn.is_capable();
    }
}
