//! Frames below IP from the network: `cutline_wire::direct`. The input is a number of frames, each behind its length in two bytes.
//!
//! - A header that is read is written as it was.
//! - Padding behind a frame has no effect.
//! - A message that is reassembled is cut and reassembled to the same message.
//! - Incomplete messages have a bounded memory, and are counted when they are given up.

use cutline_wire::direct::{DirectHeader, HEADER, LONGEST_MESSAGE, Reassembly, Segments};

const LINK: [u8; 6] = [2, 0, 0, 0, 0, 1];
/// Most incomplete messages; more are in the input.
const MOST: usize = 3;
/// An MTU that cuts most messages.
const MTU: usize = 100;

pub fn parse(mut input: &[u8]) -> bool {
    let mut reassembly = Reassembly::new(MOST);
    let mut padded = Reassembly::new(MOST);
    let (mut accepted, mut frames) = (false, 0);
    while let Some((length, rest)) = input.split_first_chunk() {
        let (frame, rest) = rest.split_at(usize::from(u16::from_be_bytes(*length)).min(rest.len()));
        (input, frames) = (rest, frames + 1);
        if let Ok((header, payload, _)) = DirectHeader::read(frame) {
            let mut written = Vec::new();
            header.write(&mut written);
            assert_eq!(written, frame[..HEADER], "a header is written as it was read");
            assert!(payload.len() <= LONGEST_MESSAGE && usize::from(header.length) == payload.len());
            accepted = true;
            // The padding of a frame that is too short would be taken for its end.
            let with = padded.take(LINK, &[frame, &[0xa5; 46]].concat());
            let without = reassembly.take(LINK, frame);
            assert_eq!(with, without, "padding has no effect");
            if let Ok(Some(message)) = without {
                assert!(message.bytes.len() == header.total as usize && message.number == header.number);
                check_again(&message.bytes, &header);
            }
        }
    }
    let stats = reassembly.stats();
    assert!(stats.frames + stats.malformed <= frames && stats.incomplete <= stats.frames);
    accepted
}

fn check_again(message: &[u8], header: &DirectHeader) {
    let DirectHeader { flow, number, hint, .. } = *header;
    let segments = Segments::new(flow, number, hint, message.len(), MTU).expect("it was a message");
    let mut bytes = Vec::new();
    let mut reassembly = Reassembly::new(1);
    let ranges = segments.write(&[message], &mut bytes);
    let made: Vec<_> = ranges
        .filter_map(|range| reassembly.take(LINK, &bytes[range]).expect("its frames are right"))
        .collect();
    assert!(made.len() == 1 && made[0].bytes == message && made[0].hint == hint, "the same message");
}
