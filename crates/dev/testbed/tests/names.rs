//! One concept has one public type with one name. A name that several crates have is in [`SHARED`], with the reason.

use cutline_testbed::repository::{crates, root};
use regex_lite::Regex;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Public names of types that several crates have, by the reason.
const SHARED: [(&str, &[&str]); 4] = [
    (
        "tokio's face of the same socket",
        &[
            "QosDirectListener",
            "QosDirectSocket",
            "QosTcpListener",
            "QosTcpStream",
            "QosUdpListener",
            "QosUdpSocket",
        ],
    ),
    (
        "`bindings` has it as a plain struct, for other languages",
        &[
            "Axis",
            "Distribution",
            "Event",
            "GrantState",
            "Interval",
            "Mib",
            "Negotiation",
            "Reason",
            "Refusal",
            "Reservation",
            "SchedulingStats",
            "SentInterval",
            "Tcp",
            "Tfrc",
            "TokenBucket",
            "Totals",
        ],
    ),
    (
        "one concept in two layers: as a file or a request describes it, and as it runs",
        &["AckPath", "FlowSpec", "LinkSpec", "Perspective", "ReservationStatus", "Transport"],
    ),
    (
        "a term of several RFCs, of the kernel or of a paper; each protocol's crate has its own",
        &[
            "Acknowledgement",
            "Address",
            "Algorithm",
            "Carrier",
            "Data",
            "Datagram",
            "Echo",
            "Hop",
            "Instruction",
            "Interface",
            "Key",
            "Message",
            "Path",
            "Receiver",
            "Refused",
            "Reply",
            "Report",
            "Sender",
            "Session",
            "Stats",
            "Window",
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
    by_name.retain(|_, crates| crates.len() > 1);
    let listed: BTreeSet<&str> = SHARED.iter().flat_map(|(_, names)| names.iter().copied()).collect();
    let unlisted: Vec<String> = (by_name.iter().filter(|(name, _)| !listed.contains(&***name)))
        .map(|(name, crates)| format!("{name}: {}", crates.iter().cloned().collect::<Vec<_>>().join(", ")))
        .collect();
    assert!(
        unlisted.is_empty(),
        "names that several crates have; choose others, or give the reason in `SHARED`:\n{}",
        unlisted.join("\n")
    );
    let past: Vec<_> = listed.iter().filter(|name| !by_name.contains_key(**name)).collect();
    assert!(past.is_empty(), "`SHARED` has names that only one crate has, or none: {past:?}");
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
