//! The generator's byte streams: `cutline_traffic::stream::Inlet`.
//!
//! - It finds the same, however the bytes are cut into pieces.
//! - It finds no more payload than bytes have come, and messages end in the order in which they began.
//! - The preamble comes first and once.

use cutline_traffic::header::PREAMBLE;
use cutline_traffic::stream::{Found, Inlet, ProtocolError};

pub fn parse(stream: &[u8]) -> bool {
    let whole = read(stream, stream.len().max(1));
    check(stream, &whole);
    for size in [1, 7, 16] {
        assert_eq!(read(stream, size), whole, "in pieces of {size} B");
    }
    whole.error.is_none() && whole.messages > 0
}

/// Content of a stream, however its payload is cut.
#[derive(Debug, Default, PartialEq)]
struct Read {
    preambles: u64,
    payload: u64,
    messages: u64,
    /// The sum of the times at which messages were written, which distinguishes them.
    written: u128,
    error: Option<ProtocolError>,
}

fn read(stream: &[u8], size: usize) -> Read {
    let (mut inlet, mut read) = (Inlet::default(), Read::default());
    for piece in stream.chunks(size) {
        let fed = inlet.feed(piece, |found| match found {
            Found::Flow(_) => {
                assert_eq!((read.preambles, read.payload), (0, 0), "the preamble comes first and once");
                read.preambles += 1;
            }
            Found::Payload(bytes) => read.payload += bytes,
            Found::End(written) => {
                read.messages += 1;
                read.written += written.map_or(0, |at| u128::from(at.as_nanos()) * u128::from(read.messages));
            }
        });
        if let Err(error) = fed {
            read.error = Some(error);
            break;
        }
    }
    read
}

fn check(stream: &[u8], read: &Read) {
    assert!(
        read.payload + PREAMBLE as u64 * read.preambles <= stream.len() as u64,
        "{read:?} of {} B",
        stream.len()
    );
    assert!(read.messages <= read.payload, "a message has at least a byte");
}
