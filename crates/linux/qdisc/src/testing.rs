//! A queue of the kernel for tests of other crates, without a kernel that has one.

use crate::layout::{CountLayout, HintLayout, Layout as _, PROBABILITY_BITS, QdiscCounters};
use crate::{QdiscSettings, QdiscStatus};
use cutline_aqm::{AqmSpec, Limit, QueueSpec, TsqParams};
use cutline_router::Overhead;
use cutline_units::{Bytes, HintTable, Instant, Rate};

/// Time of the status, 2.5 s after the queue was added.
pub const NOW: Instant = Instant::from_nanos(3_500_000_000);

/// Returns the status of a queue at 10 Mbit/s on `eth0`: TSQ over the law `aqm`, or Sieve without `tsq`. Of 100 packets it has sent 80
/// and dropped 15; 5 wait. Its probability is 0.25, its table of flows a quarter full.
///
/// # Panics
/// If the kernel has no such queue.
pub fn status(aqm: &str, tsq: bool) -> QdiscStatus {
    let queue = QueueSpec {
        limit: Limit::Bytes(64_000),
        ecn: false,
        aqm: AqmSpec::from_values(aqm, []).unwrap(),
        tsq: tsq.then(TsqParams::default),
        rate: Rate::from_mbps(10),
    };
    let (overhead, hints) = (Overhead::Ethernet, HintTable::standard());
    let settings = QdiscSettings { queue, shaped: true, overhead, hints, mq: false };
    let mut counters = QdiscCounters::from_bytes(&vec![0; QdiscCounters::SIZE]).unwrap();
    (counters.running, counters.generation, counters.since) = (1, 3, 1_000_000_000);
    let counted = |packets| CountLayout { packets, bytes: 1000 * packets };
    (counters.received, counters.sent) = (counted(100), counted(80));
    (counters.early, counters.overflow, counters.unsent) = (counted(6), counted(5), counted(4));
    counters.backlog = counted(5);
    counters.probability = 1 << (PROBABILITY_BITS - 2);
    counters.slipped = 2_500_000;
    counters.latest = NOW.as_nanos();
    counters.waits[10] = 80;
    counters.waits_sum = 80_000_000;
    counters.hints[5] = HintLayout {
        departed: counted(80),
        dropped: counted(11),
        waited: 80_000_000,
        longest_wait: 3_000_000,
    };
    let load = (!tsq).then_some(0.25);
    let config = settings.config(Bytes::new(14), 1, 3).unwrap();
    let queue = settings.kernel_queue().unwrap();
    let interface = "eth0".to_owned();
    let (transmit_queues, hardware_queues) = (1, 1);
    QdiscStatus {
        interface,
        index: 2,
        transmit_queues,
        hardware_queues,
        queue,
        instance: 0,
        instances: 64,
        config,
        counters,
        load,
    }
}
