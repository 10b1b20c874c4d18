//! Attacks on stored results: the tables are those of an undisturbed run, or an error names the file.

use super::common::place::{Place, RUNS, TABLES, said};
use super::plan::{Assault, Attack, Victim};
use cutline_testbed::KilledChild;
use std::fs;
use std::io::Read as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

pub const ATTACKS: [Attack<Stored>; 8] = [
    Attack::new("bit flips", "bits of stored tables, summaries and runs change", (), flip_bits),
    Attack::new("kill -9", "`run` is killed, and so is what resumes it", (), kill),
    Attack::new("two processes", "one folder, and one of them is killed", (), set_two_at_it),
    Attack::new("SIGSTOP", "`run` is stopped, another one comes, and it goes on", (), stop),
    Attack::new("full disk", "the disk has no room left while results are stored", (), fill_the_disk),
    Attack::new("descriptors", "few descriptors may be opened", (), limit_descriptors),
    Attack::new("memory", "little memory may be had", (), limit_memory),
    Attack::new("closed pipe", "nobody reads what is printed", (), close_output),
];

/// Time that a command may take, whatever was done to its files.
const PATIENCE: Duration = Duration::from_secs(60);
const RUN: [&str; 5] = ["run", "small.toml", "--quiet", "--jobs", "2"];
const RESUME: [&str; 6] = ["run", "small.toml", "--quiet", "--jobs", "2", "--resume"];

const COMPARE: [&str; 3] = ["compare", "results/small", "other/small"];

/// Results of the small scenario.
pub struct Stored {
    place: Place,
    /// The tables of an undisturbed run.
    expected: Vec<Vec<u8>>,
    /// Output of comparing the results.
    compared: Vec<u8>,
    /// Duration of a run.
    long: Duration,
}

impl Victim for Stored {
    type Promise = ();
}

impl Stored {
    pub fn new() -> Self {
        let place = Place::new();
        let began = Instant::now();
        place.says(&[&RUN[..], &["--results", "undisturbed"]].concat(), 0);
        let long = began.elapsed();
        place.says(&[&RUN[..], &["--results", "other", "--set", "seeds=3"]].concat(), 0);
        copy(&place.path("undisturbed/small"), &place.path("results/small"));
        let compared = place.command(&COMPARE).output().unwrap().stdout;
        let expected = place.tables("undisturbed/small");
        Self { place, expected, compared, long }
    }

    fn results(&self) -> PathBuf {
        self.place.path("results/small")
    }

    /// Removes all results.
    fn clear(&self) {
        drop(fs::remove_dir_all(self.place.path("results")));
    }

    /// Resumes, and compares with an undisturbed run: tables, summary, and nothing else in the folder.
    fn is_resumed(&self, when: &str) {
        self.place.says(&RESUME, 0);
        self.is_whole(when);
    }

    fn is_whole(&self, when: &str) {
        assert!(self.place.tables("results/small") == self.expected, "{when}: the tables differ");
        let summary = self.place.summary();
        let finished = summary["finished"].as_array().unwrap().len();
        assert!(finished == RUNS && summary["complete"] == true, "{when}: {finished} runs");
        assert_eq!(files(&self.results()).len(), TABLES.len() + 1, "{when}: {:?}", files(&self.results()));
    }

    /// The summary of results that need not be complete counts the runs that are there.
    fn is_counted(&self, when: &str) {
        if self.results().join("summary.json").exists() {
            let summary = self.place.summary();
            let finished = summary["finished"].as_array().unwrap().len();
            assert_eq!(summary["complete"], finished == RUNS, "{when}: {finished} runs");
        }
    }
}

/// Runs a command, which ends in time, by itself, and not by a panic.
pub fn ends(command: &mut Command) -> Output {
    let mut process =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (mut stdout, mut stderr) = (process.stdout.take().unwrap(), process.stderr.take().unwrap());
    let read = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        drop(stdout.read_to_end(&mut bytes));
        bytes
    });
    let until = Instant::now() + PATIENCE;
    let status = loop {
        match process.try_wait().unwrap() {
            Some(status) => break status,
            None if Instant::now() < until => sleep(Duration::from_millis(2)),
            None => {
                process.kill().unwrap();
                panic!("it has not ended after {PATIENCE:?}");
            }
        }
    };
    let mut errors = Vec::new();
    stderr.read_to_end(&mut errors).unwrap();
    let output = Output { status, stdout: read.join().unwrap(), stderr: errors };
    let said = said(&output);
    assert!(!said.contains("panicked") && status.code() != Some(101), "{said}");
    assert_eq!(status.signal(), None, "{said}");
    output
}

/// Kills a process at a random moment up to `longest`.
pub fn killed(mut process: Child, assault: &mut Assault, longest: Duration) {
    sleep(assault.moment(longest));
    process.kill().unwrap();
    process.wait().unwrap();
}

/// All files in a folder and in folders in it.
pub fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut all: Vec<_> =
        entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect();
    all.sort();
    all
}

/// Copies a folder with the folders in it.
pub fn copy(from: &Path, to: &Path) {
    for file in files(from) {
        let copy = to.join(file.strip_prefix(from).unwrap());
        fs::create_dir_all(copy.parent().unwrap()).unwrap();
        fs::copy(file, copy).unwrap();
    }
}

/// Flips a few bits in one of these files. Returns the file.
pub fn flip(files: &[PathBuf], assault: &mut Assault) -> PathBuf {
    let path = &files[assault.below(files.len())];
    let mut bytes = fs::read(path).unwrap();
    for _ in 0..assault.one_of(&[1, 1, 1, 2, 8]) {
        let at = assault.below(bytes.len());
        bytes[at] ^= 1 << assault.below(8);
    }
    fs::write(path, bytes).unwrap();
    path.clone()
}

/// Returns whether an error names a file, or its run, as the one that is damaged.
pub fn is_named(said: &str, path: &Path) -> bool {
    said.contains(path.file_name().unwrap().to_str().unwrap())
}

fn flip_bits(stored: &mut Stored, assault: &mut Assault) {
    let place = &stored.place;
    // Results that were interrupted, with folders of single runs.
    let half = place.path("half");
    loop {
        stored.clear();
        killed(place.start(&RUN), assault, stored.long);
        if stored.results().join("runs").exists() && files(&stored.results().join("runs")).len() > 20 {
            break;
        }
    }
    copy(&stored.results(), &half);
    assault.repeat(|assault| {
        stored.clear();
        let (compare, whole) = (assault.below(2) == 0, assault.below(2) == 0);
        let from = if compare || whole { &place.path("undisturbed/small") } else { &half };
        copy(from, &stored.results());
        let mut candidates = files(&stored.results());
        // What a killed process has not finished, and its lock, are nothing that is read.
        candidates.retain(|path| !path.to_str().unwrap().contains(".unfinished") && !path.ends_with(".lock"));
        candidates.retain(|path| fs::metadata(path).unwrap().len() > 0);
        let damaged = flip(&candidates, assault);
        let shown = damaged.display();
        if compare {
            let output = ends(&mut place.command(&COMPARE));
            match output.status.code() {
                Some(0) => assert!(output.stdout == stored.compared, "{shown}: it says something else"),
                Some(1) => assert!(is_named(&said(&output), &damaged), "{shown}: {}", said(&output)),
                code => panic!("{shown}: {code:?}: {}", said(&output)),
            }
        } else {
            let output = ends(&mut place.command(&RESUME));
            match output.status.code() {
                Some(0) => stored.is_whole(&format!("{shown}")),
                Some(1) => {
                    assert!(is_named(&said(&output), &damaged), "{shown}: {}", said(&output));
                    place.says(&[&RUN[..], &["--force"]].concat(), 0);
                    stored.is_whole(&format!("{shown}, and --force"));
                }
                code => panic!("{shown}: {code:?}: {}", said(&output)),
            }
        }
    });
    fs::remove_dir_all(half).unwrap();
}

fn kill(stored: &mut Stored, assault: &mut Assault) {
    let place = &stored.place;
    assault.repeat(|assault| {
        stored.clear();
        killed(place.start(&RUN), assault, stored.long);
        stored.is_counted("killed");
        while assault.below(3) > 0 {
            killed(place.start(&RESUME), assault, stored.long);
            stored.is_counted("killed again");
        }
        stored.is_resumed("killed");
    });
}

/// The process that was not killed has done all runs, or has been refused.
fn set_two_at_it(stored: &mut Stored, assault: &mut Assault) {
    let place = &stored.place;
    assault.repeat(|assault| {
        stored.clear();
        let mut processes = [place.start(&RUN), place.start(&RUN)];
        // Twice as long as one process needs, for two share the machine.
        sleep(assault.moment(stored.long * 2));
        let victim = assault.below(2);
        processes[victim].kill().unwrap();
        let [a, b] = processes.map(|process| process.wait_with_output().unwrap());
        let survivor = if victim == 0 { b } else { a };
        let said = said(&survivor);
        match survivor.status.code() {
            Some(0) => stored.is_whole("it was not killed"),
            Some(1) => assert!(said.contains("another process is storing results"), "{said}"),
            code => panic!("ended with {code:?}: {said}"),
        }
        stored.is_counted("one was killed");
        stored.is_resumed("one was killed");
    });
}

fn stop(stored: &mut Stored, assault: &mut Assault) {
    use rustix::process::{Pid, Signal, kill_process};
    let place = &stored.place;
    assault.repeat(|assault| {
        stored.clear();
        let mut first = place.start(&RUN);
        sleep(assault.moment(stored.long));
        kill_process(Pid::from_child(&first), Signal::STOP).unwrap();
        let is_over = first.try_wait().unwrap().is_some();
        let second = ends(&mut place.command(&RESUME));
        let said = said(&second);
        match second.status.code() {
            // The first one had not begun, or had ended.
            Some(0) => {}
            Some(1) => assert!(!is_over && said.contains("another process is storing results"), "{said}"),
            code => panic!("ended with {code:?}: {said}"),
        }
        if !is_over {
            kill_process(Pid::from_child(&first), Signal::CONT).unwrap();
        }
        assert!(matches!(first.wait().unwrap().code(), Some(0 | 1)));
        stored.is_resumed("stopped");
    });
}

/// A file system of its own in a mount namespace, which goes with the process that holds it.
struct Disk(KilledChild);

impl Disk {
    /// `None` where this machine does not let us.
    fn new(folder: &Path, kilobytes: usize) -> Option<Self> {
        let script =
            format!("mount -t tmpfs -o size={kilobytes}k cutline \"$0\" && echo mounted && exec sleep 600");
        let mut command = Command::new("unshare");
        command
            .args(["--mount", "sh", "-c", &script])
            .arg(folder)
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut holder = Self(KilledChild(command.spawn().ok()?));
        let mut said = [0; 8];
        holder.0.stdout.take()?.read_exact(&mut said).ok()?;
        Some(holder)
    }

    /// The path of a file as others see it.
    fn path(&self, path: &Path) -> PathBuf {
        Path::new(&format!("/proc/{}/root", self.0.id())).join(path.strip_prefix("/").unwrap())
    }

    /// The words before a command that is to see it.
    fn enter(&self, place: &Path) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["--mount", "--target", &self.0.id().to_string()]);
        command.arg(format!("--wdns={}", place.display()));
        command
    }
}

fn fill_the_disk(stored: &mut Stored, assault: &mut Assault) {
    if !super::common::may_make_namespaces() {
        return;
    }
    let place = stored.place.path("");
    let folder = place.join("results");
    assault.repeat(|assault| {
        stored.clear();
        fs::create_dir_all(&folder).unwrap();
        let kilobytes = 4 * (1 + assault.below(200));
        let Some(disk) = Disk::new(&folder, kilobytes) else { panic!("no file system could be mounted") };
        let run = |arguments: &[&str]| {
            let mut command = disk.enter(&place);
            command.arg(env!("CARGO_BIN_EXE_cutline")).args(arguments);
            ends(&mut command)
        };
        let output = run(&RUN);
        let text = said(&output);
        match output.status.code() {
            Some(0) => {}
            Some(1) => assert!(
                text.contains("results/small") && text.contains("No space left"),
                "{kilobytes} kB: {text}"
            ),
            code => panic!("{kilobytes} kB: {code:?}: {text}"),
        }
        let larger =
            disk.enter(&place).args(["mount", "-o", "remount,size=100m"]).arg(&folder).status().unwrap();
        assert!(larger.success());
        let output = run(&RESUME);
        assert_eq!(output.status.code(), Some(0), "{kilobytes} kB: {}", said(&output));
        let results = disk.path(&stored.results());
        let tables = TABLES.map(|name| fs::read(results.join(format!("{name}.parquet"))).unwrap());
        assert!(tables[..] == stored.expected[..], "{kilobytes} kB: the tables differ");
        assert_eq!(files(&results).len(), TABLES.len() + 1, "{kilobytes} kB");
    });
}

/// The command to run with a limit of prlimit(1).
fn limited(stored: &Stored, limit: &str) -> Command {
    let mut command = Command::new("prlimit");
    command.arg(limit).arg(env!("CARGO_BIN_EXE_cutline")).args(RUN).current_dir(stored.place.path(""));
    command
}

fn limit_descriptors(stored: &mut Stored, assault: &mut Assault) {
    assault.repeat(|assault| {
        stored.clear();
        let limit = 4 + assault.below(14);
        let output = ends(&mut limited(stored, &format!("--nofile={limit}")));
        let said = said(&output);
        assert!(matches!(output.status.code(), Some(0 | 1)), "{limit}: {said}");
        assert!(output.status.success() || said.contains("Too many open files"), "{limit}: {said}");
        stored.is_resumed(&format!("{limit} descriptors"));
    });
}

/// A process that gets no memory may be ended by it at any moment, as by `kill -9`.
fn limit_memory(stored: &mut Stored, assault: &mut Assault) {
    assault.repeat(|assault| {
        stored.clear();
        let limit = 1_000_000 * (24 + assault.below(30));
        let mut command = limited(stored, &format!("--as={limit}"));
        // A thread of glibc that gets no arena of its own allocates one at every allocation.
        command.env("MALLOC_ARENA_MAX", "1").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        // However it ends.
        let _status = command.status().unwrap();
        stored.is_counted(&format!("{limit} B"));
        stored.is_resumed(&format!("{limit} B"));
    });
}

fn close_output(stored: &mut Stored, assault: &mut Assault) {
    let place = &stored.place;
    assault.repeat(|assault| {
        stored.clear();
        let json = [&RUN[..], &["--json"]].concat();
        let compare = ["compare", "undisturbed/small", "other/small"];
        let (arguments, stores) =
            if assault.below(2) == 0 { (&json[..], true) } else { (&compare[..], false) };
        let mut command = place.command(arguments);
        let mut process =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut output = process.stdout.take().unwrap();
        let some = assault.below(200);
        drop(output.read(&mut vec![0; some]));
        drop(output);
        let errors = process.wait_with_output().unwrap();
        let text = said(&errors);
        assert!(errors.status.code() == Some(0) && !text.contains("panicked"), "{:?}: {text}", errors.status);
        if stores {
            stored.is_whole("nobody has read what it printed");
        }
    });
}
