//! The generator's headers: `cutline_traffic::header`, and of datagrams `cutline_transport::wire`.
//!
//! The first byte of an input selects the header in the rest.
//!
//! - Headers read back the same after they were written.
//! - Values are within the ranges that the header's documentation gives.
//! - The bytes after a data header are ignored; feedback and the proof of a path have one length and no other.

use cutline_traffic::header::{MESSAGE_HEADER, Message, Note, PROOF, Preamble, Proof};
use cutline_transport::wire::{Data, Extension, Reply, Report};
use cutline_units::Duration;

/// Far above any round trip; the header's own bound is an hour.
const LONGEST_RTT: Duration = Duration::from_secs(3600);

pub fn parse(input: &[u8]) -> bool {
    let Some((kind, bytes)) = input.split_first() else { return false };
    match kind % 6 {
        0 => preamble(bytes),
        1 => message(bytes),
        2 => note(bytes),
        3 => data(bytes),
        4 => feedback(bytes),
        _ => proof(bytes),
    }
    .is_some()
}

fn preamble(bytes: &[u8]) -> Option<()> {
    let preamble = Preamble::read(bytes.first_chunk()?)?;
    assert_eq!(Preamble::read(&preamble.write()), Some(preamble));
    Some(())
}

fn message(bytes: &[u8]) -> Option<()> {
    let length = Message::header_length(*bytes.first()?);
    let message = Message::read(bytes)?;
    assert!(length <= bytes.len(), "a message is read from a whole header");
    let (written, used) = match message {
        Message::Long(length, written) => {
            assert!((MESSAGE_HEADER as u64..1 << 63).contains(&length));
            Message::write(length, written)
        }
        Message::Short(length) => {
            assert!((1..MESSAGE_HEADER as u8).contains(&length));
            Message::write(length.into(), cutline_units::Instant::ZERO)
        }
    };
    assert_eq!(&written[..used], &bytes[..length]);
    Some(())
}

fn note(bytes: &[u8]) -> Option<()> {
    let bytes = bytes.first_chunk()?;
    assert_eq!(Note::read(*bytes).write(), *bytes);
    Some(())
}

fn proof(bytes: &[u8]) -> Option<()> {
    let proof = Proof::read(bytes)?;
    assert_eq!((proof.write().as_slice(), bytes.len()), (bytes, PROOF));
    Some(())
}

fn data(bytes: &[u8]) -> Option<()> {
    let data = Data::read(bytes)?;
    let length = data.header_length();
    assert_eq!(Data::read(&bytes[..length]), Some(data), "without what follows");
    assert_eq!(Data::read(&data.write()[..length]), Some(data));
    if let Extension::Tfrc(tfrc) = data.extension {
        assert!(tfrc.rtt <= LONGEST_RTT && (1..=65_535).contains(&tfrc.segment_size), "{tfrc:?}");
    }
    Some(())
}

fn feedback(bytes: &[u8]) -> Option<()> {
    let reply = Reply::read(bytes)?;
    assert_eq!(bytes.len(), reply.length());
    assert_eq!(Reply::read(&reply.write()[..reply.length()]), Some(reply));
    let Report::Tfrc(report) = reply.report;
    assert!(
        (0.0..=1.0).contains(&report.p) && report.x_recv.is_finite() && report.x_recv >= 0.0,
        "{report:?}"
    );
    assert!(report.t_delay <= LONGEST_RTT, "{report:?}");
    Some(())
}
