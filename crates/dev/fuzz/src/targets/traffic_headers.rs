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
    match data.extension {
        Extension::Udp(_) => {}
        Extension::Tfrc(tfrc) => {
            assert!(tfrc.rtt <= LONGEST_RTT && (1..=65_535).contains(&tfrc.segment_size), "{tfrc:?}");
        }
        Extension::Nada(nada) => {
            assert!(nada.rtt <= LONGEST_RTT, "{nada:?}");
            assert!(
                (10..=1000).contains(&nada.feedback_ms) && nada.window_ms >= nada.feedback_ms,
                "{nada:?}"
            );
        }
    }
    Some(())
}

fn feedback(bytes: &[u8]) -> Option<()> {
    let reply = Reply::read(bytes)?;
    assert_eq!(bytes.len(), reply.length());
    assert_eq!(Reply::read(&reply.write()[..reply.length()]), Some(reply));
    let is_share = |share: f64| (0.0..=1.0).contains(&share);
    let is_amount = |amount: f64| amount.is_finite() && amount >= 0.0;
    let is_allowed = match reply.report {
        Report::Udp(none) => match none {},
        Report::Tfrc(tfrc) => is_share(tfrc.p) && is_amount(tfrc.x_recv) && tfrc.t_delay <= LONGEST_RTT,
        Report::Nada(nada) => {
            is_share(nada.lost)
                && is_share(nada.marked)
                && is_amount(nada.loss_interval)
                && nada.queuing_delay.max(nada.largest_delay).max(nada.since_arrival) <= LONGEST_RTT
        }
    };
    assert!(is_allowed, "{reply:?}");
    Some(())
}
