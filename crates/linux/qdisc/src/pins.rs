//! The pinned programs and maps of a queue that is in the kernel.

use crate::layout::{
    AccountLayout, CELLS, InstanceAssignment, InterfaceKey, Layout, QdiscConfig, QdiscCounters, sets_of_flows,
};
use crate::leaves::together;
use crate::{KernelQueue, QdiscError};
use cutline_sys::SysError;
use cutline_sys::bpf::{self, Map};
use rustix::fd::{AsFd as _, AsRawFd as _};
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Name of the pin of the link, with which a queue is in the kernel.
pub const LINK: &str = "link";
/// Name of the inner maps.
const INNER: &str = "cutline_inner";
/// Bytes of a state before the configuration in use.
const BEFORE_CONFIG: usize = 8;
/// Outer maps with the templates of their inner maps.
const STATES: (&str, &str) = ("cutline_states", "cutline_state_template");
const SLOTS: (&str, &str) = ("cutline_slots", "cutline_slot_template");
const ACCOUNTS: (&str, &str) = ("cutline_accounts", "cutline_account_template");
const SHARED: (&str, &str) = ("cutline_shared", "cutline_shared_template");
/// Failure of reading the map of interfaces.
const INTERFACES_UNREAD: &str = "the interfaces with queues cannot be read";

/// Maps of a queue.
#[derive(Debug)]
pub(crate) struct Pins {
    folder: PathBuf,
    queue: KernelQueue,
    interfaces: Map,
    configs: Map,
    statistics: Map,
}

/// An interface with a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) key: InterfaceKey,
    /// The first instance.
    pub(crate) instance: u32,
    /// Number of hardware queues with an instance each; 1 for one queue.
    pub(crate) queues: u32,
}

impl Entry {
    /// Returns all instances.
    pub(crate) fn instances(&self) -> Range<u32> {
        self.instance..self.instance.saturating_add(self.queues)
    }
}

impl Pins {
    /// Opens the pins of a queue; `None` if it is not in the kernel.
    pub(crate) fn open(queue: KernelQueue, folder: PathBuf) -> Result<Option<Self>, QdiscError> {
        match fs::symlink_metadata(folder.join(LINK)) {
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => {
                let failure = format!("{} cannot be read", folder.display());
                return Err(SysError::privileged(failure, "CAP_SYS_ADMIN", error).into());
            }
        }
        let interfaces = map(&folder, "cutline_interfaces")?;
        let configs = map(&folder, "cutline_configs")?;
        let statistics = map(&folder, "cutline_statistics")?;
        let sizes = [
            (interfaces.key_size(), InterfaceKey::SIZE),
            (interfaces.value_size(), InstanceAssignment::SIZE),
            (configs.value_size(), QdiscConfig::SIZE),
            (statistics.value_size(), QdiscCounters::SIZE),
        ];
        if sizes.iter().any(|(found, known)| found != known) {
            return Err(QdiscError::OtherLayout { folder });
        }
        Ok(Some(Self { folder, queue, interfaces, configs, statistics }))
    }

    /// Returns the number of instances.
    pub(crate) fn instances(&self) -> u32 {
        self.configs.entries()
    }

    /// Returns all interfaces, of every network namespace.
    pub(crate) fn entries(&self) -> Result<Vec<Entry>, QdiscError> {
        let pairs = self.interfaces.pairs().map_err(QdiscError::map(INTERFACES_UNREAD))?;
        pairs.iter().map(|(key, value)| self.read_entry(self.read(key)?, value)).collect()
    }

    /// Returns the entry of an interface.
    pub(crate) fn entry(&self, key: &InterfaceKey) -> Result<Option<Entry>, QdiscError> {
        let value = self.interfaces.lookup(&key.bytes()).map_err(QdiscError::map(INTERFACES_UNREAD))?;
        value.map(|value| self.read_entry(key.clone(), &value)).transpose()
    }

    /// Returns whether no interface has a queue.
    pub(crate) fn is_empty(&self) -> Result<bool, QdiscError> {
        self.interfaces.is_empty().map_err(QdiscError::map(INTERFACES_UNREAD))
    }

    fn read_entry(&self, key: InterfaceKey, value: &[u8]) -> Result<Entry, QdiscError> {
        let InstanceAssignment { instance, queues } = self.read(value)?;
        Ok(Entry { key, instance, queues: queues.max(1) })
    }

    pub(crate) fn assign(&self, entry: &Entry) -> Result<(), QdiscError> {
        let assignment = InstanceAssignment { instance: entry.instance, queues: entry.queues };
        let failed = QdiscError::map("the interface cannot be written into the map of interfaces");
        self.interfaces.update(&entry.key.bytes(), &assignment.bytes()).map_err(failed)
    }

    /// Returns the configuration of an instance, which is empty if it was never used.
    pub(crate) fn config(&self, instance: u32) -> Result<QdiscConfig, QdiscError> {
        let failed = QdiscError::map("the configuration of the queue cannot be read");
        let bytes = self.configs.lookup(&instance.to_ne_bytes()).map_err(failed)?;
        self.read(&bytes.unwrap_or_default())
    }

    /// Returns the configuration that the program of an interface uses, for several instances that of the latest packet; `None` for an instance without
    /// memory.
    pub(crate) fn config_in_use(&self, entry: &Entry) -> Result<Option<QdiscConfig>, QdiscError> {
        let mut latest = (0, entry.instance);
        for instance in entry.instances() {
            let counters = self.counters(&Entry { instance, queues: 1, ..entry.clone() })?;
            latest = latest.max((counters.latest, instance));
        }
        let (_, instance) = latest;
        let Some(states) = self.inner(STATES.0, instance)? else { return Ok(None) };
        let failed = QdiscError::map("the configuration in use cannot be read");
        let state = states.lookup(&0_u32.to_ne_bytes()).map_err(failed)?.unwrap_or_default();
        let config = state.get(BEFORE_CONFIG..BEFORE_CONFIG + QdiscConfig::SIZE).unwrap_or_default();
        self.read(config).map(Some)
    }

    /// Writes the configuration of an instance, its generation last: the program takes the configuration over when the generation has
    /// changed.
    pub(crate) fn configure(&self, instance: u32, config: &QdiscConfig) -> Result<(), QdiscError> {
        let generation = self.config(instance)?.generation;
        for config in [&QdiscConfig { generation, ..config.clone() }, config] {
            let failed = QdiscError::map("the configuration of the queue cannot be written");
            self.configs.update(&instance.to_ne_bytes(), &config.bytes()).map_err(failed)?;
        }
        Ok(())
    }

    /// Returns the statistics of an interface: those of all its instances together.
    pub(crate) fn counters(&self, entry: &Entry) -> Result<QdiscCounters, QdiscError> {
        together(&self.counters_of_each(entry.instance, entry.queues)?)
            .ok_or_else(|| QdiscError::OtherLayout { folder: self.folder.clone() })
    }

    /// Returns the statistics of instances in a row.
    fn counters_of_each(&self, first: u32, count: u32) -> Result<Vec<QdiscCounters>, QdiscError> {
        let failed = QdiscError::map("the statistics of the queue cannot be read");
        let values = self.statistics.values(first, count).map_err(failed)?;
        values.chunks_exact(QdiscCounters::SIZE).map(|value| self.read(value)).collect()
    }

    /// Returns whether any instance of an interface has a running queueing discipline.
    pub(crate) fn is_running(&self, entry: &Entry) -> Result<bool, QdiscError> {
        let counters = self.counters_of_each(entry.instance, entry.queues)?;
        Ok(counters.iter().any(|counters| counters.running != 0))
    }

    /// Returns whether one of these instances in a row has memory and no running queueing discipline.
    pub(crate) fn is_any_idle(&self, first: u32, count: u32) -> Result<bool, QdiscError> {
        let states = map(&self.folder, STATES.0)?;
        for (instance, counters) in (first..).zip(self.counters_of_each(first, count)?) {
            if counters.running == 0 && has_memory(&states, instance)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the first of so many instances in a row without memory, as far as a few looks find them.
    pub(crate) fn vacant_instances(&self, count: u32) -> Result<Option<u32>, QdiscError> {
        let states = map(&self.folder, STATES.0)?;
        vacant(self.instances(), count, |instance| has_memory(&states, instance).map(|has| !has))
    }

    /// Creates the inner maps of the instances of an interface: for a state, for packets, and for a table of this many sets each, filters included, and for
    /// the state that several of them share.
    pub(crate) fn create(&self, entry: &Entry, packets: u32, sets: Option<u32>) -> Result<(), QdiscError> {
        for instance in entry.instances() {
            self.put(STATES, instance, 1)?;
            self.put(SLOTS, instance, packets + 1)?;
            sets.map_or(Ok(()), |sets| self.put(ACCOUNTS, instance, sets))?;
        }
        if entry.queues == 1 {
            return Ok(());
        }
        if !self.folder.join(SHARED.0).exists() {
            return Err(QdiscError::OtherLayout { folder: self.folder.clone() });
        }
        self.put(SHARED, entry.instance, 1)
    }

    /// Returns the entries of the inner map of packets of an instance.
    pub(crate) fn slots(&self, instance: u32) -> Result<u32, QdiscError> {
        Ok(self.inner(SLOTS.0, instance)?.map_or(0, |inner| inner.entries()))
    }

    /// Returns the cells of Sieve's tables of an interface.
    pub(crate) fn accounts(&self, entry: &Entry) -> Result<Vec<AccountLayout>, QdiscError> {
        let mut accounts = Vec::new();
        for instance in entry.instances() {
            let Some(inner) = self.inner(ACCOUNTS.0, instance)? else { continue };
            let failed = QdiscError::map("the table of flows cannot be read");
            let sets = inner.values(0, sets_of_flows(inner.entries())).map_err(failed)?;
            for set in sets.chunks_exact(inner.value_size().max(1)) {
                accounts.extend(self.read::<[AccountLayout; CELLS]>(set)?);
            }
        }
        Ok(accounts)
    }

    /// Forgets an interface and frees the memory of its instances, with the packets in it. Missing objects are no error.
    pub(crate) fn forget(&self, entry: &Entry) -> Result<(), QdiscError> {
        let failed = QdiscError::map("the interface cannot be removed from the map of interfaces");
        self.interfaces.delete(&entry.key.bytes()).map_err(failed)?;
        for (outer, _) in [STATES, SLOTS, ACCOUNTS, SHARED] {
            let is_without_accounts = outer == ACCOUNTS.0 && self.queue == KernelQueue::Tsq;
            if is_without_accounts || (outer == SHARED.0 && entry.queues == 1) {
                continue;
            }
            let outer = map(&self.folder, outer)?;
            for instance in entry.instances() {
                let failed = QdiscError::map("the memory of the queue cannot be freed");
                outer.delete(&instance.to_ne_bytes()).map_err(failed)?;
            }
        }
        Ok(())
    }

    /// Creates an inner map like its template, with this many entries, and puts it into its outer map.
    fn put(&self, (outer, template): (&str, &str), instance: u32, entries: u32) -> Result<(), QdiscError> {
        let failed = || QdiscError::map("the memory of the queue cannot be made");
        let inner = map(&self.folder, template)?.create_like(INNER, entries).map_err(failed())?;
        let value = inner.as_fd().as_raw_fd().to_ne_bytes();
        map(&self.folder, outer)?.update(&instance.to_ne_bytes(), &value).map_err(failed())
    }

    /// Returns the inner map of an instance.
    fn inner(&self, outer: &str, instance: u32) -> Result<Option<Map>, QdiscError> {
        let failed = || QdiscError::map("the memory of the queue cannot be read");
        let number = map(&self.folder, outer)?.lookup(&instance.to_ne_bytes());
        let Some(number) = number.map_err(failed())? else { return Ok(None) };
        Map::by_id(self.read(&number)?).map(Some).map_err(failed())
    }

    fn read<T: Layout>(&self, bytes: &[u8]) -> Result<T, QdiscError> {
        T::from_bytes(bytes).ok_or_else(|| QdiscError::OtherLayout { folder: self.folder.clone() })
    }
}

/// Returns whether an instance has memory.
fn has_memory(states: &Map, instance: u32) -> Result<bool, QdiscError> {
    let failed = QdiscError::map("the memory of the queue cannot be read");
    states.lookup(&instance.to_ne_bytes()).map(|state| state.is_some()).map_err(failed)
}

/// Returns the first of `count` vacant instances in a row. The number of looks grows with the logarithm of the number of instances. They find the first
/// vacant ones if those in use are the first instances of all, and other ones or none if they are not.
fn vacant(
    instances: u32,
    count: u32,
    is_vacant: impl Fn(u32) -> Result<bool, QdiscError>,
) -> Result<Option<u32>, QdiscError> {
    let Some(last) = instances.checked_sub(count) else { return Ok(None) };
    // The instance before `least` is in use, unless it is 0.
    let (mut least, mut found) = (0, 0);
    while !is_vacant(found)? {
        if found == last {
            return Ok(None);
        }
        least = found + 1;
        found = (2 * found).clamp(least, last);
    }
    while least < found {
        let middle = least + (found - least) / 2;
        if is_vacant(middle)? {
            found = middle;
        } else {
            least = middle + 1;
        }
    }
    for behind in found + 1..found + count {
        if !is_vacant(behind)? {
            return Ok(None);
        }
    }
    Ok(Some(found))
}

fn map(folder: &Path, name: &str) -> Result<Map, QdiscError> {
    Map::pinned(&folder.join(name)).map_err(QdiscError::map(format!("the map {name} cannot be opened")))
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
    if let Ok(link) = bpf::pinned(&folder.join(LINK)) {
        // An older kernel cannot detach it. The pin's end does the same a moment later.
        let _detached = bpf::detach(link);
    }
    // A folder with a link counts as whole, so the link is the first pin to go: a process that is killed here leaves no folder that cannot be opened.
    match fs::remove_file(folder.join(LINK)) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(failed(error).into()),
        _ => {}
    }
    for entry in entries {
        let path = entry.map_err(failed)?.path();
        match fs::remove_file(&path) {
            // The list may have the link, which has gone.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            removed => removed.map_err(failed)?,
        }
    }
    Ok(fs::remove_dir(folder).map_err(failed)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// Tens of thousands of interfaces are added with a few looks each.
    #[test]
    fn a_vacant_instance_is_found_without_looking_at_all() {
        const INSTANCES: u32 = 50_000;
        for used in [0, 1, 2, 3, 4, 5, 1000, 40_000, INSTANCES - 1] {
            let looks = Cell::new(0);
            let is_vacant = |instance: u32| {
                looks.set(looks.get() + 1);
                Ok(instance >= used)
            };
            assert_eq!(vacant(INSTANCES, 1, is_vacant).unwrap(), Some(used));
            assert!(looks.get() <= 34, "{} looks", looks.get());
        }
        assert_eq!(vacant(INSTANCES, 1, |_| Ok(false)).unwrap(), None);
        assert_eq!(vacant(0, 1, |_| Ok(true)).unwrap(), None);
    }

    #[test]
    fn vacant_instances_in_a_row_end_before_the_next_one_in_use() {
        let among = |used: &'static [u32], count| {
            vacant(12, count, |instance| Ok(!used.contains(&instance))).unwrap()
        };
        assert_eq!([among(&[], 12), among(&[], 13), among(&[0], 11)], [Some(0), None, Some(1)]);
        assert_eq!([among(&[0, 3], 1), among(&[0, 1, 3], 1)], [Some(1), Some(2)]);
        // The two before 3 are too few. The caller then looks at all.
        assert_eq!(among(&[0, 3], 3), None);
        assert_eq!(among(&[0, 1, 2, 4, 8, 11], 1), None);
        assert_eq!(among(&[0, 1, 2, 4, 8], 1), Some(9));
    }

    #[test]
    fn a_folder_that_does_not_exist_has_nothing_to_remove() {
        let folder = tempfile::tempdir().unwrap();
        remove(&folder.path().join("none")).unwrap();
    }

    /// A removal that ends early, as by a kill, leaves a folder without a link, which the next command removes.
    #[test]
    fn the_link_is_removed_before_the_maps() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(LINK), "").unwrap();
        // Folders cannot be removed as pins are, so the removal ends at the first of them.
        for number in 0..32 {
            fs::create_dir(folder.path().join(format!("map{number}"))).unwrap();
        }
        remove(folder.path()).unwrap_err();
        assert!(!folder.path().join(LINK).exists());
        assert!(Pins::open(KernelQueue::Tsq, folder.path().to_owned()).unwrap().is_none());
    }

    #[test]
    fn a_removal_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let pins = folder.path().join("tsq3");
        fs::create_dir(&pins).unwrap();
        for name in [LINK, "cutline_configs", "cutline_states"] {
            fs::write(pins.join(name), "").unwrap();
        }
        remove(&pins).unwrap();
        assert!(!pins.exists());
    }
}
