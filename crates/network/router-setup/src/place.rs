//! Name of a setup, and the folder of its scripts.

use crate::error::{SetupError, printable_lines};
use cutline_router_service::holder;
use cutline_sys::interface::index;
use cutline_text::Printable;
use std::fmt::Write as _;
use std::io::ErrorKind;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The usual name of a setup.
pub const USUAL_NAME: &str = "cut";
/// The usual folder of all setups.
pub const USUAL_FOLDER: &str = "/run/cutline/setup";

/// Name of a setup, and the folder of its scripts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetupPlace {
    /// The name; its interfaces are NAME0 and NAME1.
    pub name: String,
    /// The folder of all setups.
    pub folder: PathBuf,
}

impl SetupPlace {
    /// Returns the folder of this setup.
    pub fn path(&self) -> PathBuf {
        self.folder.join(&self.name)
    }

    /// Returns the names of its two TUN interfaces: towards the hosts behind this one, and towards the link that fills up.
    pub fn interfaces(&self) -> [String; 2] {
        ["0", "1"].map(|end| format!("{}{end}", self.name))
    }

    /// Returns the options that choose this place, where it is not the usual one.
    pub fn options(&self) -> String {
        let mut text = String::new();
        if self.name != USUAL_NAME {
            let _ = write!(text, " --name {}", self.name);
        }
        if self.folder != Path::new(USUAL_FOLDER) {
            let _ = write!(text, " --folder {}", self.folder.display());
        }
        text
    }

    /// Makes the folder, which must not exist.
    pub(crate) fn make(&self) -> Result<PathBuf, SetupError> {
        let path = self.path();
        std::fs::create_dir_all(&self.folder).and_then(|()| std::fs::create_dir(&path)).map_err(|error| {
            let shown = Printable(path.display()).to_string();
            match error.kind() {
                ErrorKind::AlreadyExists => self.is_there(),
                _ => SetupError::Failed(format!("{shown} cannot be made: {error}; are you root?")),
            }
        })?;
        Ok(path)
    }

    /// Returns the failure of a setup that is there already.
    pub(crate) fn is_there(&self) -> SetupError {
        let path = self.path();
        SetupError::Failed(format!(
            "already set up: {} has the changes; `cutline router down{options}` undoes them, and ends its router if one runs",
            Printable(path.join("do.sh").display()),
            options = self.options()
        ))
    }

    /// Takes the setup back after an error, and returns the error with the outcome.
    #[must_use]
    pub fn take_back(&self, error: SetupError) -> SetupError {
        match self.undo() {
            Ok(()) => error.with("all changes were undone"),
            Err(why) => error.with(&format!("undoing the changes failed, too: {why}")),
        }
    }

    /// Returns the script that takes the setup back.
    ///
    /// # Errors
    /// When there is no setup, or its script cannot be read.
    pub fn undo_script(&self) -> Result<String, SetupError> {
        let script = self.path().join("undo.sh");
        std::fs::read_to_string(&script).map_err(|error| match error.kind() {
            ErrorKind::NotFound => self.is_missing(),
            _ => SetupError::Failed(format!("{} cannot be read: {error}", Printable(script.display()))),
        })
    }

    /// Returns the error that there is no such setup.
    pub fn is_missing(&self) -> SetupError {
        SetupError::Failed(format!(
            "there is no setup {:?} in {}: nothing to undo",
            self.name,
            Printable(self.folder.display())
        ))
    }

    /// Ends the router between the interfaces of the setup, if one runs.
    ///
    /// # Errors
    /// When it cannot be ended.
    pub fn end_router(&self) -> Result<(), SetupError> {
        let mut indexes = self.interfaces().into_iter().filter_map(|name| index(&name).ok());
        match indexes.find_map(holder) {
            Some(holder) => holder.end().map_err(|error| SetupError::Failed(error.to_string())),
            None => Ok(()),
        }
    }

    /// Takes the setup back, and removes its folder.
    ///
    /// # Errors
    /// When a command fails.
    pub fn undo(&self) -> Result<(), SetupError> {
        let path = self.path();
        run(&path.join("undo.sh"))?;
        std::fs::remove_dir_all(&path).map_err(|error| {
            SetupError::Failed(format!("{} cannot be removed: {error}", Printable(path.display())))
        })
    }
}

/// Runs a script. The error has the messages of its command.
pub fn run(script: &Path) -> Result<(), SetupError> {
    // Ctrl-C goes to this process alone, which undoes the changes.
    let output = Command::new("sh").arg(script).process_group(0).output();
    let output = output.map_err(|error| SetupError::Failed(format!("`sh` cannot be started: {error}")))?;
    if output.status.success() {
        return Ok(());
    }
    let errors = printable_lines(&output.stderr);
    Err(SetupError::Failed(format!("{}: {errors}", Printable(script.display()))))
}
