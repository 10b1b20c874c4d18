//! Messages: every type is read as it was written, and other bytes are refused.

use super::*;
use crate::object::Ids;
use crate::object::Selector;
use crate::object::class;
use crate::object::code;
use proptest::prelude::*;

/// One of each type, over IPv4 and IPv6.
pub(crate) fn samples() -> Vec<Message> {
    let v4 = |last: u8| IpAddr::from([10, 0, 0, last]);
    let v6 = |last: u16| IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, last]);
    [
        bodies([v4(1), v4(2), v4(3)], Selector::Port(5004)),
        bodies([v6(1), v6(2), v6(3)], Selector::FlowLabel(0xabcde)),
    ]
    .concat()
    .into_iter()
    .map(|body| {
        let plain = matches!(
            body,
            Body::Ack | Body::Bundle(_) | Body::IntegrityChallenge(_) | Body::IntegrityResponse(_)
        );
        let is_ack = matches!(body, Body::Ack);
        let acknowledgement = |is_known| Acknowledgement { is_known, epoch: 7, id: 8 };
        Message {
            reduces_refreshes: true,
            acknowledgements: if is_ack {
                vec![acknowledgement(true), acknowledgement(false)]
            } else {
                Vec::new()
            },
            id: (!plain).then_some(MessageId { wants_ack: true, epoch: 0x0012_3456, id: 9 }),
            ..Message::new(63, body)
        }
    })
    .collect()
}

fn bodies([from, to, node]: [IpAddr; 3], selector: Selector) -> Vec<Body> {
    let session = Session { destination: to, protocol: 17, port: 5004 };
    let hop = Hop { address: node, handle: 3 };
    let sender = Sender { address: from, selector };
    let tspec = Tspec { peak: 8000.0, ..Tspec::new(4000.0, 1500.0) };
    let flowspec = Flowspec::ControlledLoad(tspec);
    let refresh = Duration::from_secs(30);
    let error =
        ErrorSpec { node, in_place: true, not_guilty: false, code: code::ADMISSION, value: code::BANDWIDTH };
    let flow = |flowspec, filters: &[Sender]| Descriptor { flowspec, filters: filters.to_vec() };
    let resv = |style, flows| Resv {
        session,
        hop,
        refresh,
        confirm: None,
        scope: None,
        policy: Vec::new(),
        style,
        flows,
    };
    let fixed = vec![flow(Some(flowspec), &[sender])];
    let challenge = Challenge { key: 0x1234_5678_9abc, cookie: 77 };
    let policy = vec![Opaque { class: class::POLICY_DATA, kind: 1, content: [0, 4, 0, 0].into() }];
    let sources = vec![(1, from)];
    let groups = vec![(1, from, to)];
    let list = |ids| IdList { epoch: 5, ids };
    vec![
        Body::Path(Path {
            session,
            polices_entry: true,
            hop,
            refresh,
            policy: policy.clone(),
            sender,
            tspec,
            adspec: Some(Adspec::new(1500)),
        }),
        Body::PathTear(PathTear { session, hop, sender, tspec: None }),
        Body::PathErr(PathErr { session, error, policy: Vec::new(), sender, tspec: Some(tspec) }),
        Body::Resv(Resv { confirm: Some(to), policy, ..resv(Style::FixedFilter, fixed.clone()) }),
        Body::Resv(resv(Style::SharedExplicit, vec![flow(Some(flowspec), &[sender, sender])])),
        Body::Resv(Resv {
            scope: Some(vec![from]),
            ..resv(Style::WildcardFilter, vec![flow(Some(flowspec), &[])])
        }),
        Body::ResvTear(ResvTear {
            session,
            hop,
            style: Style::SharedExplicit,
            flows: vec![flow(None, &[sender])],
        }),
        Body::ResvTear(ResvTear { session, hop, style: Style::WildcardFilter, flows: vec![flow(None, &[])] }),
        Body::ResvErr(ResvErr {
            session,
            hop,
            error,
            scope: None,
            policy: Vec::new(),
            style: Style::FixedFilter,
            flow: fixed.first().cloned(),
        }),
        Body::ResvConf(ResvConf { session, error, receiver: to, style: Style::FixedFilter, flows: fixed }),
        Body::Ack,
        Body::Srefresh(vec![list(Ids::Plain(vec![1, 2, 3])), list(Ids::Groups(groups))]),
        Body::Srefresh(vec![list(Ids::Sources(sources))]),
        Body::Bundle(vec![Message::new(9, Body::IntegrityChallenge(challenge)).encode()]),
        Body::IntegrityChallenge(challenge),
        Body::IntegrityResponse(challenge),
    ]
}

#[test]
fn every_type_is_read_as_it_was_written() {
    let mut kinds = std::collections::BTreeSet::new();
    for message in samples() {
        assert_eq!(Message::decode(&message.encode()), Ok(message.clone()), "{message:?}");
        kinds.insert(message.kind());
    }
    assert_eq!(kinds.len(), MessageType::ALL.len());
}

/// RFC 2205 section 3.1.1: the checksum of the header and one word, by hand.
#[test]
fn a_message_has_its_header_byte_by_byte() {
    let message = Message::new(64, Body::IntegrityChallenge(Challenge { key: 1, cookie: 2 }));
    let bytes = message.encode();
    let sum = !(0x1019_u16 + 0x4000 + 28 + 20 + 0x4001 + 1 + 2);
    let expected = [0x10, 25, (sum >> 8) as u8, sum as u8, 64, 0, 0, 28, 0, 20, 64, 1];
    assert_eq!(bytes[..12], expected);
}

/// An error that is found before the objects are read.
#[test]
fn a_damaged_message_is_refused() {
    let bytes = samples()[0].encode();
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x10;
        assert!(Message::decode(&damaged).is_err(), "byte {at}");
        assert!(Message::decode(&bytes[..at]).is_err(), "{at} bytes");
    }
    let mut unchecked = bytes;
    unchecked[2..4].fill(0);
    assert!(Message::decode(&unchecked).is_ok());
}

fn with_object(message: &Message, object: &[u8]) -> Result<Message, DecodeError> {
    let mut bytes = message.encode();
    bytes.extend(object);
    finish(&mut bytes);
    Message::decode(&bytes)
}

/// RFC 2205 section 3.10.
#[test]
fn unknown_classes_are_refused_ignored_or_passed_on() {
    let path = &samples()[0];
    let unknown = |class| with_object(path, &[0, 8, class, 1, 1, 2, 3, 4]);
    let Err(DecodeError::Rejected(refused)) = unknown(100) else { panic!("not refused") };
    assert_eq!(
        (refused.code, refused.value, refused.kind),
        (code::UNKNOWN_CLASS, 100 << 8 | 1, MessageType::Path)
    );
    assert!(refused.sender.is_some());
    assert_eq!(unknown(150), Ok(path.clone()));
    assert_eq!(
        unknown(200).unwrap().passed_on,
        [Opaque { class: 200, kind: 1, content: [1, 2, 3, 4].into() }]
    );
    assert_eq!(Message::decode(&unknown(200).unwrap().encode()), unknown(200));
    let Err(DecodeError::Rejected(refused)) = with_object(path, &[0, 8, class::ADSPEC, 9, 0, 0, 0, 0]) else {
        panic!("not refused")
    };
    assert_eq!((refused.code, refused.value), (code::UNKNOWN_TYPE, 13 << 8 | 9));
    let bad = with_object(path, &[0, 8, class::SENDER_TSPEC, 2, 0, 0, 0, 0]);
    assert!(matches!(bad, Err(DecodeError::Rejected(refused)) if refused.value == code::BAD_TSPEC));
}

/// RFC 2205 section 3.10: a session or a sender of a type that is not known, such as those of tunnels (RFC 3209 section 4.6: SESSION with type
/// 7), is answered with "Unknown C-Type", and the error has the objects as they came.
#[test]
fn sessions_of_unknown_types_are_refused_with_class_and_type() {
    let session = [0, 16, class::SESSION, 7, 10, 0, 0, 9, 0, 0, 0, 1, 10, 0, 0, 1];
    let template = [0, 12, class::SENDER_TEMPLATE, 7, 10, 0, 0, 1, 0, 0, 0, 1];
    for sample in [&samples()[0], &samples()[3]] {
        let bytes = sample.encode();
        let mut changed = bytes[..HEADER].to_vec();
        changed.extend(session);
        for (class, kind, content) in Objects(&bytes[HEADER..]).flatten() {
            match class {
                class::SESSION => {}
                class::SENDER_TEMPLATE => changed.extend(template),
                _ => Opaque { class, kind, content: content.into() }.put(&mut changed),
            }
        }
        finish(&mut changed);
        let Err(DecodeError::Rejected(refused)) = Message::decode(&changed) else { panic!("not refused") };
        assert_eq!((refused.code, refused.value), (code::UNKNOWN_TYPE, u16::from(class::SESSION) << 8 | 7));
        assert_eq!((refused.kind, refused.session), (sample.kind(), None));
        assert_eq!(refused.named[0].content[..], session[4..]);
    }
}

/// RFC 2205 section 3.1.4: a fixed-filter flow may leave out a flowspec that is that of the flow before.
#[test]
fn a_flowspec_that_is_left_out_is_the_one_before() {
    let path = &samples()[3];
    let mut filter = Vec::new();
    let other = Sender::new([10, 0, 0, 77].into(), 1);
    other.put(&mut filter, class::FILTER_SPEC);
    let Body::Resv(resv) = with_object(path, &filter).unwrap().body else { panic!("no Resv") };
    assert_eq!((resv.flows.len(), resv.flows[0].flowspec), (2, resv.flows[1].flowspec));
    assert_eq!(resv.flows[1].filters, [other]);
}

/// RFC 2205 section 3.2, rule 2, and addresses that no host has.
#[test]
fn impossible_ports_and_addresses_are_malformed() {
    let Body::Path(path) = &samples()[0].body else { panic!("no Path") };
    let refused = |path: Path| Message::decode(&Message::new(1, Body::Path(path)).encode()).is_err();
    assert!(!refused(path.clone()));
    assert!(refused(Path { session: Session { port: 0, ..path.session }, ..path.clone() }));
    assert!(refused(Path { sender: Sender::new([0, 0, 0, 0].into(), 1), ..path.clone() }));
    assert!(refused(Path { hop: Hop { address: [224, 0, 0, 1].into(), handle: 1 }, ..path.clone() }));
    assert!(refused(Path { sender: Sender::new([0_u16; 8].map(|_| 1).into(), 1), ..path.clone() }));
    assert!(refused(Path { session: Session { protocol: 0, ..path.session }, ..path.clone() }));
}

proptest! {
    /// Objects in any order, changed bytes: no panic, and accepted bytes can be written and read again.
    #[test]
    fn foreign_bytes_do_no_harm(
        sample in 0_usize..32,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
    ) {
        let mut bytes = samples()[sample].encode();
        for (at, byte) in changes {
            let at = at.index(bytes.len() - 4) + 4;
            bytes[at] = byte;
        }
        bytes[2..4].fill(0);
        if let Ok(message) = Message::decode(&bytes) {
            prop_assert_eq!(Message::decode(&message.encode()), Ok(message));
        }
    }
}
