//! Runs of `cutline exec` in tests, with the library that Cargo has built for them.

use cutline_testbed::skip;
use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

/// The library that Cargo has built for this test, beside it.
pub fn library() -> PathBuf {
    std::env::current_exe().unwrap().with_file_name("libcutline_preload.so")
}

pub fn exec(options: &[&str], command: &[&str]) -> Command {
    let mut exec = Command::new(env!("CARGO_BIN_EXE_cutline"));
    exec.env("CUTLINE_EXEC_LIBRARY", library()).arg("exec").args(options).arg("--").args(command);
    exec.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    exec
}

pub fn succeeded(output: &Output) {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

pub fn document(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)))
}

/// Compiles a source; false, which is said, where the compiler is missing.
pub fn compiled(command: &mut Command, what: &str) -> bool {
    match command.output() {
        Ok(output) => {
            succeeded(&output);
            true
        }
        Err(error) => {
            skip(format_args!("{what}: {error}"), "install it");
            false
        }
    }
}
