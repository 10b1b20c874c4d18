use super::*;
use proptest::prelude::*;

fn data(tfrc: Option<TfrcData>) -> Data {
    let dscp = Dscp::new(46).unwrap();
    Data { flow: 7, dscp, seq: 1 << 40, sent_at: Instant::from_nanos(123_456_789), tfrc }
}

#[test]
fn what_is_written_is_read() {
    let preamble = Preamble { flow: 9, notify: true, dscp: Dscp::new(3).unwrap(), receive_buffer: 65_536 };
    assert_eq!(Preamble::read(&preamble.write()), Some(preamble));
    let note = Note { delivered: 1 << 50, at: Instant::from_nanos(99) };
    assert_eq!(Note::read(note.write()), note);
    let udp = data(None);
    assert_eq!(Data::read(&udp.write()[..udp.header_length()]), Some(udp));
    let rtt = Duration::from_millis(300);
    let tfrc = data(Some(TfrcData { rtt, segment_size: 1460, history_discounting: true, ecn: false }));
    assert_eq!(Data::read(&tfrc.write()), Some(tfrc));
    let (echo, t_delay) = (Instant::from_nanos(5), Duration::from_micros(3));
    let feedback = Feedback { flow: 3, report: tfrc::Feedback { echo, t_delay, x_recv: 1e5, p: 0.01 } };
    assert_eq!(Feedback::read(&feedback.write()), Some(feedback));
}

#[test]
fn messages_of_every_length_say_it() {
    let written = Instant::from_nanos(77);
    for length in (1..40).chain([1 << 20, 1 << 40]) {
        let (bytes, used) = Message::write(length, written);
        assert_eq!(Message::header_length(bytes[0]), used);
        let expected =
            if length < 16 { Message::Short(length as u8) } else { Message::Long(length, written) };
        assert_eq!(Message::read(&bytes[..used]), Some(expected));
    }
}

#[test]
fn feedback_that_cannot_be_is_refused() {
    let report = tfrc::Feedback { echo: Instant::ZERO, t_delay: Duration::ZERO, x_recv: f64::NAN, p: 0.0 };
    for bad in [report, tfrc::Feedback { x_recv: 1.0, p: 1.5, ..report }] {
        assert_eq!(Feedback::read(&Feedback { flow: 0, report: bad }.write()), None);
    }
}

proptest! {
    #[test]
    fn random_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
        let _ = (Data::read(&bytes), Feedback::read(&bytes), Message::read(&bytes));
        if let Some(preamble) = bytes.first_chunk() {
            let _ = Preamble::read(preamble);
        }
    }

    #[test]
    fn a_changed_byte_is_read_as_something_that_can_be(at in 0_usize..36, byte: u8) {
        let tfrc = TfrcData { rtt: Duration::ZERO, segment_size: 9, history_discounting: false, ecn: true };
        let mut bytes = data(Some(tfrc)).write();
        bytes[at] = byte;
        if let Some(Data { tfrc: Some(tfrc), .. }) = Data::read(&bytes) {
            prop_assert!(tfrc.rtt <= LONGEST_RTT && (1..=65_535).contains(&tfrc.segment_size));
        }
    }
}
