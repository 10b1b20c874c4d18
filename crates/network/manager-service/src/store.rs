//! Files of the state, from which a later process continues: a snapshot, and a journal of later changes.
//!
//! A change is in the journal before its client has the answer. So a process that is killed forgets no flow that was
//! admitted, and remembers none that was released. The kernel has the written data when the process ends; nothing is
//! written to a disk, because no flow outlives the machine. Of the state of an earlier boot, where it is on a disk, only the numbers of
//! summaries count.
//!
//! A snapshot replaces the one before as a whole. It has a generation, which the first line of its journal repeats: a
//! process that ends between the two leaves a journal of another generation, which is in the snapshot already.
//!
//! Only the owner may read the files: they have the sessions of clients.

use cutline_manager::resources::{ClientKey, FlowId, ResourceStats, UserId};
use cutline_manager::{ManagedFlowRecord, ManagerSnapshot};
use cutline_text::Printable;
use rustix::fs::{Mode, OFlags, fchmod, open};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, BufRead as _, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// Version of the format. A state of another version is ignored.
const VERSION: u32 = 1;
/// Length of a journal after which a snapshot replaces it, bytes, unless the snapshot is longer.
const LONG: u64 = 1 << 20;
/// The largest file that is read, bytes.
const LARGEST: u64 = 256 << 20;
/// Identity of the boot of the machine.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// A session of a client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SessionRecord {
    pub key: ClientKey,
    pub token: String,
    pub user: UserId,
}

/// Place of a flow in its session, and its addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlowPlace {
    /// The session.
    pub key: ClientKey,
    /// The client's number of the flow.
    pub id: u64,
    pub source: SocketAddr,
    pub destination: SocketAddr,
}

/// The whole state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoredState {
    pub next_key: u64,
    pub manager: ManagerSnapshot,
    pub sessions: Vec<SessionRecord>,
    pub places: Vec<(FlowId, FlowPlace)>,
    /// Path, host, and the highest number of its summaries.
    pub numbers: Vec<(u64, u64, u64)>,
    /// Names of the interfaces that may have classes of the kernel.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub classed: Vec<String>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SnapshotFile {
    version: u32,
    boot: String,
    generation: u64,
    state: StoredState,
}

/// A change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Change {
    /// The journal of the snapshot with this generation begins.
    Begin(u64),
    /// A client has a session.
    Session(SessionRecord),
    /// A session has ended. Its flows have ended before.
    End(ClientKey),
    /// A flow was admitted or has changed.
    Flow(Box<ManagedFlowRecord>, FlowPlace),
    /// A flow has ended.
    Gone(FlowId),
    /// The counters have these values.
    Counters(ResourceStats),
    /// All interfaces that may have classes of the kernel.
    Classed(Vec<String>),
}

/// The files.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    journal_path: PathBuf,
    journal: Option<File>,
    generation: u64,
    /// Lengths of the snapshot and of the journal, bytes.
    lengths: [u64; 2],
    boot: String,
    problem: Option<String>,
    /// The last problem, which is reported once.
    reported: Option<String>,
}

impl Store {
    /// The files at `path`; the journal has the name with `.journal`.
    pub fn new(path: &Path) -> Self {
        let mut name = path.as_os_str().to_owned();
        name.push(".journal");
        let boot = std::fs::read_to_string(BOOT_ID).unwrap_or_default().trim().to_owned();
        Self {
            path: path.to_owned(),
            journal_path: name.into(),
            journal: None,
            generation: 0,
            lengths: [0, 0],
            boot,
            problem: None,
            reported: None,
        }
    }

    /// Reads the state that an earlier process has left, if there is one. Also returns whether it is of this boot of the machine.
    ///
    /// # Errors
    /// When it cannot be read: the reason, for the log.
    pub fn load(&mut self) -> Result<Option<(StoredState, bool)>, String> {
        let Some(text) = read(&self.path)? else { return Ok(None) };
        let failed = |error: serde_json::Error| format!("`{}`: {error}", Printable(self.path.display()));
        let file: SnapshotFile = serde_json::from_str(&text).map_err(failed)?;
        if file.version != VERSION {
            let (path, version) = (self.path.display(), file.version);
            return Err(format!("`{}`: version = {version}: allowed is {VERSION}", Printable(path)));
        }
        self.generation = file.generation;
        let mut state = file.state;
        if file.boot != self.boot {
            return Ok(Some((state, false)));
        }
        let journal = read(&self.journal_path)?.unwrap_or_default();
        // A process that was killed may have written a part of the last line.
        let whole = journal.rfind('\n').map_or(&[][..], |end| &journal.as_bytes()[..end]);
        for (number, line) in whole.lines().enumerate() {
            let change = line.ok().and_then(|line| serde_json::from_str(&line).ok());
            let Some(change) = change else {
                let path = self.journal_path.display();
                return Err(format!("`{}`, line {}: it cannot be understood", Printable(path), number + 1));
            };
            if number == 0 && change != Change::Begin(file.generation) {
                break;
            }
            state.apply(change);
        }
        Ok(Some((state, true)))
    }

    /// Replaces the snapshot, and begins a journal. A problem is kept ([`Store::problem`]); then another snapshot is due
    /// ([`Store::note_changes`]).
    pub fn replace(&mut self, state: StoredState) {
        self.generation += 1;
        let (boot, generation) = (self.boot.clone(), self.generation);
        let file = SnapshotFile { version: VERSION, boot, generation, state };
        let text = serde_json::to_vec(&file).expect("the state has no other keys than text");
        match self.write(&text) {
            Ok(()) => self.reported = None,
            Err(error) => {
                self.lengths[1] = u64::MAX;
                self.note(&error);
            }
        }
    }

    fn write(&mut self, text: &[u8]) -> io::Result<()> {
        let mut temporary = self.path.as_os_str().to_owned();
        temporary.push(".new");
        let temporary = PathBuf::from(temporary);
        let mut file = cutline_files::temporary(&temporary)?;
        fchmod(&file, Mode::RUSR | Mode::WUSR)?;
        file.write_all(text)?;
        std::fs::rename(&temporary, &self.path)?;
        // Until here the journal belongs to the snapshot before, which stays if this one cannot be written.
        self.journal = None;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let journal = File::from(open(&self.journal_path, flags, Mode::RUSR | Mode::WUSR)?);
        fchmod(&journal, Mode::RUSR | Mode::WUSR)?;
        journal.set_len(0)?;
        self.journal = Some(journal);
        self.lengths = [text.len() as u64, 0];
        self.append(&[Change::Begin(self.generation)])
    }

    /// Writes changes to the journal. Returns whether a snapshot is due: the journal has become long, or could not be written.
    pub fn note_changes(&mut self, changes: &[Change]) -> bool {
        if let Err(error) = self.append(changes) {
            self.note(&error);
        }
        let [snapshot, journal] = self.lengths;
        journal > LONG.max(snapshot)
    }

    fn append(&mut self, changes: &[Change]) -> io::Result<()> {
        let Some(journal) = self.journal.as_mut().filter(|_| !changes.is_empty()) else { return Ok(()) };
        let mut text = Vec::new();
        for change in changes {
            serde_json::to_writer(&mut text, change)?;
            text.push(b'\n');
        }
        let outcome = journal.write_all(&text);
        if outcome.is_err() {
            // A part of a line in the middle could not be understood later: the next snapshot replaces it.
            self.journal = None;
            self.lengths[1] = u64::MAX;
            return outcome;
        }
        self.lengths[1] = self.lengths[1].saturating_add(text.len() as u64);
        Ok(())
    }

    fn note(&mut self, error: &io::Error) {
        let why = format!("the state in `{}` cannot be written: {error}", Printable(self.path.display()));
        if self.reported.as_ref() != Some(&why) {
            self.reported = Some(why.clone());
            self.problem = Some(why);
        }
    }

    /// Takes the last problem, for the log.
    pub fn problem(&mut self) -> Option<String> {
        self.problem.take()
    }
}

impl StoredState {
    fn apply(&mut self, change: Change) {
        match change {
            Change::Begin(_) => {}
            Change::Session(session) => {
                self.next_key = self.next_key.max(session.key.0 + 1);
                self.sessions.retain(|other| other.key != session.key);
                self.sessions.push(session);
            }
            Change::End(key) => self.sessions.retain(|session| session.key != key),
            Change::Flow(record, place) => {
                let flow = record.id();
                self.manager.update(*record);
                self.places.retain(|(other, _)| *other != flow);
                self.places.push((flow, place));
            }
            Change::Gone(flow) => {
                self.manager.remove(flow);
                self.places.retain(|(other, _)| *other != flow);
            }
            Change::Counters(stats) => self.manager.set_stats(stats),
            Change::Classed(names) => self.classed = names,
        }
    }
}

/// Reads a file of the state, if it exists.
fn read(path: &Path) -> Result<Option<String>, String> {
    let failed = |why: &dyn std::fmt::Display| format!("`{}`: {why}", Printable(path.display()));
    match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(&error)),
        Ok(about) if !about.is_file() => return Err(failed(&"it is no regular file")),
        Ok(about) if about.len() > LARGEST => return Err(failed(&"it is too long")),
        Ok(_) => {}
    }
    std::fs::read_to_string(path).map(Some).map_err(|error| failed(&error))
}
