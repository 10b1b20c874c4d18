//! The command `cutline-fuzz`: lists the targets, fuzzes them with libFuzzer, replays inputs.

use clap::{Parser, Subcommand};
use cutline_fuzz::corpus::{replay_command, words};
use cutline_fuzz::{Target, all, find};
use std::error::Error;
use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs, io};

/// Fuzz the parsers of foreign bytes
#[derive(Parser)]
#[command(version)]
struct Args {
    #[command(subcommand)]
    command: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Print the names of the targets
    List,
    /// Look for failing inputs, guided by coverage
    Run {
        /// The targets; all where none is named
        #[arg(value_parser = named)]
        targets: Vec<&'static Target>,
        /// Run time of each target, s
        #[arg(long, default_value_t = 60)]
        seconds: u64,
        /// The seed of the mutations; another one every time where it is not given
        #[arg(long, default_value_t = 0)]
        seed: u32,
    },
    /// Add inputs that `run` has found and that reach new code to the committed corpus, which stays small
    Keep {
        /// The targets; all where none is named
        #[arg(value_parser = named)]
        targets: Vec<&'static Target>,
    },
    /// Give files to a target
    Replay {
        /// The target
        #[arg(value_parser = named)]
        target: &'static Target,
        /// Files with one input each
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
}

/// Options of rustc with which libFuzzer sees edges and comparisons. It needs no nightly compiler.
const INSTRUMENTATION: [&str; 5] = [
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
];
/// The time after which libFuzzer reports that an input hangs, s of the clock on the wall.
const HANGS: u64 = 30;
/// The memory at which libFuzzer ends a target, MB. The targets' own bounds are far below.
const MOST_MEMORY: u64 = 2048;

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> ExitCode {
    let done = match Args::parse().command {
        Task::List => {
            for target in all() {
                println!("{}", target.name);
            }
            Ok(ExitCode::SUCCESS)
        }
        Task::Run { targets, seconds, seed } => run(&chosen(targets), seconds, seed),
        Task::Keep { targets } => keep(&chosen(targets)),
        Task::Replay { target, files } => replay(target, &files),
    };
    done.unwrap_or_else(|error| {
        eprintln!("error: {error}");
        ExitCode::FAILURE
    })
}

fn named(name: &str) -> Result<&'static Target, String> {
    find(name).ok_or_else(|| {
        let names: Vec<&str> = all().iter().map(|target| target.name).collect();
        format!("there is no such target; there are: {}", names.join(", "))
    })
}

fn chosen(targets: Vec<&'static Target>) -> Vec<&'static Target> {
    if targets.is_empty() { all().iter().collect() } else { targets }
}

/// Fuzzes one target after the other; a target that fails does not stop those behind it.
fn run(targets: &[&Target], seconds: u64, seed: u32) -> Outcome<ExitCode> {
    let engine = build()?;
    let mut failed = Vec::new();
    for target in targets {
        println!("\n{}: {seconds} s", target.name);
        let work = Work::prepare(target)?;
        let kept = target.failures_folder();
        fs::create_dir_all(&kept)?;
        let before = files(&kept)?;
        let mut engine = engine_of(&engine, target)
            .args([&work.found, &work.seeds])
            .args(work.words.map(|words| format!("-dict={}", words.display())))
            .arg(format!("-artifact_prefix={}/", kept.display()))
            .arg(format!("-max_total_time={seconds}"))
            .arg(format!("-max_len={}", target.longest))
            .arg(format!("-timeout={HANGS}"))
            .arg(format!("-rss_limit_mb={MOST_MEMORY}"))
            .arg(format!("-seed={seed}"))
            .args(["-print_final_stats=1", "-print_funcs=0"])
            .stderr(Stdio::piped())
            .spawn()?;
        engine.stderr.take().map_or(Ok(()), show)?;
        if !engine.wait()?.success() {
            failed.push(target.name);
            for path in files(&kept)?.iter().filter(|path| !before.contains(path)) {
                println!("to replay it:\n    {}", replay_command(target, path));
            }
        }
    }
    if failed.is_empty() {
        println!("\n{} targets, no failing input", targets.len());
        return Ok(ExitCode::SUCCESS);
    }
    println!("\nfailing inputs of: {}", failed.join(", "));
    Ok(ExitCode::FAILURE)
}

/// Passes on libFuzzer's output: its progress at most once a second, and not the dictionary that it recommends.
fn show(output: impl Read) -> io::Result<()> {
    let mut shown: Option<Instant> = None;
    for line in BufReader::new(output).split(b'\n') {
        let line = line?;
        let is_progress = line.starts_with(b"#") && !line.starts_with(b"##");
        let is_too_early = shown.is_some_and(|shown| shown.elapsed() < Duration::from_secs(1));
        if (is_progress && is_too_early) || line.starts_with(b"##") || line.starts_with(b"\"") {
            continue;
        }
        if is_progress {
            shown = Some(Instant::now());
        }
        eprintln!("{}", String::from_utf8_lossy(&line));
    }
    Ok(())
}

/// Adds inputs that reach new code to the corpus, as far as the corpus may grow.
fn keep(targets: &[&Target]) -> Outcome<ExitCode> {
    let engine = build()?;
    for target in targets {
        let work = Work::prepare(target)?;
        // The seeds that are the project's own files must not be copied: they are merged into a folder that is thrown away.
        let merged = work.folder.join("merged");
        drop(fs::remove_dir_all(&merged));
        fs::create_dir_all(&merged)?;
        for seed in files(&work.seeds)? {
            fs::copy(&seed, merged.join(seed.file_name().unwrap_or_default()))?;
        }
        let known = files(&merged)?;
        let ended = engine_of(&engine, target)
            .args([&merged, &work.found])
            .args(["-set_cover_merge=1", "-use_counters=0", "-use_cmp=0"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()?;
        if !ended.success() {
            return Err(format!("libFuzzer could not merge the inputs of {}", target.name).into());
        }
        let mut new: Vec<Vec<u8>> = Vec::new();
        for path in files(&merged)?.iter().filter(|path| !known.contains(path)) {
            new.push(fs::read(path)?);
        }
        let (of_all, added) = (new.len(), target.add_to_corpus(new)?);
        println!("{}: {added} added, of {of_all} that reach new code", target.name);
    }
    Ok(ExitCode::SUCCESS)
}

/// Gives files to a target as they are. A failing one panics, with its backtrace where `RUST_BACKTRACE` is set.
fn replay(target: &Target, paths: &[PathBuf]) -> Outcome<ExitCode> {
    for path in paths {
        let input = fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let accepted = target.check(&input);
        println!("{}: {}", path.display(), if accepted { "accepted" } else { "refused" });
    }
    Ok(ExitCode::SUCCESS)
}

/// The folders of a target that libFuzzer works with.
struct Work {
    folder: PathBuf,
    /// Inputs that libFuzzer has found, in this run and earlier ones.
    found: PathBuf,
    /// Copies of the corpus and of the project's files: libFuzzer takes whole folders.
    seeds: PathBuf,
    /// The words of the corpus, if it has any.
    words: Option<PathBuf>,
}

impl Work {
    fn prepare(target: &Target) -> Outcome<Self> {
        let folder = built().join("work").join(target.name);
        let [found, seeds] = ["found", "seeds"].map(|name| folder.join(name));
        drop(fs::remove_dir_all(&seeds));
        fs::create_dir_all(&found)?;
        fs::create_dir_all(&seeds)?;
        let corpus = target.corpus()?;
        for (number, entry) in corpus.iter().enumerate() {
            fs::write(seeds.join(number.to_string()), &entry.bytes)?;
        }
        let (path, words) = (folder.join("words"), words(&corpus));
        fs::write(&path, words.iter().map(|word| quoted(word)).collect::<String>())?;
        // libFuzzer refuses an empty dictionary.
        Ok(Self { folder, found, seeds, words: (!words.is_empty()).then_some(path) })
    }
}

/// A word as a line of libFuzzer's dictionary.
fn quoted(word: &[u8]) -> String {
    let escaped = word.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "\\x{byte:02x}");
        text
    });
    format!("\"{escaped}\"\n")
}

/// Builds the instrumented program and returns its path. Only the target's own code is instrumented, not its build scripts:
/// that is the effect of naming the machine.
fn build() -> Outcome<PathBuf> {
    let machine = Command::new("rustc").args(["--print", "host-tuple"]).output()?;
    let machine = String::from_utf8(machine.stdout)?.trim().to_owned();
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let ended = Command::new(cargo)
        .args([
            "build",
            "--locked",
            "--profile",
            "fuzz",
            "-p",
            "cutline-fuzz",
            "--bin",
            "cutline-fuzz-engine",
        ])
        .args(["--features", "engine", "--target", &machine, "--target-dir"])
        .arg(built())
        .env("RUSTFLAGS", INSTRUMENTATION.join(" "))
        .status()?;
    if !ended.success() {
        return Err("the fuzzer cannot be built".into());
    }
    Ok(built().join(machine).join("fuzz/cutline-fuzz-engine"))
}

fn engine_of(engine: &Path, target: &Target) -> Command {
    let mut command = Command::new(engine);
    command.env("CUTLINE_FUZZ_TARGET", target.name);
    command
}

/// The folder for all that is built and found here.
fn built() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../target/fuzz")
}

fn files(folder: &Path) -> Outcome<Vec<PathBuf>> {
    Ok(fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<Result<_, std::io::Error>>()?)
}
