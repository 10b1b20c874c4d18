//! First byte of the far gateway, which states whether it has reached the server.

use std::io;

/// Outcome of the connection to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Greeting {
    /// The connection was made.
    Connected,
    /// No server listens there.
    Refused,
    /// No route, or no such name.
    Unreachable,
    /// The server has not answered in time.
    Late,
    /// Another failure; the far gateway gives the reason.
    Failed,
}

impl Greeting {
    const ALL: [Self; 5] = [Self::Connected, Self::Refused, Self::Unreachable, Self::Late, Self::Failed];

    /// The greeting in a byte; `None` if it is none.
    pub fn from_byte(byte: u8) -> Option<Self> {
        Self::ALL.get(usize::from(byte)).copied()
    }

    pub const fn byte(self) -> u8 {
        self as u8
    }

    /// Returns the greeting for a failed connection.
    pub fn from_error(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::ConnectionRefused => Self::Refused,
            io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => Self::Late,
            io::ErrorKind::HostUnreachable
            | io::ErrorKind::NetworkUnreachable
            | io::ErrorKind::AddrNotAvailable
            | io::ErrorKind::NotFound
            | io::ErrorKind::InvalidInput => Self::Unreachable,
            _ => Self::Failed,
        }
    }

    /// Returns the meaning in words.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Connected => "connected",
            Self::Refused => "the server refuses connections",
            Self::Unreachable => "the far gateway has no route to the server",
            Self::Late => "the server has not answered in time",
            Self::Failed => "the far gateway cannot connect to the server",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_a_greeting_or_none() {
        let found: Vec<_> = (0..=u8::MAX).filter_map(Greeting::from_byte).collect();
        assert_eq!(found, Greeting::ALL);
        assert!(found.iter().all(|greeting| Greeting::from_byte(greeting.byte()) == Some(*greeting)));
    }
}
