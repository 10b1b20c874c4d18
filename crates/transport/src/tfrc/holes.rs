//! Which packets are lost (RFC 5348 5.1): those that are missing when three with higher numbers have arrived.
//!
//! A lost packet's arrival time is interpolated between its neighbours (5.2):
//! `T_loss = T_before + (T_after - T_before) (S_loss - S_before) / (S_after - S_before)`.
//!
//! A packet that arrives after it was declared lost counts as a duplicate and changes nothing any more (5.1
//! allows to recompute the history, and does not ask for it).

use cutline_units::Instant;

/// Later packets that make a missing one lost: NDUPACK.
const NDUPACK: u8 = 3;

/// Numbers that have not arrived, between two that have.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hole {
    first: u64,
    /// The number after the last missing.
    end: u64,
    before: (u64, Instant),
    after: (u64, Instant),
    /// Packets with higher numbers that have arrived.
    later: u8,
}

/// What has arrived, as far as it takes to tell what is lost.
#[derive(Clone, Debug, Default)]
pub(super) struct Arrivals {
    /// The highest number and when it came; none before the first packet.
    highest: Option<(u64, Instant)>,
    holes: Vec<Hole>,
}

/// What an arrival is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    New,
    Duplicate,
}

impl Hole {
    /// The missing numbers with the times at which they would have come.
    pub(super) fn losses(self) -> impl Iterator<Item = (u64, Instant)> {
        (self.first..self.end).map(move |seq| (seq, self.interpolated(seq)))
    }

    fn interpolated(&self, seq: u64) -> Instant {
        let ((s_before, t_before), (s_after, t_after)) = (self.before, self.after);
        let share = (seq - s_before) as f64 / (s_after - s_before) as f64;
        t_before + t_after.saturating_since(t_before).mul_f64(share)
    }
}

impl Arrivals {
    /// The highest number that has arrived.
    pub(super) fn highest(&self) -> u64 {
        self.highest.map_or(0, |highest| highest.0)
    }

    /// Takes in packet `seq`.
    pub(super) fn arrive(&mut self, now: Instant, seq: u64) -> Arrival {
        // Before the first packet nothing is known: missing numbers count from its own time.
        let (highest, at) = self.highest.unwrap_or((0, now));
        let next = self.highest.map_or(0, |highest| highest.0 + 1);
        if seq < next {
            return self.fill(seq);
        }
        self.count_later(seq);
        if seq > next {
            let (before, after) = ((highest, at), (seq, now));
            self.holes.push(Hole { first: next, end: seq, before, after, later: 1 });
        }
        self.highest = Some((seq, now));
        Arrival::New
    }

    /// The next hole that is lost for good, the lowest numbers first.
    pub(super) fn take_lost(&mut self) -> Option<Hole> {
        let lost = self.holes.iter().position(|hole| hole.later >= NDUPACK)?;
        Some(self.holes.remove(lost))
    }

    fn count_later(&mut self, seq: u64) {
        for hole in self.holes.iter_mut().filter(|hole| hole.end <= seq) {
            hole.later += 1;
        }
    }

    /// A late packet closes its hole, or splits it.
    fn fill(&mut self, seq: u64) -> Arrival {
        let Some(at) = self.holes.iter().position(|hole| hole.first <= seq && seq < hole.end) else {
            return Arrival::Duplicate;
        };
        self.count_later(seq);
        let hole = self.holes.remove(at);
        let parts = [Hole { end: seq, later: hole.later + 1, ..hole }, Hole { first: seq + 1, ..hole }];
        let left = parts.into_iter().filter(|part| part.first < part.end);
        self.holes.splice(at..at, left);
        Arrival::New
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    fn lost_after(arrivals: &[u64]) -> Vec<u64> {
        let mut seen = Arrivals::default();
        let mut lost = Vec::new();
        for (i, &seq) in arrivals.iter().enumerate() {
            seen.arrive(ms(i as u64 * 10), seq);
            while let Some(hole) = seen.take_lost() {
                lost.extend(hole.losses().map(|(seq, _)| seq));
            }
        }
        lost
    }

    #[test]
    fn three_later_packets_make_a_loss() {
        // RFC 5348 5.1: NDUPACK = 3.
        assert_eq!(lost_after(&[0, 1, 3, 4]), []);
        assert_eq!(lost_after(&[0, 1, 3, 4, 5]), [2]);
        assert_eq!(lost_after(&[0, 1, 5, 6, 7]), [2, 3, 4]);
        assert_eq!(lost_after(&[2, 3, 4]), [0, 1]);
    }

    #[test]
    fn a_late_packet_is_not_lost_and_counts_as_later_for_those_below() {
        assert_eq!(lost_after(&[0, 1, 3, 4, 2, 5, 6]), []);
        assert_eq!(lost_after(&[0, 4, 2, 5]), [1]);
        assert_eq!(lost_after(&[0, 4, 2, 5, 6]), [1, 3]);
    }

    #[test]
    fn duplicates_are_told_apart() {
        let mut seen = Arrivals::default();
        let (new, again) = (Arrival::New, Arrival::Duplicate);
        let kinds: Vec<Arrival> = [0, 2, 2, 1, 1].map(|seq| seen.arrive(ms(0), seq)).into();
        assert_eq!(kinds, [new, new, again, new, again]);
    }

    #[test]
    fn losses_are_timed_between_their_neighbours() {
        let mut seen = Arrivals::default();
        for (at, seq) in [(0, 0), (100, 1), (140, 5), (150, 6), (160, 7)] {
            seen.arrive(ms(at), seq);
        }
        // RFC 5348 5.2: 100 + 40 (S - 1) / 4.
        let times: Vec<(u64, Instant)> = seen.take_lost().expect("three are later").losses().collect();
        assert_eq!(times, [(2, ms(110)), (3, ms(120)), (4, ms(130))]);
    }
}
