//! Counters of an engine.

use crate::integrity::IntegrityVerdict;
use crate::message::{DecodeError, MessageType};
use std::collections::BTreeMap;

/// Counters since the engine began.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Messages sent, by type.
    pub sent: BTreeMap<MessageType, u64>,
    /// Messages that were sent again because no acknowledgement came.
    pub sent_again: u64,
    /// Bytes sent, without the headers of IP and UDP.
    pub sent_bytes: u64,
    /// Messages received and understood, by type.
    pub received: BTreeMap<MessageType, u64>,
    /// Messages with a wrong checksum or length, of another version, or otherwise malformed.
    pub malformed: u64,
    /// Messages with something that is not known here, which were answered with an error.
    pub refused: u64,
    /// Messages without an INTEGRITY object where there must be one.
    pub without_integrity: u64,
    /// Messages with a key that is not known or not valid.
    pub unknown_key: u64,
    /// Messages with a wrong digest.
    pub forged: u64,
    /// Messages that were repeated, or came too late.
    pub replayed: u64,
    /// Messages of neighbours that have not shown yet that they are recent.
    pub unproven: u64,
    /// Messages that were signed with an expired key, because there is no other.
    pub expired_key: u64,
    /// Messages that were not sent because there is no key.
    pub without_key: u64,
    /// Messages by a carrier or at an interface that is not used, with a handle that is not ours, or about state of an interface where they
    /// did not arrive.
    pub misplaced: u64,
    /// Messages that an older one overtook.
    pub out_of_order: u64,
    /// Messages about state that does not exist.
    pub without_state: u64,
    /// Number of refusals because of a limit.
    pub full: u64,
    /// Paths that ended because there was no room for newer ones.
    pub evicted: u64,
    /// Reservations that admission control has refused.
    pub not_admitted: u64,
    /// States that ended because they were not refreshed.
    pub expired: u64,
    /// Messages that were not sent because they do not fit a datagram.
    pub too_long: u64,
    /// Messages that were not forwarded because their TTL had ended.
    pub ttl_ended: u64,
}

impl Stats {
    /// Returns the number of sent messages.
    pub fn sent_messages(&self) -> u64 {
        self.sent.values().sum()
    }

    pub(super) fn count_decode_error(&mut self, error: &DecodeError) {
        match error {
            DecodeError::Rejected(_) => self.refused += 1,
            _ => self.malformed += 1,
        }
    }

    pub(super) fn count_verdict(&mut self, verdict: IntegrityVerdict) {
        match verdict {
            IntegrityVerdict::Accept => {}
            IntegrityVerdict::Missing => self.without_integrity += 1,
            IntegrityVerdict::UnknownKey => self.unknown_key += 1,
            IntegrityVerdict::Forged => self.forged += 1,
            IntegrityVerdict::Replayed => self.replayed += 1,
            IntegrityVerdict::Challenge(_) | IntegrityVerdict::Awaiting => self.unproven += 1,
        }
    }
}
