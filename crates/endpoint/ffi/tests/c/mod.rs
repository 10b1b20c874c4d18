//! Programs in C, compiled with the system's compiler and linked with the library of this build.

use std::ffi::OsStr;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The folder where this build's library is: beside the tests.
pub fn library() -> PathBuf {
    let folder = std::env::current_exe().unwrap().parent().unwrap().to_owned();
    assert!(folder.join("libcutline.so").exists(), "no libcutline.so in {}", folder.display());
    folder
}

/// Compiles a program with every warning, as strict as it goes. Returns it.
pub fn build(source: &Path, into: &Path) -> PathBuf {
    let (program, library) = (into.join(source.file_stem().unwrap()), library());
    let soname = into.join("libcutline.so.0");
    if !soname.exists() {
        symlink(library.join("libcutline.so"), soname).unwrap();
    }
    let output = Command::new("cc")
        .args([
            "-std=c11",
            "-D_POSIX_C_SOURCE=200809L",
            "-Wall",
            "-Wextra",
            "-Wpedantic",
            "-Werror",
            "-g",
            "-pthread",
        ])
        .arg("-I")
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("include"))
        .arg(source)
        .arg("-o")
        .arg(&program)
        .arg("-L")
        .arg(&library)
        .args(["-lcutline", "-lm"])
        .arg(format!("-Wl,-rpath,{}", into.display()))
        .output()
        .expect("the compiler of C is installed: `make setup`");
    assert!(output.status.success(), "{}: {}", source.display(), String::from_utf8_lossy(&output.stderr));
    program
}

/// A program to run. It finds the library that it was linked with: Cargo's path may have one of another build.
pub fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.env_remove("LD_LIBRARY_PATH").stdin(Stdio::null());
    command
}

/// Runs a program to its end, and returns its output. It must succeed.
pub fn run(program: &Path, arguments: &[&str]) -> String {
    let output = command(program).args(arguments).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, errors) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{}: {}\n{out}\n{errors}", program.display(), output.status);
    out
}
