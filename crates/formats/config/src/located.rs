//! Values that remember where they were written, for problems that are found when the file has been read.

use crate::span::Span;
use std::fmt;

/// A value with its key and its place in a document.
#[derive(Clone, PartialEq, Eq)]
pub struct Located<T> {
    /// The value.
    pub value: T,
    /// The path of its key, such as `dumbbell.rate`.
    pub key: String,
    /// The place of the value.
    pub span: Span,
}

impl<T> Located<T> {
    /// The key and the place without the value.
    pub fn place(&self) -> Located<()> {
        Located { value: (), key: self.key.clone(), span: self.span.clone() }
    }
}

/// Shows the value alone.
impl<T: fmt::Debug> fmt::Debug for Located<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use crate::{Document, kind, read};

    #[test]
    fn a_value_is_refused_at_its_place_after_reading() {
        let document = Document::parse("[dumbbell]\nrate = 15\nnames = ['a', 'b']\n", "x.toml").unwrap();
        let located = read(&document, |root| {
            let table = root.table("dumbbell", "a table")?;
            let names = kind::list(2, "names", kind::text());
            Some((table.located("rate", &kind::number())?, table.located("names", &names)?, table.place()))
        });
        let (rate, names, table) = located.unwrap();
        let refused = document.refused(&rate, "it is too low").to_string();
        assert_eq!(refused, "x.toml:2:8: key \"dumbbell.rate\": value 15 is not allowed: it is too low");
        let refused = document.refused(&names.place(), "they are the same").to_string();
        assert_eq!(refused, "x.toml:3:9: key \"dumbbell.names\": they are the same");
        let refused = document.refused(&table, "it is empty").to_string();
        assert_eq!(refused, "x.toml:1:1: key \"dumbbell\": it is empty");
    }
}
