//! The right name in a message about a misspelt one.

use cutline_params::nearest;

/// `, did you mean "x"?` with the known name nearest to `given`, or nothing.
pub fn suggestion<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    nearest(given, known).map_or_else(String::new, |name| format!(", did you mean {name:?}?"))
}
