//! One concept has one public type with one name. A name that several crates have is in [`SHARED`], with the reason.

use cutline_testbed::repository::{crates, root};
use regex_lite::Regex;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Names of types, each with the crates that have it.
type SharedNames = &'static [(&'static str, &'static [&'static str])];

/// Names of public types that several crates have, by the reason.
const SHARED: [(&str, SharedNames); 3] = [
    (
        "the same socket for tokio",
        &[
            ("QosDirectListener", &["socket", "tokio"]),
            ("QosDirectSocket", &["socket", "tokio"]),
            ("QosTcpListener", &["socket", "tokio"]),
            ("QosTcpStream", &["socket", "tokio"]),
            ("QosUdpListener", &["socket", "tokio"]),
            ("QosUdpSocket", &["socket", "tokio"]),
        ],
    ),
    (
        "`bindings` has it as a plain struct, for other languages",
        &[
            ("Axis", &["bindings", "quality", "report"]),
            ("ConnectionReservation", &["bindings", "socket"]),
            ("GrantState", &["bindings", "provision"]),
            ("HistogramSummary", &["bindings", "signal"]),
            ("Interval", &["bindings", "quality"]),
            ("Mib", &["bindings", "signal", "socket"]),
            ("Negotiation", &["bindings", "signal"]),
            ("Refusal", &["bindings", "provision"]),
            ("RefusalReason", &["bindings", "provision"]),
            ("SchedulingStats", &["bindings", "manager"]),
            ("SessionEvent", &["bindings", "signal"]),
            ("SentInterval", &["bindings", "signal", "traffic"]),
            ("Tcp", &["bindings", "transport"]),
            ("Tfrc", &["bindings", "transport"]),
            ("TokenBucket", &["aqm", "bindings"]),
            ("Totals", &["bindings", "traffic"]),
        ],
    ),
    (
        "a term of several RFCs, of the kernel or of a paper; each protocol's crate has its own",
        &[
            ("Acknowledgement", &["rsvp", "transport"]),
            ("Address", &["netlink", "sim"]),
            ("Algorithm", &["rsvp", "transport"]),
            ("Carrier", &["rsvp", "signal", "traffic"]),
            ("Data", &["study", "transport"]),
            ("Datagram", &["rsvp", "sys", "transport"]),
            ("Echo", &["signal", "sys"]),
            ("Hop", &["netlink", "rsvp"]),
            ("Instruction", &["marking", "sys"]),
            ("Interface", &["netlink", "router-service"]),
            ("Key", &["aqm", "signal", "traffic"]),
            ("Message", &["rsvp", "traffic"]),
            ("Path", &["rsvp", "translate"]),
            ("Receiver", &["lab", "traffic", "transport"]),
            ("Reply", &["provision", "transport"]),
            ("Report", &["report", "signal", "traffic", "transport"]),
            ("Sender", &["lab", "rsvp", "transport"]),
            ("Session", &["rsvp", "signal"]),
            ("Stats", &["rsvp", "transport"]),
            ("Window", &["sim", "traffic", "transport"]),
        ],
    ),
];

#[test]
fn a_public_name_is_of_one_crate_unless_there_is_a_reason() {
    let mut by_name: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for folder in crates() {
        let group = folder.parent().and_then(Path::file_name).unwrap_or_default();
        let source = root().join(&folder).join("src");
        // Crates of tests may call things as they like. A program has no public names.
        if group == "dev" || !source.join("lib.rs").exists() {
            continue;
        }
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        for public in public_names(&source.join("lib.rs"), &source) {
            by_name.entry(public).or_default().insert(name.clone());
        }
    }
    let listed = SHARED.iter().flat_map(|(_, names)| names.iter().copied());
    let wrong = differences(&by_name, listed);
    assert!(
        wrong.is_empty(),
        "names of several crates that are not in `SHARED`, or with other crates; choose other names, or give the \
         reason there:\n{}",
        wrong.join("\n")
    );
}

/// Returns the names that other crates have than those that are listed for a shared name.
fn differences<'l>(
    by_name: &BTreeMap<String, BTreeSet<String>>,
    listed: impl Iterator<Item = (&'l str, &'l [&'l str])>,
) -> Vec<String> {
    let mut listed: BTreeMap<&str, BTreeSet<&str>> =
        listed.map(|(name, crates)| (name, crates.iter().copied().collect())).collect();
    let mut wrong = Vec::new();
    for (name, crates) in by_name {
        let expected = listed.remove(&**name).unwrap_or_default();
        let found: BTreeSet<&str> = crates.iter().map(|name| &**name).collect();
        if expected != found && (found.len() > 1 || !expected.is_empty()) {
            wrong.push(format!("{name}: {found:?}, listed {expected:?}"));
        }
    }
    wrong.extend(listed.into_iter().map(|(name, expected)| format!("{name}: none, listed {expected:?}")));
    wrong
}

#[test]
fn a_shared_name_is_allowed_in_the_listed_crates_only() {
    let has =
        |name: &str, crates: &[&str]| (name.to_owned(), crates.iter().map(|&it| it.to_owned()).collect());
    let by_name = BTreeMap::from([
        has("One", &["a"]),
        has("Unlisted", &["a", "b"]),
        has("Listed", &["a", "b"]),
        has("Third", &["a", "b", "c"]),
        has("Renamed", &["a"]),
    ]);
    let pair: &[&str] = &["a", "b"];
    let listed = ["Listed", "Third", "Renamed", "Gone"].map(|name| (name, pair));
    assert_eq!(
        differences(&by_name, listed.into_iter()),
        [
            "Renamed: {\"a\"}, listed {\"a\", \"b\"}",
            "Third: {\"a\", \"b\", \"c\"}, listed {\"a\", \"b\"}",
            "Unlisted: {\"a\", \"b\"}, listed {}",
            "Gone: none, listed {\"a\", \"b\"}",
        ]
    );
}

/// Returns the names of the public types of a module, of its public modules, and of its exports.
fn public_names(file: &Path, folder: &Path) -> BTreeSet<String> {
    let text = fs::read_to_string(file).expect("the module is readable");
    let mut names = declared(&text);
    let module = Regex::new(r"(?m)^\s*pub mod (\w+);").expect("a regular expression");
    for found in module.captures_iter(&text) {
        let inner = folder.join(&found[1]);
        let files = [inner.with_extension("rs"), inner.join("mod.rs")];
        let file = files.iter().find(|file| file.exists()).expect("a module has a file");
        names.extend(public_names(file, &inner));
    }
    names
}

/// Returns the public names of types that a text declares or exports from its own crate.
fn declared(text: &str) -> BTreeSet<String> {
    let code: String =
        text.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n");
    let tests = Regex::new(r"#\[cfg\(test\)\]\nmod \w+ \{").expect("a regular expression");
    let code = tests.split(&code).next().unwrap_or_default();
    let types =
        Regex::new(r"(?m)^\s*pub (?:struct|enum|trait|type|union) (\w+)").expect("a regular expression");
    let exports = Regex::new(r"\bpub use ([^;]+);").expect("a regular expression");
    let exported = Regex::new(r"\b([A-Z]\w*)\b(?:\s+as\s+(\w+))?").expect("a regular expression");
    let mut names: BTreeSet<String> = types.captures_iter(code).map(|found| found[1].to_owned()).collect();
    for found in exports.captures_iter(code).filter(|found| !found[1].starts_with("cutline_")) {
        for name in exported.captures_iter(&found[1]) {
            let name = name.get(2).unwrap_or(name.get(1).expect("it is in the expression")).as_str();
            // Constants are in capitals.
            if name.chars().any(char::is_lowercase) {
                names.insert(name.to_owned());
            }
        }
    }
    names
}

#[test]
fn declarations_and_exports_are_found() {
    let text = "#[cfg(test)]\nmod awaited;\npub struct One;\npub(crate) struct Hidden;\npub use inner::{Two, LIMIT, Three as Four};\n\
                pub use cutline_units::Rate;\n// pub struct Comment;\npub trait Five {}\n#[cfg(test)]\nmod tests {\n    pub struct Six;\n}\n";
    assert_eq!(declared(text).into_iter().collect::<Vec<_>>(), ["Five", "Four", "One", "Two"]);
}
