use super::*;
use crate::{nada, tfrc, udp};
use cutline_units::{Duration, Rate};
use proptest::prelude::*;

const TOKEN: u64 = 0x0102_0304_0506_0708;
const UDP: Extension = Extension::Udp(udp::NoExtension);
const TFRC: Extension = Extension::Tfrc(tfrc::Extension {
    rtt: Duration::from_millis(300),
    segment_size: 1460,
    history_discounting: true,
    ecn: false,
});

const NADA: Extension =
    Extension::Nada(nada::Extension { rtt: Duration::from_millis(300), feedback_ms: 100, window_ms: 500 });

fn data(extension: Extension) -> Data {
    let dscp = Dscp::new(46).unwrap();
    Data { flow: 7, dscp, token: TOKEN, seq: 1 << 40, sent_at: Instant::from_nanos(123_456_789), extension }
}

fn feedback() -> tfrc::Feedback {
    let (echo, t_delay) = (Instant::from_nanos(5), Duration::from_micros(3));
    tfrc::Feedback { echo, t_delay, x_recv: 1e5, p: 0.01 }
}

fn report() -> nada::Feedback {
    nada::Feedback {
        echo: Instant::from_nanos(5),
        since_arrival: Duration::from_micros(3),
        queuing_delay: Duration::from_micros(1),
        largest_delay: Duration::from_micros(2),
        lost: 0.5,
        marked: 0.25,
        received: Rate::from_bps(0x1234),
        loss_interval: 100.0,
        since_loss: 9,
    }
}

/// Writes a report of a flow as a datagram.
fn datagram(report: Report) -> Vec<u8> {
    let reply = Reply { flow: 3, token: TOKEN, report };
    reply.write()[..reply.length()].to_vec()
}

#[test]
fn kinds_differ() {
    let mut kinds: Vec<u8> = KINDS.iter().copied().flatten().collect();
    kinds.sort_unstable();
    assert!(kinds.windows(2).all(|pair| pair[0] < pair[1]), "{kinds:?}");
}

#[test]
fn headers_and_replies_are_read_as_they_were_written() {
    for data in [data(UDP), data(TFRC), data(NADA)] {
        assert_eq!(Data::read(&data.write()[..data.header_length()]), Some(data));
        assert_eq!(Data::read(&data.write()[..data.header_length() - 1]), None);
    }
    for report in [Report::Tfrc(feedback()), Report::Nada(report())] {
        assert_eq!(Reply::read(&datagram(report)), Some(Reply { flow: 3, token: TOKEN, report }));
    }
}

/// The two ends of a flow may have different versions.
#[test]
fn the_layout_is_that_of_the_table() {
    let mut expected = vec![0xc7, 0x71, 1, 46, 0, 0, 0, 7, 1, 2, 3, 4, 5, 6, 7, 8];
    expected.extend([0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x07, 0x5b, 0xcd, 0x15]);
    let udp = data(UDP);
    assert_eq!(udp.write()[..udp.header_length()], expected);
    expected[2] = 2;
    expected.extend([0, 0, 0, 0, 0x11, 0xe1, 0xa3, 0, 0, 0x05, 0xb4, 1]);
    let tfrc = data(TFRC);
    assert_eq!(tfrc.write()[..tfrc.header_length()], expected);
    let mut expected = vec![0xc7, 0x71, 3, 0, 0, 0, 0, 3, 1, 2, 3, 4, 5, 6, 7, 8];
    expected.extend([0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0x0b, 0xb8]);
    expected.extend([1e5_f64.to_be_bytes(), 0.01_f64.to_be_bytes()].concat());
    assert_eq!(datagram(Report::Tfrc(feedback())), *expected);

    let nada = data(NADA);
    let written = nada.write();
    assert_eq!((written[2], nada.header_length()), (4, 48));
    assert_eq!(written[32..48], [0, 0, 0, 0, 0x11, 0xe1, 0xa3, 0, 0, 0, 0, 100, 0, 0, 0x01, 0xf4]);
    let written = datagram(Report::Nada(report()));
    assert_eq!((written[2], written.len()), (5, 88));
    let word = |number: usize| u64::from_be_bytes(written[16 + 8 * number..][..8].try_into().unwrap());
    let numbers = [0.5_f64, 0.25, 100.0].map(f64::to_bits);
    assert_eq!([0, 1, 2, 3, 4].map(word), [5, 3000, 1000, 2000, numbers[0]]);
    assert_eq!([5, 6, 7, 8].map(word), [numbers[1], 0x1234, numbers[2], 9]);
}

#[test]
fn feedback_with_an_impossible_value_is_refused() {
    let good = feedback();
    let too_long = LONGEST_TIME + Duration::from_nanos(1);
    for bad in [
        tfrc::Feedback { x_recv: f64::NAN, ..good },
        tfrc::Feedback { x_recv: f64::INFINITY, ..good },
        tfrc::Feedback { x_recv: -1.0, ..good },
        tfrc::Feedback { p: 1.5, ..good },
        tfrc::Feedback { t_delay: too_long, ..good },
    ] {
        assert_eq!(Reply::read(&datagram(Report::Tfrc(bad))), None, "{bad:?}");
    }
    let best = report();
    for bad in [
        nada::Feedback { lost: 1.1, ..best },
        nada::Feedback { marked: f64::NAN, ..best },
        nada::Feedback { received: Rate::from_bps(u64::MAX), ..best },
        nada::Feedback { loss_interval: -1.0, ..best },
        nada::Feedback { queuing_delay: too_long, ..best },
    ] {
        assert_eq!(Reply::read(&datagram(Report::Nada(bad))), None, "{bad:?}");
    }
    for (feedback_ms, window_ms) in [(9, 500), (1001, 2000), (100, 99), (100, 10_001)] {
        let data = data(Extension::Nada(nada::Extension { rtt: Duration::ZERO, feedback_ms, window_ms }));
        assert_eq!(Data::read(&data.write()), None, "{feedback_ms} {window_ms}");
    }
    let longer = [&datagram(Report::Tfrc(good))[..], &[0]].concat();
    assert_eq!(Reply::read(&longer), None);
}

#[test]
fn an_end_refuses_what_another_transport_sends() {
    let (udp_params, tfrc_params) =
        (TransportParams::Udp(Arc::default()), TransportParams::Tfrc(Arc::default()));
    assert!(!Sender::new(&udp_params, Instant::ZERO).on_report(Instant::ZERO, &Report::Tfrc(feedback())));
    assert!(Sender::new(&tfrc_params, Instant::ZERO).on_report(Instant::ZERO, &Report::Tfrc(feedback())));
    let mut receiver = UDP.receiver();
    assert!(receiver.expects(&UDP) && !receiver.expects(&TFRC));
    assert_eq!(receiver.on_datagram(Instant::ZERO, &data(TFRC), 100, false), None);
    assert_eq!(receiver.delivered(), 0);
    assert_eq!(receiver.on_datagram(Instant::ZERO, &data(UDP), 100, false), None);
    assert_eq!(receiver.delivered(), 100);
    let nada = TransportParams::Nada(Arc::default());
    assert!(!Sender::new(&nada, Instant::ZERO).on_report(Instant::ZERO, &Report::Tfrc(feedback())));
    assert!(Sender::new(&nada, Instant::ZERO).on_report(Instant::ZERO, &Report::Nada(report())));
}

#[test]
fn only_tcp_has_no_datagrams() {
    assert_eq!(TransportParams::Tcp(Arc::default()).datagram_format(), None);
    let format = TransportParams::Tfrc(Arc::default()).datagram_format();
    assert_eq!(format, Some(DatagramFormat { header: 44, largest: 1000, replies: true }));
    let format = TransportParams::Udp(Arc::default()).datagram_format();
    assert_eq!(format, Some(DatagramFormat { header: 32, largest: 1472, replies: false }));
}

/// Both ends exchange the same reports over the wire as without it.
#[test]
fn a_flow_behaves_the_same_over_the_wire() {
    let params = Arc::new(tfrc::Params { history_discounting: false, ..tfrc::Params::default() });
    let (mut sender, mut plain) = (
        Sender::new(&TransportParams::Tfrc(params.clone()), Instant::ZERO),
        tfrc::Sender::new(&params, Instant::ZERO),
    );
    let mut plain_receiver = tfrc::Receiver::new(&params);
    let mut receiver = None;
    sender.write(crate::app::Write::Unlimited);
    plain.write_unlimited();
    let mut now = Instant::ZERO;
    for _ in 0..200 {
        now = now.max(sender.deadline());
        assert_eq!(sender.deadline(), plain.deadline());
        sender.on_deadline(now);
        plain.on_deadline(now);
        while let Some(PacketDeparture { seq, len, extension }) = sender.transmit_datagram(now) {
            let expected = plain.transmit(now).unwrap();
            let data = Data { flow: 1, dscp: Dscp::DEFAULT, token: TOKEN, seq, sent_at: now, extension };
            let data = Data::read(&data.write()).unwrap();
            let lost = seq % 50 == 49;
            if lost {
                continue;
            }
            let receiver = receiver.get_or_insert_with(|| data.extension.receiver());
            let arrives = now + Duration::from_millis(10);
            let report = receiver.on_datagram(arrives, &data, len, false);
            let expected = plain_receiver.on_packet(arrives, &expected, false);
            assert_eq!(report, expected.map(Report::Tfrc));
            if let (Some(report), Some(expected)) = (report, expected) {
                let reply = Reply { flow: 1, token: TOKEN, report };
                let read = Reply::read(&reply.write()[..reply.length()]).unwrap();
                now = arrives + Duration::from_millis(10);
                assert!(sender.on_report(now, &read.report));
                plain.on_feedback(now, &expected);
            }
        }
    }
    let receiver = receiver.unwrap();
    assert_eq!(receiver.loss_event_rate(), Some(plain_receiver.loss_event_rate()));
    assert!(receiver.loss_event_rate().unwrap() > 0.0);
    assert_eq!(sender.round_trip_time(), Some(plain.rtt()));
}

proptest! {
    #[test]
    fn reading_and_writing_restores_the_bytes(kind in 0_u8..7, rest in proptest::collection::vec(any::<u8>(), 0..96)) {
        let bytes = [&MAGIC[..], &[kind, 0], &rest].concat();
        if let Some(data) = Data::read(&bytes) {
            prop_assert_eq!(Data::read(&data.write()), Some(data));
        }
        if let Some(reply) = Reply::read(&bytes) {
            prop_assert_eq!(&reply.write()[..reply.length()], &bytes[..]);
        }
    }

    #[test]
    fn a_header_with_a_changed_byte_has_possible_values(at in 0_usize..44, byte: u8) {
        let mut bytes = data(TFRC).write();
        bytes[at] = byte;
        if let Some(Data { extension: Extension::Tfrc(tfrc), .. }) = Data::read(&bytes) {
            prop_assert!(tfrc.rtt <= LONGEST_TIME && (1..=65_535).contains(&tfrc.segment_size));
        }
    }
}
