use super::*;

const MSS: u64 = 1000;

fn at(seconds: f64) -> Instant {
    Instant::ZERO + Duration::from_secs_f64(seconds)
}

/// Acknowledges a window every `rtt` seconds in congestion avoidance, from `from` up to `until` seconds.
fn drive(cubic: &mut Cubic, window: &mut Window, rtt: f64, from: f64, until: f64) {
    let mut now = from;
    while now <= until + 1e-9 {
        let segments = window.cwnd / MSS;
        for i in 0..segments {
            // Spread over the round trip, as acknowledgements are.
            let when = at(now + rtt * i as f64 / segments as f64);
            cubic.avoid(window, &Acked { bytes: MSS, now: when, srtt: Duration::from_secs_f64(rtt) }, MSS);
        }
        now += rtt;
    }
}

/// A window of `w_max` segments that has just been reduced.
fn reduced(w_max: u64) -> (Cubic, Window) {
    let mut cubic = Cubic::default();
    let mut window = Window { cwnd: w_max * MSS, ssthresh: u64::MAX };
    window.ssthresh = cubic.congested(&window, window.cwnd, MSS);
    window.cwnd = window.ssthresh;
    (cubic, window)
}

#[test]
fn the_worked_numbers() {
    // RFC 9438 figure 2: cbrt(30 / 0.4) = 4.2172 s.
    let k = plateau_after(100.0, 70.0);
    assert!((k - 4.217_163).abs() < 1e-6, "{k}");
    // RFC 9438 figure 1: 0.4 (2 - 4.2172)^3 + 100; at 0 the reduced window, at K the plateau.
    assert!((w_cubic(100.0, k, 2.0) - 95.640).abs() < 0.001);
    assert!((w_cubic(100.0, k, 0.0) - 70.0).abs() < 1e-9);
    assert!((w_cubic(100.0, k, k) - 100.0).abs() < 1e-9);
}

#[test]
fn a_congestion_event_reduces_the_window_to_seven_tenths_and_at_least_two_segments() {
    let (_, window) = reduced(100);
    // RFC 9438 section 4.6: 0.7 * 100, and no less than two segments.
    assert_eq!(window.ssthresh, 70_000);
    assert_eq!(reduced(2).1.ssthresh, 2_000);
}

#[test]
fn the_window_follows_the_cubic() {
    // The round trip is long, so that the cubic is above Reno's window.
    let rtt = 0.2;
    let (mut cubic, mut window) = reduced(1000);
    let k = plateau_after(1000.0, 700.0);
    let mut from = 0.0;
    for until in [2.0, 5.0, 8.0, 12.0] {
        drive(&mut cubic, &mut window, rtt, from, until);
        from = until + rtt;
        // RFC 9438 section 4.2: the target is the cubic one round trip ahead, below the plateau (RFC 9438 section 4.4)
        // and above it (RFC 9438 section 4.5).
        let expected = w_cubic(1000.0, k, from);
        let ratio = window.cwnd as f64 / MSS as f64 / expected;
        assert!((ratio - 1.0).abs() < 0.02, "{} segments after {from} s, not {expected}", window.cwnd / MSS);
    }
}

#[test]
fn small_windows_grow_like_reno() {
    let rtt = 0.01;
    let (mut cubic, mut window) = reduced(20);
    let before = window.cwnd as f64;
    drive(&mut cubic, &mut window, rtt, 0.0, 0.1);
    // RFC 9438 figure 4: alpha = 0.53 segments per round trip below the window before the reduction (RFC 9438 section 4.3).
    let grown = (window.cwnd as f64 - before) / MSS as f64;
    assert!((grown - 11.0 * ALPHA).abs() < 0.5, "{grown} segments in 11 round trips");
}

#[test]
fn fast_convergence_lowers_the_next_plateau() {
    let (mut cubic, window) = reduced(100);
    assert_eq!(cubic.w_max, 100.0);
    // RFC 9438 section 4.7: the window is below the last plateau, so the next plateau is 70 * 1.7 / 2.
    cubic.congested(&window, window.cwnd, MSS);
    assert!((cubic.w_max - 59.5).abs() < 1e-9);
}

#[test]
fn after_a_timeout_the_plateau_is_the_window_at_the_end_of_slow_start() {
    let (mut cubic, mut window) = reduced(100);
    cubic.timed_out();
    cubic.avoid(&mut window, &Acked { bytes: MSS, now: at(1.0), srtt: Duration::from_millis(100) }, MSS);
    // RFC 9438 section 4.8: K = 0 and W_max = cwnd.
    assert_eq!((cubic.k, cubic.w_max), (0.0, 70.0));
}

#[test]
fn application_limited_time_does_not_count() {
    let (mut paused, mut window) = reduced(1000);
    drive(&mut paused, &mut window, 0.2, 0.0, 2.0);
    let epoch = paused.epoch.expect("begun");
    let last = paused.last;
    // RFC 9438 section 5.8: the epoch starts 60 s later.
    paused.application_limited(last + Duration::from_secs(60));
    assert_eq!(paused.epoch, Some(epoch + Duration::from_secs(60)));
}
