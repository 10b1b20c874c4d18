//! Whole connections over paths with known loss: every byte arrives, and the rates are those of the models.

use cutline_transport::app::{self, CbrParams, FilesParams};
use cutline_transport::endpoint::{ReceivingEnd as _, SendingEnd as _, Transport};
use cutline_transport::{tcp, tfrc};
use cutline_units::{Bytes, Distribution, Duration, Instant, Probability, RandomStream, Rate, Streams};

use crate::path::{Ends, EndsPacket, Fate, Path, Tcp, TcpPacket, Tfrc, TfrcPacket};

const ONE_WAY: Duration = Duration::from_millis(50);

fn seconds(s: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(s)
}

fn random(seed: u64) -> RandomStream {
    Streams::new(seed).stream("path", "loss")
}

fn lose(rng: &mut RandomStream, p: f64) -> Fate {
    if rng.chance(Probability::clamped(p)) { Fate::Lose } else { Fate::Arrive }
}

/// A bulk flow over `p` of random loss for 800 s: packets of 1000 B delivered per round trip of 100 ms.
fn window<T: Transport>(params: T::Params, seed: u64, p: f64) -> f64 {
    let mut rng = random(seed);
    let rule = move |_, packet: &EndsPacket<T::Data, T::Reply>| match packet {
        EndsPacket::Data(_) => lose(&mut rng, p),
        EndsPacket::Reply(_) => Fate::Arrive,
    };
    let mut path = Path::new(Ends::<T>::new(params), ONE_WAY, rule);
    path.flow.sender.write_unlimited();
    path.run(seconds(800));
    path.flow.receiver.delivered() as f64 / 1000.0 / 8_000.0
}

fn tcp_window(params: tcp::Params, p: f64) -> f64 {
    window::<tcp::Tcp>(params, 1, p)
}

fn tfrc_window(params: tfrc::Params, p: f64) -> f64 {
    window::<tfrc::Tfrc>(params, 2, p)
}

#[test]
fn a_file_arrives_whole_over_a_clean_path() {
    let mut path = Path::new(Tcp::new(tcp::Params::default()), ONE_WAY, |_, _: &TcpPacket| Fate::Arrive);
    path.flow.sender.write(1_000_000);
    path.flow.sender.close();
    path.run(seconds(60));
    assert!(path.flow.sender.is_finished() && path.flow.receiver.is_finished());
    assert_eq!(path.flow.receiver.delivered(), 1_000_000);
    assert_eq!(path.flow.sender.stats().retransmissions, 0);
    assert_eq!(path.flow.sender.deadline(), Instant::FAR_FUTURE);
}

#[test]
fn newreno_has_the_throughput_of_the_padhye_equation() {
    for p in [0.001, 0.005, 0.02] {
        let params = tcp::Params { min_rto: Duration::from_millis(400), ..tcp::Params::default() };
        let window = tcp_window(params, p);
        let padhye = tfrc::throughput(1.0, Duration::from_secs(1), p);
        println!("NewReno at p = {p}: {window:.1} segments, Padhye {padhye:.1}");
        assert!((window / padhye - 1.0).abs() < 0.25, "p = {p}: {window} segments, Padhye {padhye}");
    }
}

#[test]
fn sack_is_as_fast_as_newreno_under_single_losses() {
    for p in [0.005, 0.05] {
        let newreno = tcp_window(tcp::Params::default(), p);
        let sack = tcp_window(tcp::Params { sack: true, ..tcp::Params::default() }, p);
        println!("p = {p}: NewReno {newreno:.1}, SACK {sack:.1} segments");
        assert!((0.9..1.2).contains(&(sack / newreno)), "p = {p}: SACK {sack}, NewReno {newreno}");
    }
}

/// Returns the time for which a sender is in recovery after the loss of eight segments of one window.
fn recovery_from_a_burst(sack: bool) -> Duration {
    let mut sent = 0;
    let rule = move |_, packet: &TcpPacket| match packet {
        TcpPacket::Data(_) => {
            sent += 1;
            if (100..116).contains(&sent) && sent % 2 == 0 { Fate::Lose } else { Fate::Arrive }
        }
        TcpPacket::Reply(_) => Fate::Arrive,
    };
    let mut path = Path::new(Tcp::new(tcp::Params { sack, ..tcp::Params::default() }), ONE_WAY, rule);
    path.flow.sender.write(1_000_000);
    let mut events = Vec::new();
    path.run_checked(seconds(60), |now, flow| {
        if flow.sender.in_recovery() {
            events.push(now);
        }
    });
    assert_eq!(path.flow.receiver.delivered(), 1_000_000);
    assert_eq!((path.flow.sender.stats().retransmissions, path.flow.sender.stats().timeouts), (8, 0));
    events[events.len() - 1] - events[0]
}

#[test]
fn sack_repairs_a_burst_of_losses_in_one_round_trip() {
    let (newreno, sack) = (recovery_from_a_burst(false), recovery_from_a_burst(true));
    // NewReno repairs one hole per round trip of 100 ms (RFC 6582 section 3.2), SACK as many as the window allows
    // (RFC 6675 section 5).
    assert_eq!(newreno.as_nanos() / 100_000_000, 8, "{newreno}");
    assert!(sack < Duration::from_millis(250), "{sack}");
}

#[test]
fn cubic_is_faster_than_newreno_with_large_windows_and_equal_with_small_ones() {
    let cubic = tcp::Params { algorithm: tcp::Algorithm::Cubic, sack: true, ..tcp::Params::default() };
    let reno = tcp::Params { sack: true, ..tcp::Params::default() };
    let (rare, often) = (0.000_1, 0.02);
    let large = tcp_window(cubic.clone(), rare) / tcp_window(reno.clone(), rare);
    let small = tcp_window(cubic, often) / tcp_window(reno, often);
    println!("CUBIC / NewReno: {large:.2} at p = {rare}, {small:.2} at p = {often}");
    // RFC 9438 section 5: windows of 1.054 RTT^3/4 p^-3/4 and 1.22 p^-1/2, a ratio of 1.5 at p = 1e-4 and 100 ms.
    assert!((1.1..2.5).contains(&large), "{large}");
    assert!((0.8..1.35).contains(&small), "{small}");
}

#[test]
fn tfrc_has_the_throughput_of_tcp() {
    for p in [0.002, 0.01, 0.03] {
        let tcp =
            tcp_window(tcp::Params { min_rto: Duration::from_millis(400), ..tcp::Params::default() }, p);
        let tfrc = tfrc_window(tfrc::Params::default(), p);
        println!("p = {p}: TCP {tcp:.1}, TFRC {tfrc:.1} packets");
        assert!((0.6..1.7).contains(&(tfrc / tcp)), "p = {p}: TFRC {tfrc}, TCP {tcp}");
    }
}

/// The papers' audio: 128 kbit/s over a round trip of 300 ms.
fn audio() -> app::Params {
    app::Params::Cbr(CbrParams::new(Rate::from_kbps(128), Bytes::new(1000)))
}

const PAPER_ONE_WAY: Duration = Duration::from_millis(150);

#[test]
fn tfrc_carries_a_constant_rate_below_the_rate_of_the_path() {
    for (p, at_least) in [(0.0, 0.99), (0.01, 0.93)] {
        let mut rng = random(3);
        let rule = move |_, packet: &TfrcPacket| match packet {
            TfrcPacket::Data(_) => lose(&mut rng, p),
            TfrcPacket::Reply(_) => Fate::Arrive,
        };
        let flow = Tfrc::carrying(&audio(), tfrc::Params::default());
        let mut path = Path::new(flow, PAPER_ONE_WAY, rule);
        path.run(seconds(800));
        let share = path.flow.receiver.delivered() as f64 / (16_000.0 * 800.0);
        println!("p = {p}: {share:.3} of the audio, {:?}", path.flow.sender.stats());
        assert!((at_least..=1.0).contains(&share), "p = {p}: {share}");
    }
}

#[test]
fn tcp_carries_a_constant_rate_with_a_bounded_backlog() {
    let mut rng = random(4);
    let rule = move |_, packet: &TcpPacket| match packet {
        TcpPacket::Data(_) => lose(&mut rng, 0.01),
        TcpPacket::Reply(_) => Fate::Arrive,
    };
    let params = tcp::Params { send_buffer: Some(4), ..tcp::Params::default() };
    let mut path = Path::new(Tcp::carrying(&audio(), params), PAPER_ONE_WAY, rule);
    let mut most = 0;
    path.run_checked(seconds(800), |_, flow| most = most.max(flow.sender.backlog()));
    let share = path.flow.receiver.delivered() as f64 / (16_000.0 * 800.0);
    println!("{share:.3} of the audio, {:?}", path.flow.sender.stats());
    assert!(most <= 4000, "{most} B waited");
    assert!((0.93..=1.0).contains(&share), "{share}");
}

#[test]
fn each_file_has_its_own_latency() {
    let files = FilesParams { size: Distribution::Fixed(30_000.0), think_time: Distribution::Fixed(0.5) };
    let flow = Tcp::carrying(&app::Params::Files(files), tcp::Params::default());
    let mut path = Path::new(flow, ONE_WAY, |_, _: &TcpPacket| Fate::Arrive);
    path.run(seconds(100));
    let completions = &path.flow.source.completions;
    // Ten segments, then twenty: a round trip and a half. The pause is shorter than an RTO, so the window stays.
    assert_eq!(completions[0].latency, Duration::from_millis(150));
    let last = completions[completions.len() - 1];
    assert_eq!((last.latency, last.bytes), (Duration::from_millis(50), 30_000));
    assert!(completions.len() > 150);
}
