use super::*;

const MSS: u64 = 1000;

/// A sample of 100 kB/s at this time, without anything else.
pub(in crate::tcp) fn sample(ms: u64) -> RateSample {
    RateSample {
        now: Instant::ZERO + Duration::from_millis(ms),
        newly_delivered: 0,
        newly_lost: 0,
        newly_marked: 0,
        total_delivered: 0,
        total_lost: 0,
        prior_delivered: Some(0),
        delivered: 10_000,
        interval: Duration::from_millis(100),
        is_app_limited: false,
        rtt: None,
        is_ack_delayed: false,
        srtt: Duration::ZERO,
        prior_in_flight: 0,
        in_flight: 0,
        tx_in_flight: 10_000,
        lost_since_sent: 0,
        is_window_limited: false,
        next_send: Instant::ZERO,
        state: LossState::Open,
    }
}

fn bbr() -> (Bbr, Window) {
    let tcp = Params { algorithm: crate::tcp::Algorithm::Bbr, ..Params::default() };
    (Bbr::begin(&NoParams {}, &tcp), Window { cwnd: 10 * MSS, ssthresh: u64::MAX })
}

/// A round trip of 100 ms with this rate in bytes per second, which is delivered at once.
fn round(bbr: &mut Bbr, window: &mut Window, n: u64, rate: f64, more: RateSample) {
    let delivered = (rate / 10.0) as u64;
    let sample = RateSample {
        now: Instant::ZERO + Duration::from_millis(100 * n),
        newly_delivered: delivered,
        prior_delivered: Some(bbr.round_end),
        total_delivered: bbr.round_end + delivered,
        delivered,
        rtt: Some(Duration::from_millis(100)),
        srtt: Duration::from_millis(100),
        ..more
    };
    bbr.delivered(window, &sample);
}

#[test]
fn the_first_rate_is_that_of_the_initial_window() {
    let (mut bbr, mut window) = bbr();
    // 10,000 B in the assumed 1 ms, then in the measured 100 ms; with the bytes that this acknowledgement adds to the window.
    assert_eq!(bbr.pacing_rate(), Some(Rate::from_bps(230_800_000)));
    round(&mut bbr, &mut window, 1, 10e3, sample(0));
    let expected = HIGH_GAIN * 10e3 / 0.1;
    assert!((bbr.pacing_rate - expected).abs() < 1.0, "{} {expected}", bbr.pacing_rate);
}

#[test]
fn startup_ends_after_three_round_trips_without_growth_and_drain_with_the_queue() {
    let (mut bbr, mut window) = bbr();
    for (n, rate) in [(1, 100e3), (2, 200e3), (3, 400e3), (4, 450e3), (5, 450e3)] {
        round(&mut bbr, &mut window, n, rate, sample(0));
        assert_eq!(bbr.mode, Mode::Startup, "round trip {n}");
    }
    let queued = RateSample { in_flight: 90_000, ..sample(0) };
    round(&mut bbr, &mut window, 6, 450e3, queued);
    assert_eq!(bbr.mode, Mode::Drain);
    assert!((bbr.pacing_rate - 450e3 * 0.99 / HIGH_GAIN).abs() < 1.0);
    // 450 kB/s * 100 ms, and three quanta of two segments make 51, so 52.
    round(&mut bbr, &mut window, 7, 450e3, RateSample { in_flight: 53_000, ..sample(0) });
    assert_eq!(bbr.mode, Mode::Drain);
    round(&mut bbr, &mut window, 8, 450e3, RateSample { in_flight: 52_000, ..sample(0) });
    assert_eq!(bbr.mode, Mode::ProbeBandwidth);
}

#[test]
fn an_application_with_little_to_send_does_not_lower_the_estimate_and_may_raise_it() {
    let (mut bbr, mut window) = bbr();
    round(&mut bbr, &mut window, 1, 500e3, sample(0));
    let limited = RateSample { is_app_limited: true, ..sample(0) };
    (2..50).for_each(|n| round(&mut bbr, &mut window, n, 50e3, limited));
    assert!((bbr.bandwidth() - 500e3).abs() < 1.0, "{}", bbr.bandwidth());
    assert!(!bbr.is_full, "round trips that the application limits do not end Startup");
    round(&mut bbr, &mut window, 50, 600e3, limited);
    assert!((bbr.bandwidth() - 600e3).abs() < 1.0);
    // Ten round trips that it does not limit.
    (51..62).for_each(|n| round(&mut bbr, &mut window, n, 300e3, sample(0)));
    assert!((bbr.bandwidth() - 300e3).abs() < 1.0);
}

#[test]
fn the_window_is_two_products_and_three_quanta() {
    let (mut bbr, mut window) = bbr();
    (bbr.mode, bbr.is_full, bbr.cycle) = (Mode::ProbeBandwidth, true, 3);
    bbr.least_rtt = Some(Duration::from_millis(40));
    bbr.bandwidth.add(1, 1.25e6);
    (bbr.pacing_rate, bbr.window_gain) = (1.25e6, 2.0);
    window.cwnd = 200 * MSS;
    bbr.set_window(&mut window, &RateSample { newly_delivered: MSS, ..sample(0) });
    assert_eq!(window.cwnd, 106 * MSS);
}

#[test]
fn recovery_conserves_packets_for_a_round_trip_and_then_restores_the_window() {
    let (mut bbr, mut window) = bbr();
    (bbr.mode, bbr.is_full) = (Mode::ProbeBandwidth, true);
    bbr.least_rtt = Some(Duration::from_millis(100));
    bbr.bandwidth.add(1, 1e6);
    window.cwnd = 200 * MSS;
    assert_eq!(bbr.congested(&window, 0, MSS), u64::MAX);
    let recovering = RateSample {
        newly_delivered: MSS,
        newly_lost: 3 * MSS,
        in_flight: 150 * MSS,
        state: LossState::Recovery,
        ..sample(0)
    };
    bbr.set_window(&mut window, &recovering);
    assert_eq!(window.cwnd, 151 * MSS, "what has left the network may enter it");
    bbr.set_window(&mut window, &RateSample { newly_lost: 0, in_flight: 150 * MSS, ..recovering });
    assert_eq!(window.cwnd, 151 * MSS);
    let over = RateSample { newly_delivered: MSS, ..sample(0) };
    bbr.set_window(&mut window, &over);
    assert_eq!(window.cwnd, 200 * MSS + MSS);
}

#[test]
fn a_timeout_keeps_the_model_and_the_window_grows_by_delivered_bytes() {
    let (mut bbr, mut window) = bbr();
    (bbr.mode, bbr.is_full) = (Mode::ProbeBandwidth, true);
    bbr.least_rtt = Some(Duration::from_millis(100));
    bbr.bandwidth.add(1, 1e6);
    window.cwnd = 200 * MSS;
    bbr.congested(&window, 0, MSS);
    bbr.timed_out();
    window.cwnd = MSS;
    let resent = RateSample { newly_delivered: 5 * MSS, state: LossState::Timeout, ..sample(0) };
    bbr.set_window(&mut window, &resent);
    assert_eq!(window.cwnd, 6 * MSS);
    bbr.set_window(&mut window, &RateSample { newly_delivered: MSS, ..sample(0) });
    assert_eq!(window.cwnd, 201 * MSS, "the last good window");
    assert!((bbr.bandwidth() - 1e6).abs() < 1.0);
}
