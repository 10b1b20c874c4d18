//! `cutline baseline` from the command line, over the loopback, and the use of its table by `cutline translate`.

use crate::common::{cutline, schema};
use cutline_testbed::KilledChild;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::{Duration, Instant};

/// A few short measurements of UDP.
const SHORT: [&str; 11] = [
    "baseline",
    "--protocols",
    "udp",
    "--duration",
    "100ms",
    "--least-blocks",
    "1",
    "--rates",
    "10Mbit",
    "--blocks",
    "1024",
];

fn baseline(folder: &Path, more: &[&str]) -> Output {
    cutline(&[&SHORT, more].concat()).current_dir(folder).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn table(folder: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(folder.join("baseline.json")).unwrap()).unwrap()
}

/// A program that is killed when it is dropped.
struct Running(KilledChild);

impl Running {
    fn end(mut self) -> (Option<i32>, String) {
        let mut said = String::new();
        self.0.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        (self.0.wait().unwrap().code(), said)
    }
}

#[test]
fn a_table_is_measured_once_and_shown_again() {
    let folder = tempfile::tempdir().unwrap();
    let first = baseline(folder.path(), &["--loopback", "--json", "--plot", "picture.svg"]);
    assert_eq!(first.status.code(), Some(0), "{}", text(&first.stderr));
    let document: Value = serde_json::from_slice(&first.stdout).unwrap();
    schema::check("baseline", &document);
    assert_eq!((&document, &document["complete"]), (&table(folder.path()), &Value::from(true)));
    let picture = std::fs::read_to_string(folder.path().join("picture.svg")).unwrap();
    assert!(picture.contains("Loss without a limit") && picture.contains("UDP, larger buffers"));

    // Again: nothing is measured, nothing is replaced.
    let again = baseline(folder.path(), &["--loopback"]);
    let said = text(&again.stdout);
    assert_eq!(again.status.code(), Some(0), "{}", text(&again.stderr));
    // A busy machine may carry no load whole, and bandwidths are requested for carried loads.
    let rows = document["rows"].as_array().unwrap();
    let is_requested = rows.iter().any(|row| !row["requested_percent"].is_null());
    assert_eq!(said.contains("At a load, into a requested bandwidth"), is_requested, "{said}");
    assert!(said.contains("udp carried up to"), "{said}");
    assert_eq!(document, table(folder.path()));
    let shown = baseline(folder.path(), &["--show"]);
    assert_eq!(text(&shown.stdout), said);
    // The picture is kept.
    let kept = baseline(folder.path(), &["--show", "--plot", "picture.svg"]);
    assert_eq!(kept.status.code(), Some(1));
    assert!(text(&kept.stderr).contains("picture.svg exists and is kept"), "{}", text(&kept.stderr));
    // A complete table that is too old: nothing is measured either, and the command says how to measure again.
    let mut old = document;
    (old["began_s"], old["ended_s"]) = (Value::from(1_000_000_000), Value::from(1_000_000_000));
    std::fs::write(folder.path().join("baseline.json"), old.to_string()).unwrap();
    let [shown, document] = [&["--loopback"][..], &["--loopback", "--json"]].map(|more| {
        let again = baseline(folder.path(), more);
        assert_eq!(again.status.code(), Some(0), "{}", text(&again.stderr));
        (text(&again.stdout), text(&again.stderr))
    });
    for said in [shown.0, document.1] {
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains("days ago") && said.contains("--force replaces it by a new table"), "{said}");
    }
}

#[test]
fn ctrl_c_keeps_what_was_measured() {
    let folder = tempfile::tempdir().unwrap();
    let slow = ["--duration", "700ms", "--loopback"];
    let arguments = [&SHORT[..3], &SHORT[5..], &slow].concat();
    let running = Running(KilledChild(cutline(&arguments).current_dir(folder.path()).spawn().unwrap()));
    let file = folder.path().join("baseline.json");
    let deadline = Instant::now() + Duration::from_secs(60);
    while !file.exists() {
        assert!(Instant::now() < deadline, "no measurement is stored");
        std::thread::sleep(Duration::from_millis(20));
    }
    kill_process(Pid::from_child(&running.0), Signal::INT).unwrap();
    let (code, said) = running.end();
    assert_eq!(code, Some(1), "{said}");
    assert!(
        said.contains("Measurements are kept in baseline.json") && said.contains("interrupted after"),
        "{said}"
    );
    let partial = table(folder.path());
    let rows = partial["rows"].as_array().unwrap().clone();
    assert!(!rows.is_empty() && partial["complete"] == false, "{partial}");

    // The same command continues; another plan does not mix with it.
    let other = baseline(folder.path(), &["--loopback"]);
    assert_eq!(other.status.code(), Some(1));
    let why = text(&other.stderr);
    assert!(why.contains("another plan") && why.contains("--force replaces it by a new table"), "{why}");
    assert_eq!(partial, table(folder.path()));
    let finished = cutline(&arguments).current_dir(folder.path()).output().unwrap();
    assert_eq!(finished.status.code(), Some(0), "{}", text(&finished.stderr));
    assert!(text(&finished.stderr).contains("measurements; continuing"), "{}", text(&finished.stderr));
    let whole = table(folder.path());
    assert_eq!(whole["rows"].as_array().unwrap()[..rows.len()], rows);
    assert_eq!(whole["complete"], Value::from(true));
}

#[test]
fn two_runs_do_not_write_one_table() {
    let folder = tempfile::tempdir().unwrap();
    let slow = ["--duration", "700ms", "--loopback"];
    let arguments = [&SHORT[..3], &SHORT[5..], &slow].concat();
    let running = Running(KilledChild(cutline(&arguments).current_dir(folder.path()).spawn().unwrap()));
    let (file, lock) = (folder.path().join("baseline.json"), folder.path().join("baseline.json.lock"));
    let deadline = Instant::now() + Duration::from_secs(60);
    while !file.exists() {
        assert!(Instant::now() < deadline, "no measurement is stored");
        std::thread::sleep(Duration::from_millis(20));
    }
    let second = baseline(folder.path(), &["--loopback", "--force"]);
    let said = text(&second.stderr);
    assert_eq!(second.status.code(), Some(1), "{said}");
    let holder = format!("baseline.json: another process measures this table (process {})", running.0.id());
    assert!(said.contains(&holder) && said.contains("-o FILE"), "{said}");
    assert_eq!(baseline(folder.path(), &["--show"]).status.code(), Some(0));
    // A process that is killed leaves the file of its lock, which is no lock then.
    drop(running);
    assert!(lock.exists());
    let third = baseline(folder.path(), &["--loopback", "--force", "--json"]);
    assert_eq!(third.status.code(), Some(0), "{}", text(&third.stderr));
    assert!(!lock.exists());
}

/// Measures a table, and returns its file.
fn measured(folder: &Path) -> PathBuf {
    let made = baseline(folder, &["--loopback", "--json"]);
    assert_eq!(made.status.code(), Some(0), "{}", text(&made.stderr));
    folder.join("baseline.json")
}

fn translate(file: &Path, more: &[&str]) -> Output {
    let file = file.to_str().unwrap();
    let arguments = ["translate", "video", "--protocol", "r-udp", "--json", "--baseline", file];
    cutline(&[&arguments[..], more].concat()).output().unwrap()
}

#[test]
fn translate_uses_a_table_of_this_host_only() {
    let folder = tempfile::tempdir().unwrap();
    let file = measured(folder.path());
    let with = translate(&file, &[]);
    assert_eq!(with.status.code(), Some(0), "{}", text(&with.stderr));
    let document: Value = serde_json::from_slice(&with.stdout).unwrap();
    let why = |document: &Value, setting: &str| {
        let decisions = document["decisions"].as_array().unwrap();
        let found = decisions.iter().find(|decision| decision["setting"] == setting);
        found.unwrap()["reason"].as_str().unwrap().to_owned()
    };
    assert!(why(&document, "receive-buffer").contains("measured at a load of"), "{document}");
    let within = "within one host (loopback): its rates and delays are not those of a network";
    assert!(text(&with.stderr).contains(within), "{}", text(&with.stderr));

    let good = std::fs::read_to_string(&file).unwrap();
    let refused = |contents: &str| {
        std::fs::write(&file, contents).unwrap();
        let refused = translate(&file, &[]);
        assert_eq!((refused.status.code(), refused.stdout.is_empty()), (Some(1), true));
        text(&refused.stderr)
    };
    let mut other: Value = serde_json::from_str(&good).unwrap();
    other["host"]["kernel"] = Value::from("2.4.18");
    let foreign = other.to_string();
    let why_not = refused(&foreign);
    assert!(why_not.contains("measured on another host: its kernel is 2.4.18"), "{why_not}");
    assert!(why_not.contains("--any-baseline"), "{why_not}");
    assert_eq!(translate(&file, &["--any-baseline"]).status.code(), Some(0));

    let mut network: Value = serde_json::from_str(&good).unwrap();
    network["path"]["receiver"] = Value::from("192.0.2.7:5203");
    std::fs::write(&file, network.to_string()).unwrap();
    let with = translate(&file, &[]);
    assert_eq!((with.status.code(), text(&with.stderr)), (Some(0), String::new()));

    let mut old: Value = serde_json::from_str(&good).unwrap();
    old["ended_s"] = Value::from(1_000_000_000);
    assert!(refused(&old.to_string()).contains("days ago"));
    let damaged = refused(&good[..good.len() - 20]);
    assert!(damaged.contains("this is no table of cutline baseline, or it is damaged"), "{damaged}");
    assert!(refused("\u{1b}[31mno").contains("damaged"));
    std::fs::remove_file(&file).unwrap();
    assert!(text(&translate(&file, &[]).stderr).contains("there is no table"));
}

#[test]
fn an_existing_file_is_kept_without_force() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("baseline.json");
    std::fs::write(&file, "precious").unwrap();
    let refused = baseline(folder.path(), &["--loopback"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        text(&refused.stderr).contains("--force replaces it by a new table"),
        "{}",
        text(&refused.stderr)
    );
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "precious");
    assert_eq!(baseline(folder.path(), &["--loopback", "--force", "--json"]).status.code(), Some(0));
    assert_eq!(table(folder.path())["format"], Value::from(1));
}

#[test]
fn invalid_arguments_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |more: &[&str]| {
        let output = baseline(folder.path(), more);
        (output.status.code(), text(&output.stderr))
    };
    let (code, why) = refused(&[]);
    assert!(code == Some(2) && why.contains("HOST"), "{why}");
    let (code, why) = refused(&["--loopback", "--blocks", "10"]);
    assert!(code == Some(2) && why.contains("64..=65536"), "{why}");
    let (code, why) = refused(&["--loopback", "--duration", "10ms"]);
    assert!(code == Some(2), "{why}");
    let (code, why) = refused(&["127.0.0.1:9", "-o", "t.json"]);
    assert!(code == Some(1) && why.contains("is `cutline tg receive` running there?"), "{why}");
    assert!(!folder.path().join("t.json").exists(), "nothing is left");
}

#[test]
fn a_host_is_measured_without_a_flood() {
    let folder = tempfile::tempdir().unwrap();
    let mut receiver =
        Running(KilledChild(cutline(&["tg", "receive", "--listen", "127.0.0.1:0"]).spawn().unwrap()));
    let mut line = String::new();
    BufReader::new(receiver.0.stderr.take().unwrap()).read_line(&mut line).unwrap();
    let address = line.trim().strip_prefix("listening at ").unwrap_or_else(|| panic!("{line}")).to_owned();
    let running = Running(KilledChild(
        cutline(&[&SHORT[..], &[&address]].concat()).current_dir(folder.path()).spawn().unwrap(),
    ));
    let deadline = Instant::now() + Duration::from_secs(60);
    let rows = || -> usize {
        let text = std::fs::read(folder.path().join("baseline.json")).unwrap_or_default();
        let table: Option<Value> = serde_json::from_slice(&text).ok();
        table.and_then(|table| Some(table["rows"].as_array()?.len())).unwrap_or(0)
    };
    while rows() < 2 {
        assert!(Instant::now() < deadline, "no measurement is stored");
        std::thread::sleep(Duration::from_millis(20));
    }
    kill_process(Pid::from_child(&running.0), Signal::TERM).unwrap();
    assert_eq!(running.end().0, Some(1));
    let table = table(folder.path());
    assert_eq!(table["path"]["receiver"], Value::from(address));
    let loads: Vec<_> =
        table["rows"].as_array().unwrap().iter().map(|row| row["load_bps"].as_u64()).collect();
    assert!(loads.iter().all(|load| load.is_some_and(|load| load <= 100_000_000)), "{loads:?}");
}
