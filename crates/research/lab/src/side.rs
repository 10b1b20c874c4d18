//! The two sides of the network.

/// A side of the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkSide {
    /// The hosts that send data.
    Sources,
    /// The hosts that receive data.
    Sinks,
}

impl NetworkSide {
    /// The other side.
    pub const fn other(self) -> Self {
        match self {
            Self::Sources => Self::Sinks,
            Self::Sinks => Self::Sources,
        }
    }
}
