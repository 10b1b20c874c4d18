//! Recent visitors of a table of flows: the flows of the last seconds.
//!
//! Two Bloom filters (Bloom 1970), of which one is written. Every [`GENERATION`] the older one is cleared and written from then on. So a
//! visitor is remembered for one to two generations, in memory of fixed size.

use cutline_units::{Duration, Instant, mix};

/// Time for which visitors are written into one filter.
const GENERATION: Duration = Duration::from_secs(2);

/// Number of bits for a visitor.
const PROBES: u32 = 4;
/// A filter with more bits set than this part of them is not believed. Otherwise, in a flood of flows that are seen once, many would be
/// taken for visitors of before; so that happens to at most one flow in 128.
const MOST: f64 = 0.25;

/// Recent visitors of cells: a Bloom filter in two generations (Bloom 1970).
#[derive(Clone, Debug)]
pub(super) struct Visitors {
    generations: [Box<[u64]>; 2],
    /// Bits that are set in each.
    set: [u64; 2],
    /// Index of the generation that is written.
    written: usize,
    /// End of the time in which the generation is written.
    until: Instant,
}

impl Visitors {
    /// Empty filters of `memory` bytes together.
    pub(super) fn new(memory: usize) -> Self {
        let words = (memory / 2 / size_of::<u64>()).max(1);
        let empty: Box<[u64]> = vec![0; words].into();
        let generations = [empty.clone(), empty];
        Self { generations, set: [0; 2], written: 0, until: Instant::ZERO }
    }

    /// Forgets all visitors.
    pub(super) fn clear(&mut self) {
        self.generations.iter_mut().for_each(|bits| bits.fill(0));
        self.set = [0; 2];
    }

    /// Remembers a flow by its hash, and answers whether it was remembered.
    pub(super) fn note(&mut self, now: Instant, hash: u64) -> bool {
        if now >= self.until {
            let late = now.saturating_since(self.until) >= GENERATION;
            self.written = 1 - self.written;
            self.generations[self.written].fill(0);
            self.set[self.written] = 0;
            if late {
                self.clear();
            }
            self.until = now.saturating_add(GENERATION);
        }
        // The table's place is in the upper bits and the fingerprint in the lower ones, so another round of mixing.
        let mut hash = mix(hash);
        let bits = self.generations[0].len() as u64 * 64;
        let mut is_in = [0, 1].map(|filter: usize| self.set[filter] as f64 <= MOST * bits as f64);
        for probe in 0..PROBES {
            let half = if probe % 2 == 0 { hash >> 32 } else { hash & 0xffff_ffff };
            let at = (half * bits) >> 32;
            let (word, bit) = ((at / 64) as usize, 1 << (at % 64));
            for (filter, is_in) in is_in.iter_mut().enumerate() {
                *is_in &= self.generations[filter][word] & bit != 0;
            }
            self.set[self.written] += u64::from(self.generations[self.written][word] & bit == 0);
            self.generations[self.written][word] |= bit;
            if probe % 2 == 1 {
                hash = mix(hash);
            }
        }
        is_in.contains(&true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The share of strangers, in the second of two generations, who are taken for visitors.
    fn taken(mut visitors: Visitors, strangers: u64) -> f64 {
        let mut taken = 0;
        for stranger in 0..2 * strangers {
            let now = Instant::ZERO + GENERATION.mul_f64(2.0 * stranger as f64 / (2 * strangers) as f64);
            taken += u64::from(visitors.note(now, mix(stranger)) && stranger >= strangers);
        }
        taken as f64 / strangers as f64
    }

    #[test]
    fn visitors_are_remembered_for_a_generation() {
        let mut visitors = Visitors::new(8192);
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        assert!(!visitors.note(at(100), 7) && visitors.note(at(1900), 7) && visitors.note(at(3800), 7));
        assert!(!visitors.note(at(10_000), 7), "too long ago");
    }

    #[test]
    fn a_flood_of_unknown_hosts_is_ignored() {
        for strangers in [1000, 3000, 10_000, 100_000] {
            let share = taken(Visitors::new(8192), strangers);
            assert!(share < 1.0 / 128.0, "{strangers}: {share}");
        }
    }
}
