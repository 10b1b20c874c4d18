//! Ordinary behaviour of programs under `cutline exec`: signals to their group, ends and closes of every kind, writes that libc makes
//! by itself, sandboxes. The programs are in C, in `common/ordinary.c`; without a C compiler the tests say so and pass.

use crate::common::exec::{compiled, document, exec, library, succeeded};
use crate::common::may_make_namespaces;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use serde_json::Value;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

const MARKED: [&str; 3] = ["--hint", "6", "--quiet"];

/// The program, compiled once for this process.
fn program() -> Option<&'static str> {
    static PROGRAM: OnceLock<Option<PathBuf>> = OnceLock::new();
    let compile = || {
        let folder = tempfile::tempdir().unwrap().keep();
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/common/ordinary.c");
        let program = folder.join("ordinary");
        let mut compiler = Command::new("cc");
        compiler.args(["-O2", "-Wall", "-Werror", "-o"]).args([&program, &source]);
        compiled(&mut compiler, "a C compiler").then_some(program)
    };
    PROGRAM.get_or_init(compile).as_deref().and_then(Path::to_str)
}

/// Runs the program with these arguments, and returns the document of the deliveries.
fn run(options: &[&str], arguments: &[&str]) -> Option<Value> {
    let command = [&[program()?][..], arguments].concat();
    let options = [&["--quiet", "--json", "-"], options].concat();
    let output = exec(&options, &command).output().unwrap();
    succeeded(&output);
    Some(document(&output))
}

// ------------------------------------------------------------------------------------------------------- signals

const SIGNALS: [Signal; 6] =
    [Signal::HUP, Signal::INT, Signal::QUIT, Signal::TERM, Signal::USR1, Signal::USR2];

/// A command with the signal state `default` or `changed`, as `common/ordinary.c` says.
fn with(state: &str, program: &str, command: &Command) -> Command {
    let mut outer = Command::new(program);
    outer.args(["with", state]).arg(command.get_program()).args(command.get_args());
    outer.env("CUTLINE_EXEC_LIBRARY", library()).stdin(Stdio::piped()).stdout(Stdio::piped());
    outer
}

/// Sends each signal to the group and to the command alone. The program prints each that it gets, and at the end how many there were.
fn signals_arrive_once(by: &str) {
    let Some(program) = program() else { return };
    let command = exec(&["--hint", "6", "--quiet", "--by", by], &[program, "signals"]);
    let mut child = with("default", program, &command).process_group(0).spawn().unwrap();
    let process = Pid::from_child(&child);
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut next = || {
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        line.trim().to_owned()
    };
    assert_eq!(next(), "ready");
    for signal in SIGNALS {
        kill_process_group(process, signal).unwrap();
        assert_eq!(next(), signal.as_raw().to_string(), "to the group");
        // Two signals of one number that are pending together are one (signal(7)).
        wait_for_handlers(process);
        kill_process(process, signal).unwrap();
        assert_eq!(next(), signal.as_raw().to_string(), "to the command");
    }
    drop(child.stdin.take());
    assert_eq!(next(), "12 signals");
    assert!(child.wait().unwrap().success());
}

/// Waits until a process has no signal pending, and is in no handler: those of the command block signals.
fn wait_for_handlers(process: Pid) {
    let is_idle = || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", process.as_raw_nonzero())).unwrap();
        let is_empty =
            |line: &str| line.split_whitespace().nth(1).unwrap().bytes().all(|digit| digit == b'0');
        let names = ["SigPnd", "ShdPnd", "SigBlk"];
        status.lines().filter(|line| names.iter().any(|name| line.starts_with(name))).all(is_empty)
    };
    let idle = (0..60_000).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(1));
        is_idle()
    });
    assert!(idle, "the command is busy with a signal for a minute");
}

#[test]
fn a_signal_to_the_group_arrives_once() {
    signals_arrive_once("preload");
}

#[test]
fn a_signal_to_the_group_arrives_once_in_a_control_group() {
    if may_make_namespaces() {
        signals_arrive_once("cgroup");
    }
}

/// A program that has left the group, as `timeout` and daemons do, gets the signals to the group of the command.
#[test]
fn a_program_in_a_group_of_its_own_gets_signals() {
    let Some(program) = program() else { return };
    let command = exec(&MARKED, &[program, "signals", "own-group"]);
    let mut child = with("default", program, &command).process_group(0).spawn().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    kill_process_group(Pid::from_child(&child), Signal::TERM).unwrap();
    output.read_line(&mut line).unwrap();
    drop(child.stdin.take());
    output.read_to_string(&mut line).unwrap();
    assert_eq!(line, "ready\n15\n1 signals\n");
    assert!(child.wait().unwrap().success());
}

/// Ignored and blocked signals are inherited, as by any program that starts another one (execve(2)).
#[test]
fn ignored_and_blocked_signals_are_inherited() {
    let Some(program) = program() else { return };
    let masks = |state: &str| {
        let output = with(state, program, &exec(&MARKED, &[program, "state"])).output().unwrap();
        succeeded(&output);
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(masks("default"), "SIGPIPE default, SIGHUP default, SIGUSR1 not blocked\n");
    assert_eq!(masks("changed"), "SIGPIPE ignored, SIGHUP ignored, SIGUSR1 blocked\n");
}

// -------------------------------------------------------------------------------------- closes and writes in libc

/// The number of a UDP socket that was closed may be anything next. Each case sends one datagram, closes, and sends five messages
/// to a local socket with the same number.
#[test]
fn a_closed_number_is_neither_paced_nor_counted() {
    for how in [
        "close",
        "close_range",
        "closefrom",
        "fclose",
        "freopen",
        "syscall",
        "syscall-range",
        "dup2",
        "syscall-dup3",
    ] {
        let Some(document) = run(&["--rate", "80kbit"], &["reuse", how]) else { return };
        let counted = &document["counted"];
        assert_eq!([&counted["udp_messages"], &counted["udp_waits"]], [1, 0], "{how}: {counted:#}");
        assert_eq!(counted["udp_uncounted_sockets"], u64::from(how.starts_with('f')), "{how}");
    }
}

/// A copy of a descriptor by fcntl(2) is the same socket.
#[test]
fn a_copied_number_is_paced_and_counted() {
    for how in ["fcntl", "dup", "syscall-dup"] {
        let Some(document) = run(&["--rate", "80kbit"], &["copy", how]) else { return };
        let counted = &document["counted"];
        let found = ["udp_messages", "udp_sockets"].map(|key| counted[key].clone());
        assert_eq!(found, [5, 1].map(Value::from), "{how}: {counted:#}");
        assert!(counted["udp_waits"].as_u64() > Some(0), "{how}: {counted:#}");
    }
}

#[test]
fn every_function_that_sends_is_paced_and_counted() {
    for how in ["write", "writev", "pwritev2", "sendfile", "splice", "send", "sendto", "sendmsg", "sendmmsg"]
    {
        let Some(document) = run(&["--rate", "80kbit"], &["send", how]) else { return };
        let counted = &document["counted"];
        let found = ["udp_messages", "udp_bytes"].map(|key| counted[key].clone());
        assert_eq!(found, [5, 5000].map(Value::from), "{how}: {counted:#}");
        // A machine that stands still for 100 ms between two of them makes a wait needless.
        assert!(counted["udp_waits"].as_u64() > Some(0), "{how}: {counted:#}");
    }
}

#[test]
fn writes_inside_libc_are_reported_as_missing() {
    let all =
        ["stdio", "dprintf", "vdprintf", "stdout", "syscall", "syscall-write", "aio_write", "lio_listio"];
    for how in all {
        let Some(document) = run(&["--hint", "6"], &["send", how]) else { return };
        assert_eq!(document["counted"]["udp_uncounted_sockets"], 1, "{how}");
        let is_complete = |socket: &Value| socket["transport"] != "udp" || socket["is_complete"] == true;
        assert!(!document["sockets"].as_array().unwrap().iter().all(is_complete), "{how}");
        let command = [program().unwrap(), "send", how];
        let text = String::from_utf8(exec(&["--hint", "6"], &command).output().unwrap().stderr).unwrap();
        assert!(text.contains("incomplete: libc wrote to 1 UDP sockets by itself"), "{how}: {text}");
    }
    if let Some(document) = run(&["--hint", "6"], &["send", "write"]) {
        assert_eq!(document["counted"]["udp_uncounted_sockets"], 0);
    }
}

/// `bash` writes to its `/dev/udp` by stdio.
#[test]
fn the_shells_own_sockets_are_reported_as_missing() {
    let script = "exec 3>/dev/udp/127.0.0.1/9; echo hello >&3";
    let output = exec(&["--hint", "6", "--quiet", "--json", "-"], &["bash", "-c", script]).output().unwrap();
    succeeded(&output);
    assert_eq!(document(&output)["counted"]["udp_uncounted_sockets"], 1);
}

#[test]
fn a_connection_is_counted_however_it_is_closed() {
    for how in [
        "close",
        "fclose",
        "close_range",
        "closefrom",
        "syscall",
        "dup2",
        "exit",
        "_exit",
        "_Exit",
        "quick_exit",
        "exit_group",
        "execve",
        "execvp",
        "execv",
        "execvpe",
        "fexecve",
        "execveat",
        "execl",
        "execlp",
        "execle",
        "return",
    ] {
        let Some(document) = run(&["--hint", "6"], &["connection", how]) else { return };
        let counted = &document["counted"];
        assert_eq!(counted["tcp_sent_bytes"], 10_000, "{how}: {counted:#}");
        let sockets = document["sockets"].as_array().unwrap();
        let sender = sockets.iter().find(|socket| socket["sent_bytes"] == 10_000).unwrap();
        assert_eq!(sender["is_complete"], true, "{how}");
    }
}

/// A socket that a program makes by syscall(2) is as one of socket(2), and so are copies and accepted connections.
#[test]
fn a_socket_made_by_a_system_call_is_marked_paced_and_counted() {
    let Some(document) = run(&["--hint", "6", "--rate", "80kbit"], &["made"]) else { return };
    assert_eq!(document["exit_code"], 0, "{document:#}");
    let counted = &document["counted"];
    let found = ["udp_messages", "udp_sockets", "tcp_sockets"].map(|key| counted[key].clone());
    assert_eq!(found, [5, 1, 3].map(Value::from), "{counted:#}");
    assert!(counted["udp_waits"].as_u64() > Some(0), "{counted:#}");
}

/// A socket that arrives in a message is marked when it first sends, by whichever function.
#[test]
fn a_socket_from_another_process_is_marked() {
    let Some(document) = run(&["--hint", "6"], &["passed"]) else { return };
    assert_eq!(document["exit_code"], 0, "{document:#}");
}

// ------------------------------------------------------------------------------------------------------ sandboxes

/// A program that has given up system calls writes to a file, to a connection and to a datagram socket, closes them, and exits. A
/// filter kills for any call that the program does not make itself.
#[test]
fn a_sandbox_does_not_kill_the_program() {
    for entered in ["strict", "prctl", "seccomp"] {
        for ending in ["exit", "_exit"] {
            let Some(document) = run(&["--hint", "6"], &["sandbox", entered, ending]) else { return };
            assert_eq!((&document["exit_code"], &document["signal"]), (&0.into(), &Value::Null), "{entered}");
            // Data sent before the sandbox is counted; the report states that the rest is missing.
            assert_eq!(document["counted"]["tcp_sent_bytes"], 10_000, "{entered}, {ending}");
            let sockets = document["sockets"].as_array().unwrap();
            let sender = sockets.iter().find(|socket| socket["sent_bytes"] == 10_000).unwrap();
            assert_eq!(sender["is_complete"], false, "{entered}, {ending}");
        }
    }
}

/// A filter that allows what sockets need, as those of browsers' network processes do.
#[test]
fn sockets_in_a_sandbox_with_a_network_are_marked() {
    let Some(document) = run(&["--hint", "6"], &["sandbox", "harmless", "exit"]) else { return };
    assert_eq!(document["counted"]["refused"], 0, "{document:#}");
    assert_eq!(document["counted"]["tcp_sent_bytes"], 10_005, "{document:#}");
}

// -------------------------------------------------------------------------------------------- files and the library

#[test]
fn files_of_a_killed_command_are_removed_by_the_next_one() {
    let place = tempfile::tempdir().unwrap();
    let left = || {
        let names = std::fs::read_dir(place.path()).unwrap().map(|entry| entry.unwrap().file_name());
        names.filter(|name| name.to_str().unwrap().starts_with("cutline-exec-")).count()
    };
    let mut command = exec(&MARKED, &["sh", "-c", "echo $$; exec sleep 60"]);
    let mut child = command.env("TMPDIR", place.path()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(left(), 1);
    // A run that is under way keeps its table.
    succeeded(&exec(&MARKED, &["true"]).env("TMPDIR", place.path()).output().unwrap());
    assert_eq!(left(), 1);
    child.kill().unwrap();
    child.wait().unwrap();
    kill_process(Pid::from_raw(line.trim().parse().unwrap()).unwrap(), Signal::KILL).unwrap();
    succeeded(&exec(&MARKED, &["true"]).env("TMPDIR", place.path()).output().unwrap());
    assert_eq!(left(), 0);
}

/// In a build folder the library is in the folder of its profile. Without it nothing is announced, and the program is not started.
#[test]
fn a_command_that_is_not_installed_finds_its_library_or_names_its_build() {
    let folder = tempfile::tempdir().unwrap();
    let [release, preload] = ["release", "preload"].map(|name| folder.path().join(name));
    std::fs::create_dir(&release).unwrap();
    std::fs::create_dir(&preload).unwrap();
    let command = release.join("cutline");
    std::fs::hard_link(env!("CARGO_BIN_EXE_cutline"), &command)
        .or_else(|_| std::fs::copy(env!("CARGO_BIN_EXE_cutline"), &command).map(drop))
        .unwrap();
    let run = |options: &[&str]| {
        let mut run = Command::new(&command);
        run.arg("exec").args(options).args(["--", "echo", "hello"]);
        run.env_remove("CUTLINE_EXEC_LIBRARY").output().unwrap()
    };
    let missing = run(&["--hint", "6", "--by", "preload"]);
    let text = String::from_utf8(missing.stderr).unwrap();
    assert_eq!((missing.status.code(), missing.stdout.as_slice()), (Some(125), &b""[..]), "{text}");
    assert!(
        text.contains("make target/preload/libcutline_preload.so") && !text.contains("by preload:"),
        "{text}"
    );
    std::fs::copy(library(), preload.join("libcutline_preload.so")).unwrap();
    let found = run(&["--hint", "6", "--by", "preload"]);
    succeeded(&found);
    assert_eq!(found.stdout, b"hello\n");
}
