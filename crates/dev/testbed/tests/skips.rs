//! The list of tests that CI may skip names tests that are there: a test that has moved would fail in CI alone.

use cutline_testbed::repository::{crates, rust_files};
use cutline_testbed::skipped_tests;

#[test]
fn every_skippable_test_exists_by_its_listed_name() {
    let programs: Vec<_> =
        crates().iter().map(|path| path.join("tests")).filter(|path| path.exists()).collect();
    let files: Vec<_> = programs.iter().flat_map(|tests| rust_files(tests)).collect();
    let lost: Vec<_> = skipped_tests()
        .filter(|name| {
            let (modules, test) = name.rsplit_once("::").unwrap_or(("", name));
            let file = format!("tests/{}.rs", modules.replace("::", "/"));
            !files.iter().any(|(path, text)| path.ends_with(&file) && text.contains(&format!("fn {test}(")))
        })
        .collect();
    assert!(lost.is_empty(), "crates/dev/testbed/skips.txt lists tests that are not there: {lost:?}");
}
