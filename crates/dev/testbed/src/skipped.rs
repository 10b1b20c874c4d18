//! Tests that this machine cannot run.
//!
//! A test that finds that it cannot run calls [`skip`] and returns. By hand that is a line on standard error. Where `CI` is
//! set it is a failure, unless `skips.txt` beside this crate names the test with the reason why it may be skipped there: a test
//! that never runs proves nothing.

use std::fmt::Display;

/// Tests that CI may skip: a line each, the test's name with the modules that it is in, a colon, the reason. `#` begins a
/// comment.
const ALLOWED: &str = include_str!("../skips.txt");

/// Reports that the running test is skipped: the reason `why`, and the command that runs it. The caller must return then.
///
/// # Panics
/// In CI, unless the test is listed in `skips.txt`.
#[track_caller]
pub fn skip(why: impl Display, to_run: impl Display) {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test");
    let in_ci = std::env::var_os("CI").is_some_and(|value| !value.is_empty());
    assert!(
        !in_ci || reason(ALLOWED, test).is_some(),
        "{test} cannot run in CI: {why}. To run it: {to_run}. Or list it in crates/dev/testbed/skips.txt, with the reason."
    );
    eprintln!("skipped: {why}; to run it: {to_run}");
}

/// Returns the names of all tests that CI may skip.
pub fn skipped_tests() -> impl Iterator<Item = &'static str> {
    entries(ALLOWED).map(|(name, _)| name)
}

/// Returns the reason why a test may be skipped, if it may.
fn reason<'l>(list: &'l str, test: &str) -> Option<&'l str> {
    entries(list).find(|(name, _)| *name == test).map(|(_, why)| why)
}

/// Reads the list: the name and the reason of each test.
fn entries(list: &str) -> impl Iterator<Item = (&str, &str)> {
    let lines = list.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| line.split_once(": ")).map(|(name, reason)| (name.trim(), reason.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_is_listed_by_its_name_with_a_reason() {
        let list = "# comment: no test\nmodule::test: it needs a card\n";
        assert_eq!(reason(list, "module::test"), Some("it needs a card"));
        assert_eq!(reason(list, "test"), None);
        assert_eq!(reason(list, "# comment"), None);
    }

    #[test]
    fn the_list_gives_a_reason_for_each() {
        let lines = ALLOWED.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        for line in lines {
            assert!(
                line.split_once(": ").is_some_and(|(_, reason)| reason.len() > 10),
                "{line:?} has no reason"
            );
        }
    }
}
