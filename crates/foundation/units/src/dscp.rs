//! Differentiated services code points: their names, the hint of each, and re-marking at an edge.
//!
//! Packets of applications that know of hints carry one in pool 2 ([`DscpPool2`]). The others may carry a code point
//! that an RFC has given a meaning, so a [`HintTable`] has a hint for each of the 64. Its standard values:
//!
//! | code point | meaning (RFC 4594 section 2, unless given) | hint | why |
//! | --- | --- | --- | --- |
//! | `CS4`, `NQB` | interactive, games; sparse flows (RFC 9956) | 4 | little delay, and little data to lose |
//! | `EF`, `VA`, `AF41`..`AF43` | telephony, admitted telephony (RFC 5865), conferences | 6 | best for audio and video in the TSQ paper, figures 10 and 13 |
//! | `CS5`, `CS6`, `CS7` | signalling, routing | 8 | some delay does less harm than loss |
//! | `CS2`, `CS3`, `AF21`..`AF23` | management, broadcast video, low-latency data | 10 | seconds are too long, tens of milliseconds are not |
//! | `AF31`..`AF33` | streaming | 12 | a play-out buffer hides delay |
//! | `AF11`..`AF13`, `CS1`, `LE`, `default`, all others | bulk, background (RFC 8622), unmarked | 16 | throughput only |
//!
//! The values of the third column are ours, not of any RFC; they can be set one by one. A [`RemarkTable`] gives the new value of a
//! code point where a domain ends. Neither knows of the two ECN bits beside the code point.

use crate::{DscpPool2, Hint, HintBits, HintCodec};
use std::fmt;
use std::str::FromStr;

/// A differentiated services code point, 0..=63 (RFC 2474 section 3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Dscp(u8);

/// Not a code point: neither a number from 0 to 63 nor a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DscpError(String);

/// Hint of each code point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HintTable([Hint; CODE_POINTS]);

/// New code point for each code point of packets that enter or leave a domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemarkTable([Dscp; CODE_POINTS]);

/// Number of code points: six bits.
const CODE_POINTS: usize = 64;

/// Prefix of the names of code points of pool 2; the hint's level follows.
const HINT_PREFIX: &str = "hint-";

/// The code points that have names (RFC 2474, RFC 2597, RFC 3246, RFC 5865, RFC 8622, RFC 9956), and their standard hints.
const STANDARD: [(&str, u8, u16); 24] = [
    ("default", 0, 16),
    ("LE", 1, 16),
    ("CS1", 8, 16),
    ("AF11", 10, 16),
    ("AF12", 12, 16),
    ("AF13", 14, 16),
    ("CS2", 16, 10),
    ("AF21", 18, 10),
    ("AF22", 20, 10),
    ("AF23", 22, 10),
    ("CS3", 24, 10),
    ("AF31", 26, 12),
    ("AF32", 28, 12),
    ("AF33", 30, 12),
    ("CS4", 32, 4),
    ("AF41", 34, 6),
    ("AF42", 36, 6),
    ("AF43", 38, 6),
    ("CS5", 40, 8),
    ("VA", 44, 6),
    ("NQB", 45, 4),
    ("EF", 46, 6),
    ("CS6", 48, 8),
    ("CS7", 56, 8),
];

impl Dscp {
    /// Code point of unmarked packets: 0 (RFC 2474 section 4.1).
    pub const DEFAULT: Self = Self(0);

    /// The code point of that number, `None` above 63.
    pub const fn new(number: u8) -> Option<Self> {
        if (number as usize) < CODE_POINTS { Some(Self(number)) } else { None }
    }

    /// The code point in the upper six bits of a traffic class octet; the ECN bits are ignored.
    pub const fn from_traffic_class(octet: u8) -> Self {
        Self(octet >> 2)
    }

    /// A traffic class octet with this code point and the ECN bits of `octet`.
    pub const fn in_traffic_class(self, octet: u8) -> u8 {
        self.0 << 2 | octet & 0b11
    }

    /// The code point, 0..=63.
    pub const fn get(self) -> u8 {
        self.0
    }

    /// Every code point.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..CODE_POINTS as u8).map(Self)
    }
}

impl HintTable {
    /// The hints of the table above.
    pub fn standard() -> Self {
        let mut table = Self([HintBits::PAPER.largest(); CODE_POINTS]);
        for (_, number, level) in STANDARD {
            table.set(Dscp(number), Hint::from_level(level));
        }
        for dscp in Dscp::all() {
            if let Some(hint) = DscpPool2.decode(dscp) {
                table.set(dscp, hint);
            }
        }
        table
    }

    /// The hint of a packet with this code point.
    #[inline]
    pub const fn hint(&self, dscp: Dscp) -> Hint {
        self.0[dscp.0 as usize]
    }

    /// Gives a code point another hint.
    pub const fn set(&mut self, dscp: Dscp, hint: Hint) {
        self.0[dscp.0 as usize] = hint;
    }
}

impl Default for HintTable {
    fn default() -> Self {
        Self::standard()
    }
}

impl RemarkTable {
    /// A table that changes no code point.
    pub fn unchanged() -> Self {
        Self(std::array::from_fn(|number| Dscp(number as u8)))
    }

    /// For the edge where packets enter a domain that knows hints: every code point becomes that of its hint.
    pub fn to_hints(hints: &HintTable) -> Self {
        let of_hint = |number| {
            let hint = hints.hint(Dscp(number as u8));
            DscpPool2.encode(hint).unwrap_or(Dscp(number as u8))
        };
        Self(std::array::from_fn(of_hint))
    }

    /// For the edge where packets leave it: hints, which mean nothing outside, become the default.
    pub fn without_hints() -> Self {
        let outside = |dscp: Dscp| if DscpPool2.decode(dscp).is_some() { Dscp::DEFAULT } else { dscp };
        Self(std::array::from_fn(|number| outside(Dscp(number as u8))))
    }

    /// Returns the new code point.
    #[inline]
    pub const fn remark(&self, dscp: Dscp) -> Dscp {
        self.0[dscp.0 as usize]
    }

    /// Lets a code point become another.
    pub const fn set(&mut self, from: Dscp, to: Dscp) {
        self.0[from.0 as usize] = to;
    }
}

impl Default for RemarkTable {
    fn default() -> Self {
        Self::unchanged()
    }
}

/// The name, `hint-6` in pool 2, or the number where there is no name.
impl fmt::Display for Dscp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(hint) = DscpPool2.decode(*self) {
            return write!(f, "{HINT_PREFIX}{hint}");
        }
        match STANDARD.iter().find(|(_, number, _)| *number == self.0) {
            Some((name, ..)) => f.write_str(name),
            None => self.0.fmt(f),
        }
    }
}

/// A number from 0 to 63, or a name in any case: `EF`, `AF41`, `default`, `hint-6`.
impl FromStr for Dscp {
    type Err = DscpError;

    fn from_str(text: &str) -> Result<Self, DscpError> {
        let named = STANDARD.iter().find(|(name, ..)| name.eq_ignore_ascii_case(text));
        let number = text.parse().ok().and_then(Self::new);
        let found =
            number.or_else(|| named.map(|(_, number, _)| Self(*number))).or_else(|| hint_code_point(text));
        found.ok_or_else(|| DscpError(text.to_owned()))
    }
}

/// Returns the code point of a name such as `hint-3`.
fn hint_code_point(text: &str) -> Option<Dscp> {
    let level = text.to_ascii_lowercase().strip_prefix(HINT_PREFIX)?.parse().ok()?;
    DscpPool2.encode(HintBits::PAPER.hint(level).ok()?)
}

impl fmt::Display for DscpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = STANDARD.iter().map(|(name, ..)| *name).collect();
        write!(
            f,
            "a code point is a number from 0 to 63, hint-1 to hint-16, or one of {}, not {:?}",
            names.join(", "),
            self.0
        )
    }
}

impl std::error::Error for DscpError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(table: &HintTable, name: &str) -> u16 {
        table.hint(name.parse().unwrap()).level()
    }

    #[test]
    fn standard_code_points_have_hints_and_the_others_are_unmarked() {
        let table = HintTable::standard();
        let expected = [("EF", 6), ("AF42", 6), ("NQB", 4), ("CS1", 16), ("LE", 16), ("default", 16)];
        for (name, hint) in expected {
            assert_eq!(level(&table, name), hint, "{name}");
        }
        assert_eq!(level(&table, "5"), 16, "5 has no meaning, so it is unmarked");
    }

    #[test]
    fn a_code_point_of_pool_2_has_its_own_hint_until_it_is_overridden() {
        let mut table = HintTable::standard();
        for hint in 1..=16_u16 {
            // DESIGN: dscp = (level - 1) << 2 | 3.
            let dscp = Dscp::new((hint as u8 - 1) << 2 | 3).unwrap();
            assert_eq!(table.hint(dscp).level(), hint);
        }
        table.set("EF".parse().unwrap(), Hint::LEAST_DELAY);
        assert_eq!((level(&table, "ef"), level(&table, "VA")), (1, 6));
    }

    /// RFC 2597 section 6: `AFij` is 8 i + 2 j; RFC 2474 section 4.2.2: `CSi` is 8 i; RFC 3246: EF is 101110.
    #[test]
    fn the_numbers_are_those_of_the_rfcs() {
        let number = |name: &str| name.parse::<Dscp>().unwrap().get();
        for i in 1..=4 {
            for j in 1..=3 {
                assert_eq!(number(&format!("AF{i}{j}")), 8 * i + 2 * j);
            }
        }
        (1..=7).for_each(|i| assert_eq!(number(&format!("CS{i}")), 8 * i));
        assert_eq!((number("EF"), number("VA"), number("NQB"), number("LE")), (0b10_1110, 0b10_1100, 45, 1));
    }

    #[test]
    fn every_code_point_is_read_as_it_is_printed() {
        for dscp in Dscp::all() {
            assert_eq!(dscp.to_string().parse(), Ok(dscp));
        }
        for bad in ["64", "-1", "hint-0", "hint-17", "AF44", ""] {
            let error = bad.parse::<Dscp>().unwrap_err();
            assert!(error.to_string().contains(&format!("{bad:?}")), "{error}");
        }
    }

    #[test]
    fn the_ecn_bits_stay() {
        let ef: Dscp = "EF".parse().unwrap();
        assert_eq!(ef.in_traffic_class(0b0000_0001), 0b1011_1001);
        assert_eq!(Dscp::from_traffic_class(0b1011_1001), ef);
    }

    #[test]
    fn re_marking_at_the_two_edges() {
        let (hints, ef) = (HintTable::standard(), "EF".parse().unwrap());
        assert_eq!(RemarkTable::unchanged().remark(ef), ef);
        let inside = RemarkTable::to_hints(&hints).remark(ef);
        assert_eq!(inside.to_string(), "hint-6");
        assert_eq!(RemarkTable::without_hints().remark(inside), Dscp::DEFAULT);
        assert_eq!(RemarkTable::without_hints().remark(ef), ef);
    }
}
