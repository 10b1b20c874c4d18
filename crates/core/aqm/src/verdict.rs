//! Decision on an arrival: pass, mark, or drop with a reason. The queue draws it, and its caller acts.

/// Reason for dropping a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DropReason {
    /// The AQM's probability, or TSQ's p', came up.
    Early,
    /// The queue was at its limit.
    Overflow,
}

/// The decision on an arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The packet is stored.
    Pass,
    /// The packet is stored, and the caller sets CE in it (RFC 3168 section 5).
    Mark,
    /// The packet is not stored and remains the caller's.
    Drop(DropReason),
}

impl DropReason {
    /// Every reason, in the order of the counters.
    pub const ALL: [Self; 2] = [Self::Early, Self::Overflow];

    /// The reason's name, as counters and results spell it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Early => "early",
            Self::Overflow => "overflow",
        }
    }
}

impl Verdict {
    /// The verdict for a packet that is hit or not: a hit marks if the packet may be marked, and drops it otherwise.
    #[inline]
    pub(crate) const fn from_hit(hit: bool, may_mark: bool) -> Self {
        match (hit, may_mark) {
            (false, _) => Self::Pass,
            (true, true) => Self::Mark,
            (true, false) => Self::Drop(DropReason::Early),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_hit_on_a_markable_packet_marks() {
        assert_eq!(Verdict::from_hit(false, true), Verdict::Pass);
        assert_eq!(Verdict::from_hit(true, true), Verdict::Mark);
        assert_eq!(Verdict::from_hit(true, false), Verdict::Drop(DropReason::Early));
    }
}
