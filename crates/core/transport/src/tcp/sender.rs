//! The sending end of TCP: its state, and its reaction to the application, to acknowledgements and to the timer.
//!
//! At any time `una <= next <= high_water <= end`. Everything below `una` is acknowledged. Everything below `next` has
//! been sent since the last timeout, everything below `high_water` has been sent at least once, and the application has
//! written everything below `end`. After a timeout `next` falls back to `una`, and the sender sends everything again as
//! the window allows (go-back-N), except data that is `SACKed`. `output` decides which segments may leave; `recovery` detects and
//! repairs losses.
//!
//! Deliberate departures from the RFCs:
//! - An ECN echo reduces the window to no less than two segments, as a loss does, and as Linux does. In
//!   RFC 3168 section 6.1.2 the window falls to one segment, and then the sender waits for the timer.
//! - A fast retransmit restarts the timer, too, as in BSD, Linux and ns-2, so that the retransmission has a whole RTO
//!   for its acknowledgement. RFC 6298 section 5 does not mention this case.
//! - Segments are cut at the mss from wherever the window begins. A retransmission after many small writes may therefore
//!   carry more bytes than the original, which RFC 9293 section 3.8.6 allows.

use std::sync::Arc;

use cutline_params::Parameters as _;
use cutline_units::{Duration, Instant, Rate};

use super::congestion::{Acked, Acknowledgement};
use super::rack::RackRecovery;
use super::rtt::Peaks;
use super::scoreboard::Scoreboard;
use super::{Ack, Control, Params, RttEstimator, RttSampling, Window};

/// Phase of the sender: congestion control or fast recovery sets the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Slow start or congestion avoidance.
    Open,
    /// From a fast retransmit until `recover` is acknowledged.
    Recovery,
}

/// No segment is timed. The next segment of new data will be.
pub(super) const NONE_TIMED: u64 = 0;
/// Round trips are measured with the echo of timestamps.
const BY_ECHO: u64 = u64::MAX;

/// The counters of a sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Bytes that the application wrote and the send buffer refused.
    pub refused_bytes: u64,
    /// Segments sent that carried bytes sent before.
    pub retransmissions: u32,
    /// Number of expiries of the retransmission timer.
    pub timeouts: u32,
}

/// The sending end of one connection.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "flags of a protocol's state, a byte each, read alone")]
pub struct Sender {
    pub(super) una: u64,
    pub(super) next: u64,
    pub(super) high_water: u64,
    /// The end of the application's written data, including FIN; `u64::MAX` while the supply is endless.
    pub(super) end: u64,
    pub(super) window: Window,
    /// Time at which the retransmission timer expires.
    pub(super) deadline: Instant,
    pub(super) phase: Phase,
    /// The segment at `una` must be retransmitted, whatever the window allows.
    pub(super) retransmit_first: bool,
    /// The next new segment carries CWR.
    pub(super) cwr: bool,
    pub(super) closed: bool,
    /// `transmit` takes its slow path. Every rare event sets this. The first `transmit` that finds no rare state clears
    /// it.
    pub(super) careful: bool,
    /// Copies of the mss and of the receiver's window.
    pub(super) mss: u32,
    pub(super) max_window: u64,
    /// The congestion window was full after the last transmission.
    pub(super) window_limited: bool,
    pub(super) dup_acks: u8,
    /// Timeouts since the last acknowledgement of new data.
    pub(super) timeouts_in_a_row: u8,
    /// The timer has expired in fast recovery.
    pub(super) recovery_failed: bool,
    /// A partial acknowledgement has arrived in this recovery.
    pub(super) partial_ack: bool,
    /// The last acknowledgement of new data moved `una` by at most four segments.
    pub(super) advanced_little: bool,
    /// Number of segments of new data that may still leave in response to this acknowledgement in fast
    /// recovery.
    pub(super) burst_left: u32,
    /// Bytes sent by limited transmit, which the flight size leaves out (RFC 5681 section 3.2, step 2).
    pub(super) limited_bytes: u32,
    /// `recover` of RFC 6582 section 3.2: the highest sequence number sent when the last loss was detected.
    pub(super) recover: u64,
    /// ECN echoes do not reduce the window again until this is acknowledged.
    ecn_recover: u64,
    pub(super) control: Control,
    pub(super) rtt: RttEstimator,
    /// Echoes of earlier timestamps yield no sample, so that there is one sample per round trip. With
    /// [`RttSampling::OneSegment`]: time at which the timed segment left.
    pub(super) sample_from: Instant,
    /// With [`RttSampling::OneSegment`]: the end of the timed segment, or [`NONE_TIMED`]. Otherwise [`BY_ECHO`].
    pub(super) timed: u64,
    /// With [`RttSampling::Peaks`].
    peaks: Option<Box<Peaks>>,
    pub(super) last_sent: Instant,
    /// With SACK and without [`Params::rack`].
    pub(super) scoreboard: Option<Box<Scoreboard>>,
    /// With [`Params::rack`]. Then `next` is always `high_water`.
    pub(super) rack: Option<Box<RackRecovery>>,
    pub(super) params: Arc<Params>,
    pub(super) stats: Stats,
}

impl Sender {
    /// Creates a connection with nothing to send yet. `params` must be valid ([`Params::validate`]).
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
            recovery_failed: false,
            partial_ack: false,
            advanced_little: true,
            burst_left: u32::MAX,
            limited_bytes: 0,
            recover: 0,
            ecn_recover: 0,
            control: Control::new(params),
            rtt: RttEstimator::new(params),
            sample_from: Instant::ZERO,
            peaks: (params.variant.rtt_sampling == RttSampling::Peaks).then(Box::default),
            timed: if params.variant.rtt_sampling == RttSampling::OneSegment { NONE_TIMED } else { BY_ECHO },
            last_sent: now,
            scoreboard: (params.sack && !params.rack).then(Box::default),
            rack: params.rack.then(|| Box::new(RackRecovery::new(params.algorithm.is_paced()))),
            params: Arc::clone(params),
            stats: Stats::default(),
        }
    }

    /// Takes `bytes` more from the application. Returns false, and takes none of them, if they do not fit the send
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

    /// From now on the application always has more to send.
    pub fn write_unlimited(&mut self) {
        if !self.closed {
            self.end = u64::MAX;
        }
    }

    /// Ends an endless supply after the bytes sent so far.
    pub fn end_supply(&mut self) {
        if self.end == u64::MAX {
            self.end = self.high_water;
            self.careful = true;
        }
    }

    /// Closes the connection: FIN follows the last byte written. An endless supply ends after the bytes sent so far.
    pub fn close(&mut self) {
        if self.closed {
            return;
        }
        self.end_supply();
        self.closed = true;
        self.careful = true;
        self.end += 1;
    }

    /// Handles an acknowledgement.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the acknowledgement is taken from its packet in registers")]
    pub fn on_ack(&mut self, now: Instant, ack: &Ack) {
        if self.rack.is_some() {
            // A copy, so that only this path needs the acknowledgement in memory.
            let ack = *ack;
            return self.on_ack_with_rack(now, &ack);
        }
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

    /// Returns the time at which the retransmission timer expires, or a paced segment may leave; [`Instant::FAR_FUTURE`] while nothing is
    /// outstanding or ready.
    #[inline]
    pub const fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Handles a timeout if the timer has expired.
    #[inline]
    pub fn on_deadline(&mut self, now: Instant) {
        if now < self.deadline {
            return;
        }
        if self.rack.is_some() { self.on_deadline_with_rack(now) } else { self.on_timeout(now) }
    }

    /// Returns the congestion window, bytes. Duplicates inflate it during `NewReno`'s fast recovery.
    pub const fn cwnd(&self) -> u64 {
        self.window.cwnd
    }

    /// Returns the slow start threshold, bytes; `u64::MAX` before the first loss.
    pub const fn ssthresh(&self) -> u64 {
        self.window.ssthresh
    }

    /// Returns the number of bytes that are acknowledged in order, without FIN.
    pub fn acked(&self) -> u64 {
        self.una - u64::from(self.is_finished())
    }

    /// Returns the bytes sent since the last timeout and not acknowledged; with SACK, the pipe (RFC 6675 section 4).
    pub fn in_flight(&self) -> u64 {
        if self.phase == Phase::Recovery && self.scoreboard.is_some() {
            self.recovery_pipe()
        } else {
            self.pipe()
        }
    }

    /// Returns the bytes that were written and have never been sent; `u64::MAX` while the supply is endless.
    pub const fn backlog(&self) -> u64 {
        if self.end == u64::MAX { u64::MAX } else { self.end - self.high_water }
    }

    /// Returns whether everything is acknowledged, including FIN.
    pub const fn is_finished(&self) -> bool {
        self.closed && self.una == self.end
    }

    /// Returns whether the sender is in fast recovery: from a fast retransmit to the full acknowledgement.
    pub fn in_recovery(&self) -> bool {
        self.phase == Phase::Recovery
    }

    /// Returns the smoothed round-trip time; zero before the first sample.
    pub const fn srtt(&self) -> Duration {
        self.rtt.srtt()
    }

    /// Returns the rate at which segments leave at most; `None` if the congestion control has none.
    pub fn pacing_rate(&self) -> Option<Rate> {
        self.control.pacing_rate()
    }

    /// Returns the retransmission timeout, including its backoff.
    pub const fn rto(&self) -> Duration {
        self.rtt.rto()
    }

    /// Returns a number from all over the state; see [`crate::endpoint::Sender::read_ahead`].
    #[inline]
    pub(crate) fn read_ahead(&self) -> u64 {
        let times = self.deadline.as_nanos() ^ self.sample_from.as_nanos() ^ self.last_sent.as_nanos();
        let numbers = self.una ^ self.window.cwnd ^ self.recover ^ self.ecn_recover ^ self.timed;
        times ^ numbers ^ self.rtt.srtt().as_nanos() ^ u64::from(self.stats.timeouts)
    }

    /// Returns the counters.
    pub const fn stats(&self) -> &Stats {
        &self.stats
    }

    /// Returns the number of probes that were sent before the timer expired (RFC 8985 section 7).
    pub fn probes(&self) -> u32 {
        self.rack.as_ref().map_or(0, |rack| rack.probes())
    }

    /// Returns the parameters.
    pub fn params(&self) -> &Params {
        &self.params
    }

    /// Handles an acknowledgement of new data, which moves `una`.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "as on_ack")]
    fn on_new_data(&mut self, now: Instant, ack: &Ack, reduced: bool) {
        debug_assert!(ack.ack <= self.high_water, "the acknowledgement covers what was never sent");
        let acked = ack.ack - self.una;
        self.una = ack.ack;
        self.next = self.next.max(ack.ack);
        let (una, next, marked, echo) = (self.una, self.next, ack.ece, ack.echo);
        self.control.acknowledged(|| Acknowledgement { now, bytes: acked, marked, una, next, echo });
        self.advanced_little = acked <= 4 * u64::from(self.mss);
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
    pub(super) fn sample_round_trip(&mut self, now: Instant, echo: Instant) {
        let sample = now.saturating_since(echo);
        match self.params.variant.rtt_sampling {
            RttSampling::Peaks => {
                let peaks = self.peaks.as_mut().expect("a sender that samples peaks has their state");
                let is_new_round = peaks.begins_round(now, echo);
                self.rtt.sample_peak(sample, is_new_round, peaks, &self.params);
            }
            RttSampling::OncePerRoundTrip => {
                self.rtt.sample(sample, &self.params);
                self.sample_from = now;
            }
            RttSampling::EveryAck | RttSampling::OneSegment => self.rtt.sample(sample, &self.params),
        }
    }

    /// Takes a sample if the timed segment is acknowledged. Then the next segment may be timed.
    fn sample_timed_segment(&mut self, now: Instant) {
        if self.timed != NONE_TIMED && self.una >= self.timed {
            self.rtt.sample(now.saturating_since(self.sample_from), &self.params);
            self.timed = NONE_TIMED;
        }
    }

    /// Times no segment: after a retransmission, acknowledgements are ambiguous (Karn's algorithm, RFC 6298 section 3).
    pub(super) fn forget_timed_segment(&mut self) {
        if self.timed != BY_ECHO {
            self.timed = NONE_TIMED;
        }
    }

    /// Restarts the timer, or stops it if nothing is outstanding (RFC 6298 sections 5.2 and 5.3).
    #[inline]
    pub(super) fn restart_timer(&mut self, now: Instant) {
        let outstanding = self.una < self.high_water;
        self.deadline = if outstanding { now + self.rtt.rto() } else { Instant::FAR_FUTURE };
    }

    /// Reduces the window for an ECN echo, at most once per window of data (RFC 3168 section 6.1.2). Returns whether it did.
    #[cold]
    pub(super) fn on_ecn_echo(&mut self, ack: u64) -> bool {
        let again = self.ecn_recover > 0 && ack <= self.ecn_recover;
        if !self.params.ecn.is_capable()
            || again
            || self.phase == Phase::Recovery
            || self.una == self.high_water
        {
            return false;
        }
        let mss = u64::from(self.mss);
        let threshold = self.control.marked(&self.window, self.halved(), mss);
        self.window.ssthresh = self.whole(threshold);
        // The least ssthresh is two segments (RFC 5681 eq. 4). A window of one segment stays at one.
        self.window.cwnd = self.window.cwnd.min(self.window.ssthresh);
        self.note_reduction();
        true
    }

    /// Notes that the window was reduced. The next new segment reports this to the receiver, and marks on data that is
    /// already outstanding do not reduce the window again (RFC 3168 section 6.1.2).
    pub(super) fn note_reduction(&mut self) {
        self.careful = true;
        self.ecn_recover = self.high_water;
        self.cwr = self.params.ecn.is_capable();
    }
}
