//! The sending end of an ABR connection: the allowed cell rate, RM cells, and the pace of packets.

use super::{Feedback, Packet, Params, cells};
use crate::queue::SendQueue;
use cutline_params::Parameters as _;
use cutline_units::{Duration, Instant, Rate};
use std::sync::Arc;

/// Bits of a cell.
const CELL_BITS: f64 = 424.0;
/// Number of cells between two RM cells of which the second one is sent because of the time (`Mrm`).
const LEAST_CELLS: u32 = 2;
/// The lowest rate, cells per second (`TCR`).
const LEAST_RATE: f64 = 10.0;

/// The counters of a sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Packets sent.
    pub packets: u64,
    /// Their payload, bytes.
    pub bytes: u64,
    /// Payload that found the send buffer full, bytes.
    pub refused: u64,
    /// RM cells sent.
    pub rm_cells: u64,
    /// RM cells that came back.
    pub returned: u64,
    /// RM cells that came back with CI.
    pub congested: u64,
    /// Number of times that the rate was lowered because no RM cells came back.
    pub cutoffs: u64,
}

/// The sending end of one connection.
#[derive(Clone, Debug)]
pub struct Sender {
    params: Arc<Params>,
    queue: SendQueue,
    /// The allowed cell rate (`ACR`), bit/s.
    acr: f64,
    next_seq: u64,
    /// Time from which on the next packet may leave.
    next: Instant,
    /// Time of the last RM cell; `None` before the first one.
    last_rm: Option<Instant>,
    /// Number of other cells since the last RM cell.
    since_rm: u32,
    /// Number of RM cells since the last one that came back.
    unanswered: u32,
    stats: Stats,
}

impl Sender {
    /// Creates a connection with nothing to send yet. `params` must be valid.
    pub fn new(params: &Arc<Params>, now: Instant) -> Self {
        debug_assert_eq!(params.validate(), Ok(()), "validate parameters where they are read");
        let limit = params.send_buffer.map_or(usize::MAX, |packets| packets as usize);
        Self {
            queue: SendQueue::new(params.packet_size, limit),
            acr: initial(params),
            next_seq: 0,
            next: now,
            last_rm: None,
            since_rm: 0,
            unanswered: 0,
            stats: Stats::default(),
            params: Arc::clone(params),
        }
    }

    /// Takes a message of `bytes` from the application. Data beyond the send buffer is dropped. Returns whether everything fitted.
    pub fn write(&mut self, bytes: u64) -> bool {
        let dropped = u64::from(self.queue.write(bytes));
        if dropped > 0 {
            let packet = u64::from(self.params.packet_size);
            // The last packet of a message may be shorter, and it is dropped first.
            let last = bytes - (bytes.div_ceil(packet) - 1) * packet;
            self.stats.refused += (dropped - 1) * packet + last;
        }
        dropped == 0
    }

    /// From now on there is always a packet to send.
    pub fn write_unlimited(&mut self) {
        self.queue.write_unlimited();
    }

    /// Ends the endless supply. Written data is still sent.
    pub fn end_supply(&mut self) {
        self.queue.end_supply();
    }

    /// Handles RM cells that came back (source behaviour 8).
    pub fn on_feedback(&mut self, now: Instant, feedback: &Feedback) {
        let Params { pcr, rif, rdf, .. } = *self.params;
        let (least, most, before) = (least(&self.params), pcr.as_bps() as f64, self.acr);
        let cells = u64::from(feedback.cells);
        self.unanswered = 0;
        self.stats.returned += cells;
        self.stats.congested += if feedback.is_congested { cells } else { 0 };
        for _ in 0..cells {
            self.acr = if feedback.is_congested {
                (self.acr - rdf * self.acr).max(least)
            } else {
                (self.acr + rif * most).min(most)
            };
        }
        // The cells that the pause stands for leave at the new rate.
        let rest = self.next.saturating_since(now);
        self.next = now + rest.mul_f64(before / self.acr);
    }

    /// Returns the next departure; [`Instant::FAR_FUTURE`] if nothing is to be sent.
    pub fn deadline(&self) -> Instant {
        if self.queue.is_empty() { Instant::FAR_FUTURE } else { self.next }
    }

    /// Returns the next packet that may leave now.
    pub fn transmit(&mut self, now: Instant) -> Option<Packet> {
        if now < self.next {
            return None;
        }
        let len = self.queue.pop()?;
        let data = cells(len + self.params.header_bytes);
        let rm_cells = self.count_rm_cells(now, data);
        if rm_cells > 0 {
            self.before_rm_cells(now, rm_cells);
        }
        self.next = now + Duration::from_secs_f64(f64::from(data + rm_cells) * CELL_BITS / self.acr);
        let seq = self.next_seq;
        self.next_seq += 1;
        self.stats.packets += 1;
        self.stats.bytes += u64::from(len);
        self.stats.rm_cells += u64::from(rm_cells);
        Some(Packet { seq, sent_at: now, len, rm_cells })
    }

    /// Returns the allowed cell rate.
    pub fn rate(&self) -> Rate {
        Rate::from_bps(self.acr as u64)
    }

    /// Returns the parameters.
    pub fn params(&self) -> &Params {
        &self.params
    }

    /// Returns the counters.
    pub const fn stats(&self) -> &Stats {
        &self.stats
    }

    /// Returns the number of RM cells among the next `data` other cells, at least one (source behaviours 2 and 3): one before the first cell
    /// of all, after Nrm - 1 others, and after two others if the last one was Trm ago.
    fn count_rm_cells(&mut self, now: Instant, data: u32) -> u32 {
        let period = self.params.nrm - 1;
        let is_due = match self.last_rm {
            None => true,
            Some(last) => {
                let is_late = now.saturating_since(last) >= self.params.trm;
                self.since_rm >= period || self.since_rm >= LEAST_CELLS && is_late
            }
        };
        let before = if is_due { 0 } else { self.since_rm };
        let further = (before + data - 1) / period;
        self.since_rm = before + data - further * period;
        u32::from(is_due) + further
    }

    /// Lowers the rate before RM cells are sent, if it is time: after an idle time (source behaviour 5), and without RM cells that come back
    /// (source behaviour 6).
    fn before_rm_cells(&mut self, now: Instant, count: u32) {
        let Params { adtf, crm, cdf, .. } = *self.params;
        if self.last_rm.is_some_and(|last| now.saturating_since(last) > adtf) {
            self.acr = self.acr.min(initial(&self.params));
        }
        self.last_rm = Some(now);
        for _ in 0..count {
            if self.unanswered >= crm {
                self.acr = (self.acr - cdf * self.acr).max(least(&self.params));
                self.stats.cutoffs += 1;
            }
            self.unanswered = self.unanswered.saturating_add(1);
        }
    }
}

/// Returns the lowest rate, bit/s.
fn least(params: &Params) -> f64 {
    (params.mcr.as_bps() as f64).max(LEAST_RATE * CELL_BITS)
}

/// Returns the rate of the first cells, bit/s.
fn initial(params: &Params) -> f64 {
    let most = params.pcr.as_bps() as f64;
    params.icr.map_or(params.rif * most, |icr| icr.as_bps() as f64).clamp(least(params), most)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MBPS: f64 = 1e6;

    fn params() -> Params {
        let pcr = Rate::from_mbps(10);
        Params { packet_size: 1000, pcr, icr: Some(Rate::from_mbps(5)), ..Params::default() }
    }

    fn bulk(params: Params) -> Sender {
        let mut sender = Sender::new(&Arc::new(params), Instant::ZERO);
        sender.write_unlimited();
        sender
    }

    fn returned(cells: u32, is_congested: bool) -> Feedback {
        Feedback { cells, is_congested }
    }

    /// Sends packets until a time, and returns them.
    fn sent(sender: &mut Sender, until: Instant) -> Vec<Packet> {
        let mut packets = Vec::new();
        while sender.deadline() <= until {
            packets.extend(sender.transmit(sender.deadline()));
        }
        packets
    }

    #[test]
    fn the_worked_example() {
        let mut sender = bulk(params());
        let packets = sent(&mut sender, Instant::ZERO + Duration::from_secs(1));
        // 5 Mbit/s are 11,792 cells per second, of which one in 32 is an RM cell: one each 2.71 ms, and those of the last packet.
        let rm_cells: u32 = packets.iter().map(|packet| packet.rm_cells).sum();
        assert!((368..=370).contains(&rm_cells), "{rm_cells}");
        sender.on_feedback(Instant::ZERO, &returned(1, false));
        assert!((sender.acr - 5.625 * MBPS).abs() < 1.0, "{}", sender.acr);
        sender.acr = 5.0 * MBPS;
        sender.on_feedback(Instant::ZERO, &returned(1, true));
        assert!((sender.acr - 4.6875 * MBPS).abs() < 1.0, "{}", sender.acr);
    }

    /// Each cell of a packet is counted one by one, as the specification has it.
    #[test]
    fn an_rm_cell_is_among_each_32_cells() {
        for nrm in [2, 3, 32] {
            let mut sender = bulk(Params { nrm, ..params() });
            let (mut since, mut expected): (u32, Vec<u32>) = (nrm - 1, Vec::new());
            let packets = sent(&mut sender, Instant::ZERO + Duration::from_millis(50));
            for packet in &packets {
                let mut count = 0;
                for _ in 0..cells(packet.len) {
                    if since >= nrm - 1 {
                        (since, count) = (0, count + 1);
                    }
                    since += 1;
                }
                expected.push(count);
            }
            assert!(packets.len() > 10 && packets[0].rm_cells > 0);
            let counts: Vec<u32> = packets.iter().map(|packet| packet.rm_cells).collect();
            assert_eq!(counts, expected, "{nrm}");
        }
    }

    /// After 100 ms there is an RM cell, if two others have been sent.
    #[test]
    fn a_slow_source_sends_rm_cells_by_the_time() {
        let mut sender = Sender::new(&Arc::new(params()), Instant::ZERO);
        let mut rm_cells = |ms: u64, bytes: u64| {
            let now = Instant::ZERO + Duration::from_millis(ms);
            assert!(sender.write(bytes));
            sender.transmit(now).map(|packet| packet.rm_cells)
        };
        assert_eq!(rm_cells(0, 40), Some(1), "the first cell of all");
        assert_eq!(rm_cells(150, 88), Some(0), "one cell since then");
        assert_eq!(rm_cells(160, 40), Some(1), "three cells since then");
        assert_eq!(rm_cells(170, 88), Some(0));
        assert_eq!(rm_cells(259, 40), Some(0), "99 ms");
        assert_eq!(rm_cells(260, 40), Some(1));
    }

    #[test]
    fn the_rate_stays_between_the_minimum_and_the_peak() {
        let mut sender = bulk(Params { mcr: Rate::from_mbps(1), ..params() });
        sender.on_feedback(Instant::ZERO, &returned(100, false));
        assert_eq!(sender.rate(), Rate::from_mbps(10));
        sender.on_feedback(Instant::ZERO, &returned(100, true));
        assert_eq!(sender.rate(), Rate::from_mbps(1));
        let mut sender = bulk(params());
        sender.on_feedback(Instant::ZERO, &returned(1000, true));
        assert_eq!(sender.rate(), Rate::from_bps(4240), "ten cells per second");
        assert_eq!((sender.stats().returned, sender.stats().congested), (1000, 1000));
    }

    #[test]
    fn packets_leave_at_the_rate_and_a_change_applies_at_once() {
        let mut sender = bulk(params());
        assert!(sender.transmit(Instant::ZERO).is_some() && sender.transmit(Instant::ZERO).is_none());
        // 21 cells and an RM cell: 9328 bits at 5 Mbit/s.
        assert_eq!(sender.deadline(), Instant::from_nanos(1_865_600));
        // Half of the pause is left: it shortens by 5 / 10.
        sender.on_feedback(Instant::from_nanos(932_800), &returned(8, false));
        assert_eq!(sender.rate(), Rate::from_mbps(10));
        assert_eq!(sender.deadline(), Instant::from_nanos(932_800 + 466_400));
    }

    /// Source behaviour 6: without RM cells that come back, the rate falls after CRM of them, by CDF for each.
    #[test]
    fn a_source_without_feedback_slows_down_to_its_minimum() {
        let mut sender = bulk(Params { crm: 10, mcr: Rate::from_kbps(50), ..params() });
        while sender.stats().rm_cells < 10 {
            sender.transmit(sender.deadline());
        }
        assert_eq!((sender.rate(), sender.stats().cutoffs), (Rate::from_mbps(5), 0));
        while sender.stats().rm_cells < 11 {
            sender.transmit(sender.deadline());
        }
        assert_eq!(sender.stats().cutoffs, 1);
        assert!((sender.acr - 4.6875 * MBPS).abs() < 1.0, "{}", sender.acr);
        sent(&mut sender, Instant::ZERO + Duration::from_secs(60));
        assert_eq!(sender.rate(), Rate::from_kbps(50));
        // One that comes back ends it.
        sender.on_feedback(sender.deadline(), &returned(1, false));
        assert_eq!(sender.unanswered, 0);
        assert_eq!(sender.rate(), Rate::from_kbps(675));
    }

    /// Source behaviour 5: a rate that was not used for ADTF is lost.
    #[test]
    fn an_idle_source_begins_again_at_its_initial_rate() {
        let mut sender = Sender::new(&Arc::new(params()), Instant::ZERO);
        for (ms, expected) in [(0, 10), (500, 10), (1001, 5)] {
            let now = Instant::ZERO + Duration::from_millis(ms);
            assert!(sender.write(1000));
            assert_eq!(sender.transmit(now).map(|packet| packet.rm_cells), Some(1), "{ms}");
            if ms == 0 {
                sender.on_feedback(now, &returned(100, false));
            }
            assert_eq!(sender.rate(), Rate::from_mbps(expected), "{ms} ms");
        }
    }

    #[test]
    fn a_message_that_does_not_fit_is_refused_to_the_byte() {
        let mut sender = Sender::new(&Arc::new(Params { send_buffer: Some(3), ..params() }), Instant::ZERO);
        assert!(sender.write(2500));
        assert!(!sender.write(1500));
        assert_eq!(sender.stats().refused, 1500);
        let lengths: Vec<u32> = sent(&mut sender, Instant::ZERO + Duration::from_secs(1))
            .iter()
            .map(|packet| packet.len)
            .collect();
        assert_eq!(lengths, [1000, 1000, 500]);
        assert_eq!(sender.deadline(), Instant::FAR_FUTURE);
    }
}
