//! The nearest name to a misspelt one.

/// The known name nearest to `given`, if one is near enough to be worth suggesting.
///
/// Distance is Damerau-Levenshtein (insert, delete, replace, swap neighbours) after folding case, `_` and `-`; up to
/// a third of the longer name may differ, and a name that the other starts with counts as near.
pub fn nearest<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let folded = fold(given);
    let scored = known.into_iter().map(|name| (strsim::damerau_levenshtein(&folded, &fold(name)), name));
    let (distance, name) = scored.min_by_key(|(distance, _)| *distance)?;
    let longer = folded.chars().count().max(name.chars().count());
    // A name of which nothing is left is no slip of it, and one or two letters begin many words.
    let kept = distance < longer;
    let begins = |long: &str, short: &str| short.len() >= 3 && long.starts_with(short);
    let starts = begins(&fold(name), &folded) || begins(&folded, &fold(name));
    ((kept && distance * 3 <= longer.max(3)) || starts).then_some(name)
}

fn fold(name: &str) -> String {
    name.to_lowercase().replace('_', "-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelt_names_are_recognised_and_other_names_are_not() {
        let known = ["rate", "delay", "warm-up", "congestion-control"];
        assert_eq!(nearest("dealy", known), Some("delay"));
        assert_eq!(nearest("warm_up", known), Some("warm-up"));
        assert_eq!(nearest("congestion", known), Some("congestion-control"));
        assert_eq!(nearest("colour", known), None);
        assert_eq!(nearest("x", []), None);
        assert_eq!(nearest("s", ["B"]), None);
    }
}
