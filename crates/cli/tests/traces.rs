//! `cutline run --pcap` and `--flent` from the command line.

use assert_cmd::Command;
use pcap_file::pcapng::{Block, PcapNgReader};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Output;

const SMALL: &str = r#"
name = "small"
duration = "3 s"
warm-up = "0 s"
seeds = 2

[dumbbell]
rate = "2 Mbit/s"
delay = "10 ms"
access-rate = "50 Mbit/s"
access-delay = "5 ms"
queue = { aqm = "pi", limit = "20 packets", q-ref = "10 packets", tsq = true }

[[flow]]
name = "bulk"
count = 3
transport = { protocol = "tcp" }
app = { kind = "bulk" }

[sweep]
"flow.bulk.hint" = [1, 16]
"#;

fn cutline(folder: &Path, arguments: &[&str]) -> Output {
    fs::write(folder.join("small.toml"), SMALL).unwrap();
    let mut command = Command::cargo_bin("cutline").unwrap();
    command.current_dir(folder).args(["run", "small.toml", "--no-store"]).args(arguments).output().unwrap()
}

fn complaint(arguments: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let output = cutline(folder.path(), arguments);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no file was created");
    String::from_utf8(output.stderr).unwrap()
}

/// The arguments that the message proposes make the command succeed.
#[test]
fn several_runs_are_refused_with_arguments_for_a_single_one() {
    let said = complaint(&["--pcap", "p.pcapng"]);
    assert!(
        said.contains("--pcap is for a single run, but there are 4: 2 points of a sweep x 2 seeds"),
        "{said}"
    );
    let (_, remedy) = said.trim_end().split_once("for example: ").unwrap();
    let arguments: Vec<&str> = ["--pcap", "p.pcapng"].into_iter().chain(remedy.split(' ')).collect();
    let folder = tempfile::tempdir().unwrap();
    let output = cutline(folder.path(), &arguments);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(fs::metadata(folder.path().join("p.pcapng")).unwrap().len() > 100_000);
    let said = complaint(&["--flent", "f.flent.gz", "--set", "sweep={}"]);
    assert!(said.contains("there are 2: 2 seeds; choose one, for example: --seeds 1"), "{said}");
}

#[test]
fn one_run_gives_both_files_and_the_same_results() {
    let one = ["--set", "sweep={}", "--seeds", "1", "--json"];
    let folder = tempfile::tempdir().unwrap();
    let traced =
        [&one[..], &["--pcap", "p.pcapng", "--pcap-link", "r1->r2", "--flent", "f.flent.gz"]].concat();
    let (plain, traced) = (cutline(folder.path(), &one), cutline(folder.path(), &traced));
    assert_eq!(plain.stdout, traced.stdout);
    let document: Value = serde_json::from_slice(&traced.stdout).unwrap();
    let file = fs::read(folder.path().join("p.pcapng")).unwrap();
    let mut reader = PcapNgReader::new(file.as_slice()).unwrap();
    let mut packets = [0u64; 6];
    while let Some(block) = reader.next_block() {
        if let Block::EnhancedPacket(packet) = block.unwrap() {
            packets[packet.interface_id as usize] += 1;
        }
    }
    let queue = &document["runs"][0]["queues"][0];
    assert_eq!((Some(packets[0]), Some(packets[1])), (queue["arrived"].as_u64(), queue["departed"].as_u64()));
    assert_eq!(fs::read(folder.path().join("f.flent.gz")).unwrap()[..2], [0x1f, 0x8b], "gzip");
}

#[test]
fn a_file_that_exists_is_replaced_only_with_force() {
    let one = ["--set", "sweep={}", "--seeds", "1"];
    for (option, name) in [("--pcap", "p.pcapng"), ("--flent", "f.flent.gz")] {
        let folder = tempfile::tempdir().unwrap();
        let arguments = [&one[..], &[option, name]].concat();
        fs::write(folder.path().join(name), "of yesterday").unwrap();
        let output = cutline(folder.path(), &arguments);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains(&format!("{name} exists and is kept; --force replaces it")), "{said}");
        assert_eq!(fs::read(folder.path().join(name)).unwrap(), b"of yesterday");
        let output = cutline(folder.path(), &[&arguments[..], &["--force"]].concat());
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        assert_ne!(fs::read(folder.path().join(name)).unwrap(), b"of yesterday");
    }
}

#[test]
fn invalid_names_are_refused() {
    let one = ["--set", "sweep={}", "--seeds", "1"];
    let said = complaint(&[&one[..], &["--pcap", "p.pcapng", "--pcap-link", "r1->r7"]].concat());
    assert!(said.contains("--pcap-link: there is no link `r1->r7`; there are: r1->r2"), "{said}");
    let said = complaint(&[&one[..], &["--flent", "f.json"]].concat());
    assert!(said.contains("the name must end in .gz, such as f.flent.gz"), "{said}");
    assert!(complaint(&["--pcap-link", "r1->r2"]).contains("--pcap <FILE>"));
}
