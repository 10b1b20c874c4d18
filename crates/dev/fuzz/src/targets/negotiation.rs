//! Messages of a negotiation, from either end.
//!
//! - Accepted messages are written to the same bytes.
//! - Whatever arrives, an end sends at most one message for it, and a responder reports nothing before a confirmation.

use cutline_quality::spec::ConnectionSpecification;
use cutline_signal::negotiation::message::NegotiationMessage;
use cutline_signal::negotiation::{Carrier, Framing, Negotiation, NegotiationParams, Role, framing};
use cutline_units::Instant;

pub fn parse(bytes: &[u8]) -> bool {
    if let Framing::Whole(length) = framing(bytes) {
        assert!(length <= bytes.len(), "a whole message is there");
    }
    feed(bytes);
    let Ok(message) = NegotiationMessage::decode(bytes, Role::Initiator, |_| None, false) else {
        return false;
    };
    assert_eq!(message.encode(Role::Initiator, None), bytes);
    true
}

/// Gives the bytes to both ends of a session whose number they know.
fn feed(bytes: &[u8]) {
    let how = || (Carrier::Datagrams, NegotiationParams::default());
    let session =
        bytes.get(6..14).map_or(0, |bytes| u64::from_be_bytes(bytes.try_into().expect("there are eight")));
    let ours = ConnectionSpecification::default;
    let initiator = Negotiation::initiate(Instant::ZERO, ours(), how(), (session, [1; 16]), None);
    let responder = Negotiation::respond(ours(), how(), [2; 16], None);
    let [mut initiator, mut responder] =
        [initiator, responder].map(|end| end.expect("the defaults are allowed"));
    drop(initiator.transmit());
    for end in [&mut initiator, &mut responder] {
        end.on_message(Instant::ZERO, bytes);
        assert!(end.transmit().is_none() || end.transmit().is_none(), "one message at most");
    }
    assert!(responder.event().is_none());
}
