//! Worked values, and properties of every application, protocol and service.

use super::*;
use cutline_params::{Choice as _, ParameterValue};
use cutline_quality::spec::{CapacityProfile, ConnectionSpecification, Preset, SpecParameter, Specification};
use cutline_units::{Bytes, Duration, IpVersion, Rate};
use proptest::prelude::*;

fn ms(time: u64) -> Duration {
    Duration::from_millis(time)
}

fn path(rtt: u64) -> Path {
    Path { rtt: Some(ms(rtt)), ..Path::default() }
}

fn both(spec: Specification) -> ConnectionSpecification {
    ConnectionSpecification { send: spec.clone(), receive: spec, profile: None }
}

fn request(preset: Preset) -> TranslationRequest {
    TranslationRequest::new(both(preset.specification()))
}

fn translated(request: &TranslationRequest) -> Translation {
    translate(request).expect("it is allowed")
}

/// Returns the decision about a setting.
fn decision<'t>(translation: &'t Translation, setting: &str) -> &'t Decision {
    let found = translation.decisions.iter().find(|decision| decision.setting == setting);
    found.unwrap_or_else(|| panic!("{setting} is decided: {:#?}", translation.decisions))
}

/// QoSockets section IV: `NetVideo`.
fn net_video() -> Specification {
    Specification::builder()
        .rates(60.0, 80.0, 100.0)
        .size(Bytes::new(1280))
        .min_delay(ms(0))
        .max_delay(ms(100))
        .max_gap(ms(50))
        .recovery(ms(5000))
        .loss(5.0)
        .reordering(false)
        .build()
        .unwrap()
}

#[test]
fn classes_with_their_defaults_have_the_specifications_of_the_presets() {
    assert_eq!(ApplicationProfile::NAMES, Preset::NAMES);
    for preset in Preset::ALL {
        let application = ApplicationProfile::from_values(preset.name(), []).unwrap();
        let (spec, decisions) = application.specification().unwrap();
        assert_eq!(spec, preset.specification(), "{preset:?}");
        let set = SpecParameter::ALL.into_iter().filter(|parameter| spec.get(*parameter).is_some());
        let mut decided: Vec<_> = decisions.iter().map(|decision| decision.setting).collect();
        decided.sort_by_key(|name| SpecParameter::ALL.iter().position(|parameter| parameter.name() == *name));
        assert!(set.map(SpecParameter::name).eq(decided), "{preset:?}: each parameter has one reason");
    }
}

#[test]
fn classes_are_described_and_bad_parameters_refused() {
    use cutline_params::conformance;
    for class in ApplicationProfile::NAMES {
        let parameters = ApplicationProfile::describe(class).unwrap();
        let make = |values: &[(&str, ParameterValue)]| {
            ApplicationProfile::from_values(class, values.iter().map(|(name, value)| (*name, value.clone())))
                .map(|application| application.values())
        };
        conformance::parameters_are_complete(class, &parameters);
        conformance::bad_parameters_are_refused_by_name(class, &parameters, &make);
        assert_eq!(ApplicationProfile::from_values(class, []).unwrap().name(), *class);
    }
    assert_eq!(ApplicationProfile::from_values("vidoe", []).unwrap_err().nearest, Some("video"));
    assert_eq!(Protocol::parse("r-tpc").unwrap_err().nearest, Some("r-tcp"));
    assert_eq!(Service::parse("best-effort"), Ok(Service::BestEffort));
}

/// The specification of a class with these parameters.
fn class(name: &str, values: &[(&'static str, ParameterValue)]) -> Result<Specification, String> {
    let application = ApplicationProfile::from_values(name, values.iter().cloned());
    let specified = application.and_then(|application| application.specification());
    specified.map(|(spec, _)| spec).map_err(|error| error.to_string())
}

#[test]
fn the_words_of_a_class_become_generic_ones() {
    let word = |name: &'static str| ParameterValue::Choice(name.into());
    // RFC 6716 section 2.1.1: Opus has any rate; 24 kbit/s for 20 ms are 60 B, and RTP's 12.
    let opus = class(
        "audio",
        &[
            ("codec", word("opus")),
            ("bit-rate", ParameterValue::Count(24_000)),
            ("header", ParameterValue::Count(12)),
        ],
    );
    assert_eq!(opus.unwrap().size, Some(Bytes::new(72)));
    let g729 =
        class("audio", &[("codec", word("g729")), ("interval", ParameterValue::Duration(ms(30)))]).unwrap();
    assert_eq!((g729.size, g729.max_rate), (Some(Bytes::new(30)), Some(100.0 / 3.0)));
    let error = class("audio", &[("bit-rate", ParameterValue::Count(8_000))]).unwrap_err();
    assert_eq!(error, "bit-rate = 8 kbit/s: allowed is 64 kbit/s, or off: g711 has one rate");
    // QoSockets section IV: NetVideo's frames of 1280 B, 60 to 80 a second and 100 at most.
    let packets =
        [("packet", 1280), ("frame-size", 1280)].map(|(name, size)| (name, ParameterValue::Count(size)));
    let frames = [("frame-rate", 80.0), ("least", 75.0), ("peak", 125.0)]
        .map(|(name, x)| (name, ParameterValue::Number(x)));
    let video = class("video", &[packets.to_vec(), frames.to_vec()].concat()).unwrap();
    assert_eq!([video.min_rate, video.max_rate, video.peak_rate], [60.0, 80.0, 100.0].map(Some));
    let film = class(
        "video",
        &[("bit-rate", ParameterValue::Count(6_000_000)), ("interactive", ParameterValue::Flag(false))],
    )
    .unwrap();
    assert_eq!(film.max_throughput(), Some(Rate::from_mbps(6)));
    assert_eq!((film.max_delay, film.jitter), (Some(ms(10_000)), None));
    // 100 MB within 80 s: 1.25 MB/s.
    let (size, within) = (ParameterValue::Count(100_000_000), ParameterValue::Duration(ms(80_000)));
    let file = class("file", &[("size", size), ("within", within.clone())]).unwrap();
    assert_eq!(file.min_throughput(), Some(Rate::from_mbps(10)));
    assert_eq!(
        class("file", &[("within", within)]).unwrap_err(),
        "within = 80 s: allowed is off while size is off"
    );
    let page = class("web", &[("page-size", ParameterValue::Count(50_000))]).unwrap();
    assert_eq!((page.min_throughput(), page.size), (Some(Rate::from_kbps(400)), Some(Bytes::new(50_000))));
    let strategy = class("game", &[("view", word("omnipresent"))]).unwrap();
    assert_eq!([strategy.min_delay, strategy.max_delay], [500, 2000].map(|time| Some(ms(time))));
    let slow = class("game", &[("update-rate", ParameterValue::Number(10.0))]).unwrap_err();
    assert_eq!(slow, "least-rate = 20: allowed is at most update-rate, which is 10");
    let late = class("telemetry", &[("deadline", ParameterValue::Duration(ms(40)))]).unwrap();
    assert_eq!(late.max_delay, Some(ms(40)));
}

#[test]
fn tcp_is_set_for_bounded_delay_and_left_alone_otherwise() {
    // The header of protocol/tcp.rs: 46.875 ms at 1.92 Mbit/s are 11,250 B, 450 ms are 108,000 B. RFC 9293 section 3.7.4:
    // without Nagle. QUANTA section 5: a pace, here the peak and a tenth. RFC 9293 section 3.7.1: the MSS stays.
    let video =
        TranslationRequest { protocol: Some(Protocol::Tcp), path: path(50), ..request(Preset::Video) };
    let settings = translated(&video).end_system;
    let expected = EndSystemSettings {
        send_buffer: Some(Bytes::new(108_000)),
        block: Bytes::new(1200),
        no_delay: Some(true),
        not_sent_lowat: Some(Bytes::new(11_250)),
        pacing: Some(PacingSettings { rate: Rate::from_kbps(2_112), by: PacedBy::Kernel }),
        ..EndSystemSettings::default()
    };
    assert_eq!(settings, expected);
    // 100 B, 1000 times a second: in 450 ms leave 45,000 B, 450 segments of 932 B as the kernel counts, and half of that.
    let small = Specification::builder().rates(1.0, 1000.0, 1000.0).size(Bytes::new(100)).max_delay(ms(400));
    let small = TranslationRequest { specification: both(small.build().unwrap()), ..video };
    assert_eq!(translated(&small).end_system.send_buffer, Some(Bytes::new(209_700)));
    // QUANTA table 1: large blocks.
    let file = translated(&TranslationRequest { path: path(50), ..request(Preset::File) });
    assert_eq!(
        file.end_system,
        EndSystemSettings { block: Bytes::new(65_536), ..EndSystemSettings::default() }
    );
    assert!(decision(&file, "send-buffer").reason.contains("the kernel tunes it"));
}

#[test]
fn a_sender_is_never_kept_from_sending_by_a_buffer() {
    // The path takes as long as max-delay, so there is no share: what leaves in 2 ms, at least a segment or two messages.
    let urgent = |rate| {
        let spec = Specification::builder().rates(1.0, rate, rate).size(Bytes::new(1000)).max_delay(ms(25));
        TranslationRequest { path: path(50), ..TranslationRequest::new(both(spec.build().unwrap())) }
    };
    let lowat = |rate| {
        let tcp = TranslationRequest { protocol: Some(Protocol::Tcp), ..urgent(rate) };
        translated(&tcp).end_system.not_sent_lowat.unwrap()
    };
    assert_eq!((lowat(10_000.0), lowat(10.0)), (Bytes::new(20_000), Bytes::new(1448)));
    // 20 datagrams of 2304 B as the kernel counts, and the least that it gives.
    let buffer = |rate| translated(&urgent(rate)).end_system.send_buffer.unwrap();
    assert_eq!((buffer(10_000.0), buffer(10.0)), (Bytes::new(23_040), Bytes::new(2304)));
    // 80 Mbit/s in 75 ms are 750,000 B, more than a host allows.
    let tcp = translated(&TranslationRequest { protocol: Some(Protocol::Tcp), ..urgent(10_000.0) });
    assert_eq!(tcp.end_system.send_buffer, None);
    assert!(decision(&tcp, "send-buffer").reason.contains("750000 B would be needed"));
}

#[test]
fn without_a_known_round_trip_time_no_buffer_limits_the_throughput() {
    let video = TranslationRequest { protocol: Some(Protocol::Tcp), ..request(Preset::Video) };
    let translation = translated(&video);
    assert_eq!(translation.end_system.send_buffer, None);
    // An initial window: 10 segments of 1500 - 52 B (RFC 6928 section 2, RFC 7323 section 3.2).
    let web = translated(&request(Preset::Web));
    assert_eq!(web.end_system.not_sent_lowat, Some(Bytes::new(14_480)));
    assert_eq!(web.end_system.block, Bytes::new(8192));
}

#[test]
fn a_slow_link_has_short_segments() {
    // RFC 9293 section 3.7.1. Telemetry's share is (250 - 25) / 8 = 28.125 ms: at 256 kbit/s 900 B, less 40 B of headers.
    let slow = |kbps, mtu| {
        let path = Path { rate: Some(Rate::from_kbps(kbps)), mtu, ..path(50) };
        translated(&TranslationRequest { path, ..request(Preset::Telemetry) }).end_system.mss
    };
    assert_eq!(slow(256, None), Some(Bytes::new(860)));
    assert_eq!(slow(64, None), Some(Bytes::new(536)), "no smaller than any path takes");
    assert_eq!(slow(10_000, None), None);
    assert_eq!(slow(10_000, Some(Bytes::new(1400))), Some(Bytes::new(1360)));
    assert_eq!(slow(10_000, Some(Bytes::new(9000))), None, "the interface knows its own MTU");
}

#[test]
fn a_lossy_path_selects_bbr_where_other_controls_are_too_slow() {
    // RFC 5348 section 3.1: 1448 B x 8 / (300 ms x sqrt(2 x 0.05 / 3)) = 211.5 kbit/s.
    let lossy = |loss, protocol| {
        let path = Path { loss: Some(loss), ..path(300) };
        let request = TranslationRequest { path, protocol: Some(protocol), ..request(Preset::Video) };
        translated(&request).end_system.congestion_control
    };
    assert_eq!(lossy(5.0, Protocol::Tcp), Some("bbr"), "384 kbit/s are demanded");
    assert_eq!(lossy(0.1, Protocol::Tcp), None);
    assert_eq!(lossy(5.0, Protocol::RTcp), None, "the rate is reserved");
}

#[test]
fn udp_is_paced_by_the_sender_and_its_buffer_bounds_the_delay() {
    // The header of protocol/udp.rs: nine datagrams of 2304 B as the kernel counts, half of them asked for.
    let video = translated(&TranslationRequest { path: path(50), ..request(Preset::Video) });
    let expected = EndSystemSettings {
        send_buffer: Some(Bytes::new(10_368)),
        block: Bytes::new(1200),
        pacing: Some(PacingSettings { rate: Rate::from_kbps(1_920), by: PacedBy::Sender }),
        ..EndSystemSettings::default()
    };
    assert_eq!(video.end_system, expected);
    // 20,000 messages/s of 1200 B, 192 Mbit/s: 20 datagrams a millisecond. 2000 in 100 ms, 2304 B each.
    let fast =
        Specification::builder().rates(1.0, 20_000.0, 20_000.0).size(Bytes::new(1200)).max_delay(ms(400));
    let fast = TranslationRequest {
        protocol: Some(Protocol::Udp),
        ..TranslationRequest::new(both(fast.build().unwrap()))
    };
    let settings = translated(&fast).end_system;
    assert_eq!((settings.block, settings.gso_segment), (Bytes::new(24_000), Some(Bytes::new(1200))));
    // QUANTA section 4.1.1: larger queues at the receiver.
    assert_eq!(settings.receive_buffer, Some(Bytes::new(2_304_000)));
    // A message of 3000 B is three datagrams of 1472 B at most (RFC 8085 section 3.2).
    let long = Specification::builder().rates(1.0, 1.0, 1.0).size(Bytes::new(3000)).max_delay(ms(400));
    let long = TranslationRequest {
        protocol: Some(Protocol::Udp),
        path: path(0),
        ..TranslationRequest::new(both(long.build().unwrap()))
    };
    let short = translated(&long).end_system;
    assert_eq!((short.block, short.gso_segment), (Bytes::new(4416), Some(Bytes::new(1472))));
    // A longer one leaves in bursts of ten, an initial window (RFC 6928 section 2).
    let longer = Specification { size: Some(Bytes::new(30_000)), ..long.specification.send.clone() };
    let settings = translated(&TranslationRequest { specification: both(longer), ..long.clone() }).end_system;
    assert_eq!(settings.block, Bytes::new(14_720));
    // The shorter one leaves within 50 ms: 480 kbit/s, though a message a second is only 24.
    assert_eq!(short.pacing.unwrap().rate, Rate::from_kbps(480));
}

#[test]
fn frames_have_a_block_a_pace_and_no_marks() {
    // QUANTA section 4.1.3.
    let direct = translated(&TranslationRequest {
        protocol: Some(Protocol::Direct),
        path: path(50),
        ..request(Preset::Video)
    });
    assert_eq!(direct.end_system.block, Bytes::new(1200));
    assert_eq!(direct.end_system.pacing.unwrap().by, PacedBy::Sender);
    assert_eq!(direct.network, NetworkSettings::default());
    assert_eq!(decision(&direct, "hint").reason, "frames without IP have no code point");
}

fn level(preset: Preset, path: Path) -> u16 {
    let hint = translated(&TranslationRequest { path, ..request(preset) }).network.hint;
    hint.expect("hints are the service").level()
}

#[test]
fn hints_follow_the_delay_that_is_left_and_the_loss_that_is_acceptable() {
    // TSQ figures 10 and 13: over a round trip of 300 ms 6 is best for audio and video.
    assert_eq!([Preset::Audio, Preset::Video].map(|preset| level(preset, path(300))), [6, 6]);
    // (200 - 25) / 8 = 21.9 ms: 4. (250 - 25) / 8 = 28.1 ms: 5. (1000 - 25) / 8 = 121.9 ms: more than 16 has.
    let short =
        [Preset::Game, Preset::Telemetry, Preset::Web, Preset::File].map(|preset| level(preset, path(50)));
    assert_eq!(short, [4, 5, 16, 16]);
    // TSQ eq. 5, TSQ section 3.3: with 2 % lost, 3 % are at most a charge of 1.5.
    let lossy = Path { loss: Some(2.0), ..path(300) };
    assert_eq!(level(Preset::Audio, lossy.clone()), 12);
    assert_eq!(level(Preset::Telemetry, lossy), 16, "TCP repeats 1 % at most");
    // TSQ section 3.1: 16 is throughput only, and that of unmarked packets (RFC 2474 sections 4.1 and 6).
    let file = translated(&request(Preset::File)).network;
    assert_eq!((file.hint.unwrap().level(), file.dscp), (16, None));
    let audio = translated(&TranslationRequest { path: path(300), ..request(Preset::Audio) }).network;
    assert_eq!(audio.dscp.unwrap().get(), 5 << 2 | 3);
    // The acceptable jitter of 12 ms, and a gap of 50 ms less 20 ms between two messages.
    let with = |change: fn(Specification) -> Specification| {
        let request = TranslationRequest {
            path: path(0),
            ..TranslationRequest::new(both(change(Preset::Audio.specification())))
        };
        translated(&request).network.hint.unwrap().level()
    };
    assert_eq!(with(|spec| Specification { jitter: Some(ms(12)), ..spec }), 2);
    assert_eq!(with(|spec| Specification { max_gap: Some(ms(50)), ..spec }), 6);
}

#[test]
fn acknowledgements_are_as_urgent_as_what_they_acknowledge() {
    let receive = Preset::Telemetry.specification();
    let downloads = ConnectionSpecification { receive, ..ConnectionSpecification::default() };
    let over = |protocol| {
        let request = TranslationRequest {
            protocol: Some(protocol),
            path: path(50),
            ..TranslationRequest::new(downloads.clone())
        };
        translated(&request).network.hint.unwrap().level()
    };
    assert_eq!((over(Protocol::Tcp), over(Protocol::Udp)), (5, 16));
}

#[test]
fn code_points_are_those_of_the_rfcs() {
    let marked = |request: TranslationRequest| {
        translated(&TranslationRequest { service: Some(Service::Diffserv), ..request }).network.dscp
    };
    let name = |request| marked(request).map_or("unmarked".to_owned(), |dscp| dscp.to_string());
    // RFC 4594 sections 4.1 (telephony), 4.3 (conferences), 4.7 (low-latency data), 4.8 (high throughput).
    let expected = ["EF", "AF41", "AF11", "AF21", "AF41", "AF41"];
    assert_eq!(Preset::ALL.map(|preset| name(request(preset))), expected);
    // RFC 9622 section 8.1.6, RFC 8622 section 6, RFC 4594 section 4.5: the application's statement has precedence.
    let stated = |profile| {
        let specification =
            ConnectionSpecification { profile: Some(profile), ..both(Preset::Audio.specification()) };
        name(TranslationRequest::new(specification))
    };
    assert_eq!(CapacityProfile::ALL.map(stated), ["unmarked", "LE", "AF41", "AF21", "AF31", "AF11"]);
    let scavenger = ConnectionSpecification {
        profile: Some(CapacityProfile::Scavenger),
        ..both(Preset::Audio.specification())
    };
    assert_eq!(translated(&TranslationRequest::new(scavenger)).network.hint.unwrap().level(), 16);
}

#[test]
fn a_reservation_counts_headers_and_a_little_more() {
    // The header of service/reservation.rs: NetVideo. RFC 2211 section 5, RFC 2215 section 3.6, QUANTA table 2.
    let send = ConnectionSpecification { send: net_video(), ..ConnectionSpecification::default() };
    let request = TranslationRequest { service: Some(Service::Reservation), ..TranslationRequest::new(send) };
    let video = translated(&request);
    assert_eq!(video.protocol, Protocol::RUdp);
    let bucket = TrafficSpec {
        rate: Rate::from_bps(920_832),
        bucket: Bytes::new(27_468),
        peak: Rate::from_bps(1_046_400),
        min_policed: Bytes::new(1308),
        max_packet: Bytes::new(1308),
    };
    assert_eq!(video.network.reservation, Some(PlannedReservation { send: Some(bucket), receive: None }));
    assert!(decision(&video, "receive-bandwidth").reason.contains("nothing to reserve"));
    // RFC 2211 section 7: what exceeds it is best effort, so the sender keeps to it.
    assert_eq!(video.end_system.pacing.unwrap().rate, Rate::from_kbps(1024));

    // TCP: 1332 B a packet, 80 a second; 106,560 B/s and a tenth. Back come 80 acknowledgements of 52 B: 4160 B/s.
    let tcp = translated(&TranslationRequest { protocol: Some(Protocol::Tcp), ..request });
    let reservation = tcp.network.reservation.unwrap();
    assert_eq!(tcp.protocol, Protocol::RTcp);
    assert_eq!(reservation.send.unwrap().rate, Rate::from_bps(937_728));
    let reverse = reservation.receive.unwrap();
    assert_eq!(reverse.rate, Rate::from_bps(36_608));
    assert_eq!((reverse.min_policed, reverse.max_packet), (Bytes::new(52), Bytes::new(1500)));
    // 20 acknowledgements above the rate and one: 1092 B, less than a packet.
    assert_eq!(reverse.bucket, Bytes::new(1500));
    assert_eq!(reservation.send.unwrap().bucket, Bytes::new(21 * 1332 + 52));
    // A message less than 1448 B: as a stream, segments may be full (RFC 7323 section 3.2: 52 B of headers).
    assert_eq!(reservation.send.unwrap().max_packet, Bytes::new(1500));
}

#[test]
fn a_reserved_protocol_reserves_with_any_marking() {
    let request =
        TranslationRequest { protocol: Some(Protocol::RUdp), path: path(50), ..request(Preset::Audio) };
    let own = translated(&request);
    assert_eq!((own.service, own.network.hint), (Service::Reservation, None));
    let hinted = translated(&TranslationRequest { service: Some(Service::Hint), ..request });
    assert_eq!(hinted.network.reservation, own.network.reservation);
    assert!(hinted.network.hint.is_some());
    // Audio: 188 B, 50 a second, and a tenth: 82,720 bit/s.
    assert_eq!(own.network.reservation.unwrap().send.unwrap().rate, Rate::from_bps(82_720));
}

#[test]
fn demands_that_cannot_be_met_are_named() {
    let strict = Specification { loss: Some(0.0), ..net_video() };
    let path = Path { rate: Some(Rate::from_kbps(500)), ..path(200) };
    let send = ConnectionSpecification { send: strict, ..ConnectionSpecification::default() };
    let translation = translated(&TranslationRequest {
        protocol: Some(Protocol::Udp),
        path,
        ..TranslationRequest::new(send)
    });
    let named: Vec<_> = translation.unmet.iter().map(|unmet| unmet.parameter.name()).collect();
    assert_eq!(named, ["max-delay", "min-rate", "loss", "reordering"]);
    assert_eq!(translation.unmet[0].reason, "propagation alone takes 100 ms");
    // 60 x 1308 B x 8.
    assert_eq!(
        translation.unmet[1].reason,
        "it is 627.84 kbit/s with headers, and the path carries 500 kbit/s"
    );
    assert!(translated(&request(Preset::Video)).unmet.is_empty());
}

#[test]
fn values_set_in_code_are_checked() {
    let wrong =
        TranslationRequest { path: Path { loss: Some(101.0), ..Path::default() }, ..request(Preset::Audio) };
    assert!(translate(&wrong).unwrap_err().to_string().starts_with("loss = 101: allowed is "));
    let wrong = Specification { loss: Some(-1.0), ..Specification::OPEN };
    assert!(translate(&TranslationRequest::new(both(wrong))).is_err());
    let wrong = ApplicationProfile::Video(VideoParams { least: 200.0, ..VideoParams::default() });
    assert!(TranslationRequest::from_application(&wrong).unwrap_err().to_string().starts_with("least = 200"));
}

/// Everything that must hold of a translation, whatever was requested.
fn is_sound(request: &TranslationRequest, translation: &Translation) {
    let settings = &translation.end_system;
    let context = || format!("{request:#?}\n{translation:#?}");
    let largest = EndSystemSettings::LARGEST_BUFFER.get();
    let buffers = [settings.send_buffer, settings.receive_buffer, settings.not_sent_lowat];
    assert!(buffers.into_iter().flatten().all(|size| (1..=largest).contains(&size.get())), "{}", context());
    assert!((1..=65_536).contains(&settings.block.get()), "{}", context());
    assert!(settings.mss.is_none_or(|mss| (88..=32_767).contains(&mss.get())), "{}", context());
    assert!(settings.pacing.is_none_or(|pacing| pacing.rate > Rate::ZERO), "{}", context());
    if let (Some(pacing), Some(path)) = (settings.pacing, request.path.rate) {
        assert!(pacing.rate <= path, "{}", context());
    }
    let segment = settings.gso_segment.unwrap_or(settings.block);
    assert!(segment.get() > 0 && settings.block.get().is_multiple_of(segment.get()), "{}", context());
    let is_tcp = matches!(translation.protocol, Protocol::Tcp | Protocol::RTcp);
    let options = [settings.no_delay.is_some(), settings.mss.is_some(), settings.not_sent_lowat.is_some()];
    assert!(is_tcp || options == [false; 3] && settings.congestion_control.is_none(), "{}", context());
    let network = &translation.network;
    assert!(network.hint.is_none_or(|hint| (1..=16).contains(&hint.level())), "{}", context());
    let reservation = network.reservation.unwrap_or_default();
    for bucket in [reservation.send, reservation.receive].into_iter().flatten() {
        assert!((8..=320_000_000_000_000).contains(&bucket.rate.as_bps()), "{}", context());
        assert!((1..=250_000_000_000).contains(&bucket.bucket.get()), "{}", context());
        assert!(bucket.peak >= bucket.rate && bucket.min_policed <= bucket.max_packet, "{}", context());
        let longest = request.path.mtu.map_or(1500, Bytes::get)
            + if translation.protocol == Protocol::Direct { 14 } else { 0 };
        assert!((1..=longest).contains(&bucket.max_packet.get()), "{}", context());
        assert!(bucket.bucket >= bucket.max_packet, "{}", context());
    }
    let mut settings: Vec<_> =
        translation.decisions.iter().map(|decision| (decision.layer.name(), decision.setting)).collect();
    settings.sort_unstable();
    assert!(settings.windows(2).all(|pair| pair[0] != pair[1]), "decided twice: {}", context());
    assert!(translation.decisions.iter().all(|decision| !decision.reason.is_empty()), "{}", context());
    let layers: Vec<_> = translation.decisions.iter().map(|decision| decision.layer as u8).collect();
    assert!(layers.is_sorted(), "{}", context());
}

#[test]
fn every_class_has_settings_for_every_protocol_and_service() {
    let paths =
        [Path::default(), path(0), Path { ip: IpVersion::V6, rate: Some(Rate::from_kbps(64)), ..path(600) }];
    for class in ApplicationProfile::NAMES {
        let application = ApplicationProfile::from_values(class, []).unwrap();
        for protocol in [None].into_iter().chain(Protocol::ALL.iter().copied().map(Some)) {
            for service in [None].into_iter().chain(Service::ALL.iter().copied().map(Some)) {
                for path in &paths {
                    let request = TranslationRequest {
                        protocol,
                        service,
                        path: path.clone(),
                        ..TranslationRequest::from_application(&application).unwrap()
                    };
                    let translation = translated(&request);
                    is_sound(&request, &translation);
                    let reserves =
                        translation.protocol.is_reserved() || service == Some(Service::Reservation);
                    let has_rate = translation.specification.send.max_throughput().is_some();
                    assert_eq!(
                        translation.network.reservation.is_some(),
                        reserves && has_rate,
                        "{request:?}"
                    );
                }
            }
        }
    }
}

fn any_specification() -> impl Strategy<Value = Specification> {
    let rate = || prop::option::of(prop_oneof![0.001..1.0, 1.0..1000.0, 1000.0..1e7]);
    let size = prop::option::of(prop_oneof![1..200_u64, 200..10_000_u64, 10_000..1_000_000_000_u64]);
    let time = || {
        prop::option::of(prop_oneof![
            1..1_000_000_u64,
            1_000_000..1_000_000_000_u64,
            1_000_000_000..3_600_000_000_000_u64
        ])
    };
    let loss = prop::option::of(prop_oneof![Just(0.0), 0.0..100.0]);
    let rates = (rate(), rate(), rate(), size);
    let rest = (time(), time(), time(), time(), loss, any::<Option<bool>>());
    (rates, rest).prop_map(
        |((min, max, peak, size), (min_delay, max_delay, gap, jitter, loss, reordering))| {
            let nanos = |time: Option<u64>| time.map(Duration::from_nanos);
            let spec = Specification {
                min_rate: min,
                max_rate: max.map(|max| max.max(min.unwrap_or_default())),
                size: size.map(Bytes::new),
                max_delay: nanos(max_delay),
                min_delay: nanos(min_delay)
                    .map(|least| max_delay.map_or(least, |most| least.min(Duration::from_nanos(most)))),
                max_gap: nanos(gap),
                jitter: nanos(jitter),
                loss,
                reordering,
                ..Specification::OPEN
            };
            let above = spec.max_rate.or(spec.min_rate).unwrap_or_default();
            Specification { peak_rate: peak.map(|peak| peak.max(above)), ..spec }
        },
    )
}

fn any_path() -> impl Strategy<Value = Path> {
    let rtt = prop::option::of((0..60_000_000_000_u64).prop_map(Duration::from_nanos));
    let rate = prop::option::of((1_000..1_000_000_000_000_u64).prop_map(Rate::from_bps));
    let loss = prop::option::of(0.0..=100.0_f64);
    let ipv4 = prop::option::of(576..=65_535_u64).prop_map(|mtu| (mtu, IpVersion::V4));
    let ipv6 = prop::option::of(1280..=65_535_u64).prop_map(|mtu| (mtu, IpVersion::V6));
    (rtt, rate, loss, prop_oneof![ipv4, ipv6]).prop_map(|(rtt, rate, loss, (mtu, ip))| Path {
        rtt,
        rate,
        loss,
        mtu: mtu.map(Bytes::new),
        ip,
    })
}

proptest! {
    /// Every specification on every path has settings that are allowed, for every protocol and service, or for those that fit.
    #[test]
    fn translations_are_sound(
        send in any_specification(),
        receive in any_specification(),
        path in any_path(),
        protocol in prop::option::of(prop::sample::select(Protocol::ALL)),
        service in prop::option::of(prop::sample::select(Service::ALL)),
        profile in prop::option::of(prop::sample::select(CapacityProfile::ALL.to_vec())),
    ) {
        let specification = ConnectionSpecification { send, receive, profile };
        let request = TranslationRequest { protocol, service, path, ..TranslationRequest::new(specification) };
        is_sound(&request, &translated(&request));
    }
}

/// A host whose TCP does best with blocks of 8 KB, whose datagrams need a larger buffer at 2 Mbit/s, and whose load needs 2 % more.
fn measured() -> Baseline {
    let point = |protocol, block: u64, load: Option<u64>, mbps: u64| BaselinePoint {
        protocol,
        block: Bytes::new(block),
        load: load.map(Rate::from_kbps),
        requested: None,
        has_large_buffer: false,
        throughput: Rate::from_mbps(mbps),
        loss: 0.0,
        delay: Some(ms(2)),
    };
    let lossy = BaselinePoint { loss: 0.27, ..point(Protocol::Udp, 1024, Some(2000), 1) };
    let shaped =
        |ratio| BaselinePoint { requested: Some(ratio), ..point(Protocol::Udp, 8192, Some(1000), 1) };
    let points = vec![
        point(Protocol::Tcp, 8192, None, 40),
        point(Protocol::Tcp, 65_536, None, 30),
        lossy,
        BaselinePoint { has_large_buffer: true, loss: 0.0, ..lossy },
        BaselinePoint { loss: 0.05, ..shaped(1.0) },
        shaped(1.02),
        shaped(1.4),
    ];
    Baseline { points, large_buffer: Bytes::new(1 << 22) }
}

#[test]
fn measurements_replace_assumptions_and_are_named() {
    let measured = Some(std::sync::Arc::new(measured()));
    let file = translated(&TranslationRequest { baseline: measured.clone(), ..request(Preset::File) });
    assert_eq!(file.end_system.block, Bytes::new(8192));
    assert!(decision(&file, "block").reason.starts_with("measured without a limit"), "{file:#?}");
    assert_eq!(translated(&request(Preset::File)).end_system.block, Bytes::new(65_536));

    // 1.92 Mbit/s in messages of 1200 B.
    let video = |protocol, baseline| TranslationRequest {
        protocol: Some(protocol),
        baseline,
        ..request(Preset::Video)
    };
    let udp = translated(&video(Protocol::Udp, measured.clone()));
    assert_eq!(udp.end_system.receive_buffer, Some(Bytes::new(1 << 22)));
    assert!(decision(&udp, "receive-buffer").reason.contains("the default lost 27.00 %"), "{udp:#?}");
    assert!(udp.unmet.is_empty());

    // 100 messages/s of 1228 B with headers, and of 1242 B with Ethernet's.
    let bandwidth = |baseline| {
        let reserved = translated(&video(Protocol::RUdp, baseline));
        (
            reserved.network.reservation.unwrap().send.unwrap().rate,
            decision(&reserved, "send-bandwidth").reason.clone(),
        )
    };
    let load = 1228.0 / 1242.0;
    let (assumed, with) = (bandwidth(None), bandwidth(measured));
    let ratio = with.0.as_bps() as f64 / assumed.0.as_bps() as f64;
    assert!((ratio - 1.02 / 1.1 / load).abs() < 1e-6, "{assumed:?} {with:?}");
    assert!(
        with.1.contains("with 1.02 times the load nothing was lost") && with.1.contains("5.00 % was lost"),
        "{}",
        with.1
    );
}

#[test]
fn a_rate_above_the_measured_ceiling_is_unmet() {
    let spec =
        Specification::builder().rates(10_000.0, 10_000.0, 10_000.0).size(Bytes::new(1000)).build().unwrap();
    let baseline = Some(std::sync::Arc::new(measured()));
    let fast =
        TranslationRequest { protocol: Some(Protocol::Tcp), baseline, ..TranslationRequest::new(both(spec)) };
    let unmet = translated(&fast).unmet;
    assert_eq!(
        unmet.iter().map(|unmet| (unmet.direction, unmet.parameter)).collect::<Vec<_>>(),
        [("send", SpecParameter::MinRate)]
    );
    assert!(unmet[0].reason.contains("40 Mbit/s (measured)"), "{unmet:?}");
}
