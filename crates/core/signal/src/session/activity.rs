//! Counters of changes in a connection's MIB.

/// Counters of both directions of a session. They cost less than its [`Mib`](crate::mib::Mib).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Activity {
    /// Messages that this end has sent, and those that it has received.
    pub messages: u64,
    /// Messages lost in both directions, as far as this end knows.
    pub lost: u64,
    /// Number of violations since the beginning, of all measures of both directions.
    pub violations: u64,
    /// True while a violation is under way.
    pub is_violated: bool,
}
