//! Authentication of messages between neighbours (RFC 2747): keyed digests, and sequence numbers against repetition.
//!
//! [`sign`] puts an INTEGRITY object into a message, [`ReplayGuard`] checks those that arrive at an interface. Keys are those that an
//! administrator has given to both neighbours, byte by byte, as other implementations have them.

use crate::message::{DecodeError, HEADER, Objects, finish};
use crate::object::{Challenge, KEY_BITS, OBJECT_HEADER, class};
use cutline_units::Instant;
use cutline_wire::Reader;
use hmac::{Hmac, KeyInit as _, Mac as _};
use md5::Md5;
use sha2::Sha256;
use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;

/// The bytes of an INTEGRITY object before its digest.
const FIXED: usize = 16;
/// The bytes of the longest INTEGRITY object.
pub const LONGEST_OBJECT: usize = OBJECT_HEADER + FIXED + 32;
/// The flag of a sender that answers challenges.
const HANDSHAKE: u8 = 0x80;
/// The most senders whose sequence numbers are remembered.
const MOST_SENDERS: usize = 4096;

/// Algorithm of a digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// HMAC-MD5, 16 bytes, which every implementation has (RFC 2747 section 6).
    HmacMd5,
    /// HMAC-SHA-256, 32 bytes.
    HmacSha256,
}

/// A key with its number and its lifetime (RFC 2747 section 5.2).
#[derive(Clone, PartialEq, Eq)]
pub struct SecurityKey {
    /// The number, 48 bits.
    pub id: u64,
    /// Algorithm of the digests.
    pub algorithm: Algorithm,
    /// The secret.
    pub secret: Vec<u8>,
    /// Begin of the key's lifetime.
    pub from: Instant,
    /// End of the key's lifetime.
    pub until: Instant,
    /// The neighbour that signs with it; `None` for all.
    pub sender: Option<IpAddr>,
}

/// The secret is not shown.
impl fmt::Debug for SecurityKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SecurityKey")
            .field("id", &self.id)
            .field("algorithm", &self.algorithm)
            .finish_non_exhaustive()
    }
}

impl SecurityKey {
    /// A key that is always valid and that all nodes sign with.
    pub fn new(id: u64, algorithm: Algorithm, secret: impl Into<Vec<u8>>) -> Self {
        let (from, until) = (Instant::ZERO, Instant::FAR_FUTURE);
        Self { id: id & KEY_BITS, algorithm, secret: secret.into(), from, until, sender: None }
    }

    const fn digest_length(&self) -> usize {
        match self.algorithm {
            Algorithm::HmacMd5 => 16,
            Algorithm::HmacSha256 => 32,
        }
    }

    fn digest(&self, message: &[u8]) -> Vec<u8> {
        const ANY: &str = "HMAC takes keys of any length";
        match self.algorithm {
            Algorithm::HmacMd5 => {
                let mac = Hmac::<Md5>::new_from_slice(&self.secret).expect(ANY);
                mac.chain_update(message).finalize().into_bytes().to_vec()
            }
            Algorithm::HmacSha256 => {
                let mac = Hmac::<Sha256>::new_from_slice(&self.secret).expect(ANY);
                mac.chain_update(message).finalize().into_bytes().to_vec()
            }
        }
    }

    /// Returns whether both sign the same messages with the same digests.
    pub fn is_same_secret(&self, other: &Self) -> bool {
        (self.id, self.algorithm, &self.secret) == (other.id, other.algorithm, &other.secret)
    }

    /// Compares in a time that does not depend on the digests.
    fn verifies(&self, message: &[u8], digest: &[u8]) -> bool {
        let right = self.digest(message);
        right.len() == digest.len() && right.iter().zip(digest).fold(0, |other, (a, b)| other | (a ^ b)) == 0
    }
}

/// An INTEGRITY object without its digest (RFC 2747 section 2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Integrity {
    /// True if the sender answers challenges.
    pub handshakes: bool,
    /// The number of the key.
    pub key: u64,
    /// The sequence number.
    pub sequence: u64,
}

/// Puts an INTEGRITY object into a message (RFC 2747 section 4.1).
pub fn sign(message: &mut Vec<u8>, key: &SecurityKey, sequence: u64, handshakes: bool) {
    let length = OBJECT_HEADER + FIXED + key.digest_length();
    let mut object = Vec::with_capacity(length);
    object.extend((length as u16).to_be_bytes());
    object.extend([class::INTEGRITY, 1]);
    let flags = if handshakes { HANDSHAKE } else { 0 };
    object.extend((u64::from(flags) << 56 | key.id).to_be_bytes());
    object.extend(sequence.to_be_bytes());
    object.resize(length, 0);
    message.splice(HEADER..HEADER, object);
    let total = message.len() as u16;
    message[6..8].copy_from_slice(&total.to_be_bytes());
    message[2..4].fill(0);
    let digest = key.digest(message);
    let at = HEADER + OBJECT_HEADER + FIXED;
    message[at..at + digest.len()].copy_from_slice(&digest);
    finish(message);
}

/// Reads the INTEGRITY object of a message: its fields and its digest.
fn integrity_of(message: &[u8]) -> Option<(Integrity, &[u8])> {
    let objects = message.get(HEADER..)?;
    let Some(Ok((class::INTEGRITY, 1, content))) = Objects(objects).next() else { return None };
    let mut reader = Reader::new(content);
    let word = reader.u64()?;
    let sequence = reader.u64()?;
    let handshakes = word >> 56 & u64::from(HANDSHAKE) != 0;
    Some((Integrity { handshakes, key: word & KEY_BITS, sequence }, content.get(FIXED..)?))
}

/// Configuration of an interface whose messages are authenticated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IntegrityConfig {
    /// The keys, those of neighbours included.
    pub keys: Vec<SecurityKey>,
    /// Window of sequence numbers for late messages, 1 to 64 (RFC 2747 section 4.2 suggests 32).
    pub window: u8,
    /// True if a neighbour without a record must prove first that its messages are recent. Then
    /// nothing that was recorded before this node started is worth anything.
    pub challenges: bool,
}

impl IntegrityConfig {
    /// Challenges, and takes messages up to 32 numbers late.
    pub const fn new(keys: Vec<SecurityKey>) -> Self {
        Self { keys, window: 32, challenges: true }
    }

    /// Returns the keys with which a neighbour may sign.
    pub fn keys_of(&self, sender: IpAddr) -> impl Iterator<Item = &SecurityKey> {
        self.keys.iter().filter(move |key| key.sender.is_none_or(|owner| owner == sender))
    }

    /// Returns the key with which to sign: of those that are valid, the one that has become so last. If all have expired, the one
    /// that was so last is used (RFC 2747 section 5.3), and the second value is `true`.
    pub fn signing_key(&self, now: Instant, own: IpAddr) -> Option<(&SecurityKey, bool)> {
        let ours = || {
            self.keys
                .iter()
                .filter(move |key| key.sender.is_none_or(|sender| sender == own) && key.from <= now)
        };
        let valid = ours().filter(|key| now < key.until).max_by_key(|key| key.from);
        valid.map(|key| (key, false)).or_else(|| ours().max_by_key(|key| key.until).map(|key| (key, true)))
    }
}

/// Returns the number of the key that a message names; `None` if it has no INTEGRITY object.
pub fn key_number(message: &[u8]) -> Option<u64> {
    integrity_of(message).map(|(fields, _)| fields.key)
}

/// Verdict on a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntegrityVerdict {
    /// Recent, and sent by the neighbour.
    Accept,
    /// Without an INTEGRITY object.
    Missing,
    /// No such key of this neighbour, or it is not valid now.
    UnknownKey,
    /// The digest is wrong.
    Forged,
    /// The sequence number was seen before, or is older than the window.
    Replayed,
    /// The neighbour must prove first that its messages are recent: send it this.
    Challenge(Challenge),
    /// Challenged, and not answered yet.
    Awaiting,
}

/// The sequence numbers of a neighbour's key.
#[derive(Clone, Copy, Debug)]
enum Seen {
    /// The largest number, and which of the 64 up to it have been seen: bit 0 is the largest.
    Numbers { largest: u64, seen: u64 },
    /// Challenged at this time.
    Challenged { cookie: u64, at: Instant },
}

/// Checks the messages that arrive at an interface.
#[derive(Debug)]
pub struct ReplayGuard {
    config: IntegrityConfig,
    secret: SecurityKey,
    challenges: u64,
    senders: BTreeMap<(u64, IpAddr), Seen>,
}

/// Of a neighbour without a record, everything older than the first message counts as seen.
const ALL_SEEN: u64 = u64::MAX;

/// Time to wait for the answer to a challenge.
const CHALLENGE_TIMEOUT: cutline_units::Duration = cutline_units::Duration::from_secs(2);

impl ReplayGuard {
    /// Creates a guard. Challenges follow from `secret`, which cannot be guessed.
    pub fn new(config: IntegrityConfig, secret: [u8; 32]) -> Self {
        let secret = SecurityKey::new(0, Algorithm::HmacSha256, secret);
        Self { config, secret, challenges: 0, senders: BTreeMap::new() }
    }

    /// Returns the settings.
    pub const fn config(&self) -> &IntegrityConfig {
        &self.config
    }

    /// Replaces the keys. The state of other keys stays.
    pub fn set_keys(&mut self, keys: Vec<SecurityKey>) {
        self.senders.retain(|(id, _), _| keys.iter().any(|key| key.id == *id));
        self.config.keys = keys;
    }

    /// Checks a message of a neighbour (RFC 2747 section 4.2). `sender` is the address in its `RSVP_HOP` object, or else its source.
    pub fn check(&mut self, now: Instant, sender: IpAddr, message: &[u8]) -> IntegrityVerdict {
        let fields = match self.authenticate(now, sender, message) {
            Ok(fields) => fields,
            Err(verdict) => return verdict,
        };
        let window = u64::from(self.config.window.clamp(1, 64));
        let place = (fields.key, sender);
        match self.senders.get_mut(&place) {
            Some(Seen::Numbers { largest, seen }) => accept(largest, seen, fields.sequence, window),
            Some(Seen::Challenged { at, .. }) if now < *at + CHALLENGE_TIMEOUT => IntegrityVerdict::Awaiting,
            _ if self.config.challenges && fields.handshakes => self.challenge(now, place),
            _ => {
                self.remember(place, Seen::Numbers { largest: fields.sequence, seen: ALL_SEEN });
                IntegrityVerdict::Accept
            }
        }
    }

    /// Checks the answer to a challenge (RFC 2747 section 4.3). Messages from then on are newer than it.
    pub fn check_response(
        &mut self,
        now: Instant,
        sender: IpAddr,
        message: &[u8],
        answer: &Challenge,
    ) -> IntegrityVerdict {
        let fields = match self.authenticate(now, sender, message) {
            Ok(fields) => fields,
            Err(verdict) => return verdict,
        };
        let place = (fields.key, sender);
        match self.senders.get(&place) {
            Some(Seen::Challenged { cookie, .. }) if *cookie == answer.cookie && answer.key == fields.key => {
                self.remember(place, Seen::Numbers { largest: fields.sequence, seen: ALL_SEEN });
                IntegrityVerdict::Accept
            }
            _ => IntegrityVerdict::Replayed,
        }
    }

    fn authenticate(
        &self,
        now: Instant,
        sender: IpAddr,
        message: &[u8],
    ) -> Result<Integrity, IntegrityVerdict> {
        let (fields, digest) = integrity_of(message).ok_or(IntegrityVerdict::Missing)?;
        let is_key =
            |key: &&SecurityKey| key.id == fields.key && key.sender.is_none_or(|owner| owner == sender);
        let is_valid = |key: &&SecurityKey| key.from <= now && now < key.until;
        // RFC 2747 section 5.3: the last key of a neighbour stays valid.
        let last = || {
            let theirs = self.config.keys.iter().filter(|key| key.sender.is_none_or(|owner| owner == sender));
            theirs.clone().all(|key| now >= key.until).then(|| theirs.max_by_key(|key| key.until)).flatten()
        };
        let key = self.config.keys.iter().find(|key| is_key(key) && is_valid(key));
        let key = key.or_else(|| last().filter(is_key)).ok_or(IntegrityVerdict::UnknownKey)?;
        let mut zeroed = message.to_vec();
        zeroed[2..4].fill(0);
        let at = HEADER + OBJECT_HEADER + FIXED;
        zeroed[at..at + digest.len()].fill(0);
        if key.verifies(&zeroed, digest) { Ok(fields) } else { Err(IntegrityVerdict::Forged) }
    }

    fn challenge(&mut self, now: Instant, place: (u64, IpAddr)) -> IntegrityVerdict {
        self.challenges += 1;
        let address = match place.1 {
            IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
            IpAddr::V6(v6) => v6.octets(),
        };
        let parts = [&self.challenges.to_be_bytes()[..], &place.0.to_be_bytes(), &address].concat();
        let digest = self.secret.digest(&parts);
        let cookie = digest.first_chunk().copied().map_or(0, u64::from_be_bytes);
        self.remember(place, Seen::Challenged { cookie, at: now });
        IntegrityVerdict::Challenge(Challenge { key: place.0, cookie })
    }

    fn remember(&mut self, place: (u64, IpAddr), seen: Seen) {
        if self.senders.len() >= MOST_SENDERS && !self.senders.contains_key(&place) {
            self.senders.pop_first();
        }
        self.senders.insert(place, seen);
    }
}

/// Takes a sequence number if it is new and within the window. Numbers wrap around.
fn accept(largest: &mut u64, seen: &mut u64, sequence: u64, window: u64) -> IntegrityVerdict {
    let ahead = sequence.wrapping_sub(*largest);
    if ahead == 0 {
        return IntegrityVerdict::Replayed;
    }
    if ahead < 1 << 63 {
        *seen = if ahead < 64 { *seen << ahead | 1 } else { 1 };
        *largest = sequence;
        return IntegrityVerdict::Accept;
    }
    let behind = largest.wrapping_sub(sequence);
    if behind >= window || *seen >> behind & 1 != 0 {
        return IntegrityVerdict::Replayed;
    }
    *seen |= 1 << behind;
    IntegrityVerdict::Accept
}

/// The address of a message's sender: that in its `RSVP_HOP` object, or else its source (RFC 2747 section 4).
///
/// # Errors
/// When the objects are not possible.
pub fn sender_of(message: &[u8], source: IpAddr) -> Result<IpAddr, DecodeError> {
    for object in Objects(message.get(HEADER..).unwrap_or_default()) {
        let (found, kind, content) = object?;
        if found == class::RSVP_HOP {
            return Ok(crate::object::Hop::read(kind, content).map_or(source, |hop| hop.address));
        }
    }
    Ok(source)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Body, Message};

    const SOURCE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));

    fn message() -> Message {
        Message::new(64, Body::IntegrityChallenge(Challenge { key: 5, cookie: 6 }))
    }

    fn guard(keys: Vec<SecurityKey>, challenges: bool) -> ReplayGuard {
        ReplayGuard::new(IntegrityConfig { challenges, ..IntegrityConfig::new(keys) }, [7; 32])
    }

    /// RFC 2202 test case 2 and RFC 4231 section 4.3.
    #[test]
    fn digests_are_those_of_the_published_test_cases() {
        let digest =
            |algorithm| SecurityKey::new(1, algorithm, *b"Jefe").digest(b"what do ya want for nothing?");
        let md5 = 0x750c_783e_6ab0_b503_eaa8_6e31_0a5d_b738_u128;
        assert_eq!(digest(Algorithm::HmacMd5), md5.to_be_bytes());
        assert_eq!(
            digest(Algorithm::HmacSha256)[..16],
            0x5bdc_c146_bf60_754e_6a04_2426_0895_75c7_u128.to_be_bytes()
        );
    }

    /// RFC 2747 section 4.2: a message with a changed byte is refused, and so is one that is repeated.
    #[test]
    fn a_message_is_accepted_once_and_only_as_it_was_signed() {
        for algorithm in [Algorithm::HmacMd5, Algorithm::HmacSha256] {
            let key = SecurityKey::new(3, algorithm, *b"secret");
            let mut guard = guard(vec![key.clone()], false);
            let mut bytes = message().encode();
            sign(&mut bytes, &key, 10, true);
            assert_eq!(Message::decode(&bytes), Ok(message()));
            for at in 4..bytes.len() {
                let mut changed = bytes.clone();
                changed[at] ^= 1;
                assert_ne!(
                    guard.check(Instant::ZERO, SOURCE, &changed),
                    IntegrityVerdict::Accept,
                    "byte {at}"
                );
            }
            assert_eq!(guard.check(Instant::ZERO, SOURCE, &bytes), IntegrityVerdict::Accept);
            assert_eq!(guard.check(Instant::ZERO, SOURCE, &bytes), IntegrityVerdict::Replayed);
            assert_eq!(guard.check(Instant::ZERO, SOURCE, &message().encode()), IntegrityVerdict::Missing);
        }
    }

    /// RFC 2747 section 4.2: the window.
    #[test]
    fn numbers_may_come_late_but_not_twice() {
        let (mut largest, mut seen) = (u64::MAX - 1, 1);
        let mut accept = |sequence| accept(&mut largest, &mut seen, sequence, 4) == IntegrityVerdict::Accept;
        assert!(accept(2), "numbers wrap around");
        assert!(accept(0) && !accept(0) && accept(1) && accept(u64::MAX));
        assert!(!accept(u64::MAX - 1), "it was the first");
        assert!(accept(100) && accept(97) && !accept(96) && !accept(97));
    }

    /// RFC 2747 section 4.3.
    #[test]
    fn a_neighbour_proves_first_that_its_messages_are_recent() {
        let key = SecurityKey::new(3, Algorithm::HmacSha256, *b"secret");
        let mut guard = guard(vec![key.clone()], true);
        let signed = |message: &Message, sequence| {
            let mut bytes = message.encode();
            sign(&mut bytes, &key, sequence, true);
            bytes
        };
        let old = signed(&message(), 10);
        let IntegrityVerdict::Challenge(challenge) = guard.check(Instant::ZERO, SOURCE, &old) else {
            panic!("no challenge")
        };
        assert_eq!(guard.check(Instant::ZERO, SOURCE, &old), IntegrityVerdict::Awaiting);
        let wrong = Challenge { cookie: challenge.cookie ^ 1, ..challenge };
        for (answer, verdict) in [(wrong, IntegrityVerdict::Replayed), (challenge, IntegrityVerdict::Accept)]
        {
            let response = signed(&Message::new(64, Body::IntegrityResponse(answer)), 50);
            assert_eq!(guard.check_response(Instant::ZERO, SOURCE, &response, &answer), verdict);
        }
        assert_eq!(guard.check(Instant::ZERO, SOURCE, &old), IntegrityVerdict::Replayed);
        assert_eq!(guard.check(Instant::ZERO, SOURCE, &signed(&message(), 51)), IntegrityVerdict::Accept);
    }

    /// RFC 2747 sections 5.1 and 5.3.
    #[test]
    fn keys_follow_each_other_and_the_last_one_does_not_end() {
        let at = |s| Instant::ZERO + cutline_units::Duration::from_secs(s);
        let key = |id, from, until| SecurityKey {
            from: at(from),
            until: at(until),
            ..SecurityKey::new(id, Algorithm::HmacMd5, *b"secret")
        };
        let keys = vec![key(1, 0, 100), key(2, 80, 200)];
        let config = IntegrityConfig::new(keys.clone());
        let used = |s| config.signing_key(at(s), SOURCE).map(|(key, is_over)| (key.id, is_over));
        assert_eq!(
            [50, 90, 150, 250].map(used),
            [Some((1, false)), Some((2, false)), Some((2, false)), Some((2, true))]
        );
        let mut guard = guard(keys.clone(), false);
        let mut check = |s, key: &SecurityKey, sequence| {
            let mut bytes = message().encode();
            sign(&mut bytes, key, sequence, false);
            guard.check(at(s), SOURCE, &bytes)
        };
        assert_eq!(check(90, &keys[0], 1), IntegrityVerdict::Accept);
        assert_eq!(check(90, &keys[1], 1), IntegrityVerdict::Accept);
        assert_eq!(check(150, &keys[0], 2), IntegrityVerdict::UnknownKey);
        assert_eq!(check(250, &keys[1], 2), IntegrityVerdict::Accept);
    }
}
