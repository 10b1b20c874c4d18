//! The shell blocks of docs/tutorials are run as a reader would: in order, in one shell, and every command must succeed.

use cutline_testbed::may_make_namespaces;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Returns the blocks of a page that are marked `sh`, as one script.
fn script(page: &str) -> String {
    let text = fs::read_to_string(repository().join("docs/tutorials").join(page)).unwrap();
    let blocks: Vec<&str> =
        text.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert!(blocks.len() > 1, "{page} has blocks");
    format!("set -euo pipefail\n{}", blocks.join("\n"))
}

/// A folder with the command, the examples, and a page's script.
fn folder(page: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    symlink(env!("CARGO_BIN_EXE_cutline"), folder.path().join("cutline")).unwrap();
    symlink(repository().join("examples"), folder.path().join("examples")).unwrap();
    fs::write(folder.path().join("script"), script(page)).unwrap();
    folder
}

/// Runs a command in a folder and returns its output. It must succeed.
fn done(command: &mut Command, folder: &Path) -> String {
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap_or_default());
    let output = command.current_dir(folder).env("PATH", path).stdin(Stdio::null()).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, errors) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{}\n{out}\n{errors}", output.status);
    out
}

#[test]
fn the_researchers_tutorial_works() {
    let folder = folder("researcher.md");
    let said = done(Command::new("bash").arg("script"), folder.path());
    for part in
        ["stored in results/call", "A = results/call, B = results/long/call", "report: results/study-quick/"]
    {
        assert!(said.contains(part), "no {part:?} in\n{said}");
    }
    for picture in ["call.svg", "delays.svg"] {
        let text = fs::read_to_string(folder.path().join(picture)).unwrap();
        assert!(text.contains("fq-codel"), "{picture} shows all queues");
    }
}

/// In namespaces of its own for mounts and processes, with which its network namespaces and programs end.
#[test]
fn the_operators_tutorial_works() {
    if !may_make_namespaces(super::common::COMMAND) {
        return;
    }
    let folder = folder("operator.md");
    let script = "mount -t tmpfs none /run && mount -t sysfs none /sys && exec bash script";
    let mut command = Command::new("unshare");
    command.args(["--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", script]);
    let said = done(&mut command, folder.path());
    assert_eq!(said.matches("Grade ").count(), 2, "before and after:\n{said}");
    assert!(said.contains("tun:cut0 -> tun:cut1 at 9.5 Mbit/s through sieve"), "{said}");
}

#[test]
fn the_application_developers_tutorial_works() {
    let folder = folder("application.md");
    let library = std::env::current_exe().unwrap().with_file_name("libcutline.so");
    symlink(&library, folder.path().join("libcutline.so")).unwrap();
    symlink(&library, folder.path().join("libcutline.so.0")).unwrap();
    let mut command = Command::new("bash");
    command.arg("script").env("LIBRARY_PATH", folder.path()).env("LD_LIBRARY_PATH", folder.path());
    command.env("C_INCLUDE_PATH", repository().join("crates/endpoint/ffi/include"));
    let said = done(&mut command, folder.path());
    assert!(said.contains("heard 150 messages, 0 lost"), "{said}");
    assert_eq!(fs::metadata(folder.path().join("heard")).unwrap().len(), 150 * 160);
}
