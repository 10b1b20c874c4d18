use super::*;
use proptest::prelude::*;

const MS: fn(u64) -> Duration = Duration::from_millis;

/// An interval: utilisation, wait and round-trip time in milliseconds.
fn interval((utilisation, wait, round_trip): (f64, u64, u64)) -> Interval {
    let queue = QueueLoad { utilisation, mean_wait: MS(wait), ..QueueLoad::default() };
    Interval { queue: Some(queue), round_trip: Some(MS(round_trip)) }
}

/// Intervals on a path of 20 ms, of which no probe was lost.
fn seen(intervals: &[(f64, u64, u64)]) -> Observations {
    Observations {
        rate: Some(Rate::from_mbps(15)),
        intervals: intervals.iter().copied().map(interval).collect(),
        path: Some(PathDelay { asked: 100, answered: 100, base: MS(20), base_given: false }),
        port: None,
    }
}

fn verdict(seen: &Observations) -> (BottleneckPlace, Confidence) {
    let judgement = judge(seen, &Thresholds::default());
    assert!(!judgement.reasons.is_empty() || seen.intervals.is_empty(), "{judgement:?}");
    (judgement.place, judgement.confidence)
}

/// A description, the intervals, and the expected judgement.
type Case = (&'static str, &'static [(f64, u64, u64)], BottleneckPlace, Confidence);

/// Typical cases: first idle, then loaded.
#[test]
fn the_place_of_waiting_packets_is_found() {
    const IDLE: (f64, u64, u64) = (0.1, 0, 20);
    let cases: [Case; 9] = [
        (
            "ours",
            &[IDLE, (1.0, 60, 81), (1.0, 70, 90), (0.99, 65, 84)],
            BottleneckPlace::Ours,
            Confidence::High,
        ),
        (
            "ours, and probes are favoured",
            &[IDLE, (1.0, 60, 21), (1.0, 70, 20)],
            BottleneckPlace::Ours,
            Confidence::High,
        ),
        (
            "ours, load all the time",
            &[(1.0, 60, 25), (1.0, 61, 24)],
            BottleneckPlace::Ours,
            Confidence::Medium,
        ),
        ("ours, in bursts", &[IDLE, (0.6, 60, 81), (0.5, 50, 75)], BottleneckPlace::Ours, Confidence::Medium),
        (
            "a slower link",
            &[IDLE, (0.6, 0, 150), (0.6, 1, 160)],
            BottleneckPlace::Elsewhere,
            Confidence::High,
        ),
        (
            "ours and a slower link",
            &[IDLE, (1.0, 30, 150), (1.0, 30, 150)],
            BottleneckPlace::Elsewhere,
            Confidence::High,
        ),
        (
            "a slower link, now and then",
            &[IDLE, (1.0, 30, 150), (1.0, 30, 50)],
            BottleneckPlace::Elsewhere,
            Confidence::Medium,
        ),
        ("no load", &[IDLE, (0.3, 0, 21), (0.2, 0, 24)], BottleneckPlace::Nowhere, Confidence::Medium),
        ("nothing was seen", &[], BottleneckPlace::Unknown, Confidence::Low),
    ];
    for (what, intervals, place, confidence) in cases {
        assert_eq!(verdict(&seen(intervals)), (place, confidence), "{what}");
    }
}

#[test]
fn growth_counts_above_the_thresholds() {
    let place = |round_trip| verdict(&seen(&[(0.1, 0, 20), (0.5, 0, round_trip), (0.5, 0, round_trip)])).0;
    // 5 ms and a tenth of 20 ms.
    assert_eq!((place(27), place(28)), (BottleneckPlace::Nowhere, BottleneckPlace::Elsewhere));
    // 100 ms of growth, of which three tenths may be left unexplained.
    let place = |wait| verdict(&seen(&[(0.1, 0, 20), (1.0, wait, 120), (1.0, wait, 120)])).0;
    assert_eq!((place(70), place(69)), (BottleneckPlace::Ours, BottleneckPlace::Elsewhere));
}

#[test]
fn a_given_base_raises_the_confidence() {
    let mut busy = seen(&[(1.0, 60, 80), (1.0, 60, 80)]);
    assert_eq!(verdict(&busy), (BottleneckPlace::Ours, Confidence::Medium));
    busy.path.as_mut().unwrap().base_given = true;
    assert_eq!(verdict(&busy), (BottleneckPlace::Ours, Confidence::High));
}

#[test]
fn without_probes_a_busy_queue_is_ours_and_an_idle_one_is_no_evidence() {
    let mut busy = seen(&[(1.0, 60, 0), (1.0, 60, 0)]);
    let mut idle = seen(&[(0.4, 0, 0), (0.4, 0, 0)]);
    (busy.path, idle.path) = (None, None);
    assert_eq!(verdict(&busy), (BottleneckPlace::Ours, Confidence::Medium));
    assert_eq!(verdict(&idle), (BottleneckPlace::Unknown, Confidence::Low));
    let next = judge(&idle, &Thresholds::default()).do_next;
    assert!(next.iter().any(|step| step.contains("--probe")), "{next:?}");
}

#[test]
fn without_statistics_growth_alone_is_no_evidence() {
    let mut grown = seen(&[(0.0, 0, 20), (0.0, 0, 200), (0.0, 0, 200)]);
    grown.intervals.iter_mut().for_each(|interval| interval.queue = None);
    assert_eq!(verdict(&grown), (BottleneckPlace::Unknown, Confidence::Low));
    let next = judge(&grown, &Thresholds::default()).do_next;
    assert!(next.iter().any(|step| step.contains("--stats")), "{next:?}");
}

#[test]
fn a_router_that_is_scheduled_late_lowers_the_confidence() {
    let mut late = seen(&[(0.1, 0, 20), (1.0, 60, 80), (1.0, 60, 80)]);
    late.intervals[1].queue.as_mut().unwrap().slipped = MS(300);
    assert_eq!(verdict(&late), (BottleneckPlace::Ours, Confidence::Medium));
    let judgement = judge(&late, &Thresholds::default());
    assert!(judgement.reasons.iter().any(|reason| reason.contains("300 ms")), "{judgement:?}");
    assert!(judgement.do_next.iter().any(|step| step.contains("chrt")), "{judgement:?}");
}

#[test]
fn a_policer_drops_probes_without_delay() {
    let mut policed = seen(&[(0.1, 0, 20), (0.6, 0, 20), (0.6, 0, 21)]);
    policed.path.as_mut().unwrap().answered = 80;
    assert_eq!(verdict(&policed), (BottleneckPlace::Elsewhere, Confidence::Low));
    // Our own drops explain it.
    policed.intervals[1].queue.as_mut().unwrap().dropped = 20;
    assert_eq!(verdict(&policed).0, BottleneckPlace::Nowhere);
}

#[test]
fn a_host_that_does_not_answer_is_no_evidence() {
    let mut silent = seen(&[(1.0, 60, 0), (1.0, 60, 0)]);
    silent.intervals.iter_mut().for_each(|interval| interval.round_trip = None);
    silent.path = Some(PathDelay { asked: 100, answered: 0, base: Duration::ZERO, base_given: false });
    assert_eq!(verdict(&silent), (BottleneckPlace::Ours, Confidence::Medium));
    let next = judge(&silent, &Thresholds::default()).do_next;
    assert!(next.iter().any(|step| step.contains("another host")), "{next:?}");
}

#[test]
fn packets_can_wait_at_the_interface_behind_the_queue() {
    let busy = || seen(&[(0.1, 0, 20), (1.0, 60, 80), (1.0, 60, 80)]);
    let with_port = |port: BottleneckPort| Observations {
        port: Some(BottleneckPort { name: "eth1".into(), ..port }),
        ..busy()
    };
    let port = BottleneckPort { speed: Some(Rate::from_mbps(1000)), ..BottleneckPort::default() };
    assert_eq!(verdict(&with_port(port.clone())).0, BottleneckPlace::Ours, "a fast and idle one");

    let slow = BottleneckPort { speed: Some(Rate::from_mbps(15)), ..BottleneckPort::default() };
    assert_eq!(
        verdict(&with_port(slow)),
        (BottleneckPlace::Interface, Confidence::Medium),
        "no faster than our rate"
    );
    let queued = BottleneckPort { qdisc_packets: 300, dropped: 12, ..port.clone() };
    assert_eq!(verdict(&with_port(queued)).0, BottleneckPlace::Interface, "queue disciplines");
    // 5 ms of 1 Gbit/s are 625,000 B.
    let driver = |bytes| BottleneckPort { driver_bytes: Some(bytes), ..port.clone() };
    assert_eq!(verdict(&with_port(driver(625_000))).0, BottleneckPlace::Ours);
    assert_eq!(verdict(&with_port(driver(626_000))).0, BottleneckPlace::Interface, "the driver");

    let mut refused = busy();
    refused.intervals[2].queue.as_mut().unwrap().unsent = 1;
    assert_eq!(verdict(&refused), (BottleneckPlace::Interface, Confidence::High), "frames were refused");
    let mut stuck = busy();
    stuck.intervals.iter_mut().for_each(|interval| interval.queue.as_mut().unwrap().stuck = 3);
    assert_eq!(verdict(&stuck), (BottleneckPlace::Interface, Confidence::High), "frames are waiting for it");
    stuck.intervals[0].queue.as_mut().unwrap().stuck = 0;
    assert_eq!(verdict(&stuck).0, BottleneckPlace::Ours, "not all the time");
}

#[test]
fn every_judgement_recommends_something() {
    for intervals in [&[(1.0, 60, 80); 3][..], &[(0.5, 0, 90); 3], &[(0.1, 0, 20); 3], &[]] {
        let judgement = judge(&seen(intervals), &Thresholds::default());
        if !intervals.is_empty() {
            assert!(!judgement.do_next.is_empty(), "{judgement:?}");
        }
    }
}

proptest! {
    /// More waiting in our queue never speaks for another place, more growth never for ours.
    #[test]
    fn waiting_is_evidence_for_our_queue_and_growth_against_it(
        intervals in prop::collection::vec((0.0..1.1_f64, 0..300_u64, 20..400_u64), 1..12),
        more in 1..200_u64,
    ) {
        let place = |wait: u64, growth: u64| {
            let spoilt: Vec<_> = intervals.iter().map(|&(u, w, r)| (u, w + wait, r + growth)).collect();
            verdict(&seen(&spoilt)).0
        };
        let as_seen = place(0, 0);
        if as_seen == BottleneckPlace::Ours {
            prop_assert_eq!(place(more, 0), BottleneckPlace::Ours);
        }
        if as_seen == BottleneckPlace::Elsewhere && intervals.iter().all(|&(.., r)| r > 27) {
            prop_assert_eq!(place(0, more), BottleneckPlace::Elsewhere);
        }
    }
}
