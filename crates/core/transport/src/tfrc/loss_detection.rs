//! Loss detection: a packet is lost if three packets with higher numbers have arrived before it (RFC 5348 section 5.1).
//!
//! The arrival time of a lost packet is interpolated between its neighbours (RFC 5348 section 5.2):
//! `T_loss = T_before + (T_after - T_before) (S_loss - S_before) / (S_after - S_before)`.
//!
//! A packet that arrives after it was declared lost counts as a duplicate and changes nothing. RFC 5348 section 5.1 permits
//! recalculating the history, but does not require it.

use cutline_units::Instant;

/// Number of later packets after which a missing one counts as lost: NDUPACK.
const NDUPACK: u8 = 3;

/// A run of numbers that have not arrived, between two that have.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hole {
    first: u64,
    /// The number after the last missing one.
    end: u64,
    before: (u64, Instant),
    after: (u64, Instant),
    /// Number of packets with higher numbers that have arrived.
    later: u8,
}

/// The history of arrivals that loss detection needs.
#[derive(Clone, Debug, Default)]
pub(super) struct Arrivals {
    /// The highest number and its arrival time; `None` before the first packet.
    highest: Option<(u64, Instant)>,
    holes: Vec<Hole>,
}

/// The kind of an arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    New,
    Duplicate,
}

impl Hole {
    /// Returns the missing numbers with their interpolated arrival times (RFC 5348 section 5.2).
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
    /// Returns the highest number that has arrived.
    pub(super) fn highest(&self) -> u64 {
        self.highest.map_or(0, |highest| highest.0)
    }

    /// Adds the packet `seq`.
    pub(super) fn arrive(&mut self, now: Instant, seq: u64) -> Arrival {
        // Numbers missing before the first packet get the time of its arrival.
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

    /// Returns the next hole whose packets are lost, the lowest numbers first (RFC 5348 section 5.1).
    pub(super) fn take_lost(&mut self) -> Option<Hole> {
        let lost = self.holes.iter().position(|hole| hole.later >= NDUPACK)?;
        Some(self.holes.remove(lost))
    }

    fn count_later(&mut self, seq: u64) {
        for hole in self.holes.iter_mut().filter(|hole| hole.end <= seq) {
            hole.later += 1;
        }
    }

    /// Fills or splits the hole of a late packet.
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
    fn three_later_packets_mean_a_loss() {
        // RFC 5348 section 5.1: NDUPACK = 3.
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
    fn duplicates_are_recognised() {
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
        // RFC 5348 section 5.2: 100 + 40 (S - 1) / 4.
        let times: Vec<(u64, Instant)> = seen.take_lost().expect("three are later").losses().collect();
        assert_eq!(times, [(2, ms(110)), (3, ms(120)), (4, ms(130))]);
    }
}
