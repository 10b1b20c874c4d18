//! Objects of the programs: their places, loading, and the pins that keep them in the kernel.

use crate::{KernelQueue, QdiscError};
use cutline_sys::SysError;
use libbpf_rs::{MapCore as _, MapType, ObjectBuilder, PrintLevel, set_print};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// The environment variable that may name the folder of the objects.
pub const OBJECTS_VARIABLE: &str = "CUTLINE_BPF";

/// Name of the pin of the link, with which a queue is in the kernel.
pub(crate) const LINK: &str = "link";
/// Prefix of the names of all pinned maps.
const PREFIX: &str = "cutline_";
/// The maps that have an entry for each instance.
const BY_INSTANCE: [&str; 6] = [
    "cutline_interfaces",
    "cutline_configs",
    "cutline_statistics",
    "cutline_states",
    "cutline_slots",
    "cutline_accounts",
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

/// Loads a queue with so many instances, and pins it in a folder. The pin of the link is the last one, so a folder with a link is whole.
pub(crate) fn load(queue: KernelQueue, instances: u32, folder: &Path) -> Result<(), QdiscError> {
    cutline_sys::bpf::queueing_disciplines()?;
    let object = find_object(queue)?;
    remove(folder)?;
    let done = load_object(&object, instances, folder);
    if done.is_err() {
        // The error of loading is the one that matters.
        let _removed = remove(folder);
    }
    done
}

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
            let failure = format!("{} cannot be loaded", path.display());
            return QdiscError::System(SysError::NotPermitted { failure, capability: "CAP_SYS_ADMIN" });
        }
        QdiscError::Load { object: path.to_owned(), source, log: cutline_sys::lock(&MESSAGES).clone() }
    })?;
    fs::create_dir_all(folder).map_err(|error| {
        SysError::privileged(format!("{} cannot be made", folder.display()), "CAP_SYS_ADMIN", error)
    })?;
    let mut link = None;
    for mut map in object.maps_mut() {
        let name = map.name().to_string_lossy().into_owned();
        if map.map_type() == MapType::StructOps {
            let attached = map.attach_struct_ops();
            link = Some(attached.map_err(QdiscError::map(format!(
                "{name} cannot be added to the kernel's queueing disciplines"
            )))?);
        } else if name.starts_with(PREFIX) {
            map.pin(folder.join(&name))
                .map_err(QdiscError::map(format!("the map {name} cannot be pinned")))?;
        }
    }
    let mut link = link.ok_or_else(|| QdiscError::OtherLayout { folder: folder.to_owned() })?;
    link.pin(folder.join(LINK)).map_err(QdiscError::map("the link of the queue cannot be pinned"))
}

/// Removes a queue from the kernel, with all pins in its folder. It is no error if there are none.
pub(crate) fn remove(folder: &Path) -> Result<(), QdiscError> {
    let failed = |error| SysError::new(format!("the pins in {} cannot be removed", folder.display()), error);
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(error).into()),
    };
    // Detaching waits until the kernel has forgotten the name; removing the pin does not.
    let link = folder.join(LINK);
    if link.exists()
        && let Ok(link) = libbpf_rs::Link::open(link)
    {
        // An older kernel cannot detach it. The pin's end does the same a moment later.
        let _detached = link.detach();
    }
    for entry in entries {
        fs::remove_file(entry.map_err(failed)?.path()).map_err(failed)?;
    }
    Ok(fs::remove_dir(folder).map_err(failed)?)
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn a_folder_that_does_not_exist_has_nothing_to_remove() {
        let folder = tempfile::tempdir().unwrap();
        remove(&folder.path().join("none")).unwrap();
    }
}
