//! Properties over any path: every byte arrives once and in order, windows are respected, timers are set.

use cutline_transport::tcp::{Algorithm, InitialWindow, Params, RttSampling, Variant};
use cutline_transport::tfrc;
use cutline_units::{Duration, Ecn, Instant, RandomStream, Streams};
use proptest::prelude::*;

use crate::path::{Fate, Path, Tcp, TcpPacket, Tfrc, TfrcPacket};

/// The impairments of a path, per thousand packets.
#[derive(Clone, Copy, Debug)]
struct Impairments {
    lose: u32,
    late: u32,
    twice: u32,
    mark: u32,
    lateness: Duration,
    seed: u64,
}

impl Impairments {
    fn rule(self) -> impl FnMut() -> Fate {
        let mut rng = Streams::new(self.seed).stream("path", "impairments");
        move || self.fate(&mut rng)
    }

    fn fate(&self, rng: &mut RandomStream) -> Fate {
        let mut drawn = (rng.uniform() * 1000.0) as u32;
        let mut falls_in = |share: u32| {
            let inside = drawn < share;
            drawn = if inside { u32::MAX } else { drawn - share };
            inside
        };
        if falls_in(self.lose) {
            Fate::Lose
        } else if falls_in(self.late) {
            Fate::Late(self.lateness)
        } else if falls_in(self.twice) {
            Fate::Twice(self.lateness)
        } else if falls_in(self.mark) {
            Fate::Mark
        } else {
            Fate::Arrive
        }
    }
}

fn impairments() -> impl Strategy<Value = Impairments> {
    (0..150u32, 0..150u32, 0..50u32, 0..50u32, 1..80u64, any::<u64>()).prop_map(
        |(lose, late, twice, mark, lateness, seed)| {
            let lateness = Duration::from_millis(lateness);
            Impairments { lose, late, twice, mark, lateness, seed }
        },
    )
}

fn params() -> impl Strategy<Value = Params> {
    let switches = proptest::array::uniform9(any::<bool>());
    (switches, 0..5usize, 1..20u32, prop::option::of(1..30u32), 1..3u32).prop_map(
        |(on, control, window, limit, abc)| Params {
            // Paced controls need RACK-TLP.
            algorithm: match control {
                1 if on[1] && on[8] => Algorithm::Bbr,
                2 if on[1] && on[8] => Algorithm::Bbr3,
                3 if on[1] && on[8] => Algorithm::Prague,
                4 => Algorithm::Ledbat,
                _ if on[0] => Algorithm::Cubic,
                _ => Algorithm::NewReno,
            },
            sack: on[1],
            rack: on[1] && on[8],
            limited_transmit: on[2] || (on[1] && on[8]),
            ecn: if on[3] { Ecn::Ect0 } else { Ecn::NotEct },
            delayed_ack: on[4].then_some(Duration::from_millis(200)),
            ack_heuristic: on[5],
            impatient: on[6],
            nagle: on[7],
            variant: Variant {
                rtt_sampling: if on[7] { RttSampling::EveryAck } else { RttSampling::OncePerRoundTrip },
                ..Variant::default()
            },
            initial_window: InitialWindow::Segments(window),
            max_window: limit,
            abc_limit: abc,
            min_rto: Duration::from_millis(200),
            ..Params::default()
        },
    )
}

/// Checks after each event that outstanding data fits the windows and that a timer runs for it. `total` bytes and FIN are
/// sent.
fn check_sender(now: Instant, flow: &Tcp, params: &Params, total: u64) {
    let sender = &flow.sender;
    let outstanding = total + 1 - sender.backlog() - sender.acked().min(total);
    let limit = params.max_window.map_or(u64::MAX - 1, |segments| params.bytes_of(segments));
    assert!(outstanding <= limit + 1, "{outstanding} B are outstanding, the receiver allows {limit}");
    // Limited transmit adds two segments (RFC 3042 section 2). After a reduction of the window more may be outstanding,
    // but then nothing leaves.
    // A probe may exceed the window by a segment (RFC 8985 section 7.3).
    let extra = if params.limited_transmit { 2000 } else { 0 } + if params.rack { 1000 } else { 0 };
    if sender.in_flight() > sender.cwnd() + extra {
        let next = sender.clone().transmit(now);
        assert_eq!(next, None, "{} B in flight, cwnd {}", sender.in_flight(), sender.cwnd());
    }
    assert!(
        outstanding == 0 || sender.is_finished() || sender.deadline() < Instant::FAR_FUTURE,
        "data is outstanding and no timer runs"
    );
    assert!(sender.acked() <= flow.receiver.delivered(), "data is acknowledged that has not arrived");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn tcp_delivers_every_byte(params in params(), impairments in impairments(), writes in prop::collection::vec(1..9_000u64, 1..30)) {
        let mut rule = impairments.rule();
        let mut path = Path::new(Tcp::new(params.clone()), Duration::from_millis(20), move |_, _: &TcpPacket| rule());
        let total: u64 = writes.iter().sum();
        for bytes in writes {
            prop_assert!(path.flow.sender.write(bytes));
        }
        path.flow.sender.close();
        path.run_checked(Instant::ZERO + Duration::from_secs(100_000), |now, flow| check_sender(now, flow, &params, total));
        prop_assert_eq!(path.flow.receiver.delivered(), total);
        prop_assert!(path.flow.receiver.is_finished() && path.flow.sender.is_finished());
        prop_assert_eq!(path.flow.sender.acked(), total);
        prop_assert_eq!(path.flow.sender.deadline(), Instant::FAR_FUTURE);
    }

    #[test]
    fn tfrc_counts_what_arrives_and_always_has_a_timer(impairments in impairments(), ecn in any::<bool>()) {
        let mut rule = impairments.rule();
        let params = tfrc::Params { ecn, ..tfrc::Params::default() };
        let mut path = Path::new(Tfrc::new(params), Duration::from_millis(20), move |_, _: &TfrcPacket| rule());
        path.flow.sender.write_unlimited();
        path.run_checked(Instant::ZERO + Duration::from_secs(30), |now, flow| {
            assert!(flow.sender.deadline() < now + Duration::from_secs(129), "no deadline within 2 t_mbi");
            let p = flow.receiver.loss_event_rate();
            assert!((0.0..=1.0).contains(&p), "p = {p}");
            assert!(flow.sender.rate() >= 1000.0 / 64.0 && flow.sender.rate().is_finite());
        });
        let (sent, received) = (path.flow.sender.stats(), path.flow.receiver.stats());
        prop_assert!(received.packets + received.lost <= sent.packets, "{:?} of {:?}", received, sent);
    }
}
