use super::*;
use crate::monitor::Spread;
use cutline_params::{ParameterValue, conformance};
use cutline_quality::spec::Builder;

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// The interval that begins after so many halves of a second, in which 35 of 35 messages arrived: 70 messages/s with a delay
/// of 50 ms, a jitter of 5 ms and a gap of 20 ms.
fn good(number: u64) -> Delivery {
    let spread = |worst| Spread { mean: ms(worst / 2), quantile: ms(worst), worst: ms(worst) };
    let since = Instant::ZERO + ms(number * 500);
    Delivery {
        since,
        until: since + ms(500),
        sent: 35,
        messages: 35,
        bytes: 35_000,
        delay: Some(spread(50)),
        jitter: Some(spread(5)),
        gap: ms(20),
        silence: ms(5),
        ..Delivery::default()
    }
}

/// Specification of NetVideo (QoSockets section IV).
fn video() -> Builder {
    Specification::builder()
        .rates(60.0, 80.0, 100.0)
        .max_delay(ms(100))
        .max_gap(ms(50))
        .jitter(ms(50))
        .loss(5.0)
        .recovery(ms(5000))
}

fn watch() -> Watch {
    Watch::new(&video().build().unwrap(), WatchParams::default()).unwrap()
}

fn delay(number: u64, quantile: u64) -> Delivery {
    let delay = Spread { mean: ms(1), quantile: ms(quantile), worst: ms(quantile) };
    Delivery { delay: Some(delay), ..good(number) }
}

fn events(watch: &mut Watch) -> Vec<ViolationEvent> {
    std::iter::from_fn(|| watch.event()).collect()
}

/// Gives an interval and returns the measures that are violated from now on.
fn violated(watch: &mut Watch, delivery: &Delivery, demand: Option<OfferedMessages>) -> Vec<Measure> {
    watch.on_interval(delivery, Duration::ZERO, demand);
    let begun = events(watch).into_iter().filter_map(|event| match event {
        ViolationEvent::Violated(violation) => Some(violation.measure),
        ViolationEvent::Restored { .. } => None,
    });
    begun.collect()
}

#[test]
fn the_parameters_are_described_and_bad_ones_refused() {
    let parameters = WatchParams::describe();
    let make = |values: &[(&str, ParameterValue)]| {
        WatchParams::from_values(values.iter().map(|(name, value)| (*name, value.clone())))
            .map(|params| params.values())
    };
    conformance::parameters_are_complete("watch", &parameters);
    conformance::defaults_are_what_the_description_says("watch", &parameters, &make);
    conformance::bad_parameters_are_refused_by_name("watch", &parameters, &make);
}

#[test]
fn measures_within_the_limits_are_assessed_without_events() {
    let mut watch = watch();
    let assessment = watch.on_interval(&good(0), Duration::ZERO, None);
    let position = |measure| assessment.get(measure).unwrap().position;
    assert_eq!((position(Measure::Rate), position(Measure::Delay)), (0.5, 0.5));
    assert_eq!((position(Measure::Jitter), position(Measure::Gap)), (0.9, 0.6));
    assert_eq!((position(Measure::Loss), assessment.get(Measure::Delay).unwrap().value), (1.0, 50.0));
    assert_eq!(assessment.worst(&[Measure::Jitter, Measure::Gap]), Some(0.6));
    assert!(events(&mut watch).is_empty() && watch.operation().is_inside());
    assert_eq!(watch.counts(), [0; 6]);
}

#[test]
fn a_violation_has_parameter_limit_value_and_since_and_ends_after_a_second_within() {
    let mut watch = watch();
    watch.on_interval(&good(0), Duration::ZERO, None);
    for (number, quantile) in [(1, 120), (2, 180), (3, 150)] {
        watch.on_interval(&delay(number, quantile), Duration::ZERO, None);
    }
    let begun = Violation {
        origin: ViolationOrigin::Network,
        measure: Measure::Delay,
        limit: 100.0,
        measured: 120.0,
        error: 0.0,
        since: Instant::ZERO + ms(500),
    };
    assert_eq!(events(&mut watch), [ViolationEvent::Violated(begun)], "one event for all three");
    let worst = Violation { measured: 180.0, ..begun };
    assert_eq!(watch.violations().collect::<Vec<_>>(), [worst]);
    // A single interval within the limit does not end it.
    watch.on_interval(&good(4), Duration::ZERO, None);
    watch.on_interval(&delay(5, 101), Duration::ZERO, None);
    watch.on_interval(&good(6), Duration::ZERO, None);
    // One that says nothing about the delay neither.
    watch.on_interval(&Delivery { delay: None, ..good(7) }, Duration::ZERO, None);
    assert_eq!(events(&mut watch), []);
    watch.on_interval(&good(8), Duration::ZERO, None);
    let over = ViolationEvent::Restored { violation: worst, measured: 50.0, after: ms(2500) };
    assert_eq!(events(&mut watch), [over]);
    assert_eq!((watch.violations().count(), watch.counts()), (0, [0, 1, 0, 0, 0, 0]));
}

#[test]
fn a_delay_is_violated_only_beyond_the_error_of_the_clocks() {
    let mut watch = watch();
    let assessment = watch.on_interval(&delay(0, 110), ms(10), None);
    let judged = assessment.get(Measure::Delay).unwrap();
    assert_eq!((judged.value, judged.position, judged.is_violated), (110.0, 0.0, false));
    watch.on_interval(&delay(1, 111), ms(10), None);
    let [ViolationEvent::Violated(violation)] = events(&mut watch)[..] else { panic!("one event") };
    assert_eq!((violation.measured, violation.error, violation.limit), (111.0, 10.0, 100.0));
}

#[test]
fn a_rate_is_violated_if_the_network_delivers_less_and_not_if_the_application_offers_less() {
    let interval = |messages, sent| Delivery { messages, sent, lost: 0, ..good(0) };
    let offered = |messages| Some(OfferedMessages { messages, time: ms(500) });
    // 60 messages/s are 30 in 0.5 s; 29 may be a matter of where the interval begins.
    assert_eq!(violated(&mut watch(), &interval(29, 29), offered(30)), []);
    assert_eq!(violated(&mut watch(), &interval(28, 28), offered(30)), [Measure::Rate]);
    assert_eq!(violated(&mut watch(), &interval(20, 20), offered(20)), [], "the application offers no more");
    // Sequence numbers show the sent traffic if nothing else does.
    assert_eq!(violated(&mut watch(), &interval(20, 35), None), [Measure::Rate]);
    // An application that was held back for all of the interval would have offered more.
    let held = Some(OfferedMessages { messages: 0, time: Duration::ZERO });
    assert_eq!(violated(&mut watch(), &interval(20, 20), held), [Measure::Rate]);
}

#[test]
fn gap_jitter_and_recovery_are_compared_with_their_limits() {
    let gap = Delivery { gap: ms(51), ..good(0) };
    assert_eq!(violated(&mut watch(), &gap, None), [Measure::Gap]);
    let jitter = Spread { mean: ms(2), quantile: ms(51), worst: ms(60) };
    let jitter = Delivery { jitter: Some(jitter), ..good(0) };
    assert_eq!(violated(&mut watch(), &jitter, None), [Measure::Jitter]);
    let nothing = |number, silence| Delivery {
        messages: 0,
        sent: 0,
        delay: None,
        jitter: None,
        gap: ms(silence),
        silence: ms(silence),
        ..good(number)
    };
    let mut watch = watch();
    let demand = Some(OfferedMessages { messages: 35, time: ms(500) });
    assert_eq!(violated(&mut watch, &nothing(9, 500), demand), [Measure::Rate, Measure::Gap]);
    assert_eq!(violated(&mut watch, &nothing(18, 5000), demand), []);
    watch.on_interval(&nothing(19, 5500), Duration::ZERO, demand);
    let [ViolationEvent::Violated(violation)] = events(&mut watch)[..] else { panic!("one event") };
    assert_eq!((violation.measure, violation.measured), (Measure::Recovery, 5500.0));
    assert_eq!(violation.since, Instant::ZERO + ms(10_000 - 5500), "when the last message arrived");
}

#[test]
fn a_sender_that_sends_nothing_violates_no_rate_and_no_gap() {
    let nothing = Delivery { messages: 0, sent: 0, delay: None, gap: ms(500), silence: ms(500), ..good(0) };
    let idle = Some(OfferedMessages { messages: 0, time: ms(500) });
    assert_eq!(violated(&mut watch(), &nothing, idle), []);
    assert_eq!(violated(&mut watch(), &nothing, None), [Measure::Gap], "nobody knows that it sends nothing");
}

#[test]
fn silence_of_the_reports_is_a_broken_connection() {
    let mut watch = watch();
    watch.on_silence(Instant::ZERO + ms(6000), ms(5000), false);
    assert_eq!(events(&mut watch), []);
    watch.on_silence(Instant::ZERO + ms(6500), ms(5500), false);
    let [ViolationEvent::Violated(violation)] = events(&mut watch)[..] else { panic!("one event") };
    assert_eq!((violation.measure, violation.since), (Measure::Recovery, Instant::ZERO + ms(1000)));
    for number in 14..16 {
        watch.on_interval(&good(number), Duration::ZERO, None);
    }
    let [ViolationEvent::Restored { after, .. }] = events(&mut watch)[..] else { panic!("one event") };
    assert_eq!(after, ms(6000));
}

#[test]
fn one_lost_message_at_fifty_a_second_is_no_violation_of_one_per_cent() {
    let spec = Specification::builder().loss(1.0).build().unwrap();
    let mut watch = Watch::new(&spec, WatchParams::default()).unwrap();
    let interval =
        |number, lost: u64| Delivery { sent: 25, messages: 25 - lost, lost: lost as i64, ..good(number) };
    for number in 0..40 {
        // One in 200: 0.5 %.
        let delivery = interval(number, u64::from(number % 8 == 3));
        assert_eq!(violated(&mut watch, &delivery, None), [], "{number}");
    }
    // Three in 200 are 1.5 %.
    assert_eq!(violated(&mut watch, &interval(40, 1), None), []);
    assert_eq!(violated(&mut watch, &interval(41, 1), None), [Measure::Loss]);
    let [violation] = watch.violations().collect::<Vec<_>>()[..] else { panic!("one violation") };
    assert_eq!((violation.limit, violation.measured), (1.0, 1.5));
    // The one of interval 35 is not among the latest 200 from interval 43 on; a second later the violation is over.
    let over = (42..60).find(|number| {
        watch.on_interval(&interval(*number, 0), Duration::ZERO, None);
        watch.event().is_some()
    });
    assert_eq!(over, Some(44));
    assert_eq!(watch.on_interval(&interval(60, 0), ms(0), None).get(Measure::Loss).unwrap().position, 1.0);
}

#[test]
fn a_limit_of_no_loss_is_violated_by_the_first_lost_message() {
    let spec = Specification::builder().loss(0.0).build().unwrap();
    let mut watch = Watch::new(&spec, WatchParams::default()).unwrap();
    let lost = Delivery { messages: 34, lost: 1, ..good(0) };
    assert_eq!(violated(&mut watch, &lost, None), [Measure::Loss]);
}

#[test]
fn another_specification_ends_violations_of_measures_without_limit() {
    let mut watch = watch();
    watch.on_interval(&Delivery { gap: ms(70), ..delay(0, 150) }, Duration::ZERO, None);
    assert_eq!(events(&mut watch).len(), 2);
    let spec = Specification::builder().max_delay(ms(130)).build().unwrap();
    watch.renegotiate(Instant::ZERO + ms(600), &spec);
    let [ViolationEvent::Restored { violation, measured, after }] = events(&mut watch)[..] else {
        panic!("one event")
    };
    assert_eq!((violation.measure, measured, after), (Measure::Gap, 70.0, ms(600)));
    assert_eq!(watch.operation().seen().count(), 0);
    watch.on_interval(&delay(1, 140), Duration::ZERO, None);
    let [violation] = watch.violations().collect::<Vec<_>>()[..] else { panic!("the delay's") };
    assert_eq!((violation.limit, violation.measured, violation.since), (130.0, 150.0, Instant::ZERO));
    assert_eq!(violated(&mut watch, &Delivery { gap: ms(70), ..delay(2, 120) }, None), []);
}

#[test]
fn without_limits_nothing_is_violated() {
    let mut watch = Watch::new(&Specification::OPEN, WatchParams::default()).unwrap();
    let bad = Delivery { messages: 0, lost: 35, gap: ms(9999), silence: ms(9999), ..good(0) };
    assert_eq!(watch.on_interval(&bad, Duration::ZERO, None), Assessment::default());
    watch.on_silence(Instant::ZERO, ms(9999), false);
    assert_eq!(events(&mut watch), []);
}

#[test]
fn pending_events_are_bounded() {
    let mut watch = Watch::new(
        &video().build().unwrap(),
        WatchParams { restore: Duration::ZERO, ..WatchParams::default() },
    )
    .unwrap();
    for number in 0..1000 {
        watch.on_interval(&delay(number, if number % 2 == 0 { 500 } else { 5 }), Duration::ZERO, None);
    }
    assert_eq!((events(&mut watch).len(), watch.counts()[1]), (MOST_WAITING, 500));
}

#[test]
fn the_origin_follows_from_the_reports_of_both_ends() {
    let slow = Delivery { messages: 5, ..good(0) };
    let demand = |held: u64| Some(OfferedMessages { messages: 35, time: ms(500 - held) });
    for (unread, held, place) in [
        (0, 0, ViolationOrigin::Network),
        (49, 49, ViolationOrigin::Network),
        (0, 50, ViolationOrigin::SendingHost),
        (50, 0, ViolationOrigin::ReceivingHost),
        // A receiver that does not read fills the sender's queue as well.
        (400, 400, ViolationOrigin::ReceivingHost),
        (500, 400, ViolationOrigin::ReceivingHost),
        // A sender that paces itself is not excused by a reader that paused once.
        (50, 400, ViolationOrigin::SendingHost),
        (400, 50, ViolationOrigin::ReceivingHost),
    ] {
        let mut watch = watch();
        watch.on_interval(&Delivery { unread: ms(unread), ..slow }, Duration::ZERO, demand(held));
        let violation = watch.violations().find(|it| it.measure == Measure::Rate).expect("too slow");
        assert_eq!(violation.origin, place, "{unread} ms unread, {held} ms held back");
    }
    // What the receiver does not read is late, whatever the sender's queue does.
    let mut watch = watch();
    watch.on_interval(&Delivery { unread: ms(50), ..delay(0, 200) }, Duration::ZERO, demand(0));
    assert!(
        watch
            .violations()
            .any(|it| (it.measure, it.origin) == (Measure::Delay, ViolationOrigin::ReceivingHost))
    );
}

#[test]
fn drops_of_the_receiving_host_are_its_own_loss() {
    let spec = Specification::builder().loss(1.0).build().unwrap();
    for (lost, overflowed, origin) in [
        (10, 0, ViolationOrigin::Network),
        (10, 4, ViolationOrigin::Network),
        (10, 5, ViolationOrigin::ReceivingHost),
        // Control messages are dropped as well.
        (10, 12, ViolationOrigin::ReceivingHost),
        (11, 5, ViolationOrigin::Network),
    ] {
        let mut watch = Watch::new(&spec, WatchParams::default()).unwrap();
        let delivery = Delivery { sent: 35, messages: 35 - lost, lost: lost as i64, overflowed, ..good(0) };
        watch.on_interval(&delivery, Duration::ZERO, None);
        let [violation] = watch.violations().collect::<Vec<_>>()[..] else { panic!("one violation") };
        assert_eq!(violation.origin, origin, "{overflowed} of {lost}");
    }
    // It says nothing about a delay.
    let mut watch = watch();
    watch.on_interval(&Delivery { overflowed: 9, ..delay(0, 200) }, Duration::ZERO, None);
    let late = watch.violations().find(|violation| violation.measure == Measure::Delay).unwrap();
    assert_eq!(late.origin, ViolationOrigin::Network);
}

#[test]
fn silence_of_an_end_with_a_blocked_application_is_its_own() {
    for (is_unread, origin) in [(false, ViolationOrigin::Network), (true, ViolationOrigin::SendingHost)] {
        let mut watch = watch();
        watch.on_silence(Instant::ZERO + ms(6500), ms(5500), is_unread);
        let [violation] = watch.violations().collect::<Vec<_>>()[..] else { panic!("one violation") };
        assert_eq!((violation.measure, violation.origin), (Measure::Recovery, origin));
    }
}
