//! Text of other programs, hosts and files never reaches a terminal as it is: each command gets text that would change the
//! terminal, and its whole output is examined.
//!
//! To add a case, add a line to a table and a function.

use assert_cmd::cargo::cargo_bin;
use cutline_results::{FlowRow, Row as _, read_table, seal, write_table};
use cutline_traffic::control::message::{
    ControlReply, ControlRequest, Hello, LONGEST_START, PROTOCOL, Report, read_message, write_message,
};
use cutline_traffic::{HostUse, MeterReport, ReceiverReport};
use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::thread;
use tempfile::TempDir;

/// Sets the title, clears the screen, goes back to the start of the line, hides text, changes the order of letters.
const NASTY: &str = "\u{1b}]0;owned\u{7}\u{1b}[2J\r\u{1b}[8m\u{9b}31m\u{7f}\u{202e}\u{2066}\u{8}";
/// The same as TOML and JSON write it.
const QUOTED: &str = r"\u001b]0;owned\u0007\u001b[2J\r\u001b[8m\u009b31m\u007f\u202e\u2066\u0008";
/// Escape sequences that a coloured output may contain.
const STYLES: [&str; 7] =
    ["\u{1b}[0m", "\u{1b}[1m", "\u{1b}[4m", "\u{1b}[31m", "\u{1b}[32m", "\u{1b}[33m", "\u{1b}[36m"];

const SCENARIO: &str = r#"
name = "small"
duration = "2 s"
seeds = 2

[dumbbell]
rate = "2 Mbit/s"
delay = "10 ms"
access-rate = "50 Mbit/s"
access-delay = "5 ms"
queue = { aqm = "pi", limit = "60 packets", q-ref = "20 packets" }

[[flow]]
name = "audio"
transport = { protocol = "udp" }
app = { kind = "cbr", rate = "64 kbit/s", size = "160 B" }
"#;

/// A folder whose name is nasty, with files.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        fs::create_dir(place.folder()).unwrap();
        place
    }

    fn folder(&self) -> PathBuf {
        self.0.path().join(format!("a{NASTY}\nb"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder().join(name)
    }

    /// Writes a file with a nasty name.
    fn file(&self, text: &str) -> PathBuf {
        let path = self.path(&format!("file{NASTY}\n.toml"));
        fs::write(&path, text).unwrap();
        path
    }
}

/// Runs a command, without colours and with them, and checks its output. Returns the output without colours.
fn harmless(name: &str, arguments: &[&OsStr]) -> Output {
    let run = |is_coloured: bool| {
        let mut command = Command::new(cargo_bin("cutline"));
        command.args(arguments).env_remove("NO_COLOR").env_remove("CLICOLOR_FORCE");
        command.envs(is_coloured.then_some(("CLICOLOR_FORCE", "1")));
        let output = command.output().unwrap();
        check(name, &output.stdout);
        check(name, &output.stderr);
        output
    };
    run(true);
    run(false)
}

/// Checks that an output has no control character but line ends, tabs and styles, and no bidirectional control.
fn check(name: &str, output: &[u8]) {
    let text = std::str::from_utf8(output).unwrap_or_else(|error| panic!("{name}: {error}"));
    let plain = STYLES.iter().fold(text.to_owned(), |text, style| text.replace(style, ""));
    let bad = |letter: &char| {
        letter.is_control() && !matches!(letter, '\n' | '\t')
            || matches!(letter, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    assert!(plain.chars().find(bad).is_none(), "{name}: {text:?}");
}

fn printed(output: &Output) -> String {
    [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes)).concat()
}

/// Checks that a command prints nothing harmful, and that it does print the foreign text: the title that it would set.
fn quoted(name: &str, arguments: &[&OsStr]) {
    let text = printed(&harmless(name, arguments));
    assert!(text.contains("owned"), "{name} quotes the text: {text}");
}

fn os<'a>(arguments: &[&'a str]) -> Vec<&'a OsStr> {
    arguments.iter().map(|text| OsStr::new(*text)).collect()
}

#[test]
fn arguments_are_escaped() {
    let nasty = format!("x{NASTY}");
    let key = format!("{nasty}=1");
    let cases: [&[&str]; 21] = [
        &[&nasty],
        &["run", "--jobs", &nasty, "x"],
        &["aqm", "show", &nasty],
        &["transport", "show", &nasty],
        &["app", "show", &nasty],
        &["schema", &nasty],
        &["translate", &nasty],
        &["translate", "audio", "--set", &key],
        &["translate", "audio", "--set", &nasty],
        &["translate", "audio", "--protocol", &nasty],
        &["check", &nasty],
        &["run", &nasty],
        &["compare", &nasty, &nasty],
        &["report", &nasty],
        &["tg", "send", &nasty],
        &["tg", "send", "127.0.0.1:1", "--dscp", &nasty],
        &["tg", "send", "127.0.0.1:1", "--rate", "8kbit", "--size", &nasty],
        &["tg", "receive", "--allow", &nasty],
        &["router", "stats", &nasty],
        &["doctor", &nasty],
        &["router", "--in", &nasty, "--out", "x", "--rate", "1Mbit", "--set", &key],
    ];
    for arguments in cases {
        quoted(&format!("{arguments:?}"), &os(arguments));
    }
}

#[test]
fn names_and_contents_of_files_are_escaped() {
    let texts = [
        ("not TOML", format!("name = \"{NASTY}\"\n")),
        ("an unknown key", format!("\"key{QUOTED}\" = 1\n{SCENARIO}")),
        ("a key that is not TOML", format!("key{NASTY} = 1\n{SCENARIO}")),
        ("a name", SCENARIO.replace("small", QUOTED)),
        ("a value", SCENARIO.replace("2 Mbit/s", QUOTED)),
        ("a choice", SCENARIO.replace("\"pi\"", &format!("\"{QUOTED}\""))),
        ("a name of a flow", SCENARIO.replace("audio", QUOTED)),
        ("a title", format!("title = \"{QUOTED}\"\n{SCENARIO}")),
        ("a path of a sweep", format!("{SCENARIO}[sweep]\n\"flow.{QUOTED}.hint\" = [1]\n")),
    ];
    for (name, text) in texts {
        let place = Place::new();
        let file = place.file(&text);
        let commands: [&[&str]; 6] = [
            &["check"],
            &["run", "--no-store", "--quiet"],
            &["lab", "run", "--no-store", "--quiet"],
            &["tg", "send", "127.0.0.1:1", "--plan"],
            &["router", "--check", "--config"],
            &["check", "--json", "--set", "duration=1 s"],
        ];
        for command in commands {
            // The laboratory runs in real time: an error in its file is enough.
            if name == "a title" && command[0] == "lab" {
                continue;
            }
            let arguments = [&os(command)[..], &[file.as_os_str()]].concat();
            quoted(&format!("{name}: {command:?}"), &arguments);
        }
    }
    let place = Place::new();
    let specification = place.file("class = \"video\"\n");
    for options in [&["translate"][..], &["translate", "--json"]] {
        quoted("a specification", &[&os(options)[..], &[specification.as_os_str()]].concat());
    }
    let file = place.file(SCENARIO);
    let setting = format!("flow.{NASTY}.hint=1");
    quoted("--set", &[&os(&["check", "--set", &setting])[..], &[file.as_os_str()]].concat());
}

#[test]
fn stored_results_are_escaped() {
    let place = Place::new();
    let (file, results) = (place.file(&format!("title = \"{QUOTED}\"\n{SCENARIO}")), place.path("results"));
    let store = [OsStr::new("--results"), results.as_os_str(), file.as_os_str()];
    quoted("run", &[&os(&["run", "--quiet"])[..], &store].concat());
    quoted("run --json", &[&os(&["run", "--quiet", "--resume", "--json"])[..], &store].concat());
    quoted("run again", &[&os(&["run", "--quiet"])[..], &store].concat());

    let folder = results.join("small");
    let table = folder.join(FlowRow::FILE);
    let mut rows = read_table::<FlowRow>(&table).unwrap();
    for row in &mut rows {
        (row.point, row.group) = (NASTY.into(), format!("{NASTY}\n").into());
    }
    let digest = write_table(&table, &rows).unwrap();
    let both = [OsStr::new("compare"), folder.as_os_str(), folder.as_os_str()];
    let damaged = printed(&harmless("a damaged table", &both));
    assert!(damaged.contains("damaged") && !damaged.contains('\u{1b}'), "{damaged}");

    // The same text in results that are undamaged.
    let summary = folder.join("summary.json");
    let mut document: serde_json::Value = serde_json::from_slice(&fs::read(&summary).unwrap()).unwrap();
    document["files"][FlowRow::FILE] = digest.into();
    fs::write(&summary, seal(&serde_json::to_string_pretty(&document).unwrap())).unwrap();
    quoted("compare", &both);
    quoted("compare --json", &[&both[..], &[OsStr::new("--json")]].concat());
    let compared = printed(&harmless("compare", &both));
    assert!(compared.contains("\\u{1b}]0;owned\\u{7}\\u{1b}[2J\\r\\u{1b}[8m\\u{9b}31m"), "{compared}");
}

/// Replies of a server at the other end, a line at a time.
type Replies = fn(&ControlRequest) -> Vec<u8>;

/// Starts a receiver that greets with `hello` and answers each request. Returns its address.
fn receiver(hello: Vec<u8>, replies: Replies) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            serve(stream, &hello, replies);
        }
    });
    address
}

fn serve(mut stream: TcpStream, hello: &[u8], replies: Replies) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let _gone = stream.write_all(hello);
    while let Ok(Some(request)) = read_message::<ControlRequest>(&mut reader, LONGEST_START) {
        if stream.write_all(&replies(&request)).is_err() {
            break;
        }
    }
}

fn message(reply: &ControlReply) -> Vec<u8> {
    write_message(reply).unwrap()
}

fn hello() -> Vec<u8> {
    let (boot_id, nonce) = (NASTY.to_owned(), NASTY.to_owned());
    message(&ControlReply::Hello(Hello { cutline_tg: PROTOCOL, boot_id, key: false, nonce }))
}

fn refused() -> Vec<u8> {
    message(&ControlReply::Refused(format!("no{NASTY}\nerror: all is well")))
}

/// A receiver that measures nothing, and whose flows have failed.
fn measure(request: &ControlRequest) -> Vec<u8> {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    message(&match request {
        ControlRequest::Open(_) => ControlReply::Opened { boot_id: NASTY.to_owned() },
        ControlRequest::Clock => {
            let now = cutline_sys::now().as_nanos();
            ControlReply::Clock { came_ns: now, left_ns: now }
        }
        ControlRequest::Start(_) => ControlReply::Ready { port, token: 1, frames_to: None },
        ControlRequest::Gather => ControlReply::Gathered,
        ControlRequest::Alive => return Vec::new(),
        ControlRequest::Begin(_) => ControlReply::Begun,
        ControlRequest::Finish => {
            let error = Some(NASTY.to_owned());
            let flows = vec![ReceiverReport { flow: 0, error, ..ReceiverReport::default() }];
            let received = MeterReport { flows, strangers: 1, overflowed: 0 };
            ControlReply::Report(Box::new(Report { received, sent: Vec::new(), host: HostUse::default() }))
        }
    })
}

#[test]
fn messages_of_a_receiver_are_escaped() {
    let nonsense = || format!("{{\"hel{NASTY}lo\":1}}\n").into_bytes();
    let unknown: Replies = |_| format!("{{\"{QUOTED}\":\"{QUOTED}\"}}\n").into_bytes();
    let refuses: Replies = |_| refused();
    // Whether the text is quoted.
    let cases: [(&str, Vec<u8>, Replies, bool); 6] = [
        ("a refusal instead of a greeting", refused(), refuses, true),
        ("a refusal of `open`", hello(), refuses, true),
        ("another server", nonsense(), refuses, false),
        ("an unknown reply", hello(), unknown, true),
        ("a wrong reply", hello(), |_| hello(), true),
        ("a flow that failed", hello(), measure, true),
    ];
    for (name, hello, replies, is_quoted) in cases {
        let address = receiver(hello, replies);
        for json in [false, true] {
            let mut arguments = os(&["tg", "send", &address, "--transport", "udp", "--rate", "80kbit"]);
            arguments.extend(os(&["--duration", "100ms", "--linger", "10ms"]));
            arguments.extend(json.then_some(OsStr::new("--json")));
            if is_quoted { quoted(name, &arguments) } else { drop(harmless(name, &arguments)) }
        }
    }
    let address = receiver(hello(), refuses);
    let text = printed(&harmless("a refusal", &os(&["tg", "send", &address])));
    let expected = "the receiver refused the request: no\\u{1b}]0;owned\\u{7}\\u{1b}[2J\\r";
    assert!(text.contains(expected), "{text}");
    assert!(!text.lines().any(|line| line.starts_with("error: all is well")), "no line of its own: {text}");
}

#[test]
fn messages_of_a_sender_are_escaped() {
    let mut command = Command::new(cargo_bin("cutline"));
    command.args(["tg", "receive", "--listen", "127.0.0.1:0", "--duration", "2s"]);
    let child = command.env("CLICOLOR_FORCE", "1").stderr(std::process::Stdio::piped()).spawn();
    let mut child = child.unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    stderr.read_line(&mut line).unwrap();
    let address = line.trim().strip_prefix("listening at ").unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(b"{\"open\":{\"nonce\":\"0\"}}\n").unwrap();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    for _ in 0..2 {
        reader.read_line(&mut String::new()).unwrap();
    }
    stream.write_all(format!("{{\"{QUOTED}\":1}}\n").as_bytes()).unwrap();
    let mut rest = String::new();
    std::io::Read::read_to_string(&mut stderr, &mut rest).unwrap();
    child.wait().unwrap();
    check("tg receive", rest.as_bytes());
    assert!(rest.contains("owned"), "{rest}");
}

/// Starts a router's socket that answers each request with a line.
fn router(path: &Path, line: String) {
    let listener = UnixListener::bind(path).unwrap();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut reader = BufReader::new(&stream);
            let _gone = reader.read_line(&mut String::new());
            let _gone = (&stream).write_all(format!("{line}\n").as_bytes());
        }
    });
}

#[test]
fn answers_of_a_router_are_escaped() {
    let place = Place::new();
    let statistics = serde_json::to_string(&cutline_router_service::Statistics::default()).unwrap();
    let mut named: serde_json::Value = serde_json::from_str(&statistics).unwrap();
    for direction in ["forward", "reverse"] {
        named[direction]["direction"] = NASTY.into();
    }
    let lines = [
        ("statistics", named.to_string(), true),
        ("not JSON", format!("{NASTY}owned"), false),
        ("another event", format!("{{\"event\":\"{QUOTED}\"}}"), false),
        ("an error", format!("{{\"event\":\"error\",\"error\":\"{QUOTED}\"}}"), false),
        ("raw bytes in a string", format!("{{\"event\":\"config\",\"x\":\"{NASTY}\"}}"), false),
    ];
    for (i, (name, line, is_quoted)) in lines.into_iter().enumerate() {
        // A socket's path is at most 108 bytes long.
        let path = place.0.path().join(format!("{i}\u{1b}[2J"));
        router(&path, line);
        for options in [&[][..], &["--json"], &["--config"]] {
            let arguments = [&os(&["router", "stats"])[..], &[path.as_os_str()], &os(options)].concat();
            let text = printed(&harmless(name, &arguments));
            assert!(!is_quoted || text.contains("owned"), "{name}: {text}");
        }
    }
}

#[test]
fn files_read_by_the_doctor_are_escaped() {
    let place = Place::new();
    for (name, text) in [
        ("nonsense", format!("{NASTY}\n")),
        ("an unknown document", format!("{{\"{QUOTED}\":1}}\n")),
        ("an event", format!("{{\"event\":\"{QUOTED}\"}}\n")),
    ] {
        let file = place.file(&text);
        let arguments =
            [&os(&["doctor", "bottleneck", "--duration", "1s", "--stats"])[..], &[file.as_os_str()]];
        quoted(name, &arguments.concat());
    }
    let interface = format!("a{NASTY}");
    quoted(
        "--out",
        &os(&["doctor", "bottleneck", "--probe", "127.0.0.1", "--duration", "1s", "--out", &interface]),
    );
}
