//! The draft's bounds by hand.

use super::super::tests::sample;
use super::*;

const MSS: u64 = 1000;

fn bbr() -> (Bbr3, Window) {
    let tcp = Params { algorithm: crate::tcp::Algorithm::Bbr3, ..Params::default() };
    (Bbr3::begin(&NoParams {}, &tcp), Window { cwnd: 100 * MSS, ssthresh: u64::MAX })
}

fn loss(number: u64, tx_in_flight: u64) -> LostSegment {
    LostSegment {
        now: Instant::ZERO,
        seq: number * 2 * MSS,
        bytes: MSS,
        total_delivered: 0,
        tx_in_flight,
        lost_since_sent: number * MSS,
        is_app_limited: false,
    }
}

#[test]
fn the_third_of_a_hundred_losses_bounds_the_flight() {
    let (mut bbr, window) = bbr();
    (bbr.state, bbr.full_bw_reached, bbr.has_probe_samples) = (State::Up, true, true);
    (bbr.bw, bbr.min_rtt) = (1e6, Some(Duration::from_millis(100)));
    // draft-ietf-ccwg-bbr, IsInflightTooHigh(): 2 % of 100 segments are allowed.
    (1..=2).for_each(|n| bbr.lost(&window, &loss(n, 100 * MSS)));
    assert_eq!((bbr.inflight_longterm, bbr.state), (NO_BOUND, State::Up));
    bbr.lost(&window, &loss(3, 100 * MSS));
    // InflightAtLoss(): 99,000 + (0.02 * 99,000 - 2000) / 0.98.
    assert_eq!((bbr.inflight_longterm, bbr.state), (98_979, State::Down));
    // It reacts once: more losses of the same probe set no lower bound.
    bbr.lost(&window, &loss(40, 80 * MSS));
    assert_eq!(bbr.inflight_longterm, 98_979);
}

#[test]
fn outside_of_probing_a_round_trip_with_a_loss_lowers_the_short_term_bounds() {
    let (mut bbr, mut window) = bbr();
    (bbr.state, bbr.full_bw_reached) = (State::Cruise, true);
    (bbr.max_bw, bbr.bw, bbr.min_rtt) = ([1e6, 1e6], 1e6, Some(Duration::from_millis(100)));
    (bbr.probe_rtt_min, bbr.cycle_from, bbr.probe_wait) =
        (bbr.min_rtt, Instant::ZERO, Duration::from_secs(60));
    bbr.lost(&window, &loss(1, 100 * MSS));
    // The round trip delivers 50,000 B at 500 kB/s: less than 0.7 of the rate and of the window.
    let ended = RateSample {
        prior_delivered: Some(60 * MSS),
        total_delivered: 120 * MSS,
        delivered: 50 * MSS,
        newly_delivered: MSS,
        ..sample(100)
    };
    bbr.delivered(&mut window, &ended);
    assert!((bbr.bw_shortterm - 0.7e6).abs() < 1.0, "{}", bbr.bw_shortterm);
    assert_eq!((bbr.inflight_shortterm, window.cwnd), (70 * MSS, 70 * MSS));
    assert!((bbr.bw - 0.7e6).abs() < 1.0);
    bbr.start_refill(0);
    assert!(bbr.bw_shortterm.is_infinite() && bbr.inflight_shortterm == NO_BOUND);
}

#[test]
fn a_mark_ends_startup_and_bounds_the_flight() {
    let (mut bbr, window) = bbr();
    (bbr.bw, bbr.min_rtt, bbr.inflight_latest) = (1e6, Some(Duration::from_millis(100)), 130 * MSS);
    assert_eq!(bbr.marked(&window, 0, MSS), u64::MAX);
    assert_eq!((bbr.state, bbr.inflight_longterm), (State::Drain, 130 * MSS));
}

#[test]
fn the_long_term_bound_grows_by_one_two_and_four_segments() {
    let (mut bbr, _) = bbr();
    (bbr.state, bbr.full_bw_reached, bbr.inflight_longterm) = (State::Up, true, 100 * MSS);
    let window = Window { cwnd: 100 * MSS, ssthresh: u64::MAX };
    bbr.raise_slope(window.cwnd);
    for growth in [1, 2, 4] {
        let before = bbr.inflight_longterm;
        for n in 1..=100 {
            bbr.round_start = n == 100;
            let window = Window { cwnd: bbr.inflight_longterm, ..window };
            bbr.probe_upward(
                &window,
                &RateSample { newly_delivered: MSS, is_window_limited: true, ..sample(1) },
            );
        }
        let grown = (bbr.inflight_longterm - before) as f64 / MSS as f64;
        assert!((grown - growth as f64).abs() < 0.2 * growth as f64, "{grown} segments, not {growth}");
    }
}
