//! Input of one end of a connection with quality of service, as a stream and as datagrams.
//!
//! - A reader of a stream takes no more bytes than there are, and finds the same items however the bytes are cut.
//! - Whatever arrives, a session answers each message with a message or two, and stays within the sent counts.

use cutline_quality::spec::{ConnectionSpecification, Preset};
use cutline_signal::frame::{Frame, StreamItem, StreamReader, datagram};
use cutline_signal::mib::LocalFeedback;
use cutline_signal::negotiation::Carrier;
use cutline_signal::presence::answer;
use cutline_signal::rate_control::{RateControl, TfrcParams};
use cutline_signal::session::{Purpose, Session, SessionParams, SessionStart};
use cutline_units::{Duration, Instant, Rate, Streams};

/// The nonces of both ends, and the token that follows from them.
const NONCES: [[u8; 16]; 2] = [[1; 16], [2; 16]];
const TOKEN: u32 = 0x0303_0303;

pub(crate) fn parse(bytes: &[u8]) -> bool {
    let whole = items(bytes, bytes.len().max(1));
    assert_eq!(whole, items(bytes, 7), "however it is cut");
    let answer = answer(bytes, None);
    assert!(answer.as_ref().is_none_or(|answer| answer.len() == bytes.len()), "no more than was asked");
    let is_of_session = feed(bytes);
    is_of_session || answer.is_some() || !whole.is_empty()
}

/// The payload of each message that ends, and the length of each control message, in a stream that comes in pieces.
fn items(bytes: &[u8], piece: usize) -> Vec<u64> {
    let (mut reader, mut buffer, mut found) = (StreamReader::default(), Vec::new(), Vec::new());
    for piece in bytes.chunks(piece) {
        buffer.extend_from_slice(piece);
        loop {
            let Ok(next) = reader.next(&buffer, TOKEN) else { return found };
            let Some((header, item)) = next else { break };
            let (StreamItem::Payload { bytes, .. }
            | StreamItem::Negotiation(bytes)
            | StreamItem::Report(bytes)) = item;
            assert!(header + bytes <= buffer.len(), "no more than there is");
            drop(buffer.drain(..header + bytes));
            match item {
                StreamItem::Payload { end, .. } => found.extend(end.map(|end| end.length)),
                StreamItem::Negotiation(length) | StreamItem::Report(length) => found.push(length as u64),
            }
        }
    }
    found
}

/// Gives the bytes to an end that has agreed with another one, as datagrams whose lengths are in front of them. Returns whether
/// one of them was of the session.
fn feed(mut bytes: &[u8]) -> bool {
    let mut is_of_session = false;
    let mut now = Instant::ZERO + Duration::from_secs(1);
    let start = || SessionStart {
        specification: ConnectionSpecification {
            send: Preset::Video.specification(),
            receive: Preset::Video.specification(),
            profile: None,
        },
        carrier: Carrier::Datagrams,
        params: SessionParams {
            rate_control: RateControl::Tfrc(TfrcParams::default()),
            ..SessionParams::default()
        },
        key: None,
        random: Streams::new(1).stream("fuzz", "session"),
        trace: None,
    };
    let mut other = Session::initiate(now, start(), (5, NONCES[0])).expect("the defaults are allowed");
    let mut session = Session::respond(now, start(), NONCES[1]).expect("the defaults are allowed");
    let [(mut out, mut inbound), (mut other_out, mut other_inbound)] =
        [session.directions(now), other.directions(now)];
    while let Some(message) = other.transmit() {
        session.on_negotiation(now, &message, &mut out, &mut inbound);
        while let Some(answer) = session.transmit() {
            other.on_negotiation(now, &answer, &mut other_out, &mut other_inbound);
        }
    }
    assert_eq!(session.token(), Some(TOKEN));
    for _ in 0..100 {
        out.on_send(now, 1000);
    }
    while let Some((length, rest)) = bytes.split_first() {
        let (message, rest) = rest.split_at(usize::from(*length).min(rest.len()));
        bytes = rest;
        now += Duration::from_millis(300);
        let is_foreign = datagram(message, Some(TOKEN)) == Frame::Foreign;
        is_of_session |= !is_foreign;
        match inbound.on_datagram(now, message, session.participation()) {
            Purpose::Control(control) => session.on_control(now, control, message, &mut out, &mut inbound),
            Purpose::Nothing if is_foreign => session.on_foreign(now, &mut out, &mut inbound),
            Purpose::Message(_) | Purpose::Nothing => {}
        }
        session.advance(now, &mut out, &mut inbound);
        let sent = std::iter::from_fn(|| session.transmit()).count();
        assert!(sent <= 4, "{sent} messages for one");
        let _events = std::iter::from_fn(|| session.event()).count();
        let mib = session.mib(now, (&out, &inbound), (LocalFeedback::default(), None));
        assert!(mib.send.received.messages <= mib.send.sent.messages, "{mib:?}");
        let tfrc = mib.tfrc.expect("both ends take part");
        assert!((0.0..=1.0).contains(&tfrc.loss_event_rate) && tfrc.rate > Rate::ZERO, "{tfrc:?}");
    }
    is_of_session
}
