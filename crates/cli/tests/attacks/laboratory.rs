//! Attacks on the laboratory: the leftovers of a killed one are removed by the next, and no process stays.

use super::common::may_make_namespaces;
use super::plan::{Assault, Attack, Victim};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};
use tempfile::TempDir;

pub const ATTACKS: [Attack<Laboratory>; 2] = [
    Attack::new("kill -9", "`lab run` is killed, and the next one starts", (), kill),
    Attack::new("Ctrl-C", "`lab run` is interrupted", (), interrupt),
];

const SCENARIO: &str = r#"
name = "short"
duration = "1.2 s"
warm-up = "0.4 s"

[dumbbell]
rate = "4 Mbit/s"
delay = "5 ms"
access-rate = "50 Mbit/s"
access-delay = "5 ms"
queue = { aqm = "pi", limit = "100 packets", q-ref = "30 packets", tsq = { bits = 4, l = "40 ms" } }

[[flow]]
name = "bulk"
count = 3
transport = { protocol = "tcp", mss = "1000 B" }
app = { kind = "bulk" }

[[flow]]
name = "voice"
class = "audio"
hint = 2
transport = { protocol = "udp" }
app = { kind = "cbr", rate = "64 kbit/s", size = "160 B" }
"#;

/// From the start of the process to its end, about.
const LONG: Duration = Duration::from_millis(2500);

/// A folder with a scenario.
pub struct Laboratory(TempDir);

impl Victim for Laboratory {
    type Promise = ();
}

impl Laboratory {
    /// `None` where this machine does not let us.
    pub fn new() -> Option<Self> {
        if !may_make_namespaces() {
            return None;
        }
        let folder = TempDir::new().unwrap();
        fs::write(folder.path().join("short.toml"), SCENARIO).unwrap();
        Some(Self(folder))
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cutline"));
        command.args(arguments).current_dir(self.0.path()).stdin(Stdio::null());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    fn start(&self) -> Child {
        self.command(&["lab", "run", "short.toml", "--quiet", "--force"]).spawn().unwrap()
    }
}

/// The namespaces that a process has made.
fn namespaces_of(process: u32) -> Vec<String> {
    let entries = fs::read_dir("/run/netns").into_iter().flatten();
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    names.filter(|name| name.starts_with(&format!("cutline-{process}-"))).collect()
}

/// The interfaces of this namespace, where the laboratory makes none.
fn interfaces() -> Vec<String> {
    let table = fs::read_to_string("/proc/net/dev").unwrap();
    let mut names: Vec<_> =
        table.lines().filter_map(|line| Some(line.split_once(':')?.0.trim().to_owned())).collect();
    names.sort();
    names
}

/// The processes that run in the namespaces of a process, or work on them.
fn processes_of(process: u32) -> Vec<PathBuf> {
    let inode = |path: &Path| fs::metadata(path).map(|about| about.ino());
    let inodes: Vec<_> = namespaces_of(process)
        .into_iter()
        .filter_map(|name| inode(&Path::new("/run/netns").join(name)).ok())
        .collect();
    let prefix = format!("cutline-{process}-");
    let is_one = |path: &PathBuf| {
        let arguments = fs::read(path.join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&arguments).contains(&prefix)
            || inode(&path.join("ns/net")).is_ok_and(|inode| inodes.contains(&inode))
    };
    fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path()).filter(is_one).collect()
}

fn kill(laboratory: &mut Laboratory, assault: &mut Assault) {
    let before = interfaces();
    assault.repeat(|assault| {
        let mut process = laboratory.start();
        sleep(assault.moment(LONG));
        process.kill().unwrap();
        process.wait().unwrap();
        // A command of `ip` that had begun ends by itself.
        sleep(Duration::from_millis(100));
        assert_eq!(processes_of(process.id()), [] as [PathBuf; 0]);
        let how =
            assault.one_of(&[&["lab", "clean"][..], &["lab", "run", "short.toml", "--quiet", "--force"]]);
        let status = laboratory.command(how).status().unwrap();
        assert!(status.success(), "{how:?} after a killed one: {status}");
        assert_eq!(namespaces_of(process.id()), [] as [&str; 0], "after {how:?}");
        assert_eq!(interfaces(), before);
    });
}

fn interrupt(laboratory: &mut Laboratory, assault: &mut Assault) {
    let before = interfaces();
    assault.repeat(|assault| {
        let mut process = laboratory.start();
        // The signal is caught from early on.
        sleep(Duration::from_millis(50) + assault.moment(LONG));
        kill_process(Pid::from_child(&process), Signal::INT).unwrap();
        let asked = Instant::now();
        let code = process.wait().unwrap().code();
        assert!(matches!(code, Some(0 | 1)), "it ended with {code:?}");
        assert!(asked.elapsed() < Duration::from_secs(90), "it ended after {:?}", asked.elapsed());
        assert_eq!(namespaces_of(process.id()), [] as [&str; 0]);
        assert_eq!(interfaces(), before);
    });
}
