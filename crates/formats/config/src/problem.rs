//! Errors in a document: the place, the key, and the allowed values.

use crate::span::{Source, Span};
use cutline_text::{Printable, Screen};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;

/// The position of a problem in its source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// The file's name, or the override as it was given.
    pub source: String,
    /// The line and column, both from 1; `None` for an override.
    pub line_column: Option<(usize, usize)>,
    /// The whole line.
    pub excerpt: String,
    /// The column of the first marked character, from 1, and the number of marked characters.
    pub marked: (usize, usize),
}

/// One problem: its place, its key, and the allowed values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Place of the error; `None` when the whole file lacks something.
    pub location: Option<Location>,
    /// The key's path, such as `dumbbell.rate`; `None` when the file is not TOML.
    pub key: Option<String>,
    /// The file, for problems without a location.
    file: String,
    /// The rest of the sentence.
    text: String,
}

/// End of the message about a missing key.
pub(crate) const MISSING: &str = " is missing";

/// Largest number of errors that are shown.
const MOST_SHOWN: usize = 20;

/// All problems of a document, at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Errors(Vec<Problem>);

impl Location {
    pub(crate) fn new(sources: &[Source], span: &Span) -> Self {
        let source = &sources[span.source];
        let start = span.bytes.start.min(source.text.len());
        let line_start = source.text[..start].rfind('\n').map_or(0, |newline| newline + 1);
        let excerpt = source.text[line_start..].lines().next().unwrap_or_default();
        let column = source.text[line_start..start].chars().count() + 1;
        let marked = source.text.get(span.bytes.clone()).unwrap_or_default();
        let width = marked.lines().next().unwrap_or_default().chars().count().max(1);
        let line = source.text[..start].matches('\n').count() + 1;
        Self {
            source: source.name.clone(),
            line_column: source.is_file.then_some((line, column)),
            excerpt: excerpt.to_owned(),
            marked: (column, width),
        }
    }
}

impl fmt::Display for Location {
    /// The source, and the line and column if it is a file.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.source)?;
        self.line_column.map_or(Ok(()), |(line, column)| write!(f, ":{line}:{column}"))
    }
}

impl Problem {
    /// A problem at `span` with the key at the path `key`. The message is the key's name followed by `text`.
    pub(crate) fn new(sources: &[Source], span: Option<&Span>, key: Option<String>, text: String) -> Self {
        let location = span.map(|span| Location::new(sources, span));
        Self { location, key, file: sources[0].name.clone(), text }
    }

    /// A problem with the whole file, such as that it cannot be read.
    pub fn in_file(name: &str, text: String) -> Self {
        Self { location: None, key: None, file: name.to_owned(), text }
    }

    /// The same problem with a note in parentheses at the end of its message.
    pub fn with_note(mut self, note: &str) -> Self {
        self.text = format!("{} ({note})", self.text);
        self
    }

    /// Returns the message without the place: the key and the allowed values.
    pub fn message(&self) -> String {
        match &self.key {
            Some(key) => format!("key \"{key}\"{}", self.text),
            None => self.text.clone(),
        }
    }

    /// Returns whether a key is missing.
    pub fn is_of_missing_key(&self) -> bool {
        self.key.is_some() && self.text.starts_with(MISSING)
    }

    /// The file, or the override as it was given.
    pub fn source(&self) -> &str {
        self.location.as_ref().map_or(&self.file, |location| &location.source)
    }

    /// The key that sorts problems by file and position: problems of the whole file first.
    fn position(&self) -> (&str, bool, Option<(usize, usize)>) {
        let at = self.location.as_ref().and_then(|location| location.line_column);
        (&self.file, self.location.is_some(), at)
    }

    /// The message, the line of the source, and carets below the marked text.
    pub fn render(&self) -> String {
        let Some(location) = &self.location else { return self.to_string() };
        let line = excerpt(&location.excerpt);
        let number = location.line_column.map_or_else(String::new, |(line, _)| line.to_string());
        let margin = " ".repeat(number.len());
        let (column, width) = location.marked;
        // Tabs stay tabs, so that the caret lines up whatever their width.
        let before: String = location.excerpt.chars().take(column - 1).collect();
        let lead: String = excerpt(&before).chars().map(|c| if c == '\t' { c } else { ' ' }).collect();
        let marked: String = location.excerpt.chars().skip(column - 1).take(width).collect();
        let carets = "^".repeat(excerpt(&marked).chars().count().max(1));
        format!("{self}\n {margin} |\n {number} | {line}\n {margin} | {lead}{carets}")
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.location {
            Some(location) => write!(f, "{}: ", Printable(&location.to_string()))?,
            None => write!(f, "{}: ", Printable(&self.file))?,
        }
        match &self.key {
            Some(key) => write!(f, "key \"{}\"{}", Printable(key), excerpt(&self.text)),
            None => write!(f, "{}", excerpt(&self.text)),
        }
    }
}

/// Returns a text with its tabs and lines, without control characters for terminals.
fn excerpt(text: &str) -> Cow<'_, str> {
    Screen { styles: &[] }.escaped(text)
}

impl Errors {
    /// All of `problems`, each once, in the order of the file.
    ///
    /// # Panics
    /// When there is no problem.
    pub fn new(mut problems: Vec<Problem>) -> Self {
        assert!(!problems.is_empty(), "an error has at least one problem");
        problems.sort_by(|one, other| one.position().cmp(&other.position()));
        let mut seen = BTreeSet::new();
        problems.retain(|problem| seen.insert(problem.to_string()));
        Self(problems)
    }

    /// The problems, at least one, in the order of the file.
    pub fn problems(&self) -> &[Problem] {
        &self.0
    }

    /// The first problems with the line that each is on, for a terminal, and the number of further ones.
    pub fn render(&self) -> String {
        let mut parts: Vec<String> = self.0.iter().take(MOST_SHOWN).map(Problem::render).collect();
        match self.0.len().saturating_sub(MOST_SHOWN) {
            0 => {}
            1 => parts.push("and 1 more".to_owned()),
            more => parts.push(format!("and {more} more")),
        }
        parts.join("\n\n")
    }
}

impl From<Problem> for Errors {
    fn from(problem: Problem) -> Self {
        Self(vec![problem])
    }
}

/// One line per problem.
impl fmt::Display for Errors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, problem) in self.0.iter().enumerate() {
            let newline = if i == 0 { "" } else { "\n" };
            write!(f, "{newline}{problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Errors {}

/// At most 40 characters of one line of the written value.
pub(crate) fn shorten(written: &str) -> String {
    let line = written.lines().next().unwrap_or_default();
    if line.chars().count() <= 40 && line.len() == written.len() {
        return line.to_owned();
    }
    format!("{}...", line.chars().take(37).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_points_with_line_and_caret() {
        let sources = [Source::file("a.toml", "name = \"x\"\nrate = 15\n")];
        let span = Span { source: 0, bytes: 18..20 };
        let problem = Problem::new(&sources, Some(&span), Some("rate".into()), ": value 15 is wrong".into());
        assert_eq!(
            problem.render(),
            "a.toml:2:8: key \"rate\": value 15 is wrong\n   |\n 2 | rate = 15\n   |        ^^"
        );
    }

    #[test]
    fn control_characters_are_escaped_and_the_caret_keeps_its_place() {
        let sources = [Source::file("a\u{1b}.toml", "\tx\u{1b} = 1\u{9b}\n")];
        let span = Span { source: 0, bytes: 6..9 };
        let problem = Problem::new(&sources, Some(&span), Some("x\r".into()), ": \u{202e} is wrong".into());
        assert_eq!(
            problem.render(),
            "a\\u{1b}.toml:1:7: key \"x\\r\": \\u{202e} is wrong\n   |\n 1 | \tx\\u{1b} = 1\\u{9b}\n   | \t          ^^^^^^^"
        );
    }

    #[test]
    fn at_most_twenty_problems_are_shown() {
        let problems: Vec<Problem> =
            (0..25).map(|i| Problem::in_file("a.toml", format!("wrong {i}"))).collect();
        let errors = Errors::new(problems);
        assert_eq!(errors.problems().len(), 25);
        assert!(errors.render().ends_with("wrong 19\n\nand 5 more"), "{}", errors.render());
    }

    #[test]
    fn an_override_is_named_as_it_was_given() {
        let sources = [Source::file("a.toml", ""), Source::setting(None, "rate", "15")];
        let span = Span { source: 1, bytes: 0..2 };
        let problem = Problem::new(&sources, Some(&span), Some("rate".into()), ": value 15 is wrong".into());
        assert_eq!(problem.to_string(), "--set rate=15: key \"rate\": value 15 is wrong");
    }

    #[test]
    fn errors_are_in_the_order_of_the_file_and_each_once() {
        let sources = [Source::file("a.toml", "a = 1\nb = 2\n")];
        let at = |start: usize| {
            let span = Span { source: 0, bytes: start..start + 1 };
            Problem::new(&sources, Some(&span), None, "wrong".into())
        };
        let whole = Problem::in_file("a.toml", "too short".into()).with_note("by far");
        let errors = Errors::new(vec![at(6), at(0), at(6), whole]);
        assert_eq!(errors.to_string(), "a.toml: too short (by far)\na.toml:1:1: wrong\na.toml:2:1: wrong");
    }
}
