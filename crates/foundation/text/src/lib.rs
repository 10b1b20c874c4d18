//! Text of other programs, hosts and files, made harmless for a terminal.
//!
//! A terminal obeys some characters instead of showing them: it moves the cursor, clears the screen, changes the window's
//! title, or shows letters in another order. A text that Cutline did not write may hold them: a name in a file, the refusal
//! of another host, a path. Such a text is *foreign*. Where it becomes part of a message it is wrapped in [`Printable`].
//!
//! | characters | effect | shown as |
//! | --- | --- | --- |
//! | U+0000 to U+001F, U+007F to U+009F | control the terminal | `\n`, `\r`, `\t`, otherwise `\u{1b}` |
//! | U+2028, U+2029 | end a line | `\u{2028}` |
//! | U+061C, U+200E, U+200F, U+202A to U+202E, U+2066 to U+2069 | change the order of letters (UAX #9) | `\u{202e}` |
//!
//! All other characters stay as they are, the backslash too: the result is for reading, and cannot be turned back.
//!
//! ```
//! use cutline_text::Printable;
//! assert_eq!(Printable("bulk\u{1b}[2J").to_string(), "bulk\\u{1b}[2J");
//! ```
//!
//! [`Screen`] is the last net: it makes a whole output harmless, which has lines and styles that are meant. [`json`] does the
//! same for JSON without changing its values.

pub mod systemd;

use std::borrow::Cow;
use std::fmt::{self, Display, Write};

/// A foreign text on one line: its `Display` escapes control characters for terminals, line ends too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Printable<T>(pub T);

impl<T: Display> Display for Printable<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(Escaping(f), "{}", self.0)
    }
}

/// A writer that escapes control characters for terminals.
struct Escaping<'a, 'f>(&'a mut fmt::Formatter<'f>);

impl Write for Escaping<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        escape(text, is_obeyed, self.0)
    }
}

/// The whole output of a command: lines of text, some of which have a style.
///
/// Line ends and tabs stay, and so do the escape sequences in a list of styles. Nothing else that a terminal obeys is left, so
/// a foreign text that was forgotten can at most have one of these styles.
#[derive(Clone, Copy, Debug)]
pub struct Screen {
    /// The escape sequences that stay.
    pub styles: &'static [&'static str],
}

impl Screen {
    /// Returns the text without control characters for terminals, other than line ends, tabs and the styles.
    pub fn escaped<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if !text.contains(is_unexpected) {
            return Cow::Borrowed(text);
        }
        let mut escaped = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find('\u{1b}') {
            let (before, from) = rest.split_at(at);
            let _infallible = escape(before, is_unexpected, &mut escaped);
            let style = self.styles.iter().find(|style| from.starts_with(**style));
            let kept = style.map_or("\\u{1b}", |style| style);
            escaped.push_str(kept);
            rest = &from[style.map_or(1, |style| style.len())..];
        }
        let _infallible = escape(rest, is_unexpected, &mut escaped);
        Cow::Owned(escaped)
    }
}

/// Returns a JSON document in which strings hold nothing that a terminal would obey. The document has the same values, because
/// such a character is only allowed within a string, where `\u009b` means the same.
pub fn json(text: &str) -> Cow<'_, str> {
    if !text.contains(is_unexpected) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        if is_unexpected(letter) {
            let _infallible = write!(escaped, "\\u{:04x}", u32::from(letter));
        } else {
            escaped.push(letter);
        }
    }
    Cow::Owned(escaped)
}

/// Returns whether a terminal obeys a character instead of showing it.
pub const fn is_obeyed(letter: char) -> bool {
    matches!(letter,
        '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}'
        | '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Returns whether a terminal obeys a character that a text of several lines does not need.
const fn is_unexpected(letter: char) -> bool {
    !matches!(letter, '\n' | '\t') && is_obeyed(letter)
}

fn escape(text: &str, is_escaped: impl Fn(char) -> bool, to: &mut impl Write) -> fmt::Result {
    let mut rest = text;
    while let Some(at) = rest.find(&is_escaped) {
        let (before, from) = rest.split_at(at);
        let letter = from.chars().next().unwrap_or_default();
        write!(to, "{before}{}", letter.escape_default())?;
        rest = &from[letter.len_utf8()..];
    }
    to.write_str(rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SCREEN: Screen = Screen { styles: &["\u{1b}[1m", "\u{1b}[0m"] };

    #[test]
    fn control_characters_alone_are_escaped() {
        let shown = |text: &str| Printable(text).to_string();
        assert_eq!(shown("\u{1b}]0;owned\u{7}\r\n\t\u{7f}"), "\\u{1b}]0;owned\\u{7}\\r\\n\\t\\u{7f}");
        assert_eq!(shown("a\u{9b}2Jb\u{202e}c\u{2066}\u{2028}"), "a\\u{9b}2Jb\\u{202e}c\\u{2066}\\u{2028}");
        let plain = "Grün \"ü\" e\u{301} 日本 👩\u{200d}💻 \\n";
        assert_eq!(shown(plain), plain);
        assert_eq!(format!("{}", Printable(format_args!("{}-{}", 1, '\u{1b}'))), "1-\\u{1b}");
    }

    #[test]
    fn a_screen_keeps_lines_and_its_own_styles() {
        let text = "\u{1b}[1mbold\u{1b}[0m\ta\nb\u{1b}[2J\u{1b}[8m\r\u{9b}1m";
        assert_eq!(SCREEN.escaped(text), "\u{1b}[1mbold\u{1b}[0m\ta\nb\\u{1b}[2J\\u{1b}[8m\\r\\u{9b}1m");
        assert!(matches!(SCREEN.escaped("a\nb"), Cow::Borrowed("a\nb")));
    }

    #[test]
    fn json_keeps_its_values() {
        assert_eq!(json("{\"a\":\"\u{7f}\u{9b}\u{202e}\"}\n"), "{\"a\":\"\\u007f\\u009b\\u202e\"}\n");
        assert!(matches!(json("{\n}"), Cow::Borrowed(_)));
    }

    proptest! {
        #[test]
        fn no_control_character_is_left(text in "\\PC*|[\u{0}-\u{a0}\u{1b}\\[1m\u{200e}\u{2028}-\u{2069}]{0,40}") {
            prop_assert!(!Printable(&text).to_string().contains(is_obeyed));
            let screen = SCREEN.escaped(&text);
            let without_styles = SCREEN.styles.iter().fold(screen.into_owned(), |text, style| text.replace(style, ""));
            prop_assert!(!without_styles.contains(is_unexpected));
            prop_assert!(!json(&text).contains(is_unexpected));
        }

        #[test]
        fn printable_text_is_unchanged(text in "[a-zA-Zäß0-9 .:/\\\\-]{0,40}") {
            prop_assert_eq!(Printable(&text).to_string(), text.clone());
            prop_assert_eq!(SCREEN.escaped(&text), text.clone());
        }
    }
}
