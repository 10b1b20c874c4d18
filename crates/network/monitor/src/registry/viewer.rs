//! Readers of rows, and the rows that each of them sees.

use super::is_system;

/// Reader of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Viewer {
    /// Sees the rows of every user.
    All,
    /// Sees the rows of this user, and the routers of the system.
    User(u32),
    /// Sees the routers of the system alone.
    Nobody,
}

impl Viewer {
    /// Returns the viewer that a user is.
    pub const fn of_user(uid: u32) -> Self {
        if uid == 0 { Self::All } else { Self::User(uid) }
    }

    /// Returns whether the rows of this user are seen.
    pub const fn sees(self, owner: u32) -> bool {
        match self {
            Self::All => true,
            Self::User(uid) => uid == owner,
            Self::Nobody => false,
        }
    }

    /// Returns whether a router of this user is seen. The counters of a system's router reveal nothing about a user's traffic; its flows and
    /// hosts do, and only readers of its user's rows see them.
    pub const fn sees_router(self, owner: u32) -> bool {
        self.sees(owner) || is_system(owner)
    }
}
