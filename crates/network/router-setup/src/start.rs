//! A router in the background, which continues when the command that started it has ended.

use crate::error::{SetupError, create, printable_lines, write};
use cutline_sys::now;
use cutline_text::Printable;
use cutline_units::Duration;
use std::os::unix::net::UnixDatagram;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

/// Time that a router may take to start.
const PATIENCE: Duration = Duration::from_secs(60);

/// Starts a router with this file in the background, and waits until it forwards.
///
/// `command` is the `cutline` command, and `file` the text of the router's file. Its messages go to `router.log` in the folder.
///
/// # Errors
/// When it ends, does not start within a minute, or `stop` is set.
pub fn start(command: &Path, folder: &Path, file: &str, stop: &AtomicBool) -> Result<(), SetupError> {
    let [path, log, notify] = ["router.toml", "router.log", "ready"].map(|name| folder.join(name));
    write(&path, file)?;
    let failed = |what: &str, path: &PathBuf, error: std::io::Error| {
        SetupError::Failed(format!("{} cannot be {what}: {error}", Printable(path.display())))
    };
    let output = create(&log)?;
    let errors = output.try_clone().map_err(|error| failed("written", &log, error))?;
    // The router reports by the protocol of service managers that it is ready.
    let ready = UnixDatagram::bind(&notify).map_err(|error| failed("made", &notify, error))?;
    let mut router = Command::new(command);
    router.args(["router", "--config"]).arg(&path).env("NOTIFY_SOCKET", &notify).env_remove("WATCHDOG_USEC");
    router.stdin(Stdio::null()).stdout(output).stderr(errors).current_dir("/").process_group(0);
    let mut router = router.spawn().map_err(|error| failed("started", &command.to_owned(), error))?;
    let result = wait(&ready, &mut router, stop);
    drop(std::fs::remove_file(&notify));
    result.map_err(|error| {
        drop(router.kill());
        drop(router.wait());
        let messages = printable_lines(&std::fs::read(&log).unwrap_or_default());
        if messages.is_empty() { error } else { error.with(&messages) }
    })
}

/// Waits until the router is ready.
fn wait(ready: &UnixDatagram, router: &mut Child, stop: &AtomicBool) -> Result<(), SetupError> {
    let failed = |why: &str| Err(SetupError::Failed(why.to_owned()));
    let until = now() + PATIENCE;
    if let Err(error) = ready.set_read_timeout(Some(std::time::Duration::from_millis(50))) {
        return failed(&format!("the router cannot be awaited: {error}"));
    }
    let mut message = [0; 4096];
    loop {
        if let Ok(length) = ready.recv(&mut message)
            && message[..length].split(|byte| *byte == b'\n').any(|line| line == b"READY=1")
        {
            return Ok(());
        }
        match router.try_wait() {
            Ok(Some(status)) => return failed(&format!("the router has ended ({status}):")),
            Ok(None) => {}
            Err(error) => return failed(&format!("the router cannot be awaited: {error}")),
        }
        if stop.load(Ordering::Relaxed) {
            return failed("interrupted");
        }
        if now() >= until {
            return failed("the router has not started within a minute");
        }
    }
}
