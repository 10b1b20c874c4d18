//! What the scenarios of this study have in common: queues and round-trip times.

/// The queues: their names in the scenarios and in charts.
pub(super) const QUEUES: [(&str, &str); 4] = [
    ("long-drop", "107 ms, drops"),
    ("long-mark", "107 ms, ECN"),
    ("short-drop", "20 ms, drops"),
    ("short-mark", "20 ms, ECN"),
];

/// The round-trip times without queues, ms. The name of a group of flows is KIND-MILLISECONDS.
pub(super) const ROUND_TRIPS: [u16; 4] = [10, 40, 100, 200];
