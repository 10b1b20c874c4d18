//! The laboratory from the command line: its measurements, its errors, its clean-up.
//!
//! The tests require root. Without it they print a message and pass: `sudo -E cargo test -p cutline-cli lab::`.

use crate::common::{may_make_namespaces, schema};
use cutline_testbed::{in_time, undisturbed};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const SCENARIO: &str = r#"
name = "small"
duration = "8 s"
warm-up = "2 s"

[dumbbell]
rate = "4 Mbit/s"
delay = "5 ms"
access-rate = "50 Mbit/s"
access-delay = "5 ms"
queue = { aqm = "pi", limit = "100 packets", q-ref = "30 packets", ecn = true, tsq = { bits = 4, l = "40 ms" } }

[[flow]]
name = "bulk"
count = 4
class = "file-transfer"
file-size = "500 KB"
ecn = true
transport = { protocol = "tcp", mss = "1000 B" }
app = { kind = "bulk" }

[[flow]]
name = "files"
transport = { protocol = "tcp", mss = "1000 B" }
app = { kind = "files", size = "20 KB", think-time = "50 ms" }

[[flow]]
name = "voice"
class = "audio"
hint = 2
transport = { protocol = "udp" }
app = { kind = "cbr", rate = "64 kbit/s", size = "160 B" }

[[flow]]
name = "media"
class = "audio"
hint = 6
transport = { protocol = "tfrc", packet-size = "500 B" }
app = { kind = "cbr", rate = "128 kbit/s", size = "500 B" }
"#;

/// Returns a folder with a scenario; `None` if namespaces cannot be created.
fn laboratory(scenario: &str) -> Option<(TempDir, PathBuf)> {
    if !may_make_namespaces() {
        return None;
    }
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("scenario.toml");
    std::fs::write(&file, scenario).unwrap();
    Some((folder, file))
}

fn cutline(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cutline"));
    command.args(arguments).current_dir(folder).stdin(Stdio::null());
    command
}

fn succeeds(folder: &Path, arguments: &[&str]) -> Output {
    let output = cutline(folder, arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

/// Returns the namespaces that a process has created.
fn namespaces_of(process: u32) -> Vec<String> {
    let entries = std::fs::read_dir("/run/netns").into_iter().flatten();
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    names.filter(|name| name.starts_with(&format!("cutline-{process}-"))).collect()
}

fn group<'v>(run: &'v Value, name: &str) -> Vec<&'v Value> {
    run["flows"].as_array().unwrap().iter().filter(|flow| flow["group"] == name).collect()
}

#[test]
fn a_scenario_is_measured_as_in_the_simulation() {
    undisturbed(|| {
        let Some((folder, file)) = laboratory(SCENARIO) else { return };
        let file = file.to_str().unwrap();
        let started = Instant::now();
        let output = succeeds(folder.path(), &["lab", "run", file, "--json", "--quiet"]);
        assert!(started.elapsed() >= Duration::from_secs(8), "the run takes its duration");
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        schema::check("run", &document);
        let run = &document["runs"][0];

        let voice = group(run, "voice")[0];
        // The drops of the queue are drawn at random; the arrivals are not.
        let arrived = 1.0 - voice["loss_ratio"].as_f64().unwrap();
        in_time!((voice["goodput_bps"].as_f64().unwrap() / arrived - 64_000.0).abs() < 3_000.0, "{voice}");
        assert_eq!(voice["hint"], 2);
        let queuing = |flow: &Value| flow["queuing_mean_ms"].as_f64().unwrap();
        let bulk = group(run, "bulk");
        assert_eq!(bulk.len(), 4);
        for flow in &bulk {
            in_time!(flow["goodput_bps"].as_f64().unwrap() > 50_000.0, "{flow}");
            in_time!(queuing(flow) > queuing(voice), "a hint of 2 waits less: {flow} {voice}");
        }
        let marks: u64 = bulk.iter().map(|flow| flow["packets_marked"].as_u64().unwrap()).sum();
        in_time!(marks > 0, "what can be marked is marked");
        let files = group(run, "files")[0];
        in_time!(files["transfers"].as_u64().unwrap() > 2, "{files}");
        assert_eq!(files["packets_marked"], 0, "each flow by itself: {files}");
        in_time!(group(run, "media")[0]["goodput_bps"].as_f64().unwrap() > 40_000.0, "{run}");
        let queue = &run["queues"][0];
        assert_eq!(queue["link"], "r1->r2");
        in_time!(queue["utilisation"].as_f64().unwrap() > 0.6, "{queue}");
        let timing = &run["timing"];
        in_time!(timing["frames"].as_u64().unwrap() > 1000, "{timing}");
        assert_eq!(timing["failed_flows"], 0, "{timing}");

        let folder = folder.path();
        assert!(folder.join("results/lab/small/timing.parquet").exists());
        succeeds(folder, &["run", file, "--quiet"]);
        assert!(!folder.join("results/small/timing.parquet").exists(), "a simulation has no timing");
        let compared = succeeds(folder, &["compare", "results/small", "results/lab/small"]);
        let table = String::from_utf8(compared.stdout).unwrap();
        assert!(table.contains("goodput_bps") && table.contains("r1->r2"), "{table}");
    });
}

/// Runs one after the other and at the same time. The scheduling of a run's threads does not affect the next run.
#[test]
fn several_runs_in_one_process_are_independent() {
    let Some((folder, file)) = laboratory(SCENARIO) else { return };
    let arguments = [
        "lab",
        "run",
        file.to_str().unwrap(),
        "--json",
        "--quiet",
        "--no-store",
        "--seeds",
        "4",
        "--jobs",
        "2",
    ];
    let short = ["--set", "duration=1.5 s", "--set", "warm-up=0.5 s"];
    let output = succeeds(folder.path(), &[&arguments[..], &short].concat());
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["runs"].as_array().unwrap().len(), 4);
}

/// Starts a run, and returns when its namespaces exist.
fn start_set_up(folder: &Path, file: &Path) -> Child {
    let mut command = cutline(folder, &["lab", "run", file.to_str().unwrap(), "--quiet"]);
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(90);
    while namespaces_of(child.id()).len() < 3 {
        assert!(Instant::now() < deadline, "the namespaces were not created");
        std::thread::sleep(Duration::from_millis(20));
    }
    child
}

fn start(folder: &Path, file: &Path) -> Child {
    let child = start_set_up(folder, file);
    // The flows begin when the namespaces are set up, and nothing says when.
    std::thread::sleep(Duration::from_millis(500));
    child
}

#[test]
fn an_interrupt_leaves_nothing_behind() {
    let Some((folder, file)) = laboratory(&SCENARIO.replace("\"8 s\"", "\"60 s\"")) else { return };
    let mut child = start(folder.path(), &file);
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let asked = Instant::now();
    assert_eq!(child.wait().unwrap().code(), Some(1), "interrupted");
    assert!(asked.elapsed() < Duration::from_secs(120), "it does not wait for the end of the run");
    assert_eq!(namespaces_of(child.id()), [] as [&str; 0]);
}

#[test]
fn the_next_run_removes_the_namespaces_of_a_killed_one() {
    let Some((folder, file)) = laboratory(SCENARIO) else { return };
    let mut child = start(folder.path(), &file);
    // After it was killed, any run that begins on this machine may remove them.
    assert_eq!(namespaces_of(child.id()).len(), 3, "a run has its namespaces");
    child.kill().unwrap();
    child.wait().unwrap();
    succeeds(folder.path(), &["lab", "clean"]);
    // Another run that begins at the same time may be about to remove one.
    let deadline = Instant::now() + Duration::from_secs(60);
    while !namespaces_of(child.id()).is_empty() {
        assert!(Instant::now() < deadline, "left: {:?}", namespaces_of(child.id()));
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// In another PID namespace, as in a container with the same `/run/netns`, no process has the number of the run's process.
#[test]
fn a_run_that_lives_in_another_pid_namespace_is_not_cleaned_up() {
    let Some((folder, file)) = laboratory(SCENARIO) else { return };
    let child = start(folder.path(), &file);
    let mut elsewhere = Command::new("unshare");
    elsewhere.args(["--pid", "--fork", "--mount-proc", env!("CARGO_BIN_EXE_cutline"), "lab", "clean"]);
    let cleaned = elsewhere.current_dir(folder.path()).stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&cleaned.stderr);
    assert!(cleaned.status.success(), "{said}");
    assert_eq!(namespaces_of(child.id()).len(), 3, "{said}");
    let run = child.wait_with_output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
}

/// A measurement whose network another program has removed is no result, whether it was removed during the measurement or while the
/// namespaces were set up.
#[test]
fn a_run_whose_namespace_was_removed_fails() {
    for start in [start, start_set_up] {
        let Some((folder, file)) = laboratory(SCENARIO) else { return };
        let child = start(folder.path(), &file);
        let name = namespaces_of(child.id()).remove(0);
        assert!(Command::new("ip").args(["netns", "delete", &name]).status().unwrap().success());
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(
            said.contains(&format!("the network namespace {name} was removed while it was in use")),
            "{said}"
        );
    }
}

#[test]
fn runs_with_invalid_timing_are_reported_and_repeated() {
    let Some((folder, file)) = laboratory(SCENARIO) else { return };
    let arguments = ["lab", "run", file.to_str().unwrap(), "--quiet", "--set", "duration=3 s"];
    let output =
        cutline(folder.path(), &arguments).args(["--strict", "--departure-bound", "1 us"]).output().unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(errors.contains("warning: base with seed 1: 1 % of the packets left more than"), "{errors}");
    assert!(errors.contains("runs, use the same command with --resume"), "{errors}");

    let again = Instant::now();
    succeeds(folder.path(), &[&arguments[..], &["--resume"]].concat());
    assert!(again.elapsed() >= Duration::from_secs(3), "runs with invalid timing are repeated");
}

/// A link of 12 Mbit/s whose rate is recorded: a second of it, and a second of outage.
fn link_with_outages(way: &str, flows: &str) -> String {
    format!(
        "name = \"outages\"\nduration = \"7 s\"\nwarm-up = \"1 s\"\n[dumbbell]\nrate = \"12 Mbit/s\"\n\
         delay = \"10 ms\"\naccess-rate = \"100 Mbit/s\"\naccess-delay = \"1 ms\"\n\
         queue = {{ aqm = \"drop-tail\", limit = \"50 packets\" }}\nrate-trace = \"outages.txt\"\n{way}\n{flows}"
    )
}

/// A packet that is on the wire when an outage ends goes on at the new rate, and the link does not lose the time of that packet at the old
/// rate: the bytes that are delivered are those of the record, whatever their size.
#[test]
fn a_link_with_outages_delivers_the_bytes_of_its_record() {
    undisturbed(|| {
        for (way, size) in [("", 1472), ("rate-trace-as = \"deliveries\"", 600)] {
            let flow = format!(
                "[[flow]]\nname = \"data\"\ntransport = {{ protocol = \"udp\" }}\n\
                     app = {{ kind = \"cbr\", rate = \"14 Mbit/s\", size = \"{size} B\" }}\n"
            );
            let Some((folder, file)) = laboratory(&link_with_outages(way, &flow)) else { return };
            let times: Vec<String> = (1..=1000).chain([2000]).map(|time| time.to_string()).collect();
            std::fs::write(folder.path().join("outages.txt"), times.join("\n") + "\n").unwrap();
            let output =
                succeeds(folder.path(), &["lab", "run", file.to_str().unwrap(), "--json", "--quiet"]);
            let document: Value = serde_json::from_slice(&output.stdout).unwrap();
            let run = &document["runs"][0];
            let data = &group(run, "data")[0];
            let rate = data["goodput_bps"].as_f64().unwrap() / f64::from(size) * f64::from(size + 28);
            // Three seconds of 12 Mbit/s and three outages.
            in_time!((5_700_000.0..=6_100_000.0).contains(&rate), "{way}, {size} B: {rate} bit/s; {run}");
            let utilisation = run["queues"][0]["utilisation"].as_f64().unwrap();
            in_time!(utilisation > 0.97, "{way}, {size} B: {utilisation}; {run}");
        }
    });
}

fn is_refused(scenario: &str, command: &[&str], why: &str) {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("scenario.toml");
    std::fs::write(&file, scenario).unwrap();
    let output = cutline(folder.path(), command).arg(&file).output().unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{errors}");
    assert!(errors.contains(why), "{errors}");
}

#[test]
fn features_of_one_side_are_refused_by_the_other() {
    let lab = &["lab", "run"];
    let adaptive = SCENARIO.replace("hint = 6", "hint = \"adaptive\"");
    is_refused(
        &adaptive,
        lab,
        "flow `media`: a hint that adapts is not available in the laboratory; set it to a level",
    );
    let disagree = SCENARIO.replacen("mss = \"1000 B\" }", "mss = \"1000 B\", sack = true }", 1);
    is_refused(&disagree, lab, "sack applies to the whole host in the laboratory");
    let large = SCENARIO.replace(
        "mss = \"1000 B\" }\napp = { kind = \"bulk\"",
        "mss = \"20000 B\" }\napp = { kind = \"bulk\"",
    );
    is_refused(&large, lab, "too large for the laboratory");
}

/// The one-way delay is 15 ms; packets cross the scenario's links, beside its flows or alone.
#[test]
fn a_shell_is_in_the_network() {
    undisturbed(|| {
        let Some((folder, file)) = laboratory(SCENARIO) else { return };
        let file = file.to_str().unwrap();
        let bin = env!("CARGO_BIN_EXE_cutline");
        let script = format!(
            "ip netns exec $CUTLINE_OTHER_NAMESPACE {bin} tg receive --listen $CUTLINE_OTHER:5203 --once >/dev/null & sleep 1
             exec {bin} tg send $CUTLINE_OTHER:5203 --transport udp --rate 64kbit --size 160 --duration 2s --linger 2s --json"
        );
        for alone in [true, false] {
            let mut arguments = vec!["lab", "shell", file];
            arguments.extend(alone.then_some("--alone"));
            arguments.extend(["--", "sh", "-c", &script]);
            let output = succeeds(folder.path(), &arguments);
            let total: Value = serde_json::from_slice::<Value>(&output.stdout).unwrap()["total"].take();
            assert!(total["received_packets"].as_u64().is_some_and(|packets| packets > 60), "{total}");
            // The connection for control has packets, too.
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            let (before, met) =
                said.split_once(" packets of the program arrived").expect("a count of packets");
            let crossed: u64 = before.split_whitespace().next_back().unwrap().parse().unwrap();
            assert!(crossed > 80 && met.contains("were dropped; those that arrived waited"), "{met}");
            let delay = |of: &str| total["delay_ms"][of].as_f64().unwrap();
            in_time!((15.0..25.0).contains(&delay("min")) || !alone, "{total}");
            // Packets without a hint wait behind those of the transfers.
            in_time!(alone == (delay("p50") < 30.0), "{alone}: {total}");
        }
        let mut failing =
            cutline(folder.path(), &["lab", "shell", file, "-q", "--alone", "--", "sh", "-c", "exit 7"]);
        assert_eq!(failing.status().unwrap().code(), Some(7));
        let late = cutline(
            folder.path(),
            &["lab", "shell", file, "-q", "--alone", "--limit", "300ms", "--", "sleep", "60"],
        )
        .output()
        .unwrap();
        assert_eq!(late.status.code(), Some(1));
        assert!(String::from_utf8_lossy(&late.stderr).contains("killed after 300 ms"), "{late:?}");
        let none =
            cutline(folder.path(), &["lab", "shell", file, "-q", "--", "/nowhere/program"]).output().unwrap();
        assert!(
            String::from_utf8_lossy(&none.stderr).contains("/nowhere/program: cannot be started"),
            "{none:?}"
        );
    });
}

/// The program sends beyond the end of the run, and so does its receiver, which it has started in the other namespace.
#[test]
fn a_program_is_in_the_place_of_a_flow() {
    undisturbed(|| {
        let Some((folder, file)) = laboratory(SCENARIO) else { return };
        let (folder, file, bin) = (folder.path(), file.to_str().unwrap(), env!("CARGO_BIN_EXE_cutline"));
        let command = format!(
            "voice=ip netns exec $CUTLINE_OTHER_NAMESPACE {bin} tg receive --listen $CUTLINE_OTHER:5203 & echo $! > receiver; sleep 1
             exec {bin} tg send $CUTLINE_OTHER:5203 --transport udp --rate 64kbit --size 160 --duration 60s"
        );
        let arguments = ["lab", "run", file, "--exec", &command, "--json", "--quiet"];
        let document: Value = serde_json::from_slice(&succeeds(folder, &arguments).stdout).unwrap();
        let voice = group(&document["runs"][0], "voice")[0];
        let arrived = 1.0 - voice["loss_ratio"].as_f64().unwrap();
        let sent = voice["goodput_bps"].as_f64().unwrap() / arrived;
        // Whole packets count: 160 B and 28 B of headers.
        in_time!((sent - 64_000.0 * 188.0 / 160.0).abs() < 4_000.0, "{voice}");
        let bulk = group(&document["runs"][0], "bulk")[0];
        let queuing = |flow: &Value| flow["queuing_mean_ms"].as_f64().unwrap();
        in_time!(queuing(bulk) > queuing(voice), "it has the hint of the flow: {bulk} {voice}");
        let receiver = std::fs::read_to_string(folder.join("receiver")).unwrap();
        // One that has ended and was not waited for yet no longer has arguments.
        let arguments = std::fs::read(Path::new("/proc").join(receiver.trim()).join("cmdline"));
        assert!(arguments.unwrap_or_default().is_empty(), "what it has started is ended, too");
    });
}

#[test]
fn a_program_that_cannot_be_a_flow_is_refused() {
    let Some((folder, file)) = laboratory(SCENARIO) else { return };
    let says = |exec: &str, code: i32| {
        let arguments = ["lab", "run", file.to_str().unwrap(), "--no-store", "--quiet", "--exec", exec];
        let output = cutline(folder.path(), &arguments).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{said}");
        said
    };
    let unknown = says("voices=true", 2);
    assert!(
        unknown.contains("there is no flow `voices`; a program may be in the place of: voice, media"),
        "{unknown}"
    );
    assert!(says("files=true", 2).contains("flow `files`: a program in the place of a TCP flow"));
    assert!(says("voice=", 2).contains("expected FLOW=COMMAND"));
    let failed = says("voice=echo no call >&2; exit 3", 1);
    assert!(
        failed.contains("no call")
            && failed.contains("flow `voice`: its program has failed (exit status: 3)"),
        "{failed}"
    );
}
