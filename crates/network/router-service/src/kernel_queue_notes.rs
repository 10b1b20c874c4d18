//! Notes on the rate and the limit of a queue in the kernel: values that are allowed, with consequences that are probably not meant.

use crate::configuration::too_small;
use cutline_aqm::Limit;
use cutline_qdisc::QdiscStatus;
use cutline_sys::{ethtool, interface};
use cutline_text::Printable;
use cutline_units::{Duration, Rate};
use cutline_wire::ETHERNET;

/// Longest time of the largest packet before segmentation on the link without a note.
const LONG_SERVICE: Duration = Duration::from_millis(5);
/// Largest rate of one queue for all transmit queues without a note.
const ONE_PROCESSOR: Rate = Rate::from_mbps(1000);
/// The largest packet before segmentation, B.
const LARGEST_SEGMENTED: u64 = 65_536;

/// Returns the notes on a new rate of a queue, on its new limit, or on both. `None` stands for a value that does not change.
pub fn queue_notes(status: &QdiscStatus, rate: Option<Rate>, limit: Option<Limit>) -> Vec<String> {
    let queues_in_one = if status.hardware_queues > 1 { 1 } else { status.transmit_queues };
    notes(&status.interface, queues_in_one, rate, limit)
}

fn notes(interface: &str, transmit_queues: u32, rate: Option<Rate>, limit: Option<Limit>) -> Vec<String> {
    let on_segments = rate.and_then(|rate| note_on_segments(interface, rate));
    let on_queues = rate.and_then(|rate| note_on_queues(interface, transmit_queues, rate));
    let on_limit = limit.and_then(|limit| note_on_limit(interface, limit));
    [on_segments, on_queues, on_limit].into_iter().flatten().collect()
}

/// Returns a note where packets leave before segmentation and take long on the link.
fn note_on_segments(interface: &str, rate: Rate) -> Option<String> {
    let time = Duration::from_secs_f64(LARGEST_SEGMENTED as f64 * 8.0 / rate.as_bps() as f64);
    let is_worth_it = time > LONG_SERVICE && is_segmenting(interface);
    is_worth_it.then(|| {
        format!(
            "note: packets of up to 64 KiB leave as one before the interface cuts them, and others wait up to {:.0} ms behind each: \
             `ethtool -K {} tso off gso off` (docs/guide/qdisc.md)",
            time.as_millis_f64(),
            Printable(interface)
        )
    })
}

/// Returns a note where a fast interface has several transmit queues, and this queue is one for all of them.
fn note_on_queues(interface: &str, transmit_queues: u32, rate: Rate) -> Option<String> {
    (transmit_queues > 1 && rate > ONE_PROCESSOR).then(|| {
        format!(
            "note: {} has {transmit_queues} transmit queues, and one queue for all of them now: processors that send at the same time take turns; --mq \
             sets a queue for each (docs/guide/qdisc.md)",
            Printable(interface)
        )
    })
}

/// Returns a note where a limit is so small that packets are dropped from an empty queue.
fn note_on_limit(interface: &str, limit: Limit) -> Option<String> {
    let note = too_small(limit, full_frame(interface));
    let note = note.or_else(|| too_small_for_segments(limit, is_segmenting(interface)));
    note.map(|note| format!("note: {note}"))
}

/// Returns the consequence of a limit that has no room for the largest packet before segmentation.
fn too_small_for_segments(limit: Limit, is_segmenting: bool) -> Option<String> {
    match limit {
        Limit::Bytes(most) if is_segmenting && most < LARGEST_SEGMENTED => Some(format!(
            "the queue holds {most} B, and packets have up to {LARGEST_SEGMENTED} B before the interface cuts them: it drops the larger ones. Set a \
             larger limit, or turn off segmentation (docs/guide/qdisc.md)"
        )),
        _ => None,
    }
}

/// Returns the length of the largest packet of an interface as the kernel's queue counts it, bytes; 0 if there is no such interface.
fn full_frame(name: &str) -> u64 {
    let header = if interface::has_ethernet_header(name).unwrap_or(true) { ETHERNET as u64 } else { 0 };
    interface::mtu(name).map_or(0, |mtu| u64::from(mtu) + header)
}

/// Returns whether packets leave before segmentation.
fn is_segmenting(interface: &str) -> bool {
    let is_on = |command| ethtool::get(interface, command).is_ok_and(|on| on != 0);
    is_on(ethtool::Command::TSO) || is_on(ethtool::Command::GSO)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With TSO, TCP hands over packets of nearly 64 KiB. None of them fits into the 64 KB of the help.
    #[test]
    fn a_limit_without_room_for_segments_has_a_note() {
        let note = too_small_for_segments(Limit::Bytes(64_000), true).unwrap();
        assert!(note.contains("holds 64000 B") && note.contains("65536 B"), "{note}");
        for (limit, is_segmenting) in
            [(Limit::Bytes(64_000), false), (Limit::Bytes(65_536), true), (Limit::Packets(1), true)]
        {
            assert_eq!(too_small_for_segments(limit, is_segmenting), None, "{limit:?}");
        }
    }

    /// `change --rate` has the note of `add --rate`. The loopback interface segments by default.
    #[test]
    fn a_slow_rate_has_a_note_at_each_change() {
        let noted = notes("lo", 1, Some(Rate::from_mbps(1)), None);
        assert_eq!(noted.len(), usize::from(is_segmenting("lo")), "{noted:?}");
        assert!(noted.iter().all(|note| note.contains("ethtool -K lo")), "{noted:?}");
        assert_eq!(notes("lo", 1, Some(Rate::from_mbps(10_000)), None), Vec::<String>::new());
        assert_eq!(notes("lo", 1, None, None), Vec::<String>::new());
        let small = notes("lo", 1, Some(Rate::from_mbps(10_000)), Some(Limit::Bytes(100)));
        assert_eq!(small.len(), 1, "{small:?}");
    }

    #[test]
    fn one_queue_for_many_transmit_queues_has_a_note_on_fast_links() {
        let note = note_on_queues("eth0", 8, Rate::from_mbps(10_000)).unwrap();
        assert!(note.contains("eth0 has 8 transmit queues") && note.contains("--mq"), "{note}");
        assert_eq!(note_on_queues("eth0", 1, Rate::from_mbps(10_000)), None);
        assert_eq!(note_on_queues("eth0", 8, Rate::from_mbps(1000)), None);
    }
}
