//! Parsers of arguments that several commands share: rates, times and kinds of link.

use cutline_config::quantity;
#[cfg(feature = "qdisc")]
use cutline_router::{Overhead, OverheadError};
use cutline_units::{Duration, Rate};

/// Parses `15Mbit`, as `tc` writes rates, or any rate that a scenario may have.
pub fn rate(text: &str) -> Result<Rate, String> {
    let spelt_out = spelt_out(text);
    match quantity::rate(&spelt_out) {
        Ok(Rate::ZERO) => Err("it must be above zero".to_owned()),
        other => other.map_err(|error| format!("{error}; write 15Mbit or \"1.5 Mbit/s\"")),
    }
}

/// Returns a rate of `tc`, such as `15mbit`, with the unit as scenarios have it.
fn spelt_out(text: &str) -> String {
    const UNITS: [&str; 4] = ["kbit", "Mbit", "Gbit", "bit"];
    let number = |unit: &str| {
        let (number, end) = text.split_at_checked(text.len().checked_sub(unit.len())?)?;
        end.eq_ignore_ascii_case(unit).then_some(number)
    };
    let found = UNITS.into_iter().find_map(|unit| Some(format!("{}{unit}/s", number(unit)?)));
    found.unwrap_or_else(|| text.to_owned())
}

/// Parses a time above zero. A number without a unit is in seconds.
pub fn duration(text: &str) -> Result<Duration, String> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let with_unit = if plain { format!("{text} s") } else { text.to_owned() };
    match quantity::duration(&with_unit) {
        Ok(Duration::ZERO) => Err("it must be above zero".to_owned()),
        other => other.map_err(|error| format!("{error}; write 10s or \"80 us\"")),
    }
}

/// Parses a number of per cent, with or without the sign.
pub fn percentage(text: &str) -> Result<f64, String> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let with_sign = if plain { format!("{text} %") } else { text.to_owned() };
    quantity::percentage(&with_sign).map_err(|error| format!("{error}; write 0.1 or \"0.1 %\""))
}

/// Parses a kind of link.
#[cfg(feature = "qdisc")]
pub fn overhead(text: &str) -> Result<Overhead, String> {
    text.parse().map_err(|error: OverheadError| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_and_times_are_parsed_with_and_without_units() {
        assert_eq!(rate("15Mbit"), Ok(Rate::from_mbps(15)));
        assert_eq!(rate("1.5 Mbit/s"), Ok(Rate::from_kbps(1500)));
        assert_eq!(
            (rate("10mbit"), rate("800 kbit"), rate("8bit")),
            (Ok(Rate::from_mbps(10)), Ok(Rate::from_kbps(800)), Ok(Rate::from_bps(8)))
        );
        assert!(rate("0Mbit").is_err() && rate("15").is_err());
        assert_eq!(duration("2"), Ok(Duration::from_secs(2)));
        assert_eq!(duration("80us"), Ok(Duration::from_micros(80)));
        assert_eq!((percentage("0.1"), percentage("0.1%"), percentage("5 %")), (Ok(0.1), Ok(0.1), Ok(5.0)));
        assert!(percentage("101").is_err() && percentage("-1").is_err());
        assert!(rate("1,5Mbit").unwrap_err().contains("1.5Mbit"));
        assert!(duration("0").is_err() && duration("-1").is_err());
    }

    #[cfg(feature = "machine")]
    #[test]
    fn kinds_of_link_have_names_or_numbers() {
        assert_eq!(overhead("pppoa"), Ok(Overhead::Pppoa));
        assert_eq!(overhead("atm:10"), Ok(Overhead::Added(10, cutline_router::Units::Cells)));
        assert!(overhead("atm").unwrap_err().contains("atm:10"));
    }
}
