//! Timelines of the two ends of TFRC, after RFC 5348. Packets have 1000 B; times are in milliseconds.

use std::sync::Arc;

use cutline_transport::tfrc::{
    Feedback, Packet, Params, Receiver, Sender, throughput, throughput_with_timeout,
};
use cutline_units::{Duration, Instant};

use crate::script::ms;

const R: Duration = Duration::from_millis(100);

/// No damping of oscillations, so that the rates are those of RFC 5348 section 4.3.
fn plain() -> Params {
    Params { reduce_oscillation: false, ..Params::default() }
}

fn bulk(params: Params) -> Sender {
    let mut sender = Sender::new(&Arc::new(params), Instant::ZERO);
    sender.write_unlimited();
    sender
}

/// Sends all packets that may leave from `from` to `until`. Returns their times of departure.
fn drive(sender: &mut Sender, from: u64, until: u64) -> Vec<u64> {
    let mut left = Vec::new();
    let mut now = ms(from);
    while now <= ms(until) {
        sender.on_deadline(now);
        while let Some(packet) = sender.transmit(now) {
            left.push(packet.sent_at.as_nanos() / 1_000_000);
        }
        now = sender.deadline().max(now);
    }
    left
}

/// Feedback about the packet sent one round trip ago.
fn feedback(now: u64, x_recv: f64, p: f64) -> Feedback {
    Feedback { echo: ms(now - 100), t_delay: Duration::ZERO, x_recv, p }
}

fn report(sender: &mut Sender, now: u64, x_recv: f64, p: f64) {
    sender.on_feedback(ms(now), &feedback(now, x_recv, p));
}

fn close_to(x: f64, expected: f64) {
    assert!((x / expected - 1.0).abs() < 1e-9, "{x} is not {expected}");
}

#[test]
fn a_flow_begins_with_a_packet_and_then_its_initial_window() {
    let mut sender = bulk(plain());
    // RFC 5348 section 4.2: one packet per second before the first feedback.
    assert_eq!(drive(&mut sender, 0, 99), [0]);
    report(&mut sender, 100, 0.0, 0.0);
    // RFC 5348 section 4.2: W_init / R = 4000 B / 100 ms.
    close_to(sender.rate(), 40_000.0);
    assert_eq!(sender.rtt(), R);
    // RFC 5348 section 4.6: at intervals of s / X; the first at once, because its time has passed.
    assert_eq!(drive(&mut sender, 100, 199), [100, 125, 150, 175]);
}

#[test]
fn slow_start_doubles_the_rate_once_per_round_trip() {
    let mut sender = bulk(plain());
    drive(&mut sender, 0, 100);
    report(&mut sender, 100, 0.0, 0.0);
    drive(&mut sender, 100, 200);
    report(&mut sender, 200, 40_000.0, 0.0);
    // RFC 5348 section 4.3, step 4: 2 X, and not again before a round trip has passed.
    close_to(sender.rate(), 80_000.0);
    drive(&mut sender, 200, 250);
    report(&mut sender, 250, 40_000.0, 0.0);
    close_to(sender.rate(), 80_000.0);
    drive(&mut sender, 250, 300);
    report(&mut sender, 300, 80_000.0, 0.0);
    close_to(sender.rate(), 160_000.0);
    drive(&mut sender, 300, 410);
    // RFC 5348 section 4.3, step 4: at most twice the receive rate. Infinity and the 40,000 are older than two round trips.
    report(&mut sender, 410, 60_000.0, 0.0);
    close_to(sender.rate(), 160_000.0);
    drive(&mut sender, 410, 620);
    report(&mut sender, 620, 60_000.0, 0.0);
    close_to(sender.rate(), 120_000.0);
}

#[test]
fn with_losses_the_equation_determines_the_rate() {
    let mut sender = bulk(plain());
    drive(&mut sender, 0, 100);
    report(&mut sender, 100, 0.0, 0.0);
    drive(&mut sender, 100, 200);
    // RFC 5348 section 4.3, step 4: X_Bps if it is below the limit.
    report(&mut sender, 200, 1e6, 0.01);
    close_to(sender.rate(), throughput(1000.0, R, 0.01));
    assert_eq!(sender.loss_event_rate(), 0.01);
    drive(&mut sender, 200, 450);
    // RFC 5348 section 4.3, step 4: twice the receive rate if that is less.
    report(&mut sender, 450, 20_000.0, 0.01);
    close_to(sender.rate(), 40_000.0);
}

#[test]
fn ns_2_raises_the_rate_by_a_packet_per_round_trip() {
    let mut sender = bulk(Params { gradual_increase: true, ..plain() });
    drive(&mut sender, 0, 100);
    report(&mut sender, 100, 0.0, 0.0);
    drive(&mut sender, 100, 200);
    // s / R = 10,000 B/s for the round trip since 100 ms, from 40,000; the equation would allow 112,000.
    report(&mut sender, 200, 1e6, 0.01);
    close_to(sender.rate(), 50_000.0);
    drive(&mut sender, 200, 250);
    report(&mut sender, 250, 1e6, 0.01);
    close_to(sender.rate(), 55_000.0);
    // It falls at once.
    drive(&mut sender, 250, 350);
    report(&mut sender, 350, 1e6, 0.1);
    close_to(sender.rate(), throughput(1000.0, R, 0.1));
}

#[test]
fn ns_2_takes_its_timeout_from_a_coarse_clock() {
    let tick = Duration::from_millis(40);
    let mut sender = bulk(Params { rto_tick: Some(tick), ..plain() });
    drive(&mut sender, 0, 100);
    report(&mut sender, 100, 0.0, 0.0);
    drive(&mut sender, 100, 200);
    report(&mut sender, 200, 1e6, 0.01);
    // 100 ms are 3 ticks: sa = 24, sv = 6, then 6 - 1.
    close_to(sender.rate(), throughput_with_timeout(1000.0, R, tick * (3 + 5), 0.01, false));
}

#[test]
fn the_round_trip_is_averaged() {
    let mut sender = bulk(plain());
    drive(&mut sender, 0, 100);
    report(&mut sender, 100, 0.0, 0.0);
    // RFC 5348 section 4.3, steps 1 and 2: 0.9 * 100 + 0.1 * (200 - 50 - 30).
    let feedback = Feedback { echo: ms(50), t_delay: Duration::from_millis(30), x_recv: 0.0, p: 0.0 };
    sender.on_feedback(ms(200), &feedback);
    assert_eq!(sender.rtt(), Duration::from_millis(102));
}

#[test]
fn a_longer_round_trip_slows_the_packets_at_once() {
    let mut sender = bulk(Params::default());
    drive(&mut sender, 0, 100);
    report(&mut sender, 100, 0.0, 0.0);
    close_to(sender.instantaneous_rate(), sender.rate());
    sender.on_feedback(ms(400), &Feedback { echo: ms(0), ..feedback(400, 1e6, 0.01) });
    // RFC 5348 section 4.5: R_sqmean = 0.9 sqrt(0.1) + 0.1 sqrt(0.4), divided by sqrt(0.4).
    close_to(sender.instantaneous_rate() / sender.rate(), 0.9 * 0.5 + 0.1);
}

#[test]
fn without_feedback_the_rate_halves() {
    let mut sender = bulk(plain());
    drive(&mut sender, 0, 1999);
    close_to(sender.rate(), 1000.0);
    // RFC 5348 section 4.2: the first timer is 2 s. RFC 5348 section 4.4: half the rate.
    drive(&mut sender, 1999, 2001);
    close_to(sender.rate(), 500.0);
    assert_eq!(sender.stats().nofeedback, 1);
    // RFC 5348 section 4.4: the next timer is max(4 R, 2 s / X), which is 4 s.
    drive(&mut sender, 2001, 5999);
    assert_eq!(sender.stats().nofeedback, 1);
    drive(&mut sender, 5999, 6001);
    close_to(sender.rate(), 250.0);
}

#[test]
fn the_rate_never_falls_below_a_packet_in_64_seconds() {
    let mut sender = bulk(plain());
    drive(&mut sender, 0, 3_600_000);
    // RFC 5348 section 4.4: s / t_mbi.
    close_to(sender.rate(), 1000.0 / 64.0);
}

#[test]
fn without_feedback_a_rate_limited_by_the_equation_halves() {
    let mut sender = bulk(plain());
    drive(&mut sender, 0, 100);
    report(&mut sender, 100, 0.0, 0.0);
    drive(&mut sender, 100, 200);
    report(&mut sender, 200, 200_000.0, 0.01);
    let x_bps = throughput(1000.0, R, 0.01);
    // RFC 5348 section 4.4: X_Bps was the limit, so X becomes half of it, 4 R after the last feedback
    // (RFC 5348 section 4.3, steps 3 and 6).
    drive(&mut sender, 200, 599);
    close_to(sender.rate(), x_bps);
    drive(&mut sender, 599, 600);
    close_to(sender.rate(), x_bps / 2.0);
}

#[test]
fn without_feedback_a_rate_limited_by_the_receive_rate_halves() {
    let mut sender = bulk(plain());
    drive(&mut sender, 0, 100);
    report(&mut sender, 100, 0.0, 0.0);
    drive(&mut sender, 100, 350);
    report(&mut sender, 350, 20_000.0, 0.001);
    close_to(sender.rate(), 40_000.0);
    drive(&mut sender, 350, 750);
    // RFC 5348 section 4.4: twice X_recv was the limit, so X becomes X_recv.
    close_to(sender.rate(), 20_000.0);
}

#[test]
fn in_ns_2_the_nofeedback_timer_takes_two_round_trips_and_halves_the_rate() {
    let mut sender = bulk(Params { nofeedback_round_trips: 2, nofeedback_halves: true, ..plain() });
    drive(&mut sender, 0, 100);
    report(&mut sender, 100, 0.0, 0.0);
    drive(&mut sender, 100, 200);
    report(&mut sender, 200, 200_000.0, 0.01);
    let x_bps = throughput(1000.0, R, 0.01);
    drive(&mut sender, 200, 399);
    close_to(sender.rate(), x_bps);
    drive(&mut sender, 399, 400);
    close_to(sender.rate(), x_bps / 2.0);
    drive(&mut sender, 400, 600);
    close_to(sender.rate(), x_bps / 4.0);
}

#[test]
fn in_ns_2_the_receive_rate_limits_the_rate_to_no_less_than_a_packet_per_round_trip() {
    for (packet_per_round_trip, rate) in [(false, 2_000.0), (true, 10_000.0)] {
        let mut sender = bulk(Params { packet_per_round_trip, ..plain() });
        drive(&mut sender, 0, 100);
        report(&mut sender, 100, 0.0, 0.0);
        drive(&mut sender, 100, 450);
        // The equation allows 112,332 B/s.
        report(&mut sender, 450, 1_000.0, 0.01);
        close_to(sender.rate(), rate);
    }
}

#[test]
fn an_idle_slow_flow_keeps_its_rate() {
    let mut sender = Sender::new(&Arc::new(plain()), Instant::ZERO);
    sender.write(1000);
    drive(&mut sender, 0, 100);
    report(&mut sender, 100, 0.0, 0.0);
    close_to(sender.rate(), 40_000.0);
    // RFC 5348 section 4.4: idle since the timer was set, and X below twice the recover_rate.
    drive(&mut sender, 100, 60_000);
    close_to(sender.rate(), 40_000.0);
    assert!(sender.stats().nofeedback > 100);
}

#[test]
fn a_constant_rate_application_is_not_limited_to_twice_its_rate() {
    let mut sender = Sender::new(&Arc::new(plain()), Instant::ZERO);
    let mut now = 0;
    // 1000 B every 50 ms, 20,000 B/s; feedback each 100 ms.
    while now < 2000 {
        sender.write(1000);
        drive(&mut sender, now, now + 49);
        now += 50;
        if now % 100 == 0 {
            report(&mut sender, now, 20_000.0, 0.0);
        }
    }
    // RFC 5348 section 4.3, step 4: data-limited, so the largest X_recv counts; never below the initial rate.
    close_to(sender.rate(), 40_000.0);
    assert_eq!(sender.stats().dropped_at_sender, 0);
    // RFC 5348 section 4.3, step 4: after a loss in a data-limited interval, 0.85 X_recv without doubling.
    report(&mut sender, 2000, 20_000.0, 0.000_1);
    close_to(sender.rate(), 0.85 * 20_000.0);
}

#[test]
fn packets_that_the_rate_does_not_allow_are_dropped_at_the_sender() {
    let mut sender = Sender::new(&Arc::new(plain()), Instant::ZERO);
    let mut sent = 0;
    // 100 packets in 1 s at a packet per second: one leaves at once, two wait, the others are dropped.
    for i in 0..100 {
        sender.write(1000);
        sent += drive(&mut sender, i * 10, i * 10 + 9).len();
    }
    assert_eq!((sent, sender.backlog(), sender.stats().dropped_at_sender), (1, 2, 97));
}

#[test]
fn with_a_coarse_timer_packets_leave_up_to_half_its_granularity_early() {
    let params = Params { t_gran: Duration::from_millis(10), ..plain() };
    let mut sender = bulk(params);
    drive(&mut sender, 0, 99);
    report(&mut sender, 100, 0.0, 0.0);
    assert_eq!(drive(&mut sender, 100, 100), [100]);
    // RFC 5348 section 8.3: t_delta = min(t_ipi, t_gran, R) / 2 = 5 ms before the nominal 125 ms. The next nominal time is
    // still 150 ms.
    assert_eq!(sender.deadline(), ms(120));
    assert_eq!(drive(&mut sender, 120, 199), [120, 145, 170, 195]);
}

// The receiver.

/// A caller with a queue of its own, in which there is always a packet of 1000 B, sends what an endless supply sends.
#[test]
fn a_queue_of_the_caller_is_served_as_the_senders_own() {
    let (mut own, mut callers) = (bulk(plain()), Sender::new(&Arc::new(plain()), ms(0)));
    let mut sent = 0;
    for now in 0..3000 {
        if [100, 200, 300, 800, 1000, 2500].contains(&now) {
            let p = if now > 500 { 0.02 } else { 0.0 };
            report(&mut own, now, 2e4, p);
            report(&mut callers, now, 2e4, p);
        }
        own.on_deadline(ms(now));
        callers.on_deadline(ms(now));
        while let Some(packet) = own.transmit(ms(now)) {
            assert!(callers.ready_at() <= ms(now), "at {now} ms");
            assert_eq!(callers.depart(ms(now), 1000), packet);
            sent += 1;
        }
        assert!(callers.ready_at() > ms(now), "at {now} ms");
        callers.hold(ms(now));
        assert_eq!((callers.rate(), callers.awaits_feedback()), (own.rate(), own.awaits_feedback()));
    }
    assert!(sent > 50, "{sent}");
}

#[test]
fn a_packet_that_is_longer_than_a_segment_delays_the_next_one() {
    let mut sender = Sender::new(&Arc::new(plain()), ms(0));
    sender.depart(ms(0), 3000);
    // 1000 B/s before the first feedback.
    assert_eq!(sender.ready_at(), ms(3000));
    sender.set_segment_size(4000);
    assert_eq!(sender.ready_at(), ms(4000));
}

fn packet(seq: u64, sent: u64, rtt: u64) -> Packet {
    Packet { seq, sent_at: ms(sent), rtt: Duration::from_millis(rtt), len: 1000 }
}

/// A receiver of packets 0..=`last`, one per 10 ms from 1000 ms on, and its last feedback with the time.
fn fed(last: u64, lost: &[u64]) -> (Receiver, Option<(u64, Feedback)>) {
    let mut receiver = Receiver::new(&Arc::new(plain()));
    receiver.on_packet(ms(900), &packet(0, 850, 0), false);
    let mut reported = None;
    for seq in 1..=last {
        let now = 990 + seq * 10;
        while receiver.deadline() < ms(now) {
            let at = receiver.deadline();
            reported = receiver.on_deadline(at).map(|feedback| (at.as_nanos() / 1_000_000, feedback));
        }
        if !lost.contains(&seq) {
            let early = receiver.on_packet(ms(now), &packet(seq, now - 50, 100), false);
            reported = early.map(|feedback| (now, feedback)).or(reported);
        }
    }
    (receiver, reported)
}

#[test]
fn the_first_packet_is_reported_at_once() {
    let mut receiver = Receiver::new(&Arc::new(plain()));
    let first = receiver.on_packet(ms(50), &packet(0, 0, 0), false);
    // RFC 5348 section 6.3: p = 0 and X_recv = 0.
    assert_eq!(first, Some(Feedback { echo: ms(0), t_delay: Duration::ZERO, x_recv: 0.0, p: 0.0 }));
    assert_eq!(receiver.deadline(), Instant::FAR_FUTURE);
}

#[test]
fn feedback_leaves_once_per_round_trip_with_the_receive_rate() {
    let (receiver, reported) = fed(35, &[]);
    // RFC 5348 section 6.2: 100 B/ms; the timer expires at 1100, 1200 and 1300 ms.
    let (at, feedback) = reported.expect("three round trips");
    assert_eq!((at, feedback.p, feedback.x_recv), (1300, 0.0, 100_000.0));
    // RFC 5348 section 3.2.2: the packet of 1300 ms has just arrived.
    assert_eq!((feedback.echo, feedback.t_delay), (ms(1250), Duration::ZERO));
    assert_eq!((receiver.stats().feedback, receiver.deadline()), (4, ms(1400)));
}

#[test]
fn a_loss_event_is_reported_at_once() {
    let (receiver, reported) = fed(28, &[25]);
    // RFC 5348 section 6.1: at once, with the third packet after the hole (RFC 5348 section 5.1), 28, at 1270 ms.
    let (at, feedback) = reported.expect("a loss");
    assert_eq!(at, 1270);
    // RFC 5348 section 6.3.1: the first interval is that at which the equation gives 100,000 B/s.
    let back = throughput(1000.0, R, feedback.p);
    assert!((back / 100_000.0 - 1.0).abs() < 0.05, "{back} B/s at p = {}", feedback.p);
    assert_eq!((receiver.stats().lost, receiver.stats().loss_events), (1, 1));
}

#[test]
fn losses_in_one_round_trip_are_one_event() {
    // RFC 5348 section 5.2: a round trip is ten packets, so 22 and 27 belong to the event of 20, and 31 does not.
    let (receiver, _) = fed(60, &[20, 22, 27, 31]);
    assert_eq!((receiver.stats().lost, receiver.stats().loss_events), (4, 2));
}

#[test]
fn marks_are_losses_when_ecn_is_on() {
    for (ecn, events) in [(true, 1), (false, 0)] {
        let mut receiver = Receiver::new(&Arc::new(Params { ecn, ..plain() }));
        receiver.on_packet(ms(0), &packet(0, 0, 100), false);
        let reported = receiver.on_packet(ms(10), &packet(1, 10, 100), true);
        // RFC 5348 sections 5.1 and 6.1: a mark is a loss event at once.
        assert_eq!((reported.is_some(), receiver.stats().loss_events), (ecn, events));
        assert_eq!(receiver.stats().marked, 1);
    }
}

#[test]
fn a_mark_on_the_first_packet_does_not_stop_the_flow() {
    let params = Arc::new(Params { ecn: true, ..plain() });
    let mut receiver = Receiver::new(&params);
    let mut sender = bulk(*params);
    assert_eq!(drive(&mut sender, 0, 49), [0]);
    let first = receiver.on_packet(ms(50), &packet(0, 0, 0), true).expect("the first packet is reported");
    // RFC 5348 section 6.3.1: half a packet per round trip, 1 / p = 4.85 packets.
    assert!((first.p - 0.2064).abs() < 1e-4, "{}", first.p);
    sender.on_feedback(ms(100), &first);
    // The rate is half a packet in 100 ms, and not one in 64 s.
    close_to(sender.rate(), throughput(1000.0, R, first.p));
    assert!((sender.rate() - 5_000.0).abs() < 1.0, "{}", sender.rate());
    // The next packet leaves 200 ms after the first. With it the receiver begins to measure. A round trip later it has
    // received nothing more.
    assert_eq!(drive(&mut sender, 100, 250), [200]);
    assert_eq!(receiver.on_packet(ms(250), &packet(1, 200, 100), false), None);
    let second = receiver.on_deadline(ms(350)).expect("a round trip after the second packet");
    assert_eq!(second.x_recv, 0.0);
    sender.on_feedback(ms(400), &second);
    assert!(sender.rate() > 4_000.0, "{}", sender.rate());
}

#[test]
fn nothing_is_reported_without_packets_and_the_timer_keeps_its_period() {
    let (mut receiver, _) = fed(10, &[]);
    let at = receiver.deadline();
    assert_eq!(at, ms(1100));
    assert!(receiver.on_deadline(at).is_some());
    // RFC 5348 section 6.2: no feedback while nothing was received.
    assert_eq!(receiver.deadline(), Instant::FAR_FUTURE);
    assert!(receiver.on_packet(ms(1550), &packet(11, 1500, 100), false).is_none());
    // RFC 5348 section 6.2: the timer has been restarted at 1200, 1300, 1400 and 1500 ms.
    assert_eq!(receiver.deadline(), ms(1600));
    let feedback = receiver.on_deadline(ms(1600)).expect("one packet");
    // One packet arrived in the round trip from 1500 ms on.
    assert_eq!(feedback.x_recv, 10_000.0);
    // RFC 5348 section 3.2.2: that packet arrived 50 ms ago.
    assert_eq!((feedback.echo, feedback.t_delay), (ms(1500), Duration::from_millis(50)));
}

#[test]
fn duplicates_change_nothing() {
    let (mut receiver, _) = fed(20, &[]);
    let before = *receiver.stats();
    assert_eq!(receiver.on_packet(ms(1200), &packet(7, 1000, 100), false), None);
    assert_eq!(*receiver.stats(), before);
}
