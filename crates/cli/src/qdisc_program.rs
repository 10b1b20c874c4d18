//! The program that executes `cutline qdisc`.

use crate::exit::Failure;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Name of the program.
const NAME: &str = "cutline-qdisc";

/// Becomes the program, with the arguments behind `qdisc`. It is beside this one, or in `../lib/cutline` of its folder.
pub fn execute() -> Result<(), Failure> {
    let own = std::env::current_exe().unwrap_or_default();
    let folder = own.parent().unwrap_or(Path::new("/"));
    let places: [PathBuf; 2] = ["", "../lib/cutline"].map(|place| folder.join(place).join(NAME));
    let Some(program) = places.iter().find(|place| place.is_file()) else {
        return Err(Failure::Failed(format!(
            "{NAME} is not installed beside this command: it is in the Debian package, and `make install` installs it"
        )));
    };
    let arguments = std::env::args_os().skip(2);
    // It only returns if it has failed.
    let error = Command::new(program).arg0("cutline qdisc").args(arguments).exec();
    Err(Failure::Failed(format!("{} cannot be started: {error}", program.display())))
}
