//! Control messages of other programs: `cutline_marking::control::remark`.
//!
//! - The length stays, and so does everything but a few bytes for each mark that is found.
//! - A second pass finds the same marks and changes nothing.
//! - Without a code point nothing changes.

use cutline_marking::MarkSettings;
use cutline_marking::control::remark;
use cutline_units::Dscp;

/// The header of a control message, bytes.
const HEADER: usize = size_of::<usize>() + 8;

pub fn parse(bytes: &[u8]) -> bool {
    let marks = MarkSettings { dscp: Dscp::new(23), ..MarkSettings::default() };
    let mut once = bytes.to_vec();
    let found = remark(&mut once, &marks);
    assert_eq!(once.len(), bytes.len());
    assert!(found * HEADER <= bytes.len(), "each mark has a header");
    let changed = once.iter().zip(bytes).filter(|(after, before)| after != before).count();
    assert!(changed <= 4 * found, "{changed} bytes changed for {found} marks");
    let mut twice = once.clone();
    assert_eq!((remark(&mut twice, &marks), &twice), (found, &once));
    let mut unmarked = bytes.to_vec();
    remark(&mut unmarked, &MarkSettings::default());
    assert_eq!(unmarked, bytes, "nothing is requested");
    found > 0
}
