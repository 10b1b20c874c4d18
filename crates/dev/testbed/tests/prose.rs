//! Doc comments are in plain English.
//!
//! The first line of a doc comment is a noun phrase or a verb phrase: `Receive buffer of a stream`, `Returns the rate`.
//! A line that begins with `What`, `Who` or `It` makes its reader look for the noun. Some household words have a
//! technical one
//! instead.
//!
//! Doc comments are `///`, `//!`, `/** */` and `/*! */`. Code in them, between fences or backquotes, is not prose.

use cutline_testbed::repository::{root, rust_files};
use std::path::Path;

/// Words that no doc comment begins with.
const REFUSED: [&str; 20] = [
    "Who", "Whom", "Whose", "What", "Whatever", "Where", "Wherever", "How", "Since", "Whether", "Which",
    "Why", "When", "If", "It", "They", "That", "Them", "He", "Whoever",
];

/// Household words, each with the field's word for it.
const HOUSEHOLD: [(&str, &str); 9] = [
    ("comes to rest", "is stored, ends at"),
    ("came to rest", "was stored, ended at"),
    ("come to rest", "are stored, end at"),
    ("affair", "task, operation"),
    ("goes first", "is sent first, has priority"),
    ("went first", "was sent first, had priority"),
    ("untold", "pending"),
    ("whoever", "the caller, the component"),
    ("an other", "another"),
];

/// Lines that may have one of these words: the end of the file's path, a part of the line, and the reason.
const ALLOWED: [(&str, &str, &str); 0] = [];

/// A line of a doc comment, as [`documentation`] returns it.
#[derive(Debug, PartialEq, Eq)]
struct Line {
    number: usize,
    /// True if the line is the first of its comment.
    first: bool,
    /// Text without code.
    text: String,
}

/// Returns the prose of a file's doc comments.
fn documentation(code: &str) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut open: Option<Comment> = None;
    for (number, line) in (1..).zip(code.lines()) {
        let line = line.trim_start();
        if open.as_ref().is_none_or(|comment| comment.kind != Kind::Block) {
            // Attributes between the lines of a comment do not end it.
            if open.is_some() && line.starts_with("#[") {
                continue;
            }
            let kind = Kind::of(line);
            if open.as_ref().map(|comment| comment.kind) != kind {
                open = kind.map(|kind| Comment { kind, is_fenced: false, is_begun: false });
            }
        }
        let Some(comment) = &mut open else { continue };
        let text = comment.text(line);
        if text.starts_with("```") || text.starts_with("~~~") {
            comment.is_fenced = !comment.is_fenced;
        } else if !comment.is_fenced && !text.is_empty() {
            lines.push(Line { number, first: !comment.is_begun, text: without_code(text) });
        }
        comment.is_begun |= !text.is_empty();
        if comment.kind == Kind::Block && line.contains("*/") {
            open = None;
        }
    }
    lines
}

/// Kind of a doc comment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Outer,
    Inner,
    Block,
}

impl Kind {
    /// Returns the kind of the comment that a line belongs to or begins, outside of block comments.
    fn of(line: &str) -> Option<Self> {
        let is_block = line.starts_with("/*!") || line.starts_with("/**") && !line.starts_with("/***");
        if line.starts_with("///") && !line.starts_with("////") {
            Some(Self::Outer)
        } else if line.starts_with("//!") {
            Some(Self::Inner)
        } else {
            (is_block && !line.starts_with("/**/")).then_some(Self::Block)
        }
    }
}

/// State in a doc comment.
#[derive(Debug)]
struct Comment {
    kind: Kind,
    /// True between the fences of code.
    is_fenced: bool,
    /// True after the first line with text.
    is_begun: bool,
}

impl Comment {
    /// Returns the text of a line of the comment.
    fn text<'l>(&self, line: &'l str) -> &'l str {
        let text = match self.kind {
            Kind::Outer | Kind::Inner => &line[3..],
            Kind::Block => {
                let line = line.split_once("*/").map_or(line, |(text, _)| text);
                let begin = line.strip_prefix("/**").or_else(|| line.strip_prefix("/*!"));
                begin.unwrap_or_else(|| line.strip_prefix('*').unwrap_or(line))
            }
        };
        text.trim()
    }
}

/// Returns a text in which each piece of code between backquotes is an empty pair of them.
fn without_code(text: &str) -> String {
    let parts: Vec<&str> = text.split('`').step_by(2).collect();
    parts.join("``")
}

/// Returns the faults of a line, in words.
fn faults(line: &Line) -> Vec<String> {
    let first = line.text.split(|character: char| !character.is_alphanumeric()).next().unwrap_or_default();
    let begins = (line.first && REFUSED.contains(&first)).then(|| format!("begins with {first}"));
    let words = format!(" {} ", words(&line.text).join(" "));
    let household = HOUSEHOLD.iter().filter(|(word, _)| words.contains(&format!(" {word} ")));
    begins.into_iter().chain(household.map(|(word, better)| format!("{word}: better {better}"))).collect()
}

/// Returns the words of a text in lower case, without punctuation.
fn words(text: &str) -> Vec<String> {
    let words = text.split(|character: char| !character.is_alphanumeric() && character != '\'');
    words.filter(|word| !word.is_empty()).map(str::to_lowercase).collect()
}

/// Returns the faults of a file, a line each, with its path, the line's number and text.
fn findings(path: &Path, code: &str) -> Vec<String> {
    let is_allowed = |text: &str| {
        ALLOWED.iter().any(|(end, part, _)| path.to_string_lossy().ends_with(end) && text.contains(part))
    };
    let source: Vec<&str> = code.lines().collect();
    let mut findings = Vec::new();
    for line in documentation(code) {
        let text = source[line.number - 1].trim();
        if !is_allowed(text) {
            let all = faults(&line).into_iter();
            findings.extend(all.map(|fault| format!("{}:{}: {fault}: {text}", path.display(), line.number)));
        }
    }
    findings
}

#[test]
fn doc_comments_are_in_plain_english() {
    let root = root();
    let folders = ["crates", "python", "examples"].map(|name| root.join(name));
    let mut files: Vec<_> =
        folders.iter().filter(|folder| folder.exists()).flat_map(|folder| rust_files(folder)).collect();
    files.retain(|(path, _)| !path.iter().any(|part| part == "target"));
    let lines: usize = files.iter().map(|(_, code)| documentation(code).len()).sum();
    assert!(lines > 10_000, "the search finds the comments: {lines} lines");
    let relative = |path: &Path| path.strip_prefix(&root).expect("it lies there").to_owned();
    let wrong: Vec<String> = files.iter().flat_map(|(path, code)| findings(&relative(path), code)).collect();
    assert!(wrong.is_empty(), "{} lines:\n{}", wrong.len(), wrong.join("\n"));
}

/// Returns the numbers of the lines with faults.
fn found(code: &str) -> Vec<String> {
    let each = |line: Line| faults(&line).into_iter().map(move |fault| format!("{}: {fault}", line.number));
    documentation(code).into_iter().flat_map(each).collect()
}

#[test]
fn first_lines_begin_with_a_noun_or_a_verb() {
    assert_eq!(found("/// What is sent.\nconst A: u8 = 1;\n"), ["1: begins with What"]);
    assert_eq!(
        found("//! It's a queue.\n\n/// Whether it is up.\nup: bool,\n"),
        ["1: begins with It", "3: begins with Whether"]
    );
    assert!(found("/// Whatsoever\n// What\n//// What\nlet a = \"/// What\"; // What\n").is_empty());
    assert!(found("/// Item of the list, `What`.\n/// `If` in code.\n").is_empty());
}

#[test]
fn continued_lines_may_begin_with_any_word() {
    assert!(found("/// Returns the rate\n/// If it is known.\n///\n/// When not, 0.\n").is_empty());
    // An empty line or code ends a comment; so does a comment of the other kind.
    let code = "/// Rate.\n\n/// If known.\nfn f() {}\n/// They.\n//! That.\n";
    assert_eq!(found(code), ["3: begins with If", "5: begins with They", "6: begins with That"]);
    // The first line may be empty.
    assert_eq!(found("///\n/// Why.\n"), ["2: begins with Why"]);
}

#[test]
fn attributes_between_lines_do_not_begin_a_comment() {
    assert!(found("/// Rate.\n#[must_use]\n/// If known.\nfn f() {}\n").is_empty());
    assert_eq!(found("#[must_use]\n/// If known.\nfn f() {}\n"), ["2: begins with If"]);
}

#[test]
fn code_in_comments_is_not_prose() {
    let code = "/// Rate:\n///\n/// ```text\n/// whoever\n/// ```\n/// and `whoever` or whoever.\n";
    assert_eq!(found(code), ["6: whoever: better the caller, the component"]);
    // A fence that is left open ends with its comment.
    assert_eq!(found("/// ```\n/// What\nfn f() {}\n/// What.\n"), ["4: begins with What"]);
    // Text behind a fence is no first line.
    assert!(found("/// ```\n/// f()\n/// ```\n/// If so.\n").is_empty());
}

#[test]
fn block_comments_are_doc_comments() {
    assert_eq!(found("/** What. */\nfn f() {}\n"), ["1: begins with What"]);
    assert_eq!(
        found("/*!\n * Which queue.\n *\n * If any, it goes first.\n */\nfn f() {}\n// Which\n"),
        ["2: begins with Which", "4: goes first: better is sent first, has priority"]
    );
    assert!(found("/* What. */\n/**/\n/***** What */\n").is_empty());
}

#[test]
fn household_words_are_found_whole() {
    assert_eq!(found("/// Untold: an other\n/// affair.\n").len(), 3);
    assert!(found("/// Affairs of another, a fan otherwise.\n").is_empty());
}
