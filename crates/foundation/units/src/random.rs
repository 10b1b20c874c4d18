//! Random streams: one per entity and purpose, derived from the run's seed and the entity's name.
//!
//! Because a stream depends on its name alone, adding a flow to a scenario changes no other flow's draws. The
//! generator is xoshiro256++ (Blackman and Vigna 2021), whose output is fixed forever by its definition.

use crate::Probability;
use rand_core::{Rng, SeedableRng, TryRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::convert::Infallible;

/// The family of random streams of one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Streams {
    seed: u64,
}

/// One stream of random numbers; implements `rand_core::Rng`, so that `rand_distr` draws from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RandomStream(Xoshiro256PlusPlus);

impl Streams {
    /// The family of a run's seed.
    pub const fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// The run's seed.
    pub const fn seed(self) -> u64 {
        self.seed
    }

    /// The stream of `entity` (such as `audio.3`) for `purpose` (such as `start`).
    pub fn stream(self, entity: &str, purpose: &str) -> RandomStream {
        // The separator cannot occur in UTF-8, so ("ab", "c") and ("a", "bc") differ.
        let bytes = entity.bytes().chain([0xff]).chain(purpose.bytes());
        let name = bytes.fold(FNV_OFFSET, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(FNV_PRIME));
        RandomStream(Xoshiro256PlusPlus::seed_from_u64(mix_seed(self.seed) ^ name))
    }
}

impl RandomStream {
    /// A number drawn uniformly from 0..1 (never 1), with 53 random bits.
    #[inline]
    pub fn uniform(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// True with probability `p`. Draws nothing when `p` is 0 or 1.
    #[inline]
    pub fn chance(&mut self, p: Probability) -> bool {
        let p = p.get();
        p > 0.0 && (p >= 1.0 || self.uniform() < p)
    }
}

impl TryRng for RandomStream {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok(self.0.next_u32())
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(self.0.next_u64())
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        self.0.fill_bytes(bytes);
        Ok(())
    }
}

/// 64-bit FNV-1a (Fowler, Noll and Vo).
const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0000_0100_0000_01b3;

/// A step of `SplitMix64` (Steele, Lea and Flood 2014): seeds 1, 2, 3 share no bits after it.
fn mix_seed(seed: u64) -> u64 {
    mix(seed.wrapping_add(0x9e37_79b9_7f4a_7c15))
}

/// The finaliser of `SplitMix64` (Steele, Lea and Flood 2014): each bit of `z` changes about half of the bits.
#[inline]
pub const fn mix(z: u64) -> u64 {
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_depends_on_seed_entity_and_purpose_alone() {
        let first = |seed, entity, purpose| Streams::new(seed).stream(entity, purpose).uniform();
        assert_eq!(first(1, "audio.3", "start"), first(1, "audio.3", "start"));
        assert_ne!(first(1, "audio.3", "start"), first(2, "audio.3", "start"));
        assert_ne!(first(1, "audio.3", "start"), first(1, "audio.4", "start"));
        assert_ne!(first(1, "ab", "c"), first(1, "a", "bc"));
    }

    #[test]
    fn the_numbers_are_fixed_for_ever() {
        let mut stream = Streams::new(1).stream("audio.3", "start");
        let drawn: Vec<u64> = (0..3).map(|_| stream.next_u64()).collect();
        assert_eq!(drawn, GOLDEN, "the golden results of every experiment depend on these");
    }

    const GOLDEN: [u64; 3] =
        [15_743_454_162_906_774_750, 9_741_684_019_930_210_465, 2_960_815_904_817_249_729];

    #[test]
    fn uniform_is_uniform() {
        let mut stream = Streams::new(7).stream("queue", "drop");
        let n = 100_000;
        let mean = (0..n).map(|_| stream.uniform()).sum::<f64>() / f64::from(n);
        // Standard error 0.00091: five of them.
        assert!((mean - 0.5).abs() < 0.005, "{mean}");
    }

    #[test]
    fn certain_events_draw_nothing() {
        let mut stream = Streams::new(7).stream("queue", "drop");
        let untouched = stream.clone();
        assert!(stream.chance(Probability::ONE) && !stream.chance(Probability::ZERO));
        assert_eq!(stream, untouched);
    }
}
