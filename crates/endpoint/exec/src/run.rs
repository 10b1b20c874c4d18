//! Starting the program, and waiting for it.

use crate::cgroup::{self, Attached, ControlGroup};
use crate::counters::Counters;
use crate::ending::ProgramEnding;
use crate::library::find_library;
use crate::options::ExecOptions;
use crate::publication::RunningProgram;
use crate::report::ExecDocument;
use crate::{ExecError, MarkingChoice, MarkingMethod, Program};
use cutline_marking::MarkSettings;
use cutline_marking::settings::{TABLE_VARIABLE, VARIABLE};
use cutline_sys::now;
use cutline_sys::signal::Forwarding;
use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;
use std::sync::mpsc::channel;

/// The dynamic linker's variable of libraries that are loaded first (ld.so(8)).
const PRELOAD: &str = "LD_PRELOAD";

/// Starts a program, passes signals on to it, and waits until it ends. Returns its exit status and its traffic.
///
/// # Errors
/// When it was not started.
pub fn run(
    program: &Program,
    choice: &MarkingChoice,
    options: &ExecOptions,
) -> Result<(ProgramEnding, ExecDocument), ExecError> {
    let (name, arguments) =
        options.command.split_first().ok_or_else(|| ExecError::NotFound(String::new()))?;
    let mut command = Command::new(&program.path);
    command.arg0(name).args(arguments);
    let (counters, group) = match choice.method {
        MarkingMethod::Preload => (Some(Counters::new()?), None),
        MarkingMethod::Cgroup => (None, Some(Marked::new(&options.settings)?)),
    };
    if let Some(counters) = &counters {
        command.env(PRELOAD, preload(&find_library()?, std::env::var_os(PRELOAD)));
        command.env(VARIABLE, options.settings.to_string()).env(TABLE_VARIABLE, counters.path());
    }
    let system = |failure| move |source: io::Error| ExecError::System { failure, source };
    let start = now();
    let signals = Forwarding::prepare().map_err(system("signals cannot be caught"))?;
    let mut child = signals.start(&mut command, |command| {
        let mut spawn = || {
            command
                .spawn()
                .map_err(|source| ExecError::NotExecutable { program: program.path.clone(), source })
        };
        match &group {
            Some(marked) => marked.group.within(spawn)?,
            None => spawn(),
        }
    })?;
    let running =
        RunningProgram { process: child.id(), method: choice.method, options, counters: counters.as_ref() };
    let status = std::thread::scope(|scope| {
        let (end, ended) = channel();
        scope.spawn(move || running.publish(&ended));
        let status = child.wait();
        drop(end);
        status
    });
    let status = status.map_err(system("the program cannot be waited for"))?;
    signals.stop();
    let ending = ProgramEnding::of(status);
    let elapsed = now().saturating_since(start);
    let table = counters.as_ref().and_then(Counters::read);
    let shown = name.to_string_lossy().into_owned();
    Ok((ending, ExecDocument::new(shown, choice, options, ending, elapsed, table.as_ref())))
}

/// A control group whose sockets are marked. The programs are detached before the group is removed.
struct Marked {
    _attached: Attached,
    group: ControlGroup,
}

impl Marked {
    fn new(settings: &MarkSettings) -> Result<Self, ExecError> {
        cgroup::sweep();
        let group = ControlGroup::create()?;
        Ok(Self { _attached: Attached::new(&group, settings)?, group })
    }
}

/// Our library before those that are preloaded already.
fn preload(library: &Path, others: Option<OsString>) -> OsString {
    let mut value = library.as_os_str().to_owned();
    if let Some(others) = others.filter(|others| !others.is_empty()) {
        value.push(":");
        value.push(others);
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_are_those_of_a_shell() {
        let codes = [ProgramEnding::Code(0), ProgramEnding::Code(7), ProgramEnding::Signal(15)]
            .map(ProgramEnding::exit_code);
        assert_eq!(codes, [0, 7, 143]);
    }

    #[test]
    fn other_preloaded_libraries_stay() {
        let library = Path::new("/lib/ours.so");
        assert_eq!(preload(library, None), "/lib/ours.so");
        assert_eq!(preload(library, Some("".into())), "/lib/ours.so");
        assert_eq!(preload(library, Some("a.so b.so".into())), "/lib/ours.so:a.so b.so");
    }
}
