//! Maps by bpf(2): reading and writing their entries, and maps like another one.

use super::{call, call_mut, create};
use rustix::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// The commands (`enum bpf_cmd`).
const MAP_CREATE: libc::c_long = 0;
const MAP_LOOKUP: libc::c_long = 1;
const MAP_UPDATE: libc::c_long = 2;
const MAP_DELETE: libc::c_long = 3;
const MAP_NEXT_KEY: libc::c_long = 4;
const OBJECT_GET: libc::c_long = 7;
const MAP_BY_ID: libc::c_long = 14;
const INFO: libc::c_long = 15;
const TYPES_BY_ID: libc::c_long = 19;
const MAP_LOOKUP_BATCH: libc::c_long = 24;
const LINK_DETACH: libc::c_long = 34;

/// Most entries that are read by one call.
const MOST_AT_ONCE: u32 = 4096;

/// Type of a map (`enum bpf_map_type` of linux/bpf.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum MapType {
    /// Values by key.
    #[cfg(test)]
    Hash = 1,
    /// Values by number.
    #[cfg(test)]
    Array = 2,
    /// `AF_XDP` sockets by number.
    Sockets = 17,
}

/// A map in the kernel. Keys and values are bytes, as many as the map was created with.
#[derive(Debug)]
pub struct Map {
    descriptor: OwnedFd,
    info: MapInfo,
}

/// Properties of a map (the first fields of `struct bpf_map_info`).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct MapInfo {
    kind: u32,
    id: u32,
    key_size: u32,
    value_size: u32,
    entries: u32,
    flags: u32,
    name: [u8; 16],
    interface: u32,
    value_type_of_kernel: u32,
    device: u64,
    inode: u64,
    types: u32,
    key_type: u32,
    value_type: u32,
    types_of_kernel: u32,
}

/// The fields of `union bpf_attr` for `BPF_MAP_CREATE`, up to the types.
#[repr(C)]
#[derive(Default)]
struct CreateMap {
    kind: u32,
    key_size: u32,
    value_size: u32,
    entries: u32,
    flags: u32,
    inner: u32,
    node: u32,
    name: [u8; 16],
    interface: u32,
    types: u32,
    key_type: u32,
    value_type: u32,
}

/// The first fields for commands on an entry of a map. `value` is the next key for `BPF_MAP_GET_NEXT_KEY`.
#[repr(C)]
struct Entry {
    map: u32,
    padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}

/// The fields for `BPF_MAP_LOOKUP_BATCH`.
#[repr(C)]
struct Batch {
    /// Place of the entry before the first one; 0 for the beginning.
    after: u64,
    /// Place of the last entry, which the kernel writes.
    last: u64,
    keys: u64,
    values: u64,
    /// Room for so many entries, and then the number of those that were read.
    count: u32,
    map: u32,
    element_flags: u64,
    flags: u64,
}

/// Entries that were read by one call.
struct EntriesAtOnce {
    keys: Vec<u8>,
    values: Vec<u8>,
    /// Place of the last of them.
    last: Vec<u8>,
    /// True if there are no more.
    is_end: bool,
}

/// The first fields for `BPF_OBJ_GET`.
#[repr(C)]
struct ObjectPath {
    path: u64,
    descriptor: u32,
    flags: u32,
}

/// The first fields for the commands that open something by its number.
#[repr(C)]
struct ById {
    id: u32,
}

/// The first fields for `BPF_OBJ_GET_INFO_BY_FD`.
#[repr(C)]
struct InfoOf {
    descriptor: u32,
    length: u32,
    info: u64,
}

/// Opens the object, a map or a link, that is pinned at a path.
///
/// # Errors
/// When there is none, or the process may not: it needs access to the file. Before Linux 5.19 it also needs `CAP_BPF` where unprivileged bpf(2) is
/// forbidden.
pub fn pinned(path: &Path) -> io::Result<OwnedFd> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    let attributes = ObjectPath { path: path.as_ptr() as u64, descriptor: 0, flags: 0 };
    // SAFETY: the path is a string with a zero at its end, and outlives the call.
    unsafe { create(OBJECT_GET, &attributes) }
}

/// Detaches the object of a link, without waiting for its last descriptor and pin.
///
/// # Errors
/// When the kernel cannot detach this kind of link.
pub fn detach(link: impl AsFd) -> io::Result<()> {
    let attributes = ById { id: link.as_fd().as_raw_fd() as u32 };
    // SAFETY: the attributes point to nothing.
    unsafe { call(LINK_DETACH, &attributes) }.map(drop)
}

impl Map {
    /// Opens the map that is pinned at a path.
    ///
    /// # Errors
    /// As [`pinned`], and when another object than a map is pinned there.
    pub fn pinned(path: &Path) -> io::Result<Self> {
        Self::new(pinned(path)?)
    }

    /// Opens a map by its number, which is also what a look-up in a map of maps yields.
    ///
    /// # Errors
    /// When there is none of this number, or the process may not: it needs `CAP_SYS_ADMIN`.
    pub fn by_id(id: u32) -> io::Result<Self> {
        // SAFETY: the attributes point to nothing.
        Self::new(unsafe { create(MAP_BY_ID, &ById { id }) }?)
    }

    /// Creates a map of this type, without types of keys and values.
    pub(super) fn create(kind: MapType, key_size: u32, value_size: u32, entries: u32) -> io::Result<Self> {
        let attributes =
            CreateMap { kind: kind as u32, key_size, value_size, entries, ..CreateMap::default() };
        // SAFETY: the attributes point to nothing.
        Self::new(unsafe { create(MAP_CREATE, &attributes) }?)
    }

    /// Creates a map of the kind, the sizes and the types of this one, with a name of at most 15 letters, and with this many entries.
    ///
    /// # Errors
    /// When there is no memory, or the process may not: it needs `CAP_BPF` and, for the types, `CAP_SYS_ADMIN`.
    ///
    /// # Panics
    /// If the name is longer.
    pub fn create_like(&self, name: &str, entries: u32) -> io::Result<Self> {
        let mut letters = [0; 16];
        letters[..name.len()].copy_from_slice(name.as_bytes());
        assert_eq!(letters[15], 0, "a name has at most 15 letters: {name}");
        let MapInfo { kind, key_size, value_size, flags, key_type, value_type, .. } = self.info;
        let types: Option<OwnedFd> = match self.info.types {
            0 => None,
            // SAFETY: the attributes point to nothing.
            id => Some(unsafe { create(TYPES_BY_ID, &ById { id }) }?),
        };
        let attributes = CreateMap {
            kind,
            key_size,
            value_size,
            entries,
            flags,
            name: letters,
            types: types.as_ref().map_or(0, |types| types.as_raw_fd() as u32),
            key_type,
            value_type,
            ..CreateMap::default()
        };
        // SAFETY: the attributes point to nothing.
        Self::new(unsafe { create(MAP_CREATE, &attributes) }?)
    }

    fn new(descriptor: OwnedFd) -> io::Result<Self> {
        let mut info = MapInfo::default();
        let attributes = InfoOf {
            descriptor: descriptor.as_raw_fd() as u32,
            length: size_of::<MapInfo>() as u32,
            info: std::ptr::from_mut(&mut info) as u64,
        };
        // SAFETY: the kernel writes at most `length` bytes to `info`, which has so many and outlives the call; any bytes are valid for it.
        unsafe { call(INFO, &attributes) }?;
        Ok(Self { descriptor, info })
    }

    /// Returns the size of its keys, B.
    pub const fn key_size(&self) -> usize {
        self.info.key_size as usize
    }

    /// Returns the size of its values, B.
    pub const fn value_size(&self) -> usize {
        self.info.value_size as usize
    }

    /// Returns the most entries that it may have.
    pub const fn entries(&self) -> u32 {
        self.info.entries
    }

    /// Returns the value of a key; `None` if it has none.
    ///
    /// # Errors
    /// When the process may not read the map.
    ///
    /// # Panics
    /// If the key has another size than the map's keys.
    pub fn lookup(&self, key: &[u8]) -> io::Result<Option<Vec<u8>>> {
        let mut value = vec![0_u8; self.value_size()];
        let attributes = self.entry(key, value.as_mut_ptr() as u64);
        // SAFETY: the kernel reads the key and writes `value_size` bytes to the value; both outlive the call.
        found(unsafe { call(MAP_LOOKUP, &attributes) }).map(|found| found.map(|()| value))
    }

    /// Sets the value of a key.
    ///
    /// # Errors
    /// When the map is full, has no such key, or the process may not write it.
    ///
    /// # Panics
    /// If the key or the value has another size than the map's.
    pub fn update(&self, key: &[u8], value: &[u8]) -> io::Result<()> {
        assert_eq!(value.len(), self.value_size(), "size of a value");
        let attributes = self.entry(key, value.as_ptr() as u64);
        // SAFETY: the kernel reads the key and the value, which have the sizes of the map and outlive the call.
        unsafe { call(MAP_UPDATE, &attributes) }.map(drop)
    }

    /// Removes a key. Returns whether it was there.
    ///
    /// # Errors
    /// When the process may not write the map.
    ///
    /// # Panics
    /// If the key has another size than the map's keys.
    pub fn delete(&self, key: &[u8]) -> io::Result<bool> {
        let attributes = self.entry(key, 0);
        // SAFETY: the kernel reads the key, which outlives the call.
        found(unsafe { call(MAP_DELETE, &attributes) }).map(|found| found.is_some())
    }

    /// Returns whether a hash has no entries.
    ///
    /// # Errors
    /// When the process may not read the map.
    pub fn is_empty(&self) -> io::Result<bool> {
        let mut first = vec![0_u8; self.key_size()];
        let attributes = Entry { value: first.as_mut_ptr() as u64, ..self.entry_at(0) };
        // SAFETY: the kernel reads no key, and writes `key_size` bytes to the first one, which outlives the call.
        found(unsafe { call(MAP_NEXT_KEY, &attributes) }).map(|found| found.is_none())
    }

    /// Returns all keys with their values, by one call for some thousands of them. One that is added or removed meanwhile may be missing or not.
    ///
    /// # Errors
    /// When the process may not read the map, or the kernel is older than Linux 5.6.
    pub fn pairs(&self) -> io::Result<Vec<(Vec<u8>, Vec<u8>)>> {
        let mut pairs = Vec::new();
        let mut last: Option<Vec<u8>> = None;
        loop {
            let read = self.read_at_once(last.as_deref(), MOST_AT_ONCE.min(self.entries()))?;
            let (keys, values) =
                (read.keys.chunks_exact(self.key_size()), read.values.chunks_exact(self.value_size()));
            pairs.extend(keys.zip(values).map(|(key, value)| (key.to_vec(), value.to_vec())));
            if read.is_end {
                return Ok(pairs);
            }
            last = Some(read.last);
        }
    }

    /// Returns the values of an array at `count` numbers from `first` on, one after another; fewer at its end. One call reads some thousands of them.
    ///
    /// # Errors
    /// When the process may not read the map, or the kernel is older than Linux 5.8.
    pub fn values(&self, first: u32, count: u32) -> io::Result<Vec<u8>> {
        let end = first.saturating_add(count).min(self.entries());
        let (mut all, mut next) = (Vec::new(), first);
        while next < end {
            let after = next.checked_sub(1).map(u32::to_ne_bytes);
            let most = (end - next).min(MOST_AT_ONCE);
            let read = self.read_at_once(after.as_ref().map(|after| &after[..]), most)?;
            all.extend(read.values);
            next += most;
        }
        Ok(all)
    }

    /// Reads at most so many entries behind a place, which an earlier call has returned; in an array it is a key. `None` is the beginning.
    fn read_at_once(&self, after: Option<&[u8]>, most: u32) -> io::Result<EntriesAtOnce> {
        // The place is a key, or a number of 32 bits.
        let size_of_place = self.key_size().max(size_of::<u32>());
        assert!(after.is_none_or(|after| after.len() == size_of_place), "size of a place");
        let mut keys = vec![0_u8; most as usize * self.key_size()];
        let mut values = vec![0_u8; most as usize * self.value_size()];
        let mut last = vec![0_u8; size_of_place];
        let mut attributes = Batch {
            after: after.map_or(0, |after| after.as_ptr() as u64),
            last: last.as_mut_ptr() as u64,
            keys: keys.as_mut_ptr() as u64,
            values: values.as_mut_ptr() as u64,
            count: most,
            map: self.descriptor.as_raw_fd() as u32,
            element_flags: 0,
            flags: 0,
        };
        // SAFETY: the kernel reads a place if there is one, writes at most `most` keys and values and one place, which have the sizes of the map, and the
        // number of entries to the attributes. All of them outlive the call.
        let is_end = found(unsafe { call_mut(MAP_LOOKUP_BATCH, &mut attributes) })?.is_none();
        keys.truncate(attributes.count as usize * self.key_size());
        values.truncate(attributes.count as usize * self.value_size());
        Ok(EntriesAtOnce { keys, values, last, is_end })
    }

    fn entry(&self, key: &[u8], value: u64) -> Entry {
        assert_eq!(key.len(), self.key_size(), "size of a key");
        Entry { value, ..self.entry_at(key.as_ptr() as u64) }
    }

    fn entry_at(&self, key: u64) -> Entry {
        Entry { map: self.descriptor.as_raw_fd() as u32, padding: 0, key, value: 0, flags: 0 }
    }
}

impl AsFd for Map {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// Returns `None` for the error of a key that is not there.
fn found(result: io::Result<i64>) -> io::Result<Option<()>> {
    match result {
        Ok(_) => Ok(Some(())),
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn entries_are_written_read_listed_and_removed() {
        // Without CAP_BPF there is nothing to try.
        let Ok(map) = Map::create(MapType::Hash, 4, 8, 3) else { return };
        let key = |number: u32| number.to_ne_bytes();
        assert_eq!((map.key_size(), map.value_size(), map.entries()), (4, 8, 3));
        assert_eq!(map.lookup(&key(1)).unwrap(), None);
        for number in 1..=3 {
            map.update(&key(number), &u64::from(10 * number).to_ne_bytes()).unwrap();
        }
        assert!(map.update(&key(4), &[0; 8]).is_err(), "it is full");
        assert_eq!(map.lookup(&key(2)).unwrap().unwrap(), 20_u64.to_ne_bytes());
        let mut pairs = map.pairs().unwrap();
        pairs.sort();
        let expected =
            [1, 2, 3].map(|number| (key(number).to_vec(), u64::from(10 * number).to_ne_bytes().to_vec()));
        let mut expected = expected.to_vec();
        expected.sort();
        assert_eq!(pairs, expected);
        assert_eq!((map.delete(&key(2)).unwrap(), map.delete(&key(2)).unwrap()), (true, false));
        assert_eq!((map.pairs().unwrap().len(), map.is_empty().unwrap()), (2, false));

        let other = map.create_like("cutline_test", 7).unwrap();
        assert_eq!((other.key_size(), other.value_size(), other.entries()), (4, 8, 7));
        assert!(other.is_empty().unwrap() && other.pairs().unwrap().is_empty());
        let same = Map::by_id(map.info.id).unwrap();
        assert_eq!(same.lookup(&key(3)).unwrap().unwrap(), 30_u64.to_ne_bytes());
    }

    /// More entries than one call reads.
    #[test]
    fn the_entries_of_large_maps_are_read_in_a_few_calls() {
        const ENTRIES: u32 = 2 * MOST_AT_ONCE + 10;
        let number = |number: u32| number.to_ne_bytes();
        // Without CAP_BPF there is nothing to try.
        let Ok(array) = Map::create(MapType::Array, 4, 8, ENTRIES) else { return };
        let hash = Map::create(MapType::Hash, 8, 4, ENTRIES).unwrap();
        for at in 0..ENTRIES {
            array.update(&number(at), &u64::from(at + 7).to_ne_bytes()).unwrap();
            hash.update(&u64::from(at).to_ne_bytes(), &number(at)).unwrap();
        }
        let values = |first, count| {
            let bytes = array.values(first, count).unwrap();
            bytes
                .chunks_exact(8)
                .map(|value| u64::from_ne_bytes(value.try_into().unwrap()))
                .collect::<Vec<_>>()
        };
        let from = |first: u32, end: u32| (first..end).map(|at| u64::from(at + 7)).collect::<Vec<_>>();
        assert_eq!(values(0, ENTRIES), from(0, ENTRIES));
        assert_eq!(values(5, 3), from(5, 8));
        assert_eq!(values(ENTRIES - 2, 9), from(ENTRIES - 2, ENTRIES), "no more than there are");
        assert_eq!((values(ENTRIES, 1), values(3, 0)), (Vec::new(), Vec::new()));
        let mut keys: Vec<_> = hash.pairs().unwrap().into_iter().map(|(key, _)| key).collect();
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), ENTRIES as usize);
    }

    #[test]
    fn a_missing_pin_is_not_found() {
        let error = Map::pinned(Path::new("/sys/fs/bpf/cutline-none")).unwrap_err();
        let is_expected = [io::ErrorKind::NotFound, io::ErrorKind::PermissionDenied].contains(&error.kind());
        assert!(is_expected, "{error}");
    }
}
