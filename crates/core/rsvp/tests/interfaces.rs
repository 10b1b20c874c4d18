//! Messages that arrive at one interface and are about state of another (RFC 2205 section 3.3, RFC 2747 section 3).
//!
//! ```text
//! h1 (0) ---- 1  r (1)  2 ---- h2 (2)
//!                3
//!                |
//!              m (3)
//! ```
//!
//! `h1` sends to `h2`, with a reservation on the way. `m` sends messages in the name of others.

use crate::common;

use crate::common::bed::{ALL_BUT_M, Bed, H1, H2, M, MakeBody, NONE, R, RATE, key};
use crate::common::{SECOND, session};
use cutline_rsvp::engine::{Datagram, InterfaceId, RsvpEvent};
use cutline_rsvp::integrity::sign;
use cutline_rsvp::message::{Body, Descriptor, Message, MessageType, ResvConf, ResvErr};
use cutline_rsvp::object::{Acknowledgement, Challenge, Hop, IdList, Ids, MessageId, Sender, Style};
use cutline_units::Duration;

/// Each message is refused where it does not belong, with keys and without, and counted; existing state stays.
#[test]
fn a_message_changes_nothing_of_an_interface_where_it_did_not_arrive() {
    for keys in [NONE, ALL_BUT_M] {
        let bodies: [(&str, MakeBody, usize); 5] = [
            ("ResvTear", Bed::resv_tear, H2),
            ("PathTear", Bed::path_tear, H1),
            ("PathErr", Bed::path_error, H2),
            ("ResvErr", Bed::resv_error, H1),
            ("ResvConf", Bed::confirmation, H1),
        ];
        for (name, body, claimed) in bodies {
            let mut bed = Bed::new(keys);
            let (body, source, before) = (body(&bed), bed.address(claimed), bed.stats());
            let confirmed = bed.world.confirmations(H2);
            let passed = bed.world.passed.len();
            bed.says(3, source, body);
            assert_eq!(bed.stats().misplaced, before.misplaced + 1, "{name}");
            assert_eq!(bed.world.passed.len(), passed, "{name}: nothing comes of it");
            bed.world.run(SECOND);
            bed.assert_in_place(name);
            assert_eq!((bed.errors_heard(H1), bed.errors_heard(H2)), (0, 0), "{name}");
            assert_eq!(bed.world.confirmations(H2), confirmed, "{name}");
        }
    }
}

/// The same messages take effect where they belong.
#[test]
fn the_same_messages_are_accepted_at_their_interface() {
    let mut bed = Bed::new(NONE);
    bed.says(2, bed.address(H2), bed.path_error());
    bed.says(1, bed.address(H1), bed.resv_error());
    bed.says(1, bed.address(H1), bed.confirmation());
    let confirmed = bed.world.confirmations(H2);
    bed.world.run(SECOND);
    assert_eq!((bed.errors_heard(H1), bed.errors_heard(H2)), (1, 1));
    assert_eq!(bed.world.confirmations(H2), confirmed + 1);
    for (interface, from, body) in [(2, H2, Bed::resv_tear as MakeBody), (1, H1, Bed::path_tear)] {
        let mut bed = Bed::new(NONE);
        bed.says(interface, bed.address(from), body(&bed));
        assert_eq!(bed.world.reserved(R, 2), 0);
    }
}

/// An error of a previous hop concerns the senders behind it alone.
#[test]
fn an_error_concerns_the_senders_behind_its_node() {
    let mut bed = Bed::new(NONE);
    let sender = Sender::new(bed.address(M), 6000);
    bed.says(3, bed.address(M), bed.path(bed.session, sender, M));
    bed.world.reserve(H2, bed.session, Style::FixedFilter, &[bed.sender, sender], RATE);
    bed.world.run(SECOND * 2);
    assert_eq!(bed.world.reserved(R, 2), 200_000);
    // `m` is a previous hop of this session now, and names the sender of another one.
    let Body::ResvErr(error) = bed.resv_error() else { unreachable!() };
    let hop = Hop { address: bed.address(M), handle: 1 };
    let failed = |filters: Vec<Sender>| {
        let flow = Some(Descriptor { flowspec: Some(common::load(RATE / 2.0)), filters });
        Body::ResvErr(ResvErr { hop, flow, ..error.clone() })
    };
    bed.says(3, bed.address(M), failed(vec![bed.sender]));
    bed.world.run(SECOND);
    assert_eq!(bed.errors_heard(H2), 0);
    bed.says(3, bed.address(M), failed(vec![bed.sender, sender]));
    bed.world.run(SECOND);
    let of = |event: &RsvpEvent| match event {
        RsvpEvent::ResvError { senders, .. } => Some(senders.clone()),
        _ => None,
    };
    let heard: Vec<_> = bed.world.events.iter().filter_map(|(_, _, event)| of(event)).collect();
    assert_eq!(heard, [vec![sender]]);
}

/// A confirmation of a previous hop concerns the senders behind it alone.
#[test]
fn a_confirmation_concerns_the_senders_behind_its_node() {
    let mut bed = Bed::new(NONE);
    let sender = Sender::new(bed.address(M), 6000);
    bed.says(3, bed.address(M), bed.path(bed.session, sender, M));
    bed.world.reserve(H2, bed.session, Style::FixedFilter, &[bed.sender, sender], RATE);
    bed.world.run(SECOND * 2);
    let Body::ResvConf(confirmation) = bed.confirmation() else { unreachable!() };
    for (filters, is_believed) in
        [(vec![bed.sender], false), (vec![sender, bed.sender], false), (vec![sender], true)]
    {
        let (misplaced, confirmed) = (bed.stats().misplaced, bed.world.confirmations(H2));
        let flows = vec![Descriptor { flowspec: Some(common::load(RATE)), filters: filters.clone() }];
        bed.says(3, bed.address(M), Body::ResvConf(ResvConf { flows, ..confirmation.clone() }));
        bed.world.run(SECOND);
        assert_eq!(bed.world.confirmations(H2), confirmed + usize::from(is_believed), "{filters:?}");
        assert_eq!(bed.stats().misplaced, misplaced + u64::from(!is_believed), "{filters:?}");
    }
}

/// A confirmation about a session without a path here is passed on, but a node does not sign the message of a host without a key.
#[test]
fn an_unproven_confirmation_is_not_signed() {
    for (keys, is_passed_on) in [(NONE, true), (ALL_BUT_M, false)] {
        let mut bed = Bed::new(keys);
        let Body::ResvConf(confirmation) = bed.confirmation() else { unreachable!() };
        let unknown = session(bed.address(H2), 7000);
        let (sent, misplaced) = (bed.sent_to(H2, MessageType::ResvConf), bed.stats().misplaced);
        bed.says(3, bed.address(M), Body::ResvConf(ResvConf { session: unknown, ..confirmation }));
        bed.world.run(SECOND);
        assert_eq!(bed.sent_to(H2, MessageType::ResvConf), sent + usize::from(is_passed_on));
        assert_eq!(bed.stats().misplaced, misplaced + u64::from(!is_passed_on));
    }
}

/// A reservation with the handle of another interface takes nothing of its share.
#[test]
fn a_reservation_is_made_where_it_arrives() {
    for keys in [NONE, ALL_BUT_M] {
        let mut bed = Bed::new(keys);
        let (other, sender) = (session(bed.address(H2), 7000), Sender::new(bed.address(M), 7000));
        bed.says(3, bed.address(M), bed.path(other, sender, M));
        bed.world.run(SECOND);
        assert_eq!(bed.world.nodes[R].engine.sizes().paths, 2, "the path is taken");
        let before = bed.stats().misplaced;
        bed.says(3, bed.address(H2), bed.resv(other, sender, 2));
        assert_eq!((bed.stats().misplaced, bed.world.reserved(R, 2)), (before + 1, 100_000));
    }
}

/// RFC 2205 section 3.6: a route may change to any interface, but no node without a key takes a path from an authenticated neighbour.
#[test]
fn a_path_moves_unless_an_authenticated_neighbour_has_announced_it() {
    for (keys, is_moved) in [(NONE, true), (ALL_BUT_M, false)] {
        let mut bed = Bed::new(keys);
        bed.says(3, bed.address(M), bed.path(bed.session, bed.sender, M));
        let view = bed.world.nodes[R].engine.sessions().next().unwrap();
        let (from, _) = view.senders[0].previous.unwrap();
        assert_eq!(from == InterfaceId(3), is_moved);
        assert_eq!(bed.sent_to(M, MessageType::Resv) > 0, is_moved);
        assert_eq!(bed.stats().misplaced, u64::from(!is_moved));
    }
}

/// RFC 2747: a host with a key of the interface may send from elsewhere, as a neighbour does whose messages take another route. Another key does
/// not do.
#[test]
fn a_neighbour_with_a_key_of_the_interface_may_speak_from_another_one() {
    const OURS: &[u8] = b"a secret of neighbours";
    const OTHERS: &[u8] = b"a secret of somebody else";
    for (at_m, is_believed) in [(OURS, true), (OTHERS, false)] {
        for body in [Bed::resv_tear as MakeBody, Bed::path_tear] {
            let mut bed = Bed::new([Some(OURS), Some(OURS), Some(at_m)]);
            let mut bytes = Message::new(64, body(&bed)).encode();
            sign(&mut bytes, &key(at_m), 1 << 60, false);
            bed.arrives(3, bed.address(M), bytes);
            assert_eq!(bed.world.reserved(R, 2) == 0, is_believed);
            assert_eq!(bed.stats().misplaced, u64::from(!is_believed));
        }
    }
}

/// A key is bound to an interface: one that is valid elsewhere proves nothing at an interface without keys.
#[test]
fn a_signature_proves_nothing_at_an_interface_without_keys() {
    let mut bed = Bed::new(ALL_BUT_M);
    let mut bytes = Message::new(64, bed.resv_tear()).encode();
    sign(&mut bytes, &key(b"a secret of neighbours"), 1 << 60, false);
    bed.arrives(3, bed.address(H2), bytes);
    bed.assert_in_place("signed, at an interface without keys");
    assert_eq!(bed.stats().misplaced, 1);
}

/// Refresh reduction (RFC 2961): no host at another interface is taken for a neighbour, so its summaries, acknowledgements and requests
/// change nothing.
#[test]
fn refresh_reduction_is_with_the_neighbour_at_its_interface() {
    for keys in [NONE, ALL_BUT_M] {
        let mut bed = Bed::new(keys);
        bed.world.run(SECOND * 100);
        let h2 = bed.address(H2);
        let messages: Vec<&Datagram> = bed
            .world
            .passed
            .iter()
            .filter(|passed| (passed.from, passed.to) == (R, H2))
            .map(|passed| &passed.datagram)
            .collect();
        let ids = |datagram: &&Datagram| Message::decode(&datagram.bytes).ok()?.id;
        let known: Vec<MessageId> = messages.iter().filter_map(ids).collect();
        assert!(!known.is_empty());
        let before = bed.world.passed.len();
        // All that `r` has sent to `h2` is no longer known there, says `m`.
        let not_known =
            known.iter().map(|id| Acknowledgement { is_known: false, epoch: id.epoch, id: id.id });
        let mut message = Message::new(64, Body::Ack);
        message.reduces_refreshes = true;
        message.acknowledgements = not_known.collect();
        bed.arrives(3, h2, message.encode());
        // And `h2` names messages that it has never sent.
        let list = IdList { epoch: 1, ids: Ids::Plain(vec![1, 2, 3]) };
        bed.says(3, h2, Body::Srefresh(vec![list]));
        bed.world.run(Duration::from_millis(100));
        let to = |node: usize| {
            bed.world.passed[before..].iter().filter(|passed| (passed.from, passed.to) == (R, node)).count()
        };
        assert_eq!(to(H2), 0, "nothing is sent again");
        // Summaries still go to `h2` by its interface, and keep all in place.
        bed.world.run(SECOND * 600);
        bed.assert_in_place("after many lifetimes");
        assert!(bed.sent_to(H2, MessageType::Srefresh) > 0);
        assert_eq!(bed.sent_to(M, MessageType::Srefresh), 0);
    }
}

/// RFC 2747 section 4.3: a challenge is not signed. So it is answered, and nothing else in it is believed at an interface with keys: neither an
/// acknowledgement in a neighbour's name, nor a number that is to be acknowledged.
#[test]
fn only_the_response_answers_a_challenge() {
    for is_known in [false, true] {
        let mut bed = Bed::new(ALL_BUT_M);
        bed.world.run(SECOND * 100);
        let h2 = bed.address(H2);
        let to_h2 = bed.world.passed.iter().filter(|passed| (passed.from, passed.to) == (R, H2));
        let ids = |datagram: &Datagram| Message::decode(&datagram.bytes).ok()?.id;
        let known: Vec<MessageId> = to_h2.filter_map(|passed| ids(&passed.datagram)).collect();
        assert!(!known.is_empty());
        let before = bed.world.passed.len();
        let acknowledged = known.iter().map(|id| Acknowledgement { is_known, epoch: id.epoch, id: id.id });
        let mut message =
            Message::new(64, Body::IntegrityChallenge(Challenge { key: 1, cookie: 0x1234_5678_9abc }));
        message.reduces_refreshes = true;
        message.acknowledgements = acknowledged.collect();
        message.id = Some(MessageId { wants_ack: true, epoch: 7, id: 7 });
        bed.arrives(2, h2, message.encode());
        bed.world.run(Duration::from_millis(100));
        let answers: Vec<Message> = bed.world.passed[before..]
            .iter()
            .filter(|passed| (passed.from, passed.to) == (R, H2))
            .map(|passed| Message::decode(&passed.datagram.bytes).unwrap())
            .collect();
        let kinds: Vec<MessageType> = answers.iter().map(Message::kind).collect();
        assert_eq!(
            kinds,
            [MessageType::IntegrityResponse],
            "the question is answered, and nothing is sent again"
        );
        assert_eq!(answers[0].acknowledgements, [], "no number of it is acknowledged");
        // A known one is still asked for when it is lost: it is refreshed as before.
        bed.world.run(SECOND * 600);
        bed.assert_in_place("after many lifetimes");
    }
}

/// RFC 2205 section 3.10: an announcement of a session of an unknown type is answered with an error. RFC 2205 section 3.1.1: data behind a message in its
/// packet is not part of it, also where messages are authenticated.
#[test]
fn foreign_sessions_are_answered_and_longer_packets_are_read() {
    let mut bed = Bed::new(NONE);
    let bytes = Message::new(64, bed.path(session(bed.address(H2), 7000), bed.sender, M)).encode();
    let mut foreign = bytes[..8].to_vec();
    foreign.extend([0, 16, 1, 7, 10, 0, 0, 9, 0, 0, 0, 1, 10, 0, 0, 1]);
    foreign.extend(&bytes[8 + 12..]);
    let length = foreign.len() as u16;
    foreign[6..8].copy_from_slice(&length.to_be_bytes());
    foreign[2..4].fill(0);
    let (before, malformed) = (bed.sent_to(M, MessageType::PathErr), bed.stats().malformed);
    bed.arrives(3, bed.address(M), foreign);
    assert_eq!((bed.sent_to(M, MessageType::PathErr), bed.stats().malformed), (before + 1, malformed));
    let answer = &bed.world.passed.last().unwrap().datagram.bytes;
    assert_eq!(answer[8..24], [0, 16, 1, 7, 10, 0, 0, 9, 0, 0, 0, 1, 10, 0, 0, 1], "the session as it came");
    // ERROR_SPEC: the node, flags, code 14, class 1 and type 7.
    assert_eq!((&answer[24..28], &answer[32..36]), (&[0, 12, 6, 1][..], &[0, 14, 1, 7][..]));

    for (keys, interface, body) in [(NONE, 3, M), (ALL_BUT_M, 1, H1)] {
        let mut bed = Bed::new(keys);
        let path = bed.path(session(bed.address(H2), 7000), Sender::new(bed.address(body), 7000), body);
        let mut bytes = Message::new(64, path).encode();
        if keys != NONE {
            sign(&mut bytes, &key(b"a secret of neighbours"), 1 << 60, false);
        }
        bytes.extend([0; 7]);
        bed.arrives(interface, bed.address(body), bytes);
        assert_eq!(bed.world.nodes[R].engine.sizes().paths, 2, "it is read");
        assert_eq!(bed.stats().malformed, 0);
    }
}
