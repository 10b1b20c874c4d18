//! The whole queue on a link of 8 Mbit/s, which sends 1000 B in a millisecond.

use super::*;
use crate::conformance::Link;
use cutline_units::{Duration, HintBits};

const MS: Duration = Duration::from_millis(1);

fn queue(params: DelticParams, limit: u32) -> Deltic<u32> {
    Deltic::build(&params, Limit::Packets(limit), true, Rate::from_mbps(8)).expect("they are allowed")
}

fn link(params: DelticParams) -> Link<Deltic<u32>> {
    Link::new(queue(params, 10_000), Rate::from_mbps(8))
}

fn arrival(flow: u32, size: u32) -> Arrival {
    Arrival { flow, ..Arrival::new(size, HintBits::PAPER.largest()) }
}

/// Keeps `packets` packets of a flow waiting for a second. Returns the link.
fn standing(params: DelticParams, packets: u32, arrival: Arrival) -> Link<Deltic<u32>> {
    let mut link = link(params);
    for _ in 0..packets {
        link.offer(arrival);
    }
    for _ in 0..1000 {
        link.wait(MS);
        link.offer(arrival);
    }
    link
}

fn marked(link: &Link<Deltic<u32>>) -> usize {
    link.sent.iter().filter(|(_, sent)| sent.marked).count()
}

#[test]
fn scalable_packets_get_fine_marks_and_others_none() {
    // Nine packets of delay are above the target of SCE, 5 ms, and below half of that of CE, 12.5 ms.
    let capable = Arrival { ecn_capable: true, ..arrival(1, 1000) };
    let scalable = Arrival { scalable: true, ..capable };
    let fine = standing(DelticParams::default(), 10, scalable);
    assert!(marked(&fine) > 100, "{} of 1000", marked(&fine));
    let without = DelticParams { mark_scalable: false, ..DelticParams::default() };
    for other in [standing(DelticParams::default(), 10, capable), standing(without, 10, scalable)] {
        assert_eq!(marked(&other), 0);
        assert!(other.shed.is_empty());
    }
}

#[test]
fn packets_that_cannot_be_marked_are_dropped_instead() {
    // The flow stays in one queue, and 40 ms are far below the target of drops.
    let params = DelticParams { sce_frequency: 8.0, drop_frequency: 1.0, ..DelticParams::default() };
    let capable = standing(params, 40, Arrival { ecn_capable: true, ..arrival(1, 1000) });
    assert!(marked(&capable) > 20, "{} of 1000", marked(&capable));
    assert!(capable.shed.is_empty());
    let not_capable = standing(params, 40, arrival(1, 1000));
    assert_eq!(marked(&not_capable), 0);
    assert!(not_capable.shed.len() > 5, "{} of 1000", not_capable.shed.len());
    assert!(not_capable.shed.iter().all(|shed| shed.reason == DropReason::Early));
}

#[test]
fn a_flow_that_does_not_respond_is_a_hog_and_a_sparse_one_does_not_wait() {
    // 12 Mbit/s of 1500 B, and 80 kbit/s of 200 B.
    let mut link = link(DelticParams::default());
    for ms in 0..3000 {
        link.offer(Arrival { ecn_capable: true, ..arrival(1, 1500) });
        if ms % 20 == 10 {
            link.offer(arrival(2, 200));
        }
        link.wait(MS);
    }
    assert_eq!(link.queue.queues.directed_to(Class::Hog), 1);
    assert_eq!(link.queue.queues.directed_to(Class::Bulk), 0);
    let second = Instant::ZERO + Duration::from_secs(1);
    let sparse = link.sent.iter().filter(|(_, sent)| sent.size == 200 && sent.arrived >= second);
    let waits: Vec<Duration> = sparse.map(|(at, sent)| at.saturating_since(sent.arrived)).collect();
    assert!(waits.len() > 90, "{}", waits.len());
    // A packet of 1500 B takes 1.5 ms.
    assert!(waits.iter().all(|wait| *wait <= MS * 2), "{waits:?}");
}

#[test]
fn a_flow_within_its_share_loses_little() {
    // 8 Mbit/s, and 3.2 Mbit/s, which is less than a half of the link.
    let mut link = link(DelticParams::default());
    for ms in 0..10_000 {
        link.offer(arrival(1, 1000));
        if ms % 2 == 1 {
            link.offer(arrival(2, 800));
        }
        link.wait(MS);
    }
    let lost = |size| link.shed.iter().filter(|shed| shed.size == size).count();
    let (above, within) = (lost(1000), lost(800));
    // Without regard to flows, the second would lose half as many packets as the first.
    assert!(above > 1000 && within * 10 < above, "{above} of 10,000 and {within} of 5,000");
}

#[test]
fn the_last_packet_of_a_flow_is_never_dropped() {
    for packets in [1, 3] {
        let mut queue = queue(DelticParams::default(), 100);
        let mut random = cutline_units::Streams::new(1).stream("queue", "drop");
        for packet in 0..packets {
            queue.enqueue(Instant::ZERO, arrival(1, 1000), packet, &mut random);
        }
        for controllers in &mut queue.controllers {
            controllers.last = Some(Instant::ZERO);
            controllers.drop = Controller { accumulator: 1e6, history: 0.25, oscillator: 0.0 };
        }
        // The sojourn time is 500 ms less a jitter of 250, and each packet is due for a drop.
        let sent = queue.dequeue(Instant::ZERO + MS * 500).map(|sent| (sent.packet, sent.marked));
        assert_eq!(sent, Some((packets - 1, false)));
        assert_eq!(queue.stats().dropped(DropReason::Early).packets, u64::from(packets - 1));
    }
}

#[test]
fn a_full_queue_refuses_newcomers() {
    let mut queue = queue(DelticParams::default(), 10);
    let mut random = cutline_units::Streams::new(1).stream("queue", "drop");
    for packet in 0..12 {
        let expected = if packet < 10 { Verdict::Pass } else { Verdict::Drop(DropReason::Overflow) };
        assert_eq!(queue.enqueue(Instant::ZERO, arrival(packet, 1000), packet, &mut random), expected);
    }
    let mut left = 0;
    queue.reset(Instant::ZERO, &mut |_| left += 1);
    assert_eq!((left, queue.backlog().packets), (10, 0));
}
