//! Claims on time are judged by `make test-real-time`, or by a target of their own. `make test` does not judge them, so a file that no such
//! command runs has claims that are never judged.

use cutline_testbed::repository::{crates, root, rust_files};
use std::fs;
use std::path::Path;

/// Returns the commands of a Makefile that judge claims on time, without their line ends.
fn judging_commands(makefile: &str) -> Vec<String> {
    let lines = makefile.replace("\\\n", " ");
    lines.lines().filter(|line| line.contains("CUTLINE_REAL_TIME=1")).map(str::to_owned).collect()
}

/// Returns whether a command runs the tests of a file of a package.
fn runs(command: &str, package: &str, file: &Path) -> bool {
    let words: Vec<&str> = command.split_whitespace().collect();
    let after = |option: &str| words.iter().position(|word| *word == option).map(|at| &words[at + 1..]);
    let is_in = words.windows(2).any(|pair| pair == ["-p", package]);
    let is_program = match after("--test").and_then(<[_]>::first) {
        Some(&"all") => file.starts_with("tests"),
        Some(program) => file == Path::new("tests").join(format!("{program}.rs")),
        None => after("--lib").is_none() || file.starts_with("src"),
    };
    let path = file.with_extension("");
    let parts = path.components().skip(1).map(|part| part.as_os_str().to_string_lossy());
    let module = parts.collect::<Vec<_>>().join("::") + "::";
    let mut filters = after("--").unwrap_or_default().iter().filter(|word| !word.starts_with('-')).peekable();
    is_in && is_program && (filters.peek().is_none() || filters.any(|filter| module.contains(filter)))
}

#[test]
fn every_claim_on_time_is_judged_by_a_target() {
    let commands = judging_commands(&fs::read_to_string(root().join("Makefile")).unwrap());
    let mut found = 0;
    let mut unjudged = Vec::new();
    for folder in crates() {
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        let package = format!("cutline-{name}");
        for (path, text) in rust_files(&folder) {
            // A function of this name in a test is another one; this crate has the function itself.
            let has_claims = text.contains("undisturbed(") && !text.contains("fn undisturbed(");
            if !has_claims || name == "testbed" {
                continue;
            }
            found += 1;
            let file = path.strip_prefix(&folder).unwrap();
            if !commands.iter().any(|command| runs(command, &package, file)) {
                unjudged.push(path.display().to_string());
            }
        }
    }
    assert!(found > 20, "the search finds what there is");
    assert!(unjudged.is_empty(), "add them to test-real-time of the Makefile:\n{}", unjudged.join("\n"));
}

#[test]
fn commands_are_read() {
    let makefile = "test:\n\tcargo test -p cutline-a\nreal:\n\tCUTLINE_REAL_TIME=1 cargo test -p cutline-a --test all -- one:: \\\n\t\t\
                    two:: --include-ignored\n\tCUTLINE_REAL_TIME=1 cargo test -p cutline-b --lib -- deep::rate::\n\t\
                    CUTLINE_REAL_TIME=1 cargo test -p cutline-c --test other\n\tCUTLINE_REAL_TIME=1 cargo test -p cutline-d\n";
    let commands = judging_commands(makefile);
    assert_eq!(commands.len(), 4);
    let is_run = |package: &str, file: &str| {
        commands.iter().any(|command| runs(command, &format!("cutline-{package}"), Path::new(file)))
    };
    for (package, file) in [
        ("a", "tests/one.rs"),
        ("a", "tests/two.rs"),
        ("b", "src/deep/rate.rs"),
        ("c", "tests/other.rs"),
        ("d", "src/x.rs"),
    ] {
        assert!(is_run(package, file), "{package} {file}");
    }
    for (package, file) in [
        ("a", "tests/one_more.rs"),
        ("a", "src/one.rs"),
        ("b", "tests/deep/rate.rs"),
        ("c", "tests/all.rs"),
        ("e", "tests/one.rs"),
    ] {
        assert!(!is_run(package, file), "{package} {file}");
    }
}
