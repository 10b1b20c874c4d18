//! Timelines of a TCP sender: fast retransmit, fast recovery and SACK.

use cutline_transport::tcp::{Algorithm, FullAck, Halving, InitialWindow, Params, Variant};

use crate::script::Script;

fn newreno() -> Params {
    Params { initial_window: InitialWindow::Segments(10), limited_transmit: false, ..Params::default() }
}

fn sack() -> Params {
    Params { sack: true, limited_transmit: true, ..newreno() }
}

/// `NewReno` with a variant of ns-2 or of an RFC.
fn variant(variant: Variant) -> Params {
    Params { variant, ..newreno() }
}

/// A sender with segments 1 to 11 outstanding: 0 is acknowledged, cwnd is 11 segments.
fn eleven_outstanding(params: Params) -> Script {
    let mut script = Script::bulk(params);
    script.sends(0..10).at(100).ack(1).sends([10, 11]).cwnd(11_000);
    script
}

#[test]
fn the_third_duplicate_means_a_loss() {
    let mut script = eleven_outstanding(newreno());
    // RFC 5681 section 2: duplicates of the greatest acknowledgement while data is outstanding.
    script.at(110).dups(2).cwnd(11_000).sends([]);
    // RFC 5681 section 3.2, steps 2 and 3, and RFC 6582 section 3.2, step 2: half of eleven segments, plus the three that
    // have left the network.
    script.dup().ssthresh(5500).cwnd(8500).sends([1]);
    assert!(script.sender.in_recovery());
    assert_eq!(script.recoveries, 1);
    // RFC 5681 section 3.2, steps 4 and 5: one more for each duplicate; new segments when the window allows them.
    script.dups(3).cwnd(11_500).sends([]).dup().cwnd(12_500).sends([12]).dup().sends([13]);
    script.dups(2).cwnd(15_500).sends([14, 15]);
    // RFC 6582 section 3.2, step 3, full acknowledgement, option 1: min(5500, 4000 + 1000).
    script.at(210).ack(12).cwnd(5000).ssthresh(5500).sends([16]);
    assert!(!script.sender.in_recovery());
    assert_eq!(script.sender.stats().retransmissions, 1);
}

#[test]
fn the_window_after_recovery_may_be_ssthresh() {
    let mut script =
        eleven_outstanding(variant(Variant { full_ack: FullAck::Ssthresh, ..Variant::default() }));
    script.at(110).dups(3).sends([1]);
    // RFC 6582 section 3.2, step 3, full acknowledgement, option 2.
    script.at(210).ack(12).cwnd(5500).sends(12..17);
}

#[test]
fn a_partial_acknowledgement_retransmits_the_next_hole() {
    let mut script = eleven_outstanding(newreno());
    // 1 and 5 are lost: nine duplicates.
    script.at(110).dups(3).sends([1]).dups(6).cwnd(14_500).sends([12, 13, 14]);
    // RFC 6582 section 3.2, step 3: deflate by 4 segments, add one back, retransmit the next hole, then send what the
    // window allows.
    script.at(210).ack(5).cwnd(11_500).sends([5, 15]);
    assert!(script.sender.in_recovery());
    script.at(220).dups(4).cwnd(15_500).sends([16, 17, 18, 19]);
    script.at(310).ack(12).sends([]).cwnd(5500);
    assert!(!script.sender.in_recovery());
    assert_eq!(script.recoveries, 1);
}

#[test]
fn only_the_first_partial_acknowledgement_restarts_the_timer() {
    let mut script = eleven_outstanding(newreno());
    script.at(110).dups(3).sends([1]).deadline(1110);
    script.at(210).ack(3).sends([3]).deadline(1210);
    // RFC 6582 section 3.2, step 3: only the first one resets the timer ("Impatient" in RFC 3782 section 4).
    script.at(310).ack(6).sends([6]).deadline(1210);
    let mut steady = eleven_outstanding(Params { impatient: false, ..newreno() });
    steady.at(110).dups(3).sends([1]).at(210).ack(3).sends([3]);
    // Each one resets it ("Slow-but-Steady" in RFC 3782 section 4).
    steady.at(310).ack(6).sends([6]).deadline(1310);
}

#[test]
fn limited_transmit_sends_a_segment_for_each_of_two_duplicates() {
    let mut script = eleven_outstanding(Params { limited_transmit: true, ..newreno() });
    // RFC 3042 section 2: one new segment for each of the first two duplicates; cwnd does not change.
    script.at(110).dup().sends([12]).dup().sends([13]).cwnd(11_000);
    // RFC 5681 section 3.2, step 2: the flight size does not include what limited transmit sent.
    script.dup().ssthresh(5500).cwnd(8500).sends([1]);
}

#[test]
fn duplicates_at_or_below_recover_are_ignored() {
    let mut script = Script::bulk(newreno());
    script.sends(0..10).timeout_at(1000).sends([0]);
    script.at(1100).ack(1).sends([1, 2]);
    // RFC 6582 section 3.2, steps 2 and 4: the timeout has set recover to 10, and nothing beyond it is acknowledged.
    script.dups(5).cwnd(2000).sends([]);
    assert_eq!(script.recoveries, 0);
    script.at(1200).ack(10).sends([10, 11, 12]);
    // RFC 6582 section 3.2, step 2: recover itself is not more than recover.
    script.dups(5).sends([]).at(1300).ack(11).sends([13, 14]);
    // RFC 6582 section 3.2, step 2: now more than recover is acknowledged.
    script.dups(3).ssthresh(2000).cwnd(5000).sends([11, 15]);
    assert_eq!(script.recoveries, 1);
}

#[test]
fn the_ack_heuristic_accepts_duplicates_at_recover() {
    let mut script = eleven_outstanding(Params { ack_heuristic: true, ..newreno() });
    script.at(110).dups(3).sends([1]).dups(7).sends([12, 13, 14, 15]);
    script.at(210).ack(12).sends([16]);
    // RFC 6582 section 4.1: the last acknowledgement advanced by eleven segments, which is more than four.
    script.dups(3).sends([]);
    let mut script = eleven_outstanding(Params { ack_heuristic: true, ..newreno() });
    script.at(110).dups(3).sends([1]).dups(7).sends([12, 13, 14, 15]);
    script.at(200).ack(9).sends([9, 16]).at(210).ack(12).sends([]);
    // RFC 6582 section 4.1: it advanced by three.
    script.dups(3).sends([12]);
    assert_eq!(script.recoveries, 2);
}

#[test]
fn a_timeout_ends_recovery() {
    let mut script = eleven_outstanding(newreno());
    script.at(110).dups(3).sends([1]).cwnd(8500);
    // RFC 6582 section 3.2, step 4: recovery ends. RFC 5681 section 3.1: half of the eleven that are outstanding.
    // RFC 6298 section 5.4: the earliest segment is retransmitted.
    script.timeout_at(1110).cwnd(1000).ssthresh(5500).sends([1]);
    assert!(!script.sender.in_recovery());
    script.at(1210).ack(2).cwnd(2000).sends([2, 3]);
}

#[test]
fn ns_2_halves_the_window_again_at_a_timeout_in_recovery() {
    let halving =
        variant(Variant { halving: Halving::Window, full_ack: FullAck::Deflated, ..Variant::default() });
    let mut script = eleven_outstanding(halving);
    script.at(110).dups(3).ssthresh(5500).cwnd(8500).sends([1]);
    // Half of the 5500 without the inflation by duplicates, in whole segments; then half of the one segment, but at least
    // two.
    script.timeout_at(1110).cwnd(1000).ssthresh(2000).sends([1]);
    script.timeout_at(3110).cwnd(1000).ssthresh(2000).sends([1]);
}

#[test]
fn ns_2_truncates_the_threshold_to_whole_segments_but_not_the_window() {
    let halving =
        variant(Variant { halving: Halving::Window, full_ack: FullAck::Deflated, ..Variant::default() });
    let mut script = eleven_outstanding(halving);
    script.at(110).dups(3).ssthresh(5500).sends([1]);
    script.dups(8).sends([12, 13, 14, 15, 16]).cwnd(16_500);
    // After recovery the window is 5.5 segments, which is above the threshold of 5: congestion avoidance.
    script.at(210).ack(12).ssthresh(5000).cwnd(6500).sends([17]);
}

#[test]
fn the_limit_on_bursts_applies_to_each_acknowledgement_in_recovery() {
    let mut script = eleven_outstanding(variant(Variant { recovery_burst: Some(2), ..Variant::default() }));
    script.at(110).dups(3).sends([1]).dups(8).cwnd(16_500);
    // ns-2's `recov_maxburst_`: the window has room for five segments, one acknowledgement releases two.
    script.sends([12, 13]).dup().cwnd(17_500).sends([14, 15]);
    let mut script = eleven_outstanding(newreno());
    script.at(110).dups(3).sends([1]).dups(8).cwnd(16_500).sends(12..17);
}

#[test]
fn limited_transmit_always_responds_to_duplicates_after_a_timeout() {
    let always = Params {
        limited_transmit: true,
        variant: Variant { limited_transmit_always: true, ..Variant::default() },
        ..newreno()
    };
    let mut script = Script::bulk(always.clone());
    script.sends(0..10).timeout_at(1000).sends([0]);
    script.at(1100).ack(1).sends([1, 2]).dup().sends([3]).dup().sends([4]).dup().sends([]);
    // RFC 3042 section 2: only previously unsent data.
    let mut script = Script::bulk(Params {
        variant: Variant { limited_transmit_always: false, ..Variant::default() },
        ..always
    });
    script.sends(0..10).timeout_at(1000).sends([0]);
    script.at(1100).ack(1).sends([1, 2]).dups(3).sends([]);
}

#[test]
fn ns_2_keeps_the_window_that_partial_acknowledgements_have_deflated() {
    let mut script =
        eleven_outstanding(variant(Variant { full_ack: FullAck::Deflated, ..Variant::default() }));
    script.at(110).dups(3).sends([1]);
    // RFC 6582 section 3.2, step 3: 8500 - 9000 + 1000, and no less than a segment.
    script.at(210).ack(10).cwnd(1000).sends([10]);
    script.at(310).ack(12).cwnd(2000).ssthresh(5500).sends([12, 13]);
}

#[test]
fn sack_sends_lost_segments_before_new_ones() {
    let mut script = Script::bulk(sack());
    script.sends(0..10);
    // 0, 3 and 4 are lost. RFC 6675 section 5, step 3: a new segment for each that has left the network.
    script.at(100).sack(&[(1, 2)]).sends([10]).sack(&[(1, 3)]).sends([11]).cwnd(10_000);
    // RFC 6675 section 5, steps 4.1 to 4.4: the flight is ten without the two of step 3. The pipe has 3, 4, 6 to 11, and
    // the retransmission of 0.
    script.sack(&[(5, 6), (1, 3)]).ssthresh(5000).cwnd(5000).sends([0]);
    assert_eq!(script.sender.in_flight(), 9000);
    // RFC 6675 section 4, IsLost: three segments are SACKed above 3 and 4, so these leave the pipe.
    script.sack(&[(5, 7), (1, 3)]).sends([]).sack(&[(5, 8), (1, 3)]).sends([]);
    assert_eq!(script.sender.in_flight(), 5000);
    // RFC 6675 section 4, NextSeg, and RFC 6675 section 5, step C: lost segments by rule 1, then new ones by rule 2.
    script.sack(&[(5, 9), (1, 3)]).sends([3]).sack(&[(5, 10), (1, 3)]).sends([4]);
    script.sack(&[(5, 11), (1, 3)]).sends([12]).sack(&[(5, 12), (1, 3)]).sends([13]);
    // RFC 6675 section 5, step B: 0 has arrived; the pipe has 3, 4, 12 and 13.
    script.at(200).ack(3).sends([14]);
    // RFC 6675 section 5, step A: everything that was outstanding at the beginning is acknowledged.
    script.at(210).ack(12).cwnd(5000).sends([15, 16]);
    assert!(!script.sender.in_recovery());
    assert_eq!((script.sender.stats().retransmissions, script.sender.stats().timeouts), (3, 0));
}

#[test]
fn sacked_segments_count_in_the_receivers_window() {
    let mut script = Script::bulk(Params { max_window: Some(3), ..sack() });
    // RFC 5681 section 2: rwnd limits the sequence numbers, whatever the pipe contains.
    script.sends([0, 1, 2]).at(100).sack(&[(1, 3)]).sends([]).at(200).ack(3).sends([3, 4, 5]);
}

#[test]
fn sack_detects_a_loss_before_the_third_duplicate() {
    let mut script = Script::bulk(sack());
    script.sends(0..10);
    // RFC 6675 section 5, step 2: IsLost(0) by bytes with the first acknowledgement. Others were lost.
    script.at(100).sack(&[(1, 4)]).sends([0]).ssthresh(5000);
}

#[test]
fn sack_without_limited_transmit_releases_nothing_before_recovery() {
    let mut script = Script::bulk(Params { limited_transmit: false, ..sack() });
    script.sends(0..10);
    // RFC 6675 section 5, step 3, is optional.
    script.at(100).sack(&[(1, 2)]).sends([]).sack(&[(1, 3)]).sends([]);
    script.sack(&[(1, 4)]).ssthresh(5000).sends([0]);
}

#[test]
fn only_a_timeout_in_recovery_forbids_the_next_one() {
    // RFC 6675 section 5.1: there was no recovery when the timer expired.
    let mut script = Script::bulk(sack());
    script.sends(0..10).timeout_at(1000).sends([0]).at(1100).ack(1).sends([1, 2]);
    script.sack(&[(2, 5)]).sends([1]);
    assert!(script.sender.in_recovery());
    // There was one: none begins before everything that was outstanding is acknowledged, 12 segments.
    let mut script = Script::bulk(sack());
    script.sends(0..10).at(100).sack(&[(1, 2)]).sends([10]).sack(&[(1, 3)]).sends([11]);
    script.sack(&[(1, 4)]).sends([0]).timeout_at(1100).sends([0]);
    script.at(1200).ack(4).sends([4, 5]).sack(&[(5, 8)]);
    assert!(!script.sender.in_recovery());
    script.at(1300).ack(12);
    script.transmit();
    script.sack(&[(13, 16)]);
    assert!(script.sender.in_recovery(), "it is enough that `recover` is reached");
}

#[test]
fn sacked_segments_are_not_retransmitted_after_a_timeout() {
    let mut script = Script::bulk(sack());
    script.sends(0..10).at(100).sack(&[(3, 5)]).sends([10, 11]);
    // RFC 6675 section 5.1: the scoreboard is kept after the timeout.
    script.timeout_at(1000).sends([0]).at(1100).ack(1).sends([1, 2]);
    script.at(1200).ack(3).sends([5, 6, 7]);
}

#[test]
fn cubic_reduces_the_window_to_seven_tenths() {
    let mut script = eleven_outstanding(Params { algorithm: Algorithm::Cubic, ..newreno() });
    // RFC 9438 section 4.6: ssthresh = 0.7 * flight; fast recovery is that of NewReno.
    script.at(110).dups(3).ssthresh(7700).cwnd(10_700).sends([1]);
}
