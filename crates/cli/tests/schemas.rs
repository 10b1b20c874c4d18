//! Every JSON document of a command is valid against its schema. The schemas and their page in the repository match the
//! code. Documents that require root are validated in the tests of their commands.
//!
//! `make bless` rewrites docs/schemas and docs/guide/json.md. Review the diff.

use crate::common::schema;

use cutline_testbed::pages::check_page;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const SCENARIO: &str = r#"
name = "small"
title = "A small one"
duration = "3 s"
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
count = 2
class = "file-transfer"
file-size = "100 KB"
transport = { protocol = "tcp" }
app = { kind = "bulk" }

[[flow]]
name = "audio"
class = "audio"
hint = 6
transport = { protocol = "udp" }
app = { kind = "cbr", rate = "64 kbit/s", size = "160 B" }

[sweep]
"flow.audio.hint" = [1, 6]
"#;

const ROUTER: &str = r#"
in = "a"
out = "b"
socket = "/run/r.sock"
spin = "80 us"
hints = { EF = 4 }
remark = { CS1 = "LE" }
queue.q = { aqm = "pi", limit = "64 KB", q-ref = "100 packets", tsq = true }
forward = { rate = "15 Mbit/s", queue = "q" }
reverse = { rate = "2 Mbit/s", queue = { aqm = "codel", limit = "9 packets" } }
"#;

fn cutline(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_cutline")).current_dir(folder).args(arguments).output().unwrap()
}

/// Returns the JSON document that a command prints.
fn json(folder: &Path, arguments: &[&str]) -> Value {
    let output = cutline(folder, arguments);
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{arguments:?}: {error}: {}", String::from_utf8_lossy(&output.stderr)))
}

fn folder(file: &str, text: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(file), text).unwrap();
    folder
}

#[test]
fn scenarios_and_their_results() {
    let folder = folder("small.toml", SCENARIO);
    let of = |arguments: &[&str]| json(folder.path(), arguments);
    schema::check("check", &of(&["check", "small.toml", "--json"]));
    let run = of(&["run", "small.toml", "--json", "--quiet"]);
    assert_eq!(run["runs"].as_array().unwrap().len(), 4);
    schema::check("run", &run);
    let summary = fs::read(folder.path().join("results/small/summary.json")).unwrap();
    schema::check("summary", &serde_json::from_slice(&summary).unwrap());
    let other = ["run", "small.toml", "--set", "name=other", "--set", "dumbbell.queue.tsq=false", "--quiet"];
    assert!(cutline(folder.path(), &other).status.success());
    let compared = of(&["compare", "results/small", "results/other", "--json"]);
    assert!(compared["measures"].as_array().unwrap().len() > 10);
    schema::check("compare", &compared);
    let same = of(&["compare", "results/small", "results/small", "--json"]);
    schema::check("compare", &same);
    if cfg!(feature = "charts") {
        schema::check("plot", &of(&["plot", "results/small", "results/other", "--json"]));
    }
}

#[test]
fn errors_of_a_scenario() {
    let folder = folder("small.toml", &SCENARIO.replace("delay = \"10 ms\"", "dealy = 7"));
    let output = cutline(folder.path(), &["check", "small.toml", "--json", "--set", "dumbbell.rate=0 bit/s"]);
    assert_eq!(output.status.code(), Some(2));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    schema::check("check-errors", &document);
    let errors = document["errors"].as_array().unwrap();
    let places: Vec<_> =
        errors.iter().map(|error| (&error["key"], &error["line"], &error["source"])).collect();
    let set = Value::from("--set dumbbell.rate=0 bit/s");
    assert!(places.contains(&(&"dumbbell.dealy".into(), &10.into(), &"small.toml".into())), "{places:?}");
    assert!(places.contains(&(&"dumbbell.rate".into(), &Value::Null, &set)), "{places:?}");
}

/// Runs that fail, and a single seed, whose interval is null.
#[test]
fn failed_runs_and_single_seeds() {
    let folder = folder("small.toml", SCENARIO);
    let one = json(folder.path(), &["run", "small.toml", "--seeds", "1", "--no-store", "--json", "--quiet"]);
    assert_eq!(one["results_dir"], Value::Null);
    schema::check("run", &one);
    let failed = cutline_results::FailedRun {
        run: cutline_results::RunSummary { run: "1".into(), point: "base".into(), seed: 1 },
        reason: "no memory".into(),
    };
    assert!(cutline(folder.path(), &["run", "small.toml", "--quiet"]).status.success());
    let text = fs::read(folder.path().join("results/small/summary.json")).unwrap();
    let mut summary: cutline_results::Summary = serde_json::from_slice(&text).unwrap();
    summary.failed.push(failed);
    summary.overrides.push(("seed".into(), "2".into()));
    schema::check("summary", &serde_json::to_value(summary).unwrap());
}

#[test]
fn catalogues_and_schemas() {
    let folder = tempfile::tempdir().unwrap();
    for kind in ["aqm", "transport", "app"] {
        let all = json(folder.path(), &[kind, "list", "--json"]);
        schema::check(&format!("{kind}-list"), &all);
        for item in all.as_array().unwrap() {
            let name = item["name"].as_str().unwrap();
            schema::check(kind, &json(folder.path(), &[kind, "show", name, "--json"]));
        }
    }
    schema::check("schema", &json(folder.path(), &["schema", "--json"]));
}

#[test]
fn specifications_and_agreements() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("strict.toml"), "[send]\nloss = 0\n[receive]\nloss = 0\n").unwrap();
    schema::check("spec-list", &json(folder.path(), &["spec", "list", "--json"]));
    schema::check("spec-parameters", &json(folder.path(), &["spec", "parameters", "--json"]));
    schema::check("spec", &json(folder.path(), &["spec", "show", "strict.toml", "--json"]));
    schema::check("spec-agreement", &json(folder.path(), &["spec", "agree", "audio", "video", "--json"]));
    let conflict = cutline(folder.path(), &["spec", "agree", "strict.toml", "video", "--json"]);
    assert_eq!(conflict.status.code(), Some(1));
    let conflict: Value = serde_json::from_slice(&conflict.stdout).unwrap();
    schema::check("spec-agreement", &conflict);
    assert_eq!(conflict["send"]["conflicts"][0]["parameter"], "loss");
}

#[test]
fn translations() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("strict.toml"), "class = 'video'\n[send]\nloss = 0\n").unwrap();
    let strict = [
        "translate",
        "strict.toml",
        "--protocol",
        "udp",
        "--service",
        "reservation",
        "--rate",
        "1mbit",
        "--json",
    ];
    let document = json(folder.path(), &strict);
    schema::check("translation", &document);
    assert_eq!(document["protocol"], "r-udp");
    assert_eq!(document["unmet"][0]["parameter"], "loss");
    assert!(
        document["network"]["reserve_send"]["rate_bps"].is_u64() && document["network"]["hint"].is_null()
    );
    for class in ["audio", "video", "file", "web", "game", "telemetry"] {
        for protocol in ["tcp", "udp", "r-tcp", "r-udp", "direct"] {
            let document = json(folder.path(), &["translate", class, "--protocol", protocol, "--json"]);
            schema::check("translation", &document);
        }
    }
}

#[test]
fn claims() {
    let folder = tempfile::tempdir().unwrap();
    // The figure with the fewest runs.
    let claims = json(folder.path(), &["reproduce", "tsq", "--figure", "16", "--quick", "--json", "--quiet"]);
    assert!(!claims.as_array().unwrap().is_empty());
    schema::check("claims", &claims);
    schema::check("claims", &json(folder.path(), &["report", "tsq", "--quick", "--json"]));
    let written = fs::read(folder.path().join("results/tsq-quick/claims.json")).unwrap();
    schema::check("claims", &serde_json::from_slice(&written).unwrap());
}

#[test]
fn the_doctor() {
    let folder = tempfile::tempdir().unwrap();
    schema::check("doctor", &json(folder.path(), &["doctor", "lo", "--json"]));
    let watched = ["doctor", "bottleneck", "--out", "lo", "--duration", "1s", "--json"];
    schema::check("doctor-bottleneck", &json(folder.path(), &watched));
}

#[test]
fn a_routers_file() {
    let folder = folder("r.toml", ROUTER);
    let document = json(folder.path(), &["router", "--config", "r.toml", "--check", "--json"]);
    schema::check("router-config", &document);
    assert_eq!(document["forward"]["queue"]["tsq"]["l"], "40 ms");
}

/// An agent needs root, so another one answers here.
#[test]
fn reservations() {
    use cutline_flow::TrafficSpec;
    use cutline_provision::protocol::Reply;
    use cutline_provision::status::{InterfaceStatus, SenderStatus, SessionStatus, Status};
    use cutline_units::{Bytes, Rate};
    use std::io::Write as _;
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("c.sock");
    let listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let bucket = TrafficSpec {
        rate: Rate::from_bps(100_000),
        bucket: Bytes::new(3000),
        peak: Rate::from_bps(1_000_000),
        min_policed: Bytes::new(64),
        max_packet: Bytes::new(200),
    };
    let interface = InterfaceStatus {
        name: "eth0".to_owned(),
        index: Some(2),
        address: Some([10, 0, 0, 1].into()),
        control: "router".to_owned(),
        problem: Some("the router is away".to_owned()),
        rate_bps: 1_000_000,
        reservable_bps: Some(500_000),
        reserved_bps: Some(0),
        reservations: Some(0),
        reserved_packets: 0,
        reserved_bytes: 0,
        excess_packets: 0,
        dropped_packets: 0,
        is_authenticated: true,
    };
    let sender = SenderStatus {
        source: "10.0.0.2:5000".parse().unwrap(),
        bucket,
        from_interface: Some("eth0".to_owned()),
        from: Some([10, 0, 0, 2].into()),
        to_interfaces: Vec::new(),
    };
    let session = SessionStatus {
        number: 1,
        protocol: 17,
        destination: "10.0.0.1:5000".parse().unwrap(),
        senders: vec![sender],
        reservations: Vec::new(),
    };
    let status = Status { interfaces: vec![interface], sessions: vec![session], ..Status::default() };
    let status = serde_json::to_value(&status).unwrap();
    let agent = std::thread::spawn(move || {
        for _ in 0..2 {
            let (stream, _) = listener.accept().unwrap();
            let mut lines = BufReader::new(&stream).lines();
            for reply in [Reply::Welcome { version: 1 }, Reply::Status { status: status.clone() }] {
                lines.next().unwrap().unwrap();
                (&stream).write_all(reply.line().as_bytes()).unwrap();
            }
        }
    });
    let socket = socket.to_str().unwrap();
    let document = json(folder.path(), &["reservations", "--socket", socket, "--json"]);
    schema::check("reservations", &document);
    let output = Command::new(env!("CARGO_BIN_EXE_cutline"))
        .args(["reservations", "--socket", socket])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("eth0") && text.contains("10.0.0.2:5000") && text.contains("500 kbit/s"), "{text}");
    assert!(text.contains("eth0: the router is away\n"), "{text}");
    agent.join().unwrap();
}

#[test]
fn the_resource_manager() {
    use cutline_allocation::ManagerConnection;
    use cutline_allocation::protocol::{AllocationReply, AllocationRequest, FlowNeed};
    use cutline_manager::feedback::{HostId, PathId};
    use cutline_manager::resources::{Capacities, CarrierKind, CpuShare, SchedulingClass};
    use cutline_manager_service::{ManagedInterface, ManagedPath, ManagerService, ManagerSpec};
    use cutline_units::Rate;
    let folder = tempfile::tempdir().unwrap();
    let path = |name| folder.path().join(name);
    let combined = Some(Rate::from_mbps(100));
    let spec = ManagerSpec {
        socket: path("m.sock"),
        state: path("m.state"),
        capacities: Capacities { combined, cpu: Some(CpuShare::from_percent(150)), ..Capacities::default() },
        interfaces: [("lo", false), ("nosuch0", true)]
            .map(|(name, has_classes)| ManagedInterface {
                name: name.to_owned(),
                rate: Rate::from_mbps(80),
                has_classes,
            })
            .to_vec(),
        cpu_per_gbit: [CpuShare::from_percent(20); 2],
        host: HostId(3),
        paths: vec![ManagedPath {
            path: PathId(5),
            destinations: vec!["127.0.0.0/8".parse().unwrap()],
            peers: Vec::new(),
        }],
        ..ManagerSpec::default()
    };
    let _service = ManagerService::start(spec, &[], |_| {}).unwrap();
    let mut client = ManagerConnection::connect(&path("m.sock"), None).unwrap();
    let need = FlowNeed {
        class: SchedulingClass::RealTime,
        carrier: CarrierKind::Datagrams,
        source: "127.0.0.1:4000".parse().unwrap(),
        destination: "127.0.0.1:5000".parse().unwrap(),
        desired_bps: Some(8_000_000),
        minimum_bps: 1_000_000,
        priority: 5,
        weight: 1,
        delay_ms: Some((0.0, 100.0)),
        loss_percent: None,
    };
    client.send(&AllocationRequest::Admit { id: 1, need }).unwrap();
    let admitted = client.reply(cutline_units::Duration::from_secs(60)).unwrap();
    assert!(matches!(admitted, Some(AllocationReply::Admitted { id: 1, .. })), "{admitted:?}");
    let socket = path("m.sock");
    let socket = socket.to_str().unwrap();
    let document = json(folder.path(), &["manager", "--socket", socket, "--json"]);
    schema::check("manager", &document);
    assert_eq!(document["flows"][0]["granted_bps"], 8_000_000);
    assert_eq!(document["flows"][0]["pid"], std::process::id());
    let run = |socket: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cutline"));
        command.args(["manager", "--socket", socket]).output().unwrap()
    };
    let text = String::from_utf8_lossy(&run(socket).stdout).into_owned();
    for part in [
        "127.0.0.1:5000",
        "real-time",
        "8 Mbit/s",
        "150.0 %",
        "this host",
        "admitted: 1",
        "nosuch0: the kernel",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let away = run("/nosuch/manager.sock");
    assert_eq!(away.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&away.stderr).contains("resource manager at /nosuch/manager.sock"));
}

#[test]
fn the_traffic_generator() {
    let folder = tempfile::tempdir().unwrap();
    let mut receiver = Command::new(env!("CARGO_BIN_EXE_cutline"))
        .args(["tg", "receive", "--listen", "127.0.0.1:0", "--duration", "60s", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut errors = BufReader::new(receiver.stderr.take().unwrap());
    let mut line = String::new();
    errors.read_line(&mut line).unwrap();
    let address = line.trim().strip_prefix("listening at ").unwrap_or_else(|| panic!("{line}")).to_owned();
    let send = |options: &[&str]| {
        let always = ["tg", "send", &address, "--duration", "500ms", "--linger", "100ms", "--json"];
        json(folder.path(), &[&always, options].concat())
    };
    let tcp =
        send(&["--flows", "2", "--app", "files", "--size", "4KB", "--think", "50ms", "--interval", "200ms"]);
    let udp = send(&["--transport", "udp", "--rate", "128kbit", "--size", "160"]);
    let tfrc = send(&["--transport", "tfrc", "--rate", "1Mbit", "--size", "500"]);
    let both = send(&["--bidirectional", "--transport", "udp", "--rate", "128kbit", "--size", "160"]);
    let rrul = [
        "tg",
        "rrul",
        &address,
        "--idle",
        "200ms",
        "--duration",
        "1200ms",
        "--classes",
        "default,EF",
        "--json",
    ];
    let rrul = json(folder.path(), &rrul);
    // A line for each of the five sessions.
    let printed = BufReader::new(receiver.stdout.take().unwrap()).lines().take(5);
    let printed: Vec<String> = printed.map(Result::unwrap).collect();
    receiver.kill().unwrap();
    receiver.wait().unwrap();
    for document in [&tcp, &udp, &tfrc, &both] {
        schema::check("tg-send", document);
    }
    schema::check("tg-rrul", &rrul);
    assert!(tcp["flows"][0]["sent"]["tcp"].is_object() && tcp["total"]["intervals"].is_array(), "{tcp}");
    assert!(tcp["groups"][0]["loss_ratio"].is_null() && udp["groups"][0]["loss_ratio"].is_number(), "{udp}");
    for line in &printed {
        let document: &Value = &serde_json::from_str(line).unwrap();
        schema::check("tg-receive", document);
    }
}

/// Returns name, commands and contents of all documents.
fn documents() -> Vec<Value> {
    let listed = json(Path::new("."), &["schema", "--json"]);
    let Value::Array(documents) = listed else { panic!("{listed} is a list") };
    documents
}

fn name(document: &Value) -> &str {
    document["name"].as_str().unwrap()
}

#[test]
fn every_property_is_described() {
    for document in documents() {
        assert!(!document["what"].as_str().unwrap().is_empty(), "{document}");
        let schema = schema::schema(name(&document));
        assert!(jsonschema::meta::is_valid(&schema), "{schema}");
        for (object, properties) in tables(&schema) {
            for (property, of) in properties {
                let described = of["description"].as_str().unwrap_or_default();
                assert!(!described.is_empty(), "{}: {object}.{property} has no description", name(&document));
                let is_code =
                    described.contains("[`") || described.contains("::") || described.contains("`None`");
                assert!(!is_code, "{object}.{property} is described for programmers: {described}");
            }
        }
    }
}

#[test]
fn an_unknown_document_is_refused_with_a_list_of_all() {
    let output = cutline(Path::new("."), &["schema", "runs"]);
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(message.contains("unknown document \"runs\"; expected one of: run, summary, "), "{message}");
}

#[test]
fn the_repository_has_these_schemas_and_their_page() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    check_page(&docs.join("guide/json.md"), &page());
    let mut files = BTreeMap::new();
    for document in documents() {
        let printed = cutline(Path::new("."), &["schema", name(&document)]).stdout;
        let path = docs.join("schemas").join(format!("{}.json", name(&document)));
        files.insert(path, String::from_utf8(printed).unwrap());
    }
    if std::env::var_os("CUTLINE_BLESS").is_some() {
        fs::create_dir_all(docs.join("schemas")).unwrap();
        for path in stored(&docs.join("schemas")).iter().filter(|path| !files.contains_key(*path)) {
            fs::remove_file(path).unwrap();
        }
        for (path, text) in &files {
            fs::write(path, text).unwrap();
        }
    }
    for (path, text) in &files {
        let stored = fs::read_to_string(path).unwrap_or_default();
        assert!(stored == *text, "{} does not match the code: run `make bless`", path.display());
    }
    let expected: BTreeSet<PathBuf> = files.into_keys().collect();
    assert_eq!(stored(&docs.join("schemas")), expected);
}

fn stored(folder: &Path) -> BTreeSet<PathBuf> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

const HEAD: &str = "<!-- Written by crates/cli/tests/schemas.rs from the types in the code. -->
# JSON documents

Every JSON document that a command prints or writes has a JSON Schema (draft 2020-12). `cutline schema` lists the documents,
`cutline schema NAME` prints a schema, and the folder [docs/schemas](../schemas) has all schemas as files.

- An object has all the properties that are listed here, except those marked as optional, and no others.
- A value that was not measured is null.
- The last word of a number's name is its unit, if it has one. The schemas repeat it as `x-unit`.
- `x-kind` in the schemas is `counter` for a number that only grows while its program runs, and `gauge` for a present value.
";

/// Returns the page docs/guide/json.md.
fn page() -> String {
    let mut page = HEAD.to_owned();
    page += "\n| document | printed or written by | schema |\n| --- | --- | --- |\n";
    for document in documents() {
        let by: Vec<_> =
            document["by"].as_array().unwrap().iter().map(|by| code(by.as_str().unwrap())).collect();
        let name = name(&document);
        let _ = writeln!(
            page,
            "| [{name}](#{name}) | {} | [{name}.json](../schemas/{name}.json) |",
            by.join("; ")
        );
    }
    let (mut shown, mut roots): (BTreeMap<String, Value>, Vec<(String, Value)>) = Default::default();
    for document in documents() {
        let name = name(&document);
        let schema = schema::schema(name);
        let _ = write!(page, "\n## {name}\n\n{}\n", document["what"].as_str().unwrap());
        if schema["type"] == "array" {
            let _ = write!(page, "\nIt is a {}.\n", kind(&schema));
        }
        if let Some(choices) = schema["anyOf"].as_array() {
            page += "\nIt is one of:\n\n";
            for choice in choices {
                let _ = writeln!(
                    page,
                    "- {}: {}",
                    kind(choice),
                    choice["description"].as_str().unwrap_or_default()
                );
            }
        }
        let mut above = Vec::new();
        for (object, properties) in tables(&schema) {
            if object == *name {
                table(&mut page, properties, &required(&schema));
                continue;
            }
            let of = &schema["$defs"][&object];
            if let Some((document, _)) = roots.iter().find(|(_, root)| *root == of["properties"]) {
                above.push(format!("{object} ([{document}](#{document}))"));
                continue;
            }
            match shown.insert(object.clone(), of.clone()) {
                Some(other) if other == *of => above.push(object),
                other => {
                    assert!(other.is_none(), "two different objects have the name {object}");
                    let about = of["description"].as_str().unwrap_or_default().replace('\n', " ");
                    let _ = write!(page, "\n### {object}\n\n{about}\n");
                    table(&mut page, properties, &required(of));
                }
            }
        }
        for (name, choices) in choices(&schema) {
            if shown.insert(name.clone(), choices.clone()).is_none() {
                let _ = write!(page, "\n### {name}\n\n");
                for choice in choices.as_array().unwrap() {
                    let meaning = choice["description"].as_str().unwrap_or_default();
                    let _ = writeln!(page, "- `{}`: {meaning}", choice["const"].as_str().unwrap_or_default());
                }
            }
        }
        roots.push((name.to_owned(), schema["properties"].clone()));
        if !above.is_empty() {
            let _ = write!(page, "\nDescribed above: {}.\n", above.join(", "));
        }
    }
    page
}

/// Returns a command as code, followed by its remark in parentheses.
fn code(by: &str) -> String {
    match by.split_once(" (") {
        Some((by, words)) if by.starts_with("cutline") => format!("`{by}` ({words}"),
        _ if by.starts_with("cutline") => format!("`{by}`"),
        _ => by.to_owned(),
    }
}

type Properties = Vec<(String, Value)>;

/// Returns the objects of a schema with their properties, the document first.
fn tables(schema: &Value) -> Vec<(String, Properties)> {
    let title = schema["title"].as_str().unwrap().to_owned();
    let defined = schema["$defs"].as_object().into_iter().flatten();
    let all = [(title, schema)].into_iter().chain(defined.map(|(name, schema)| (name.clone(), schema)));
    let of = |(name, schema): (String, &Value)| {
        let properties = schema["properties"].as_object()?;
        let required = required(schema);
        // `required` has the order of the type's fields, which the map does not keep.
        let optional = properties.keys().filter(|name| !required.contains(name));
        let names: Vec<_> = required.iter().chain(optional).collect();
        Some((name, names.into_iter().map(|name| (name.clone(), properties[name].clone())).collect()))
    };
    all.filter_map(of).collect()
}

/// Returns the allowed words of a value, by the name of its type.
fn choices(schema: &Value) -> Vec<(String, Value)> {
    let defined = schema["$defs"].as_object().into_iter().flatten();
    let words = |(name, of): (&String, &Value)| {
        let choices = of["oneOf"].as_array().filter(|choices| choices[0]["const"].is_string())?;
        Some((name.clone(), Value::Array(choices.clone())))
    };
    defined.filter_map(words).collect()
}

/// Returns the properties that are in every object of this type.
fn required(object: &Value) -> Vec<String> {
    object["required"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|name| name.as_str().unwrap().to_owned())
        .collect()
}

fn table(page: &mut String, properties: Properties, required: &[String]) {
    *page += "\n| property | type | unit | meaning |\n| --- | --- | --- | --- |\n";
    for (name, of) in properties {
        let (kind, unit) = (kind(&of), of["x-unit"].as_str().unwrap_or_default());
        let kind = if required.contains(&name) { kind } else { format!("{kind}, optional") };
        let meaning = of["description"].as_str().unwrap().replace('\n', " ");
        let _ = writeln!(page, "| `{name}` | {kind} | {unit} | {meaning} |");
    }
}

/// Returns the type of a value in words.
fn kind(schema: &Value) -> String {
    if let Some(reference) = schema["$ref"].as_str() {
        return reference.trim_start_matches("#/$defs/").replace("%20", " ");
    }
    if let Some(choices) = schema["anyOf"].as_array() {
        return choices.iter().map(kind).collect::<Vec<_>>().join(" or ");
    }
    match &schema["type"] {
        Value::Array(kinds) => {
            let kinds: Vec<_> = kinds.iter().map(|of| of.as_str().unwrap()).collect();
            if kinds[0] == "array" { format!("{} or null", list(schema)) } else { kinds.join(" or ") }
        }
        Value::String(of) if of == "array" => list(schema),
        Value::String(of) if schema["enum"].is_array() => format!("{of}, one of {}", schema["enum"]),
        Value::String(of) if of == "object" && schema["additionalProperties"].is_object() => {
            format!("object of {} by name", kind(&schema["additionalProperties"]))
        }
        Value::String(of) if schema["const"].is_string() => format!("{of} {}", schema["const"]),
        of => of.as_str().unwrap_or("any").to_owned(),
    }
}

fn list(schema: &Value) -> String {
    match schema["prefixItems"].as_array() {
        Some(items) => format!("list: {}", items.iter().map(kind).collect::<Vec<_>>().join(", ")),
        None => format!("list of {}", kind(&schema["items"])),
    }
}
