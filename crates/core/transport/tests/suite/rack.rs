//! Timelines of a TCP sender with RACK-TLP (RFC 8985) and PRR (RFC 6937).

use cutline_transport::tcp::{FullAck, Halving, InitialWindow, Params, Variant};

use crate::script::Script;

fn rack() -> Params {
    Params {
        initial_window: InitialWindow::Segments(10),
        sack: true,
        rack: true,
        variant: Variant { halving: Halving::WindowOnce, ..Variant::default() },
        ..Params::default()
    }
}

/// A sender with segments 1 to 11 outstanding: 0 is acknowledged after 100 ms, cwnd is 11 segments.
fn eleven_outstanding() -> Script {
    let mut script = Script::bulk(rack());
    script.sends(0..10).at(100).ack(1).sends([10, 11]).cwnd(11_000);
    script
}

#[test]
fn the_third_sacked_segment_means_a_loss() {
    let mut script = eleven_outstanding();
    // Segments 1 to 9 were sent at the same time as 2 and 3. RFC 8985 section 6.2, step 4: below three SACKed segments, the window is a
    // quarter of the minimal round trip, so 1 is not lost before 100 + 100/4 ms.
    script.at(110).sack(&[(2, 3)]).sends([12]).sack(&[(2, 4)]).sends([13]);
    assert!(!script.sender.in_recovery());
    // The window is 0 now. RFC 6937: the first retransmission leaves at once.
    script.sack(&[(2, 5)]).ssthresh(5500).sends([1]);
    assert!(script.sender.in_recovery());
    assert_eq!(script.recoveries, 1);
}

#[test]
fn one_sacked_segment_is_enough_after_a_reordering_window() {
    let mut script = Script::new(rack());
    assert!(script.sender.write(3000));
    script.sends(0..3).at(100).ack(1).at(101).sack(&[(2, 3)]).sends([]);
    // RFC 8985 section 6.2, step 5: 1 was sent at 0; the round trip of 2 was 101 ms, and a quarter of 100 ms comes on top.
    script.timeout_at(126).sends([1]);
    assert_eq!(script.sender.stats().timeouts, 0);
    script.at(230).ack(3);
    assert!(!script.sender.in_recovery());
}

#[test]
fn a_lost_retransmission_is_sent_again_without_a_timeout() {
    let mut script = eleven_outstanding();
    // The retransmission of 1 leaves at 110, and 12 after it. When 12 arrives, 1 is lost again.
    script.at(110).sack(&[(2, 5)]).sends([1]).at(150).sack(&[(2, 9)]).sends([12]);
    script.at(251).sack(&[(2, 9), (12, 13)]);
    let sent: Vec<u64> = script.transmit().iter().map(|segment| segment.seq / 1000).collect();
    assert_eq!(sent[0], 1, "the retransmission was sent before 12, which has arrived: {sent:?}");
    assert_eq!((script.sender.stats().timeouts, script.recoveries), (0, 1));
}

#[test]
fn a_probe_repairs_the_loss_of_the_last_segment() {
    let mut script = Script::new(rack());
    assert!(script.sender.write(3000));
    script.sends(0..3).at(100).ack(2);
    // RFC 8985 section 7.2: two round trips, and 200 ms because one segment is outstanding.
    script.timeout_at(500).sends([2]);
    assert_eq!((script.sender.probes(), script.sender.stats().timeouts), (1, 0));
    // RFC 8985 section 7.4.2: an acknowledgement of exactly the probe tells nothing yet.
    script.at(600).ack(3).sends([]);
    assert_eq!(script.sender.stats().timeouts, 0);
}

#[test]
fn a_probe_brings_the_loss_of_several_segments_to_light() {
    let mut script = Script::new(rack());
    assert!(script.sender.write(6000));
    script.sends(0..6).at(100).ack(2);
    // RFC 8985 section 7.2: two round trips. New data there is none, so the last segment is sent again (RFC 8985 section 7.3).
    script.timeout_at(300).sends([5]);
    // RFC 8985 section 7.4.1: 2, 3 and 4 were sent long before it.
    script.at(400).sack(&[(5, 6)]);
    let sent: Vec<u64> = script.transmit().iter().map(|segment| segment.seq / 1000).collect();
    assert_eq!(sent[0], 2, "{sent:?}");
    assert!(script.sender.in_recovery());
    assert_eq!(script.sender.stats().timeouts, 0);
}

#[test]
fn a_probe_is_new_data_where_there_is_some() {
    let mut script = eleven_outstanding();
    // RFC 8985 section 7: a probe after two round trips without an acknowledgement, beyond the window.
    script.timeout_at(300).sends([12]).cwnd(11_000);
    assert_eq!(script.sender.probes(), 1);
    // Nothing comes of that either: the retransmission timeout.
    script.timeout_at(1300);
    assert_eq!(script.sender.stats().timeouts, 1);
}

#[test]
fn a_timeout_sends_what_is_old_again_in_slow_start() {
    let mut script = eleven_outstanding();
    script.timeout_at(300).sends([12]).timeout_at(1300).ssthresh(5500);
    // RFC 8985 section 6.3: everything was sent more than a round trip ago.
    script.cwnd(1000).sends([1]);
    script.at(1400).ack(2).cwnd(2000).sends([2, 3]);
    // Losses below `recover` do not reduce the window again.
    script.at(1500).ack(4).cwnd(3000).sends([4, 5, 6]);
    assert_eq!((script.sender.stats().timeouts, script.recoveries), (1, 0));
}

#[test]
fn a_spurious_timeout_is_taken_back() {
    let mut script = eleven_outstanding();
    script.timeout_at(300).sends([12]).timeout_at(1300).sends([1]).cwnd(1000);
    // RFC 3522 section 3.2: the acknowledgement echoes a time before the retransmission, so nothing was lost.
    script.at(1310).ack_of_earlier(3).ssthresh(u64::MAX);
    assert!(script.sender.cwnd() >= 11_000, "{}", script.sender.cwnd());
}

/// RFC 6937: a recovery in which half the flight is lost keeps sending.
#[test]
fn the_window_falls_in_proportion_to_the_delivered_bytes() {
    let mut script = Script::bulk(Params { initial_window: InitialWindow::Segments(20), ..rack() });
    script.sends(0..20).at(100).sack(&[(1, 4)]).ssthresh(10_000);
    let first = script.transmit();
    assert_eq!(first[0].seq, 0);
    let mut left = first.len();
    for n in 5..20 {
        script.at(100 + n).sack(&[(1, n)]);
        left += script.transmit().len();
    }
    // 18 segments are delivered in recovery, so half as many leave.
    assert!((9..=10).contains(&left), "{left}");
    // RFC 6937 section 3: recovery ends with the window at the threshold.
    script.at(210).ack(20).cwnd(10_000);
    assert!(!script.sender.in_recovery());
}

/// RFC 5681 eq. 4 in whole segments, as Linux counts: half of 11 are 5, and the acknowledgement that ends recovery counts towards the
/// next segment.
#[test]
fn whole_segments_are_halved_and_grow_from_the_end_of_recovery_on() {
    let ended = |full_ack, whole_segments| {
        let variant =
            Variant { halving: Halving::WindowOnce, full_ack, whole_segments, ..Variant::default() };
        let mut script = Script::bulk(Params { variant, ..rack() });
        script.sends(0..10).at(100).ack(1).sends([10, 11]).cwnd(11_000);
        script.at(110).sack(&[(2, 12)]).transmit();
        let threshold = script.sender.ssthresh();
        // Everything that was outstanding is acknowledged: the retransmission has arrived.
        script.at(210).ack(12).transmit();
        assert!(!script.sender.in_recovery());
        let at_end = script.sender.cwnd();
        script.at(220).ack(16).transmit();
        (threshold, at_end, script.sender.cwnd())
    };
    // In bytes: 5.5 segments, of which four acknowledged ones are not a window yet.
    assert_eq!(ended(FullAck::Ssthresh, false), (5_500, 5_500, 5_500));
    assert_eq!(ended(FullAck::Ssthresh, true), (5_000, 5_000, 5_000));
    // The acknowledgement that ends recovery delivers one segment, and four more make a window of five.
    assert_eq!(ended(FullAck::SsthreshAndGrowth, true), (5_000, 5_000, 6_000));
}
