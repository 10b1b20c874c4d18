//! Loading of the object files of the kernel's queues by libbpf: their places, and the pins that keep their programs in the kernel.
//!
//! Everything else about these queues is in [`cutline_qdisc`], which needs no libbpf.

use cutline_qdisc::{KernelQueue, LINK, QdiscError, QdiscLoader};
use cutline_sys::SysError;
use cutline_sys::bpf::NoQueueingDisciplines;
use libbpf_rs::{MapCore as _, MapType, ObjectBuilder, PrintLevel, set_print};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::{fs, io};

/// The environment variable that may name the folder of the objects.
pub const OBJECTS_VARIABLE: &str = "CUTLINE_BPF";

/// The verifier's words where programs are interpreted, for the first call of a function of the kernel.
const NOT_COMPILED: &str = "JIT is required for calling kernel function";
/// Prefix of the names of all pinned maps.
const PREFIX: &str = "cutline_";
/// The maps that have an entry for each instance.
const BY_INSTANCE: [&str; 7] = [
    "cutline_interfaces",
    "cutline_configs",
    "cutline_statistics",
    "cutline_states",
    "cutline_slots",
    "cutline_accounts",
    "cutline_shared",
];

/// Latest messages of libbpf, which has one function for them in a process.
static MESSAGES: Mutex<String> = Mutex::new(String::new());

/// Finds the object file of a queue: in the folder of [`OBJECTS_VARIABLE`], in `bpf` or `../lib/cutline/bpf` of this program's folder,
/// or, of a build that is not installed, in `../bpf`.
///
/// # Errors
/// When it is in none of these places.
pub fn find_object(queue: KernelQueue) -> Result<PathBuf, QdiscError> {
    // Another object than the named one would be a surprise.
    let named = std::env::var_os(OBJECTS_VARIABLE).map(|folder| vec![PathBuf::from(folder)]);
    let folders = named.unwrap_or_else(|| {
        let command = std::env::current_exe().unwrap_or_default();
        let folder = command.parent().unwrap_or(Path::new("/"));
        ["bpf", "../lib/cutline/bpf", "../bpf"].map(|place| folder.join(place)).to_vec()
    });
    let found = folders.iter().map(|folder| folder.join(queue.object())).find(|path| path.is_file());
    found.ok_or_else(|| {
        let places: Vec<_> = folders.iter().map(|folder| folder.display().to_string()).collect();
        QdiscError::NoObject {
            name: queue.object(),
            places: places.join(" and "),
            variable: OBJECTS_VARIABLE,
        }
    })
}

/// Number of instances unless another is given.
pub const INSTANCES: u32 = 64;

/// A loader of object files.
#[derive(Clone, Copy, Debug)]
pub struct ObjectLoader {
    /// Number of instances of each queue: interfaces, or their hardware queues, that may have one at the same time.
    pub instances: u32,
}

impl Default for ObjectLoader {
    fn default() -> Self {
        Self { instances: INSTANCES }
    }
}

impl QdiscLoader for ObjectLoader {
    fn load(&self, queue: KernelQueue, folder: &Path) -> Result<(), QdiscError> {
        load_object(&find_object(queue)?, self.instances, folder)
    }
}

/// Loads an object with so many instances, and pins it in a folder. The pin of the link is the last one, so a folder with a link is whole.
fn load_object(path: &Path, instances: u32, folder: &Path) -> Result<(), QdiscError> {
    cutline_sys::lock(&MESSAGES).clear();
    let previous =
        set_print(Some((PrintLevel::Warn, |_, message| cutline_sys::lock(&MESSAGES).push_str(&message))));
    let done = (|| {
        let mut object = ObjectBuilder::default().open_file(path)?;
        for mut map in object.maps_mut() {
            if BY_INSTANCE.iter().any(|name| map.name() == *name) {
                map.set_max_entries(instances)?;
            }
        }
        object.load()
    })();
    set_print(previous);
    let mut object = done.map_err(|source| {
        if source.kind() == libbpf_rs::ErrorKind::PermissionDenied {
            return failed(format!("{} cannot be loaded", path.display()), source);
        }
        let log = cutline_sys::lock(&MESSAGES).clone();
        refused(path, source.to_string(), log)
    })?;
    fs::create_dir_all(folder).map_err(|error| {
        SysError::privileged(format!("{} cannot be made", folder.display()), "CAP_SYS_ADMIN", error)
    })?;
    let mut link = None;
    for mut map in object.maps_mut() {
        let name = map.name().to_string_lossy().into_owned();
        if map.map_type() == MapType::StructOps {
            link = Some(map.attach_struct_ops().map_err(|error| not_attached(&name, error))?);
        } else if name.starts_with(PREFIX) {
            let pinned = map.pin(folder.join(&name));
            pinned.map_err(|error| failed(format!("the map {name} cannot be pinned"), error))?;
        }
    }
    let mut link = link.ok_or_else(|| QdiscError::OtherLayout { folder: folder.to_owned() })?;
    link.pin(folder.join(LINK)).map_err(|error| failed("the link of the queue cannot be pinned", error))
}

/// Returns the error of an object that the kernel refuses. Only the first network namespace shows whether programs are compiled, so elsewhere the verifier's
/// reason does.
fn refused(path: &Path, why: String, log: String) -> QdiscError {
    if log.contains(NOT_COMPILED) {
        return NoQueueingDisciplines::NotCompiled.into();
    }
    QdiscError::Load { object: path.to_owned(), why, log }
}

/// Returns the error of a queue that the kernel does not add. It has each name once, also when the pins are in another bpffs.
fn not_attached(name: &str, error: libbpf_rs::Error) -> QdiscError {
    let elsewhere = match error.kind() {
        libbpf_rs::ErrorKind::AlreadyExists => {
            ", which have it already: name the bpffs of its pins with --bpffs"
        }
        _ => "",
    };
    failed(format!("{name} cannot be added to the kernel's queueing disciplines{elsewhere}"), error)
}

fn failed(failure: impl Into<String>, error: libbpf_rs::Error) -> QdiscError {
    let kind = match error.kind() {
        libbpf_rs::ErrorKind::PermissionDenied => io::ErrorKind::PermissionDenied,
        _ => io::ErrorKind::Other,
    };
    SysError::privileged(failure, "CAP_SYS_ADMIN", io::Error::new(kind, error)).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two queues of one kind with two bpffs: the kernel refuses the second one.
    #[test]
    fn a_second_place_of_pins_is_named_as_the_reason() {
        let message = |kind: io::ErrorKind| {
            not_attached("cutline_sieve", libbpf_rs::Error::from(io::Error::from(kind))).to_string()
        };
        assert!(message(io::ErrorKind::AlreadyExists).contains("--bpffs"));
        let other = message(io::ErrorKind::InvalidInput);
        assert!(other.contains("cutline_sieve cannot be added") && !other.contains("--bpffs"), "{other}");
    }

    /// As libbpf prints it.
    #[test]
    fn a_kernel_that_interprets_programs_is_named_in_any_network_namespace() {
        let log = "libbpf: prog 'cl_enqueue': BPF program load failed: -524\nlibbpf: prog 'cl_enqueue': -- BEGIN PROG LOAD LOG --\n\
                   JIT is required for calling kernel function\n-- END PROG LOAD LOG --\n";
        let message =
            |log: &str| refused(Path::new("sieve.bpf.o"), "error".to_owned(), log.to_owned()).to_string();
        assert!(message(log).contains("net.core.bpf_jit_enable=1"), "{}", message(log));
        assert!(message(log).contains("cutline router up"), "{}", message(log));
        assert!(message("R1 invalid mem access").starts_with("sieve.bpf.o cannot be loaded: error"));
    }

    #[test]
    fn a_missing_object_is_named_with_its_places() {
        let message = match find_object(KernelQueue::Tsq) {
            // A build of the objects may be beside that of the tests.
            Ok(path) => return assert!(path.ends_with("bpf/tsq.bpf.o"), "{path:?}"),
            Err(error) => error.to_string(),
        };
        assert!(message.contains("tsq.bpf.o is missing") && message.contains("lib/cutline/bpf"), "{message}");
        assert!(message.contains(OBJECTS_VARIABLE), "{message}");
    }
}
