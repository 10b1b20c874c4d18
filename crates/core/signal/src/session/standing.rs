//! Participation of the other end.

/// Participation of the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Nobody knows yet.
    Joining,
    /// The other end takes part; this is the session's token.
    Joined(u32),
    /// The other end takes no part.
    Alone,
}

impl Standing {
    /// The token of messages; `None` while the other end does not take part.
    #[inline]
    pub const fn token(self) -> Option<u32> {
        match self {
            Self::Joined(token) => Some(token),
            Self::Joining | Self::Alone => None,
        }
    }
}

/// Kind of the first datagram at an end while the other end's participation is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opening {
    /// A message of a negotiation, which has been handled.
    Negotiation,
    /// A message or a report of this session, although the other end has not confirmed it: the confirmation is lost. Now both ends
    /// agree, as if it had come.
    Confirmed,
    /// Something else: the other end takes no part.
    Foreign,
}
