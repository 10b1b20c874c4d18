//! Timelines of a TCP sender: windows, timers and ECN.

use cutline_transport::tcp::{InitialWindow, Params, RttSampling, Variant};
use cutline_units::{Duration, Ecn, Instant};

use crate::script::{Script, ms};

/// An initial window of `n` segments, and no limited transmit.
fn window_of(n: u32) -> Params {
    Params { initial_window: InitialWindow::Segments(n), limited_transmit: false, ..Params::default() }
}

fn avoidance_at(n: u32) -> Params {
    Params { initial_ssthresh: Some(n), ..window_of(n) }
}

#[test]
fn slow_start_adds_a_segment_per_acknowledgement() {
    let mut script = Script::bulk(window_of(2));
    script.sends([0, 1]).cwnd(2000).ssthresh(u64::MAX);
    // RFC 5681 eq. 2: one segment for each acknowledgement.
    script.at(100).ack(1).cwnd(3000).sends([2, 3]);
    script.ack(2).cwnd(4000).sends([4, 5]);
    script.at(200).ack(3).ack(4).ack(5).ack(6).cwnd(8000).sends(6..14);
}

#[test]
fn an_acknowledgement_of_two_segments_adds_one_in_slow_start() {
    let mut script = Script::bulk(window_of(4));
    // RFC 5681 eq. 2: min(N, SMSS).
    script.sends(0..4).at(100).ack(2).cwnd(5000);
    let mut counting = Script::bulk(Params { abc_limit: 2, ..window_of(4) });
    // RFC 3465 section 2.2: L = 2.
    counting.sends(0..4).at(100).ack(2).cwnd(6000);
}

#[test]
fn congestion_avoidance_adds_a_segment_per_round_trip() {
    let mut script = Script::bulk(avoidance_at(4));
    script.sends(0..4);
    script.at(100).ack(1).cwnd(4000).sends([4]).ack(2).sends([5]).ack(3).cwnd(4000).sends([6]);
    // RFC 5681 section 3.1: a whole window of bytes is acknowledged.
    script.ack(4).cwnd(5000).sends([7, 8]);
    script.at(200).ack(5).ack(6).ack(7).ack(8).cwnd(5000).ack(9).cwnd(6000).sends(9..15);
}

#[test]
fn slow_start_ends_at_ssthresh() {
    let mut script = Script::bulk(Params { initial_ssthresh: Some(4), ..window_of(2) });
    script.sends([0, 1]).at(100).ack(1).ack(2).cwnd(4000).sends(2..6);
    // RFC 5681 section 3.1: congestion avoidance when cwnd is at or above ssthresh.
    script.at(200).ack(3).ack(4).ack(5).cwnd(4000).ack(6).cwnd(5000);
}

#[test]
fn the_window_of_the_receiver_limits_the_sender() {
    let mut script = Script::bulk(Params { max_window: Some(3), ..window_of(10) });
    // RFC 5681 section 3.1: the minimum of cwnd and rwnd.
    script.sends([0, 1, 2]).at(100).ack(1).sends([3]).cwnd(10_000);
}

#[test]
fn the_window_does_not_grow_while_the_application_limits() {
    let mut script = Script::new(window_of(10));
    script.sender.write(3000);
    // RFC 9438 section 5.8: the application limits the sender.
    script.sends([0, 1, 2]).at(100).ack(3).cwnd(10_000);
    let mut ns2 = Script::new(Params {
        variant: Variant { grow_only_when_limited: false, ..Variant::default() },
        ..window_of(10)
    });
    ns2.sender.write(3000);
    ns2.sends([0, 1, 2]).at(100).ack(3).cwnd(11_000);
}

#[test]
fn acknowledgements_restart_the_timer_and_the_last_stops_it() {
    let mut script = Script::new(window_of(3));
    script.sender.write(3000);
    // RFC 6298 section 5.1: the first segment starts the timer, for 1 s (RFC 6298 section 2.1).
    script.sends([0, 1, 2]).deadline(1000);
    // RFC 6298 section 5.3: an acknowledgement of new data restarts it, for no less than 1 s (RFC 6298 section 2.4).
    script.at(300).ack(1).deadline(1300);
    // RFC 6298 section 5.2: it stops when everything is acknowledged.
    script.at(400).ack(3);
    assert_eq!(script.sender.deadline(), Instant::FAR_FUTURE);
}

#[test]
fn there_is_one_sample_per_round_trip() {
    let mut script = Script::bulk(window_of(2));
    script.sends([0, 1]).at(100).ack(1).sends([2, 3]);
    assert_eq!(script.sender.srtt(), Duration::from_millis(100));
    // RFC 6298 section 3: segment 1 left before the sample, so it belongs to the same round trip.
    script.at(150).ack(2).sends([4, 5]);
    assert_eq!(script.sender.srtt(), Duration::from_millis(100));
    // RFC 6298 section 2.3: 7/8 * 100 + 1/8 * 180.
    script.at(280).ack(3);
    assert_eq!(script.sender.srtt(), Duration::from_millis(110));
}

#[test]
fn one_segment_is_timed_and_no_retransmission() {
    let mut script = Script::bulk(Params {
        variant: Variant { rtt_sampling: RttSampling::OneSegment, ..Variant::default() },
        ..window_of(2)
    });
    // Segment 0 is timed, 1 is not; then 2 is.
    script.sends([0, 1]).at(100).ack(1).sends([2, 3]);
    assert_eq!(script.sender.srtt(), Duration::from_millis(100));
    script.at(180).ack(2).sends([4, 5]);
    assert_eq!(script.sender.srtt(), Duration::from_millis(100));
    // 2 is lost. RFC 6298 section 3: its retransmission yields no sample, so the doubled timeout stays (RFC 6298 section 5).
    script.timeout_at(1180).sends([2]).at(1280).ack(6).sends([6, 7]).deadline(3280);
    assert_eq!(script.sender.srtt(), Duration::from_millis(100));
    // RFC 6298 section 5: until new data is acknowledged. 7/8 * 100 + 1/8 * 180.
    script.at(1460).ack(7).deadline(2460);
    assert_eq!(script.sender.srtt(), Duration::from_millis(110));
}

#[test]
fn a_timeout_reduces_the_window_to_one_segment() {
    let mut script = Script::bulk(window_of(10));
    script.sends(0..10).timeout_at(1000);
    // RFC 5681 eq. 4, and the loss window (RFC 5681 section 3.1). RFC 6298 section 5.4: the earliest segment first.
    script.cwnd(1000).ssthresh(5000).sends([0]);
    assert_eq!(script.sender.stats().timeouts, 1);
    // RFC 5681 section 3.1: slow start up to ssthresh. Outstanding data is sent again.
    script.at(1100).ack(1).cwnd(2000).sends([1, 2]);
    // An acknowledgement skips the segments that had arrived before the timeout.
    script.at(1200).ack(10).cwnd(3000).sends([10, 11, 12]);
}

#[test]
fn timeouts_back_off_and_hold_ssthresh() {
    let mut script = Script::bulk(window_of(10));
    script.sends(0..10).timeout_at(1000).ssthresh(5000).sends([0]);
    // RFC 6298 sections 5.5 and 5.6: the timer restarts with 2 s, then 4 s. RFC 5681 section 3.1: ssthresh does not
    // change when the same segment is retransmitted.
    script.timeout_at(3000).ssthresh(5000).cwnd(1000).sends([0]);
    script.timeout_at(7000).ssthresh(5000).sends([0]);
    // RFC 6298 section 5: the next sample ends the backoff.
    script.at(7100).ack(1).sends([1, 2]).deadline(8100);
    assert_eq!((script.sender.stats().timeouts, script.sender.stats().retransmissions), (3, 5));
}

#[test]
fn the_timeout_is_at_most_a_minute() {
    let mut script = Script::bulk(window_of(1));
    script.sends([0]);
    let mut at = 1000;
    for interval in [2, 4, 8, 16, 32, 60, 60] {
        script.timeout_at(at).sends([0]);
        // RFC 6298 section 2.5: at most 60 s.
        at += interval * 1000;
        script.deadline(at);
    }
}

#[test]
fn an_idle_connection_restarts_with_the_initial_window() {
    let mut script = Script::new(window_of(2));
    script.sender.write(6000);
    script.sends([0, 1]).at(100).ack(1).sends([2, 3]).ack(2).sends([4, 5]).cwnd(4000);
    script.at(200).ack(6).cwnd(5000);
    script.sender.write(10_000);
    // RFC 5681 section 4.1: idle for more than one RTO, which is 1 s.
    script.at(1300).sends([6, 7]).cwnd(2000);
}

#[test]
fn a_short_pause_keeps_the_window() {
    let mut script = Script::new(window_of(2));
    script.sender.write(2000);
    script.sends([0, 1]).at(100).ack(1).sends([]).ack(2).cwnd(3000);
    script.sender.write(10_000);
    // RFC 5681 section 4.1: idle for less than the RTO.
    script.at(900).sends([2, 3, 4]);
}

#[test]
fn an_ecn_echo_halves_the_window_once_per_window_of_data_and_sets_cwr() {
    let mut script = Script::bulk(Params { ecn: Ecn::Ect0, ..window_of(10) });
    script.sends(0..10);
    script.at(100).ack(1).cwnd(11_000).sends([10, 11]);
    // RFC 3168 section 6.1.2: as for a loss; 11 segments are outstanding.
    script.at(110).ack_ece(2).cwnd(5500).ssthresh(5500).sends([]);
    // RFC 3168 section 6.1.2: not again for data that was outstanding then (below 12).
    script.at(120).ack_ece(7).cwnd(5500).sends([]);
    let cwr =
        |script: &mut Script| -> Vec<bool> { script.transmit().iter().map(|segment| segment.cwr).collect() };
    // RFC 3168 section 6.1.2: CWR on the first new segment only.
    assert_eq!(cwr(script.at(130).ack_ece(8).cwnd(6500)), [true, false]);
    assert_eq!(cwr(script.at(140).ack_ece(12).cwnd(6500)), [false; 4]);
    // RFC 3168 section 6.1.2: this acknowledges data sent after the reduction.
    script.at(250).ack_ece(13).cwnd(3000).ssthresh(3000);
    assert_eq!(script.ecn_reductions, 2);
}

#[test]
fn an_ecn_echo_does_not_change_a_window_of_one_segment() {
    let mut script = Script::bulk(Params { ecn: Ecn::Ect0, ..window_of(1) });
    // RFC 5681 eq. 4: ssthresh is at least two segments. RFC 3168 section 6.1.2: the acknowledgement does not increase the
    // window.
    script.sends([0]).at(100).ack_ece(1).ssthresh(2000).cwnd(1000).sends([1]);
}

#[test]
fn the_first_new_segment_after_a_timeout_has_cwr() {
    let mut script = Script::bulk(Params { ecn: Ecn::Ect0, ..window_of(10) });
    let cwr = |script: &mut Script| -> Vec<(u64, bool)> {
        script.transmit().iter().map(|segment| (segment.seq / 1000, segment.cwr)).collect()
    };
    script.sends(0..10).timeout_at(1000);
    // RFC 3168 section 6.1.2: not on retransmissions.
    assert_eq!(cwr(&mut script), [(0, false)]);
    assert_eq!(cwr(script.at(1100).ack(10)), [(10, true), (11, false)]);
}

#[test]
fn without_ecn_an_echo_is_ignored() {
    let mut script = Script::bulk(window_of(10));
    script.sends(0..10).at(100).ack_ece(1).cwnd(11_000);
}

#[test]
fn small_segments_wait_with_nagle() {
    let mut script = Script::new(Params { nagle: true, ..window_of(10) });
    script.sender.write(300);
    assert_eq!(script.transmit().len(), 1);
    script.sender.write(300);
    // RFC 1122 section 4.2.3.4: unacknowledged data is outstanding.
    assert_eq!(script.transmit(), []);
    script.sender.write(700);
    let full: Vec<u32> = script.transmit().iter().map(|segment| segment.len).collect();
    assert_eq!(full, [1000]);
    let mut eager = Script::new(window_of(10));
    eager.sender.write(300);
    eager.transmit();
    eager.sender.write(300);
    assert_eq!(eager.transmit().len(), 1);
}

#[test]
fn a_full_send_buffer_refuses_the_whole_write() {
    let mut script = Script::new(Params { send_buffer: Some(2), ..window_of(1) });
    assert!(script.sender.write(1500));
    assert!(!script.sender.write(501));
    script.sends([0]);
    // Only unsent data takes room in the buffer.
    assert!(script.sender.write(1500) && !script.sender.write(1));
    assert_eq!((script.sender.backlog(), script.sender.stats().refused_bytes), (2000, 502));
}

#[test]
fn fin_follows_the_last_byte_and_takes_a_sequence_number() {
    let mut script = Script::new(window_of(10));
    script.sender.write(1500);
    script.sender.close();
    assert!(!script.sender.write(1), "nothing follows FIN");
    let sent = script.transmit();
    let shape: Vec<(u64, u32, bool)> =
        sent.iter().map(|segment| (segment.end(), segment.len, segment.fin)).collect();
    assert_eq!(shape, [(1000, 1000, false), (1501, 500, true)]);
}

#[test]
fn closing_ends_an_endless_supply_with_what_was_sent() {
    let mut script = Script::bulk(window_of(2));
    script.sends([0, 1]);
    script.sender.close();
    let last = script.at(100).ack(2).transmit();
    assert_eq!(
        last.iter().map(|segment| (segment.seq, segment.len, segment.fin)).collect::<Vec<_>>(),
        [(2000, 0, true)]
    );
    assert_eq!(script.sender.deadline(), ms(1100));
}
