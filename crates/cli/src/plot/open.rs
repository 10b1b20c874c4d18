//! Opening pictures with the program that the desktop has for them.

use crate::message;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Opens files. Where that is not possible, a message is printed; the files are there, and their names have been printed.
pub fn all(files: &[PathBuf]) {
    if let Some(why) = files.iter().find_map(|file| open(file.as_os_str())) {
        message::print(&format!("--open: {why}; the picture is stored in the file above"));
    }
}

/// Opens a file. Returns the reason if that is not possible.
fn open(file: &std::ffi::OsStr) -> Option<String> {
    let has = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    if !has("DISPLAY") && !has("WAYLAND_DISPLAY") {
        return Some("this session has no desktop (neither DISPLAY nor WAYLAND_DISPLAY is set)".to_owned());
    }
    // xdg-open tries many programs, and each of them would complain.
    let mut opener = Command::new("xdg-open");
    opener.arg(file).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    match opener.status() {
        Ok(status) if status.success() => None,
        Ok(status) => Some(format!("xdg-open ended with {status}")),
        Err(error) => Some(format!("xdg-open cannot be started: {error}; install xdg-utils")),
    }
}
