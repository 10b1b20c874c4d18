//! A script for one TCP sender, similar to packetdrill: acknowledgements at given times, and between them assertions about
//! the segments sent and the windows. Segments are numbered from 0 and have 1000 B; times are in milliseconds.

use std::sync::Arc;

use cutline_transport::tcp::{Ack, Params, SackBlocks, Segment, Sender};
use cutline_units::{Duration, Instant};

pub const MSS: u64 = 1000;

pub fn ms(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

pub struct Script {
    pub sender: Sender,
    /// Number of fast recoveries that have begun.
    pub recoveries: u32,
    /// Number of ECN echoes that have reduced the threshold.
    pub ecn_reductions: u32,
    now: Instant,
    una: u64,
    /// Times at which each segment was last sent, for the timestamp echo.
    sent_at: Vec<Instant>,
}

impl Script {
    pub fn new(params: Params) -> Self {
        let sender = Sender::new(&Arc::new(params), Instant::ZERO);
        let now = Instant::ZERO;
        Self { sender, recoveries: 0, ecn_reductions: 0, now, una: 0, sent_at: Vec::new() }
    }

    /// Creates a sender with an endless supply of data.
    pub fn bulk(params: Params) -> Self {
        let mut script = Self::new(params);
        script.sender.write_unlimited();
        script
    }

    pub fn at(&mut self, at_ms: u64) -> &mut Self {
        assert!(
            self.sender.deadline() > ms(at_ms),
            "the timer at {} has expired before",
            self.sender.deadline()
        );
        self.now = ms(at_ms);
        self
    }

    /// Acknowledges the segments below `n`.
    pub fn ack(&mut self, n: u64) -> &mut Self {
        self.una = n;
        self.acknowledge(&[], false)
    }

    /// Repeats the last acknowledgement.
    pub fn dup(&mut self) -> &mut Self {
        self.acknowledge(&[], false)
    }

    /// Repeats the last acknowledgement `n` times.
    pub fn dups(&mut self, n: u64) -> &mut Self {
        for _ in 0..n {
            self.dup();
        }
        self
    }

    /// Repeats the last acknowledgement with SACK blocks, in segments.
    pub fn sack(&mut self, blocks: &[(u64, u64)]) -> &mut Self {
        self.acknowledge(blocks, false)
    }

    /// Acknowledges the segments below `n` with an ECN echo.
    pub fn ack_ece(&mut self, n: u64) -> &mut Self {
        self.una = n;
        self.acknowledge(&[], true)
    }

    /// Acknowledges the segments below `n`, and echoes the beginning of the connection: the first transmissions have arrived.
    pub fn ack_of_earlier(&mut self, n: u64) -> &mut Self {
        self.una = n;
        let ack = Ack { ack: n * MSS, echo: Instant::ZERO, sack: SackBlocks::NONE, ece: false, marked: 0 };
        self.handle(|sender, now| sender.on_ack(now, &ack));
        self
    }

    /// Asserts that the retransmission timer expires at this time, and lets it expire.
    pub fn timeout_at(&mut self, at_ms: u64) -> &mut Self {
        assert_eq!(self.sender.deadline(), ms(at_ms), "the retransmission timer");
        self.now = ms(at_ms);
        self.handle(Sender::on_deadline);
        self
    }

    /// Asserts that exactly these segments leave now.
    pub fn sends(&mut self, expected: impl IntoIterator<Item = u64>) -> &mut Self {
        let sent: Vec<u64> = self.transmit().iter().map(|segment| segment.seq / MSS).collect();
        assert_eq!(sent, Vec::from_iter(expected), "segments at {}", self.now);
        self
    }

    pub fn transmit(&mut self) -> Vec<Segment> {
        let mut sent = Vec::new();
        while let Some(segment) = self.sender.transmit(self.now) {
            let n = (segment.seq / MSS) as usize;
            self.sent_at.resize(self.sent_at.len().max(n + 1), self.now);
            self.sent_at[n] = self.now;
            sent.push(segment);
        }
        sent
    }

    pub fn cwnd(&mut self, bytes: u64) -> &mut Self {
        assert_eq!(self.sender.cwnd(), bytes, "cwnd at {}", self.now);
        self
    }

    pub fn ssthresh(&mut self, bytes: u64) -> &mut Self {
        assert_eq!(self.sender.ssthresh(), bytes, "ssthresh at {}", self.now);
        self
    }

    pub fn deadline(&mut self, at_ms: u64) -> &mut Self {
        assert_eq!(self.sender.deadline(), ms(at_ms), "the retransmission timer");
        self
    }

    fn acknowledge(&mut self, blocks: &[(u64, u64)], ece: bool) -> &mut Self {
        let ack = self.una * MSS;
        let sack = SackBlocks::from_ranges(ack, blocks.iter().map(|block| (block.0 * MSS, block.1 * MSS)));
        let echo = self.una.checked_sub(1).map_or(Instant::ZERO, |last| self.sent_at[last as usize]);
        let threshold = self.sender.ssthresh();
        self.handle(|sender, now| sender.on_ack(now, &Ack { ack, echo, sack, ece, marked: 0 }));
        self.ecn_reductions += u32::from(ece && self.sender.ssthresh() < threshold);
        self
    }

    /// Lets the sender handle an event, and counts the recovery that it begins.
    fn handle(&mut self, event: impl FnOnce(&mut Sender, Instant)) {
        let was_in_recovery = self.sender.in_recovery();
        event(&mut self.sender, self.now);
        self.recoveries += u32::from(!was_in_recovery && self.sender.in_recovery());
    }
}
