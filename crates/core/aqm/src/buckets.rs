//! Flows by hash: which of a number of buckets a packet belongs to.
//!
//! Source: RFC 8290 section 4.1.1. A perturbation, drawn when the first packet arrives, makes collisions differ from
//! run to run.

use cutline_units::{RandomStream, mix};

/// A perturbed hash.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FlowHash {
    buckets: u32,
    perturbation: Option<u64>,
}

impl FlowHash {
    pub(crate) const fn new(buckets: u32) -> Self {
        Self { buckets, perturbation: None }
    }

    /// Forgets the perturbation.
    pub(crate) const fn reset(&mut self) {
        self.perturbation = None;
    }

    /// The bucket of a flow.
    #[inline]
    pub(crate) fn bucket(&mut self, flow: u32, random: &mut RandomStream) -> usize {
        let perturbation =
            *self.perturbation.get_or_insert_with(|| (random.uniform() * (1_u64 << 53) as f64) as u64);
        let hash = mix(u64::from(flow) ^ perturbation) >> 32;
        ((hash * u64::from(self.buckets)) >> 32) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutline_units::Streams;

    #[test]
    fn buckets_fill_evenly_and_otherwise_in_another_run() {
        let spread = |seed| {
            let mut random = Streams::new(seed).stream("queue", "drop");
            let mut hash = FlowHash::new(64);
            (0..6400).map(|flow| hash.bucket(flow, &mut random)).collect::<Vec<_>>()
        };
        let (one, other) = (spread(1), spread(2));
        let mut counts = [0; 64];
        for &bucket in &one {
            counts[bucket] += 1;
        }
        // 100 each; the standard deviation is 10.
        assert!(counts.iter().all(|n| (50..150).contains(n)), "{counts:?}");
        let same = one.iter().zip(&other).filter(|(a, b)| a == b).count();
        assert!(same < 200, "{same} of 6400 flows are where they were");
    }
}
