//! The command line: exit codes, messages, JSON documents, stored bytes.

use assert_cmd::Command;
use cutline_testbed::{FolderFiles, read_folder};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;
use tempfile::TempDir;

const SMALL: &str = r#"
name = "small"
duration = "4 s"
warm-up = "1 s"
seeds = 2

[dumbbell]
rate = "2 Mbit/s"
delay = "10 ms"
access-rate = "50 Mbit/s"
access-delay = "5 ms"
queue = { aqm = "pi", limit = "60 packets", q-ref = "20 packets", tsq = true }

[[flow]]
name = "bulk"
count = 3
class = "file-transfer"
file-size = "100 KB"
start = { from = "0 s", to = "1 s" }
transport = { protocol = "tcp" }
app = { kind = "bulk" }

[[flow]]
name = "audio"
class = "audio"
hint = 6
start = { from = "0 s", to = "1 s" }
transport = { protocol = "tfrc", packet-size = "160 B" }
app = { kind = "cbr", rate = "64 kbit/s", size = "160 B" }

[sweep]
"flow.audio.hint" = [1, 6]
"#;

/// A temporary folder with the small scenario in it.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("small.toml"), SMALL).unwrap();
        Self(folder)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn cutline(&self, arguments: &[&str]) -> Output {
        let mut command = Command::cargo_bin("cutline").unwrap();
        command.current_dir(self.0.path()).env_remove("CLICOLOR_FORCE").args(arguments).output().unwrap()
    }

    /// Returns the output of a command that must succeed.
    fn prints(&self, arguments: &[&str]) -> String {
        let output = self.cutline(arguments);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", text(&output.stderr));
        text(&output.stdout)
    }

    fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.prints(arguments)).unwrap()
    }

    fn files(&self, folder: &str) -> FolderFiles {
        read_folder(&self.path(folder))
    }

    /// Returns the error messages of a command that must end with this exit code.
    fn complains(&self, arguments: &[&str], code: i32) -> String {
        let output = self.cutline(arguments);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", text(&output.stderr));
        assert_eq!(text(&output.stdout), "", "only results go to stdout");
        text(&output.stderr)
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn every_command_has_help_with_examples() {
    let place = Place::new();
    for command in
        ["run", "compare", "check", "aqm", "transport", "app", "translate", "completions", "manuals"]
    {
        let help = place.prints(&[command, "--help"]);
        assert!(help.contains("Examples:") && help.contains(&format!("cutline {command} ")), "{help}");
        assert!(place.prints(&["--help"]).contains(command));
    }
    let version = place.prints(&["--version"]);
    assert!(version.starts_with("cutline 0.") && version.contains(" (commit "), "{version}");
}

#[test]
fn every_command_has_a_manual_page_and_completions() {
    let place = Place::new();
    place.prints(&["manuals", "man1"]);
    let page = fs::read_to_string(place.path("man1/cutline-run.1")).unwrap();
    assert!(page.contains(".TH cutline-run") && page.contains("Simulate a scenario"), "{page:.300}");
    let pages = fs::read_dir(place.path("man1")).unwrap().count();
    let help = place.prints(&["--help"]);
    let commands =
        help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    // Commands of their own have pages, too.
    assert!(pages > commands.count(), "{pages} pages");
    for shell in ["bash", "zsh", "fish"] {
        let text = place.prints(&["completions", shell]);
        assert!(text.contains("cutline") && text.contains("compare"), "{shell}: {text:.300}");
    }
}

#[test]
fn invalid_arguments_and_scenarios_have_exit_code_2() {
    let place = Place::new();
    assert!(place.complains(&["run", "small.toml", "--sed", "1"], 2).contains("--seed"));
    for number in ["--jobs", "--threads"] {
        assert!(place.complains(&["run", "small.toml", number, "0"], 2).contains(number));
    }
    assert!(place.complains(&["run", "no.toml"], 2).contains("no.toml: cannot be read"));
    fs::write(place.path("bad.toml"), SMALL.replace("2 Mbit/s", "2 Mbits")).unwrap();
    let said = place.complains(&["run", "bad.toml"], 2);
    assert!(said.contains("bad.toml:8:8: key \"dumbbell.rate\"") && said.contains("^^^"), "{said}");
    assert!(!place.path("results").exists(), "nothing was run");
}

#[test]
fn an_unknown_key_on_the_command_line_is_named_with_the_nearest_one() {
    let place = Place::new();
    let said = place.complains(&["check", "small.toml", "--set", "dumbbell.queue.frequncy=100 Hz"], 2);
    assert!(
        said.contains("--set dumbbell.queue.frequncy=100 Hz") && said.contains("\"frequency\""),
        "{said}"
    );
    let said = place.complains(&["run", "small.toml", "--set", "nonsense"], 2);
    assert!(said.contains("KEY=VALUE"), "{said}");
}

#[test]
fn check_lists_runs_flows_and_points() {
    let place = Place::new();
    let said = place.prints(&["check", "small.toml", "--seeds", "5"]);
    assert!(said.contains("runs    10: 2 points x 5 seeds from 1"), "{said}");
    assert!(said.contains("3 x bulk: TCP") && said.contains("flow.audio.hint=6"), "{said}");
}

#[test]
fn a_group_has_the_percentiles_of_all_its_packets() {
    let place = Place::new();
    let run = |kept: &str| {
        let set = format!("flow.bulk.distributions=\"{kept}\"");
        let document =
            place.json(&["run", "small.toml", "--no-store", "--json", "--seeds", "1", "--set", &set]);
        document["runs"][0].clone()
    };
    let (by_flow, by_group) = (run("flow"), run("group"));
    assert_eq!(by_flow["groups"], by_group["groups"], "whatever is stored");
    let groups = by_group["groups"].as_array().unwrap();
    let bulk = groups.iter().find(|group| group["group"] == "bulk").unwrap();
    let flows: Vec<&Value> =
        by_group["flows"].as_array().unwrap().iter().filter(|flow| flow["group"] == "bulk").collect();
    let sum: u64 = flows.iter().map(|flow| flow["packets_received"].as_u64().unwrap()).sum();
    assert_eq!((bulk["flows"].as_u64(), bulk["packets_received"].as_u64()), (Some(3), Some(sum)));
    for percentile in ["queuing_p50_ms", "queuing_p99_ms", "one_way_p50_ms", "one_way_p99_ms"] {
        let [pooled, flow] = [bulk, flows[0]].map(|of| of[percentile].as_f64().unwrap());
        assert!((pooled - flow).abs() <= 1e-5 * flow, "{percentile}: {pooled} and {flow}");
    }
}

#[test]
fn the_json_document_has_every_field() {
    let place = Place::new();
    let document = place.json(&["run", "small.toml", "--no-store", "--json", "--jobs", "1"]);
    assert_eq!(document["name"], "small");
    assert_eq!(document["results_dir"], Value::Null);
    assert_eq!(document["seeds"], serde_json::json!([1, 2]));
    let runs = document["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 4, "two points, two seeds");
    assert_eq!(runs[2]["settings"]["flow.audio.hint"], "6");
    for run in runs {
        assert_eq!(run["flows"].as_array().unwrap().len(), 4);
        for flow in run["flows"].as_array().unwrap() {
            numbers(
                flow,
                &["goodput_bps", "sent_bps", "loss_ratio", "mark_ratio", "packets_marked", "timeouts"],
            );
            numbers(flow, &["queuing_mean_ms", "queuing_p50_ms", "queuing_max_ms", "one_way_p99_ms"]);
            numbers(flow, &["qd", "qt", "q"]);
            assert_eq!(flow["retransmissions"].is_null(), flow["group"] == "audio");
        }
        let queue = &run["queues"][0];
        assert_eq!((&queue["link"], &queue["tsq"]), (&Value::from("r1->r2"), &Value::from(true)));
        numbers(
            queue,
            &["utilisation", "drop_ratio", "mark_ratio", "arrived", "departed", "dropped", "marked"],
        );
        numbers(queue, &["backlog_mean_packets", "backlog_sd_packets", "probability_mean", "probability_sd"]);
        assert!(queue["average_mean_packets"].is_null() && queue["max_p_mean"].is_null(), "PI has neither");
    }
    assert!(!place.path("results").exists(), "--no-store stores nothing");
}

fn numbers(row: &Value, keys: &[&str]) {
    for key in keys {
        assert!(row[*key].is_number(), "{key} in {row}");
    }
}

#[test]
fn resume_repeats_no_run_and_the_number_of_jobs_does_not_change_a_byte() {
    let place = Place::new();
    let table = place.prints(&["run", "small.toml", "--results", "one", "--jobs", "1"]);
    assert!(
        table.contains("flow.audio.hint=6") && table.contains("r1->r2") && table.contains('±'),
        "{table}"
    );
    place.prints(&["run", "small.toml", "--results", "two", "--jobs", "2"]);
    for name in ["flows", "queues", "series", "queue_series", "distributions", "points"] {
        let bytes = |folder| fs::read(place.path(&format!("{folder}/small/{name}.parquet"))).unwrap();
        assert_eq!(bytes("one"), bytes("two"), "{name}");
    }
    // If no run is missing, no file is written.
    let before = place.files("one/small");
    let again = place.prints(&["run", "small.toml", "--results", "one", "--resume"]);
    assert!(place.files("one/small") == before, "the files differ");
    assert_eq!(again, table);
}

#[test]
fn the_number_of_threads_of_a_run_does_not_change_a_byte() {
    let place = Place::new();
    // Links that are long enough for stages, which the threads share.
    let run = |command: &'static str, options: &[&'static str]| {
        let long = ["--set", "dumbbell.rate=15 Mbit/s", "--set", "dumbbell.access-delay=50 ms"];
        place.prints(&[&[command, "small.toml", "--set", "sweep={}"], &long[..], options].concat())
    };
    let check: Value = serde_json::from_str(&run("check", &["--json"])).unwrap();
    let engine = &check["engine"];
    assert!(engine["name"] == "stages" && engine["stages"].as_u64() > Some(2), "{engine}");
    run("run", &["--results", "one", "--threads", "1"]);
    run("run", &["--results", "two", "--threads", "2"]);
    for name in ["flows", "queues", "series", "queue_series", "distributions", "points"] {
        let bytes = |folder| fs::read(place.path(&format!("{folder}/small/{name}.parquet"))).unwrap();
        assert_eq!(bytes("one"), bytes("two"), "{name}");
    }
    let printed = |threads| run("run", &["--no-store", "--json", "--threads", threads]);
    assert_eq!(printed("1"), printed("2"));
}

#[test]
fn stored_results_of_another_scenario_are_kept_and_the_difference_is_named() {
    let place = Place::new();
    place.prints(&["run", "small.toml"]);
    let before = place.files("results/small");
    assert_eq!(before.len(), 7, "six tables and a summary, and no folders of single runs");
    let faster = ["run", "small.toml", "--set", "dumbbell.rate=4 Mbit/s"];
    for resume in [&[][..], &["--resume"]] {
        let said = place.complains(&[&faster[..], resume].concat(), 1);
        for part in
            ["results/small has other results", "dumbbell.rate=4 Mbit/s", "the settings", "--force", "name="]
        {
            assert!(said.contains(part), "no {part:?} in {said}");
        }
    }
    let said = place.complains(&["run", "small.toml", "--seeds", "1"], 1);
    assert!(
        said.contains("seeds 1 to 2") && said.contains("asked:") && said.contains("in the seeds"),
        "{said}"
    );
    assert!(place.files("results/small") == before, "the files differ");

    place.prints(&[&faster[..], &["--set", "name=fast"]].concat());
    place.prints(&[&faster[..], &["--force"]].concat());
    let flows = |name: &str| fs::read(place.path(&format!("results/{name}/flows.parquet"))).unwrap();
    assert_eq!(flows("small"), flows("fast"));
    place.complains(&["run", "small.toml", "--resume", "--force"], 2);
}

#[test]
fn further_seeds_are_added_to_the_stored_ones() {
    let place = Place::new();
    place.prints(&["run", "small.toml"]);
    let said = place.complains(&["run", "small.toml", "--seeds", "3"], 1);
    assert!(said.contains("--resume keeps the stored runs"), "{said}");
    let three = place.prints(&["run", "small.toml", "--seeds", "3", "--resume"]);
    let at_once = place.prints(&["run", "small.toml", "--seeds", "3", "--results", "once"]);
    assert_eq!(three.replace("results/", "once/"), at_once);
    let flows = |folder: &str| fs::read(place.path(&format!("{folder}/small/flows.parquet"))).unwrap();
    assert_eq!(flows("results"), flows("once"));
}

#[test]
fn the_same_experiment_can_be_run_again() {
    let place = Place::new();
    let first = place.prints(&["run", "small.toml"]);
    assert_eq!(place.prints(&["run", "small.toml"]), first);
}

#[test]
fn results_are_compared_point_by_point() {
    let place = Place::new();
    place.prints(&["run", "small.toml"]);
    place.prints(&["run", "small.toml", "--set", "name=fast", "--set", "dumbbell.rate=4 Mbit/s"]);
    let compared = place.json(&["compare", "results/fast", "results/small/summary.json", "--json"]);
    let found = compared["measures"].as_array().unwrap().iter().find(|row| {
        row["measure"] == "goodput_bps" && row["name"] == "bulk" && row["point"] == "flow.audio.hint=1"
    });
    let found = found.unwrap();
    let ratio = found["a"]["mean"].as_f64().unwrap() / found["b"]["mean"].as_f64().unwrap();
    assert!((1.5..2.7).contains(&ratio), "twice the rate gives {ratio} times the goodput");
    assert_eq!((&found["pairing"], &found["significant"]), (&Value::from("paired"), &Value::from(true)));
    assert!(place.prints(&["compare", "results/fast", "results/small"]).contains("goodput_bps"));
    assert!(place.complains(&["compare", "results/fast", "results/none"], 2).contains("summary.json"));
}

#[test]
fn a_group_without_flows_has_no_rows() {
    let place = Place::new();
    let without = ["--set", "flow.audio.count=0", "--set", "sweep={}", "--seeds", "1"];
    assert!(place.prints(&[&["check", "small.toml"], &without[..]].concat()).contains("0 x audio: TFRC"));
    let run = |more: [&'static str; 2]| [&["run", "small.toml"], &without[..], &more].concat();
    let document = place.prints(&run(["--no-store", "--json"]));
    assert!(!document.contains("NaN"), "{document}");
    let document: Value = serde_json::from_str(&document).unwrap();
    let flows = document["runs"][0]["flows"].as_array().unwrap();
    assert!(flows.len() == 3 && flows.iter().all(|flow| flow["group"] == "bulk"), "{flows:?}");
    let tables = place.prints(&run(["--results", "without"]));
    assert!(tables.contains("bulk") && !tables.contains("audio") && !tables.contains("NaN"), "{tables}");
    place.prints(&["run", "small.toml", "--set", "sweep={}", "--seeds", "1", "--results", "with"]);
    let compared = place.prints(&["compare", "without/small", "with/small"]);
    assert!(compared.contains("bulk") && !compared.contains("audio"), "{compared}");
    assert!(!compared.contains("NaN") && !compared.contains("inf"), "{compared}");
}

#[test]
fn a_sweep_may_empty_a_group() {
    let place = Place::new();
    let sweep = r#"sweep={ "flow.audio.count" = [0, 2] }"#;
    let document = place.json(&["run", "small.toml", "--no-store", "--json", "--seeds", "1", "--set", sweep]);
    let flows = |run: usize| document["runs"][run]["flows"].as_array().unwrap().len();
    assert_eq!((flows(0), flows(1)), (3, 5));
    let none = ["check", "small.toml", "--set", "flow.audio.count=0", "--set", "flow.bulk.count=0"];
    assert!(place.complains(&none, 2).contains("there must be at least one flow"));
}

#[test]
fn check_refuses_what_run_refuses() {
    let place = Place::new();
    // At 2 Mbit/s a millisecond is less than a packet, and the least threshold is five.
    let queue = "dumbbell.queue={ aqm = \"red\", limit = \"50 packets\", max-th = \"1 ms\" }";
    let said = place.complains(&["check", "small.toml", "--set", queue], 2);
    assert!(said.contains("r1->r2") && said.contains("allowed is more than min-th = 5"), "{said}");
    assert_eq!(place.complains(&["run", "small.toml", "--set", queue, "--no-store"], 2), said);
}

#[test]
fn strict_priority_over_pie_keeps_each_class_short() {
    let place = Place::new();
    let run = |queue: &str| {
        let set = format!("dumbbell.queue={queue}");
        let fixed =
            ["--no-store", "--json", "--seeds", "1", "--set", "sweep={}", "--set", "flow.bulk.hint=16"];
        let document = place.json(&[&["run", "small.toml", "--set", &set], &fixed[..]].concat());
        let flows = document["runs"][0]["flows"].as_array().unwrap().clone();
        let delay = |group: &str| {
            let flow = flows.iter().find(|flow| flow["group"] == group).unwrap();
            flow["queuing_mean_ms"].as_f64().unwrap()
        };
        (delay("bulk"), delay("audio"))
    };
    let (bulk, audio) = run("{ aqm = 'strict-priority', limit = '60 packets' }");
    let pie = "{ aqm = 'strict-priority', limit = '60 packets', below = { aqm = 'pie', target = '5 ms' } }";
    let (bulk_pie, audio_pie) = run(pie);
    assert!(audio < 0.3 * bulk && audio_pie < 0.5 * bulk_pie, "{audio} {bulk} {audio_pie} {bulk_pie}");
    assert!(bulk_pie < 0.6 * bulk, "PIE keeps the class short: {bulk_pie} against {bulk}");
    let tail = "{ aqm = 'strict-priority', limit = '60 packets', below = { aqm = 'drop-tail' } }";
    assert_eq!(run(tail), (bulk, audio));
}

#[cfg(feature = "machine")]
#[test]
fn the_laboratory_has_a_check_of_its_own() {
    let place = Place::new();
    assert!(place.prints(&["lab", "check", "small.toml"]).contains("3 x bulk: TCP"));
    let adaptive = ["--set", "sweep={}", "--set", "flow.audio.hint=adaptive"];
    place.prints(&[&["check", "small.toml"], &adaptive[..]].concat());
    let said = place.complains(&[&["lab", "check", "small.toml"], &adaptive[..]].concat(), 2);
    assert!(said.contains("a hint that adapts"), "{said}");
}

#[test]
fn aqms_are_listed_from_the_registry() {
    let place = Place::new();
    assert!(place.prints(&["aqm", "list"]).contains("Hollot"));
    assert!(place.prints(&["aqm", "show", "pi"]).contains("1.822e-5"));
    let tsq = place.json(&["aqm", "show", "tsq", "--json"]);
    assert_eq!(tsq["parameters"][1]["default"], "40 ms");
    assert!(place.complains(&["aqm", "show", "pye"], 2).contains("drop-tail, pi, red, "));
}

#[test]
fn transports_are_listed_with_both_sets_of_defaults() {
    let place = Place::new();
    assert!(place.prints(&["transport", "list"]).contains("RFC 5348"));
    let tcp = place.prints(&["transport", "show", "tcp"]);
    let row = |name: &str| tcp.lines().find(|line| line.starts_with(name)).unwrap_or_default().to_owned();
    let min_rto = row("min-rto");
    assert!(min_rto.contains(" 1 s ") && min_rto.contains(" 200 ms "), "{min_rto}");
    assert!(row("cubic").contains("RFC 9438"), "{tcp}");
    let json = place.json(&["transport", "show", "tcp", "--json"]);
    let parameters = json["parameters"].as_array().unwrap();
    let window = parameters.iter().find(|parameter| parameter["name"] == "max-window").unwrap();
    assert_eq!((&window["default"], &window["other_defaults"]["ns-2"]), (&Value::Null, &Value::from(20)));
    assert_eq!(json["congestion_controls"][2]["scalable"], true);
    assert!(place.complains(&["transport", "show", "sctp"], 2).contains("tcp, tfrc, udp"));
}

#[test]
fn applications_are_listed_with_their_requirements() {
    let place = Place::new();
    assert!(place.prints(&["app", "list"]).contains("ITU-T P.59"));
    let cbr = place.prints(&["app", "show", "cbr"]);
    assert!(cbr.lines().any(|line| line.starts_with("rate ") && line.contains(" required ")), "{cbr}");
    assert!(place.prints(&["app", "show", "bulk"]).contains("It has no parameters."));
    let files = place.json(&["app", "show", "files", "--json"]);
    assert_eq!((&files["waits_for_delivery"], &files["endless"]), (&true.into(), &false.into()));
    let size = &files["parameters"][0];
    assert_eq!((&size["name"], &size["kind"]), (&"size".into(), &"distribution".into()));
    assert_eq!((&size["required"], &size["default"]), (&true.into(), &Value::Null));
    assert!(place.complains(&["app", "show", "cbx"], 2).contains("bulk, cbr, on-off"));
}

#[test]
fn a_class_or_a_specification_is_translated_with_reasons() {
    let place = Place::new();
    let said = place.prints(&["translate", "audio", "--rtt", "300ms"]);
    let line = |name: &str| said.lines().find(|line| line.starts_with(name)).unwrap_or_default().to_owned();
    assert!(line("protocol").contains("udp") && line("max-delay").contains("400 ms"), "{said}");
    assert!(line("hint").contains(" 6 ") && line("pacing").contains("64 kbit/s, by the sender"), "{said}");
    fs::write(place.path("mine.toml"), "[send]\nmin-rate = 100\nsize = '1 KB'\nmax-delay = '90 ms'\n")
        .unwrap();
    let limits = ["--set", "send.loss=2", "--rate", "500kbit", "--service", "diffserv"];
    let said = place.prints(&[&["translate", "mine.toml"], &limits[..]].concat());
    assert!(said.contains("loss") && said.contains("2 %") && said.contains("AF41"), "{said}");
    assert!(
        said.contains("send.min-rate: it is 822.4 kbit/s with headers, and the path carries 500 kbit/s"),
        "{said}"
    );
    for (arguments, expected) in [
        (&["audoi"][..], "did you mean audio?"),
        (
            &["audio", "--set", "codec=opsu"],
            "codec = opsu: allowed is one of g711, g722, g729, opus; did you mean opus?",
        ),
        (&["audio", "--set", "interval=1 h"], "interval = 1 h: allowed is a time from 2.5 ms to 120 ms"),
        (&["audio", "--protocol", "tpc"], "did you mean tcp?"),
        (&["audio", "--mtu", "100"], "--mtu = 100: allowed is a whole number from 576 to 65535 B"),
        (&["mine.toml", "--set", "send.los=2"], "key \"send.los\" is not known here: did you mean \"loss\"?"),
    ] {
        let said = place.complains(&[&["translate"], arguments].concat(), 2);
        assert!(said.contains(expected), "{said}");
    }
}

#[cfg(feature = "charts")]
#[test]
fn a_specification_without_limits_has_no_picture() {
    let place = Place::new();
    fs::write(place.path("open.toml"), "[send]\nsize = '1 KB'\n").unwrap();
    let said = place.complains(&["spec", "show", "open.toml", "--figure", "region.png"], 1);
    assert!(said.contains("open.toml limits no measure of the sent data"), "{said}");
    assert!(!place.path("region.png").exists(), "an empty picture was written");
    fs::write(place.path("one.toml"), "[send]\nmax-delay = '90 ms'\n").unwrap();
    place.prints(&["spec", "show", "one.toml", "--figure", "region.svg"]);
    let bars = fs::read_to_string(place.path("region.svg")).unwrap();
    assert!(bars.contains("90<") && bars.contains("From the left end"), "{bars}");
}

/// A call beside the uploads of another host loses nothing with shares for hosts, which is why `router up`
/// has them (as the guide says).
#[test]
fn a_call_beside_the_uploads_of_another_host_loses_nothing_with_shares_for_hosts() {
    let place = Place::new();
    let file = repository().join("examples/home.toml");
    let lost = |key: &str, host: &str, rate: &str| {
        let set = [
            format!("dumbbell.queue.key={key}"),
            format!("flow.call.host={host}"),
            format!("dumbbell.rate={rate}"),
        ];
        let set = set.iter().flat_map(|set| ["--set", set.as_str()]);
        let command = ["run", file.to_str().unwrap(), "--no-store", "--json", "--seeds", "2"];
        let document = place.json(&command.into_iter().chain(set).collect::<Vec<_>>());
        let runs = document["runs"].as_array().unwrap();
        assert_eq!(runs.len(), 2, "one point, two seeds");
        let calls = runs.iter().flat_map(|run| run["flows"].as_array().unwrap());
        let calls = calls.filter(|flow| flow["flow"].as_str().unwrap().starts_with("call"));
        calls.map(|flow| flow["loss_ratio"].as_f64().unwrap()).fold(0.0, f64::max)
    };
    assert!(lost("flow", "tablet", "2 Mbit/s") > 0.2);
    assert!(lost("source-then-flow", "tablet", "2 Mbit/s") < 0.001);
    assert!(lost("source-then-flow", "desk", "2 Mbit/s") > 0.2, "its own uploads");
    assert!(lost("source-then-flow", "desk", "5 Mbit/s") < 0.001);
}

#[test]
fn the_examples_can_be_run() {
    let place = Place::new();
    for name in ["dumbbell", "two-bottlenecks"] {
        let file = repository().join(format!("examples/{name}.toml"));
        let file = file.to_str().unwrap();
        let quick = ["--set", "duration=3 s", "--set", "warm-up=1 s", "--set", "flow.web.start=0 s"];
        let quick = if name == "dumbbell" { &quick[..4] } else { &quick[..] };
        let document = place.json(&[&["run", file, "--no-store", "--json", "--seeds", "1"], quick].concat());
        let queues = document["runs"][0]["queues"].as_array().unwrap();
        assert!(queues[0]["utilisation"].as_f64().unwrap() > 0.0, "{name} carries traffic");
    }
}
