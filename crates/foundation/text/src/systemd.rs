//! Words in files of systemd units.
//!
//! In a unit file, white space ends a word, quotation marks enclose one, `\\` begins an escape and `%` a specifier (systemd.syntax(7),
//! systemd.unit(5)). A path of this machine may have any of these.
//!
//! ```
//! use cutline_text::systemd;
//! use std::path::Path;
//!
//! assert_eq!(systemd::word("/usr/bin/cutline"), "/usr/bin/cutline");
//! assert_eq!(systemd::word("/opt/50 %/cutline"), "\"/opt/50 %%/cutline\"");
//! assert_eq!(systemd::path(Path::new("/usr/bin/cutline")), "/usr/bin/cutline");
//! ```

use std::borrow::Cow;
use std::fmt::Write as _;
use std::path::Path;

/// Returns a text as it stands between quotation marks in a unit file.
pub fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '%' => quoted += "%%",
            '\\' | '"' => quoted.extend(['\\', character]),
            '\n' => quoted += "\\n",
            // Writing into a string does not fail.
            _ if character.is_ascii_control() => drop(write!(quoted, "\\x{:02x}", u32::from(character))),
            _ => quoted.push(character),
        }
    }
    quoted
}

/// Returns a text as one word of a unit file: as it is if it has only letters, digits and marks without a meaning there, or else
/// [`quoted`] between quotation marks.
pub fn word(text: &str) -> Cow<'_, str> {
    let is_plain = |character: char| character.is_alphanumeric() || "/._-+:@,=".contains(character);
    if !text.is_empty() && text.chars().all(is_plain) {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(format!("\"{}\"", quoted(text)))
    }
}

/// Returns a path as one word of a unit file. The path of the program in `ExecStart=` has no variables, so a `$` stays.
pub fn path(path: &Path) -> String {
    word(&path.to_string_lossy()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_keeps_its_characters() {
        for (text, expected) in [
            ("/usr/local/bin/cutline", "/usr/local/bin/cutline"),
            ("/opt/My Tools/cutline", r#""/opt/My Tools/cutline""#),
            (r#"/opt/50%n/a\b"c'd;e"#, r#""/opt/50%%n/a\\b\"c'd;e""#),
            ("/opt/a\nb\x07", r#""/opt/a\nb\x07""#),
            ("/opt/Prüfung", "/opt/Prüfung"),
            ("", r#""""#),
        ] {
            assert_eq!(word(text), expected);
        }
    }
}
