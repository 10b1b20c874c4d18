//! Two ends with a network between them that loses, repeats and reorders.

use super::*;
use cutline_quality::spec::{Preset, Specification};
use proptest::prelude::*;

const CARRIER: Carrier = Carrier::Datagrams;

fn key() -> Key {
    Key::new(&[b'k'; 32], b"test").unwrap()
}

fn needs(send: Specification, receive: Specification) -> ConnectionSpecification {
    ConnectionSpecification { send, receive, profile: None }
}

fn loss(percent: f64) -> Specification {
    Specification::builder().loss(percent).build().unwrap()
}

fn video() -> ConnectionSpecification {
    needs(Preset::Video.specification(), Specification::OPEN)
}

fn with(carrier: Carrier) -> (Carrier, NegotiationParams) {
    (carrier, NegotiationParams::default())
}

fn initiator(ours: ConnectionSpecification, key: Option<Key>) -> Negotiation {
    Negotiation::initiate(Instant::ZERO, ours, with(CARRIER), (77, [1; 16]), key).unwrap()
}

fn responder(ours: ConnectionSpecification, key: Option<Key>) -> Negotiation {
    Negotiation::respond(ours, with(CARRIER), [2; 16], key).unwrap()
}

/// Carries messages both ways until there are none.
fn exchange(now: Instant, one: &mut Negotiation, other: &mut Negotiation) {
    loop {
        if let Some(bytes) = one.transmit() {
            other.on_message(now, &bytes);
        } else if let Some(bytes) = other.transmit() {
            one.on_message(now, &bytes);
        } else {
            return;
        }
    }
}

fn loss_of(event: Option<NegotiationEvent>) -> Option<f64> {
    let Some(NegotiationEvent::Agreed(agreed)) = event else { panic!("{event:?}") };
    agreed.send.effective.loss.or(agreed.receive.effective.loss)
}

#[test]
fn both_ends_get_the_same_agreement() {
    // QoSockets section II: offered, requested, effective.
    let end = |peak: f64| Specification::builder().peak_rate(peak).coerce_all().build().unwrap();
    let mut one = initiator(needs(end(64.0), Specification::OPEN), None);
    let mut other = responder(needs(Specification::OPEN, end(60.0)), None);
    exchange(Instant::ZERO, &mut one, &mut other);
    let (Some(NegotiationEvent::Agreed(ours)), Some(NegotiationEvent::Agreed(theirs))) =
        (one.event(), other.event())
    else {
        panic!()
    };
    assert_eq!(ours.send.effective.peak_rate, Some(60.0));
    assert_eq!(ours.send.effective, theirs.receive.effective);
    assert_eq!(ours.send.items[0].offered, theirs.receive.items[0].requested);
    assert_eq!((one.agreed(), one.is_under_way()), (Some(&*ours), false));
    assert_eq!((one.deadline(), other.deadline()), (Instant::FAR_FUTURE, Instant::FAR_FUTURE));
    assert_eq!((one.stats().sent, other.stats().sent, other.stats().received), (2, 1, 2));
}

#[test]
fn a_conflict_is_named_at_both_ends_and_changes_nothing() {
    let mut one = initiator(needs(loss(1.0), Specification::OPEN), None);
    let mut other = responder(needs(Specification::OPEN, loss(0.0)), None);
    exchange(Instant::ZERO, &mut one, &mut other);
    let (
        Some(NegotiationEvent::Refused { send: Some(ours), receive: None }),
        Some(NegotiationEvent::Refused { send: None, receive: Some(theirs) }),
    ) = (one.event(), other.event())
    else {
        panic!()
    };
    assert_eq!(ours, theirs);
    assert_eq!(ours.0[0].parameter.name(), "loss");
    assert!(one.agreed().is_none() && other.agreed().is_none());
}

#[test]
fn either_end_can_request_another_specification() {
    for key in [None, Some(key())] {
        let (mut one, mut other) =
            (initiator(video(), key), responder(ConnectionSpecification::default(), key));
        exchange(Instant::ZERO, &mut one, &mut other);
        assert_eq!((loss_of(one.event()), loss_of(other.event())), (Some(1.0), Some(1.0)));
        other.renegotiate(Instant::ZERO, needs(Specification::OPEN, loss(4.0)));
        exchange(Instant::ZERO, &mut one, &mut other);
        assert_eq!((loss_of(one.event()), loss_of(other.event())), (Some(4.0), Some(4.0)));
        let coerced = loss(2.0).change().coerce_all().build().unwrap();
        one.renegotiate(Instant::ZERO, needs(coerced, Specification::OPEN));
        exchange(Instant::ZERO, &mut one, &mut other);
        assert!(
            matches!(one.event(), Some(NegotiationEvent::Agreed(_))),
            "the receiver's 4 % is weaker: {other:?}"
        );
        one.renegotiate(Instant::ZERO, needs(loss(9.0), Specification::OPEN));
        exchange(Instant::ZERO, &mut one, &mut other);
        assert!(matches!(one.event(), Some(NegotiationEvent::Refused { .. })));
        assert_eq!(one.agreed().unwrap().send.effective.loss, Some(4.0), "what was agreed on holds");
        assert_eq!(one.ours().send.loss, Some(2.0));
    }
}

#[test]
fn if_both_begin_a_round_the_initiators_counts_with_both_proposals() {
    let (mut one, mut other) =
        (initiator(video(), None), responder(ConnectionSpecification::default(), None));
    exchange(Instant::ZERO, &mut one, &mut other);
    drop((one.event(), other.event()));
    one.renegotiate(Instant::ZERO, needs(Preset::File.specification(), Specification::OPEN));
    other.renegotiate(Instant::ZERO, needs(Specification::OPEN, loss(7.0)));
    exchange(Instant::ZERO, &mut one, &mut other);
    assert_eq!((loss_of(one.event()), loss_of(other.event())), (Some(7.0), Some(7.0)));
    assert!(one.event().is_none() && other.event().is_none(), "one round");
}

#[test]
fn a_change_during_the_first_round_starts_the_second() {
    let (mut one, mut other) = (initiator(video(), Some(key())), responder(video(), Some(key())));
    one.renegotiate(Instant::ZERO, needs(loss(3.0), Specification::OPEN));
    exchange(Instant::ZERO, &mut one, &mut other);
    assert!(matches!(one.event(), Some(NegotiationEvent::Agreed(_))));
    assert_eq!(one.event().map(|event| matches!(event, NegotiationEvent::Agreed(_))), Some(true));
    assert_eq!(one.agreed().unwrap().send.effective.loss, Some(3.0));
}

#[test]
fn without_an_answer_it_is_sent_again_and_then_given_up() {
    let mut one = initiator(video(), None);
    let mut sent = vec![one.deadline()];
    drop(one.transmit());
    while one.deadline() != Instant::FAR_FUTURE {
        let now = one.deadline();
        one.on_deadline(now);
        sent.extend(one.transmit().map(|_| now));
    }
    let times: Vec<_> = sent[1..].iter().map(|at| at.as_nanos() / 1_000_000).collect();
    assert_eq!(times, [250, 750, 1750, 3750], "intervals double");
    assert_eq!(one.event(), Some(NegotiationEvent::OneSided(OneSidedReason::NoAnswer)));
    assert_eq!(one.ours(), &video());
}

#[test]
fn an_end_may_wait_for_a_shorter_time_for_the_first_answer_alone() {
    let now = Instant::ZERO + Duration::from_secs(1);
    let mut ours = initiator(video(), None);
    ours.on_silence(now);
    assert_eq!(ours.event(), Some(NegotiationEvent::OneSided(OneSidedReason::NoAnswer)));
    assert_eq!((ours.deadline(), ours.is_under_way()), (Instant::FAR_FUTURE, false));
    let (mut ours, mut theirs) = (initiator(video(), None), responder(video(), None));
    exchange(now, &mut ours, &mut theirs);
    ours.renegotiate(now, video());
    while ours.event().is_some() {}
    ours.on_silence(now);
    assert!(ours.is_under_way() && ours.event().is_none(), "a later round has its own time");
}

#[test]
fn over_a_stream_nothing_is_sent_again() {
    let mut one =
        Negotiation::initiate(Instant::ZERO, video(), with(Carrier::Stream), (1, [1; 16]), None).unwrap();
    assert_eq!(one.deadline(), Instant::ZERO + NegotiationParams::default().give_up);
    let now = one.deadline();
    one.on_deadline(now);
    assert_eq!(
        (one.stats().sent, one.event()),
        (1, Some(NegotiationEvent::OneSided(OneSidedReason::NoAnswer)))
    );
    let mut other = Negotiation::initiate(now, video(), with(Carrier::Stream), (1, [1; 16]), None).unwrap();
    other.on_foreign(now);
    assert_eq!(other.event(), Some(NegotiationEvent::OneSided(OneSidedReason::Foreign)));
}

#[test]
fn another_version_is_reported_and_served_one_sided() {
    let mut one = initiator(video(), None);
    let mut offer = one.transmit().unwrap();
    offer[2] = 9;
    let mut newer = responder(video(), None);
    newer.on_message(Instant::ZERO, &offer);
    let notice = newer.transmit().unwrap();
    assert!(newer.event().is_none() && newer.transmit().is_none());
    // What a newer end would send: its own version.
    let theirs = [&notice[..2], &[9], &notice[3..]].concat();
    one.on_message(Instant::ZERO, &theirs);
    assert_eq!(
        (one.event(), one.transmit()),
        (Some(NegotiationEvent::OneSided(OneSidedReason::OtherVersion(9))), None)
    );
    let mut keyed = initiator(video(), Some(key()));
    keyed.on_message(Instant::ZERO, &theirs);
    assert!(keyed.is_under_way(), "anybody could have sent the notice");
}

#[test]
fn messages_of_an_end_without_the_key_are_dropped() {
    let other_key = Key::new(&[b'o'; 32], b"test").unwrap();
    for (ours, theirs) in [(Some(key()), None), (None, Some(key())), (Some(key()), Some(other_key))] {
        let (mut one, mut other) = (initiator(video(), ours), responder(video(), theirs));
        exchange(Instant::ZERO, &mut one, &mut other);
        assert_eq!((other.stats().unauthenticated, other.stats().received), (1, 0));
        assert!(other.event().is_none() && one.is_under_way());
    }
}

#[test]
fn a_replayed_session_does_not_block_the_peer() {
    let mut recorded = Vec::new();
    let (mut one, mut other) = (initiator(video(), Some(key())), responder(video(), Some(key())));
    while let Some(bytes) = one.transmit().or_else(|| other.transmit()) {
        one.on_message(Instant::ZERO, &bytes);
        other.on_message(Instant::ZERO, &bytes);
        recorded.push(bytes);
    }
    assert!(matches!(other.event(), Some(NegotiationEvent::Agreed(_))));
    // The same messages to a responder with another nonce, and in between a genuine initiator.
    let mut fresh = Negotiation::respond(video(), with(CARRIER), [3; 16], Some(key())).unwrap();
    for bytes in &recorded {
        fresh.on_message(Instant::ZERO, bytes);
    }
    assert!(fresh.event().is_none() && fresh.agreed().is_none());
    drop((fresh.transmit(), fresh.transmit()));
    let mut genuine =
        Negotiation::initiate(Instant::ZERO, video(), with(CARRIER), (78, [4; 16]), Some(key())).unwrap();
    exchange(Instant::ZERO, &mut genuine, &mut fresh);
    assert!(matches!(fresh.event(), Some(NegotiationEvent::Agreed(_))));
    for bytes in &recorded {
        fresh.on_message(Instant::ZERO, bytes);
    }
    assert!(fresh.event().is_none() && fresh.transmit().is_none(), "{:?}", fresh.stats());
}

#[test]
fn a_false_outcome_of_the_peer_is_detected() {
    let mut one = initiator(needs(loss(1.0), Specification::OPEN), None);
    drop(one.transmit());
    let specification = needs(Specification::OPEN, loss(0.0));
    let content = Content::Answer { agreed: true, specification };
    let lie =
        NegotiationMessage { session: 77, round: 1, agreed_round: 0, nonce: [2; 16], echo: [1; 16], content }
            .encode(Role::Responder, None);
    one.on_message(Instant::ZERO, &lie);
    assert_eq!(
        (one.event(), one.transmit()),
        (Some(NegotiationEvent::OneSided(OneSidedReason::Contradiction)), None)
    );
    one.on_message(Instant::ZERO, &lie);
    assert!(one.event().is_none() && one.transmit().is_none());
}

/// Treatment of a message by a network.
#[derive(Clone, Copy, Debug)]
enum Way {
    Arrives,
    Lost,
    Twice,
    /// Arrives after all messages that are under way.
    Late,
}

fn any_way() -> impl Strategy<Value = Way> {
    prop_oneof![3 => Just(Way::Arrives), 2 => Just(Way::Lost), 1 => Just(Way::Twice), 1 => Just(Way::Late)]
}

proptest! {
    /// Both ends agree on the same once a network works, or one has given up, whatever happened to the first
    /// messages.
    #[test]
    fn both_ends_agree_over_any_network(
        ways in prop::collection::vec(any_way(), 0..24),
        changes in prop::collection::vec((any::<bool>(), 0..40_u64), 0..4),
        keyed in any::<bool>(),
    ) {
        let key = keyed.then(key);
        let mut ends = [initiator(video(), key), responder(ConnectionSpecification::default(), key)];
        let (mut now, mut ways, mut has_given_up) = (Instant::ZERO, ways.into_iter(), false);
        let mut late: Vec<(usize, Vec<u8>)> = Vec::new();
        let mut changes = changes.into_iter();
        for step in 0..1500_u64 {
            for from in 0..2 {
                while let Some(bytes) = ends[from].transmit() {
                    match ways.next().unwrap_or(Way::Arrives) {
                        Way::Arrives => ends[1 - from].on_message(now, &bytes),
                        Way::Lost => {}
                        Way::Twice => [0, 1].iter().for_each(|_| ends[1 - from].on_message(now, &bytes)),
                        Way::Late => late.push((1 - from, bytes)),
                    }
                }
            }
            if step % 5 == 4 {
                for (to, bytes) in late.drain(..) {
                    ends[to].on_message(now, &bytes);
                }
                if let Some((initiator, percent)) = changes.next() {
                    let (send, receive) = (loss(percent as f64), Specification::OPEN);
                    let coerced = send.change().coerce_all().build().unwrap();
                    let wants = if initiator { needs(coerced, receive) } else { needs(receive, coerced) };
                    ends[usize::from(!initiator)].renegotiate(now, wants);
                }
            }
            now += Duration::from_millis(20);
            for end in &mut ends {
                if end.deadline() <= now {
                    end.on_deadline(now);
                }
                has_given_up |= std::iter::from_fn(|| end.event()).any(|event| matches!(event, NegotiationEvent::OneSided(_)));
            }
        }
        let [one, other] = &ends;
        prop_assert!(!one.is_under_way() && !other.is_under_way());
        // An end that has given up may not know what the other one takes to be agreed on. It says so, but for a responder
        // whose first answer was never confirmed.
        if let (false, Some(ours), Some(theirs)) = (has_given_up, one.agreed(), other.agreed()) {
            prop_assert_eq!(&ours.send.effective, &theirs.receive.effective);
            prop_assert_eq!(&ours.receive.effective, &theirs.send.effective);
        }
        prop_assert!(one.stats().sent < 100 && other.stats().sent < 100);
    }

    /// Any bytes: no panic, and nothing is sent but an answer or a notice.
    #[test]
    fn any_bytes_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..300), at in 0..40_usize, keyed in any::<bool>()) {
        let key = keyed.then(key);
        let mut other = responder(video(), key);
        other.on_message(Instant::ZERO, &bytes);
        let mut offer = initiator(video(), key).transmit().unwrap();
        offer.splice(at..at + bytes.len().min(3), bytes.iter().copied().take(3));
        other.on_message(Instant::ZERO, &offer);
        let sent = std::iter::from_fn(|| other.transmit()).count();
        prop_assert!(sent <= 2 && other.event().is_none());
    }
}

#[test]
fn the_token_and_the_tags_are_known_to_both_ends_alone() {
    for key in [None, Some(key())] {
        let (mut one, mut other) = (initiator(video(), key), responder(video(), key));
        assert_eq!(other.token(), None);
        exchange(Instant::ZERO, &mut one, &mut other);
        assert_eq!(one.token(), other.token());
        assert!(one.token().is_some());
        let tag = one.tagger().map(|tag| tag(b"content"));
        assert_eq!(tag.is_some(), key.is_some());
        let bytes = [&b"content"[..], tag.as_ref().map_or(&[], |tag| &tag[..])].concat();
        assert_eq!(other.authentic(&bytes), Some(&b"content"[..]));
        if key.is_some() {
            assert_eq!(one.authentic(&bytes), None, "nobody can send an end its own tags");
            assert_eq!(other.authentic(&bytes[1..]), None);
            assert_eq!(other.authentic(b"content"), None);
        }
    }
}

#[test]
fn a_sender_that_does_not_receive_the_answers_cannot_take_part() {
    let mut other = responder(video(), None);
    let offer = |round, agreed_round, echo| {
        let content = Content::Offer(video());
        let message = NegotiationMessage { session: 5, round, agreed_round, nonce: [8; 16], echo, content };
        message.encode(Role::Initiator, None)
    };
    other.on_message(Instant::ZERO, &offer(1, 0, [0; 16]));
    assert!(other.is_under_way());
    let guess = NegotiationMessage {
        content: Content::Confirmation,
        session: 5,
        round: 1,
        agreed_round: 1,
        nonce: [8; 16],
        echo: [9; 16],
    };
    other.on_message(Instant::ZERO, &guess.encode(Role::Initiator, None));
    other.on_message(Instant::ZERO, &offer(2, 1, [9; 16]));
    assert!(other.event().is_none() && other.agreed().is_none());
    other.on_message(
        Instant::ZERO,
        &NegotiationMessage { echo: [2; 16], ..guess }.encode(Role::Initiator, None),
    );
    assert!(matches!(other.event(), Some(NegotiationEvent::Agreed(_))));
}

#[test]
fn a_message_with_the_token_confirms_the_answer() {
    let (mut one, mut other) = (initiator(video(), None), responder(video(), None));
    other.on_token(Instant::ZERO);
    other.on_message(Instant::ZERO, &one.transmit().unwrap());
    one.on_message(Instant::ZERO, &other.transmit().unwrap());
    drop(one.transmit());
    assert!(other.agreed().is_none());
    other.on_token(Instant::ZERO);
    assert!(matches!(other.event(), Some(NegotiationEvent::Agreed(_))));
    other.on_token(Instant::ZERO);
    assert!(other.event().is_none());
}
