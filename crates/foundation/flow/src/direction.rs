//! Direction of traffic at an end.

/// A direction of a connection's traffic, as one of its ends sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// Traffic that this end sends.
    Send,
    /// Traffic that this end receives.
    Receive,
}
