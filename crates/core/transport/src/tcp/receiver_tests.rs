use super::*;
use crate::tcp::Algorithm;
use cutline_units::Duration;
use cutline_units::Ecn;

fn ms(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

fn receiver(params: Params) -> Receiver {
    Receiver::new(&Arc::new(params))
}

fn delaying() -> Params {
    Params { delayed_ack: Some(Duration::from_millis(200)), ..Params::default() }
}

/// Segment `n` of 1000 B, sent at `sent_ms`.
fn segment(n: u64, sent_ms: u64) -> Segment {
    let seq = n * 1000;
    Segment { seq, sent_at: ms(sent_ms), len: 1000, retransmission: false, cwr: false, fin: false }
}

fn blocks(ack: &Ack) -> Vec<(u64, u64)> {
    ack.sack.ranges(ack.ack).map(|(start, end)| (start / 1000, end / 1000)).collect()
}

#[test]
fn each_segment_is_acknowledged_by_default() {
    let mut receiver = receiver(Params::default());
    for n in 0..3 {
        let ack = receiver.on_segment(ms(n), &segment(n, n), false).expect("at once");
        assert_eq!(ack.ack, (n + 1) * 1000);
    }
    assert_eq!(receiver.delivered(), 3000);
}

#[test]
fn a_delayed_acknowledgement_waits_for_the_second_segment_or_the_timer() {
    let mut receiver = receiver(delaying());
    // RFC 5681 section 4.2: every second full-sized segment.
    assert_eq!(receiver.on_segment(ms(10), &segment(0, 0), false), None);
    assert_eq!(receiver.deadline(), ms(210));
    assert_eq!(receiver.on_segment(ms(20), &segment(1, 0), false).map(|ack| ack.ack), Some(2000));
    assert_eq!(receiver.deadline(), Instant::FAR_FUTURE);
    // RFC 5681 section 4.2: within the delay.
    assert_eq!(receiver.on_segment(ms(30), &segment(2, 0), false), None);
    assert_eq!(receiver.on_deadline(ms(229)), None);
    assert_eq!(receiver.on_deadline(ms(230)).map(|ack| ack.ack), Some(3000));
    assert_eq!(receiver.deadline(), Instant::FAR_FUTURE);
}

#[test]
fn segments_beyond_a_hole_and_those_that_fill_it_are_acknowledged_at_once() {
    let mut receiver = receiver(delaying());
    receiver.on_segment(ms(0), &segment(0, 0), false);
    // RFC 5681 section 4.2: at once if it is out of order, and if it fills a hole.
    assert_eq!(receiver.on_segment(ms(1), &segment(2, 0), false).map(|ack| ack.ack), Some(1000));
    assert_eq!(receiver.on_segment(ms(2), &segment(1, 0), false).map(|ack| ack.ack), Some(3000));
    assert_eq!((receiver.delivered(), receiver.held().is_empty()), (3000, true));
}

#[test]
fn old_segments_are_acknowledged_and_change_nothing() {
    let mut receiver = receiver(Params::default());
    receiver.on_segment(ms(0), &segment(0, 0), false);
    receiver.on_segment(ms(1), &segment(2, 0), false);
    assert_eq!(receiver.on_segment(ms(2), &segment(0, 0), false).map(|ack| ack.ack), Some(1000));
    assert_eq!(receiver.on_segment(ms(3), &segment(2, 0), false).map(|ack| ack.ack), Some(1000));
    assert_eq!((receiver.delivered(), receiver.held().to_vec()), (1000, vec![(2000, 3000)]));
}

#[test]
fn sack_reports_the_most_recent_range_first() {
    let mut receiver = receiver(Params { sack: true, ..Params::default() });
    let mut after = |n: u64| blocks(&receiver.on_segment(ms(n), &segment(n, 0), false).expect("at once"));
    // RFC 2018 section 4: first the block of the segment that arrived, then the most recent others.
    assert_eq!(after(2), [(2, 3)]);
    assert_eq!(after(4), [(4, 5), (2, 3)]);
    assert_eq!(after(6), [(6, 7), (4, 5), (2, 3)]);
    assert_eq!(after(8), [(8, 9), (6, 7), (4, 5)]);
    assert_eq!(after(3), [(2, 5), (8, 9), (6, 7)]);
    assert_eq!(after(0), [(2, 5), (8, 9), (6, 7)]);
    assert_eq!(after(1), [(8, 9), (6, 7)]);
}

#[test]
fn without_sack_there_are_no_blocks() {
    let mut receiver = receiver(Params::default());
    assert!(receiver.on_segment(ms(0), &segment(3, 0), false).expect("at once").sack.is_empty());
}

#[test]
fn congestion_is_echoed_until_the_sender_has_reduced() {
    let mut receiver = receiver(Params { ecn: Ecn::Ect0, ..Params::default() });
    let mut ece = |n, cwr, ce| {
        let segment = Segment { cwr, ..segment(n, 0) };
        receiver.on_segment(ms(n), &segment, ce).expect("at once").ece
    };
    // RFC 3168 section 6.1.3: from the marked segment until CWR arrives.
    let echoes = [ece(0, false, false), ece(1, false, true), ece(2, false, false), ece(3, true, false)];
    assert_eq!(echoes, [false, true, true, false]);
    // RFC 3168 section 6.1.3: a mark on the segment with CWR is new congestion.
    assert!(ece(4, true, true) && ece(5, false, false));
    assert_eq!(receiver.stats().marked, 2);
}

#[test]
fn dctcp_echoes_the_mark_of_each_segment() {
    let mut receiver = receiver(Params { algorithm: Algorithm::Dctcp, ecn: Ecn::Ect0, ..Params::default() });
    let mut ece = |n, ce| receiver.on_segment(ms(n), &segment(n, 0), ce).expect("at once").ece;
    // RFC 8257 section 3.2: no echo after the mark, although no CWR has arrived.
    assert_eq!([ece(0, false), ece(1, true), ece(2, false), ece(3, true)], [false, true, false, true]);
}

#[test]
fn dctcp_acknowledges_delayed_segments_when_the_mark_changes() {
    let mut receiver = receiver(Params { algorithm: Algorithm::Dctcp, ecn: Ecn::Ect0, ..delaying() });
    let mut at = |at, n, ce| receiver.on_segment(ms(at), &segment(n, 0), ce).map(|ack| (ack.ack, ack.ece));
    assert_eq!(at(10, 0, false), None);
    // RFC 8257 section 3.2: segment 0 is acknowledged with the old state, segment 1 is delayed in the new one.
    assert_eq!(at(20, 1, true), Some((1000, false)));
    assert_eq!(at(30, 2, true), Some((3000, true)));
    assert_eq!(at(40, 3, true), None);
    assert_eq!(at(50, 4, false), Some((4000, true)));
    assert_eq!(receiver.on_deadline(ms(250)).map(|ack| (ack.ack, ack.ece)), Some((5000, false)));
}

#[test]
fn the_echoed_timestamp_is_that_of_the_segment_that_moved_the_acknowledgement() {
    let mut receiver = receiver(Params::default());
    let mut echo =
        |n, sent_ms| receiver.on_segment(ms(500), &segment(n, sent_ms), false).expect("at once").echo;
    // RFC 7323 section 4.3, cases B and C: that of the last segment in order, and then that of the segment that fills the
    // hole.
    assert_eq!([echo(0, 10), echo(2, 30), echo(3, 40), echo(1, 90)], [ms(10), ms(10), ms(10), ms(90)]);
}

#[test]
fn a_delayed_acknowledgement_echoes_the_earliest() {
    let mut receiver = receiver(delaying());
    receiver.on_segment(ms(50), &segment(0, 10), false);
    // RFC 7323 section 4.3, case A: the sample includes the delay.
    let ack = receiver.on_segment(ms(60), &segment(1, 20), false).expect("the second");
    assert_eq!(ack.echo, ms(10));
}

#[test]
fn fin_is_delivered_last_and_is_not_a_byte() {
    let mut receiver = receiver(Params::default());
    let last = Segment { fin: true, len: 500, ..segment(1, 0) };
    receiver.on_segment(ms(0), &last, false);
    assert_eq!((receiver.delivered(), receiver.is_finished()), (0, false));
    let ack = receiver.on_segment(ms(1), &segment(0, 0), false).expect("at once");
    assert_eq!((ack.ack, receiver.delivered(), receiver.is_finished()), (1501, 1500, true));
}
