//! The pinned maps of a queue that is in the kernel.

use crate::layout::{
    AccountLayout, CELLS, InstanceAssignment, InterfaceKey, Layout, QdiscConfig, QdiscCounters,
};
use crate::object::LINK;
use crate::{KernelQueue, QdiscError};
use cutline_sys::SysError;
use cutline_sys::bpf::types_by_id;
use libbpf_rs::libbpf_sys::bpf_map_create_opts;
use libbpf_rs::{MapCore as _, MapFlags, MapHandle};
use rustix::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};

/// Name of the inner maps.
const INNER: &str = "cutline_inner";
/// Outer maps with the templates of their inner maps.
const STATES: (&str, &str) = ("cutline_states", "cutline_state_template");
const SLOTS: (&str, &str) = ("cutline_slots", "cutline_slot_template");
const ACCOUNTS: (&str, &str) = ("cutline_accounts", "cutline_account_template");

/// Maps of a queue.
#[derive(Debug)]
pub(crate) struct Pins {
    folder: PathBuf,
    queue: KernelQueue,
    interfaces: MapHandle,
    configs: MapHandle,
    statistics: MapHandle,
}

/// An interface with a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) key: InterfaceKey,
    pub(crate) instance: u32,
}

impl Pins {
    /// Opens the pins of a queue; `None` if it is not in the kernel.
    pub(crate) fn open(queue: KernelQueue, folder: PathBuf) -> Result<Option<Self>, QdiscError> {
        match std::fs::symlink_metadata(folder.join(LINK)) {
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
        if sizes.iter().any(|(found, known)| *found as usize != *known) {
            return Err(QdiscError::OtherLayout { folder });
        }
        Ok(Some(Self { folder, queue, interfaces, configs, statistics }))
    }

    /// Returns the number of instances.
    pub(crate) fn instances(&self) -> u32 {
        self.configs.max_entries()
    }

    /// Returns all interfaces, of every network namespace.
    pub(crate) fn entries(&self) -> Result<Vec<Entry>, QdiscError> {
        let mut entries = Vec::new();
        for key in self.interfaces.keys() {
            let failed = QdiscError::map("the interfaces with queues cannot be read");
            // One that is removed meanwhile has no value.
            let Some(value) = self.interfaces.lookup(&key, MapFlags::ANY).map_err(failed)? else { continue };
            entries.push(Entry {
                key: self.read(&key)?,
                instance: self.read::<InstanceAssignment>(&value)?.instance,
            });
        }
        Ok(entries)
    }

    pub(crate) fn assign(&self, entry: &Entry) -> Result<(), QdiscError> {
        let assignment = InstanceAssignment { instance: entry.instance, queues: 1 };
        let failed = QdiscError::map("the interface cannot be written into the map of interfaces");
        self.interfaces.update(&entry.key.bytes(), &assignment.bytes(), MapFlags::ANY).map_err(failed)
    }

    /// Returns the configuration of an instance, which is empty if it was never used.
    pub(crate) fn config(&self, instance: u32) -> Result<QdiscConfig, QdiscError> {
        let failed = QdiscError::map("the configuration of the queue cannot be read");
        let bytes = self.configs.lookup(&instance.to_ne_bytes(), MapFlags::ANY).map_err(failed)?;
        self.read(&bytes.unwrap_or_default())
    }

    /// Writes the configuration of an instance, its generation last: the program takes the configuration over when the generation has
    /// changed.
    pub(crate) fn configure(&self, instance: u32, config: &QdiscConfig) -> Result<(), QdiscError> {
        let generation = self.config(instance)?.generation;
        for config in [&QdiscConfig { generation, ..config.clone() }, config] {
            let failed = QdiscError::map("the configuration of the queue cannot be written");
            self.configs.update(&instance.to_ne_bytes(), &config.bytes(), MapFlags::ANY).map_err(failed)?;
        }
        Ok(())
    }

    pub(crate) fn counters(&self, instance: u32) -> Result<QdiscCounters, QdiscError> {
        let failed = QdiscError::map("the statistics of the queue cannot be read");
        let bytes = self.statistics.lookup(&instance.to_ne_bytes(), MapFlags::ANY).map_err(failed)?;
        self.read(&bytes.unwrap_or_default())
    }

    /// Creates the inner maps of an instance: for a state, for packets, and for a table of this many sets.
    pub(crate) fn create(&self, instance: u32, packets: u32, sets: Option<u32>) -> Result<(), QdiscError> {
        self.put(STATES, instance, 1)?;
        self.put(SLOTS, instance, packets + 1)?;
        sets.map_or(Ok(()), |sets| self.put(ACCOUNTS, instance, sets))
    }

    /// Returns the entries of the inner map of packets of an instance.
    pub(crate) fn slots(&self, instance: u32) -> Result<u32, QdiscError> {
        Ok(self.inner(SLOTS.0, instance)?.map_or(0, |inner| inner.max_entries()))
    }

    /// Returns the cells of Sieve's table of an instance.
    pub(crate) fn accounts(&self, instance: u32) -> Result<Vec<AccountLayout>, QdiscError> {
        let mut accounts = Vec::new();
        let Some(inner) = self.inner(ACCOUNTS.0, instance)? else { return Ok(accounts) };
        for set in 0..inner.max_entries() {
            let failed = QdiscError::map("the table of flows cannot be read");
            let bytes = inner.lookup(&set.to_ne_bytes(), MapFlags::ANY).map_err(failed)?;
            accounts.extend(self.read::<[AccountLayout; CELLS]>(&bytes.unwrap_or_default())?);
        }
        Ok(accounts)
    }

    /// Forgets an interface and frees the memory of its instance, with the packets in it. Missing objects are no error.
    pub(crate) fn forget(&self, entry: &Entry) -> Result<(), QdiscError> {
        let deleted = self.interfaces.delete(&entry.key.bytes());
        forgotten(deleted, "the interface cannot be removed from the map of interfaces")?;
        for (outer, _) in [STATES, SLOTS, ACCOUNTS] {
            if outer == ACCOUNTS.0 && self.queue == KernelQueue::Tsq {
                continue;
            }
            let deleted = map(&self.folder, outer)?.delete(&entry.instance.to_ne_bytes());
            forgotten(deleted, "the memory of the queue cannot be freed")?;
        }
        Ok(())
    }

    /// Creates an inner map like its template, with this many entries, and puts it into its outer map.
    fn put(&self, (outer, template): (&str, &str), instance: u32, entries: u32) -> Result<(), QdiscError> {
        let failed = || QdiscError::map("the memory of the queue cannot be made");
        let info = map(&self.folder, template)?.info().map_err(failed())?.info;
        let types: OwnedFd = types_by_id(info.btf_id).map_err(|error| {
            SysError::privileged("the types of the queue cannot be opened", "CAP_SYS_ADMIN", error)
        })?;
        let options = bpf_map_create_opts {
            sz: size_of::<bpf_map_create_opts>() as u64,
            map_flags: info.map_flags,
            btf_fd: types.as_raw_fd() as u32,
            btf_key_type_id: info.btf_key_type_id,
            btf_value_type_id: info.btf_value_type_id,
            ..bpf_map_create_opts::default()
        };
        let kind = info.type_.into();
        let inner = MapHandle::create(kind, Some(INNER), info.key_size, info.value_size, entries, &options);
        let inner = inner.map_err(failed())?;
        let value = inner.as_fd().as_raw_fd().to_ne_bytes();
        let updated = map(&self.folder, outer)?.update(&instance.to_ne_bytes(), &value, MapFlags::ANY);
        updated.map_err(failed())
    }

    /// Returns the inner map of an instance.
    fn inner(&self, outer: &str, instance: u32) -> Result<Option<MapHandle>, QdiscError> {
        let failed = || QdiscError::map("the memory of the queue cannot be read");
        let number = map(&self.folder, outer)?.lookup(&instance.to_ne_bytes(), MapFlags::ANY);
        let Some(number) = number.map_err(failed())? else { return Ok(None) };
        MapHandle::from_map_id(self.read(&number)?).map(Some).map_err(failed())
    }

    fn read<T: Layout>(&self, bytes: &[u8]) -> Result<T, QdiscError> {
        T::from_bytes(bytes).ok_or_else(|| QdiscError::OtherLayout { folder: self.folder.clone() })
    }
}

fn map(folder: &Path, name: &str) -> Result<MapHandle, QdiscError> {
    MapHandle::from_pinned_path(folder.join(name))
        .map_err(QdiscError::map(format!("the map {name} cannot be opened")))
}

fn forgotten(deleted: libbpf_rs::Result<()>, failure: &str) -> Result<(), QdiscError> {
    match deleted {
        Err(error) if error.kind() == libbpf_rs::ErrorKind::NotFound => Ok(()),
        deleted => deleted.map_err(QdiscError::map(failure)),
    }
}
