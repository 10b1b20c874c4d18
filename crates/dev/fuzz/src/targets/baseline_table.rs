//! The table of `cutline baseline`: `cutline_baseline::parse`.
//!
//! - An accepted table reads back the same after it was written.
//! - The translators conclude something, or nothing, from every accepted table; a margin is of a measured ratio.

use cutline_translate::Protocol;
use cutline_units::Rate;

pub fn parse(bytes: &[u8]) -> bool {
    let Ok(Ok(document)) = str::from_utf8(bytes).map(cutline_baseline::parse) else { return false };
    let text = serde_json::to_string(&document).expect("what was read can be written");
    assert_eq!(cutline_baseline::parse(&text).as_ref(), Ok(&document), "round trip");
    let baseline = document.baseline();
    for protocol in [Protocol::Tcp, Protocol::Udp] {
        let _most = baseline.ceiling(protocol);
        for load in [0, 1, 1_000_000, u64::MAX].map(Rate::from_bps) {
            if let Some(margin) = baseline.margin(protocol, load) {
                let is_of = |ratio: Option<f64>| ratio == Some(margin.ratio);
                assert!(baseline.points.iter().any(|point| is_of(point.requested)), "{margin:?}");
            }
        }
    }
    true
}
