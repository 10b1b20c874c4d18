//! Both ends of a connection with clocks of their own, over a path that delays and loses messages and reports.

use cutline_quality::spec::{Measure, Specification};
use cutline_signal::clock::{ClockParams, OffsetEstimator, Stamper};
use cutline_signal::monitor::{
    Arrivals, Delivery, Departures, MonitorParams, PeerReports, Report, SentInterval,
};
use cutline_signal::violation::{ViolationEvent, Watch, WatchParams};
use cutline_units::{Duration, Instant};

const MS: u64 = 1_000_000;
/// Delay of the path, ns: for messages and reports, and for reports of the receiver.
const FORWARD: u64 = 20 * MS;
const REVERSE: u64 = 34 * MS;
/// The receiver's clock is 3 s behind the sender's and runs 60 ppm faster.
fn receivers(ns: u64) -> Instant {
    Instant::from_nanos(ns - 3_000 * MS + ns / 1_000_000 * 60)
}

fn senders(ns: u64) -> Instant {
    Instant::from_nanos(ns)
}

/// An end's knowledge of the other one.
struct Side {
    clock: OffsetEstimator,
    stamper: Stamper,
    reports: PeerReports,
    watch: Watch,
    number: u32,
    events: Vec<ViolationEvent>,
}

impl Side {
    fn new(spec: &Specification) -> Self {
        Self {
            clock: OffsetEstimator::new(ClockParams::default()).unwrap(),
            stamper: Stamper::default(),
            reports: PeerReports::default(),
            watch: Watch::new(spec, WatchParams::default()).unwrap(),
            number: 0,
            events: Vec::new(),
        }
    }

    fn report(&mut self, now: Instant, arrivals: &Arrivals, departures: &Departures) -> Vec<u8> {
        self.number += 1;
        let stamps = self.stamper.stamp(now);
        Report::new(self.number, arrivals, departures, self.clock.estimate(now), stamps).encode()
    }

    /// Takes a report, and returns the deliveries in it.
    fn accept(&mut self, now: Instant, bytes: &[u8], departures: &Departures) -> Delivery {
        let report = Report::decode(bytes).unwrap();
        if let Some(exchange) = self.stamper.on_stamps(now, &report.stamps) {
            self.clock.add(&exchange);
        }
        let clock = self.clock.estimate(now);
        self.reports.accept(now, report, departures.total(), clock).unwrap()
    }

    fn watch(
        &mut self,
        delivery: &Delivery,
        error: Duration,
        demand: Option<cutline_signal::monitor::OfferedMessages>,
    ) {
        self.watch.on_interval(delivery, error, demand);
        self.events.extend(std::iter::from_fn(|| self.watch.event()));
    }
}

#[test]
fn both_ends_see_the_loss_and_the_delay_within_the_error_of_the_clocks() {
    let ms = Duration::from_millis;
    // 50 messages/s; the receiver's delays are 20 to 24 ms, those that reach 30 ms would be a violation.
    let spec =
        Specification::builder().rates(40.0, 50.0, 100.0).max_delay(ms(30)).loss(1.0).recovery(ms(2000));
    let spec = spec.build().unwrap();
    let begin = 10_000 * MS;
    let params = MonitorParams::default();
    let (mut sender, mut receiver) = (Side::new(&spec), Side::new(&spec));
    let mut departures = Departures::new(senders(begin), &params).unwrap();
    let mut arrivals = Arrivals::new(receivers(begin), &params).unwrap();
    // Each end has the other direction, too; nothing is sent there.
    let mut nothing_arrives = Arrivals::new(senders(begin), &params).unwrap();
    let mut nothing_departs = Departures::new(receivers(begin), &params).unwrap();
    let (mut known, mut errors) = (0, Vec::new());
    for interval in 0..120_u64 {
        let since = begin + interval * 500 * MS;
        for message in 0..25 {
            let (number, sent) = (interval * 25 + message, since + message * 20 * MS);
            departures.on_send(senders(sent), 1000);
            // One in eight is lost from the 40th to the 49th interval.
            let is_lost = (40..50).contains(&interval) && number % 8 == 0;
            if !is_lost {
                let arrived = sent + FORWARD + number % 5 * MS;
                let offset = receiver.clock.estimate(receivers(arrived)).map(|clock| clock.offset);
                arrivals.on_message(receivers(arrived), number, senders(sent), 1000, offset);
            }
        }
        // The receiver's interval, as its clock has it, is over by then.
        let now = since + 500 * MS;
        let end = now + 30 * MS;
        arrivals.on_deadline(receivers(end));
        nothing_departs.on_deadline(receivers(end));
        departures.on_deadline(senders(now));
        nothing_arrives.on_deadline(senders(now));
        // The sender's report; every seventh is lost, and so is every fifth of the receiver.
        let report = sender.report(senders(now), &nothing_arrives, &departures);
        if interval % 7 != 3 {
            receiver.accept(receivers(now + FORWARD), &report, &nothing_departs);
            arrivals.on_sent(receivers(now + FORWARD), receiver.reports.last().unwrap().sent.messages);
        }
        let clock = receiver.clock.estimate(receivers(end));
        while let Some(delivery) = arrivals.take() {
            let error = clock.map_or(Duration::ZERO, |clock| clock.error);
            if let Some(delay) = delivery.delay {
                known += 1;
                errors.push(error);
                let off = delay.worst.abs_diff(ms(24));
                assert!(
                    off <= error + Duration::from_micros(100),
                    "{interval}: {delay:?} of 24 ms, +- {error}"
                );
            }
            receiver.watch(&delivery, error, receiver.reports.demand());
        }
        let report = receiver.report(receivers(end), &arrivals, &nothing_departs);
        if interval % 5 != 2 {
            let delivery = sender.accept(senders(end + REVERSE), &report, &departures);
            let error = sender.reports.last().unwrap().delay_error;
            let demand = departures.last().map(SentInterval::demand);
            sender.watch(&delivery, error, demand);
        }
    }
    assert!(known > 115, "the offset is known after the first reports: {known}");
    // Half of the round trip of 54 ms, and little of drift: the exchanges continue.
    let worst = errors.iter().max().unwrap();
    assert!(*worst < ms(28), "{worst}");
    assert_eq!((receiver.clock.steps(), sender.clock.steps()), (0, 0));
    assert_eq!(sender.reports.last().unwrap().received.lost(), arrivals.total().lost());
    assert_eq!(arrivals.total().lost(), 32, "250 messages from the 1000th on, one in eight");
    for (end, side) in [("sender", &sender), ("receiver", &receiver)] {
        let [ViolationEvent::Violated(begun), ViolationEvent::Restored { violation, after, .. }] =
            side.events[..]
        else {
            panic!("the {end}: {:?}", side.events)
        };
        assert_eq!((begun.measure, begun.limit), (Measure::Loss, 1.0));
        assert!(violation.measured > 10.0 && violation.measured < 14.0, "{end}: {violation:?}");
        // 5 s of loss, and the 200 messages after it in which it still counts.
        assert!(after > ms(8000) && after < ms(10_500), "{end}: {after}");
        let since = if end == "sender" { begun.since } else { senders(begun.since.as_nanos() + 3_000 * MS) };
        let expected = senders(begin + 40 * 500 * MS);
        let off = since.saturating_since(expected).max(expected.saturating_since(since));
        assert!(off <= ms(600), "{end}: off by {off}");
    }
}
