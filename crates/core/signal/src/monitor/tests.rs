use super::*;
use crate::clock::{ClockEstimate, ClockOffset, Echo, Stamps};
use cutline_params::{ParameterValue, Parameters as _, conformance};
use cutline_units::{Instant, Rate};
use proptest::prelude::*;
use std::collections::BTreeSet;

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn arrivals() -> Arrivals {
    Arrivals::new(at(0), &MonitorParams::default()).unwrap()
}

fn departures() -> Departures {
    Departures::new(at(0), &MonitorParams::default()).unwrap()
}

/// A message of 1000 B; both ends have the same clock.
fn arrive(arrivals: &mut Arrivals, number: u64, sent_ms: u64, arrived_ms: u64) -> MessageArrival {
    arrivals.on_message(at(arrived_ms), number, at(sent_ms), 1000, Some(ClockOffset::NONE))
}

#[test]
fn each_message_is_a_sample_until_there_are_too_many() {
    let mut arrivals = arrivals();
    arrive(&mut arrivals, 0, 0, 10);
    assert_eq!(arrivals.take_samples(), (Vec::new(), 0), "nobody has asked for samples yet");
    arrivals.sample(2);
    arrive(&mut arrivals, 1, 20, 50);
    arrive(&mut arrivals, 1, 20, 51);
    arrivals.on_message(at(65), 3, at(40), 500, None);
    let sample =
        |number, arrived, bytes, delay, jitter| Sample { number, arrived: at(arrived), bytes, delay, jitter };
    // The duplicate is no sample; without an offset there is no delay, but a jitter.
    let expected = [sample(1, 50, 1000, Some(ms(30)), Some(ms(20))), sample(3, 65, 500, None, Some(ms(5)))];
    assert_eq!(arrivals.take_samples(), (expected.to_vec(), 0));
    for number in 4..9 {
        arrive(&mut arrivals, number, 60, 100);
    }
    let (samples, forgotten) = arrivals.take_samples();
    assert_eq!((samples.iter().map(|sample| sample.number).collect::<Vec<_>>(), forgotten), (vec![7, 8], 3));
    assert_eq!(arrivals.take_samples(), (Vec::new(), 0));
}

#[test]
fn the_parameters_are_described_and_bad_ones_refused() {
    let parameters = MonitorParams::describe();
    let make = |values: &[(&str, ParameterValue)]| {
        MonitorParams::from_values(values.iter().map(|(name, value)| (*name, value.clone())))
            .map(|params| params.values())
    };
    conformance::parameters_are_complete("monitor", &parameters);
    conformance::defaults_are_what_the_description_says("monitor", &parameters, &make);
    conformance::bad_parameters_are_refused_by_name("monitor", &parameters, &make);
    let endless = MonitorParams { interval: Duration::ZERO, ..MonitorParams::default() };
    assert!(Arrivals::new(at(0), &endless).is_err() && Departures::new(at(0), &endless).is_err());
}

#[test]
fn throughput_and_loss_are_those_of_the_paper() {
    // QoSockets eq. 2 and 3: the example of the module docs.
    let mut arrivals = arrivals();
    for number in (0..25).filter(|number| number % 5 != 2) {
        arrive(&mut arrivals, number, number * 20, number * 20 + 10);
    }
    assert_eq!((arrivals.deadline(), arrivals.take()), (at(500), None));
    arrivals.on_deadline(at(500));
    let delivery = arrivals.take().unwrap();
    assert_eq!((delivery.since, delivery.until), (at(0), at(500)));
    assert_eq!((delivery.sent, delivery.messages, delivery.bytes, delivery.lost), (25, 20, 20_000, 5));
    assert_eq!((delivery.throughput(), delivery.loss()), (Rate::from_kbps(320), Some(20.0)));
    assert_eq!(delivery.rate(), 40.0);
    assert_eq!((arrivals.take(), arrivals.last()), (None, Some(&delivery)));
}

#[test]
fn delay_and_jitter_are_those_of_the_paper_at_any_clocks() {
    // QoSockets eq. 4 and 5: delays of 10, 30, 25 and 25 ms; the sender's clock is 5 s behind.
    let offset = ClockOffset::from_nanos(-5_000_000_000);
    let mut arrivals = Arrivals::new(at(10_000), &MonitorParams::default()).unwrap();
    for (number, (sent, delay)) in [(0, 10), (20, 30), (40, 25), (60, 25)].into_iter().enumerate() {
        let arrived = at(10_000 + sent + delay);
        arrivals.on_message(arrived, number as u64, at(5_000 + sent), 1000, Some(offset));
    }
    arrivals.on_deadline(at(10_500));
    let delivery = arrivals.take().unwrap();
    let (delay, jitter) = (delivery.delay.unwrap(), delivery.jitter.unwrap());
    assert_eq!((delay.mean, delay.worst), (Duration::from_micros(22_500), ms(30)));
    // Jitters of 20, 5 and 0 ms.
    assert_eq!((jitter.mean, jitter.worst), (Duration::from_nanos(25_000_000 / 3), ms(20)));
    // The 0.99 quantile of so few is in the bucket of the worst, which is 3 % wide.
    assert!(jitter.quantile > ms(19) && delay.quantile > ms(29), "{delay:?} {jitter:?}");
    assert_eq!(
        (arrivals.total().delay, arrivals.delays().count(), arrivals.jitters().count()),
        (ms(90), 4, 3)
    );
    // An offset that is not known yet is no reason not to measure jitter.
    arrivals.on_message(at(10_530), 4, at(5_500), 1000, None);
    arrivals.on_deadline(at(11_000));
    let delivery = arrivals.take().unwrap();
    assert_eq!((delivery.delay, delivery.jitter.unwrap().worst), (None, ms(5)));
}

#[test]
fn a_change_of_the_estimated_offset_is_no_jitter() {
    let mut arrivals = arrivals();
    for (number, ns) in [(0, 0), (1, 3_000_000), (2, -7_000_000)] {
        let sent = at(100 + 20 * number);
        arrivals.on_message(sent + ms(10), number, sent, 1, Some(ClockOffset::from_nanos(ns)));
    }
    arrivals.on_deadline(at(500));
    assert_eq!(arrivals.take().unwrap().jitter.unwrap().worst, Duration::ZERO);
}

#[test]
fn late_messages_replace_lost_ones_and_duplicates_are_not_counted() {
    let mut arrivals = arrivals();
    for (number, ms) in [(0, 10), (1, 20), (4, 30), (4, 31), (1 << 40, 32)] {
        arrive(&mut arrivals, number, 0, ms);
    }
    assert_eq!(arrive(&mut arrivals, 2, 0, 600), MessageArrival::Late);
    assert_eq!(arrive(&mut arrivals, 5, 0, 610), MessageArrival::InOrder { missing: 0 });
    arrivals.on_deadline(at(1000));
    let [first, second] = [arrivals.take().unwrap(), arrivals.take().unwrap()];
    assert_eq!((first.sent, first.messages, first.lost, first.duplicated), (5, 3, 2, 1));
    assert_eq!((second.sent, second.messages, second.lost, second.late), (1, 2, -1, 1));
    assert_eq!(second.loss(), Some(0.0));
    let total = arrivals.total();
    assert_eq!((total.expected, total.messages, total.lost(), total.impossible), (6, 5, 1, 1));
}

#[test]
fn a_message_below_the_window_is_a_duplicate_if_none_is_missing() {
    let mut arrivals = arrivals();
    for number in 0..2000 {
        arrive(&mut arrivals, number, 0, 1);
    }
    assert_eq!(arrive(&mut arrivals, 3, 0, 2), MessageArrival::Duplicate);
    assert_eq!((arrivals.total().messages, arrivals.total().duplicated), (2000, 1));
}

#[test]
fn an_interval_without_messages_exists_and_has_the_gap() {
    let mut arrivals = arrivals();
    arrive(&mut arrivals, 0, 0, 100);
    arrive(&mut arrivals, 1, 0, 300);
    arrivals.on_deadline(at(1100));
    let [first, second] = [arrivals.take().unwrap(), arrivals.take().unwrap()];
    assert_eq!((first.gap, first.silence), (ms(200), ms(200)));
    let nothing = (second.messages, second.sent, second.delay, second.loss());
    assert_eq!((nothing, second.gap, second.silence), ((0, 0, None, None), ms(700), ms(700)));
    // The gap ends in the third interval; 100 ms is the silence at its end.
    arrive(&mut arrivals, 2, 0, 1400);
    arrivals.on_deadline(at(1500));
    let third = arrivals.take().unwrap();
    assert_eq!((third.gap, third.silence), (ms(1100), ms(100)));
}

#[test]
fn before_the_first_message_there_is_silence_and_no_gap() {
    let mut arrivals = arrivals();
    arrivals.on_deadline(at(500));
    let delivery = arrivals.take().unwrap();
    assert_eq!((delivery.gap, delivery.silence), (Duration::ZERO, ms(500)));
    arrive(&mut arrivals, 0, 0, 900);
    arrivals.on_deadline(at(1000));
    assert_eq!(arrivals.take().unwrap().gap, ms(100));
}

#[test]
fn a_known_pause_of_the_sender_is_no_gap() {
    let mut arrivals = arrivals();
    arrive(&mut arrivals, 0, 0, 100);
    arrivals.on_sent(at(450), 1);
    arrivals.on_deadline(at(500));
    assert_eq!(arrivals.take().unwrap().silence, ms(50));
    // Two more were sent and have not arrived: that is silence, until the sender says that there was nothing after them.
    arrivals.on_sent(at(950), 3);
    arrivals.on_deadline(at(1000));
    assert_eq!(arrivals.take().unwrap().silence, ms(550));
    arrivals.on_sent(at(1450), 3);
    arrivals.on_deadline(at(1500));
    assert_eq!(arrivals.take().unwrap().silence, ms(50));
}

#[test]
fn messages_end_intervals_by_their_own_time() {
    // There was no call for 10 s; the stamps still have the times of arrival.
    let mut arrivals = arrivals();
    for number in 0..100 {
        arrive(&mut arrivals, number, number * 100, number * 100);
    }
    arrivals.on_deadline(at(10_000));
    let all: Vec<_> = std::iter::from_fn(|| arrivals.take()).collect();
    assert_eq!(all.len(), 20);
    assert!(all.iter().all(|delivery| delivery.messages == 5 && delivery.length() == ms(500)));
}

#[test]
fn made_up_times_are_bounded() {
    let mut arrivals = arrivals();
    for (number, sent) in [0, u64::MAX, 1 << 63, 0, u64::MAX].into_iter().enumerate() {
        let offset = Some(ClockOffset::from_nanos(i64::MIN));
        arrivals.on_message(at(1), number as u64, Instant::from_nanos(sent), u64::MAX, offset);
    }
    arrivals.on_deadline(at(500));
    let delivery = arrivals.take().unwrap();
    assert!(
        delivery.delay.unwrap().worst <= LONGEST_DELAY && delivery.jitter.unwrap().worst <= LONGEST_DELAY
    );
    assert_eq!(delivery.bytes, u64::MAX);
    assert_eq!(delivery.throughput(), Rate::from_bps(u64::MAX));
}

#[test]
fn sent_messages_are_counted_per_interval_with_their_waiting_time() {
    let mut departures = departures();
    for number in 0..20 {
        departures.on_send(at(number * 20), 1000);
    }
    departures.hold(at(400));
    assert_eq!(departures.deadline(), at(500));
    departures.on_deadline(at(1000));
    let blocked = *departures.last().unwrap();
    assert_eq!((blocked.since, blocked.sent.messages, blocked.sent.held), (at(500), 0, ms(500)));
    assert!(!blocked.demand().is_nothing(), "it wanted to send");
    assert!(blocked.demand().reaches(1000.0));
    departures.release(at(1200));
    departures.on_send(at(1200), 1000);
    departures.on_deadline(at(1500));
    let last = departures.last().unwrap();
    assert_eq!((last.sent.messages, last.sent.held, last.demand().time), (1, ms(200), ms(300)));
    assert_eq!(last.throughput(), Rate::from_kbps(16));
    assert_eq!(departures.total(), Sent { messages: 21, bytes: 21_000, held: ms(800) });
    departures.on_deadline(at(2000));
    assert!(departures.last().unwrap().demand().is_nothing());
}

#[test]
fn a_demand_may_be_one_message_short() {
    // 60 messages/s are 30 in 0.5 s; with intervals that fall between messages, 29 to 31.
    let demand = |messages| OfferedMessages { messages, time: ms(500) };
    assert_eq!([28, 29, 30].map(|messages| demand(messages).reaches(60.0)), [false, true, true]);
}

fn stamps(sent_ms: u64) -> Stamps {
    Stamps { sent: at(sent_ms), echo: None }
}

/// Traffic from a sender to a receiver, and the report of the receiver.
struct Pair {
    departures: Departures,
    arrivals: Arrivals,
    reports: PeerReports,
}

impl Pair {
    fn new() -> Self {
        Self { departures: departures(), arrivals: arrivals(), reports: PeerReports::default() }
    }

    /// Sends messages of an interval, of which some arrive after 10 ms, and returns the report at its end.
    fn interval(&mut self, number: u32, lost: &[u64]) -> Report {
        let begin = u64::from(number - 1);
        for message in begin * 25..(begin + 1) * 25 {
            let sent = begin * 500 + message % 25 * 19;
            self.departures.on_send(at(sent), 1000);
            if !lost.contains(&message) {
                arrive(&mut self.arrivals, message, sent, sent + 10);
            }
        }
        let end = (begin + 1) * 500;
        self.arrivals.on_deadline(at(end));
        // This end sends nothing itself.
        let mut nothing = departures();
        nothing.on_deadline(at(end));
        let clock = ClockEstimate { offset: ClockOffset::NONE, error: ms(2), round_trip: ms(4) };
        Report::new(number, &self.arrivals, &nothing, Some(clock), stamps(end + 1))
    }

    fn accept(&mut self, report: Report) -> Result<Delivery, ReportError> {
        let now = report.stamps.sent + ms(10);
        self.reports.accept(now, report, self.departures.total(), None)
    }
}

#[test]
fn a_report_has_the_measurements_of_the_receiver() {
    let mut pair = Pair::new();
    let report = pair.interval(1, &[3]);
    assert_eq!(Report::decode(&report.encode()), Some(report.clone()));
    let told = pair.accept(report.clone()).unwrap();
    let measured = pair.arrivals.take().unwrap();
    let there = Delivery { since: measured.since + ms(11), until: measured.until + ms(11), ..measured };
    assert_eq!(told, there, "its times are those of its arrival while the clocks are not known");
    assert_eq!(report.delay_error, ms(2));
    let hint = report.for_hint();
    assert_eq!((hint.received, hint.delivered_bytes, hint.delay, hint.at), (24, 24_000, ms(240), at(500)));
}

#[test]
fn a_lost_report_does_no_harm() {
    let mut pair = Pair::new();
    let first = pair.interval(1, &[]);
    pair.accept(first).unwrap();
    let _lost = pair.interval(2, &[30, 31]);
    let third = pair.interval(3, &[51]);
    let told = pair.accept(third).unwrap();
    assert_eq!((told.length(), told.sent, told.messages, told.lost), (ms(1000), 50, 47, 3));
    assert_eq!(told.rate(), 47.0);
}

#[test]
fn a_report_with_a_known_clock_has_our_times() {
    let mut pair = Pair::new();
    let report = Report { stamps: stamps(7_501), ..pair.interval(1, &[]) };
    let clock =
        ClockEstimate { offset: ClockOffset::from_nanos(7_000_000_000), error: ms(1), round_trip: ms(2) };
    let told = pair.reports.accept(at(511), report.clone(), pair.departures.total(), Some(clock)).unwrap();
    assert_eq!((told.since, told.until), (at(1), at(501)));
    let early = Report { number: 2, stamps: stamps(7_600), elapsed: ms(1000), ..report };
    let result = pair.reports.accept(at(598), early.clone(), pair.departures.total(), Some(clock));
    assert_eq!(result, Err(ReportError::Contradiction("it was sent after it arrived")));
    assert!(
        pair.reports.accept(at(599), early, pair.departures.total(), Some(clock)).is_ok(),
        "by the error"
    );
}

#[test]
fn false_reports_are_refused_counted_and_change_nothing() {
    let mut pair = Pair::new();
    let first = pair.interval(1, &[]);
    pair.accept(first.clone()).unwrap();
    let second = pair.interval(2, &[]);
    let received = second.received;
    let lies = [
        Report { received: Received { expected: 51, ..received }, ..second.clone() },
        Report { received: Received { bytes: 50_001, ..received }, ..second.clone() },
        Report { received: Received { expected: 24, messages: 24, ..received }, ..second.clone() },
        Report { received: Received { messages: 24, ..received }, ..second.clone() },
        Report { received: Received { bytes: 24_999, ..received }, ..second.clone() },
        Report { received: Received { delay: ms(249), ..received }, ..second.clone() },
        Report { elapsed: ms(500), ..second.clone() },
        Report { stamps: first.stamps, ..second.clone() },
    ];
    let count = lies.len() as u64;
    for lie in lies {
        assert!(matches!(pair.accept(lie.clone()), Err(ReportError::Contradiction(_))), "{lie:?}");
    }
    assert_eq!(pair.accept(first), Err(ReportError::Stale));
    assert_eq!(pair.reports.last().unwrap().number, 1);
    assert!(pair.accept(second).is_ok());
    assert_eq!(pair.reports.stats(), ReportStats { used: 2, stale: 1, refused: count });
}

#[test]
fn the_totals_of_sent_messages_never_fall_and_determine_the_demand() {
    let mut reports = PeerReports::default();
    let mut peer = departures();
    let mut report = |number: u32, peer: &mut Departures, falls: u64| {
        let end = u64::from(number) * 500;
        peer.on_deadline(at(end));
        let mut arrivals = arrivals();
        arrivals.on_deadline(at(end));
        let mut report = Report::new(number, &arrivals, peer, None, stamps(end));
        report.sent.messages -= falls;
        reports.accept(at(end), report, Sent::default(), None).map(|_| reports.demand().unwrap())
    };
    peer.on_send(at(100), 10);
    peer.on_send(at(200), 10);
    assert_eq!(report(1, &mut peer, 0), Ok(OfferedMessages { messages: 2, time: ms(500) }));
    peer.on_send(at(600), 10);
    peer.hold(at(700));
    assert_eq!(report(2, &mut peer, 2), Err(ReportError::Contradiction("the messages sent fall")));
    assert_eq!(report(3, &mut peer, 0), Ok(OfferedMessages { messages: 1, time: ms(1000 - 800) }));
}

#[test]
fn impossible_reports_are_not_decoded() {
    let mut pair = Pair::new();
    let report = pair.interval(1, &[3]);
    let bytes = report.encode();
    for length in 0..bytes.len() {
        assert_eq!(Report::decode(&bytes[..length]), None);
    }
    assert_eq!(Report::decode(&[&bytes[..], &[0]].concat()), None);
    let received = report.received;
    let spread = |mean, quantile, worst| Spread { mean: ms(mean), quantile: ms(quantile), worst: ms(worst) };
    let hour = 3_600_000;
    let impossible = [
        Report { number: 0, ..report.clone() },
        Report { elapsed: Duration::ZERO, ..report.clone() },
        Report { received: Received { messages: 26, ..received }, ..report.clone() },
        Report { received: Received { late: 25, ..received }, ..report.clone() },
        Report {
            received: Received { delay: Duration::from_secs(3600 * 24 + 1), ..received },
            ..report.clone()
        },
        Report { received: Received { messages: 0, ..received }, ..report.clone() },
        Report { delay: Some(spread(3, 1, 2)), ..report.clone() },
        Report { delay: Some(spread(1, 3, 2)), ..report.clone() },
        Report { jitter: Some(spread(1, 1, hour + 1)), ..report.clone() },
        Report { delay: None, ..report.clone() },
        Report { delay_error: ms(hour + 1), ..report.clone() },
        Report { gap: ms(501), ..report.clone() },
        Report { silence: ms(501), ..report.clone() },
    ];
    for lie in impossible {
        assert_eq!(Report::decode(&lie.encode()), None, "{lie:?}");
    }
    let without = Report { delay: None, delay_error: Duration::ZERO, jitter: None, ..report.clone() };
    assert_eq!(Report::decode(&without.encode()), Some(without));
    let echo = Some(Echo { sent: at(1), received: at(2) });
    let with = Report { stamps: Stamps { echo, ..report.stamps }, ..report };
    assert_eq!(Report::decode(&with.encode()), Some(with));
}

/// A message of the property tests: the time since the previous arrival, its number, its delay.
type TraceStep = (u64, u64, u64);

fn steps() -> impl Strategy<Value = Vec<TraceStep>> {
    prop::collection::vec((0_u64..300, 0_u64..60, 0_u64..200), 1..200)
}

proptest! {
    /// Intervals compared with a complete recount.
    #[test]
    fn intervals_have_the_values_of_the_messages(steps in steps()) {
        let (mut arrivals, mut now, mut seen) = (arrivals(), 1000, BTreeSet::new());
        let mut oracle: Vec<(u64, u64)> = Vec::new();
        for (wait, number, delay) in steps {
            now += wait;
            let arrival = arrive(&mut arrivals, number, now - delay, now);
            prop_assert_eq!(arrival == MessageArrival::Duplicate, !seen.insert(number));
            if arrival != MessageArrival::Duplicate {
                oracle.push((now, delay));
            }
        }
        let end = now / 500 * 500 + 500;
        arrivals.on_deadline(at(end));
        let mut taken: Vec<Delivery> = std::iter::from_fn(|| arrivals.take()).collect();
        let total = arrivals.total();
        prop_assert_eq!(total.messages, seen.len() as u64);
        prop_assert_eq!(total.expected, seen.last().unwrap() + 1);
        prop_assert_eq!(total.delay, ms(oracle.iter().map(|(_, delay)| delay).sum()));
        prop_assert_eq!(taken.last().unwrap().until, at(end));
        prop_assert!(taken.windows(2).all(|pair| pair[0].until == pair[1].since));
        if taken.len() == 64 {
            // The oldest may have been forgotten.
            return Ok(());
        }
        prop_assert_eq!(taken.iter().map(|each| each.lost).sum::<i64>(), total.lost() as i64);
        prop_assert_eq!(taken.iter().map(|each| each.late).sum::<u64>(), total.late);
        for delivery in taken.drain(..) {
            let inside: Vec<_> = oracle
                .iter()
                .filter(|(arrived, _)| (delivery.since..delivery.until).contains(&at(*arrived)))
                .map(|(_, delay)| *delay)
                .collect();
            prop_assert_eq!(delivery.messages, inside.len() as u64);
            prop_assert_eq!(delivery.delay.map(|delay| delay.worst), inside.iter().max().map(|delay| ms(*delay)));
        }
    }

    /// Differences are those of accepted totals, and nothing panics, whatever reports arrive.
    #[test]
    fn reports_never_panic_and_totals_add_up(
        reports in prop::collection::vec((1_u32..9, prop::array::uniform9(0_u64..60), 0_u64..2000), 1..30), sent in 0_u64..60,
    ) {
        let mut peer = PeerReports::default();
        let (mut messages, mut lost) = (0, 0);
        for (number, [expected, received, bytes, late, duplicated, delay, out, held, overflowed], time) in reports {
            let report = Report {
                number,
                elapsed: ms(time),
                received: Received { expected, messages: received, bytes, late, duplicated, impossible: 0, delay: ms(delay), unread: Duration::ZERO, overflowed },
                delay: None,
                delay_error: Duration::ZERO,
                jitter: None,
                gap: Duration::ZERO,
                silence: Duration::ZERO,
                sent: Sent { messages: out, bytes: out, held: ms(held) },
                stamps: stamps(time),
            };
            let Some(report) = Report::decode(&report.encode()) else { continue };
            if let Ok(delivery) = peer.accept(at(5000), report, Sent { messages: sent, bytes: sent, held: ms(0) }, None) {
                messages += delivery.messages;
                lost += delivery.lost;
            }
            if let Some(last) = peer.last() {
                prop_assert_eq!((messages, lost), (last.received.messages, last.received.lost() as i64));
                prop_assert!(last.received.expected <= sent && last.received.bytes <= sent);
            }
        }
    }
}

#[test]
fn data_that_wait_for_the_application_are_in_the_delivery_and_in_the_report() {
    let mut pair = Pair::new();
    assert_eq!(
        pair.interval(1, &[]).encode().len(),
        Report::LENGTH,
        "an application that reads costs nothing"
    );
    let mut pair = Pair::new();
    pair.arrivals.on_unread(at(400));
    let report = pair.interval(1, &[]);
    assert_eq!((report.received.unread, report.encode().len()), (ms(100), Report::LENGTH + 8));
    assert_eq!(Report::decode(&report.encode()), Some(report.clone()));
    assert_eq!(pair.arrivals.take().unwrap().unread, ms(100));
    assert_eq!(pair.accept(report.clone()).unwrap().unread, ms(100));
    pair.arrivals.on_read(at(650));
    let second = pair.interval(2, &[]);
    let less = Report { received: Received { unread: ms(99), ..second.received }, ..second.clone() };
    assert_eq!(pair.accept(less), Err(ReportError::Contradiction("the time of unread data falls")));
    assert_eq!(pair.accept(second).unwrap().unread, ms(150));
    assert_eq!(pair.arrivals.take().unwrap().unread, ms(150));
    let long = Report { received: Received { unread: ms(501), ..report.received }, ..report };
    assert_eq!(Report::decode(&long.encode()), None, "longer than the measurement");
}

/// Messages that the receiving host dropped are lost, and both ends know how many it dropped.
#[test]
fn datagrams_dropped_at_a_full_buffer_are_in_the_delivery_and_in_the_report() {
    let mut pair = Pair::new();
    pair.arrivals.on_overflow(at(400), 3);
    let report = pair.interval(1, &[20, 21, 22]);
    assert_eq!((report.received.overflowed, report.encode().len()), (3, Report::LONGEST));
    assert_eq!(Report::decode(&report.encode()), Some(report.clone()));
    let delivery = pair.accept(report.clone()).unwrap();
    assert_eq!((delivery.overflowed, delivery.lost), (3, 3));
    assert_eq!(pair.arrivals.take().unwrap().overflowed, 3);
    // One before a datagram of the interval after the next counts there.
    pair.arrivals.on_overflow(at(1000), 1);
    assert_eq!(pair.arrivals.take().unwrap().overflowed, 0);
    let fewer = |overflowed| {
        let received = Received { overflowed, ..report.received };
        Report { number: 2, elapsed: ms(1000), received, stamps: stamps(1000), ..report.clone() }
    };
    let falls = Err(ReportError::Contradiction("the datagrams dropped by the host fall"));
    assert_eq!(pair.accept(fewer(2)), falls);
    assert_eq!(pair.accept(fewer(4)).unwrap().overflowed, 1);
    // A value that is left out is never written as 0.
    let mut zero = report.encode();
    zero[Report::LENGTH..].fill(0);
    assert_eq!((Report::decode(&zero), Report::decode(&zero[..Report::LENGTH + 8])), (None, None));
    assert!(Report::decode(&zero[..Report::LENGTH]).is_some());
}
