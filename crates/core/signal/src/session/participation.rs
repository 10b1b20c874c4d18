//! Participation of the peer.

/// Participation of the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Participation {
    /// Not known yet.
    Joining,
    /// The peer takes part; this is the session's token.
    Joined(u32),
    /// The peer takes no part.
    Alone,
}

impl Participation {
    /// The token of messages; `None` while the peer does not take part.
    #[inline]
    pub const fn token(self) -> Option<u32> {
        match self {
            Self::Joined(token) => Some(token),
            Self::Joining | Self::Alone => None,
        }
    }
}

/// Kind of the first datagram at an end while the peer's participation is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opening {
    /// A message of a negotiation, which has been handled.
    Negotiation,
    /// A message or a report of this session, although the peer has not confirmed it: the confirmation is lost. Now both ends
    /// agree, as if it had come.
    Confirmed,
    /// Something else: the peer takes no part.
    Foreign,
}
