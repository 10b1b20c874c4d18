//! Adding, changing, reading and removing the queues of this host's interfaces.

use crate::idle::follow_idle_time;
use crate::layout::{AccountLayout, InterfaceKey, LAYOUT, QUEUES, QdiscConfig, QdiscCounters};
use crate::leaves::packets_of_each;
use crate::pins::{self, Entry, Pins};
use crate::{KernelQueue, QdiscChange, QdiscError, QdiscSettings, in_words};
use cutline_netlink::{Interface, RootQdisc, interfaces};
use cutline_params::ParameterError;
use cutline_sys::{SysError, random};
use cutline_units::Instant;
use rustix::fs::{FlockOperation, Mode, OFlags, fstat, open, stat, statfs};
use rustix::process::geteuid;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

/// Usual place of the file system for programs.
pub const BPFFS: &str = "/sys/fs/bpf";

/// Folder of all pins.
const FOLDER: &str = "cutline";
/// Kind of the queueing discipline with a class for each transmit queue.
const MQ: &str = "mq";
/// Number of the file system (`BPF_FS_MAGIC` of linux/magic.h).
const MAGIC: i64 = 0xcafe_4a11;
/// Mode of the folder of all pins. A user that may open it could hold its lock; one that may write to it could replace the pins.
const FOLDER_MODE: u32 = 0o700;
/// Permissions to write for others than the owner.
const WRITABLE_BY_OTHERS: u32 = 0o022;
/// Instances that a command examines for memory without a queueing discipline, the first ones and as many at random: all unless `--instances` is larger.
const EXAMINED: u32 = 64;
/// Number of looks for a change in the statistics, and the time between them.
const LOOKS: u32 = 20;
const BETWEEN: Duration = Duration::from_millis(10);

/// The queues of Cutline's in the kernel, in the network namespace of the calling thread.
#[derive(Clone, Debug)]
pub struct KernelQueues {
    folder: PathBuf,
}

/// The queue of an interface.
#[derive(Clone, Debug, PartialEq)]
pub struct QdiscStatus {
    /// The interface.
    pub interface: String,
    /// Number of the interface.
    pub index: u32,
    /// Number of transmit queues of the interface that are in use; of all that its driver has allocated where that is not known.
    pub transmit_queues: u32,
    /// Number of transmit queues that have a queue each, below `mq`; 1 where the interface has one queue in the place of all.
    pub hardware_queues: u32,
    /// The queue.
    pub queue: KernelQueue,
    /// Number of its instance, or of that of the first transmit queue.
    pub instance: u32,
    /// Largest number of instances of this kind of queue, which was set with the first one.
    pub instances: u32,
    /// The configuration that was written last.
    pub config: QdiscConfig,
    /// Its statistics, those of all transmit queues together. The gauges of an empty queue have followed the idle time.
    pub counters: QdiscCounters,
    /// Part of Sieve's table of flows that is in use; `None` for TSQ, and for a process without `CAP_SYS_ADMIN`.
    pub load: Option<f64>,
}

impl QdiscStatus {
    /// Returns the name of the queue's algorithm: Sieve, or the law under TSQ.
    pub fn algorithm(&self) -> &'static str {
        let name = in_words(self.queue, &self.config);
        name.strip_prefix("TSQ over ").unwrap_or(name)
    }

    /// Checks that each transmit queue in use has a queue. One queue is enough for an interface with one transmit queue.
    ///
    /// # Errors
    /// When fewer queues are there.
    pub fn check_each_transmit_queue(&self) -> Result<(), QdiscError> {
        let (has, needs) = (self.hardware_queues, self.transmit_queues);
        if has >= needs {
            return Ok(());
        }
        Err(QdiscError::FewerQueues { interface: self.interface.clone(), has, needs })
    }
}

/// State of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeOutcome {
    /// The program has taken it over.
    InUse,
    /// The program takes it over with the next packet; none has come yet.
    WithNextPacket,
}

/// Outcome of a removal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removal {
    /// The queue was removed, with its packets.
    Removed,
    /// The queueing discipline had gone already. Its memory was freed.
    Freed,
    /// Missing interface: nothing was removed from it. Memory of queues whose interfaces have gone was freed.
    NoInterface,
}

/// Loader of the programs of queues.
pub trait QdiscLoader {
    /// Loads a queue and pins it in a folder, in which nothing is: its maps by their names, and last its link as [`LINK`](crate::LINK).
    ///
    /// # Errors
    /// When the programs are missing, the kernel refuses them, or the process may not. Some pins may be left behind.
    fn load(&self, queue: KernelQueue, folder: &Path) -> Result<(), QdiscError>;
}

/// A lock on the folder of all pins: processes that add and remove queues take turns.
struct Guard {
    _folder: rustix::fd::OwnedFd,
}

impl KernelQueues {
    /// The queues whose programs are pinned in the file system for programs at a place, such as [`BPFFS`].
    pub fn new(bpffs: &Path) -> Self {
        Self { folder: bpffs.join(FOLDER) }
    }

    /// Adds a queue at the root of an interface, or with [`QdiscSettings::mq`] one for each of its transmit queues in use. With `replace` it replaces another
    /// one. The first queue of its kind is loaded by `loader`. A queue of Cutline's that is to be replaced stays where the programs cannot be loaded or
    /// too few instances are free.
    ///
    /// # Errors
    /// When the kernel has no such queues, the interface has a queueing discipline that is not to be replaced, a setting is not allowed, or the
    /// process may not. Nothing is left behind then. After [`QdiscError::NotReplaced`] the old queueing discipline has gone.
    pub fn add(
        &self,
        name: &str,
        settings: &QdiscSettings,
        replace: bool,
        loader: &dyn QdiscLoader,
    ) -> Result<QdiscStatus, QdiscError> {
        let interface = &Interface::without_addresses(name)?;
        let queue = settings.kernel_queue()?;
        // Values that are not allowed are refused before anything is loaded, and also where nothing can be loaded.
        settings.config(interface.header, 0, 0)?;
        let queues = queues_of(interface.used_transmit_queues(), settings.mq)?;
        let _guard = self.lock()?;
        let added = self.add_locked(interface, settings, (queue, queues), replace, loader);
        self.finish(added)
    }

    fn add_locked(
        &self,
        interface: &Interface,
        settings: &QdiscSettings,
        (queue, queues): (KernelQueue, u32),
        replace: bool,
        loader: &dyn QdiscLoader,
    ) -> Result<QdiscStatus, QdiscError> {
        let (mut was_set, mut is_to_go) = (false, false);
        if let Some(root) = RootQdisc::of(interface)? {
            let old = queue_at(&root);
            if !replace {
                let interface = interface.name.clone();
                return Err(match (old, other_version(&root)) {
                    (Some(old), _) => QdiscError::AlreadyThere { interface, kind: old.kernel_name() },
                    (None, Some((kind, layout))) => self.other_version(interface, kind, layout),
                    (None, None) => {
                        QdiscError::OtherQdisc { interface, kind: root.kind, handle: root.handle }
                    }
                });
            }
            was_set = true;
            is_to_go = old.is_some() || (queues > 1 && root.kind == MQ);
        }
        self.sweep_some()?;
        let folder = self.folder.join(queue.folder());
        let mut pins = Pins::open(queue, folder.clone())?;
        if pins.is_none() {
            load(queue, loader, &folder)?;
            pins = Pins::open(queue, folder.clone())?;
        }
        let pins = pins.ok_or(QdiscError::OtherLayout { folder })?;
        let key = key(interface.index)?;
        let instance = if let Some(instance) = pins.vacant_instances(queues)? {
            instance
        } else {
            self.sweep()?;
            free_instances(&pins.entries()?, &key, pins.instances(), queues).ok_or_else(|| {
                QdiscError::NoInstance { instances: pins.instances(), kind: queue.kernel_name() }
            })?
        };
        if is_to_go {
            // The kernel has no step from one instance to another of the same kind, nor from one `mq` to another. The old queue stays until all that may
            // fail before has been done.
            RootQdisc::remove(interface)?;
        }
        let entry = Entry { key, instance, queues };
        self.set(interface, settings, &pins, &entry, replace).map_err(|error| {
            let has_gone = was_set && RootQdisc::of(interface).is_ok_and(|root| root.is_none());
            if has_gone {
                QdiscError::NotReplaced { interface: interface.name.clone(), error: Box::new(error) }
            } else {
                error
            }
        })?;
        status(&pins, queue, interface, &entry)
    }

    /// Creates the instances of an interface and sets the queueing discipline. Neither is left behind on an error.
    fn set(
        &self,
        interface: &Interface,
        settings: &QdiscSettings,
        pins: &Pins,
        entry: &Entry,
        replace: bool,
    ) -> Result<(), QdiscError> {
        self.forget(interface.index)?;
        let salt = u64::from_ne_bytes(random().map_err(|error| SysError::new("no random numbers", error))?);
        let generation = next(pins.config(entry.instance)?.generation);
        let config = settings.config(interface.header, salt, generation)?;
        let kind = settings.kernel_queue()?.kernel_name();
        let added = (|| -> Result<(), QdiscError> {
            let packets = packets_of_each(config.limit_packets, entry.queues);
            pins.create(entry, packets, settings.account_sets())?;
            configure(pins, entry, &config)?;
            pins.assign(entry)?;
            let set = if entry.queues > 1 {
                RootQdisc::add_for_each_queue(interface, kind, entry.queues, replace)
            } else {
                RootQdisc::add(interface, kind, replace)
            };
            Ok(set?)
        })();
        if added.is_err() {
            // The first error is the one that matters.
            let _forgotten = pins.forget(entry);
        }
        added
    }

    /// Changes the queue of an interface while packets wait in it.
    ///
    /// # Errors
    /// When the interface has none, a setting is not allowed, the new limit needs more memory than the queue has, or the process may not.
    pub fn change(&self, name: &str, change: &QdiscChange) -> Result<ChangeOutcome, QdiscError> {
        let interface = &Interface::without_addresses(name)?;
        let _guard = self.lock()?;
        let changed = self.change_locked(interface, change);
        self.finish(changed)
    }

    fn change_locked(
        &self,
        interface: &Interface,
        change: &QdiscChange,
    ) -> Result<ChangeOutcome, QdiscError> {
        self.sweep_some()?;
        let (pins, queue, entry) = self.entry_of(interface)?;
        let written = pins.config(entry.instance)?;
        let refused = pins.counters(&entry)?.refused_generation;
        let generation = next_but(written.generation, refused);
        let before = if written.generation == refused {
            // The change before this one was refused when its command had ended.
            pins.config_in_use(&entry)?.unwrap_or(written)
        } else {
            written
        };
        let mut config = QdiscConfig { generation, ..before.clone() };
        let slots = pins.slots(entry.instance)?.saturating_sub(1);
        change.apply(&mut config, queue, interface.header)?;
        if let Some(cutline_aqm::Limit::Bytes(_)) = change.limit {
            // The limit in packets is only the memory for it.
            config.limit_packets = config.limit_packets.min(slots.max(before.limit_packets));
        }
        if packets_of_each(config.limit_packets, entry.queues) > slots {
            let (limit, queues) = (config.limit_packets, entry.queues);
            return Err(QdiscError::LargerLimit { limit, slots, queues });
        }
        let taken = take_over(
            [&before, &config],
            |config| configure(&pins, &entry, config),
            || pins.counters(&entry),
        )?;
        taken.ok_or(QdiscError::Refused { kind: queue.kernel_name() })
    }

    /// Removes the queue of an interface, and the programs with the last queue. The interface gets the kernel's default queueing discipline. With `others`
    /// it also removes the queueing disciplines that other programs have set for some of its transmit queues.
    ///
    /// # Errors
    /// When the interface has none, other programs have set queueing disciplines for some of its transmit queues, or the process may not.
    pub fn remove(&self, name: &str, others: bool) -> Result<Removal, QdiscError> {
        // Without pins there is no memory of an interface that has gone, so a wrong name is the fault whatever the kernel can do.
        if !self.exists().unwrap_or(false) {
            Interface::without_addresses(name)?;
        }
        let _guard = self.lock()?;
        let removed = self.remove_locked(name, others);
        self.finish(removed)
    }

    fn remove_locked(&self, name: &str, others: bool) -> Result<Removal, QdiscError> {
        let interface = match Interface::without_addresses(name) {
            Ok(interface) => interface,
            // Its memory is still there after it has gone.
            Err(error) => {
                return if self.sweep()? > 0 { Ok(Removal::NoInterface) } else { Err(error.into()) };
            }
        };
        let root = RootQdisc::of(&interface)?;
        let ours = root.as_ref().filter(|root| queue_at(root).is_some());
        if let Some(root) = ours {
            let left = others_below(root);
            if !others && !left.is_empty() {
                return Err(QdiscError::OthersBelow { interface: interface.name, others: left });
            }
            RootQdisc::remove(&interface)?;
        }
        let is_freed = self.forget(interface.index)?;
        self.sweep_some()?;
        match (ours, is_freed) {
            (Some(_), _) => Ok(Removal::Removed),
            (None, true) => Ok(Removal::Freed),
            (None, false) => Err(self.missing(interface.name, root.as_ref())),
        }
    }

    /// Returns the queue of an interface.
    ///
    /// # Errors
    /// When it has none, or the process may not read it.
    pub fn show(&self, name: &str) -> Result<QdiscStatus, QdiscError> {
        let interface = &Interface::without_addresses(name)?;
        let (pins, queue, entry) = self.entry_of(interface)?;
        status(&pins, queue, interface, &entry)
    }

    /// Returns the queues of all interfaces of this network namespace, and the number of those of others.
    ///
    /// # Errors
    /// When the process may not read them.
    pub fn list(&self) -> Result<(Vec<QdiscStatus>, usize), QdiscError> {
        let (mut found, mut others) = (Vec::new(), 0);
        if !self.exists()? {
            return Ok((found, others));
        }
        let (namespace, roots) = (namespace()?, RootQdisc::all()?);
        let interfaces: BTreeMap<u32, Interface> =
            interfaces()?.into_iter().map(|interface| (interface.index, interface)).collect();
        for (queue, pins) in self.pins()? {
            for entry in pins.entries()? {
                if entry.key.namespace_inode != namespace {
                    others += 1;
                    continue;
                }
                let Some(interface) = interfaces.get(&entry.key.index) else { continue };
                if roots.get(&interface.index).and_then(queue_at) == Some(queue) {
                    found.push(status(&pins, queue, interface, &entry)?);
                }
            }
        }
        found.sort_by(|one, other| one.interface.cmp(&other.interface));
        Ok((found, others))
    }

    /// Returns whether an interface of this network namespace has a queue, by the kinds of queueing disciplines, which any process may read.
    ///
    /// # Errors
    /// When the kernel cannot be queried.
    pub fn is_any_set() -> Result<bool, QdiscError> {
        Ok(RootQdisc::all()?.values().any(|root| queue_at(root).is_some()))
    }

    fn entry_of(&self, interface: &Interface) -> Result<(Pins, KernelQueue, Entry), QdiscError> {
        let root = RootQdisc::of(interface)?;
        let missing = || self.missing(interface.name.clone(), root.as_ref());
        let queue = root.as_ref().and_then(queue_at).ok_or_else(missing)?;
        self.exists()?;
        let pins = Pins::open(queue, self.folder.join(queue.folder()))?.ok_or_else(missing)?;
        let entry = pins.entry(&key(interface.index)?)?.ok_or_else(missing)?;
        Ok((pins, queue, entry))
    }

    /// Returns the reason why an interface with a queueing discipline has no queue whose pins are here.
    fn missing(&self, interface: String, root: Option<&RootQdisc>) -> QdiscError {
        if let Some(queue) = root.and_then(queue_at) {
            let (kind, folder) = (queue.kernel_name(), self.folder.clone());
            return QdiscError::PinnedElsewhere { interface, kind, folder };
        }
        match root.and_then(other_version) {
            Some((kind, layout)) => self.other_version(interface, kind, layout),
            None => QdiscError::NotThere { interface, has: root.map(|root| root.kind.clone()) },
        }
    }

    /// Returns the error of an interface whose queue another version of Cutline has made.
    fn other_version(&self, interface: String, kind: &str, layout: u32) -> QdiscError {
        let folder = self.folder.join(kind.trim_start_matches("cutline_"));
        QdiscError::OtherVersion { interface, kind: kind.to_owned(), layout, folder }
    }

    /// Frees the instances of an interface of this namespace, which has no queueing discipline. Returns whether it had some.
    fn forget(&self, index: u32) -> Result<bool, QdiscError> {
        let (key, mut has_any) = (key(index)?, false);
        for (_, pins) in self.pins()? {
            if let Some(entry) = pins.entry(&key)? {
                pins.forget(&entry)?;
                has_any = true;
            }
        }
        Ok(has_any)
    }

    /// Frees the instances whose queueing discipline has gone: with its interface, by another program, or because adding it was interrupted. Returns the
    /// number of their interfaces.
    fn sweep(&self) -> Result<usize, QdiscError> {
        let mut freed = 0;
        for (_, pins) in self.pins()? {
            freed += sweep(&pins)?;
        }
        Ok(freed)
    }

    /// Frees instances whose queueing discipline has gone. All interfaces are looked at only where one of a few instances has gone, so the cost of a command
    /// does not grow with the number of interfaces.
    fn sweep_some(&self) -> Result<(), QdiscError> {
        let draw = u64::from_ne_bytes(random().map_err(|error| SysError::new("no random numbers", error))?);
        for (_, pins) in self.pins()? {
            for first in examined_from(pins.instances(), draw) {
                if pins.is_any_idle(first, EXAMINED)? {
                    sweep(&pins)?;
                    break;
                }
            }
        }
        Ok(())
    }

    /// Tidies up after a command. The command's own error is the one that matters.
    fn finish<T>(&self, done: Result<T, QdiscError>) -> Result<T, QdiscError> {
        let tidied = self.tidy();
        let done = done?;
        tidied.map(|()| done)
    }

    /// Unloads the programs that no interface uses, and removes the folder if it is empty.
    fn tidy(&self) -> Result<(), QdiscError> {
        for queue in KernelQueue::ALL {
            let folder = self.folder.join(queue.folder());
            let is_used = match Pins::open(queue, folder.clone())? {
                Some(pins) => !pins.is_empty()?,
                None => false,
            };
            if !is_used {
                pins::remove(&folder)?;
            }
        }
        // It stays where one of them is used.
        let _removed = fs::remove_dir(&self.folder);
        Ok(())
    }

    fn pins(&self) -> Result<Vec<(KernelQueue, Pins)>, QdiscError> {
        let mut found = Vec::new();
        for queue in KernelQueue::ALL {
            found.extend(Pins::open(queue, self.folder.join(queue.folder()))?.map(|pins| (queue, pins)));
        }
        Ok(found)
    }

    /// Returns whether there are any pins.
    fn exists(&self) -> Result<bool, QdiscError> {
        match fs::metadata(&self.folder) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
            Err(error) => {
                let failure = format!("{} cannot be read", self.folder.display());
                Err(SysError::privileged(failure, "CAP_SYS_ADMIN", error).into())
            }
        }
    }

    /// Makes the folder of all pins and locks it. The last process that removes a queue removes the folder, so the lock is on the right one only if
    /// it is still in its place.
    fn lock(&self) -> Result<Guard, QdiscError> {
        let bpffs = self.folder.parent().unwrap_or(Path::new("/"));
        // A queue that is there shows that the kernel has them, and the kernel's types are long.
        if !self.exists()? {
            cutline_sys::bpf::queueing_disciplines()?;
        }
        if statfs(bpffs).map(|found| found.f_type) != Ok(MAGIC) {
            return Err(QdiscError::NoFileSystem { path: bpffs.to_owned() });
        }
        let failure = || format!("{} cannot be made and locked", self.folder.display());
        let failed = |error: std::io::Error| SysError::privileged(failure(), "CAP_SYS_ADMIN", error);
        loop {
            match fs::DirBuilder::new().mode(FOLDER_MODE).create(&self.folder) {
                Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                    return Err(failed(error).into());
                }
                _ => {}
            }
            let opened = open(&self.folder, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
            let folder = match opened {
                Ok(folder) => folder,
                Err(rustix::io::Errno::NOENT) => continue,
                Err(errno) => return Err(failed(errno.into()).into()),
            };
            // Before the lock, which another owner of the folder could hold for ever.
            let locked = fstat(&folder).map_err(|errno| failed(errno.into()))?;
            if !is_own(locked.st_uid, locked.st_mode) {
                return Err(QdiscError::NotOwn { folder: self.folder.clone() });
            }
            rustix::fs::flock(&folder, FlockOperation::LockExclusive)
                .map_err(|errno| failed(errno.into()))?;
            if stat(&self.folder).is_ok_and(|found| found.st_ino == locked.st_ino) {
                return Ok(Guard { _folder: folder });
            }
        }
    }
}

/// Returns whether a folder with this owner and this mode belongs to root or to this user, and can be written by its owner alone. Any user can make
/// a folder in a bpffs that was mounted by hand.
fn is_own(owner: u32, mode: u32) -> bool {
    [0, geteuid().as_raw()].contains(&owner) && mode & WRITABLE_BY_OTHERS == 0
}

/// Loads a queue. Nothing is left behind if that fails.
fn load(queue: KernelQueue, loader: &dyn QdiscLoader, folder: &Path) -> Result<(), QdiscError> {
    cutline_sys::bpf::queueing_disciplines()?;
    // A loader that was killed has left some pins.
    pins::remove(folder)?;
    let done = loader.load(queue, folder);
    if done.is_err() {
        // The error of loading is the one that matters.
        let _removed = pins::remove(folder);
    }
    done
}

/// Frees the instances of a queue whose queueing discipline has gone. Returns the number of their interfaces.
fn sweep(pins: &Pins) -> Result<usize, QdiscError> {
    let mut freed = 0;
    for entry in pins.entries()? {
        if !pins.is_running(&entry)? {
            pins.forget(&entry)?;
            freed += 1;
        }
    }
    Ok(freed)
}

/// Returns the first of the [`EXAMINED`] first instances, and of as many at a random place if there are more.
fn examined_from(instances: u32, draw: u64) -> impl Iterator<Item = u32> {
    let places = u64::from(instances.saturating_sub(EXAMINED));
    let random = draw.checked_rem(places).map(|place| place as u32 + 1);
    std::iter::once(0).chain(random)
}

/// Returns the first of so many instances in a row that no other interface than that of a key has. Those of the key itself are free once its old queue is
/// removed.
fn free_instances(entries: &[Entry], key: &InterfaceKey, instances: u32, count: u32) -> Option<u32> {
    let used: BTreeSet<u32> =
        entries.iter().filter(|entry| entry.key != *key).flat_map(Entry::instances).collect();
    let last = instances.checked_sub(count)?;
    (0..=last).find(|first| used.range(*first..first + count).next().is_none())
}

/// Returns the number of queues that an interface gets: one, or with `mq` one for each of the transmit queues that are in use.
fn queues_of(used: u32, mq: bool) -> Result<u32, ParameterError> {
    match used {
        _ if !mq => Ok(1),
        queues if queues > QUEUES => {
            let allowed = format!("an interface that uses at most {QUEUES} transmit queues (`ethtool -L`)");
            Err(ParameterError::new("mq", queues, allowed))
        }
        queues => Ok(queues.max(1)),
    }
}

/// Returns the queue of Cutline's at a root, or below the `mq` there.
fn queue_at(root: &RootQdisc) -> Option<KernelQueue> {
    kinds(root).find_map(KernelQueue::named)
}

/// Returns the queue that another version of Cutline has set at a root or below the `mq` there: its kind, and the version of its layouts.
fn other_version(root: &RootQdisc) -> Option<(&str, u32)> {
    let of_kind = |kind| KernelQueue::layout_of(kind).map(|layout| (kind, layout));
    kinds(root).filter_map(of_kind).find(|(_, layout)| *layout != LAYOUT)
}

/// Returns the kinds of the queueing disciplines that queue packets: those below an `mq`, or that of the root.
fn kinds(root: &RootQdisc) -> impl Iterator<Item = &str> {
    let is_mq = root.kind == MQ;
    let at_root = (!is_mq).then_some(&root.kind);
    at_root.into_iter().chain(is_mq.then(|| root.below.values()).into_iter().flatten()).map(String::as_str)
}

/// Returns the kinds of the queueing disciplines of other programs below an `mq`, by the number of the transmit queue.
fn others_below(root: &RootQdisc) -> BTreeMap<u16, String> {
    let is_other = |(_, kind): &(&u16, &String)| KernelQueue::layout_of(kind).is_none();
    let others = root.below.iter().filter(is_other);
    others.map(|(queue, kind)| (*queue, kind.clone())).collect()
}

/// Writes the configuration of an interface for each of its instances.
fn configure(pins: &Pins, entry: &Entry, config: &QdiscConfig) -> Result<(), QdiscError> {
    entry.instances().try_for_each(|instance| pins.configure(instance, config))
}

fn status(
    pins: &Pins,
    queue: KernelQueue,
    interface: &Interface,
    entry: &Entry,
) -> Result<QdiscStatus, QdiscError> {
    let instance = entry.instance;
    let config = pins.config(instance)?;
    let accounts = match queue {
        KernelQueue::Sieve => permitted(pins.accounts(entry))?,
        KernelQueue::Tsq => None,
    };
    let load = accounts.map(|accounts| table_load(&accounts, config.sieve.tau, cutline_sys::now()));
    let mut counters = pins.counters(entry)?;
    follow_idle_time(&mut counters, &config, queue, cutline_sys::now());
    Ok(QdiscStatus {
        interface: interface.name.clone(),
        index: interface.index,
        transmit_queues: interface.used_transmit_queues(),
        hardware_queues: entry.queues,
        queue,
        instance,
        instances: pins.instances(),
        config,
        counters,
        load,
    })
}

/// Returns a value that was read; `None` if this process may not read it. The kernel opens an inner map for `CAP_SYS_ADMIN` alone, and the other
/// maps for the owner of their pins.
fn permitted<T>(read: Result<T, QdiscError>) -> Result<Option<T>, QdiscError> {
    match read {
        Err(QdiscError::System(SysError::NotPermitted { .. })) => Ok(None),
        read => read.map(Some),
    }
}

/// Returns the part of the cells that flows have used in the last `tau` ns.
fn table_load(accounts: &[AccountLayout], tau: u64, now: Instant) -> f64 {
    const USED: u16 = 0x8000;
    // `at` has 16 bits of such a unit, which are 275 s: more than the largest tau.
    let units = |nanos: u64| (nanos >> 22) as u16;
    let now = units((now - Instant::ZERO).as_nanos());
    let is_used =
        |account: &&AccountLayout| account.state & USED != 0 && now.wrapping_sub(account.at) <= units(tau);
    accounts.iter().filter(is_used).count() as f64 / accounts.len().max(1) as f64
}

/// Writes a configuration in the place of another one, and waits until the program has taken it over. Writes the other one back if the program has
/// refused it, and returns `None` then, so that the next change starts from the configuration in use.
fn take_over(
    [before, after]: [&QdiscConfig; 2],
    write: impl Fn(&QdiscConfig) -> Result<(), QdiscError>,
    counters: impl Fn() -> Result<QdiscCounters, QdiscError>,
) -> Result<Option<ChangeOutcome>, QdiscError> {
    write(after)?;
    for _ in 0..LOOKS {
        let counters = counters()?;
        if counters.generation == after.generation {
            return Ok(Some(ChangeOutcome::InUse));
        }
        if counters.refused_generation == after.generation {
            write(before)?;
            return Ok(None);
        }
        #[expect(clippy::disallowed_methods, reason = "the programs have no way to wake a process")]
        sleep(BETWEEN);
    }
    Ok(Some(ChangeOutcome::WithNextPacket))
}

/// Returns the generation after this one, which is not that of the last refused configuration: the program does not read that one again.
const fn next_but(generation: u32, refused: u32) -> u32 {
    let following = next(generation);
    if following == refused { next(following) } else { following }
}

/// Returns the generation after this one, which is never 0.
const fn next(generation: u32) -> u32 {
    let next = generation.wrapping_add(1);
    if next == 0 { 1 } else { next }
}

/// Returns the inode of the network namespace of this thread.
fn namespace() -> Result<u32, QdiscError> {
    let found = fs::metadata("/proc/thread-self/ns/net");
    let found = found.map_err(|error| SysError::new("the network namespace cannot be read", error))?;
    Ok(found.ino() as u32)
}

fn key(index: u32) -> Result<InterfaceKey, QdiscError> {
    Ok(InterfaceKey { namespace_inode: namespace()?, index })
}

#[cfg(test)]
mod tests;
