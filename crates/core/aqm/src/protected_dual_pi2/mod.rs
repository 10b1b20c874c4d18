//! DualPI2 with queue protection: DualPI2, in which packets of flows that build the low-delay queue go to the classic one.
//!
//! Source: RFC 9957, the queue protection of Low Latency DOCSIS; RFC 9332 for the queues; RFC 9956 for the packets of sparse flows.
//!
//! ```text
//! qdelay = backlog of the low-delay queue / rate;  p = ramp(qdelay), the queue's own probability of a mark
//! score of the packet's flow += p x size / aging;  it falls by one second a second, not below 0
//! the packet goes to the classic queue if  qdelay > critical-delay
//!                                    and   qdelay x score > critical-delay x critical-score
//! ```
//!
//! The packets of a flow score while the queue is long. So a flow that sends little, or reduces its rate when it is
//! marked, keeps a score near zero. A flow that fills the queue has its packets redirected as long as it does so; the
//! other flows' packets stay. Scores are in 32 buckets. A flow uses one of two of them. One more bucket is for all
//! flows that find both of theirs taken.
//!
//! Worked numbers: a packet of 1500 B that finds a delay beyond the ramp (p = 1) adds 1500 / 2^19 s = 2.86 ms. At 1.4 ms, 2.86 x 1.4
//! is more than 4 x 1, and it is redirected (`a_packet_is_redirected_when_delay_times_score_is_critical`).
//!
//! Packets that are scalable (ECT(1)), or whose hint is at most `low-delay-hints`, go to the low-delay queue. Hints 4 and 6 are those
//! of the code points NQB (RFC 9956) and EF. In this queue a packet that cannot be marked is let through: the protection is in the
//! place of a drop (RFC 9332 section 2.5.1.1). A packet that was redirected is never marked, as the classic queue of DOCSIS
//! marks nothing (RFC 8034 section 4.7); RFC 9332 section 2.5.1.1 would mark it with k p'.
//!
//! On slow links the ramp begins above the time of two packets of 1500 B, and ends above that (RFC 9957 section 4.1, `FLOOR`).
//!
//! Differences from DOCSIS: the classic queue has PI2 with Linux's parameters instead of DOCSIS-PIE (RFC 8034); the delay of the
//! low-delay queue is its backlog over the rate of the link, where a cable modem estimates the rate that it is granted; marks are
//! decided when packets leave.
//!
//! # Validation
//!
//! - The score, the test and the buckets by hand: `a_score_grows_with_congestion_and_ages`,
//!   `a_packet_is_redirected_when_delay_times_score_is_critical`,
//!   `flows_have_their_own_buckets_until_there_are_more_flows_than_buckets`.
//! - The queue: `a_flow_that_fills_the_queue_is_redirected_and_a_sparse_one_is_not`,
//!   `a_queue_below_the_critical_delay_is_dual_pi2`, `the_ramp_is_above_two_packets`.
//! - Not compared with another implementation.

mod protection;

pub use protection::QueueProtectionParams;

use crate::dual_pi2::{DualPi2, DualPi2Params, NotEct};
use crate::{Arrival, Backlog, Departure, Discipline, Limit, Queue, QueueStats, Shed, Verdict};
use cutline_params::{ParameterError, Parameters};
use cutline_units::{Bytes, Duration, Instant, Probability, RandomStream, Rate};
use protection::QueueProtection;

/// Two frames of the size that `FLOOR` of RFC 9957 section 4.1 assumes.
const TWO_PACKETS: Bytes = Bytes::new(3000);
const RAMP: &str = "RFC 9957 section 4.1: the ramp of DOCSIS, 475 to 1000 us";

/// Parameters of DualPI2 with queue protection.
#[derive(Clone, Copy, Debug, PartialEq, Parameters)]
pub struct ProtectedDualPi2Params {
    /// The two queues.
    #[group(
        default = DualPi2Params {
            min_th: Duration::from_micros(475),
            range: Duration::from_micros(525),
            not_ect: NotEct::Spare,
            low_delay_hints: 6,
            ..DualPi2Params::default()
        },
        sources(
            min_th = RAMP,
            range = RAMP,
            not_ect = "RFC 9332 section 2.5.1.1, with queue protection",
            low_delay_hints = "ours: the hints of EF and of NQB, RFC 9956"
        )
    )]
    pub queues: DualPi2Params,
    /// The protection of the low-delay queue.
    #[group]
    pub protection: QueueProtectionParams,
}

/// DualPI2 with queue protection.
#[derive(Clone, Debug)]
pub struct ProtectedDualPi2<P> {
    params: ProtectedDualPi2Params,
    queues: DualPi2<P>,
    protection: QueueProtection,
    rate: Rate,
}

impl<P: Copy> Discipline for ProtectedDualPi2<P> {
    type Params = ProtectedDualPi2Params;
    const NAME: &'static str = "protected-dual-pi2";
    const TITLE: &'static str = "DualPI2 with queue protection";
    const SOURCE: &'static str = "RFC 9957, RFC 9332";

    fn build(
        params: &ProtectedDualPi2Params,
        limit: Limit,
        ecn: bool,
        rate: Rate,
    ) -> Result<Self, ParameterError> {
        params.validate()?;
        let (queues, protection) = (above_two_packets(&params.queues, rate), params.protection);
        Ok(Self {
            params: *params,
            queues: DualPi2::build(&queues, limit, ecn, rate)?,
            protection: QueueProtection::new(protection),
            rate,
        })
    }

    fn standing_delay(params: &ProtectedDualPi2Params, limit: Limit, rate: Rate) -> Option<Duration> {
        DualPi2::<P>::standing_delay(&params.queues, limit, rate)
    }
}

/// Moves the beginning of the ramp above the time of two packets, and its end if it would not be beyond that (RFC 9957
/// section 4.1).
fn above_two_packets(params: &DualPi2Params, rate: Rate) -> DualPi2Params {
    // A link without a rate sends nothing, so its ramp does not matter.
    let floor = if rate == Rate::ZERO { Duration::ZERO } else { rate.transmission_time(TWO_PACKETS) };
    let min_th = params.min_th.max(floor);
    let end = params.min_th + params.range;
    DualPi2Params {
        min_th,
        range: end.saturating_sub(min_th).max(params.range.min(Duration::from_micros(1))),
        ..*params
    }
}

impl<P: Copy> ProtectedDualPi2<P> {
    /// Returns whether a packet for the low-delay queue goes to the classic one.
    fn redirects(&mut self, now: Instant, arrival: &Arrival, random: &mut RandomStream) -> bool {
        let delay = self.rate.transmission_time(Bytes::new(self.queues.low_delay_backlog().bytes));
        let (likelihood, end) = self.queues.ramp_at(delay);
        self.protection.redirects(now, (arrival.flow, arrival.size), (delay, end), likelihood, random)
    }
}

impl<P: Copy> Queue<P> for ProtectedDualPi2<P> {
    #[inline]
    fn enqueue(&mut self, now: Instant, arrival: Arrival, packet: P, random: &mut RandomStream) -> Verdict {
        let has_low_delay = self.queues.has_low_delay(&arrival);
        let is_redirected = has_low_delay && self.redirects(now, &arrival, random);
        let arrival = Arrival { ecn_capable: arrival.ecn_capable && !is_redirected, ..arrival };
        self.queues.enqueue_in(has_low_delay && !is_redirected, now, arrival, packet, random)
    }

    #[inline]
    fn dequeue(&mut self, now: Instant) -> Option<Departure<P>> {
        self.queues.dequeue(now)
    }

    #[inline]
    fn shed(&mut self) -> Option<Shed<P>> {
        self.queues.shed()
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.queues.backlog()
    }

    fn probability(&self) -> Option<Probability> {
        self.queues.probability()
    }

    fn advance(&mut self, now: Instant) {
        self.queues.advance(now);
    }

    fn set_rate(&mut self, now: Instant, rate: Rate) {
        self.queues.set_rate(now, rate);
        self.queues.set_ramp(&above_two_packets(&self.params.queues, rate));
        self.rate = rate;
    }

    fn reset(&mut self, now: Instant, discard: &mut dyn FnMut(P)) {
        self.queues.reset(now, discard);
        self.protection.reset();
    }

    fn stats(&self) -> &QueueStats {
        self.queues.stats()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutline_units::{HintBits, Streams};

    const RATE: Rate = Rate::from_mbps(100);

    fn queue(params: ProtectedDualPi2Params) -> ProtectedDualPi2<u32> {
        ProtectedDualPi2::build(&params, Limit::Packets(100_000), true, RATE).expect("they are allowed")
    }

    fn scalable(flow: u32, size: u32) -> Arrival {
        Arrival { flow, ecn_capable: true, scalable: true, ..Arrival::new(size, HintBits::PAPER.largest()) }
    }

    /// Sends 1500 B of flow 1 every 100 us (120 Mbit/s) and 200 B of flow 2 every 10 ms over 100 Mbit/s, for one second.
    /// Returns the longest wait of a packet of flow 2, us.
    fn overload(
        mut enqueue: impl FnMut(Instant, Arrival, u32),
        mut dequeue: impl FnMut(Instant) -> Option<(u32, Instant)>,
    ) -> u64 {
        let mut longest = 0;
        let mut free_at = Instant::ZERO;
        for tick in 0..10_000_u64 {
            let now = Instant::ZERO + Duration::from_micros(100) * tick;
            while free_at <= now {
                let Some((size, arrived)) = dequeue(free_at) else {
                    free_at = now;
                    break;
                };
                if size == 200 {
                    longest = longest.max(free_at.saturating_since(arrived).as_nanos() / 1000);
                }
                free_at += RATE.transmission_time(Bytes::new(size.into()));
            }
            enqueue(now, scalable(1, 1500), 1);
            if tick % 100 == 50 {
                enqueue(now, scalable(2, 200), 2);
            }
        }
        longest
    }

    #[test]
    fn a_flow_that_fills_the_queue_is_redirected_and_a_sparse_one_is_not() {
        let longest = |is_protected: bool| {
            let protected = std::cell::RefCell::new(queue(ProtectedDualPi2Params::default()));
            let plain = std::cell::RefCell::new(
                DualPi2::build(
                    &ProtectedDualPi2Params::default().queues,
                    Limit::Packets(100_000),
                    true,
                    RATE,
                )
                .expect("they are allowed"),
            );
            let mut random = Streams::new(1).stream("queue", "drop");
            overload(
                |now, arrival, packet| {
                    if is_protected {
                        protected.borrow_mut().enqueue(now, arrival, packet, &mut random);
                    } else {
                        plain.borrow_mut().enqueue(now, arrival, packet, &mut random);
                    }
                },
                |now| {
                    let sent = if is_protected {
                        protected.borrow_mut().dequeue(now)
                    } else {
                        plain.borrow_mut().dequeue(now)
                    };
                    sent.map(|sent| (sent.size, sent.arrived))
                },
            )
        };
        let (protected, plain) = (longest(true), longest(false));
        assert!(
            protected < 2500,
            "{protected} us: the sparse flow waits for little more than the critical delay"
        );
        assert!(plain > 4 * protected, "{plain} us without protection: the test has a queue to protect");
    }

    #[test]
    fn a_queue_below_the_critical_delay_is_dual_pi2() {
        let params = ProtectedDualPi2Params::default();
        let (mut protected, mut plain) = (
            queue(params),
            DualPi2::build(&params.queues, Limit::Packets(100_000), true, RATE).expect("they are allowed"),
        );
        let mut random = (Streams::new(1).stream("queue", "drop"), Streams::new(1).stream("queue", "drop"));
        // Eight packets of 1500 B are 960 us.
        for round in 0..100_u64 {
            let now = Instant::ZERO + Duration::from_millis(2) * round;
            for packet in 0..8 {
                let arrival = scalable(packet % 3, 1500);
                assert_eq!(
                    protected.enqueue(now, arrival, packet, &mut random.0),
                    plain.enqueue(now, arrival, packet, &mut random.1)
                );
            }
            for sent in 1..=8 {
                let now = now + RATE.transmission_time(Bytes::new(1500)) * sent;
                let (one, other) = (protected.dequeue(now), plain.dequeue(now));
                assert_eq!(one.map(|sent| sent.packet), other.map(|sent| sent.packet));
            }
        }
    }

    #[test]
    fn the_ramp_is_above_two_packets() {
        // RFC 9957 section 4.1.
        let ramp = |mbps| {
            let params = above_two_packets(&ProtectedDualPi2Params::default().queues, Rate::from_mbps(mbps));
            (params.min_th, params.min_th + params.range)
        };
        let us = Duration::from_micros;
        // 3000 B take 480 us at 50 Mbit/s and 24 ms at 1 Mbit/s.
        assert_eq!(ramp(100), (us(475), us(1000)));
        assert_eq!(ramp(50), (us(480), us(1000)));
        assert_eq!(ramp(1), (us(24_000), us(24_001)));
        let mut queue = queue(ProtectedDualPi2Params::default());
        queue.set_rate(Instant::ZERO, Rate::from_mbps(1));
        assert_eq!(queue.queues.ramp_at(us(24_000)), (0.0, us(24_001)));
        assert_eq!(queue.queues.ramp_at(us(24_001)).0, 1.0);
    }
}
