//! Samples of the delivery rate: the rate at which the network delivered the segments of the last flight.
//!
//! Source: draft-ietf-ccwg-bbr section "Delivery Rate Samples", earlier draft-cheng-iccrg-delivery-rate-estimation.
//!
//! ```text
//! data_acked       = C.delivered - P.delivered
//! ack_elapsed      = C.delivered_time - P.delivered_time
//! send_elapsed     = P.send_time - P.first_send_time
//! delivery_rate    = data_acked / max(ack_elapsed, send_elapsed)
//! ```
//!
//! P is the segment that was sent last of those that an acknowledgement delivers, and C the connection. A sample whose interval is
//! shorter than the least round trip is no sample: an acknowledgement of an earlier transmission caused it.
//!
//! *Application-limited*: when there is nothing to send although the window has room, the flight and the data sent until it has
//! arrived yields samples that say more of the application than of the path. They are marked.
//!
//! Worked: ten segments of 1000 B leave together at 0. The first acknowledgement arrives at 100 ms and releases the eleventh, which is
//! acknowledged at 210 ms, when 11,000 B are delivered. `P.delivered` = 1000 B and `P.delivered_time` = 100 ms, so the rate is
//! 10,000 B / 110 ms = 90.9 kB/s (`a_sample_has_the_bytes_delivered_since_the_departure`).

use cutline_units::{Duration, Instant};
use std::collections::VecDeque;

/// State of a connection's repair of losses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LossState {
    /// Nothing is being repaired.
    #[default]
    Open,
    /// Fast recovery.
    Recovery,
    /// From a timeout until all that was outstanding then is acknowledged.
    Timeout,
}

/// Input of a paced congestion control for an acknowledgement. All volumes are in bytes, of payload.
#[derive(Clone, Copy, Debug)]
pub struct RateSample {
    /// Time of arrival.
    pub now: Instant,
    /// Bytes that this acknowledgement delivers, in order or selectively.
    pub newly_delivered: u64,
    /// Bytes found lost with this acknowledgement.
    pub newly_lost: u64,
    /// Bytes that arrived marked, of those newly delivered: marked segments are counted with the mss.
    pub newly_marked: u64,
    /// Bytes delivered since the connection began: `C.delivered`.
    pub total_delivered: u64,
    /// Bytes lost since the connection began: `C.lost`.
    pub total_lost: u64,
    /// `P.delivered`; `None` if the acknowledgement delivers nothing.
    pub prior_delivered: Option<u64>,
    /// Bytes delivered in the interval.
    pub delivered: u64,
    /// The interval of the sample; zero if there is no reliable one.
    pub interval: Duration,
    /// True if the application limited the sender when P was sent.
    pub is_app_limited: bool,
    /// The least round trip of the segments delivered, if it is known.
    pub rtt: Option<Duration>,
    /// True if the receiver may have delayed the acknowledgement: P was alone in flight.
    pub is_ack_delayed: bool,
    /// The smoothed round-trip time; zero before the first sample.
    pub srtt: Duration,
    /// Bytes in flight before this acknowledgement.
    pub prior_in_flight: u64,
    /// Bytes in flight now.
    pub in_flight: u64,
    /// Bytes in flight when P had left, with P: `P.tx_in_flight`.
    pub tx_in_flight: u64,
    /// Bytes lost since P left: `C.lost - P.lost`.
    pub lost_since_sent: u64,
    /// True if the congestion window was full at a time in this flight.
    pub is_window_limited: bool,
    /// The earliest departure of the next segment.
    pub next_send: Instant,
    /// The repair of losses after this acknowledgement.
    pub state: LossState,
}

impl RateSample {
    /// Returns the delivery rate in bytes per second; `None` if there is no reliable sample.
    pub fn rate(&self) -> Option<f64> {
        (!self.interval.is_zero()).then(|| self.delivered as f64 / self.interval.as_secs_f64())
    }
}

/// A segment that is found to be lost. All volumes are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostSegment {
    /// Time at which it was found.
    pub now: Instant,
    /// The first sequence number of the segment.
    pub seq: u64,
    /// Its length.
    pub bytes: u64,
    /// Bytes delivered since the connection began.
    pub total_delivered: u64,
    /// Bytes in flight when it had left, with itself.
    pub tx_in_flight: u64,
    /// Bytes lost since it left, with itself.
    pub lost_since_sent: u64,
    /// True if the application limited the sender when it left.
    pub is_app_limited: bool,
}

/// State of the connection when a segment was last sent.
#[derive(Clone, Copy, Debug)]
struct Departure {
    delivered: u64,
    delivered_at: Instant,
    first_sent: Instant,
    lost: u64,
    in_flight: u64,
    is_app_limited: bool,
}

/// The segment that was sent last of those that an acknowledgement has delivered.
#[derive(Clone, Copy, Debug)]
struct Newest {
    departure: Departure,
    sent_at: Instant,
    end: u64,
    send_elapsed: Duration,
    ack_elapsed: Duration,
}

/// A segment that has arrived.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    pub(super) sent_at: Instant,
    pub(super) end: u64,
    pub(super) bytes: u64,
}

/// The result of the sampler for an acknowledgement.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FlightSample {
    pub(super) prior_delivered: Option<u64>,
    pub(super) delivered: u64,
    pub(super) interval: Duration,
    pub(super) is_app_limited: bool,
    pub(super) tx_in_flight: u64,
    pub(super) lost_since_sent: u64,
}

/// The sampler of a connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Sampler {
    /// One of each outstanding segment, in the order of their sequence numbers.
    departures: VecDeque<Departure>,
    delivered: u64,
    delivered_at: Instant,
    first_sent: Instant,
    /// `C.app_limited`: the count of delivered bytes with which the application-limited phase has passed; 0 outside of one.
    limited_until: u64,
    lost: u64,
    /// Count of lost bytes before this acknowledgement.
    lost_before: u64,
    losses: Vec<LostSegment>,
    newest: Option<Newest>,
    rtt: Option<Duration>,
}

impl Sampler {
    /// Notes the departure of the segment with this index; the index after the last is that of new data. `in_flight` are the bytes in
    /// the network without the segment.
    pub(super) fn depart(&mut self, now: Instant, index: usize, in_flight: u64, bytes: u64) {
        if in_flight == 0 {
            (self.first_sent, self.delivered_at) = (now, now);
        }
        let departure = Departure {
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent: self.first_sent,
            lost: self.lost,
            in_flight: in_flight + bytes,
            is_app_limited: self.limited_until != 0,
        };
        match self.departures.get_mut(index) {
            Some(place) => *place = departure,
            None => self.departures.push_back(departure),
        }
    }

    /// Begins an acknowledgement.
    pub(super) fn begin(&mut self) {
        self.newest = None;
        self.rtt = None;
        self.lost_before = self.lost;
    }

    /// Notes that the first segment is acknowledged. `arrival` is `None` if it was selectively acknowledged before.
    pub(super) fn acknowledge_first(&mut self, now: Instant, arrival: Option<Arrival>) {
        let departure = self.departures.pop_front();
        if let (Some(departure), Some(arrival)) = (departure, arrival) {
            self.arrive(now, departure, arrival);
        }
    }

    /// Notes that the segment with this index is selectively acknowledged.
    pub(super) fn acknowledge(&mut self, now: Instant, index: usize, arrival: Arrival) {
        if let Some(&departure) = self.departures.get(index) {
            self.arrive(now, departure, arrival);
        }
    }

    fn arrive(&mut self, now: Instant, departure: Departure, arrival: Arrival) {
        let Arrival { sent_at, end, bytes } = arrival;
        self.delivered += bytes;
        self.delivered_at = now;
        if self.newest.is_none_or(|newest| (sent_at, end) > (newest.sent_at, newest.end)) {
            let send_elapsed = sent_at.saturating_since(departure.first_sent);
            let ack_elapsed = now.saturating_since(departure.delivered_at);
            self.newest = Some(Newest { departure, sent_at, end, send_elapsed, ack_elapsed });
            self.first_sent = sent_at;
        }
    }

    /// Notes a round trip that an acknowledgement shows.
    pub(super) fn note_round_trip(&mut self, rtt: Duration) {
        self.rtt = Some(self.rtt.map_or(rtt, |least| least.min(rtt)));
    }

    /// Notes that the segment with this index is lost.
    pub(super) fn lose(&mut self, now: Instant, index: usize, seq: u64, bytes: u64) {
        self.lost += bytes;
        let Some(departure) = self.departures.get(index) else { return };
        self.losses.push(LostSegment {
            now,
            seq,
            bytes,
            total_delivered: self.delivered,
            tx_in_flight: departure.in_flight,
            lost_since_sent: self.lost - departure.lost,
            is_app_limited: departure.is_app_limited,
        });
    }

    /// Takes the losses that were not reported yet. The caller returns the emptied list with [`Sampler::recycle`].
    pub(super) fn take_losses(&mut self) -> Vec<LostSegment> {
        std::mem::take(&mut self.losses)
    }

    /// Takes back an empty list of losses, whose memory serves the next ones.
    pub(super) fn recycle(&mut self, mut losses: Vec<LostSegment>) {
        losses.clear();
        self.losses = losses;
    }

    /// Notes that the sender has nothing to send although it might, with this many bytes in flight.
    pub(super) fn limit_by_application(&mut self, in_flight: u64) {
        self.limited_until = (self.delivered + in_flight).max(1);
    }

    /// Returns whether an application-limited phase has not passed.
    pub(super) fn is_app_limited(&self) -> bool {
        self.limited_until != 0
    }

    /// Returns the sample of an acknowledgement. An interval shorter than `min_rtt` is none.
    pub(super) fn sample(&mut self, min_rtt: Duration) -> FlightSample {
        if self.delivered > self.limited_until {
            self.limited_until = 0;
        }
        let Some(Newest { departure, send_elapsed, ack_elapsed, .. }) = self.newest else {
            return FlightSample::default();
        };
        let interval = send_elapsed.max(ack_elapsed);
        FlightSample {
            prior_delivered: Some(departure.delivered),
            delivered: self.delivered - departure.delivered,
            interval: if interval < min_rtt { Duration::ZERO } else { interval },
            is_app_limited: departure.is_app_limited,
            tx_in_flight: departure.in_flight,
            lost_since_sent: self.lost - departure.lost,
        }
    }

    pub(super) fn delivered(&self) -> u64 {
        self.delivered
    }

    pub(super) fn lost(&self) -> u64 {
        self.lost
    }

    pub(super) fn newly_lost(&self) -> u64 {
        self.lost - self.lost_before
    }

    pub(super) fn rtt(&self) -> Option<Duration> {
        self.rtt
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    fn arrive(sampler: &mut Sampler, ms: u64, sent_ms: u64, end: u64) {
        sampler.acknowledge_first(at(ms), Some(Arrival { sent_at: at(sent_ms), end, bytes: 1000 }));
    }

    /// Ten segments leave at 0, the first is acknowledged at 100 ms, and the eleventh leaves then.
    fn eleven() -> Sampler {
        let mut sampler = Sampler::default();
        (0..10).for_each(|n| sampler.depart(at(0), n, n as u64 * 1000, 1000));
        sampler.begin();
        arrive(&mut sampler, 100, 0, 1000);
        // draft-ietf-ccwg-bbr, UpdateRateSample(): 1000 B in 100 ms.
        let first = sampler.sample(Duration::from_millis(100));
        assert_eq!((first.delivered, first.interval), (1000, Duration::from_millis(100)));
        sampler.depart(at(100), 9, 9000, 1000);
        sampler
    }

    #[test]
    fn a_sample_has_the_bytes_delivered_since_the_departure() {
        let mut sampler = eleven();
        sampler.begin();
        (1..10).for_each(|n| arrive(&mut sampler, 100 + n, 0, (n + 1) * 1000));
        sampler.sample(Duration::from_millis(100));
        sampler.begin();
        arrive(&mut sampler, 210, 100, 11_000);
        let sample = sampler.sample(Duration::from_millis(100));
        assert_eq!((sample.prior_delivered, sample.delivered), (Some(1000), 10_000));
        assert_eq!((sample.interval, sample.tx_in_flight), (Duration::from_millis(110), 10_000));
    }

    #[test]
    fn a_compressed_train_of_acknowledgements_counts_at_the_rate_of_its_departure() {
        // draft-ietf-ccwg-bbr "Send Rate": 20 segments leave 10 ms apart, and all are acknowledged at 300 ms.
        let mut sampler = Sampler::default();
        (0..20).for_each(|n| sampler.depart(at(10 * n), n as usize, n * 1000, 1000));
        sampler.begin();
        arrive(&mut sampler, 100, 0, 1000);
        sampler.begin();
        (1..20).for_each(|n| arrive(&mut sampler, 101, 10 * n, (n + 1) * 1000));
        let sample = sampler.sample(Duration::from_millis(1));
        assert_eq!((sample.delivered, sample.interval), (20_000, Duration::from_millis(190)));
    }

    #[test]
    fn an_interval_below_the_least_round_trip_is_none() {
        // A segment leaves again at 100 ms after a timeout, and the acknowledgement of its first transmission arrives at 110 ms.
        let mut sampler = Sampler::default();
        sampler.depart(at(0), 0, 0, 1000);
        sampler.depart(at(100), 0, 0, 1000);
        sampler.begin();
        arrive(&mut sampler, 110, 100, 1000);
        assert_eq!(sampler.sample(Duration::from_millis(100)).interval, Duration::ZERO);
    }

    #[test]
    fn samples_are_application_limited_until_the_gap_has_passed() {
        let mut sampler = eleven();
        // 10,000 B are in flight, and 1000 B delivered: the phase passes when more than 11,000 B are.
        sampler.limit_by_application(10_000);
        sampler.depart(at(150), 10, 10_000, 1000);
        sampler.begin();
        (1..11).for_each(|n| arrive(&mut sampler, 200, n / 10 * 100, (n + 1) * 1000));
        let before = sampler.sample(Duration::ZERO);
        assert!(!before.is_app_limited && sampler.is_app_limited(), "it was sent before the gap");
        sampler.begin();
        arrive(&mut sampler, 250, 150, 12_000);
        assert!(sampler.sample(Duration::ZERO).is_app_limited && !sampler.is_app_limited());
    }

    #[test]
    fn a_loss_has_the_bytes_in_flight_and_the_bytes_lost_since_its_sending() {
        let mut sampler = eleven();
        sampler.begin();
        sampler.lose(at(200), 0, 1000, 1000);
        sampler.lose(at(200), 1, 2000, 1000);
        let losses = sampler.take_losses();
        let seen = losses.iter().map(|loss| (loss.seq, loss.tx_in_flight, loss.lost_since_sent));
        assert_eq!(seen.collect::<Vec<_>>(), [(1000, 2000, 1000), (2000, 3000, 2000)]);
        assert_eq!((sampler.lost(), sampler.newly_lost()), (2000, 2000));
    }
}
