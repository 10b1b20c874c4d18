//! Description of a field, whatever holds it.

/// Description of a field: the one place from which documents, schemas, tables, files and exporters take its words.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Description {
    /// The name in documents and files; a number's unit is its last word where it has one.
    pub name: &'static str,
    /// The unit, or `-`.
    pub unit: &'static str,
    /// Meaning of the field.
    pub meaning: &'static str,
    /// Heading in printed tables; `None` if they leave the field out.
    pub heading: Option<Heading>,
}

/// Heading and unit of a field in a printed table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Heading {
    /// The words over the column, its unit included.
    pub title: &'static str,
    /// Factor that converts a value to that unit.
    pub scale: f64,
}

impl Description {
    /// Creates the description of a field that printed tables leave out.
    pub const fn new([name, unit, meaning]: [&'static str; 3]) -> Self {
        Self { name, unit, meaning, heading: None }
    }

    /// Adds a heading, so that printed tables show the field.
    #[must_use]
    pub const fn shown(self, title: &'static str, scale: f64) -> Self {
        Self { heading: Some(Heading { title, scale }), ..self }
    }
}
