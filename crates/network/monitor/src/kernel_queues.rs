//! Reading of the queues in the kernel. No process publishes them, so the monitor reads them each second.

use crate::document::KernelQueueEntry;
use cutline_qdisc::{BPFFS, KernelQueues, QdiscError, QdiscStatus};
use cutline_router_service::QdiscDocument;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// Usual place of the file system with the pins of the queues.
pub const DEFAULT_BPFFS: &str = BPFFS;

/// The queues in the kernel at one time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KernelQueueReading {
    /// The queues, by interface.
    pub queues: Vec<KernelQueueEntry>,
    /// Reason why they could not be read; `None` where there are none.
    pub problem: Option<String>,
}

/// Reader of the queues in the kernel: any function, so that a test needs no kernel.
#[derive(Clone)]
pub struct KernelQueueReader(Arc<dyn Fn() -> KernelQueueReading + Send + Sync>);

impl KernelQueueReader {
    /// Creates a reader from a function, which must not wait.
    pub fn new(read: impl Fn() -> KernelQueueReading + Send + Sync + 'static) -> Self {
        Self(Arc::new(read))
    }

    /// Returns the reader of the queues whose programs are pinned in the file system for programs at a place, in the network namespace of the
    /// calling thread. Without such queues it costs one look for their folder.
    pub fn pinned(bpffs: &Path) -> Self {
        let queues = KernelQueues::new(bpffs);
        Self::new(move || read(&queues))
    }

    /// Reads the queues.
    pub fn read(&self) -> KernelQueueReading {
        (self.0)()
    }
}

impl Default for KernelQueueReader {
    fn default() -> Self {
        Self::pinned(Path::new(DEFAULT_BPFFS))
    }
}

impl fmt::Debug for KernelQueueReader {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("KernelQueueReader")
    }
}

fn read(queues: &KernelQueues) -> KernelQueueReading {
    let list = queues.list().map(|(found, _in_other_namespaces)| found);
    reading(list, || KernelQueues::is_any_set().unwrap_or(false))
}

/// Returns the reading of a list. That it cannot be read is a problem only where there are queues: `/sys/fs/bpf` is closed to a monitor
/// that is not root, on every host.
fn reading(
    list: Result<Vec<QdiscStatus>, QdiscError>,
    are_there_any: impl FnOnce() -> bool,
) -> KernelQueueReading {
    match list {
        Ok(found) => {
            let now = cutline_sys::now();
            let entry = |status: QdiscStatus| KernelQueueEntry {
                index: status.index,
                queue: QdiscDocument::new(&status, now).into(),
            };
            KernelQueueReading { queues: found.into_iter().map(entry).collect(), problem: None }
        }
        Err(error) => {
            let problem = are_there_any().then(|| error.to_string());
            KernelQueueReading { queues: Vec::new(), problem }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_without_queues_has_none_and_no_problem() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(KernelQueueReader::pinned(folder.path()).read(), KernelQueueReading::default());
        assert_eq!(
            KernelQueueReader::pinned(&folder.path().join("none")).read(),
            KernelQueueReading::default()
        );
    }

    /// A pin that is an ordinary file is as unreadable as that of another version.
    #[test]
    fn queues_that_cannot_be_read_are_a_problem_in_words() {
        let folder = tempfile::tempdir().unwrap();
        let pins = folder.path().join("cutline/tsq3");
        std::fs::create_dir_all(&pins).unwrap();
        std::fs::write(pins.join("link"), "").unwrap();
        std::fs::write(pins.join("cutline_interfaces"), "").unwrap();
        let list = || KernelQueues::new(folder.path()).list().map(|(found, _)| found);
        let found = reading(list(), || true);
        let problem = found.problem.unwrap();
        assert!(problem.contains("cutline_interfaces") && found.queues.is_empty(), "{problem}");
        // Where no interface has a queue, nothing is missed.
        assert_eq!(reading(list(), || false), KernelQueueReading::default());
    }
}
