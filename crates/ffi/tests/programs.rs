//! Programs in C against the library.

mod c;

use cutline_testbed::skip;
use std::path::Path;
use std::process::Command;

fn echo(into: &Path) -> std::path::PathBuf {
    c::build(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/echo.c"), into)
}

#[test]
fn a_program_in_c_has_streams_datagrams_events_a_mib_and_errors() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(c::run(&echo(folder.path()), &[]), "all is well\n");
}

#[test]
fn valgrind_finds_no_fault() {
    if Command::new("valgrind").arg("--version").output().is_err() {
        return skip("there is no valgrind", "apt-get install valgrind");
    }
    let folder = tempfile::tempdir().unwrap();
    let program = echo(folder.path());
    let arguments = [
        "--quiet",
        "--leak-check=full",
        "--show-leak-kinds=definite",
        "--errors-for-leak-kinds=definite",
        "--error-exitcode=9",
    ];
    let output = c::command("valgrind").args(arguments).arg(&program).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && errors.is_empty(), "{}\n{errors}", output.status);
}
