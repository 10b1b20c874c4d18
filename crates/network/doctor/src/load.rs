//! The load of a router's queue over an interval, as the difference between two documents of statistics.

use crate::bottleneck::QueueLoad;
use cutline_router::{Loss, Overhead};
use cutline_router_service::DirectionStatistics;
use cutline_units::Duration;

/// The load of one direction between two documents that are `seconds` apart. `hint` is the hint of the probes.
pub fn load(
    before: &DirectionStatistics,
    after: &DirectionStatistics,
    seconds: f64,
    overhead: Overhead,
    hint: u16,
) -> QueueLoad {
    let [packets, bytes] = [
        after.sent.packets.saturating_sub(before.sent.packets),
        after.sent.bytes.saturating_sub(before.sent.bytes),
    ];
    let capacity_bits = after.rate_bps as f64 * seconds;
    let lost = |of: &DirectionStatistics, loss| of.lost(loss).packets;
    let of_queue = |of: &DirectionStatistics| lost(of, Loss::Early) + lost(of, Loss::Overflow);
    QueueLoad {
        utilisation: if capacity_bits > 0.0 {
            overhead.of_frames(packets, bytes) * 8.0 / capacity_bits
        } else {
            0.0
        },
        mean_wait: mean_wait(before, after, Some(hint))
            .or_else(|| mean_wait(before, after, None))
            .unwrap_or_default(),
        dropped: of_queue(after).saturating_sub(of_queue(before)),
        unsent: lost(after, Loss::Unsent).saturating_sub(lost(before, Loss::Unsent)),
        stuck: after.queued_packets.saturating_sub(after.backlog.packets),
        slipped: Duration::from_secs_f64((after.slipped_ms - before.slipped_ms) / 1e3),
    }
}

/// The mean waiting time of the packets with a hint, or of all packets, that departed between two documents; `None` if no
/// packet departed.
fn mean_wait(
    before: &DirectionStatistics,
    after: &DirectionStatistics,
    hint: Option<u16>,
) -> Option<Duration> {
    let sums = |of: &DirectionStatistics| {
        let of_hint = of.hints.iter().filter(|of| hint.is_none_or(|hint| of.hint == hint));
        of_hint.fold((0, 0.0), |(packets, ms), of| {
            (packets + of.departed.packets, ms + of.departed.packets as f64 * of.mean_wait_ms)
        })
    };
    let ((packets_before, ms_before), (packets_after, ms_after)) = (sums(before), sums(after));
    let packets = packets_after.checked_sub(packets_before).filter(|&packets| packets > 0)?;
    Some(Duration::from_secs_f64((ms_after - ms_before).max(0.0) / packets as f64 / 1e3))
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutline_router_service::{HintStatistics, PacketCount};

    fn direction(packets: u64, hints: &[HintStatistics]) -> DirectionStatistics {
        let count = |packets: u64| PacketCount { packets, bytes: packets * 1514 };
        let lost = [(Loss::Early, 3), (Loss::Overflow, 1), (Loss::Unsent, packets / 1000)];
        DirectionStatistics {
            rate_bps: 12_304_000,
            received: count(packets + 5),
            sent: count(packets),
            dropped: lost.map(|(loss, packets)| (loss.name().to_owned(), count(packets))).into(),
            queued_packets: 7,
            backlog: count(5),
            slipped_ms: packets as f64 / 100.0,
            hints: hints.to_vec(),
            ..DirectionStatistics::default()
        }
    }

    fn hint(hint: u16, packets: u64, mean_wait_ms: f64) -> HintStatistics {
        let departed = PacketCount { packets, bytes: 0 };
        HintStatistics { hint, departed, mean_wait_ms, ..HintStatistics::default() }
    }

    /// 1000 frames of 1514 B with 24 B of overhead each take 12.304 Mbit/s for a second.
    #[test]
    fn an_interval_is_the_difference_of_two_documents() {
        let before = direction(1000, &[hint(1, 10, 1.0), hint(16, 90, 10.0)]);
        let after = direction(2000, &[hint(1, 20, 1.0), hint(16, 190, 20.0)]);
        let load = load(&before, &after, 1.0, Overhead::Ethernet, 16);
        assert!((load.utilisation - 1.0).abs() < 1e-9, "{load:?}");
        // (190 * 20 - 90 * 10) / 100.
        assert_eq!(load.mean_wait, Duration::from_millis(29));
        assert_eq!((load.dropped, load.unsent, load.stuck), (0, 1, 2));
        assert_eq!(load.slipped, Duration::from_millis(10));
        let of_all = super::load(&before, &after, 1.0, Overhead::Ethernet, 9).mean_wait;
        assert!((of_all.as_millis_f64() - (2900.0 + 10.0) / 110.0).abs() < 1e-6, "{of_all}");
    }

    #[test]
    fn without_packets_there_is_no_load_and_no_wait() {
        let one = direction(1000, &[hint(16, 90, 10.0)]);
        let load = load(&one, &one, 1.0, Overhead::PppoeAtm, 16);
        assert_eq!((load.utilisation, load.mean_wait), (0.0, Duration::ZERO));
        assert_eq!(super::load(&one, &one, 0.0, Overhead::Ip, 16).utilisation, 0.0);
    }

    #[test]
    fn the_counters_of_a_restarted_router_give_no_load() {
        let before = direction(5000, &[hint(16, 90, 10.0)]);
        let after = direction(10, &[hint(16, 1, 1.0)]);
        let load = load(&before, &after, 1.0, Overhead::Ethernet, 16);
        assert_eq!((load.utilisation, load.unsent, load.mean_wait), (0.0, 0, Duration::ZERO));
    }
}
