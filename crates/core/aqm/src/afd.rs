//! AFD, approximate fair dropping: packets of a flow above the fair share are dropped until the share is left of the flow.
//!
//! Source: R. Pan, L. Breslau, B. Prabhakar, S. Shenker, "Approximate fairness through differential dropping", ACM CCR 33(2), 2003.
//! **The full text was not available. This follows its abstract and three public implementations, which agree on the
//! formulas and the gains; two of them state the frequency.**
//!
//! ```text
//! arrival:     one of s packets, by chance, is put into the shadow buffer of b samples, in the place of a random one
//! m_i          bytes of flow i in the shadow buffer: an estimate of its rate
//! d_i          = 1 - m_fair / m_i, at least 0: the probability with which a packet of flow i is dropped
//! m_fair       += alpha (q_old - q_ref) - beta (q - q_ref), 160 times a second
//! ```
//!
//! A flow that arrives at a rate of `m_i` leaves at `(1 - d_i) m_i = m_fair`, and one below the fair share loses nothing. The
//! fair share is not measured: it falls while the queue is above `q_ref`, and rises while the queue is below. `beta` is above
//! `alpha`, and their difference acts until the queue is at `q_ref`.
//!
//! There is one queue, first in, first out. So the rates are those of fair queueing, as in Sieve, but every packet waits behind
//! all others: a call waits as long as the transfers beside it.
//!
//! Worked numbers: at 8 Mbit/s and 20 ms, `q_ref` is 20,000 B. A queue that grows from there to 30,000 B lowers `m_fair` by 1.8 x 10,000 =
//! 18,000 B at the next update, and by 0.1 x 10,000 = 1000 B at each further one
//! (`the_fair_share_falls_while_the_queue_is_long`). A flow with twice the fair share loses half of its packets
//! (`a_flow_of_twice_the_fair_share_loses_half`).
//!
//! A fast flow has many samples, so its rate is known well: the relative error of a flow with n samples is about 1 / sqrt(n). A slow
//! flow has few, but is far below the fair share. With so many flows that the share is a few samples, fast flows cannot be
//! distinguished from slow ones, and in the end the limit of the queue drops packets.
//!
//! Ours, because the implementations differ or are silent:
//! - The sample that is replaced is a random one. Others replace the oldest.
//! - Samples and queue are in bytes. Where all packets have one size, this is the same as in packets.
//! - `q_ref` is a time at the rate of the link, and two packets of `mean-packet` at least. The paper has packets.
//! - `m_fair` is from one packet of `mean-packet`, so that a flow of one sample is not hit, to a buffer full of them, where no flow is hit.
//! - The numbers of samples and of buckets, and the bucket of a flow: a perturbed hash. Flows of one bucket count as one flow.
//! - With ECN, a packet that can be marked is marked while `d_i` is below `ecn-threshold`, and dropped beyond, as in PIE. A flow that
//!   ignores marks would otherwise have no limit.
//!
//! The gains do not follow the link. The effect of `m_fair` on the queue grows with the packets per second and with the number of
//! flows above the share, over b. Where both are large, `m_fair` swings.
//!
//! Not implemented: the authors' later designs, with a table of flows alone (Hot Interconnects 2002) and without one (AFD-NFT, IEEE Micro 2003);
//! weights; and the priority of short flows that switches add to it.
//!
//! # Validation
//!
//! - Formulas by hand: `the_fair_share_falls_while_the_queue_is_long`, `a_flow_of_twice_the_fair_share_loses_half`.
//! - The shadow buffer: `the_shadow_buffer_has_the_shares_of_the_flows`.
//! - The result: `flows_above_the_fair_share_get_equal_rates_and_one_below_keeps_its_own`, which also checks that the queue is at its reference.
//! - ECN: `packets_are_marked_while_few_are_hit`.
//! - Not compared with another implementation, nor with the figures of the paper.

use crate::buckets::FlowHash;
use crate::pool::{Held, List, Pool};
use crate::queue_core::QueueCore;
use crate::queue_core::forward_to_core;
use crate::sample_clock::SampleClock;
use crate::{Arrival, Departure, Discipline, DropReason, Limit, Queue, Verdict};
use cutline_params::{ParameterError, Parameters};
use cutline_units::{Duration, Instant, Probability, RandomStream, Rate};

/// The range of the gains.
const GAINS: (f64, f64) = (0.0, 1000.0);
/// The source of the formula's constants.
const PAPER: &str = "Pan et al. 2003";

/// Parameters of AFD.
#[derive(Clone, Copy, Debug, PartialEq, Parameters)]
#[parameters(check = check)]
pub struct AfdParams {
    /// The queuing delay at which the queue is held.
    #[param(
        default = Duration::from_millis(20),
        range = (Duration::from_micros(100), Duration::from_secs(10)),
        source = "ours: as PI2; the paper holds a number of packets"
    )]
    pub target: Duration,
    /// The gain on the error of the queue one update ago.
    #[param(default = 1.7, range = GAINS, source = PAPER)]
    pub alpha: f64,
    /// The gain on the present error of the queue; above `alpha`.
    #[param(default = 1.8, range = GAINS, source = PAPER)]
    pub beta: f64,
    /// Frequency of the updates of the fair share.
    #[param(default = 160.0, range = (0.001, 1e6), hertz, source = PAPER)]
    pub frequency: f64,
    /// b: number of samples in the shadow buffer.
    #[param(
        default = 1000,
        range = (1, 1_000_000),
        unit = "packets",
        source = "ours: a flow with a tenth of the traffic is known to 10 %"
    )]
    pub shadow_buffer: u64,
    /// s: number of packets of which one is sampled, on average.
    #[param(
        default = 5,
        range = (1, 1_000_000),
        unit = "packets",
        source = "ours: the buffer covers 5000 packets, which are several round trips on most links"
    )]
    pub sampling: u64,
    /// The number of buckets that flows are hashed into.
    #[param(default = 4096, range = (1, 65_536), source = "ours")]
    pub buckets: u64,
    /// Size of a typical packet, for the bounds of the fair share and of the reference.
    #[param(default = 1500, range = (1, 1_000_000), unit = "B", source = "ours: the MTU of Ethernet")]
    pub mean_packet: u64,
    /// Probability from which packets are dropped even if they can be marked.
    #[param(default = 0.1, range = (0.0, 1.0), source = "ours: as PIE, RFC 8033 section 5.1; the paper has no ECN")]
    pub ecn_threshold: f64,
}

/// With equal gains the queue would settle anywhere, and a larger `alpha` pushes the wrong way.
fn check(params: &AfdParams) -> Result<(), ParameterError> {
    let AfdParams { alpha, beta, .. } = *params;
    if beta > alpha {
        Ok(())
    } else {
        Err(ParameterError::new("beta", beta, format!("more than alpha = {alpha}")))
    }
}

impl AfdParams {
    /// Returns the bounds of `m_fair`, B.
    fn bounds(&self) -> (f64, f64) {
        let packet = self.mean_packet as f64;
        (packet, packet * self.shadow_buffer as f64)
    }

    /// Returns `q_ref` at a link of this rate, B.
    fn reference(&self, rate: Rate) -> f64 {
        (rate.bytes_in(self.target).get() as f64).max(2.0 * self.mean_packet as f64)
    }

    /// Returns `m_fair` after an update, B. The errors are the distances of the queue from `q_ref` now and one update ago.
    fn next_m_fair(&self, m_fair: f64, error: f64, error_old: f64) -> f64 {
        let (least, most) = self.bounds();
        (m_fair + self.alpha * error_old - self.beta * error).clamp(least, most)
    }
}

/// Returns `d_i`, the probability with which a packet of a flow with `m_i` bytes in the shadow buffer is dropped.
fn drop_probability(m_fair: f64, m_i: f64) -> Probability {
    if m_i > m_fair { Probability::clamped(1.0 - m_fair / m_i) } else { Probability::ZERO }
}

/// A sampled arrival.
#[derive(Clone, Copy, Debug)]
struct ShadowPacket {
    bucket: u32,
    size: u32,
}

/// The recent arrivals, and their bytes by flow.
#[derive(Clone, Debug)]
struct ShadowBuffer {
    packets: Vec<ShadowPacket>,
    most: usize,
    /// `m_i` of each bucket.
    bytes: Vec<u64>,
}

impl ShadowBuffer {
    fn new(most: usize, buckets: usize) -> Self {
        Self { packets: Vec::with_capacity(most), most, bytes: vec![0; buckets] }
    }

    /// Adds a sample. In a full buffer it replaces a random one.
    fn insert(&mut self, packet: ShadowPacket, random: &mut RandomStream) {
        self.bytes[packet.bucket as usize] += u64::from(packet.size);
        if self.packets.len() < self.most {
            self.packets.push(packet);
            return;
        }
        let index = (random.uniform() * self.most as f64) as usize;
        let old = std::mem::replace(&mut self.packets[index], packet);
        self.bytes[old.bucket as usize] -= u64::from(old.size);
    }

    fn clear(&mut self) {
        self.packets.clear();
        self.bytes.fill(0);
    }
}

/// AFD.
#[derive(Clone, Debug)]
pub struct Afd<P> {
    params: AfdParams,
    /// `q_ref`, B.
    q_ref: f64,
    /// 1 / s.
    share_of_samples: Probability,
    clock: SampleClock,
    /// The fair share, B.
    m_fair: f64,
    /// The queue at the last update, B.
    q_old: f64,
    hash: FlowHash,
    shadow: ShadowBuffer,
    pool: Pool<P>,
    list: List,
    core: QueueCore<P>,
}

impl<P: Copy> Discipline for Afd<P> {
    type Params = AfdParams;
    const NAME: &'static str = "afd";
    const TITLE: &'static str = "AFD";
    const SOURCE: &'static str = "Pan, Breslau, Prabhakar, Shenker, CCR 2003";

    fn build(params: &AfdParams, limit: Limit, ecn: bool, rate: Rate) -> Result<Self, ParameterError> {
        params.validate()?;
        let period = Duration::from_secs_f64(1.0 / params.frequency);
        Ok(Self {
            params: *params,
            q_ref: params.reference(rate),
            share_of_samples: Probability::clamped(1.0 / params.sampling as f64),
            clock: SampleClock::new(Instant::ZERO, period),
            m_fair: params.bounds().1,
            q_old: 0.0,
            hash: FlowHash::new(params.buckets as u32),
            shadow: ShadowBuffer::new(params.shadow_buffer as usize, params.buckets as usize),
            pool: Pool::new(),
            list: List::EMPTY,
            core: QueueCore::new(limit, ecn),
        })
    }

    fn standing_delay(params: &AfdParams, _limit: Limit, _rate: Rate) -> Option<Duration> {
        Some(params.target)
    }
}

impl<P: Copy> Afd<P> {
    /// Takes the updates of the fair share that are due. The backlog has been the present one since the last call.
    #[inline]
    fn update(&mut self, now: Instant) {
        let Self { params, q_ref, clock, m_fair, q_old, core, .. } = self;
        let q = core.backlog.bytes as f64;
        clock.catch_up(now, || {
            let before = (*m_fair, *q_old);
            *m_fair = params.next_m_fair(*m_fair, q - *q_ref, *q_old - *q_ref);
            *q_old = q;
            (*m_fair, *q_old) != before
        });
    }

    /// Samples an arrival, even one that is then refused, and returns the probability with which it is hit.
    #[inline]
    fn arrive(&mut self, arrival: &Arrival, random: &mut RandomStream) -> Probability {
        let bucket = self.hash.bucket(arrival.flow, random);
        if random.chance(self.share_of_samples) {
            self.shadow.insert(ShadowPacket { bucket: bucket as u32, size: arrival.size }, random);
        }
        drop_probability(self.m_fair, self.shadow.bytes[bucket] as f64)
    }
}

impl<P: Copy> Queue<P> for Afd<P> {
    #[inline]
    fn enqueue(&mut self, now: Instant, arrival: Arrival, packet: P, random: &mut RandomStream) -> Verdict {
        self.update(now);
        let d = self.arrive(&arrival, random);
        let Arrival { size, ecn_capable, .. } = arrival;
        if !self.core.admits(size) {
            return self.core.count_arrival(Verdict::Drop(DropReason::Overflow), size);
        }
        let may_mark = self.core.ecn && ecn_capable && d.get() < self.params.ecn_threshold;
        let verdict = Verdict::from_hit(random.chance(d), may_mark);
        if !matches!(verdict, Verdict::Drop(_)) {
            self.pool.push(&mut self.list, Held { packet, size, arrived: now, may_mark: false });
        }
        self.core.count_arrival(verdict, size)
    }

    #[inline]
    fn dequeue(&mut self, now: Instant) -> Option<Departure<P>> {
        self.update(now);
        let held = self.pool.pop(&mut self.list)?;
        Some(self.core.count_departure(held.leave(false)))
    }

    forward_to_core!(P);

    fn advance(&mut self, now: Instant) {
        self.update(now);
    }

    fn set_rate(&mut self, now: Instant, rate: Rate) {
        self.update(now);
        self.q_ref = self.params.reference(rate);
    }

    fn reset(&mut self, now: Instant, discard: &mut dyn FnMut(P)) {
        self.pool.drain(&mut self.list, |held| self.core.count_flushed(held, discard));
        self.clock.restart(now);
        (self.m_fair, self.q_old) = (self.params.bounds().1, 0.0);
        self.hash.reset();
        self.shadow.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Backlog;
    use crate::conformance::Link;
    use cutline_units::{HintBits, Streams};

    const RATE: Rate = Rate::from_mbps(8);

    fn afd(ecn: bool) -> Afd<u32> {
        Afd::build(&AfdParams::default(), Limit::Packets(1000), ecn, RATE).expect("the defaults are allowed")
    }

    fn arrival(flow: u32) -> Arrival {
        Arrival { flow, ecn_capable: true, ..Arrival::new(1000, HintBits::PAPER.largest()) }
    }

    fn random() -> RandomStream {
        Streams::new(1).stream("queue", "drop")
    }

    #[test]
    fn the_fair_share_falls_while_the_queue_is_long() {
        let mut afd = afd(false);
        // 20 ms at 8 Mbit/s; an update every 6.25 ms.
        assert_eq!(afd.q_ref, 20_000.0);
        let at = |updates: u64| Instant::ZERO + Duration::from_micros(6250) * updates;
        (afd.m_fair, afd.q_old) = (500_000.0, 20_000.0);
        afd.core.backlog = Backlog { packets: 30, bytes: 30_000 };
        for (update, expected) in [(1, 482_000.0), (2, 481_000.0), (3, 480_000.0)] {
            afd.advance(at(update));
            assert!((afd.m_fair - expected).abs() < 1e-6, "{} after {update}", afd.m_fair);
        }
        afd.set_rate(at(3), Rate::from_mbps(80));
        assert_eq!(afd.q_ref, 200_000.0);
        // A queue far below its reference releases all flows.
        afd.advance(at(1000));
        assert_eq!(afd.m_fair, 1_500_000.0);
    }

    #[test]
    fn a_flow_of_twice_the_fair_share_loses_half() {
        let of = |m_i| drop_probability(100.0, m_i).get();
        assert_eq!([0.0, 50.0, 100.0, 200.0, 1000.0].map(of), [0.0, 0.0, 0.0, 0.5, 0.9]);
    }

    #[test]
    fn gains_that_push_the_wrong_way_are_refused() {
        let error = AfdParams { alpha: 2.0, ..AfdParams::default() }.validate().unwrap_err().to_string();
        assert_eq!(error, "beta = 1.8: allowed is more than alpha = 2");
    }

    #[test]
    fn the_shadow_buffer_has_the_shares_of_the_flows() {
        let (mut shadow, mut random) = (ShadowBuffer::new(1000, 4), random());
        for n in 0..20_000 {
            let bucket = u32::from(n % 4 == 0);
            shadow.insert(ShadowPacket { bucket, size: 500 + 1000 * bucket }, &mut random);
            let held: u64 = shadow.packets.iter().map(|packet| u64::from(packet.size)).sum();
            assert_eq!(shadow.bytes.iter().sum::<u64>(), held);
        }
        // Three quarters of the packets have 500 B, and a quarter 1500 B: both flows have 375,000 B of 1000 samples.
        assert_eq!(shadow.packets.len(), 1000);
        assert!(
            shadow.bytes[..2].iter().all(|bytes| bytes.abs_diff(375_000) < 75_000),
            "{:?}",
            &shadow.bytes[..2]
        );
        shadow.clear();
        assert!(shadow.packets.is_empty() && shadow.bytes == [0; 4]);
    }

    #[test]
    fn flows_above_the_fair_share_get_equal_rates_and_one_below_keeps_its_own() {
        const TICKS: u64 = 45_000;
        // 12, 6 and 2 Mbit/s of packets of 1000 B: one in each tick, in every second and in every sixth one.
        let tick = Duration::from_nanos(666_667);
        let mut link = Link::new(afd(false), RATE);
        let (mut flows, mut backlog) = (Vec::new(), 0);
        for n in 0..TICKS {
            for (flow, every) in [(1, 1), (2, 2), (3, 6)] {
                if n % every == 0 {
                    flows.push(flow);
                    link.offer(arrival(flow));
                }
            }
            link.wait(tick);
            backlog += if n >= TICKS / 3 { link.queue.core.backlog.bytes } else { 0 };
        }
        let from = Instant::ZERO + tick * (TICKS / 3);
        let seconds = (link.now - from).as_secs_f64();
        let mbps = [1, 2, 3].map(|flow| {
            let late = link.sent.iter().filter(|(at, _)| *at >= from);
            let bytes: u64 = late
                .filter(|(_, sent)| flows[sent.packet as usize] == flow)
                .map(|(_, sent)| u64::from(sent.size))
                .sum();
            bytes as f64 * 8e-6 / seconds
        });
        // The link has 8 Mbit/s: the slow flow keeps its 2, and the others share the rest.
        for (rate, expected) in mbps.iter().zip([3.0, 3.0, 2.0]) {
            assert!((rate - expected).abs() < 0.1 * expected, "{mbps:?}");
        }
        let mean = backlog / (TICKS - TICKS / 3);
        assert!((10_000..30_000).contains(&mean), "a mean queue of {mean} B, and its reference is 20,000 B");
    }

    #[test]
    fn packets_are_marked_while_few_are_hit() {
        // Every flow has a million bytes in the shadow buffer.
        let verdicts = |m_fair: f64| -> Vec<Verdict> {
            let (mut afd, mut random) = (afd(true), random());
            afd.m_fair = m_fair;
            afd.shadow.bytes.fill(1_000_000);
            (0..400).map(|n| afd.enqueue(Instant::ZERO, arrival(n), n, &mut random)).collect()
        };
        let few = verdicts(950_000.0);
        assert!(few.contains(&Verdict::Mark) && !few.contains(&Verdict::Drop(DropReason::Early)));
        let many = verdicts(500_000.0);
        assert!(many.contains(&Verdict::Drop(DropReason::Early)) && !many.contains(&Verdict::Mark));
    }
}
