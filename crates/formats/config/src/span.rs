//! Places in documents: the texts that values come from, and ranges in them.

use std::ops::Range;

/// A range of bytes in one of a document's sources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// Index of the source in its document: 0 for the file.
    pub source: usize,
    /// The bytes of the source's text.
    pub bytes: Range<usize>,
}

impl Span {
    /// Returns whether this is of the file itself, and not of an override.
    pub fn is_of_file(&self) -> bool {
        self.source == 0
    }
}

/// A text that values come from: the file, or one override (`--set` on the command line).
#[derive(Clone, Debug)]
pub(crate) struct Source {
    /// The name in messages.
    pub name: String,
    /// The whole text.
    pub text: String,
    /// True if messages show line and column.
    pub is_file: bool,
}

impl Source {
    /// A file's text; `name` is its name in messages.
    pub fn file(name: &str, text: &str) -> Self {
        Self { name: name.to_owned(), text: text.to_owned(), is_file: true }
    }

    /// The override that sets the key at `path` to `text`. It was written at a place of another file; on the command line if
    /// that is `None`.
    pub fn setting(place: Option<&str>, path: &str, text: &str) -> Self {
        let name = match place {
            Some(place) => format!("{place}: {path}={text}"),
            None => format!("--set {path}={text}"),
        };
        Self { name, text: text.to_owned(), is_file: false }
    }
}
