//! A program that runs, with an end that is certain.
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "programs run in real time, and are waited for"
)]

use cutline_sys::SysError;
use cutline_sys::namespace::Namespace;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Reason why a program has not done its work.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// The program is not installed.
    #[error("{program} is not installed: tools/setup.sh programs installs it")]
    Missing {
        /// The program.
        program: String,
    },
    /// The program has failed.
    #[error("{program} has failed ({status}): {messages}")]
    Failed {
        /// The program.
        program: String,
        /// Exit status.
        status: ExitStatus,
        /// End of its messages.
        messages: String,
    },
    /// The program has not ended in time.
    #[error("{program} has not ended within {limit:?}: {messages}")]
    Late {
        /// The program.
        program: String,
        /// The time.
        limit: Duration,
        /// End of its messages.
        messages: String,
    },
    /// The program's output is not the expected one.
    #[error("{program} has written unexpected output: {what}")]
    Output {
        /// The program.
        program: String,
        /// The error.
        what: String,
    },
    /// A file cannot be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The system refuses something.
    #[error(transparent)]
    System(#[from] SysError),
}

/// Returns a function that makes an error of a file's.
pub fn of_file(path: &Path) -> impl FnOnce(io::Error) -> ProgramError {
    move |source| ProgramError::File { path: path.to_owned(), source }
}

/// Interval of checks of a program.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// Length of a program's output in an error, bytes.
const TAIL: usize = 600;

/// A program that runs. It is killed when this is dropped.
#[derive(Debug)]
pub struct Child {
    process: std::process::Child,
    name: String,
    output: PathBuf,
    errors: PathBuf,
}

impl Child {
    /// Starts a program, in a namespace or here. Its standard output goes to `LOG.out`, its errors to `LOG.err`.
    pub fn start(
        command: &mut Command,
        namespace: Option<&Namespace>,
        log: &Path,
    ) -> Result<Self, ProgramError> {
        let name = command.get_program().to_string_lossy().into_owned();
        let (output, errors) = (log.with_extension("out"), log.with_extension("err"));
        let create = |path: &Path| File::create(path).map_err(of_file(path));
        command.stdin(Stdio::null()).stdout(create(&output)?).stderr(create(&errors)?);
        let spawned = match namespace {
            Some(namespace) => namespace.within(|| command.spawn())?,
            None => command.spawn(),
        };
        match spawned {
            Ok(process) => Ok(Self { process, name, output, errors }),
            Err(error) if error.kind() == ErrorKind::NotFound => Err(ProgramError::Missing { program: name }),
            Err(source) => Err(ProgramError::File { path: name.into(), source }),
        }
    }

    /// Returns the number of the process.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Runs a program to its end, which must be a success.
    pub fn run(command: &mut Command, log: &Path, limit: Duration) -> Result<Self, ProgramError> {
        let mut child = Self::start(command, None, log)?;
        child.succeed(limit)?;
        Ok(child)
    }

    /// Waits for its end, which must be a success. One that takes longer is killed.
    pub fn succeed(&mut self, limit: Duration) -> Result<(), ProgramError> {
        let status = self.wait(limit)?;
        if status.success() {
            return Ok(());
        }
        Err(ProgramError::Failed { program: self.name.clone(), status, messages: self.messages() })
    }

    /// Waits for its end, however it ends. One that takes longer is killed.
    pub fn wait(&mut self, limit: Duration) -> Result<ExitStatus, ProgramError> {
        if let Some(status) = self.status(limit)? {
            return Ok(status);
        }
        self.kill();
        Err(self.late(limit))
    }

    /// Waits for the exit status; `None` if the program has not ended.
    fn status(&mut self, limit: Duration) -> Result<Option<ExitStatus>, ProgramError> {
        let until = Instant::now() + limit;
        loop {
            let status = self.process.try_wait().map_err(of_file(Path::new(&self.name)))?;
            if status.is_some() || Instant::now() >= until {
                return Ok(status);
            }
            sleep(LOOK_EVERY);
        }
    }

    /// The error of a program that has not ended in time.
    fn late(&self, limit: Duration) -> ProgramError {
        ProgramError::Late { program: self.name.clone(), limit, messages: self.messages() }
    }

    /// Waits until its standard output has a word. It must not end before.
    pub fn wait_for(&mut self, word: &str, limit: Duration) -> Result<(), ProgramError> {
        let until = Instant::now() + limit;
        while !self.output()?.contains(word) {
            if let Some(status) = self.process.try_wait().map_err(of_file(Path::new(&self.name)))? {
                return Err(ProgramError::Failed {
                    program: self.name.clone(),
                    status,
                    messages: self.messages(),
                });
            }
            if Instant::now() >= until {
                return Err(self.late(limit));
            }
            sleep(LOOK_EVERY);
        }
        Ok(())
    }

    /// Returns the standard output so far.
    pub fn output(&self) -> Result<String, ProgramError> {
        read(&self.output)
    }

    /// Returns the standard error so far.
    pub fn errors(&self) -> Result<String, ProgramError> {
        read(&self.errors)
    }

    /// Returns the end of its messages.
    fn messages(&self) -> String {
        let all = self.errors().unwrap_or_default();
        let start = all.len().saturating_sub(TAIL);
        let start = (start..all.len()).find(|at| all.is_char_boundary(*at)).unwrap_or(0);
        all[start..].trim().to_owned()
    }

    fn kill(&mut self) {
        // One that has ended already is only waited for.
        let _ended = self.process.kill();
        let _waited = self.process.wait();
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Returns a file as text. Invalid UTF-8 is replaced.
fn read(path: &Path) -> Result<String, ProgramError> {
    let bytes = fs::read(path).map_err(of_file(path))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn a_program_is_killed_after_its_time() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let minute = Duration::from_secs(60);
        let child = Child::run(&mut shell("echo out; echo err >&2"), &log, minute).unwrap();
        assert_eq!((child.output().unwrap().as_str(), child.errors().unwrap().as_str()), ("out\n", "err\n"));
        let error = Child::run(&mut shell("echo why >&2; exit 3"), &log, minute).unwrap_err();
        assert_eq!(error.to_string(), "sh has failed (exit status: 3): why");
        let error = Child::run(&mut shell("exec sleep 60"), &log, Duration::from_millis(50)).unwrap_err();
        assert!(matches!(error, ProgramError::Late { .. }), "{error}");
        let error = Child::run(&mut Command::new("there-is-no-such-program"), &log, minute).unwrap_err();
        assert!(matches!(error, ProgramError::Missing { .. }), "{error}");
        let mut child = Child::start(&mut shell("echo ready; exec sleep 60"), None, &log).unwrap();
        child.wait_for("ready", minute).unwrap();
    }
}
