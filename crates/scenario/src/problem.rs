//! What is wrong with a scenario, where, and what would be right.

use crate::document::Place;
use std::fmt;
use std::path::Path;

/// A text that values come from: the scenario file, or one `--set` of the command line.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    pub name: String,
    pub text: String,
    /// Whether lines and columns mean something to the reader.
    pub is_file: bool,
}

/// Where in its source a problem lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// The file's name, or the override as it was given.
    pub source: String,
    /// The line and column, both from 1; `None` for an override.
    pub line_column: Option<(usize, usize)>,
    /// The whole line.
    pub excerpt: String,
    /// The column of the first character meant, from 1, and how many are meant.
    pub marked: (usize, usize),
}

/// One thing that is wrong: where, with which key, and what is allowed instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where it was written; `None` when the whole file lacks something.
    pub location: Option<Location>,
    /// The key's path, such as `dumbbell.rate`; `None` when the file is not TOML.
    pub key: Option<String>,
    /// The file, for problems without a place.
    file: String,
    /// The rest of the sentence.
    text: String,
}

/// Everything that is wrong with a scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Errors(Vec<Problem>);

impl Source {
    pub fn file(name: &str, text: &str) -> Self {
        Self { name: name.to_owned(), text: text.to_owned(), is_file: true }
    }

    pub fn setting(path: &str, text: &str) -> Self {
        Self { name: format!("--set {path}={text}"), text: text.to_owned(), is_file: false }
    }
}

impl Location {
    fn new(sources: &[Source], place: &Place) -> Self {
        let source = &sources[place.source];
        let start = place.bytes.start.min(source.text.len());
        let line_start = source.text[..start].rfind('\n').map_or(0, |newline| newline + 1);
        let excerpt = source.text[line_start..].lines().next().unwrap_or_default();
        let column = source.text[line_start..start].chars().count() + 1;
        let meant = source.text.get(place.bytes.clone()).unwrap_or_default();
        let width = meant.lines().next().unwrap_or_default().chars().count().max(1);
        let line = source.text[..start].matches('\n').count() + 1;
        Self {
            source: source.name.clone(),
            line_column: source.is_file.then_some((line, column)),
            excerpt: excerpt.to_owned(),
            marked: (column, width),
        }
    }
}

impl Problem {
    pub(crate) fn new(sources: &[Source], place: Option<&Place>, key: Option<String>, text: String) -> Self {
        let location = place.map(|place| Location::new(sources, place));
        Self { location, key, file: sources[0].name.clone(), text }
    }

    /// A problem with the file as a whole, such as that it cannot be read.
    pub(crate) fn of_file(name: &str, text: String) -> Self {
        Self { location: None, key: None, file: name.to_owned(), text }
    }

    /// The same problem, of a sweep's point.
    pub(crate) fn in_point(mut self, label: &str) -> Self {
        self.text = format!("{} (at the point {label})", self.text);
        self
    }

    /// What orders problems as a reader of the file meets them.
    pub(crate) fn order(&self) -> (bool, Option<(usize, usize)>) {
        let at = self.location.as_ref().and_then(|location| location.line_column);
        (self.location.is_some(), at)
    }

    /// The problem, the line it lies on and a caret under what is meant.
    pub fn render(&self) -> String {
        let Some(location) = &self.location else { return self.to_string() };
        let number = location.line_column.map_or_else(String::new, |(line, _)| line.to_string());
        let margin = " ".repeat(number.len());
        let (column, width) = location.marked;
        // Tabs stay tabs, so that the caret lines up whatever their width.
        let lead: String =
            location.excerpt.chars().take(column - 1).map(|c| if c == '\t' { c } else { ' ' }).collect();
        let carets = "^".repeat(width);
        format!("{self}\n {margin} |\n {number} | {}\n {margin} | {lead}{carets}", location.excerpt)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.location {
            Some(Location { source, line_column: Some((line, column)), .. }) => {
                write!(f, "{source}:{line}:{column}: ")?;
            }
            Some(Location { source, .. }) => write!(f, "{source}: ")?,
            None => write!(f, "{}: ", self.file)?,
        }
        match &self.key {
            Some(key) => write!(f, "key \"{key}\"{}", self.text),
            None => write!(f, "{}", self.text),
        }
    }
}

/// A file's text, and what messages call it.
pub(crate) fn text_of(path: &Path) -> Result<(String, String), Errors> {
    let name = path.display().to_string();
    match std::fs::read_to_string(path) {
        Ok(text) => Ok((text, name)),
        Err(error) => Err(Errors::new(vec![Problem::of_file(&name, format!("cannot be read: {error}"))])),
    }
}

impl Errors {
    /// All of `problems`, in the order of the file and each once.
    pub(crate) fn new(mut problems: Vec<Problem>) -> Self {
        assert!(!problems.is_empty(), "an error without a problem");
        problems.sort_by_key(Problem::order);
        let mut seen = std::collections::BTreeSet::new();
        problems.retain(|problem| seen.insert(problem.to_string()));
        Self(problems)
    }

    /// The problems, in the order of the file; at least one.
    pub fn problems(&self) -> &[Problem] {
        &self.0
    }

    /// Every problem with the line it lies on, for a terminal.
    pub fn render(&self) -> String {
        self.0.iter().map(Problem::render).collect::<Vec<_>>().join("\n\n")
    }
}

/// One line a problem.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_points_with_line_and_caret() {
        let sources = [Source::file("a.toml", "name = \"x\"\nrate = 15\n")];
        let place = Place { source: 0, bytes: 18..20 };
        let problem = Problem::new(&sources, Some(&place), Some("rate".into()), ": value 15 is wrong".into());
        assert_eq!(
            problem.render(),
            "a.toml:2:8: key \"rate\": value 15 is wrong\n   |\n 2 | rate = 15\n   |        ^^"
        );
    }

    #[test]
    fn an_override_is_named_as_it_was_given() {
        let sources = [Source::file("a.toml", ""), Source::setting("rate", "15")];
        let place = Place { source: 1, bytes: 0..2 };
        let problem = Problem::new(&sources, Some(&place), Some("rate".into()), ": value 15 is wrong".into());
        assert_eq!(problem.to_string(), "--set rate=15: key \"rate\": value 15 is wrong");
    }
}
