//! Properties of segmentation and reassembly.

use cutline_wire::direct::{
    DirectFlow, DirectFrameError, DirectHeader, LONGEST_MESSAGE, Reassembly, SegmentError, Segments,
};
use proptest::prelude::*;

const LINK: [u8; 6] = [2, 0, 0, 0, 0, 1];
const FLOW: DirectFlow = DirectFlow { destination: 7000, source: 50_000 };

fn frames(number: u32, message: &[u8], mtu: usize) -> Vec<Vec<u8>> {
    let segments = Segments::new(FLOW, number, Some(3), message.len(), mtu).unwrap();
    let (head, tail) = message.split_at(message.len() / 3);
    let mut bytes = Vec::new();
    let ranges = segments.write(&[head, &[], tail], &mut bytes);
    assert_eq!(ranges.len(), segments.count());
    let frames: Vec<_> = ranges.map(|range| bytes[range].to_vec()).collect();
    assert_eq!(bytes.len(), segments.on_wire());
    frames
}

fn message(length: usize, seed: u8) -> Vec<u8> {
    (0..length).map(|at| (at as u8).wrapping_mul(31).wrapping_add(seed)).collect()
}

fn take_all<'f>(reassembly: &mut Reassembly, frames: impl IntoIterator<Item = &'f Vec<u8>>) -> Vec<Vec<u8>> {
    let taken = frames.into_iter().filter_map(|frame| reassembly.take(LINK, frame).unwrap());
    taken.map(|message| message.bytes).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_message_is_read_as_it_was_written(length in 0..=LONGEST_MESSAGE, mtu in 64_usize..9200, padding in 0_usize..46) {
        let message = message(length, 7);
        let mut frames = frames(9, &message, mtu);
        for frame in &mut frames {
            prop_assert!(frame.len() <= mtu);
            frame.extend(vec![0xee; padding]);
        }
        prop_assert_eq!(take_all(&mut Reassembly::new(1), &frames), [message]);
    }

    #[test]
    fn frames_in_any_order_and_twice_make_one_message(
        length in 200_usize..4000, order in proptest::collection::vec(any::<prop::sample::Index>(), 0..40)
    ) {
        let message = message(length, 1);
        let frames = frames(1, &message, 164);
        let mut shuffled: Vec<_> = frames.iter().collect();
        for (at, other) in order.iter().enumerate() {
            let count = shuffled.len();
            shuffled.swap(at % count, other.index(count));
        }
        let last = shuffled.pop().unwrap();
        let mut reassembly = Reassembly::new(1);
        let early = take_all(&mut reassembly, shuffled.iter().chain(&shuffled).copied());
        prop_assert!(early.is_empty());
        prop_assert_eq!(take_all(&mut reassembly, [last]), [message]);
    }

    #[test]
    fn a_message_without_one_frame_is_lost_whole_and_its_neighbours_are_not(
        length in 200_usize..4000, lost in any::<prop::sample::Index>()
    ) {
        let mut reassembly = Reassembly::new(4);
        let mut wanted = Vec::new();
        for number in 0..4_u32 {
            let message = message(length, number as u8);
            let mut frames = frames(u32::MAX.wrapping_add(number), &message, 164);
            if number == 1 {
                frames.remove(lost.index(frames.len()));
            } else {
                wanted.push(message);
            }
            let out = take_all(&mut reassembly, &frames);
            prop_assert_eq!(out.len(), usize::from(number != 1));
            prop_assert!(out.iter().all(|message| message == wanted.last().unwrap()));
        }
    }

    #[test]
    fn a_changed_bit_never_makes_another_message(
        length in 1_usize..600, place in any::<prop::sample::Index>(), bit in 0_u8..8
    ) {
        let message = message(length, 5);
        let mut frames = frames(77, &message, 164);
        let at = place.index(frames.iter().map(Vec::len).sum());
        let mut start = 0;
        for frame in &mut frames {
            if (start..start + frame.len()).contains(&at) {
                frame[at - start] ^= 1 << bit;
            }
            start += frame.len();
        }
        let mut reassembly = Reassembly::new(4);
        for frame in &frames {
            if let Ok(Some(made)) = reassembly.take(LINK, frame) {
                // The hint is not covered: a bridge or a queue may change it.
                prop_assert_eq!(&made.bytes, &message);
            }
        }
    }

    #[test]
    fn any_bytes_are_read_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let mut reassembly = Reassembly::new(2);
        let accepted = reassembly.take(LINK, &bytes).is_ok();
        prop_assert!(!accepted || DirectHeader::read(&bytes).is_ok());
    }
}

#[test]
fn incomplete_messages_are_bounded_and_counted() {
    let mut reassembly = Reassembly::new(3);
    for port in 0..10 {
        let flow = DirectFlow { source: port, ..FLOW };
        let mut bytes = Vec::new();
        let segments = Segments::new(flow, 1, None, 3000, 1500).unwrap();
        let first = segments.write(&[&[1; 3000]], &mut bytes).next().unwrap();
        assert_eq!(reassembly.take(LINK, &bytes[first]), Ok(None));
    }
    assert_eq!((reassembly.stats().frames, reassembly.stats().incomplete), (10, 7));
}

#[test]
fn a_reassembly_that_takes_over_completes_messages_once() {
    let (first, second) = (message(3000, 1), message(3000, 2));
    let (mut old, mut new) = (Reassembly::new(4), Reassembly::new(2));
    let frames = [frames(1, &first, 1500), frames(2, &second, 1500)];
    assert_eq!(take_all(&mut old, frames[0].iter().take(2)), Vec::<Vec<u8>>::new());
    old.hand_over(LINK, FLOW, &mut new);
    // The second frame comes to both.
    assert_eq!(take_all(&mut new, frames[0].iter().skip(1).chain(&frames[1])), [first, second]);
    assert_eq!(old.stats().incomplete + new.stats().incomplete, 0);
}

#[test]
fn overlapping_parts_and_other_checksums_are_refused() {
    let mut reassembly = Reassembly::new(2);
    let good = frames(1, &message(300, 1), 164);
    assert_eq!(reassembly.take(LINK, &good[0]), Ok(None));
    let mut overlapping = good[1].clone();
    overlapping[19] -= 1;
    let refused = reassembly.take(LINK, &overlapping).unwrap_err();
    assert_eq!(refused, DirectFrameError::Place { offset: 139, length: 140, total: 300 });
    let mut wrong = good.clone();
    wrong[2][20] ^= 1;
    assert_eq!(reassembly.take(LINK, &wrong[1]), Ok(None));
    assert_eq!(reassembly.take(LINK, &wrong[2]), Err(DirectFrameError::Checksum));
    assert_eq!(reassembly.stats().malformed, 2);
    let too_long = Segments::new(FLOW, 1, None, LONGEST_MESSAGE + 1, 1500).unwrap_err();
    assert_eq!(too_long.to_string(), "a message of 66561 B: at most 66560 B");
    assert_eq!(Segments::new(FLOW, 1, None, 1, 63), Err(SegmentError::Mtu(63)));
}
