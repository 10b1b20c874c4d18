//! Programs in C with messages in frames below IP.

use crate::c;

use cutline_sys::namespace::Namespace;
use cutline_sys::packet::open_without_headers;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;

const RUN: &str = "run the tests of cutline-ffi as root";

fn program(into: &Path) -> PathBuf {
    c::build(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/direct.c"), into)
}

fn may_run() -> bool {
    open_without_headers().map_err(|error| cutline_testbed::skip(error, RUN)).is_ok()
}

#[test]
fn a_program_in_c_sends_frames_and_gets_the_missing_capability() {
    if !may_run() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = program(folder.path());
    assert_eq!(c::run(&program, &[]), "all is well\n");
    let without = ["--bounding-set=-net_raw", "--inh-caps=-net_raw"];
    let output = c::command("setpriv").args(without).arg(&program).arg("refused").output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!((String::from_utf8_lossy(&output.stdout).as_ref(), errors.as_ref()), ("all is well\n", ""));
}

#[test]
fn programs_in_c_exchange_frames_over_a_link() {
    if !may_run() || !cutline_testbed::may_make_namespaces(RUN) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = program(folder.path());
    let [a, b] = ["dirca", "dircb"].map(|label| Namespace::create(label).unwrap());
    let veth = "link add host type veth peer name host netns";
    a.ip_batch(&format!("{veth} {}\nlink set host address 02:00:00:00:00:0a up\n", b.name())).unwrap();
    b.ip_batch("link set host address 02:00:00:00:00:0b up\n").unwrap();
    let mut receiver = b
        .within(|| c::command(&program).args(["receive", "direct:host:7000"]).stdout(Stdio::piped()).spawn())
        .unwrap()
        .unwrap();
    let mut printed = BufReader::new(receiver.stdout.take().unwrap());
    let mut first = String::new();
    printed.read_line(&mut first).unwrap();
    assert_eq!(first, "listening\n");
    let sent = a.within(|| c::run(&program, &["send", "direct:host/02:00:00:00:00:0b:7000"])).unwrap();
    assert_eq!(sent, "all is well\n");
    let mut rest = String::new();
    printed.read_to_string(&mut rest).unwrap();
    assert!(receiver.wait().unwrap().success());
    let from = rest.strip_prefix("direct:host/02:00:00:00:00:0a:").unwrap_or_else(|| panic!("{rest}"));
    assert!(from.ends_with("\nall is well\n"), "{rest}");
}
