//! The documentation's Markdown is wrapped, so that people can read it in an editor and review a change line by line.

use cutline_testbed::pages::{WIDTH, long_lines};
use cutline_testbed::repository::root;
use std::fs;
use std::path::Path;

/// Folder of the pages that the scripts of `validate/` write.
const MEASURED: &str = "docs/validation";

#[test]
fn lines_of_markdown_are_wrapped() {
    let mut wrong = Vec::new();
    for folder in [".", "crates", "docs", "examples", "experiments", "packaging", "python", "validate"] {
        check(&root().join(folder), folder != ".", &mut wrong);
    }
    assert!(
        wrong.is_empty(),
        "{} lines are longer than {WIDTH} characters:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

/// Checks the Markdown files of a folder, and of the folders in it.
fn check(folder: &Path, with_folders: bool, wrong: &mut Vec<String>) {
    for entry in fs::read_dir(folder).expect("the folder exists") {
        let path = entry.expect("the folder is readable").path();
        let of_root = path.strip_prefix(root()).unwrap_or(&path).to_string_lossy().replace("./", "");
        // Build products, and packages of other projects.
        let is_foreign = path.file_name().is_some_and(|name| name == "target" || name == ".venv");
        if path.is_dir() && with_folders && !is_foreign && of_root != MEASURED {
            check(&path, true, wrong);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            let text = fs::read_to_string(&path).expect("the file is readable");
            wrong.extend(long_lines(&text).map(|line| format!("{of_root}:{line}")));
        }
    }
}
