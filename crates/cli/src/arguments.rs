//! Parsers of arguments that several commands share: rates, times and kinds of link.

use cutline_config::quantity;
use cutline_router::Overhead;
use cutline_units::{Duration, Rate};

/// Parses `15Mbit`, as `tc` writes rates, or any rate that a scenario may have.
pub fn rate(text: &str) -> Result<Rate, String> {
    let spelt_out = if text.ends_with("bit") { format!("{text}/s") } else { text.to_owned() };
    match quantity::rate(&spelt_out) {
        Ok(Rate::ZERO) => Err("it must be above zero".to_owned()),
        other => other.map_err(|error| format!("{error}; write 15Mbit or \"1.5 Mbit/s\"")),
    }
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

/// Parses the name of a kind of link.
pub fn overhead(text: &str) -> Result<Overhead, String> {
    let names: Vec<_> = Overhead::ALL.iter().map(|overhead| overhead.name()).collect();
    let found = Overhead::ALL.into_iter().find(|overhead| overhead.name() == text);
    found.ok_or_else(|| format!("expected one of: {}", names.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_and_times_are_parsed_with_and_without_units() {
        assert_eq!(rate("15Mbit"), Ok(Rate::from_mbps(15)));
        assert_eq!(rate("1.5 Mbit/s"), Ok(Rate::from_kbps(1500)));
        assert!(rate("0Mbit").is_err() && rate("15").is_err());
        assert_eq!(duration("2"), Ok(Duration::from_secs(2)));
        assert_eq!(duration("80us"), Ok(Duration::from_micros(80)));
        assert!(duration("0").is_err() && duration("-1").is_err());
        assert!(overhead("atm").is_err() && overhead("pppoa") == Ok(Overhead::Pppoa));
    }
}
