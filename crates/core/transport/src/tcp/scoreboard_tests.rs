use super::*;

const MSS: u64 = 1000;

/// A scoreboard on which these segments are `SACKed`, with nothing acknowledged.
fn board(ranges: &[(u64, u64)]) -> Scoreboard {
    let mut board = Scoreboard::default();
    for chunk in ranges.chunks(3) {
        let bytes = chunk.iter().map(|range| (range.0 * MSS, range.1 * MSS));
        board.update(0, 0, SackBlocks::from_ranges(0, bytes), MSS);
    }
    board
}

fn segment(resend: Option<Resend>) -> Option<u64> {
    resend.map(|resend| resend.seq / MSS)
}

#[test]
fn ranges_are_joined_and_cut() {
    let mut joined = board(&[(5, 6), (8, 9), (6, 8)]);
    assert_eq!(joined.ranges, [(5000, 9000)]);
    joined.update(7000, 7000, SackBlocks::from_ranges(7000, [(12_000, 13_000)]), MSS);
    assert_eq!((joined.sacked_below(8000), joined.sacked_below(20_000)), (3000, 5000));
    joined.update(9000, 9000, SackBlocks::NONE, MSS);
    assert_eq!(joined.ranges, [(12_000, 13_000)]);
}

#[test]
fn three_ranges_or_more_than_two_segments_mean_a_loss() {
    // RFC 6675 section 4, IsLost: more than two segments above, or three ranges.
    assert!(!board(&[(2, 4)]).is_lost(1000));
    assert!(board(&[(2, 5)]).is_lost(1000));
    assert!(!board(&[(2, 3), (4, 5)]).is_lost(1000));
    let three = board(&[(2, 3), (4, 5), (6, 7)]);
    assert!(three.is_lost(1000) && !three.is_lost(3000) && !three.is_lost(5000));
    let bytes = board(&[(2, 3), (4, 5), (6, 8)]);
    assert!(bytes.is_lost(3000) && !bytes.is_lost(5000));
}

#[test]
fn the_pipe_excludes_lost_segments_and_includes_retransmissions() {
    let mut board = board(&[(2, 5), (7, 8)]);
    board.begin_recovery(0);
    // RFC 6675 section 4, SetPipe: 0 and 1 are lost; 5, 6, 8 and 9 are not known to be.
    board.set_pipe(0, 10 * MSS);
    assert_eq!(board.pipe(), 4000);
    board.retransmitted(MSS, MSS);
    board.set_pipe(0, 10 * MSS);
    assert_eq!(board.pipe(), 5000);
}

#[test]
fn next_seg_follows_its_rules_in_order() {
    let mut board = board(&[(2, 5), (7, 8)]);
    board.begin_recovery(0);
    // RFC 6675 section 4, rule 1 of NextSeg: the first lost segment that was not retransmitted.
    assert_eq!(segment(board.lost_segment(0, MSS)), Some(0));
    board.retransmitted(MSS, MSS);
    assert_eq!(segment(board.lost_segment(0, MSS)), Some(1));
    board.retransmitted(2 * MSS, MSS);
    assert_eq!(board.lost_segment(0, MSS), None);
    // RFC 6675 section 4, rule 3 of NextSeg: below the highest SACKed one, not known to be lost.
    assert_eq!(segment(board.unsacked_segment(0, MSS)), Some(5));
    board.retransmitted(7 * MSS, 2 * MSS);
    assert_eq!(board.unsacked_segment(0, MSS), None);
    // RFC 6675 section 4, rule 4 of NextSeg: the last outstanding one, once.
    assert_eq!(segment(board.rescue_segment(0, 10 * MSS, 10 * MSS, MSS)), Some(9));
    assert_eq!(board.rescue_segment(0, 10 * MSS, 10 * MSS, MSS), None);
}

#[test]
fn a_rescue_retransmits_the_highest_segment_that_is_not_sacked() {
    let mut board = board(&[(2, 5), (7, 10)]);
    board.begin_recovery(0);
    // RFC 6675 section 4, rule 4 of NextSeg: 7, 8 and 9 are SACKed.
    assert_eq!(segment(board.rescue_segment(0, 10 * MSS, 10 * MSS, MSS)), Some(6));
    let mut all = Scoreboard::default();
    all.update(0, 0, SackBlocks::from_ranges(0, [(1, 10_000)]), MSS);
    assert_eq!(all.rescue_segment(1, 10_000, 10_000, MSS), None);
}

#[test]
fn a_hole_smaller_than_a_segment_is_retransmitted_alone() {
    let mut board = Scoreboard::default();
    board.update(0, 0, SackBlocks::from_ranges(0, [(300, 5000)]), MSS);
    assert_eq!(board.lost_segment(0, MSS), Some(Resend { seq: 0, len: 300 }));
    assert_eq!(board.hole_from(0), (0, 300));
    assert_eq!(board.hole_from(300), (5000, u64::MAX));
}
