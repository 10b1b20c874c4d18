//! The ECN field of an IP header.

/// The ECN field of an IP header (RFC 3168 section 5; RFC 9331 section 4.1 for [`Ecn::Ect1`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ecn {
    /// 00: the transport does not know of marks, so the packet cannot be marked.
    #[default]
    NotEct,
    /// 01: the packet can be marked; its sender answers marks in proportion to their share.
    Ect1,
    /// 10: the packet can be marked; its sender answers a mark as it answers a loss.
    Ect0,
    /// 11: a router has marked the packet.
    Ce,
}

impl Ecn {
    /// The field of its two bits; higher bits are ignored.
    pub const fn from_bits(bits: u8) -> Self {
        match bits & 0b11 {
            0b00 => Self::NotEct,
            0b01 => Self::Ect1,
            0b10 => Self::Ect0,
            _ => Self::Ce,
        }
    }

    /// Returns whether a router may mark the packet instead of dropping it, or has done so.
    pub const fn is_capable(self) -> bool {
        !matches!(self, Self::NotEct)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_points_of_rfc_3168() {
        let all = [0, 1, 2, 3, 0xfe].map(Ecn::from_bits);
        assert_eq!(all, [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce, Ecn::Ect0]);
        assert_eq!(all.map(Ecn::is_capable), [false, true, true, true, true]);
    }
}
