//! A folder with a small scenario, its results, and processes that make them.

use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use tempfile::TempDir;

/// Twenty-four short runs.
pub const SMALL: &str = r#"
name = "small"
duration = "4 s"
warm-up = "1 s"
seeds = 12

[dumbbell]
rate = "2 Mbit/s"
delay = "10 ms"
access-rate = "50 Mbit/s"
access-delay = "5 ms"
queue = { aqm = "pi", limit = "60 packets", q-ref = "20 packets", tsq = true }

[[flow]]
name = "audio"
class = "audio"
hint = 6
start = { from = "0 s", to = "1 s" }
transport = { protocol = "udp" }
app = { kind = "cbr", rate = "64 kbit/s", size = "160 B" }

[sweep]
"flow.audio.hint" = [1, 6]
"#;

/// Number of its runs.
pub const RUNS: usize = 24;
/// The tables of a simulation.
pub const TABLES: [&str; 6] = ["flows", "queues", "series", "queue_series", "distributions", "points"];

/// A folder with the small scenario.
pub struct Place(TempDir);

impl Place {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("small.toml"), SMALL).unwrap();
        Self(folder)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cutline"));
        command.current_dir(self.0.path()).env_remove("CLICOLOR_FORCE").args(arguments);
        command
    }

    pub fn start(&self, arguments: &[&str]) -> Child {
        let mut command = self.command(arguments);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// Returns the standard error of a command that ends with a code.
    pub fn says(&self, arguments: &[&str], code: i32) -> String {
        let output = self.command(arguments).output().unwrap();
        let said = said(&output);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
        said
    }

    pub fn tables(&self, folder: &str) -> Vec<Vec<u8>> {
        let table = |name| fs::read(self.path(folder).join(format!("{name}.parquet"))).unwrap();
        TABLES.map(table).into()
    }

    pub fn summary(&self) -> Value {
        serde_json::from_slice(&fs::read(self.path("results/small/summary.json")).unwrap()).unwrap()
    }
}

/// Returns the standard error of a process.
pub fn said(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}
