//! `cutline monitor` and `cutline top`, as people use them: started and stopped, twice, piped, beside a program that is watched.

use cutline_monitor::HostDocument;
use cutline_testbed::KilledChild;
use serde_json::Value;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::path::{Path, PathBuf};
use std::process::{ChildStderr, Command, Output, Stdio};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);

fn cutline(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cutline"));
    command.args(arguments).current_dir(folder).env("CUTLINE_PUBLISH", folder.join("publish.sock"));
    command
}

/// A monitor with sockets in a folder of its own.
struct Monitor {
    process: KilledChild,
    stderr: BufReader<ChildStderr>,
    folder: tempfile::TempDir,
}

/// Arguments for sockets in the present folder.
const SOCKETS: [&str; 4] = ["--publish-socket", "publish.sock", "--socket", "monitor.sock"];

impl Monitor {
    fn start(listen: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let arguments = [&["monitor", "--listen", listen][..], &SOCKETS].concat();
        let process = cutline(folder.path(), &arguments).stdin(Stdio::null()).stderr(Stdio::piped()).spawn();
        let mut process = KilledChild(process.unwrap());
        let stderr = BufReader::new(process.stderr.take().unwrap());
        let mut monitor = Self { process, stderr, folder };
        monitor.line_with("programs publish to");
        monitor
    }

    /// Reads messages up to one with this text.
    fn line_with(&mut self, text: &str) -> String {
        loop {
            let mut line = String::new();
            assert!(self.stderr.read_line(&mut line).unwrap() > 0, "it has ended without `{text}`");
            if line.contains(text) {
                return line;
            }
        }
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("monitor.sock")
    }

    fn top(&self, arguments: &[&str]) -> Output {
        let all = [&["top", "--socket", "monitor.sock"][..], arguments].concat();
        cutline(self.folder.path(), &all).stdin(Stdio::null()).output().unwrap()
    }

    fn document(&self) -> Value {
        let output = self.top(&["--once", "--json"]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    fn wait_for(&self, is_it: impl Fn(&Value) -> bool) -> Value {
        let end = Instant::now() + PATIENCE;
        loop {
            let document = self.document();
            if is_it(&document) {
                return document;
            }
            assert!(Instant::now() < end, "{document}");
        }
    }

    /// Sends a signal, and returns the exit code.
    fn stop(&mut self, signal: rustix::process::Signal) -> Option<i32> {
        let process = rustix::process::Pid::from_child(&self.process);
        rustix::process::kill_process(process, signal).unwrap();
        self.process.wait().unwrap().code()
    }
}

#[test]
fn ctrl_c_and_sigterm_end_it_in_order_and_leave_nothing() {
    for signal in [rustix::process::Signal::INT, rustix::process::Signal::TERM] {
        let mut monitor = Monitor::start("off");
        assert_eq!(monitor.document()["event"], "host");
        assert_eq!(monitor.stop(signal), Some(0), "{signal:?}");
        let left: Vec<_> = std::fs::read_dir(monitor.folder.path()).unwrap().collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

/// Units that start after the monitor can use it.
#[test]
fn the_service_manager_is_notified_when_the_monitor_answers() {
    let folder = tempfile::tempdir().unwrap();
    let manager = UnixDatagram::bind(folder.path().join("notify")).unwrap();
    manager.set_read_timeout(Some(PATIENCE)).unwrap();
    let arguments = [&["monitor", "--listen", "off"][..], &SOCKETS].concat();
    let mut command = cutline(folder.path(), &arguments);
    command.env("NOTIFY_SOCKET", folder.path().join("notify")).stdin(Stdio::null()).stderr(Stdio::null());
    let mut monitor = KilledChild(command.spawn().unwrap());
    let mut buffer = [0; 500];
    let mut hear = || {
        let length = manager.recv(&mut buffer).unwrap();
        String::from_utf8_lossy(&buffer[..length]).into_owned()
    };
    assert_eq!(hear(), "READY=1\nSTATUS=programs publish to publish.sock");
    let top =
        cutline(folder.path(), &["top", "--socket", "monitor.sock", "--once", "--json"]).output().unwrap();
    assert!(top.status.success(), "{}", String::from_utf8_lossy(&top.stderr));
    rustix::process::kill_process(rustix::process::Pid::from_child(&monitor), rustix::process::Signal::TERM)
        .unwrap();
    assert_eq!(hear(), "STOPPING=1");
    assert_eq!(monitor.wait().unwrap().code(), Some(0));
}

#[test]
fn one_after_a_kill_takes_over_and_a_second_one_is_refused() {
    let mut monitor = Monitor::start("off");
    let arguments = [&["monitor", "--listen", "off"][..], &SOCKETS].concat();
    let second = cutline(monitor.folder.path(), &arguments).stdin(Stdio::null()).output().unwrap();
    assert_eq!(second.status.code(), Some(1));
    let why = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(why.contains("publish.sock"), "{why}");
    assert_eq!(monitor.document()["event"], "host", "the first one goes on");
    assert_eq!(monitor.stop(rustix::process::Signal::KILL), None);
    assert!(monitor.socket().exists(), "a killed process removes nothing");
    let again =
        cutline(monitor.folder.path(), &arguments).stdin(Stdio::null()).stderr(Stdio::piped()).spawn();
    monitor.process = KilledChild(again.unwrap());
    monitor.stderr = BufReader::new(monitor.process.stderr.take().unwrap());
    monitor.line_with("programs publish to");
    assert_eq!(monitor.document()["event"], "host");
}

#[test]
fn an_address_for_other_hosts_needs_a_private_token() {
    let folder = tempfile::tempdir().unwrap();
    let run = |more: &[&str]| {
        let arguments = [&["monitor", "--listen", "0.0.0.0:0"][..], &SOCKETS, more].concat();
        let output = cutline(folder.path(), &arguments).stdin(Stdio::null()).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, why) = run(&[]);
    assert!(code == Some(2) && why.contains("--token-file"), "{code:?}: {why}");
    let token = folder.path().join("token");
    std::fs::write(&token, "a-token-of-this-test").unwrap();
    let (code, why) = run(&["--token-file", "token"]);
    assert!(code == Some(2) && why.contains("chmod 600"), "{code:?}: {why}");
    let (code, why) = run(&["--listen", "nowhere"]);
    assert_eq!(code, Some(2), "{why}");
    let left = std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(left, 1, "only the token is there: what is refused opens nothing");
}

#[test]
fn a_program_under_exec_is_shown_while_it_runs() {
    let monitor = Monitor::start("off");
    let arguments = ["exec", "--dscp", "hint-6", "--", "sleep", "600"];
    let mut exec = cutline(monitor.folder.path(), &arguments)
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let is_shown = |document: &Value| document["programs"].as_array().is_some_and(|all| all.len() == 1);
    let mut said = exec.stderr.take().unwrap();
    let document = loop {
        if let Some(status) = exec.try_wait().unwrap() {
            let mut why = String::new();
            said.read_to_string(&mut why).unwrap();
            // Without the library and without root there is no way to the program's sockets.
            assert!(why.contains("libcutline_preload.so"), "{status}: {why}");
            return;
        }
        let document = monitor.document();
        if is_shown(&document) {
            break document;
        }
    };
    let program = &document["programs"][0];
    assert_eq!(
        (program["program"].as_str(), program["hint"].as_u64()),
        (Some("sleep"), Some(6)),
        "{program}"
    );
    let table = monitor.top(&["--once"]);
    assert!(String::from_utf8_lossy(&table.stdout).contains("sleep"), "{table:?}");
    let process = rustix::process::Pid::from_child(&exec);
    rustix::process::kill_process(process, rustix::process::Signal::TERM).unwrap();
    exec.wait().unwrap();
    monitor.wait_for(|document| !is_shown(document));
}

#[test]
fn top_names_its_requirements() {
    let mut monitor = Monitor::start("off");
    // Not a terminal.
    let output = monitor.top(&[]);
    let why = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(2) && why.contains("--once"), "{why}");
    let output = monitor.top(&["--json"]);
    assert_eq!(output.status.code(), Some(2));
    // Empty tables name the missing part.
    let text = String::from_utf8_lossy(&monitor.top(&["--once"]).stdout).into_owned();
    assert!(text.contains("cutline router up") && text.contains("cutline exec"), "{text}");
    // A reader that closes early, as head does.
    let arguments = ["top", "--socket", "monitor.sock", "--once"];
    let mut piped = cutline(monitor.folder.path(), &arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    drop(piped.stdout.take());
    assert!(piped.wait().unwrap().success());
    monitor.stop(rustix::process::Signal::TERM);
    let output = monitor.top(&["--once"]);
    let why = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(1) && why.contains("sudo cutline monitor"), "{why}");
}

/// A monitor that answers once, and then stands still, as one that is stopped does. The keys are handled all the same.
#[test]
fn top_ends_at_once_beside_a_monitor_that_does_not_answer() {
    let script = "
import fcntl, os, pty, struct, sys, termios, time
process, terminal = pty.fork()
if process == 0:
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack('HHHH', 24, 120, 0, 0))
    os.environ['TERM'] = 'xterm'
    os.execv(sys.argv[1], sys.argv[1:])
seen = b''
while b'quit' not in seen:
    seen += os.read(terminal, 65536)
# By then it waits for the second document, for ten seconds; then it would say that there is no answer.
time.sleep(2)
os.write(terminal, b'q')
rest = b''
try:
    while part := os.read(terminal, 65536):
        rest += part
except OSError:
    pass
print(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), b'answer' in rest)";
    let folder = tempfile::tempdir().unwrap();
    let listener = UnixListener::bind(folder.path().join("monitor.sock")).unwrap();
    let monitor = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut requests = BufReader::new(stream.try_clone().unwrap());
        requests.read_line(&mut String::new()).unwrap();
        let document = serde_json::to_string(&HostDocument::default()).unwrap();
        writeln!(stream, "{document}").unwrap();
        // Until top has ended.
        let _ended = requests.read_to_end(&mut Vec::new());
    });
    let output = Command::new("python3")
        .args(["-c", script, env!("CARGO_BIN_EXE_cutline"), "top", "--socket", "monitor.sock"])
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let why = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "0 False", "{why}");
    monitor.join().unwrap();
}
