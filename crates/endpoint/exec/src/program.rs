//! Kind of a program file: whether a preloaded library would be loaded, and would see its sockets.

use crate::ExecError;
use cutline_text::Printable;
use object::elf::{self, FileHeader64};
use object::read::elf::{FileHeader as _, ProgramHeader as _};
use object::{Endianness, ReadCache, ReadRef};
use rustix::fs::getxattr;
use rustix::process::{getegid, geteuid};
use std::ffi::OsStr;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// Depth of scripts that are each other's interpreters, as in the kernel.
const SCRIPTS: usize = 4;
/// The longest first line of a script, as in the kernel.
const FIRST_LINE: u64 = 256;
/// The only architecture whose programs load this build's library.
const MACHINE: u16 = if cfg!(target_arch = "aarch64") { elf::EM_AARCH64 } else { elf::EM_X86_64 };

/// A program that was found and looked at.
#[derive(Debug)]
pub struct Program {
    /// The file.
    pub path: PathBuf,
    /// The file that is executed in the end: the program itself, or a script's interpreter.
    pub executed: PathBuf,
    /// Obstacle to a preloaded library.
    pub obstacle: Option<Obstacle>,
}

/// Reason why a preloaded library does not work with a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// Statically linked: no dynamic linker would load the library.
    Static,
    /// Written in Go, which makes system calls without libc.
    Go,
    /// Linked with another libc, whose dynamic linker does not load our library.
    OtherLibc(String),
    /// Built for another architecture.
    OtherMachine,
    /// Privileged at its start, so that the dynamic linker ignores `LD_PRELOAD`.
    Privileged,
    /// Neither an ELF file nor a script.
    Unknown,
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Static => f.write_str("it is linked statically"),
            Self::Go => f.write_str("it is written in Go, which makes system calls without libc"),
            Self::OtherLibc(name) => write!(f, "it uses another libc ({})", Printable(name)),
            Self::OtherMachine => f.write_str("it is of another architecture than this cutline"),
            Self::Privileged => f.write_str("it gets privileges when it starts, so nothing can be preloaded"),
            Self::Unknown => f.write_str("it is neither an ELF file nor a script"),
        }
    }
}

impl Obstacle {
    /// Returns the obstacle to a preloaded library that an executable file shows.
    pub fn of_file(bytes: &[u8]) -> Option<Self> {
        obstacle(bytes)
    }
}

impl Program {
    /// Finds a program as execvp(3) does, and looks at it.
    ///
    /// # Errors
    /// When there is none, or it cannot be executed.
    pub fn find(name: &OsStr) -> Result<Self, ExecError> {
        let path = locate(name)?;
        let (executed, obstacle) = look(&path, SCRIPTS)?;
        Ok(Self { path, executed, obstacle })
    }
}

/// The file of that name: the name itself where it has a slash, else the first executable file in `PATH`.
fn locate(name: &OsStr) -> Result<PathBuf, ExecError> {
    let not_found = || ExecError::NotFound(name.to_string_lossy().into_owned());
    if name.as_bytes().contains(&b'/') {
        return executable(Path::new(name)).map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => not_found(),
            _ => ExecError::NotExecutable { program: name.into(), source },
        });
    }
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
    let mut refused = None;
    for folder in std::env::split_paths(&path).filter(|_| !name.is_empty()) {
        match executable(&folder.join(name)) {
            Ok(path) => return Ok(path),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                refused = Some((folder.join(name), error));
            }
            Err(_) => {}
        }
    }
    Err(refused.map_or_else(not_found, |(program, source)| ExecError::NotExecutable { program, source }))
}

fn executable(path: &Path) -> io::Result<PathBuf> {
    let status = fs::metadata(path)?;
    if !status.is_file() || status.permissions().mode() & 0o111 == 0 {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    Ok(path.to_owned())
}

/// Looks at a file, and at a script's interpreter instead.
fn look(path: &Path, scripts: usize) -> Result<(PathBuf, Option<Obstacle>), ExecError> {
    if is_privileged(path) {
        return Ok((path.to_owned(), Some(Obstacle::Privileged)));
    }
    // A file that may be executed and not read presumably has a dynamic linker like any other.
    let Ok(file) = File::open(path) else { return Ok((path.to_owned(), None)) };
    let mut first = Vec::new();
    let is_read = (&file).take(FIRST_LINE).read_to_end(&mut first).is_ok();
    if let Some(interpreter) = interpreter(&first).filter(|_| is_read && scripts > 0) {
        return look(&interpreter?, scripts - 1);
    }
    Ok((path.to_owned(), obstacle(&ReadCache::new(file))))
}

/// The program that runs a script; that of `#!/usr/bin/env NAME` is NAME. `None` if it is no script.
fn interpreter(first: &[u8]) -> Option<Result<PathBuf, ExecError>> {
    let line = first.strip_prefix(b"#!")?.split(|&byte| byte == b'\n').next()?;
    let mut words =
        line.split(|byte| b" \t".contains(byte)).filter(|word| !word.is_empty()).map(OsStr::from_bytes);
    let interpreter = Path::new(words.next()?);
    let named = words.find(|word| !word.as_bytes().starts_with(b"-") && !word.as_bytes().contains(&b'='));
    match named.filter(|_| interpreter.file_name() == Some(OsStr::new("env"))) {
        Some(name) => Some(locate(name)),
        None => Some(locate(interpreter.as_os_str())),
    }
}

/// Returns whether the kernel makes the dynamic linker ignore its variables (`AT_SECURE`, getauxval(3)).
fn is_privileged(path: &Path) -> bool {
    let Ok(status) = fs::metadata(path) else { return false };
    let (mode, root) = (status.mode(), geteuid().is_root());
    let sets_user = mode & 0o4000 != 0 && status.uid() != geteuid().as_raw();
    let sets_group = mode & 0o2010 == 0o2010 && status.gid() != getegid().as_raw();
    let has_capabilities = || getxattr(path, "security.capability", &mut [0_u8; 64][..]).is_ok();
    sets_user || sets_group || (!root && has_capabilities())
}

fn obstacle<'d>(data: impl ReadRef<'d>) -> Option<Obstacle> {
    let Ok(header) = FileHeader64::<Endianness>::parse(data) else {
        let is_elf = data.read_bytes_at(0, 4) == Ok(&elf::ELFMAG);
        return Some(if is_elf { Obstacle::OtherMachine } else { Obstacle::Unknown });
    };
    let Ok(endian) = header.endian() else { return Some(Obstacle::Unknown) };
    if header.e_machine(endian) != MACHINE {
        return Some(Obstacle::OtherMachine);
    }
    let Ok(segments) = header.program_headers(endian, data) else { return Some(Obstacle::Unknown) };
    let linker = segments.iter().find_map(|segment| segment.interpreter(endian, data).ok()?);
    let Some(linker) = linker else { return Some(Obstacle::Static) };
    let has_go = |name: &[u8]| {
        header.sections(endian, data).is_ok_and(|sections| sections.section_by_name(endian, name).is_some())
    };
    if has_go(b".go.buildinfo") || has_go(b".note.go.buildid") {
        return Some(Obstacle::Go);
    }
    let name = linker.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    // That of glibc: ld-linux-x86-64.so.2, ld-linux-aarch64.so.1.
    (!name.starts_with(b"ld-linux")).then(|| Obstacle::OtherLibc(String::from_utf8_lossy(name).into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(folder: &Path, name: &str, bytes: &[u8], mode: u32) -> PathBuf {
        let path = folder.join(name);
        fs::write(&path, bytes).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path
    }

    fn find(path: &Path) -> Result<Program, ExecError> {
        Program::find(path.as_os_str())
    }

    #[test]
    fn a_dynamic_program_has_no_obstacle() {
        let program = Program::find(OsStr::new("sh")).unwrap();
        assert_eq!((&program.path, program.obstacle), (&program.executed, None));
    }

    #[test]
    fn a_script_is_its_interpreter() {
        let folder = tempfile::tempdir().unwrap();
        let shell = Program::find(OsStr::new("sh")).unwrap().path;
        for line in ["#!/bin/sh -e\n", "#! /usr/bin/env sh\n", "#!/usr/bin/env -S LANG=C sh -e"] {
            let script = write(folder.path(), "script", line.as_bytes(), 0o755);
            let program = find(&script).unwrap();
            assert_eq!(program.executed.file_name(), shell.file_name(), "{line}");
            assert_eq!((program.path, program.obstacle), (script, None));
        }
        let endless = write(folder.path(), "endless", b"", 0o755);
        fs::write(&endless, format!("#!{}\n", endless.display())).unwrap();
        assert_eq!(find(&endless).unwrap().obstacle, Some(Obstacle::Unknown));
    }

    #[test]
    fn exit_codes_distinguish_missing_programs_from_other_files() {
        let folder = tempfile::tempdir().unwrap();
        let missing = Program::find(OsStr::new("no-such-program-anywhere")).unwrap_err();
        assert_eq!(missing.exit_code(), 127);
        assert_eq!(find(&folder.path().join("missing")).unwrap_err().exit_code(), 127);
        assert_eq!(find(&write(folder.path(), "text", b"x", 0o644)).unwrap_err().exit_code(), 126);
        assert_eq!(find(folder.path()).unwrap_err().exit_code(), 126);
        assert_eq!(Program::find(OsStr::new("")).unwrap_err().exit_code(), 127);
    }

    #[test]
    fn each_obstacle_is_seen() {
        let folder = tempfile::tempdir().unwrap();
        let shell = fs::read(Program::find(OsStr::new("sh")).unwrap().path).unwrap();
        let changed = |name: &str, change: fn(&mut Vec<u8>)| {
            let mut bytes = shell.clone();
            change(&mut bytes);
            find(&write(folder.path(), name, &bytes, 0o755)).unwrap().obstacle
        };
        assert_eq!(changed("same", |_| {}), None);
        // The number of program headers, the machine and the class, at their offsets in an ELF header.
        assert_eq!(changed("static", |bytes| bytes[56..58].fill(0)), Some(Obstacle::Static));
        assert_eq!(changed("other", |bytes| bytes[18] = 8), Some(Obstacle::OtherMachine));
        assert_eq!(changed("small", |bytes| bytes[4] = 1), Some(Obstacle::OtherMachine));
        assert_eq!(changed("cut", |bytes| bytes.truncate(20)), Some(Obstacle::OtherMachine));
        assert_eq!(
            changed("text", |bytes| bytes.splice(.., *b"hello").for_each(drop)),
            Some(Obstacle::Unknown)
        );
        let musl = |bytes: &mut Vec<u8>| {
            let at = bytes.windows(8).position(|name| name == b"ld-linux").unwrap();
            bytes[at..at + 7].copy_from_slice(b"ld-musl");
        };
        assert!(
            matches!(changed("musl", musl), Some(Obstacle::OtherLibc(name)) if name.starts_with("ld-musl"))
        );
    }

    #[test]
    fn a_program_with_privileges_ignores_the_library() {
        let folder = tempfile::tempdir().unwrap();
        let shell = fs::read(Program::find(OsStr::new("sh")).unwrap().path).unwrap();
        let own = write(folder.path(), "own", &shell, 0o4755);
        // It sets the user that it has already.
        assert_eq!(find(&own).unwrap().obstacle, None);
        if geteuid().is_root() {
            rustix::fs::chown(&own, Some(rustix::process::Uid::from_raw(65_534)), None).unwrap();
            fs::set_permissions(&own, fs::Permissions::from_mode(0o4755)).unwrap();
            assert_eq!(find(&own).unwrap().obstacle, Some(Obstacle::Privileged));
        }
    }
}
