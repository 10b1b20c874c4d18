//! The arithmetic of the kernel's queues (`bpf/include/cutline`), compiled for the host: the programs of `bpf/tests` as processes.
//!
//! The kernel's programs are in C and in fixed point. They include the same headers as these processes, so a test that compares its answers with those of
//! the crate `aqm` checks the arithmetic of the programs. `make test-vm` checks the rest of them in a kernel.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Fractional bits of a probability.
pub const PROBABILITY_BITS: u32 = 60;

/// A compiled program.
#[derive(Debug)]
pub struct Peer {
    program: PathBuf,
}

impl Peer {
    /// Compiles the program of this name, such as `parity`, into a folder, with the C compiler that `tools/setup.sh base` installs. Undefined behaviour
    /// ends the program.
    ///
    /// # Errors
    /// When there is no compiler, or it refuses the program.
    pub fn compile(name: &str, folder: &Path) -> io::Result<Self> {
        let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../bpf/tests");
        let (source, program) = (tests.join(format!("{name}.c")), folder.join(name));
        fs::create_dir_all(folder)?;
        let options = [
            "-O2",
            "-std=gnu11",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-fsanitize=undefined",
            "-fno-sanitize-recover",
            "-pthread",
        ];
        let status = Command::new("cc").args(options).arg(source).arg("-o").arg(&program).status()?;
        if !status.success() {
            return Err(io::Error::other(format!("cc has refused bpf/tests/{name}.c")));
        }
        Ok(Self { program })
    }

    /// Runs commands, and returns the numbers of each line of the answer. The commands are in a file of this name beside the program, for a second look.
    /// Runs with different names may be made at the same time.
    ///
    /// # Errors
    /// When the program cannot run, refuses a command, or answers with something else than numbers.
    pub fn run(&self, name: &str, commands: &str) -> io::Result<Vec<Vec<i128>>> {
        let input = self.program.with_file_name(format!("{name}.commands"));
        fs::write(&input, commands)?;
        let output =
            Command::new(&self.program).stdin(File::open(input)?).stderr(Stdio::inherit()).output()?;
        if !output.status.success() {
            return Err(io::Error::other(format!("{}: {}", self.program.display(), output.status)));
        }
        let text = String::from_utf8(output.stdout).map_err(io::Error::other)?;
        let number =
            |word: &str| word.parse().map_err(|_| io::Error::other(format!("`{word}` is no number")));
        text.lines().map(|line| line.split(' ').map(number).collect()).collect()
    }
}

/// Returns a number from 0 to 1 with [`PROBABILITY_BITS`] fractional bits, rounded to the nearest.
pub fn fixed(number: f64) -> u64 {
    (number * (1_u64 << PROBABILITY_BITS) as f64).round() as u64
}

/// Returns a number with [`PROBABILITY_BITS`] fractional bits as a floating-point number.
pub fn float(number: i128) -> f64 {
    number as f64 / (1_u64 << PROBABILITY_BITS) as f64
}
