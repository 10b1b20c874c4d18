use super::*;
use proptest::prelude::*;

#[test]
fn written_headers_are_read_back() {
    let dscp = Dscp::new(3).unwrap();
    for (notify, reverse) in [(true, false), (false, true), (true, true)] {
        let preamble = Preamble { flow: 9, notify, reverse, dscp, receive_buffer: 65_536, token: 1 << 60 };
        assert_eq!(Preamble::read(&preamble.write()), Some(preamble));
    }
    for step in [Step::Call, Step::Challenge, Step::Answer, Step::Accepted] {
        let proof = Proof { step, flow: 7, token: 1 << 60, nonce: 1 << 50 };
        assert_eq!(Proof::read(&proof.write()), Some(proof));
        assert_eq!(Proof::read(&[&proof.write()[..], &[0]].concat()), None);
    }
    let note = Note { delivered: 1 << 50, at: Instant::from_nanos(99) };
    assert_eq!(Note::read(note.write()), note);
}

#[test]
fn messages_of_every_length_are_read_back() {
    let written = Instant::from_nanos(77);
    for length in (1..40).chain([1 << 20, 1 << 40]) {
        let (bytes, used) = Message::write(length, written);
        assert_eq!(Message::header_length(bytes[0]), used);
        let expected =
            if length < 16 { Message::Short(length as u8) } else { Message::Long(length, written) };
        assert_eq!(Message::read(&bytes[..used]), Some(expected));
    }
}

proptest! {
    #[test]
    fn random_bytes_do_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
        let _ = (Message::read(&bytes), Proof::read(&bytes));
        if let Some(preamble) = bytes.first_chunk() {
            let _ = Preamble::read(preamble);
        }
    }
}
