//! The documentation's Markdown is wrapped, so that people can read it in an editor and review a change line by line.

use cutline_testbed::pages::{WIDTH, long_lines};
use cutline_testbed::repository::root;
use regex_lite::Regex;
use std::fs;
use std::path::Path;

/// Folder of the pages that the scripts of `validate/` write.
const MEASURED: &str = "docs/validation";

/// Longest cell of a table, characters: two lines.
const CELL: usize = 2 * WIDTH;

/// The numbers of the faulty lines of a page.
type Faults = fn(&str) -> Vec<usize>;

#[test]
fn lines_of_markdown_are_wrapped() {
    let wrong = faulty_lines(|text| long_lines(text).collect());
    assert!(
        wrong.is_empty(),
        "{} lines are longer than {WIDTH} characters:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn cells_of_tables_are_two_lines_at_most() {
    let wrong = faulty_lines(long_cells);
    assert!(
        wrong.is_empty(),
        "{} lines have a cell of more than {CELL} characters:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

/// Returns the lines with a cell that is too long. The targets of links do not count, nor do lists of names, as in the code map.
fn long_cells(text: &str) -> Vec<usize> {
    let target = Regex::new(r"\]\([^)]*\)").expect("a regular expression");
    let is_list = |cell: &str| {
        let mut between = cell.split('`').step_by(2);
        between.all(|part| part.chars().all(|letter| letter == ',' || letter == ' '))
    };
    let is_long = |cell: &str| cell.trim().chars().count() > CELL && !is_list(cell);
    let mut is_code = false;
    let mut found = Vec::new();
    for (number, line) in text.lines().enumerate() {
        is_code ^= line.trim_start().starts_with("```");
        if !is_code && line.starts_with('|') {
            let shown = target.replace_all(line, "]").replace("\\|", "/");
            if shown.split('|').any(is_long) {
                found.push(number + 1);
            }
        }
    }
    found
}

#[test]
fn long_cells_are_found() {
    let (long, name) = ("a ".repeat(101), "`name`, ".repeat(40));
    let link = format!("[a](https://{})", "b".repeat(200));
    let text = format!("| a | {long}|\n| {name} | {link} |\n{long}\n```\n| {long} |\n```\n| {long} | a |\n");
    assert_eq!(long_cells(&text), [1, 7]);
}

fn faulty_lines(faults: Faults) -> Vec<String> {
    let mut wrong = Vec::new();
    for folder in [".", "crates", "docs", "examples", "experiments", "packaging", "python", "validate"] {
        check(&root().join(folder), folder != ".", faults, &mut wrong);
    }
    wrong
}

/// Checks the Markdown files of a folder, and of the folders in it.
fn check(folder: &Path, with_folders: bool, faults: Faults, wrong: &mut Vec<String>) {
    for entry in fs::read_dir(folder).expect("the folder exists") {
        let path = entry.expect("the folder is readable").path();
        let of_root = path.strip_prefix(root()).unwrap_or(&path).to_string_lossy().replace("./", "");
        // Build products, and packages of other projects.
        let is_foreign = path.file_name().is_some_and(|name| name == "target" || name == ".venv");
        if path.is_dir() && with_folders && !is_foreign && of_root != MEASURED {
            check(&path, true, faults, wrong);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            let text = fs::read_to_string(&path).expect("the file is readable");
            wrong.extend(faults(&text).into_iter().map(|line| format!("{of_root}:{line}")));
        }
    }
}
