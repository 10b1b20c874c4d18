//! Quantities as people write them: `"15 Mbit/s"`, `"50 ms"`, `"1000 B"`, `"800 packets"`, `"5 %"`, `"170 Hz"`.
//!
//! A quantity is a decimal number and a unit, with or without a space between them. The arithmetic is in
//! integers, so `"0.1 s"` is 100,000,000 ns exactly; a number that is finer than the smallest unit (1 ns,
//! 1 bit/s, 1 B) is refused instead of rounded. Decimal prefixes are powers of 1000 (`KB`, `MB`), binary ones
//! of 1024 (`KiB`, `MiB`). `MB/s` is refused because it often means bits.
//!
//! Numbers with an exponent and numbers without a unit are not quantities.

use cutline_params::nearest;
use cutline_units::{Bytes, Duration, Probability, Rate};
use std::fmt;

/// A dimension, and the units of its quantities.
#[derive(Debug)]
pub struct Dimension {
    /// Name of a value, with its article: `a rate`.
    pub noun: &'static str,
    /// A value as one would write it.
    pub example: &'static str,
    /// The units worth naming in a message; empty when the example is enough.
    pub units: &'static str,
    /// Every spelling that is understood, and its size in the smallest unit.
    spellings: &'static [(&'static str, u64)],
    /// The smallest unit, as a message names it.
    smallest: &'static str,
    /// Spellings that are refused, and why.
    refused: &'static [(&'static str, &'static str)],
}

const BYTES_OR_BITS: &str =
    "it is ambiguous, because it often means bits: write Mbit/s (and 8 times the number for bytes)";

/// Bits per second.
pub const RATE: Dimension = Dimension {
    noun: "a rate",
    example: "15 Mbit/s",
    units: "bit/s, kbit/s, Mbit/s, Gbit/s",
    spellings: &[
        ("bit/s", 1),
        ("kbit/s", 1_000),
        ("Mbit/s", 1_000_000),
        ("Gbit/s", 1_000_000_000),
        ("bps", 1),
        ("kbps", 1_000),
        ("Mbps", 1_000_000),
        ("Gbps", 1_000_000_000),
        ("kb/s", 1_000),
        ("Mb/s", 1_000_000),
        ("Gb/s", 1_000_000_000),
    ],
    smallest: "1 bit/s",
    refused: &[
        ("B/s", BYTES_OR_BITS),
        ("kB/s", BYTES_OR_BITS),
        ("KB/s", BYTES_OR_BITS),
        ("MB/s", BYTES_OR_BITS),
        ("GB/s", BYTES_OR_BITS),
        ("MBps", BYTES_OR_BITS),
    ],
};

/// Nanoseconds.
pub const DURATION: Dimension = Dimension {
    noun: "a duration",
    example: "50 ms",
    units: "ns, us, ms, s, min, h",
    spellings: &[
        ("ns", 1),
        ("us", 1_000),
        ("\u{b5}s", 1_000),
        ("ms", 1_000_000),
        ("s", 1_000_000_000),
        ("min", 60_000_000_000),
        ("h", 3_600_000_000_000),
    ],
    smallest: "1 ns",
    refused: &[("m", "it could be minutes or metres: write min")],
};

/// Bytes.
pub const SIZE: Dimension = Dimension {
    noun: "a size",
    example: "1000 B",
    units: "B, KB, MB, GB, KiB, MiB, GiB, kbit, Mbit",
    spellings: &[
        ("B", 1),
        ("byte", 1),
        ("bytes", 1),
        ("kB", 1_000),
        ("KB", 1_000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
        ("kbit", 125),
        ("Mbit", 125_000),
        ("Gbit", 125_000_000),
    ],
    smallest: "1 B",
    refused: &[("b", "it could be bits or bytes: write B")],
};

/// Packets.
pub const PACKETS: Dimension = Dimension {
    noun: "a number of packets",
    example: "800 packets",
    units: "",
    spellings: &[("packets", 1), ("packet", 1)],
    smallest: "1 packet",
    refused: &[],
};

/// Millihertz.
pub const FREQUENCY: Dimension = Dimension {
    noun: "a frequency",
    example: "170 Hz",
    units: "Hz, kHz",
    spellings: &[("Hz", 1_000), ("kHz", 1_000_000)],
    smallest: "0.001 Hz",
    refused: &[],
};

/// Reason why a text is not a quantity of the dimension; prints as the end of a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QuantityError {
    /// Not a decimal number at the start.
    Number,
    /// Below zero.
    Negative,
    /// A number and no unit.
    NoUnit,
    /// The decimal point is a comma; the quantity with a point.
    Comma(String),
    /// The unit is not one of this dimension; the nearest one that is.
    Unit(String, Option<&'static str>),
    /// The unit is refused, and why.
    Refused(String, &'static str),
    /// More decimals than the smallest unit can hold.
    TooFine(&'static str),
    /// Above 64 bits of the smallest unit.
    TooLarge,
}

impl fmt::Display for QuantityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number => write!(f, "it starts with no decimal number"),
            Self::Negative => write!(f, "it is below zero"),
            Self::NoUnit => write!(f, "the unit is missing"),
            Self::Comma(with_point) => write!(f, "the decimal point is a comma: write {with_point:?}"),
            Self::Unit(unit, None) => write!(f, "there is no unit {unit:?} here"),
            Self::Unit(unit, Some(near)) => {
                write!(f, "there is no unit {unit:?} here, did you mean {near:?}?")
            }
            Self::Refused(unit, why) => write!(f, "{unit:?} is refused: {why}"),
            Self::TooFine(smallest) => write!(f, "it is not a whole multiple of {smallest}"),
            Self::TooLarge => write!(f, "it is too large"),
        }
    }
}

impl std::error::Error for QuantityError {}

impl Dimension {
    /// The value of `text` in the smallest unit of this dimension.
    ///
    /// # Errors
    /// When the text is no number with a unit of this dimension, or is not a whole number of the smallest unit.
    pub fn parse(&self, text: &str) -> Result<u64, QuantityError> {
        let (number, unit) = split(text)?;
        let factor = self.factor(unit)?;
        let scaled = number.digits.checked_mul(u128::from(factor)).ok_or(QuantityError::TooLarge)?;
        if scaled % number.divisor != 0 {
            return Err(QuantityError::TooFine(self.smallest));
        }
        u64::try_from(scaled / number.divisor).map_err(|_| QuantityError::TooLarge)
    }

    fn factor(&self, unit: &str) -> Result<u64, QuantityError> {
        if unit.is_empty() {
            return Err(QuantityError::NoUnit);
        }
        if let Some((_, why)) = self.refused.iter().find(|(name, _)| *name == unit) {
            return Err(QuantityError::Refused(unit.to_owned(), why));
        }
        let known = self.spellings.iter().find(|(name, _)| *name == unit);
        known.map(|(_, factor)| *factor).ok_or_else(|| {
            let names = self.spellings.iter().map(|(name, _)| *name);
            QuantityError::Unit(unit.to_owned(), nearest(unit, names))
        })
    }
}

/// A rate such as `15 Mbit/s`.
///
/// # Errors
/// See [`Dimension::parse`].
pub fn rate(text: &str) -> Result<Rate, QuantityError> {
    RATE.parse(text).map(Rate::from_bps)
}

/// A duration such as `50 ms`.
///
/// # Errors
/// See [`Dimension::parse`].
pub fn duration(text: &str) -> Result<Duration, QuantityError> {
    DURATION.parse(text).map(Duration::from_nanos)
}

/// A size such as `1000 B`.
///
/// # Errors
/// See [`Dimension::parse`].
pub fn size(text: &str) -> Result<Bytes, QuantityError> {
    SIZE.parse(text).map(Bytes::new)
}

/// A number of packets such as `800 packets`.
///
/// # Errors
/// See [`Dimension::parse`].
pub fn packets(text: &str) -> Result<u64, QuantityError> {
    PACKETS.parse(text)
}

/// A frequency such as `170 Hz`, in hertz.
///
/// # Errors
/// See [`Dimension::parse`].
pub fn frequency(text: &str) -> Result<f64, QuantityError> {
    FREQUENCY.parse(text).map(|millihertz| millihertz as f64 / 1e3)
}

/// A percentage such as `5 %`.
///
/// # Errors
/// When the text is no number with a per cent sign, or is above 100 %.
pub fn percent(text: &str) -> Result<Probability, QuantityError> {
    let p = format!("{}e-2", number_of_percent(text)?).parse().map_err(|_| QuantityError::Number)?;
    Probability::new(p).map_err(|_| QuantityError::TooLarge)
}

/// A percentage such as `5 %`, as a number of per cent: 5.
///
/// # Errors
/// As [`percent`].
pub fn percentage(text: &str) -> Result<f64, QuantityError> {
    let number: f64 = number_of_percent(text)?.parse().map_err(|_| QuantityError::Number)?;
    if number <= 100.0 { Ok(number) } else { Err(QuantityError::TooLarge) }
}

/// A percentage such as `150 %`, as a whole number of per cent: 150. It may be above 100, as a number of processors is.
///
/// # Errors
/// As [`percent`]; [`QuantityError::TooFine`] if the number is not whole.
pub fn whole_percentage(text: &str) -> Result<u64, QuantityError> {
    number_of_percent(text)?;
    let (Decimal { digits, divisor }, _) = split(text)?;
    if !digits.is_multiple_of(divisor) {
        return Err(QuantityError::TooFine("1 %"));
    }
    u64::try_from(digits / divisor).map_err(|_| QuantityError::TooLarge)
}

/// The number before a per cent sign.
fn number_of_percent(text: &str) -> Result<&str, QuantityError> {
    let (_, unit) = split(text)?;
    match unit {
        "%" => Ok(text.trim().trim_end_matches('%').trim_end()),
        "" => Err(QuantityError::NoUnit),
        other => Err(QuantityError::Unit(other.to_owned(), None)),
    }
}

/// A decimal number: `digits / divisor`, the divisor a power of ten.
struct Decimal {
    digits: u128,
    divisor: u128,
}

/// The number at the start of a text, and the unit behind it.
fn split(text: &str) -> Result<(Decimal, &str), QuantityError> {
    let text = text.trim();
    if text.starts_with('-') {
        return Err(QuantityError::Negative);
    }
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    if is_decimal_comma(number, unit) {
        return Err(QuantityError::Comma(text.replacen(',', ".", 1)));
    }
    Ok((decimal(number)?, unit.trim_start()))
}

/// Returns whether a comma and further digits follow a whole number.
fn is_decimal_comma(number: &str, rest: &str) -> bool {
    let digit = rest.strip_prefix(',').and_then(|behind| behind.chars().next());
    !number.contains('.') && digit.is_some_and(|digit| digit.is_ascii_digit())
}

fn decimal(number: &str) -> Result<Decimal, QuantityError> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    if whole.is_empty() || fraction.is_empty() || fraction.contains('.') {
        return Err(QuantityError::Number);
    }
    let fraction = fraction.trim_end_matches('0');
    // 38 digits fit u128; more than 25 cannot be a sensible quantity in any unit.
    if whole.len() + fraction.len() > 25 {
        return Err(QuantityError::TooLarge);
    }
    let digits = format!("{whole}{fraction}").parse().map_err(|_| QuantityError::Number)?;
    Ok(Decimal { digits, divisor: 10u128.pow(fraction.len() as u32) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn quantities_as_people_write_them() {
        assert_eq!(rate("15 Mbit/s"), Ok(Rate::from_mbps(15)));
        assert_eq!(rate("128kbit/s"), Ok(Rate::from_kbps(128)));
        assert_eq!(rate("1.5 Gbit/s"), Ok(Rate::from_mbps(1500)));
        assert_eq!(rate("10 Mbps"), Ok(Rate::from_mbps(10)));
        assert_eq!(duration("20 us"), Ok(Duration::from_micros(20)));
        assert_eq!(duration("2 min"), Ok(Duration::from_secs(120)));
        assert_eq!(size("58 KB"), Ok(Bytes::new(58_000)));
        assert_eq!(size("64 KiB"), Ok(Bytes::new(65_536)));
        assert_eq!(size("1024 kbit"), Ok(Bytes::new(128_000)));
        assert_eq!(packets("800 packets"), Ok(800));
        assert_eq!(frequency("170 Hz"), Ok(170.0));
        assert_eq!(percent("5 %").map(Probability::get), Ok(0.05));
    }

    #[test]
    fn decimals_are_exact() {
        assert_eq!(duration("0.1 s"), Ok(Duration::from_millis(100)));
        assert_eq!(duration("0.000000001 s"), Ok(Duration::from_nanos(1)));
        assert_eq!(rate("0.3 kbit/s"), Ok(Rate::from_bps(300)));
        assert_eq!(duration("0.3 ns"), Err(QuantityError::TooFine("1 ns")));
        assert_eq!(packets("0.5 packets"), Err(QuantityError::TooFine("1 packet")));
        assert_eq!(whole_percentage("0.5 %"), Err(QuantityError::TooFine("1 %")));
        assert_eq!((whole_percentage("150 %"), whole_percentage("50.0%")), (Ok(150), Ok(50)));
        assert_eq!(whole_percentage("150"), Err(QuantityError::NoUnit));
    }

    #[test]
    fn errors_of_quantities_have_their_reason() {
        let why = |error: Result<u64, QuantityError>| error.unwrap_err().to_string();
        assert_eq!(why(RATE.parse("fast")), "it starts with no decimal number");
        assert_eq!(why(RATE.parse("15")), "the unit is missing");
        assert_eq!(
            why(RATE.parse("15 mbit/s")),
            "there is no unit \"mbit/s\" here, did you mean \"Mbit/s\"?"
        );
        assert_eq!(why(RATE.parse("1,5 Mbit/s")), "the decimal point is a comma: write \"1.5 Mbit/s\"");
        assert_eq!(why(DURATION.parse("0,25s")), "the decimal point is a comma: write \"0.25s\"");
        assert_eq!(
            percent("2,5 %").unwrap_err().to_string(),
            "the decimal point is a comma: write \"2.5 %\""
        );
        assert!(why(RATE.parse("15 MB/s")).starts_with("\"MB/s\" is refused"));
        assert_eq!(why(DURATION.parse("-5 ms")), "it is below zero");
        assert_eq!(why(DURATION.parse("999999999999 s")), "it is too large");
        assert_eq!(why(DURATION.parse("1.2.3 s")), "it starts with no decimal number");
        assert_eq!(percent("101 %"), Err(QuantityError::TooLarge));
        assert_eq!((percentage("7 %"), percentage("101 %")), (Ok(7.0), Err(QuantityError::TooLarge)));
    }

    proptest! {
        #[test]
        fn any_number_of_nanoseconds_survives_as_seconds(ns in 0u64..1_000_000_000_000_000) {
            let text = format!("{}.{:09} s", ns / 1_000_000_000, ns % 1_000_000_000);
            prop_assert_eq!(duration(&text), Ok(Duration::from_nanos(ns)));
        }

        #[test]
        fn no_text_causes_a_panic_in_the_parser(text in "\\PC{0,24}") {
            for dimension in [&RATE, &DURATION, &SIZE, &PACKETS, &FREQUENCY] {
                let _ = dimension.parse(&text);
            }
            let _ = percent(&text);
        }
    }
}
