//! Writes of applications to senders.

/// A write of an application to its sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Write {
    /// A message of this many bytes.
    Bytes(u64),
    /// Unlimited data (`write_unlimited`).
    Unlimited,
}
