//! Comments are plain English: a doc comment begins with a noun phrase or a verb phrase, and technical things have their technical names.

use cutline_testbed::repository::{root, rust_files};
use std::fs;

/// First words of a clause that stands in the place of a noun, or of a sentence about something that was not named.
const REFUSED_FIRST: [&str; 18] = [
    "Who", "Whom", "Whose", "What", "Whatever", "Where", "Wherever", "How", "Since", "Whether", "Which",
    "Why", "When", "If", "It", "They", "That", "Them",
];

/// Household words, each with the term that says the same.
const REFUSED_WORDS: [(&str, &str); 24] = [
    ("whoever", "the caller, the sender, a host"),
    ("untold", "unreported"),
    ("affair", "a matter of ..., left to ..."),
    ("goes first", "is served first"),
    ("went first", "was served first"),
    ("comes to rest", "settles, converges"),
    ("an other", "another"),
    ("nobody", "no process, no host, unread, unused"),
    ("somebody", "another program, another user, a host"),
    ("anybody", "any host, any user"),
    ("told", "reported, notified"),
    ("any more", "no longer"),
    ("anew", "again, reset"),
    ("in vain", "without success"),
    ("asks for", "requests"),
    ("once more", "again"),
    ("lately", "recently"),
    ("what is", "the noun"),
    ("what was", "the noun"),
    ("what has", "the noun"),
    ("what have", "the noun"),
    ("what it", "the noun"),
    ("what they", "the noun"),
    ("what had", "the noun"),
];

#[test]
fn comments_are_plain_english() {
    let mut wrong = Vec::new();
    for folder in ["crates", "python"] {
        for (path, text) in rust_files(&root().join(folder)) {
            // Build products, and this list.
            let is_ours =
                !path.components().any(|part| part.as_os_str() == "target") && !path.ends_with("prose.rs");
            if is_ours {
                wrong
                    .extend(faults(&text).map(|(line, fault)| format!("{}:{line}: {fault}", path.display())));
            }
        }
    }
    assert!(wrong.is_empty(), "{} comments:\n{}", wrong.len(), wrong.join("\n"));
}

/// The package for Python keeps the rule for first lines, too.
#[test]
fn docstrings_are_plain_english() {
    let folder = root().join("python/cutline");
    let files =
        fs::read_dir(&folder).expect("the package is there").map(|entry| entry.expect("an entry").path());
    let sources: Vec<_> =
        files.filter(|path| path.extension().is_some_and(|extension| extension == "py")).collect();
    assert!(sources.len() > 10, "{sources:?}");
    let mut wrong = Vec::new();
    for path in sources {
        let text = fs::read_to_string(&path).expect("a source file is text");
        let wrong_lines = text.lines().enumerate().filter(|(_, line)| begins_a_clause(line));
        wrong.extend(wrong_lines.map(|(number, line)| format!("{}:{}: {line}", path.display(), number + 1)));
    }
    assert!(wrong.is_empty(), "{} docstrings:\n{}", wrong.len(), wrong.join("\n"));
}

/// Returns whether a docstring begins here with a refused word.
fn begins_a_clause(line: &str) -> bool {
    let text = line.trim_start().strip_prefix("\"\"\"").unwrap_or_default();
    let first = text.split(|letter: char| !letter.is_ascii_alphabetic()).next().unwrap_or_default();
    REFUSED_FIRST.contains(&first)
}

/// Returns the faults of a source file's comments, with their lines.
fn faults(text: &str) -> impl Iterator<Item = (usize, String)> {
    let mut before = None;
    let mut is_code = false;
    text.lines().enumerate().flat_map(move |(number, line)| {
        let comment = comment(line);
        let is_first = comment.map(|(kind, _)| kind) != before;
        before = comment.map(|(kind, _)| kind);
        let Some((kind, text)) = comment else {
            is_code = false;
            return Vec::new();
        };
        if text.starts_with("```") {
            is_code = !is_code;
        }
        if is_code {
            return Vec::new();
        }
        let is_doc = kind != Kind::Plain;
        let first = text.split(|letter: char| !letter.is_ascii_alphabetic()).next().unwrap_or_default();
        let begins = (is_doc && is_first && REFUSED_FIRST.contains(&first))
            .then(|| format!("a doc comment begins with a noun phrase or a verb phrase: {text}"));
        let lower = without_code(text).to_lowercase();
        let household = REFUSED_WORDS.iter().filter(|(word, _)| has_word(&lower, word));
        let household = household.map(|(word, term)| format!("`{word}` is {term}: {text}"));
        begins.into_iter().chain(household).map(|fault| (number + 1, fault)).collect()
    })
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Module,
    Item,
    Plain,
}

/// Returns the kind and the text of a line that is a comment.
fn comment(line: &str) -> Option<(Kind, &str)> {
    let line = line.trim_start();
    let (kind, text) = if let Some(text) = line.strip_prefix("//!") {
        (Kind::Module, text)
    } else if let Some(text) = line.strip_prefix("///") {
        (Kind::Item, text)
    } else {
        (Kind::Plain, line.strip_prefix("//")?)
    };
    Some((kind, text.trim_start()))
}

/// Returns a text without its parts in backticks.
fn without_code(text: &str) -> String {
    text.split('`').step_by(2).collect::<Vec<_>>().join(" ")
}

fn has_word(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(at, _)| {
        let is_letter = |letter: Option<char>| letter.is_some_and(char::is_alphanumeric);
        !is_letter(text[..at].chars().next_back()) && !is_letter(text[at + word.len()..].chars().next())
    })
}

#[test]
fn faults_are_found_with_their_lines() {
    let text = "//! What this is.\n//! How it works is no first line.\n\n/// Returns it.\n///\n/// Whoever calls `whoever` waits.\nfn a() {}\n\
                \n/// ```text\n/// How\n/// ```\nfn b() {}\n// The affairs of an other are none. Whoeverness. It is retold anyway.\n    /// True if it is.\n";
    let found: Vec<usize> = faults(text).map(|(line, _)| line).collect();
    assert_eq!(found, [1, 6, 13]);
    assert!(
        begins_a_clause("    \"\"\"How long calls wait, s.\"\"\"")
            && !begins_a_clause("\"\"\"Time, s.\"\"\"")
    );
    assert_eq!(faults("/// A fair share is another thing.\n//// It\n").count(), 0);
}
