//! Replies of a router, and the doctor's reading of them: `cutline_router_service::Reply` and
//! `cutline_doctor::load`.
//!
//! An input is lines. Each is a reply, and two documents that follow each other are an interval of the doctor's.
//!
//! - Replies read back the same after they were written, and each is one line.
//! - Whatever numbers a document has, sums and differences of them can be made.

use cutline_doctor::load;
use cutline_router::Overhead;
use cutline_router_service::{DirectionStatistics, RouterReply, Statistics};

pub fn parse(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    let replies: Vec<RouterReply> = text.lines().filter_map(|line| RouterReply::parse(line).ok()).collect();
    let documents: Vec<&Statistics> = replies.iter().filter_map(|reply| reply.statistics.as_ref()).collect();
    for document in &documents {
        let line = document.json();
        assert!(!line.contains('\n'), "{line}");
        let again = Statistics::parse(&line).expect("what we write can be read");
        assert_eq!(again.json(), line, "the same again");
        let _shown = [document.forward.dropped_packets(), document.reverse.dropped_packets()];
    }
    for pair in documents.windows(2) {
        let seconds = pair[1].elapsed_s - pair[0].elapsed_s;
        check_load(&pair[0].forward, &pair[1].forward, seconds);
        check_load(&pair[0].reverse, &pair[1].reverse, seconds);
    }
    !replies.is_empty()
}

fn check_load(before: &DirectionStatistics, after: &DirectionStatistics, seconds: f64) {
    for overhead in Overhead::NAMED {
        let load = load(before, after, seconds, overhead, 16);
        assert!(load.utilisation >= 0.0, "{load:?}");
    }
}
