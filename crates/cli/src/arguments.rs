//! Arguments that several commands have in common: rates, times and kinds of link as people write them.

use cutline_config::quantity;
use cutline_router::Overhead;
use cutline_units::{Duration, Rate};

/// `15Mbit` as `tc` writes it, or any rate of a scenario.
pub fn rate(text: &str) -> Result<Rate, String> {
    let spelt_out = if text.ends_with("bit") { format!("{text}/s") } else { text.to_owned() };
    match quantity::rate(&spelt_out) {
        Ok(Rate::ZERO) => Err("a link of rate zero sends nothing".to_owned()),
        other => other.map_err(|error| format!("{error}; write 15Mbit or \"1.5 Mbit/s\"")),
    }
}

/// A time above zero; seconds where there is no unit.
pub fn duration(text: &str) -> Result<Duration, String> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let with_unit = if plain { format!("{text} s") } else { text.to_owned() };
    match quantity::duration(&with_unit) {
        Ok(Duration::ZERO) => Err("it must be above zero".to_owned()),
        other => other.map_err(|error| format!("{error}; write 10s or \"80 us\"")),
    }
}

/// A kind of link by its name.
pub fn overhead(text: &str) -> Result<Overhead, String> {
    let names: Vec<_> = Overhead::ALL.iter().map(|overhead| overhead.name()).collect();
    let found = Overhead::ALL.into_iter().find(|overhead| overhead.name() == text);
    found.ok_or_else(|| format!("there are: {}", names.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_and_times_as_people_write_them() {
        assert_eq!(rate("15Mbit"), Ok(Rate::from_mbps(15)));
        assert_eq!(rate("1.5 Mbit/s"), Ok(Rate::from_kbps(1500)));
        assert!(rate("0Mbit").is_err() && rate("15").is_err());
        assert_eq!(duration("2"), Ok(Duration::from_secs(2)));
        assert_eq!(duration("80us"), Ok(Duration::from_micros(80)));
        assert!(duration("0").is_err() && duration("-1").is_err());
        assert!(overhead("atm").is_err() && overhead("pppoa") == Ok(Overhead::Pppoa));
    }
}
