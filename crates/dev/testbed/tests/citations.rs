//! Papers and RFCs are cited in one form, and a test names each anchor that code cites.
//!
//! The form is a work, a space, and an anchor: `TSQ eq. 5`, `RFC 8033 section 4.2`, `RFC 9332 appendix A.1`,
//! `RED-Worcester section 2.3`, `Floyd and Jacobson 1993 eq. 3`, `G.107 annex B`. Several anchors follow each other:
//! `RFC 8033 sections 4.1 and 4.4`. So `grep 'TSQ eq. 5'` finds the equation, its code and its test.
//!
//! Citations in the documentation of a function and in comments in its body are checked: there the code implements the part that is
//! cited. A test names the anchor in a comment. The test may be in any crate.

use cutline_testbed::repository::{folder, root, rust_files};
use regex_lite::{Captures, Regex};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The crates that cite in the one form, and all of whose anchors tests name.
const ALL_ANCHORS: [&str; 6] = ["units", "aqm", "quality", "translate", "transport", "sim"];

/// A work: an RFC, an ITU-T recommendation, a paper of ours by its name, any other by authors and year.
const WORK: &str = r"RFC \d+|G\.\d+|TSQ|RED-Worcester|QoSockets|QUANTA|(?:[A-Z][a-zA-Z.]+ )+(?:and [A-Z][a-z]+ |et al\. )?(?:19|20)\d\d";

/// Pattern of an anchor's kind.
const KIND: &str = r"eqs?\.|sections?|figures?|tables?|appendix|annex";

/// An anchor's number.
const NUMBER: &str = r"(?:\d+|[A-F]|[IVX]+)(?:\.\d+)*";

/// A work and an anchor in it, such as `TSQ` and `eq. 5`.
type Citation = (String, String);

/// The code and the tests of a file: a file of tests, or what follows `#[cfg(test)]`.
fn parts<'t>(path: &Path, text: &'t str) -> (&'t str, &'t str) {
    let is_tests = path.iter().any(|part| part == "tests")
        || path.file_stem().is_some_and(|stem| stem.to_string_lossy().ends_with("tests"));
    let begin = if is_tests { 0 } else { text.find("#[cfg(test)]").unwrap_or(text.len()) };
    text.split_at(begin)
}

/// Returns the comments on functions: their documentation, and those in its body. One a line.
fn comments_on_functions(code: &str) -> Vec<String> {
    let function = Regex::new(r"^(?:pub(?:\(\w+\))? )?(?:const )?fn ").expect("the pattern is right");
    let (mut comments, mut documentation) = (Vec::new(), String::new());
    for line in code.lines().map(str::trim) {
        if let Some(text) = line.strip_prefix("///") {
            documentation.push_str(text);
        } else if function.is_match(line) {
            comments.push(std::mem::take(&mut documentation));
        } else if !line.starts_with("#[") {
            documentation.clear();
            let comment = line.split_once("// ").filter(|_| !line.starts_with("//!"));
            comments.extend(comment.map(|(_, text)| text.to_owned()));
        }
    }
    comments
}

/// The comments of tests: above `#[test]`, and between it and the end of its function.
fn comments_of_tests(tests: &str) -> Vec<String> {
    let (mut comments, mut above) = (Vec::new(), Vec::new());
    let mut end: Option<String> = None;
    for line in tests.lines() {
        let text = line.trim_start();
        let comment = text.find("//").map(|at| text[at..].trim_start_matches('/').trim().to_owned());
        match &end {
            Some(closing) => {
                comments.extend(comment);
                if line == closing {
                    end = None;
                }
            }
            None if text == "#[test]" => {
                comments.append(&mut above);
                // rustfmt closes a function where it begins.
                end = Some(format!("{}}}", &line[..line.len() - text.len()]));
            }
            None if text.starts_with("///") => above.extend(comment),
            None => above.clear(),
        }
    }
    comments
}

/// Every citation in a text.
fn citations(text: &str) -> BTreeSet<Citation> {
    let pattern = format!(r"\b({WORK}) ({KIND}) ({NUMBER}(?:(?:, | and |, and ){NUMBER}\b)*)");
    let pattern = Regex::new(&pattern).expect("the pattern is right");
    let number = Regex::new(NUMBER).expect("the pattern is right");
    let each = |found: Captures<'_>| {
        let kind = match &found[2] {
            "eq." | "eqs." => "eq.".to_owned(),
            kind => kind.trim_end_matches('s').to_owned(),
        };
        let numbers = number.find_iter(found.get(3).expect("the group is there").as_str());
        let anchors = numbers.map(|number| (found[1].to_owned(), format!("{kind} {}", number.as_str())));
        anchors.collect::<Vec<_>>()
    };
    pattern.captures_iter(text).flat_map(each).collect()
}

/// Returns the citations in the tests of all crates.
fn tested() -> BTreeSet<Citation> {
    let files = rust_files(&root().join("crates"));
    files
        .into_iter()
        .flat_map(|(path, text)| citations(&comments_of_tests(parts(&path, &text).1).join("\n")))
        .collect()
}

/// Returns the citations in the code of these crates, with the file.
fn cited(crates: &[&str]) -> BTreeMap<Citation, PathBuf> {
    let mut cited = BTreeMap::new();
    for (path, text) in crates.iter().flat_map(|name| rust_files(&folder(name))) {
        for citation in citations(&comments_on_functions(parts(&path, &text).0).join("\n")) {
            cited.entry(citation).or_insert_with(|| path.clone());
        }
    }
    cited
}

fn untested(cited: BTreeMap<Citation, PathBuf>) -> Vec<String> {
    let tested = tested();
    let untested = cited.into_iter().filter(|(citation, _)| !tested.contains(citation));
    untested.map(|((work, anchor), path)| format!("{work} {anchor}: {}", path.display())).collect()
}

#[test]
fn every_anchor_that_these_crates_cite_is_named_by_a_test() {
    let cited = cited(&ALL_ANCHORS);
    assert!(cited.len() >= 80, "{cited:?}");
    let untested = untested(cited);
    assert!(untested.is_empty(), "no test names in a comment:\n{}", untested.join("\n"));
}

#[test]
fn works_are_cited_in_one_form() {
    let number = r"\d+(?:\.\d+)*";
    let anywhere = [
        format!(r"(?:RFC \d+|G\.\d+|TSQ|RED-Worcester), (?:{KIND}) "),
        format!(r"RFC \d+,? {number}(?:[ ,;:.)]|$)"),
        format!(r"(?:{KIND}) {number} of (?:the )?(?:{WORK})"),
        r"RFC-?\d|\bREDW\b|§|\bequation \d|\bsec\. \d".to_owned(),
    ];
    let anywhere = Regex::new(&anywhere.join("|")).expect("the pattern is right");
    // The header of a file has the whole reference, which ends with a month and a year.
    let below_the_header = Regex::new(&format!(r"(?:{WORK}), (?:{KIND}) ")).expect("the pattern is right");
    let mut wrong = Vec::new();
    for (path, text) in ALL_ANCHORS.iter().flat_map(|name| rust_files(&folder(name))) {
        let lines = (1..).zip(text.lines());
        let found = lines.filter_map(|(at, line)| {
            let below = || below_the_header.find(line).filter(|_| !line.starts_with("//!"));
            anywhere.find(line).or_else(below).map(|found| (at, found.as_str()))
        });
        wrong.extend(found.map(|(at, found)| format!("{}:{at}: {found:?}", path.display())));
    }
    assert!(wrong.is_empty(), "cite as in `RFC 8033 section 4.2`:\n{}", wrong.join("\n"));
}

#[test]
fn citations_are_found_in_texts() {
    let found = |text: &str| -> Vec<String> {
        citations(text).into_iter().map(|(work, anchor)| format!("{work} {anchor}")).collect()
    };
    assert_eq!(found("p' of TSQ eq. 5, with a bound (TSQ section 3.2)."), ["TSQ eq. 5", "TSQ section 3.2"]);
    assert_eq!(
        found("RFC 8033 sections 4.1, 4.4 and 5.5: nothing is dropped"),
        ["RFC 8033 section 4.1", "RFC 8033 section 4.4", "RFC 8033 section 5.5"]
    );
    assert_eq!(found("(Floyd and Jacobson 1993 eq. 3)"), ["Floyd and Jacobson 1993 eq. 3"]);
    assert_eq!(found("as in Feng et al. 2002 figure 4"), ["Feng et al. 2002 figure 4"]);
    assert_eq!(found("RFC 9332 appendix A.1, and G.107 annex B"), ["G.107 annex B", "RFC 9332 appendix A.1"]);
    assert!(found("the equation of RFC 5348").is_empty());
}

#[test]
fn comments_belong_to_functions_and_tests() {
    let code = "//! Header.\n/// A constant.\nconst A: u32 = 1;\n/// Does\n/// this.\n#[inline]\npub fn f() {\n    \
                // Inside.\n    1 // Beside.\n}\n";
    assert_eq!(comments_on_functions(code), [" Does this.", "Inside.", "Beside."]);
    let tests = "/// Of a helper.\nfn helper() {\n    // No.\n}\n\n/// Above.\n#[test]\nfn t() {\n    // Yes.\n    \
                 if a {\n    }\n    // And this.\n}\n// No more.\n";
    assert_eq!(comments_of_tests(tests), ["Above.", "Yes.", "And this."]);
}
