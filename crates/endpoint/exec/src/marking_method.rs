//! Choice of the method that marks a program's sockets, and the limits of each method.

use crate::{ExecError, Program};
use cutline_text::Printable;
use std::path::PathBuf;

/// Method that marks a program's sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkingMethod {
    /// A library inside the program.
    Preload,
    /// A control group with eBPF programs.
    Cgroup,
}

/// The chosen method.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MarkingChoice {
    /// The method.
    pub method: MarkingMethod,
    /// Reason, as a sentence about the program.
    pub because: String,
}

impl MarkingMethod {
    /// Returns the name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Preload => "preload",
            Self::Cgroup => "cgroup",
        }
    }

    /// Returns the limits of the method.
    pub const fn limits(self) -> &'static [&'static str] {
        match self {
            Self::Preload => &[
                "static programs and Go programs among the children are not marked, nor are the look-ups of names in libc",
                "datagrams of non-blocking sockets are counted when they exceed the rate, and not delayed",
                "datagrams that libc writes by itself (stdio, dprintf) are marked, but neither paced nor counted; the report names them",
            ],
            Self::Cgroup => &[
                "datagrams are not paced: of UDP, the kernel only paces datagrams in the queue `fq`",
                "on interfaces that appear later, control messages keep their marks, and so do IPv4 packets of IPv6 sockets",
                "nothing is counted",
            ],
        }
    }
}

/// Chooses the method: the preloaded library where it works, else a control group. `asked` is the user's choice; `library` finds the library,
/// and `cgroups` fails with the reason why control groups are not available.
///
/// # Errors
/// When no method works, or the requested one does not.
pub fn choose(
    program: &Program,
    asked: Option<MarkingMethod>,
    library: impl FnOnce() -> Result<PathBuf, ExecError>,
    cgroups: impl FnOnce() -> Result<(), String>,
) -> Result<MarkingChoice, ExecError> {
    let name = program.executed.file_name().unwrap_or(program.executed.as_os_str()).to_string_lossy();
    let name = Printable(name);
    let preload = |because| MarkingChoice { method: MarkingMethod::Preload, because };
    match (asked, &program.obstacle) {
        (Some(MarkingMethod::Preload), None) => library().map(|_| preload("it was requested".to_owned())),
        (None, None) => match library() {
            Ok(_) => Ok(preload(format!("{name} is a dynamic program"))),
            Err(missing @ ExecError::NoLibrary { .. }) if cgroups().is_ok() => {
                Ok(MarkingChoice { method: MarkingMethod::Cgroup, because: missing.to_string() })
            }
            Err(error) => Err(error),
        },
        (Some(MarkingMethod::Preload), Some(obstacle)) => {
            Err(ExecError::Unreachable(format!("--by preload does not work with {name}: {obstacle}")))
        }
        (Some(MarkingMethod::Cgroup), _) => match cgroups() {
            Ok(()) => {
                Ok(MarkingChoice { method: MarkingMethod::Cgroup, because: "it was requested".to_owned() })
            }
            Err(why) => Err(ExecError::Unreachable(format!("--by cgroup does not work: {why}"))),
        },
        (None, Some(obstacle)) => match cgroups() {
            Ok(()) => Ok(MarkingChoice {
                method: MarkingMethod::Cgroup,
                because: format!("{name} cannot be preloaded: {obstacle}"),
            }),
            Err(why) => Err(ExecError::Unreachable(format!(
                "the sockets of {name} cannot be reached: it cannot be preloaded ({obstacle}), and control groups are not \
                 available ({why})"
            ))),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Obstacle;

    fn program(obstacle: Option<Obstacle>) -> Program {
        Program { path: "/usr/bin/it".into(), executed: "/usr/bin/it".into(), obstacle }
    }

    #[expect(clippy::unnecessary_wraps, reason = "the type that `choose` takes")]
    fn found() -> Result<PathBuf, ExecError> {
        Ok("/lib/it.so".into())
    }

    fn missing() -> Result<PathBuf, ExecError> {
        Err(ExecError::NoLibrary { name: "it.so", variable: "VARIABLE" })
    }

    #[test]
    fn the_library_is_preferred_if_it_works() {
        let never = || panic!("nobody asks for control groups");
        assert_eq!(choose(&program(None), None, found, never).unwrap().method, MarkingMethod::Preload);
        assert_eq!(
            choose(&program(None), Some(MarkingMethod::Preload), found, never).unwrap().method,
            MarkingMethod::Preload
        );
        assert_eq!(
            choose(&program(None), Some(MarkingMethod::Cgroup), missing, || Ok(())).unwrap().method,
            MarkingMethod::Cgroup
        );
        let choice = choose(&program(Some(Obstacle::Go)), None, missing, || Ok(())).unwrap();
        assert_eq!((choice.method, choice.because.contains("Go")), (MarkingMethod::Cgroup, true));
    }

    #[test]
    fn a_missing_library_is_never_announced() {
        let choice = choose(&program(None), None, missing, || Ok(())).unwrap();
        assert_eq!((choice.method, choice.because.contains("it.so")), (MarkingMethod::Cgroup, true));
        let refuse = || Err("not root".to_owned());
        for asked in [None, Some(MarkingMethod::Preload)] {
            let error = choose(&program(None), asked, missing, refuse).unwrap_err();
            assert!(matches!(error, ExecError::NoLibrary { .. }), "{error}");
        }
    }

    #[test]
    fn the_error_without_a_method_has_all_reasons() {
        let refuse = || Err("not root".to_owned());
        let error = choose(&program(Some(Obstacle::Static)), None, found, refuse).unwrap_err();
        assert!(
            error.to_string().contains("statically") && error.to_string().contains("not root"),
            "{error}"
        );
        assert_eq!(error.exit_code(), 125);
        assert!(choose(&program(None), Some(MarkingMethod::Cgroup), found, refuse).is_err());
        assert!(
            choose(&program(Some(Obstacle::Static)), Some(MarkingMethod::Preload), found, refuse).is_err()
        );
    }
}
