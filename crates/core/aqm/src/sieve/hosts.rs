//! The share of each host, and how much of it each of its flows may send.
//!
//! The rule of the link's fair share (share.rs), again within each host. f is the fair share of a host. phi, at most f, is the rate that a flow
//! of the host may send, so that all flows of the host together, with at most phi each, send f:
//!
//! ```text
//! phi *= (f / sum of min(r, phi) over the host's flows)^gamma        every `update`; phi <= f
//! ```
//!
//! So a host that sends less than f has phi = f, and all its flows are below it. Of a host that sends more, those flows are above phi
//! whose part makes it too much. A host with ten transfers has phi = f / 10, and its call is below even that.
//!
//! A host may take a new flow for every packet, each of which is below any phi. So its flows that have just come share an allowance, as those of
//! unknown hosts do: an eighth of f (`newcomers`), or phi if that is more.
//!
//! The state of a host is a cell of the same table as that of flows (rates.rs), and 20 B for phi. The hosts have a quarter of the memory.

use super::rates::{Origin, Rates, Seen, TICK, ticks};
use super::share::Gains;
use cutline_units::{Duration, Instant, RandomStream};

/// One byte of the memory in so many is for hosts.
const HOSTS: u64 = 4;
/// The smallest phi, as a part of f.
const LEAST: f32 = 1.0 / (1 << 20) as f32;
/// Factor by which an update decreases the largest rate of a flow.
const FORGETTING: f32 = 0.8;

/// Share of a host's rate that each of its flows may use.
#[derive(Clone, Copy, Debug)]
struct Portion {
    /// phi / f.
    of_share: f32,
    /// Bytes that its flows have sent since `since`, at most phi from each.
    counted: f32,
    /// The largest recent rate of a flow, as a part of f.
    largest: f32,
    /// Time of the last update of phi, ticks.
    since: u32,
    /// Recent bytes of its new flows, as of the host's previous packet.
    fresh: f32,
}

impl Portion {
    /// Portion of a host whose flows may each send as much as the host.
    const WHOLE: Self = Self { of_share: 1.0, counted: 0.0, largest: 0.0, since: 0, fresh: 0.0 };
}

/// State of the host of a packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Host {
    pub(super) seen: Seen,
    /// phi / f.
    pub(super) part: f64,
}

/// All hosts.
#[derive(Clone, Debug)]
pub(super) struct Hosts {
    rates: Rates,
    parts: Box<[Portion]>,
    falling: f32,
    rising: f32,
    /// The time between updates, ticks.
    update: f32,
    /// tau, ticks.
    tau: f32,
}

impl Hosts {
    /// Returns the part of `memory` that is for hosts, B.
    pub(super) const fn memory_of(memory: u64) -> u64 {
        memory / HOSTS
    }

    /// A table of `memory` bytes.
    pub(super) fn new(
        memory: u64,
        tau: Duration,
        newcomer_age: Duration,
        gains: Gains,
        update: Duration,
    ) -> Self {
        let rates = Rates::of_cells(memory, size_of::<Portion>(), tau, newcomer_age);
        let parts = vec![Portion::WHOLE; rates.cells()].into();
        let update = (update.as_secs_f64() / TICK) as f32;
        Self {
            rates,
            parts,
            falling: gains.falling as f32,
            rising: gains.rising as f32,
            update,
            tau: (tau.as_secs_f64() / TICK) as f32,
        }
    }

    /// Forgets every host.
    pub(super) fn reset(&mut self) {
        self.rates.reset();
        self.parts.fill(Portion::WHOLE);
    }

    /// Counts a packet of `host`, whose surcharge falls by `falling` a second, where f is `share`, B/s.
    #[inline]
    pub(super) fn count(
        &mut self,
        now: Instant,
        host: u32,
        size: u32,
        (falling, share): (f64, f64),
        random: &mut RandomStream,
    ) -> Host {
        let seen = self.rates.count(now, host, size, None, falling, random);
        let place = seen.place();
        match seen.origin() {
            Origin::Here => {}
            Origin::Nowhere => self.parts[place] = Portion { since: ticks(now), ..Portion::WHOLE },
            Origin::Moved(before) => self.parts[place] = self.parts[before],
        }
        let part = &mut self.parts[place];
        if part.fresh > 0.0 {
            let silent = ticks(now).wrapping_sub(seen.came()) as f32;
            part.fresh *= (-silent / self.tau).exp();
        }
        let elapsed = ticks(now).wrapping_sub(part.since) as f32;
        if elapsed >= self.update {
            let ratio = share as f32 * elapsed * TICK as f32 / part.counted.max(1.0);
            if ratio < 1.0 {
                part.of_share = part.of_share.min(part.largest);
            }
            if ratio < 1.0 || part.of_share < 1.0 {
                let gain = if ratio < 1.0 { self.falling } else { self.rising };
                let exponent = (gain * elapsed / self.update).min(1.0);
                part.of_share = (part.of_share * ratio.powf(exponent)).clamp(LEAST, 1.0);
            }
            part.largest *= FORGETTING;
            (part.counted, part.since) = (0.0, ticks(now));
        }
        Host { seen, part: part.of_share.into() }
    }

    /// Counts the packet of a flow that sends x times phi.
    #[inline]
    pub(super) fn count_flow(&mut self, host: &Host, size: u32, x: f64) {
        let part = &mut self.parts[host.seen.place()];
        part.counted += size as f32 / x.max(1.0) as f32;
        part.largest = part.largest.max(x as f32 * part.of_share);
    }

    /// Counts the packet of a flow that is new, and returns the recent bytes of all new flows of the host.
    #[inline]
    pub(super) fn count_fresh(&mut self, host: &Host, size: u32) -> f64 {
        let part = &mut self.parts[host.seen.place()];
        part.fresh += size as f32;
        part.fresh.into()
    }

    /// Adds to the surcharge of a host, as a logarithm.
    #[inline]
    pub(super) fn charge(&mut self, now: Instant, host: &Host, logarithm: f64) {
        self.rates.charge(now, &host.seen, logarithm);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutline_units::Streams;

    const TAU: Duration = Duration::from_millis(250);
    const GAINS: Gains = Gains { eta: 0.95, falling: 0.2, rising: 0.05 };

    fn hosts() -> (Hosts, RandomStream) {
        let (age, update) = (Duration::from_millis(200), Duration::from_millis(50));
        (Hosts::new(16_384, TAU, age, GAINS, update), Streams::new(1).stream("queue", "drop"))
    }

    /// phi / f of a host with flows of these rates, as parts of f = 1 MB/s, after so many seconds.
    fn part_of(
        hosts: &mut Hosts,
        random: &mut RandomStream,
        rates: &[f64],
        seconds: std::ops::Range<u64>,
    ) -> f64 {
        let mut part = 1.0;
        for ms in seconds.start * 1000..seconds.end * 1000 {
            for rate in rates {
                let host = hosts.count(
                    Instant::ZERO + Duration::from_millis(ms),
                    7,
                    (rate * 1000.0) as u32,
                    (0.0, 1e6),
                    random,
                );
                part = host.part;
                hosts.count_flow(&host, (rate * 1000.0) as u32, rate / part);
            }
        }
        part
    }

    #[test]
    fn the_flows_of_a_host_share_what_it_may_send() {
        let (mut hosts, mut random) = hosts();
        // Below f together: each may send as much as the host.
        assert_eq!(part_of(&mut hosts, &mut random, &[0.3, 0.6], 0..10), 1.0);
        // 0.1 + 0.1 + 2 phi = 1.
        let part = part_of(&mut hosts, &mut random, &[0.1, 0.1, 0.6, 3.0], 10..30);
        assert!((part - 0.4).abs() < 0.01, "{part}");
        // And back.
        assert_eq!(part_of(&mut hosts, &mut random, &[0.3, 0.6], 30..60), 1.0);
    }

    #[test]
    fn what_a_host_may_send_moves_with_it() {
        let (mut hosts, mut random) = hosts();
        // 130 s: two changes of the salt.
        for end in 10..130 {
            let part = part_of(&mut hosts, &mut random, &[0.5; 4], end..end + 1);
            assert!(end < 20 || (part - 0.25).abs() < 0.01, "{end}: {part}");
        }
    }
}
