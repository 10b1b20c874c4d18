//! Lines that are wider than the terminal, broken between words.

/// A line is not broken into pieces shorter than this.
const NARROWEST: usize = 20;

/// Breaks the lines of a text that are wider than `room`. The pieces after the first begin below the last column of the line, or a little
/// further to the right than the line.
pub fn within(text: &str, room: Option<usize>) -> String {
    let Some(room) = room.filter(|room| *room >= NARROWEST) else { return text.to_owned() };
    let ends_with_line = text.ends_with('\n');
    let lines: Vec<String> = text.lines().flat_map(|line| broken(line, room)).collect();
    lines.join("\n") + if ends_with_line { "\n" } else { "" }
}

fn broken(line: &str, room: usize) -> Vec<String> {
    if width(line) <= room {
        return vec![line.to_owned()];
    }
    // A rule below the header of a table.
    if line.chars().all(|c| c == '-') {
        return vec!["-".repeat(room)];
    }
    let indent = " ".repeat(hanging(line, room));
    let mut lines = Vec::new();
    let mut open = String::new();
    for word in line.split_inclusive(' ') {
        if !open.trim().is_empty() && width(&open) + width(word.trim_end()) > room {
            lines.push(open.trim_end().to_owned());
            open.clone_from(&indent);
            open.push_str(word.trim_start());
        } else {
            open.push_str(word);
        }
    }
    lines.push(open.trim_end().to_owned());
    lines
}

/// Returns the indent of a line's further pieces: its last column if that leaves room, which two spaces set off; else
/// two more than the line.
fn hanging(line: &str, room: usize) -> usize {
    let lead = line.len() - line.trim_start().len();
    let plain = plain(line);
    let columns: Vec<usize> = plain
        .match_indices("  ")
        .map(|(at, _)| plain[..at].chars().count() + plain[at..].chars().take_while(|c| *c == ' ').count())
        .filter(|column| *column > lead && *column <= room / 2)
        .collect();
    columns.last().copied().unwrap_or((lead + 2).min(room / 2))
}

/// The columns that a text takes on a terminal, where colours take none.
fn width(text: &str) -> usize {
    plain(text).chars().count()
}

/// The text without the sequences that set colours.
fn plain(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text.chars();
    while let Some(character) = rest.next() {
        if character == '\u{1b}' {
            rest.by_ref().find(|c| *c == 'm');
        } else {
            plain.push(character);
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_broken_below_their_last_column() {
        let text = "host\n  \u{1b}[32mok\u{1b}[0m  clock   the reading of the clock takes a long time here\n";
        let expected = "host\n  \u{1b}[32mok\u{1b}[0m  clock   the reading of the\n              clock takes a long\n              time here\n";
        assert_eq!(within(text, Some(32)), expected);
        assert_eq!(within(text, None), text);
        assert_eq!(within(text, Some(200)), text);
    }

    #[test]
    fn no_word_is_lost_and_no_line_is_too_wide() {
        let text = "point   aqm=pi,rate=4 Mbit/s,limit=80 packets and a sentence that goes on\n----------------------------------------------------------------\n";
        for room in 20..70 {
            let wrapped = within(text, Some(room));
            let words = |text: &str| {
                text.split_whitespace()
                    .filter(|word| !word.starts_with("--"))
                    .map(str::to_owned)
                    .collect::<Vec<_>>()
            };
            assert_eq!(words(&wrapped), words(text), "{room}");
            let longest_word =
                text.split_whitespace().filter(|word| !word.starts_with("--")).map(str::len).max().unwrap();
            assert!(
                wrapped.lines().all(|line| width(line) <= room.max(longest_word + room / 2)),
                "{room}: {wrapped}"
            );
        }
    }
}
