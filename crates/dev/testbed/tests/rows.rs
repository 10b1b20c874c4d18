//! Crates whose tests make namespaces, or do other things as root, are in the rows of programs that `make test` runs apart
//! (`NETWORK` and `LABORATORIES` of the Makefile): beside each other they would disturb each other.

use cutline_testbed::repository::{crates, root, rust_files};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Returns the crates of a row of the Makefile.
fn row<'m>(makefile: &'m str, variable: &str) -> BTreeSet<&'m str> {
    let lines = makefile.lines().filter_map(|line| line.strip_prefix(variable)?.strip_prefix(" :="));
    lines.flat_map(str::split_whitespace).collect()
}

/// Returns whether a file of a crate has tests that make namespaces or depend on the user.
fn needs_row(path_in_crate: &Path, text: &str) -> bool {
    let is_test = path_in_crate.starts_with("tests");
    text.contains("may_make_namespaces(") || (is_test && text.contains("geteuid("))
}

#[test]
fn crates_whose_tests_make_namespaces_are_in_a_row() {
    let makefile = fs::read_to_string(root().join("Makefile")).expect("there is a Makefile");
    let [network, laboratories] = ["NETWORK", "LABORATORIES"].map(|name| row(&makefile, name));
    assert!(network.is_disjoint(&laboratories), "a program runs once: {network:?} {laboratories:?}");
    let in_rows: BTreeSet<&str> = network.union(&laboratories).copied().collect();
    let mut found = BTreeSet::new();
    for folder in crates() {
        let name = folder.file_name().expect("a crate has a name").to_string_lossy().into_owned();
        let of_tests = |path: &Path| path.strip_prefix(&folder).expect("it lies in the crate").to_owned();
        // This crate has the function itself.
        if name != "testbed"
            && rust_files(&folder).iter().any(|(path, text)| needs_row(&of_tests(path), text))
        {
            found.insert(name);
        }
    }
    let missing: Vec<_> = found.iter().filter(|name| !in_rows.contains(name.as_str())).collect();
    assert!(missing.is_empty(), "they belong to NETWORK or LABORATORIES of the Makefile: {missing:?}");
    let needless: Vec<_> = in_rows.iter().filter(|name| !found.contains(**name)).collect();
    assert!(needless.iter().all(|name| BY_OTHER_MEANS.contains(name)), "{needless:?}");
}

/// Crates in a row whose tests use interfaces and ports of the whole machine by other means.
const BY_OTHER_MEANS: [&str; 3] = ["sys", "direct", "gateway"];

#[test]
fn rows_and_tests_are_read() {
    let makefile = "NETWORK := sys netlink\nNETWORKS := cli\nLABORATORIES := lab\n";
    assert_eq!(row(makefile, "NETWORK"), BTreeSet::from(["sys", "netlink"]));
    let [test, source] = ["tests/all.rs", "src/lib.rs"].map(Path::new);
    assert!(needs_row(source, "if !may_make_namespaces(RUN) {") && needs_row(test, "!geteuid().is_root()"));
    assert!(!needs_row(source, "!geteuid().is_root()") && !needs_row(test, "may_make_namespaces"));
}
