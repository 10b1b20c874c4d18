//! Queue protection: finds the flows that build a shared queue of low delay.

use cutline_params::Parameters;
use cutline_units::{Duration, Instant, RandomStream, mix};

/// The queuing score at which a bucket is full (RFC 9957 section 4.2, `MAX_QLSCORE`). It bounds how long a flow pays for
/// the past.
const LARGEST_SCORE: Duration = Duration::from_secs(5);
const SOURCE: &str = "RFC 9957 section 4.1";

/// Parameters of queue protection.
#[derive(Clone, Copy, Debug, PartialEq, Parameters)]
pub struct QueueProtectionParams {
    /// Delay of the queue up to which no packet is redirected. The delay at which all packets are marked counts if it is
    /// longer.
    #[param(
        default = Duration::from_millis(1),
        range = (Duration::ZERO, Duration::from_secs(10)),
        source = "RFC 9957 section 4.1: CRITICALqL_us"
    )]
    pub critical_delay: Duration,
    /// Queuing score of a flow beyond which its packets are redirected at the critical delay; at twice the delay half of
    /// it is enough.
    #[param(
        default = Duration::from_millis(4),
        range = (Duration::ZERO, Duration::from_secs(5)),
        source = "RFC 9957 section 4.1: CRITICALqLSCORE_us"
    )]
    pub critical_score: Duration,
    /// Rate of congestion that a flow may cause without a score: its bytes, each times the probability of a mark.
    #[param(
        default = 524_288,
        range = (1, 1_000_000_000),
        unit = "B/s",
        source = "RFC 9957 section 4.1: 2^LG_AGING, 2^19"
    )]
    pub aging: u64,
    /// Number of buckets for flows. Flows without a bucket of their own share another one.
    #[param(default = 32, range = (1, 16_384), source = "RFC 9957 section 4.1: 2^BI_SIZE, 2^5")]
    pub buckets: u64,
    /// Number of buckets that a flow may have, of which it takes the first that is free.
    #[param(default = 2, range = (1, 4), source = SOURCE)]
    pub attempts: u64,
}

/// Queuing score of the flow that has used a bucket last.
#[derive(Clone, Copy, Debug, Default)]
struct Bucket {
    flow: u32,
    /// The time at which the score has aged to zero. The score is the time until then.
    expires: Instant,
}

/// Scores of flows, in a fixed number of buckets.
#[derive(Clone, Debug)]
pub(super) struct QueueProtection {
    params: QueueProtectionParams,
    /// The flows' buckets, and at the end the one for all flows without a bucket of their own.
    buckets: Vec<Bucket>,
    /// Salt of the hash, from the first packet on.
    salt: Option<u64>,
}

impl QueueProtection {
    pub(super) fn new(params: QueueProtectionParams) -> Self {
        let buckets = vec![Bucket::default(); params.buckets as usize + 1];
        Self { params, buckets, salt: None }
    }

    /// Adds the packet to its flow's score, and returns whether it is to be redirected. `delay` is the queue's delay, and
    /// `likelihood` the probability with which the queue's own ramp marks a packet at this delay.
    pub(super) fn redirects(
        &mut self,
        now: Instant,
        (flow, size): (u32, u32),
        (delay, longest_ramp): (Duration, Duration),
        likelihood: f64,
        random: &mut RandomStream,
    ) -> bool {
        let bucket = self.pick(now, flow, random);
        let score = self.fill(bucket, now, likelihood * f64::from(size));
        let (critical_delay, critical_score) =
            (self.params.critical_delay.max(longest_ramp), self.params.critical_score);
        let product =
            |delay: Duration, score: Duration| u128::from(delay.as_nanos()) * u128::from(score.as_nanos());
        delay > critical_delay && product(delay, score) > product(critical_delay, critical_score)
    }

    /// Returns the flow's bucket, or takes the first of its places that is free, or the shared one.
    fn pick(&mut self, now: Instant, flow: u32, random: &mut RandomStream) -> usize {
        let salt = *self.salt.get_or_insert_with(|| (random.uniform() * (1_u64 << 53) as f64) as u64);
        let (hash, count) = (mix(u64::from(flow) ^ salt), self.params.buckets);
        let mut free = None;
        for attempt in 0..self.params.attempts {
            let place = ((((hash >> (16 * attempt)) & 0xffff) * count) >> 16) as usize;
            let bucket = &mut self.buckets[place];
            if bucket.flow == flow {
                bucket.expires = bucket.expires.max(now);
                return place;
            }
            if free.is_none() && bucket.expires <= now {
                free = Some(place);
            }
        }
        let place = free.unwrap_or(self.buckets.len() - 1);
        let bucket = &mut self.buckets[place];
        *bucket = Bucket { flow, expires: bucket.expires.max(now) };
        place
    }

    /// Adds bytes of congestion to a bucket, and returns its score.
    fn fill(&mut self, bucket: usize, now: Instant, congested_bytes: f64) -> Duration {
        let bucket = &mut self.buckets[bucket];
        let added = Duration::from_secs_f64(congested_bytes / self.params.aging as f64);
        let score = bucket.expires.saturating_since(now) + added;
        let score = score.min(LARGEST_SCORE);
        bucket.expires = now + score;
        score
    }

    /// Forgets all flows.
    pub(super) fn reset(&mut self) {
        self.buckets.fill(Bucket::default());
        self.salt = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutline_units::Streams;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + MS(ms)
    }

    fn random() -> RandomStream {
        Streams::new(1).stream("queue", "drop")
    }

    #[test]
    fn a_score_grows_with_congestion_and_ages() {
        // 1500 B with a likelihood of 0.5 are 750 B of congestion: 750 / 2^19 s.
        let mut protection = QueueProtection::new(QueueProtectionParams::default());
        let one = Duration::from_secs_f64(750.0 / 524_288.0);
        assert_eq!(one.as_nanos(), 1_430_511);
        let bucket = protection.pick(at(1000), 7, &mut random());
        assert_eq!(protection.fill(bucket, at(1000), 750.0), one);
        assert_eq!(protection.fill(bucket, at(1000), 750.0), one + one);
        assert_eq!(protection.fill(bucket, at(1001), 0.0), one + one - MS(1));
        assert_eq!(protection.pick(at(1001), 7, &mut random()), bucket);
        assert_eq!(protection.fill(bucket, at(2000), 0.0), Duration::ZERO);
        assert_eq!(protection.fill(bucket, at(2000), 1e12), LARGEST_SCORE);
    }

    #[test]
    fn a_packet_is_redirected_when_delay_times_score_is_critical() {
        let redirected = |delay_us: u64, likelihood: f64, longest_ramp: Duration| {
            let mut protection = QueueProtection::new(QueueProtectionParams::default());
            let delay = (Duration::from_micros(delay_us), longest_ramp);
            protection.redirects(at(1000), (7, 1500), delay, likelihood, &mut random())
        };
        // A packet with a likelihood of 1 scores 2.86 ms: 2.86 x 1.4 > 4 x 1.
        let short = Duration::ZERO;
        assert!(redirected(1400, 1.0, short) && !redirected(1398, 1.0, short));
        assert!(!redirected(1400, 0.9, short) && redirected(1600, 0.9, short));
        // Up to the critical delay nothing is redirected; a longer ramp counts for it.
        assert!(
            !redirected(1400, 1.0, MS(2)) && !redirected(2796, 1.0, MS(2)) && redirected(2800, 1.0, MS(2))
        );
    }

    #[test]
    fn flows_have_their_own_buckets_until_there_are_more_flows_than_buckets() {
        let params = QueueProtectionParams { buckets: 4, ..QueueProtectionParams::default() };
        let mut protection = QueueProtection::new(params);
        let mut random = random();
        let mut places = Vec::new();
        for flow in 1..=100 {
            let bucket = protection.pick(at(1000), flow, &mut random);
            protection.fill(bucket, at(1000), 1500.0);
            places.push(bucket);
        }
        let own = places.iter().filter(|place| **place < 4).count();
        assert_eq!(own, 4, "each bucket has one flow as long as it has a score");
        // The shared bucket has the congestion of the 96 others: 96 x 1500 / 2^19 s.
        let shared = protection.fill(4, at(1000), 0.0);
        assert_eq!(shared.as_nanos() / 1000, 274_658);
        // When the scores have aged, a bucket is free for another flow.
        assert!(protection.pick(at(9000), 101, &mut random) < 4);
    }
}
