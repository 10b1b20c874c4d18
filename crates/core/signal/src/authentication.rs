//! Authentication of messages with a key that both ends know: HMAC-SHA-256 (RFC 2104).

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use std::fmt;

/// The length of a tag, bytes.
pub const TAG: usize = 32;
/// The shortest content of a key, bytes, without white space at its ends.
pub const SHORTEST_KEY: usize = 32;
/// The longest content of a key, bytes.
pub const LONGEST_KEY: usize = 4096;

/// A key that both ends know, or one derived from it. It is secret, so its `Debug` shows nothing of it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Key([u8; TAG]);

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key")
    }
}

impl Key {
    /// Returns the key with this content, for one `purpose`: a key for another purpose is another key. White space at the
    /// ends of the content does not count.
    ///
    /// # Errors
    /// Returns the allowed lengths if the content is shorter or longer.
    pub fn new(content: &[u8], purpose: &[u8]) -> Result<Self, String> {
        let trimmed = content.trim_ascii();
        if trimmed.len() < SHORTEST_KEY || content.len() > LONGEST_KEY {
            return Err(format!(
                "must have {SHORTEST_KEY} to {LONGEST_KEY} bytes, such as those that `openssl rand -hex 32` writes"
            ));
        }
        Ok(Self(tag_of(trimmed, &[purpose])))
    }

    /// Returns a key derived from this one. Other parts give another key.
    #[must_use]
    pub fn derive(&self, parts: &[&[u8]]) -> Self {
        let lengths: Vec<_> = parts.iter().map(|part| (part.len() as u64).to_be_bytes()).collect();
        let each = lengths.iter().zip(parts).flat_map(|(length, part)| [&length[..], part]);
        Self(tag_of(&self.0, &each.collect::<Vec<_>>()))
    }

    /// Returns the tag of a message that consists of these parts.
    pub fn tag(&self, parts: &[&[u8]]) -> [u8; TAG] {
        tag_of(&self.0, parts)
    }

    /// Returns whether a tag is that of the message. The time of this call does not depend on the tags.
    pub fn verifies(&self, parts: &[&[u8]], tag: &[u8]) -> bool {
        mac(&self.0, parts).verify_slice(tag).is_ok()
    }
}

fn tag_of(key: &[u8], parts: &[&[u8]]) -> [u8; TAG] {
    mac(key, parts).finalize().into_bytes().into()
}

fn mac(key: &[u8], parts: &[&[u8]]) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of any length");
    for part in parts {
        mac.update(part);
    }
    mac
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 4231 section 4.3, test case 2.
    #[test]
    fn a_tag_is_hmac_sha_256() {
        let tag = tag_of(b"Jefe", &[b"what do ya want ", b"for nothing?"]);
        let expected = 0x5bdc_c146_bf60_754e_6a04_2426_0895_75c7_u128.to_be_bytes();
        assert_eq!(tag[..16], expected);
        assert_eq!(tag[16..], 0x5a00_3f08_9d27_3983_9dec_58b9_64ec_3843_u128.to_be_bytes());
    }

    #[test]
    fn a_tag_belongs_to_its_key_and_message() {
        let key = Key::new(&[1; 32], b"test").unwrap();
        let tag = key.tag(&[b"one", b"two"]);
        assert!(key.verifies(&[b"onetwo"], &tag));
        assert!(!key.verifies(&[b"onetw0"], &tag) && !key.verifies(&[b"onetwo"], &tag[..31]));
        assert!(!Key::new(&[1; 32], b"other").unwrap().verifies(&[b"onetwo"], &tag));
        assert_ne!(key.derive(&[b"a", b"bc"]), key.derive(&[b"ab", b"c"]));
        assert_eq!(format!("{key:?}"), "Key");
    }

    #[test]
    fn a_key_is_neither_short_nor_long() {
        let padded = [b" ", &[7; 32][..], b"\n"].concat();
        assert_eq!(Key::new(&padded, b"test"), Key::new(&[7; 32], b"test"));
        for length in [0, 31, LONGEST_KEY + 1] {
            let why = Key::new(&vec![7; length], b"test").unwrap_err();
            assert!(why.contains("32 to 4096 bytes"), "{length}: {why}");
        }
    }
}
