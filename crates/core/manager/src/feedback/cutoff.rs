//! Ranks, and the cutoff among them: one number gives the level to which all flows of a path are lowered.
//!
//! Each flow has a rank from 0 to 15 by the owner's order. A cutoff of c lowers flows with ranks below c to their minima; of rank
//! floor(c) each has lost the fraction of c of the way from its reference to its minimum; all others keep their rates:
//!
//! ```text
//! limit(rank, c) = reference - clamp(c - rank, 0, 1) (reference - minimum)
//! ```
//!
//! Every host computes its flows' limits from the same number, so hosts need not agree on anything else, and a directive that
//! comes late or twice does no harm.
//!
//! Example: references of 8 and minima of 2 at ranks 0 and 1. At c = 1.5 rank 0 has 2, and rank 1 has 5.

use crate::resources::LoweringOrder;
use cutline_units::{Duration, Rate};

/// Number of ranks.
pub const RANKS: usize = 16;
const ONE: u32 = 1 << 16;

/// A cutoff, in 2^-16 ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cutoff(u32);

/// Load of all flows of a rank, bit/s.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RankLoad {
    /// Rate delivered.
    pub used: u64,
    /// Sum of minima.
    pub minimum: u64,
    /// Sum of references.
    pub reference: u64,
}

/// Loads by rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Loads(pub [RankLoad; RANKS]);

impl Cutoff {
    /// Nothing is lowered.
    pub const NONE: Self = Self(0);
    /// All flows are at their minima.
    pub const ALL: Self = Self(RANKS as u32 * ONE);

    /// The cutoff as a number on the wire.
    pub const fn to_bits(self) -> u32 {
        self.0
    }

    /// The cutoff from a number on the wire; `None` beyond all ranks.
    pub const fn from_bits(bits: u32) -> Option<Self> {
        if bits <= Self::ALL.0 { Some(Self(bits)) } else { None }
    }

    /// The cutoff in ranks.
    pub fn ranks(self) -> f64 {
        f64::from(self.0) / f64::from(ONE)
    }

    /// A cutoff of so many ranks, within the range.
    pub fn from_ranks(ranks: f64) -> Self {
        Self((ranks.clamp(0.0, RANKS as f64) * f64::from(ONE)).round() as u32)
    }

    /// The part of the way from reference to minimum that a rank has lost, 0 to 1.
    fn lost(self, rank: usize) -> f64 {
        (self.ranks() - rank as f64).clamp(0.0, 1.0)
    }

    /// The limit of a flow; `None` if its rank is not lowered.
    pub fn limit(self, rank: usize, minimum: Rate, reference: Rate) -> Option<Rate> {
        let lost = self.lost(rank);
        let span = reference.as_bps().saturating_sub(minimum.as_bps()) as f64;
        (lost > 0.0).then(|| Rate::from_bps(reference.as_bps() - (span * lost).round() as u64))
    }

    /// The limit of all flows together, bit/s.
    pub fn limit_of_all(self, loads: &Loads) -> f64 {
        loads.0.iter().enumerate().map(|(rank, load)| self.limit_of(rank, load)).sum()
    }

    fn limit_of(self, rank: usize, load: &RankLoad) -> f64 {
        load.reference as f64 - self.lost(rank) * load.span()
    }

    /// The smallest cutoff, not below this one, at which flows deliver at most `target` bit/s, if they do not send more than now.
    pub fn lowered_to(self, loads: &Loads, target: f64) -> Self {
        let load_at = |cutoff: Self| -> f64 {
            let rank_at =
                |(rank, load): (usize, &RankLoad)| (load.used as f64).min(cutoff.limit_of(rank, load));
            loads.0.iter().enumerate().map(rank_at).sum()
        };
        // The load falls with the cutoff: bisect it. 21 halvings reach the last bit.
        let (mut low, mut high) = (self.0, Self::ALL.0);
        while low < high {
            let middle = low.midpoint(high);
            if load_at(Self(middle)) <= target {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        Self(low)
    }

    /// The largest cutoff, not above this one, at which all flows together may send at least `target` bit/s;
    /// [`Cutoff::NONE`] if they may not.
    pub fn raised_to(self, loads: &Loads, target: f64) -> Self {
        let (mut low, mut high) = (0, self.0);
        while low < high {
            let middle = low.midpoint(high + 1);
            if Self(middle).limit_of_all(loads) >= target {
                low = middle;
            } else {
                high = middle - 1;
            }
        }
        Self(low)
    }
}

impl RankLoad {
    /// Adds another load of the rank.
    pub(super) const fn add(&mut self, other: Self) {
        self.used = self.used.saturating_add(other.used);
        self.minimum = self.minimum.saturating_add(other.minimum);
        self.reference = self.reference.saturating_add(other.reference);
    }

    fn span(&self) -> f64 {
        self.reference.saturating_sub(self.minimum) as f64
    }
}

impl Loads {
    /// Adds the loads of another host.
    pub fn add(&mut self, other: &Self) {
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            mine.add(*theirs);
        }
    }

    /// The rate delivered by all flows, bit/s.
    pub fn used(&self) -> f64 {
        self.0.iter().map(|load| load.used as f64).sum()
    }
}

/// The rank of a flow.
pub(super) fn rank(
    order: LoweringOrder,
    priority: u8,
    minimum: Rate,
    reference: Rate,
    age: Duration,
) -> usize {
    let last = RANKS - 1;
    match order {
        LoweringOrder::Priority => usize::from(priority).min(last),
        LoweringOrder::LargestSlack => {
            let kept = minimum.as_bps() as f64 / reference.as_bps().max(1) as f64;
            ((kept * RANKS as f64) as usize).min(last)
        }
        // The ages double from rank to rank, from 16 s.
        LoweringOrder::Newest => {
            let periods = age.as_nanos() / Duration::from_secs(16).as_nanos();
            ((u64::BITS - periods.leading_zeros()) as usize).min(last)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The example of the header.
    #[test]
    fn ranks_below_the_cutoff_are_at_their_minima() {
        let cutoff = Cutoff::from_ranks(1.5);
        let limit = |rank| cutoff.limit(rank, Rate::from_bps(2), Rate::from_bps(8)).map(Rate::as_bps);
        assert_eq!([0, 1, 2].map(limit), [Some(2), Some(5), None]);
        assert_eq!((Cutoff::ALL.ranks(), Cutoff::from_ranks(99.0)), (16.0, Cutoff::ALL));
    }

    #[test]
    fn ranks_follow_the_order() {
        let of = |order, priority, kept, seconds| {
            rank(order, priority, Rate::from_bps(kept), Rate::from_bps(100), Duration::from_secs(seconds))
        };
        assert_eq!([0, 7, 15].map(|priority| of(LoweringOrder::Priority, priority, 0, 0)), [0, 7, 15]);
        assert_eq!([0, 50, 99, 100].map(|kept| of(LoweringOrder::LargestSlack, 0, kept, 0)), [0, 8, 15, 15]);
        let ages = [0, 15, 16, 32, 64, 1_000_000];
        assert_eq!(ages.map(|seconds| of(LoweringOrder::Newest, 0, 0, seconds)), [0, 0, 1, 2, 3, 15]);
    }

    fn any_loads() -> impl Strategy<Value = Loads> {
        let load = (0_u64..1000, 0_u64..1000, 0_u64..1000).prop_map(|(used, minimum, span)| RankLoad {
            used: used.min(minimum + span) * 1000,
            minimum: minimum * 1000,
            reference: (minimum + span) * 1000,
        });
        prop::collection::vec(prop_oneof![Just(RankLoad::default()), load], RANKS)
            .prop_map(|loads| Loads(loads.try_into().unwrap()))
    }

    proptest! {
        #[test]
        fn a_target_is_reached_and_not_missed_by_more_than_a_bit(loads in any_loads(), share in 0.0..1.5_f64, from in 0.0..16.0_f64) {
            let from = Cutoff::from_ranks(from);
            let target = loads.used() * share;
            let lowered = from.lowered_to(&loads, target);
            prop_assert!(lowered >= from);
            let load_at = |cutoff: Cutoff| loads.0.iter().enumerate().map(|(rank, load)| (load.used as f64).min(cutoff.limit_of(rank, load))).sum::<f64>();
            prop_assert!(load_at(lowered) <= target || lowered == Cutoff::ALL);
            prop_assert!(lowered == from || load_at(Cutoff(lowered.0 - 1)) > target);
            let target = from.limit_of_all(&loads) * (1.0 + share);
            let raised = from.raised_to(&loads, target);
            prop_assert!(raised <= from);
            prop_assert!(raised.limit_of_all(&loads) >= target || raised == Cutoff::NONE);
        }
    }
}
