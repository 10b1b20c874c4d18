//! Statistics of the hardware queues of an interface, of which each has an instance below `mq`, as those of one queue.

use crate::layout::{CountLayout, HintLayout, QdiscCounters};

/// Most hardware queues of which each has memory for all packets of the limit.
const FULL: u64 = 4;
/// Least packets for which a hardware queue has memory, unless the limit is smaller.
const LEAST: u64 = 1000;

/// Returns the number of packets for which each of so many hardware queues has memory. The limit is that of all of them together, so the memory of all is
/// at most that of [`FULL`] limits, or [`LEAST`] packets each.
pub(crate) fn packets_of_each(limit: u32, queues: u32) -> u32 {
    let part = (FULL * u64::from(limit) / u64::from(queues.max(1))).max(LEAST);
    part.min(limit.into()) as u32
}

/// Returns the statistics of all hardware queues: sums of the counters, and the gauges of the one with the latest packet; `None` for no queue. They run if
/// all of them run.
pub(crate) fn together(queues: &[QdiscCounters]) -> Option<QdiscCounters> {
    let latest = queues.iter().max_by_key(|counters| counters.latest)?;
    let sum = |of: &dyn Fn(&QdiscCounters) -> &CountLayout| total(queues.iter().map(of));
    let number = |of: &dyn Fn(&QdiscCounters) -> u64| queues.iter().map(of).fold(0, u64::wrapping_add);
    Some(QdiscCounters {
        running: queues.iter().map(|counters| counters.running).min()?,
        since: queues.iter().map(|counters| counters.since).min()?,
        received: sum(&|counters| &counters.received),
        sent: sum(&|counters| &counters.sent),
        early: sum(&|counters| &counters.early),
        overflow: sum(&|counters| &counters.overflow),
        unsent: sum(&|counters| &counters.unsent),
        not_ip: sum(&|counters| &counters.not_ip),
        marked: sum(&|counters| &counters.marked),
        backlog: sum(&|counters| &counters.backlog),
        slipped: number(&|counters| counters.slipped),
        waits_sum: number(&|counters| counters.waits_sum),
        waits: std::array::from_fn(|bucket| number(&|counters| counters.waits[bucket])),
        hints: std::array::from_fn(|level| HintLayout {
            departed: sum(&|counters| &counters.hints[level].departed),
            dropped: sum(&|counters| &counters.hints[level].dropped),
            waited: number(&|counters| counters.hints[level].waited),
            longest_wait: queues.iter().map(|counters| counters.hints[level].longest_wait).max().unwrap_or(0),
        }),
        below_fair_share: sum(&|counters| &counters.below_fair_share),
        above_fair_share: sum(&|counters| &counters.above_fair_share),
        ..latest.clone()
    })
}

fn total<'a>(counts: impl Iterator<Item = &'a CountLayout>) -> CountLayout {
    counts.fold(CountLayout { packets: 0, bytes: 0 }, |sum, count| CountLayout {
        packets: sum.packets.wrapping_add(count.packets),
        bytes: sum.bytes.wrapping_add(count.bytes),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::status;

    #[test]
    fn every_packet_of_every_queue_is_counted() {
        let first = status("sieve", false).counters;
        let mut second = first.clone();
        (second.latest, second.since, second.generation) = (first.latest + 1, first.since + 5, 9);
        (second.fair_share_bps, second.probability) = (77, 0);
        second.hints[5].longest_wait = 4_000_000;
        second.hints[0] = first.hints[5].clone();
        let found = together(&[first.clone(), second.clone()]).unwrap();
        let parts = [&found.sent, &found.early, &found.overflow, &found.unsent, &found.backlog];
        assert_eq!(found.received.packets, 200);
        assert_eq!(parts.iter().map(|count| count.packets).sum::<u64>(), 200);
        assert_eq!(parts.iter().map(|count| count.bytes).sum::<u64>(), found.received.bytes);
        assert_eq!((found.waits[10], found.waits_sum), (160, 160_000_000));
        assert_eq!((found.hints[5].departed.packets, found.hints[0].departed.packets), (160, 80));
        assert_eq!((found.hints[5].longest_wait, found.hints[5].waited), (4_000_000, 160_000_000));
        assert_eq!((found.since, found.running, found.slipped), (first.since, 1, 2 * first.slipped));
        // The gauges are those of the queue with the latest packet.
        assert_eq!((found.generation, found.fair_share_bps, found.probability), (9, 77, 0));
        assert_eq!(found.latest, second.latest);
    }

    #[test]
    fn one_queue_is_itself_and_a_removed_one_is_missed() {
        let one = status("pi2", true).counters;
        assert_eq!(together(std::slice::from_ref(&one)), Some(one.clone()));
        let removed = QdiscCounters { running: 0, ..one.clone() };
        assert_eq!(together(&[one, removed]).unwrap().running, 0);
        assert_eq!(together(&[]), None);
    }

    #[test]
    fn the_memory_of_many_queues_is_bounded() {
        let of = |limit, queues| packets_of_each(limit, queues);
        assert_eq!([of(800, 1), of(800, 64), of(20_000, 4), of(20_000, 8)], [800, 800, 20_000, 10_000]);
        assert_eq!([of(20_000, 80), of(20_000, 256), of(1, 2)], [1000, 1000, 1]);
    }
}
