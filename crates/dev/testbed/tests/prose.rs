//! Comments are plain English: a doc comment begins with a noun phrase or a verb phrase, and technical things have their technical names.

use cutline_testbed::repository::{root, rust_files};
use std::fs;
use std::path::{Path, PathBuf};

/// First words of a clause that stands in the place of a noun, or of a sentence about something that was not named.
const REFUSED_FIRST: [&str; 25] = [
    "Who", "Whom", "Whose", "What", "Whatever", "Where", "Wherever", "How", "Since", "Whether", "Which",
    "Why", "When", "If", "It", "They", "That", "Them", "Until", "Those", "These", "So", "Once", "While",
    "There",
];

/// Household words, each with the term that says the same.
const REFUSED_WORDS: [(&str, &str); 28] = [
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
    ("everybody", "all users, every host"),
    ("stands over", "is over"),
    ("who pays", "the loss of ..."),
    ("lying pays", "lying is an advantage"),
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

/// The documentation, the manuals, the introductions of the crates, and the texts of the studies keep the rule for words.
#[test]
fn pages_are_plain_english() {
    let mut pages = ["README.md", "CHANGELOG.md", "ARCHITECTURE.md", "bpf/README.md"]
        .map(|page| root().join(page))
        .to_vec();
    for (folder, is_page) in [
        ("docs", (|path| has_extension(path, "md")) as fn(&Path) -> bool),
        ("crates", |path| path.ends_with("README.md")),
        ("docs/man", |path| !has_extension(path, "md")),
        ("experiments", |path| path.ends_with("figures.toml")),
    ] {
        let found: Vec<_> = files(&root().join(folder)).into_iter().filter(|path| is_page(path)).collect();
        assert!(found.len() >= 3, "{folder}: {found:?}");
        pages.extend(found);
    }
    let mut wrong = Vec::new();
    for path in pages {
        let text = fs::read_to_string(&path).expect("a page is text");
        wrong.extend(
            household_words(&text).map(|(line, fault)| format!("{}:{line}: {fault}", path.display())),
        );
    }
    assert!(wrong.is_empty(), "{} lines:\n{}", wrong.len(), wrong.join("\n"));
}

/// Comments in C and JavaScript, in scenarios and in scripts keep the rule for words.
#[test]
fn comments_in_other_languages_are_plain_english() {
    let is_source = |path: &PathBuf| {
        let is_built = path.components().any(|part| part.as_os_str() == "target");
        !is_built
            && ["c", "h", "js", "toml", "sh", "tcl"].iter().any(|extension| has_extension(path, extension))
    };
    let sources: Vec<_> = ["bpf", "crates", "examples", "experiments", "tools", "validate"]
        .iter()
        .flat_map(|folder| files(&root().join(folder)))
        .filter(is_source)
        .collect();
    assert!(sources.len() > 10, "{sources:?}");
    let mut wrong = Vec::new();
    for path in sources {
        let text = fs::read_to_string(&path).expect("a source file is text");
        wrong.extend(
            words_in_comments(
                &text,
                !["c", "h", "js"].iter().any(|extension| has_extension(&path, extension)),
            )
            .map(|(line, fault)| format!("{}:{line}: {fault}", path.display())),
        );
    }
    assert!(wrong.is_empty(), "{} comments:\n{}", wrong.len(), wrong.join("\n"));
}

/// Returns the lines of a source file whose comment has a refused word. A comment begins with `# `, or as in C.
fn words_in_comments(text: &str, has_hashes: bool) -> impl Iterator<Item = (usize, String)> {
    text.lines().enumerate().flat_map(move |(number, line)| {
        let comment = if has_hashes {
            line.split_once("# ").map(|(_, comment)| comment)
        } else {
            let comment = line.split_once("//").or_else(|| line.split_once("/*")).map(|(_, comment)| comment);
            comment.or_else(|| line.trim_start().strip_prefix("* "))
        };
        let comment = comment.unwrap_or_default();
        let lower = without_code(comment).to_lowercase();
        // Settings that are commented out have values in quotes.
        let lower = if has_hashes { lower.split('"').step_by(2).collect() } else { lower };
        let found = REFUSED_WORDS.iter().filter(|(word, _)| has_word(&lower, word));
        found.map(|(word, term)| (number + 1, format!("`{word}` is {term}: {line}"))).collect::<Vec<_>>()
    })
}

fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|its| its == extension)
}

/// Returns the files in a folder and the folders below it.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries =
        fs::read_dir(folder).expect("the folder is there").map(|entry| entry.expect("an entry").path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// Returns the lines of a page with a refused word outside of code and of the names of claims.
fn household_words(text: &str) -> impl Iterator<Item = (usize, String)> {
    let mut is_code = false;
    text.lines().enumerate().flat_map(move |(number, line)| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        let lower = without_code(&without_names(line)).to_lowercase();
        let found = REFUSED_WORDS.iter().filter(|(word, _)| !is_code && !is_fence && has_word(&lower, word));
        found.map(|(word, term)| (number + 1, format!("`{word}` is {term}: {line}"))).collect::<Vec<_>>()
    })
}

/// Returns a line without the values of `id`: names of claims stay, because stored results have them.
fn without_names(line: &str) -> String {
    let mut parts = line.split("id = \"");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + part.split_once('"').map_or("", |(_, rest)| rest))
}

/// The package for Python, its tests and the scripts keep the rule for first lines, too.
#[test]
fn docstrings_are_plain_english() {
    let folders = ["python/cutline", "python/tests", "python/tools", "experiments", "tools", "validate"];
    let sources: Vec<_> = folders
        .iter()
        .flat_map(|folder| files(&root().join(folder)))
        .filter(|path| has_extension(path, "py"))
        .collect();
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
        let clause =
            is_clause_of_its_own(text).then(|| format!("a sentence needs a subject and a verb: {text}"));
        begins.into_iter().chain(clause).chain(household).map(|fault| (number + 1, fault)).collect()
    })
}

/// Returns whether a sentence of this line is a clause without a question mark, such as ". Whether there is one.".
fn is_clause_of_its_own(text: &str) -> bool {
    let starts = ["Whether", "Who", "What"].into_iter().flat_map(|word| {
        text.match_indices(word).filter(move |(at, _)| {
            let ends = !text[at + word.len()..].starts_with(char::is_alphanumeric);
            ends && (text[..*at].ends_with(". ") || text[..*at].ends_with("; "))
        })
    });
    starts
        .map(|(at, _)| &text[at..])
        .any(|rest| rest.find(['.', '?']).is_none_or(|end| !rest[end..].starts_with('?')))
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
        let is_letter =
            |letter: Option<char>| letter.is_some_and(|letter| letter == '_' || letter.is_alphanumeric());
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
    let clauses =
        "/// Ends one. Whether there was one.\n/// Ends one. Whether it did? Whoever; What is left\n";
    assert_eq!(faults(clauses).map(|(line, _)| line).collect::<Vec<_>>(), [1, 2, 2, 2]);
    let page = "It is anew.\n```sh\nanew\n```\n{ id = \"anew\", text = \"none\" }\n| `anew` |\nid = \"a\", paper = \"anew\"\n";
    assert_eq!(household_words(page).map(|(line, _)| line).collect::<Vec<_>>(), [1, 7]);
    assert_eq!(faults("/// A fair share is another thing.\n//// It\n").count(), 0);
    let source = "int told; /* It is told. */\n/* A page\n * that nobody reads. `anew` */\nvar anew; // Anew.\nint what_is;\n";
    let lines =
        |text, has_hashes| words_in_comments(text, has_hashes).map(|(line, _)| line).collect::<Vec<_>>();
    assert_eq!(lines(source, false), [1, 3, 4]);
    assert_eq!(
        lines("# Told\ntold = 1 # It is `told`, and anew.\nanew = \"#anew\"\n# user = \"nobody\"\n", true),
        [1, 2]
    );
}
