//! The systemd units that set up a host that routes, and start its router, at each start of the machine.
//!
//! ```text
//! /etc/cutline/setup/NAME        the options of `cutline router setup`, for cutline-setup@NAME
//! /etc/cutline/router/NAME.toml  the router's file, for cutline-router@NAME
//! /etc/systemd/system            the units, unless a package has installed them
//! ```
//!
//! Each file that is written here begins with [`MARK`]. A file without it is not ours and is neither replaced nor removed.

use crate::error::{SetupError, printable_lines, write};
use cutline_text::{Printable, systemd};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

/// The first line of each file.
const MARK: &str = "# Written by `cutline router up --persist`. `cutline router down` removes this file; delete this line to keep it.\n";

const SETUPS: &str = "/etc/cutline/setup";
const ROUTERS: &str = "/etc/cutline/router";
const UNITS: &str = "/etc/systemd/system";
/// The folders in which systemd looks for units (systemd.unit(5)).
const UNIT_FOLDERS: [&str; 4] =
    [UNITS, "/usr/local/lib/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system"];

/// The units with their text. They run the command below /usr/local/bin.
const TEMPLATES: [(&str, &str); 2] = [
    ("cutline-setup@.service", include_str!("../packaging/cutline-setup@.service")),
    ("cutline-router@.service", include_str!("../packaging/cutline-router@.service")),
];
const PACKAGED_COMMAND: &str = "/usr/local/bin/cutline";

/// The units of one setup.
#[derive(Clone, Copy, Debug)]
pub struct SystemdUnits<'n> {
    name: &'n str,
}

impl<'n> SystemdUnits<'n> {
    /// Returns the units of the setup of this name.
    pub const fn of(name: &'n str) -> Self {
        Self { name }
    }

    /// Returns whether these units were written here.
    pub fn are_written(&self) -> bool {
        is_ours(&self.setup())
    }

    /// Returns the path of the router's file.
    pub fn router(&self) -> PathBuf {
        Path::new(ROUTERS).join(format!("{}.toml", self.name))
    }

    /// Returns the path of the socket of the router's statistics, in the folder that its unit makes.
    pub fn socket(&self) -> String {
        format!("/run/cutline/{}/stats.sock", self.name)
    }

    /// Checks that units can be written, and that this command can run in them.
    ///
    /// # Errors
    /// When it cannot, with the reason.
    pub fn check(&self, command: &Path) -> Result<(), SetupError> {
        if !Path::new("/run/systemd/system").exists() {
            return Err(SetupError::Failed(
                "--persist writes units of systemd, and systemd does not run here: start `cutline router up` without --persist from the \
                 start scripts of this machine"
                    .to_owned(),
            ));
        }
        for path in [self.setup(), self.router()] {
            if path.exists() {
                let path = Printable(path.display());
                let remedy = if self.are_written() {
                    "`cutline router down` removes it".to_owned()
                } else {
                    "it was not written by this command: choose another --name, or move it away".to_owned()
                };
                return Err(SetupError::Failed(format!("{path} exists already: {remedy}")));
            }
        }
        // The units see no home folders.
        let is_hidden = ["/home", "/root", "/run/user", "/tmp", "/var/tmp"]
            .iter()
            .any(|folder| command.starts_with(folder));
        if is_hidden {
            return Err(SetupError::Failed(format!(
                "{} cannot run as a service, because services do not see this folder: install it for all users (`sudo make install-service`)",
                Printable(command.display())
            )));
        }
        Ok(())
    }

    /// Writes the files, and starts the units now and at each start of the machine. On an error everything is as before.
    ///
    /// # Errors
    /// When a file cannot be written, a unit does not start, or `stop` is set.
    pub fn start(
        &self,
        command: &Path,
        options: &str,
        router: &str,
        stop: &AtomicBool,
    ) -> Result<(), SetupError> {
        let go_on = || {
            let is_stopped = stop.load(Ordering::Relaxed);
            if is_stopped { Err(SetupError::Failed("interrupted".to_owned())) } else { Ok(()) }
        };
        let started = self.write(command, options, router).and_then(|()| {
            systemctl(&["daemon-reload"])?;
            for unit in self.names() {
                go_on()?;
                systemctl(&["enable", "--now", &unit])?;
            }
            go_on()
        });
        started.map_err(|error| match self.stop() {
            Ok(()) => error.with("all changes were undone"),
            Err(why) => error.with(&format!("undoing the changes failed, too: {why}")),
        })
    }

    /// Stops the units, now and at each start, and removes the files.
    ///
    /// # Errors
    /// When that fails.
    pub fn stop(&self) -> Result<(), SetupError> {
        let [setup, router] = self.names();
        systemctl(&["disable", "--now", &router, &setup])?;
        for path in [self.router(), self.setup()].into_iter().filter(|path| is_ours(path)) {
            remove(&path)?;
        }
        let is_last = std::fs::read_dir(SETUPS).map_or(true, |entries| entries.flatten().next().is_none());
        if is_last {
            let units = TEMPLATES.map(|(unit, _)| Path::new(UNITS).join(unit));
            for path in units.iter().filter(|path| is_ours(path)) {
                remove(path)?;
            }
            systemctl(&["daemon-reload"])?;
        }
        Ok(())
    }

    fn setup(&self) -> PathBuf {
        Path::new(SETUPS).join(self.name)
    }

    fn names(&self) -> [String; 2] {
        ["setup", "router"].map(|kind| format!("cutline-{kind}@{}.service", self.name))
    }

    fn write(&self, command: &Path, options: &str, router: &str) -> Result<(), SetupError> {
        for folder in [SETUPS, ROUTERS, UNITS] {
            std::fs::create_dir_all(folder).map_err(|error| {
                SetupError::Failed(format!("{folder} cannot be made: {error}; are you root?"))
            })?;
        }
        for (unit, text) in TEMPLATES {
            let is_installed = UNIT_FOLDERS.iter().any(|folder| Path::new(folder).join(unit).exists());
            if !is_installed {
                write(&Path::new(UNITS).join(unit), &format!("{MARK}{}", running(text, command)))?;
            }
        }
        write(&self.setup(), &format!("{MARK}OPTIONS=\"{options}\"\n"))?;
        write(&self.router(), &format!("{MARK}{router}"))
    }
}

/// The text of a unit that runs this command in place of the packaged one.
fn running(text: &str, command: &Path) -> String {
    text.replace(PACKAGED_COMMAND, &systemd::path(command))
}

fn is_ours(path: &Path) -> bool {
    std::fs::read_to_string(path).is_ok_and(|text| text.starts_with(MARK))
}

fn remove(path: &Path) -> Result<(), SetupError> {
    std::fs::remove_file(path).map_err(|error| {
        SetupError::Failed(format!("{} cannot be removed: {error}", Printable(path.display())))
    })
}

fn systemctl(arguments: &[&str]) -> Result<(), SetupError> {
    let shown = format!("`systemctl {}`", arguments.join(" "));
    // Ctrl-C goes to this process alone, which takes the changes back.
    let output = Command::new("systemctl").args(arguments).process_group(0).output();
    let output = output.map_err(|error| SetupError::Failed(format!("{shown} cannot be started: {error}")))?;
    if output.status.success() {
        return Ok(());
    }
    let errors = printable_lines(&output.stderr);
    Err(SetupError::Failed(format!("{shown} failed: {errors}; see `journalctl -u 'cutline-*'`")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A path with blanks and percent signs stays one word in each command of the units.
    #[test]
    fn the_units_run_the_command_of_this_machine() {
        for (unit, text) in TEMPLATES {
            assert_eq!(running(text, Path::new(PACKAGED_COMMAND)), text, "{unit}");
            let text = running(text, Path::new("/opt/50% more/cutline"));
            let commands: Vec<&str> = text.lines().filter(|line| line.starts_with("Exec")).collect();
            assert!(!commands.is_empty(), "{unit}");
            for line in commands.iter().filter(|line| line.contains("cutline")) {
                let (_, command) = line.split_once('=').unwrap();
                let command = command.trim_start_matches('-');
                assert!(command.starts_with("\"/opt/50%% more/cutline\" router "), "{unit}: {line}");
            }
            assert!(
                text.contains("\"/opt/50%% more/cutline\"") && !text.contains(PACKAGED_COMMAND),
                "{unit}"
            );
        }
    }
}
