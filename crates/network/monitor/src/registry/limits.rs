//! Limits of publications, and the share of all users in them.

/// Limits of publications by processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublicationLimits {
    /// The most publishers. A quarter of the places is for root and the services of the system.
    pub publishers: usize,
    /// The most publishers of a user other than root.
    pub publishers_of_user: usize,
    /// The most memory that all rows may take, bytes. A quarter of it is for root and the services of the system.
    pub bytes: usize,
    /// The most memory that the rows of a user other than root may take.
    pub bytes_of_user: usize,
}

impl PublicationLimits {
    /// Limits for tens of thousands of sockets.
    pub const DEFAULT: Self =
        Self { publishers: 4096, publishers_of_user: 1024, bytes: 256 << 20, bytes_of_user: 64 << 20 };
}

/// Returns whether a user is root or a service that runs under a user of its own (`DynamicUser` of systemd).
pub const fn is_system(uid: u32) -> bool {
    uid == 0 || matches!(uid, 61_184..=65_519)
}

/// Returns the part of some places that all users have together who are neither root nor a service of the system. Several users may work
/// together, or one have several numbers (`/etc/subuid`).
pub const fn of_all_users(places: usize) -> usize {
    places - places / 4
}
