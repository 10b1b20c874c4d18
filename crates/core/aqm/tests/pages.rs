//! The pages of docs/aqm, one for each AQM: its description in the registry and the header of its file.
//!
//! `CUTLINE_BLESS=1 cargo test -p cutline-aqm pages::` writes them again; the diff is the review.

use crate::support::Link;
use cutline_aqm::{AnyQueue, AqmSpec, Limit, Queue, QueueSpec, TsqParams, registry};
use cutline_params::{Parameter, Parameters as _};
use cutline_testbed::pages::check_page;
use cutline_units::{Duration, Rate};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Properties of one AQM, or of TSQ.
struct About {
    name: &'static str,
    title: &'static str,
    source: &'static str,
    parameters: Vec<&'static Parameter>,
    kind: &'static str,
    tsq: &'static str,
    ecn: &'static str,
}

const LAW: &str = "a law: it answers a probability, and a FIFO or TSQ drops or marks";
const QUEUE: &str = "a queue of its own";
const TSQ: &str = "an order and a charge on top of a law";

fn all() -> Vec<About> {
    let aqms = registry::describe().into_iter().map(|aqm| About {
        name: aqm.name,
        title: aqm.title,
        source: aqm.source,
        parameters: aqm.parameters,
        kind: if aqm.takes_tsq { LAW } else { QUEUE },
        tsq: if aqm.takes_tsq { "yes" } else { "no" },
        ecn: if marks(aqm.name) { "marks" } else { "never marks" },
    });
    let tsq = About {
        name: "tsq",
        title: "TSQ",
        source: "the TSQ paper, section 3",
        parameters: TsqParams::describe(),
        kind: TSQ,
        tsq: "-",
        ecn: "as the law underneath",
    };
    aqms.chain([tsq]).collect()
}

/// Returns whether the AQM marks any of the packets that can be marked, in an overload.
fn marks(name: &str) -> bool {
    let aqm = AqmSpec::from_values(name, []).expect("the defaults are allowed");
    let rate = Rate::from_mbps(15);
    let spec = QueueSpec { limit: Limit::Packets(400), ecn: true, aqm, tsq: None, rate };
    let mut link: Link<AnyQueue<u32>> = Link::new(spec.build().expect("the defaults are allowed"), rate);
    for i in 0..10_000 {
        link.arrive(1000, 1 + i % 16, true);
        link.wait(Duration::from_micros(400));
    }
    link.queue.stats().marked.packets > 0
}

/// The header of a file, without its comment signs: its subject in a sentence, the text, and the checks.
struct Header {
    summary: String,
    text: Vec<String>,
    validation: Vec<String>,
}

/// The path of an AQM's file from the crate's folder: `src/NAME.rs`, or `src/NAME/mod.rs` where it has several.
fn file_of(name: &str) -> String {
    let name = name.replace('-', "_");
    let alone = format!("src/{name}.rs");
    if in_crate(&alone).exists() { alone } else { format!("src/{name}/mod.rs") }
}

fn in_crate(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(file)
}

fn header_of(name: &str) -> Header {
    let source = fs::read_to_string(in_crate(&file_of(name))).expect("each AQM has a file of its name");
    let header = source.lines().map_while(|line| line.strip_prefix("//!"));
    let mut lines = header.map(|line| line.strip_prefix(' ').unwrap_or(line).to_owned());
    let first = lines.next().expect("the file has a header");
    let (_, summary) = first.split_once(": ").expect("the header begins with the name and what it is");
    let (text, validation) = split(lines.collect(), "# Validation");
    assert!(!validation.is_empty(), "{name}: the header has to say how the algorithm was checked");
    Header { summary: upper_first(summary), text, validation }
}

/// Returns the lines before and after a line.
fn split(mut lines: Vec<String>, at: &str) -> (Vec<String>, Vec<String>) {
    let found = lines.iter().position(|line| line == at).unwrap_or(lines.len());
    let after = lines.split_off(found).into_iter().skip(1).collect();
    (lines, after)
}

fn upper_first(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

const NOTE: &str =
    "<!-- Written by crates/core/aqm/tests/pages.rs from the registry and the header of the AQM's file. -->";

fn page(about: &About) -> String {
    let Header { summary, text, validation } = header_of(about.name);
    let mut page = format!("{NOTE}\n# {}\n\n{summary}\n\n{}\n", about.title, facts(about));
    for line in text.iter().skip_while(|line| line.is_empty()) {
        push(&mut page, &linked(line));
    }
    page += "## Parameters\n\n";
    page += &parameters(&about.parameters);
    page += "\n## Validation\n\n";
    for line in validation.iter().skip_while(|line| line.is_empty()) {
        push(&mut page, &linked(line));
    }
    page + EVERY_ONE
}

/// One line more.
fn push(page: &mut String, line: &str) {
    page.push_str(line);
    page.push('\n');
}

const EVERY_ONE: &str = "
Like every AQM it passes the [conformance suite](../../crates/core/aqm/src/conformance/mod.rs): packets and bytes add up, limits
hold, the same seed gives the same run, a reset queue is new, advancing changes no verdict, a long silence is cheap, bad
parameters are refused by name. It allocates nothing per packet ([no_allocation.rs](../../crates/core/aqm/tests/no_allocation.rs)).
";

fn facts(about: &About) -> String {
    let About { name, source, kind, tsq, ecn, .. } = about;
    let queue = match *name {
        "tsq" => "aqm = \"pi\", limit = \"200 packets\", tsq = true".to_owned(),
        name => format!("aqm = \"{name}\", limit = \"200 packets\""),
    };
    let file = file_of(name);
    format!(
        "| | |\n| --- | --- |\n| in a scenario | `queue = {{ {queue} }}` |\n| is | {kind} |\n| source | {source} |\n\
         | under TSQ | {tsq} |\n| ECN | {ecn} |\n| code | [crates/core/aqm/{file}](../../crates/core/aqm/{file}) |\n"
    )
}

/// The table that `cutline aqm show` prints.
fn parameters(parameters: &[&Parameter]) -> String {
    if parameters.is_empty() {
        return "It has no parameters.\n".to_owned();
    }
    let mut table =
        "| parameter | meaning | allowed | default | default from |\n| --- | --- | --- | --- | --- |\n"
            .to_owned();
    for parameter in parameters {
        let Parameter { name, doc, source, .. } = parameter;
        let (allowed, default) = (parameter.allowed(), parameter.default_text());
        push(&mut table, &format!("| `{name}` | {doc} | {allowed} | {default} | {source} |"));
    }
    table
}

/// A line with its links to code turned into links to pages.
fn linked(line: &str) -> String {
    let mut rest = line.replace("docs/validation/ns2.md", "[docs/validation/ns2.md](../validation/ns2.md)");
    let mut out = String::new();
    while let Some((before, after)) = rest.split_once("[`") {
        let (path, after) = after.split_once("`]").expect("a link to code ends in its own line");
        let item = path.trim_start_matches("crate::");
        let name = item.replace('_', "-");
        let is_page = registry::describe().iter().any(|aqm| aqm.name == name);
        out += before;
        let link = if is_page { format!("[{name}]({name}.md)") } else { format!("`{item}`") };
        out += &link;
        rest = after.to_owned();
    }
    out + &rest
}

fn index(all: &[About]) -> String {
    let mut page = format!("{NOTE}\n# AQMs\n\n{INTRODUCTION}\n");
    page += "| AQM | is | TSQ on it | ECN | source |\n| --- | --- | --- | --- | --- |\n";
    for about in all {
        let About { name, title, source, tsq, ecn, .. } = about;
        let summary = header_of(name).summary;
        push(&mut page, &format!("| [{title}]({name}.md) `{name}` | {summary} | {tsq} | {ecn} | {source} |"));
    }
    page
}

const INTRODUCTION: &str = "This folder has a page for every queue that a scenario may name: its parameters, its formulas, its departures from its
source, and its checks. `cutline aqm list` and `cutline aqm show NAME` print the same on the command line.
[A recipe](../internals/recipes/aqm.md) describes the addition of an AQM.
";

/// Every page by its path.
fn pages() -> BTreeMap<PathBuf, String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/aqm");
    let all = all();
    let each = all.iter().map(|about| (folder.join(format!("{}.md", about.name)), page(about)));
    let mut pages: BTreeMap<_, _> = each.collect();
    pages.insert(folder.join("README.md"), index(&all));
    pages
}

#[test]
fn the_pages_agree_with_registry_and_headers() {
    for (path, page) in pages() {
        check_page(&path, &page);
    }
}

#[test]
fn no_page_is_left_of_an_aqm_that_is_gone() {
    let pages = pages();
    let folder = pages.keys().next().and_then(|path| path.parent()).expect("there are pages");
    for file in fs::read_dir(folder).expect("docs/aqm is there") {
        let path = file.expect("it can be listed").path();
        assert!(pages.contains_key(&path), "{} belongs to no AQM", path.display());
    }
}

/// All the sources of this crate's tests, in one.
fn sources() -> String {
    let mut folders = vec![in_crate("src"), in_crate("tests")];
    let mut sources = String::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("the folder can be read") {
            let path = entry.expect("it can be listed").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                sources += &fs::read_to_string(&path).expect("it is text");
            }
        }
    }
    sources
}

#[test]
fn the_tests_that_headers_name_are_there() {
    let sources = sources();
    let mut named = 0;
    for about in all() {
        let Header { text, validation, .. } = header_of(about.name);
        // In the text a test's name stands in brackets of its own; the validation names little else.
        let text = text.join("\n");
        let in_text = text.split("(`").skip(1).filter_map(|rest| rest.split_once("`)")).map(|(name, _)| name);
        let validation = validation.join("\n");
        let in_validation = validation.split('`').skip(1).step_by(2);
        let is_name = |name: &&str| {
            name.contains('_')
                && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        };
        for name in in_text.chain(in_validation).filter(is_name) {
            assert!(sources.contains(&format!("fn {name}()")), "{}: there is no test {name}", about.name);
            named += 1;
        }
    }
    assert!(named >= 80, "most headers name several tests: {named}");
}
