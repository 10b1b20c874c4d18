//! Numbers and names in sentences.

use crate::document::SocketEntry;
use cutline_publish::unit_of;
use cutline_text::Printable;

/// Returns a rate with three digits.
pub fn rate(bps: f64) -> String {
    let (value, unit) = match bps {
        bps if bps >= 1e9 => (bps / 1e9, "Gbit/s"),
        bps if bps >= 1e6 => (bps / 1e6, "Mbit/s"),
        bps => (bps / 1e3, "kbit/s"),
    };
    format!("{} {unit}", number(value))
}

/// Returns milliseconds with three digits.
pub fn ms(time: f64) -> String {
    format!("{} ms", number(time))
}

/// Returns a share in per cent.
pub fn percent(share: f64) -> String {
    format!("{} %", number(share * 100.0))
}

/// Returns the value of a measure of a specification in its unit.
pub fn measured(measure: &str, value: f64) -> String {
    format!("{} {}", number(value), unit_of(measure))
}

fn number(value: f64) -> String {
    let places = match value.abs() {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        _ => 2,
    };
    let text = format!("{value:.places$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// Returns the name of a socket: its program and its addresses.
pub fn socket(entry: &SocketEntry) -> String {
    let SocketEntry { program, socket, .. } = entry;
    format!("`{}` ({} to {})", Printable(program), Printable(&socket.local), Printable(&socket.peer))
}

/// Returns a text of another program, harmless on a terminal.
pub fn name(text: &str) -> String {
    Printable(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits_at_most_behind_the_point_two() {
        let rates = [999.0, 64_000.0, 15e6, 2.5e9].map(rate);
        assert_eq!(rates, ["1 kbit/s", "64 kbit/s", "15 Mbit/s", "2.5 Gbit/s"]);
        assert_eq!((ms(0.126), ms(12.34), ms(150.0)), ("0.13 ms".into(), "12.3 ms".into(), "150 ms".into()));
        assert_eq!(percent(0.041), "4.1 %");
        let measured = ["rate", "delay", "loss"].map(|measure| measured(measure, 2.5));
        assert_eq!(measured, ["2.5 messages/s", "2.5 ms", "2.5 %"]);
    }
}
