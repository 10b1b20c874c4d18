//! Every broken scenario in `tests/broken` is refused with exactly the messages in the comment on its top.
//!
//! The messages count the comment's own lines. `CUTLINE_BLESS=1 cargo test -p cutline-scenario` writes the present
//! messages into the files; the diff is the review.

use cutline_scenario::ScenarioFile;
use std::fs;
use std::path::{Path, PathBuf};

/// Prefix of a line of the expected message.
const MARK: &str = "#| ";

fn broken() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/broken");
    let files = fs::read_dir(folder).expect("the folder of broken scenarios is there");
    let mut paths: Vec<PathBuf> = files.map(|file| file.expect("the folder can be read").path()).collect();
    paths.sort();
    paths
}

fn split(text: &str) -> (String, String) {
    let (head, body): (Vec<&str>, Vec<&str>) = text.lines().partition(|line| line.starts_with(MARK));
    let says: Vec<&str> = head.iter().map(|line| &line[MARK.len()..]).collect();
    (says.join("\n"), body.join("\n") + "\n")
}

fn complaint(text: &str, name: &str) -> String {
    match ScenarioFile::parse(text, name).and_then(|file| file.expand()) {
        Ok(_) => panic!("{name} is not refused"),
        Err(errors) => errors.to_string(),
    }
}

/// The file with the messages on top that it gives with that many lines on top.
fn bless(path: &Path, body: &str, name: &str) {
    let lines = complaint(body, name).lines().count();
    let says = complaint(&format!("{}{body}", "#\n".repeat(lines)), name);
    let head: Vec<String> = says.lines().map(|line| format!("{MARK}{line}")).collect();
    fs::write(path, format!("{}\n{body}", head.join("\n"))).expect("the broken scenario can be written");
}

#[test]
fn every_broken_scenario_is_refused_with_its_message() {
    let paths = broken();
    assert!(paths.len() >= 80, "only {} broken scenarios are left", paths.len());
    let mut wrong = Vec::new();
    for path in paths {
        let name = path.file_name().and_then(|name| name.to_str()).expect("the name is plain").to_owned();
        let text = fs::read_to_string(&path).expect("a broken scenario can be read");
        let (expected, body) = split(&text);
        let said = complaint(&text, &name);
        if std::env::var_os("CUTLINE_BLESS").is_some() {
            bless(&path, &body, &name);
        } else if said != expected {
            wrong.push(format!("{name}\nexpected:\n{expected}\nsaid:\n{said}\n"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
