//! Detection of this protocol at the peer, by datagram, before a stream begins.
//!
//! A plain program would take the first offer of a [negotiation](crate::negotiation) in a stream for data. So an end that does not
//! know its peer first sends a *question* to the same port number of UDP. A QoS socket gives the *answer*; others do not answer, or their
//! system reports a closed port.
//!
//! | bytes | field |
//! | --- | --- |
//! | 2 | magic number, c7 54 |
//! | 1 | version, 1 |
//! | 1 | kind: 1 question, 2 answer |
//! | 16 | nonce of the question |
//! | 32 | with a key: HMAC-SHA-256 of everything before |
//!
//! An answer is as long as its question, so nothing is gained by asking with a false address.

use crate::authentication::{Key, TAG};
use crate::negotiation::Nonce;

/// The length of the longest message, bytes.
pub const LONGEST: usize = HEADER + TAG;
const HEADER: usize = 20;
const MAGIC: [u8; 4] = [0xc7, 0x54, 1, 0];
const QUESTION: u8 = 1;
const ANSWER: u8 = 2;

/// Returns a question. `nonce` is an unpredictable random number.
pub fn question(nonce: Nonce, key: Option<&Key>) -> Vec<u8> {
    write(QUESTION, nonce, key)
}

/// Returns the answer to a question; `None` to anything else.
pub fn answer(question: &[u8], key: Option<&Key>) -> Option<Vec<u8>> {
    Some(write(ANSWER, read(QUESTION, question, key)?, key))
}

/// Returns whether this is the answer to the question with this nonce.
pub fn is_answer(bytes: &[u8], nonce: Nonce, key: Option<&Key>) -> bool {
    read(ANSWER, bytes, key) == Some(nonce)
}

fn write(kind: u8, nonce: Nonce, key: Option<&Key>) -> Vec<u8> {
    let mut bytes = [&MAGIC[..], &nonce].concat();
    bytes[3] = kind;
    let tag = key.map(|key| key.tag(&[&bytes]));
    bytes.extend(tag.iter().flatten());
    bytes
}

fn read(kind: u8, bytes: &[u8], key: Option<&Key>) -> Option<Nonce> {
    let content = match key {
        None => bytes,
        Some(key) => {
            let (content, tag) = bytes.split_last_chunk::<TAG>()?;
            key.verifies(&[content], tag).then_some(content)?
        }
    };
    let (head, nonce) = content.split_first_chunk::<4>()?;
    let nonce = Nonce::try_from(nonce).ok()?;
    (head[..3] == MAGIC[..3] && head[3] == kind).then_some(nonce)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_answered_with_the_key_alone() {
        let [one, other] = [b'k', b'o'].map(|byte| Key::new(&[byte; 32], b"test").unwrap());
        for key in [None, Some(&one)] {
            let asked = question([7; 16], key);
            let answered = answer(&asked, key).unwrap();
            assert_eq!(answered.len(), asked.len());
            assert!(is_answer(&answered, [7; 16], key) && !is_answer(&answered, [8; 16], key));
            assert!(!is_answer(&asked, [7; 16], key), "a question sent back");
            assert_eq!((answer(&answered, key), answer(&asked, Some(&other))), (None, None));
            for length in 0..asked.len() {
                assert_eq!(answer(&asked[..length], key), None);
            }
        }
        assert_eq!(answer(b"GET / HTTP/1.1\r\n\r\n", None), None);
    }
}
