//! Output files: no command writes one through a symbolic link, in whatever folder it is.
#![cfg(all(feature = "charts", feature = "machine"))]

use crate::common::place::Place;
use std::fs;
use std::os::unix::fs::symlink;

/// Each command with an output file, which is `OUT` in its arguments.
const COMMANDS: [&[&str]; 11] = [
    &["exec", "-q", "--hint", "3", "--json", "OUT.json", "--", "true"],
    &["plot", "results/small", "--output", "OUT.svg"],
    &["plot", "results/small", "--kind", "cdf", "--output", "OUT.png"],
    &["spec", "show", "audio", "--figure", "OUT.svg"],
    &["run", "small.toml", "--no-store", "--seeds", "1", "--set", "sweep={}", "--pcap", "OUT.pcapng"],
    &["run", "small.toml", "--no-store", "--seeds", "1", "--set", "sweep={}", "--flent", "OUT.flent.gz"],
    &["tg", "send", "127.0.0.1", "--duration", "1s", "--flent", "OUT.flent.gz"],
    &["tg", "rrul", "127.0.0.1", "--duration", "2s", "--plot", "OUT.svg"],
    &["gateway", "near", "--tcp", "0=127.0.0.1:1", "--duration", "100ms", "--record", "OUT.jsonl"],
    &["baseline", "--loopback", "--duration", "100ms", "--plot", "OUT.svg"],
    &["baseline", "--loopback", "--duration", "100ms", "--output", "OUT.json"],
];

#[test]
fn no_command_writes_through_a_symbolic_link() {
    let place = Place::new();
    place.says(&["run", "small.toml", "--seeds", "1"], 0);
    let (victim, absent) = (place.path("victim"), place.path("absent"));
    for command in COMMANDS {
        for (target, force) in [(&victim, false), (&victim, true), (&absent, false), (&absent, true)] {
            fs::write(&victim, "precious").unwrap();
            let out = command.iter().find(|part| part.starts_with("OUT")).unwrap();
            symlink(target, place.path(out)).unwrap();
            let mut arguments: Vec<&str> = command.to_vec();
            if force {
                let at = arguments.iter().position(|part| *part == "--").unwrap_or(arguments.len());
                arguments.insert(at, "--force");
            }
            let output = place.command(&arguments).output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(!output.status.success() && said.contains("is a symbolic link"), "{arguments:?}: {said}");
            assert_eq!(fs::read_to_string(&victim).unwrap(), "precious", "{arguments:?}");
            assert!(!absent.exists(), "{arguments:?}");
            fs::remove_file(place.path(out)).unwrap();
        }
    }
}

/// Root may store results in a folder of another user.
#[test]
fn stored_results_follow_no_symbolic_link() {
    let place = Place::new();
    let victim = place.path("victim");
    for name in [
        ".lock",
        "flows.parquet.tmp",
        "flows.parquet.new",
        "flows.parquet",
        "summary.json.tmp",
        "summary.json",
    ] {
        fs::write(&victim, "precious").unwrap();
        let folder = place.path("results/small");
        fs::create_dir_all(&folder).unwrap();
        symlink(&victim, folder.join(name)).unwrap();
        let output = place.command(&["run", "small.toml", "--seeds", "1", "--force"]).output().unwrap();
        assert_eq!(fs::read_to_string(&victim).unwrap(), "precious", "{name}: {output:?}");
        if name == ".lock" {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(said.contains(".lock") && said.contains("symbolic link"), "{said}");
        }
        fs::remove_dir_all(place.path("results")).unwrap();
    }
}
