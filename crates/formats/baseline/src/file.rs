//! Reading, checking and writing a table. A new table replaces the previous one as a whole, so that a process that is killed leaves
//! a complete file.

use crate::document::{BaselineDocument, BaselineRow, FORMAT};
use cutline_files::{FileLock, LockError, write_whole};
use cutline_text::Printable;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

/// The largest file, bytes. A row has about 900 B.
const LARGEST: u64 = 64 << 20;

/// The largest block, bytes, and the largest load, bit/s.
const LARGEST_BLOCK: u64 = 1_000_000_000;
const LARGEST_LOAD: u64 = 1_000_000_000_000_000;

/// Reason why a table cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The system refuses to read or write the file.
    #[error("{}: {source}", Printable(.path.display()))]
    System {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The file is not a table of baselines, or is damaged.
    #[error("{}: this is no table of cutline baseline, or it is damaged: {}", Printable(.path.display()), Printable(.why))]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The first problem.
        why: String,
    },
    /// The file has a format of another version.
    #[error("{}: it has format {found}, and this program reads format {FORMAT}: measure again", Printable(.path.display()))]
    Format {
        /// The file.
        path: PathBuf,
        /// Version of its format.
        found: u64,
    },
    /// Another process measures the table.
    #[error("{}: another process measures this table ({})", Printable(.path.display()), Printable(.holder))]
    Locked {
        /// The file.
        path: PathBuf,
        /// The other process.
        holder: String,
    },
}

/// Reason why a text is no table.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TableError {
    /// The text is not a table of baselines, or is damaged.
    #[error("this is no table of cutline baseline, or it is damaged: {}", Printable(.0))]
    Damaged(String),
    /// The text has a format of another version.
    #[error("it has format {0}, and this program reads format {FORMAT}: measure again")]
    Format(u64),
}

/// Reads a table; `None` if there is no file, or an empty one.
///
/// # Errors
/// When the file cannot be read, is not a table, is damaged, or has another format.
pub fn load(path: &Path) -> Result<Option<BaselineDocument>, FileError> {
    let system = |source| FileError::System { path: path.to_owned(), source };
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other.map_err(system)?,
    };
    if !file.metadata().map_err(system)?.is_file() {
        return Err(system(io::Error::other("it is no regular file")));
    }
    let mut text = String::new();
    file.take(LARGEST).read_to_string(&mut text).map_err(system)?;
    if text.is_empty() {
        return Ok(None);
    }
    let path = || path.to_owned();
    parse(&text).map(Some).map_err(|error| match error {
        TableError::Damaged(why) => FileError::Damaged { path: path(), why },
        TableError::Format(found) => FileError::Format { path: path(), found },
    })
}

/// Reads the text of a table.
///
/// # Errors
/// When it is not a table, is damaged, or has another format.
pub fn parse(text: &str) -> Result<BaselineDocument, TableError> {
    let damaged = |error: serde_json::Error| TableError::Damaged(error.to_string());
    let value: serde_json::Value = serde_json::from_str(text).map_err(damaged)?;
    match value.get("format").and_then(serde_json::Value::as_u64) {
        Some(format) if format == u64::from(FORMAT) => {}
        Some(found) => return Err(TableError::Format(found)),
        None => return Err(TableError::Damaged("it has no `format`".to_owned())),
    }
    // Parsed again from the text, so that an error has its line.
    let document: BaselineDocument = serde_json::from_str(text).map_err(damaged)?;
    check(&document).map_err(TableError::Damaged)?;
    Ok(document)
}

/// Checks that a table may be written to a path, before the work whose result it is.
///
/// # Errors
/// When the path is a symbolic link.
pub fn check_path(path: &Path) -> Result<(), FileError> {
    if fs::symlink_metadata(path).is_ok_and(|about| about.is_symlink()) {
        let source = io::Error::other("it is a symbolic link, and nothing is written through it");
        return Err(FileError::System { path: path.to_owned(), source });
    }
    Ok(())
}

/// Takes the lock on a table, which one process at a time measures. The file of the lock has the same name with `.lock` added.
///
/// # Errors
/// When another process has the lock, or its file cannot be created.
pub fn lock(path: &Path) -> Result<FileLock, FileError> {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    let name = PathBuf::from(name);
    FileLock::take(&name, "").map_err(|error| match error {
        LockError::Held(holder) => FileError::Locked { path: path.to_owned(), holder },
        LockError::System(source) => FileError::System { path: name.clone(), source },
    })
}

/// Writes a table. The temporary file beside it has the same name with `.tmp` added.
///
/// # Errors
/// When the path is a symbolic link, or the system refuses to write.
pub fn save(path: &Path, document: &BaselineDocument) -> Result<(), FileError> {
    let system = |source| FileError::System { path: path.to_owned(), source };
    check_path(path)?;
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(".tmp");
    let mut text = serde_json::to_string_pretty(document).map_err(|error| system(error.into()))?;
    text.push('\n');
    write_whole(path, Path::new(&temporary), text.as_bytes()).map_err(system)
}

/// Checks properties that the types do not ensure: the ranges of numbers, and that no measurement is there twice.
fn check(document: &BaselineDocument) -> Result<(), String> {
    let mut keys = BTreeSet::new();
    for (number, row) in document.rows.iter().enumerate() {
        let wrong = |field: &str, value: f64, allowed: &str| {
            Err(format!("rows[{number}].{field} = {value}: must be {allowed}"))
        };
        for (field, value, most) in ranges(row) {
            // A number that is not finite is null in JSON, which an `Option` may be.
            if value.is_some_and(|value| !(0.0..=most).contains(&value)) {
                return wrong(field, value.unwrap_or_default(), &format!("0..{most}"));
            }
        }
        if !(1..=LARGEST_BLOCK).contains(&row.block) {
            return wrong("block", row.block as f64, &format!("1..{LARGEST_BLOCK}"));
        }
        if let Some(load) = row.load_bps.filter(|load| !(1..=LARGEST_LOAD).contains(load)) {
            return wrong("load_bps", load as f64, &format!("1..{LARGEST_LOAD}"));
        }
        if !keys.insert(row.key()) {
            return Err(format!("rows[{number}]: the measurement of {:?} is there twice", row.key()));
        }
    }
    Ok(())
}

/// Returns the numbers of a row that have a range, with the largest allowed one.
fn ranges(row: &BaselineRow) -> [(&'static str, Option<f64>, f64); 7] {
    const DAY_MS: f64 = 86_400_000.0;
    [
        ("throughput_bps", Some(row.throughput_bps), 1e15),
        ("loss_ratio", row.loss_ratio, 1.0),
        ("duration_s", Some(row.duration_s), 86_400.0),
        ("delay_ms", row.delay_ms, DAY_MS),
        ("delay_p99_ms", row.delay_p99_ms, DAY_MS),
        ("rtt_ms", row.rtt_ms, DAY_MS),
        ("clock_error_ms", Some(row.clock_error_ms), DAY_MS),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::QueueSize;
    use std::os::unix::fs::symlink;

    fn document() -> BaselineDocument {
        let row = BaselineRow {
            protocol: "udp".into(),
            block: 8192,
            load_bps: Some(10_000_000),
            throughput_bps: 9.5e6,
            loss_ratio: Some(0.05),
            delay_ms: Some(0.4),
            ..BaselineRow::default()
        };
        let large = BaselineRow { queue: QueueSize::Large, loss_ratio: Some(0.0), ..row.clone() };
        BaselineDocument { format: FORMAT, rows: vec![row, large], ..BaselineDocument::default() }
    }

    #[test]
    fn a_table_is_read_as_it_was_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("baseline.json");
        assert_eq!(load(&path).unwrap(), None);
        save(&path, &document()).unwrap();
        assert_eq!(load(&path).unwrap(), Some(document()));
        save(&path, &BaselineDocument { complete: true, ..document() }).unwrap();
        let again = load(&path).unwrap().unwrap();
        assert!(again.complete);
        assert_eq!(again.row(&again.rows[1].key()).unwrap().loss_ratio, Some(0.0));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no temporary file is left");
        let baseline = again.baseline();
        assert_eq!((baseline.points.len(), baseline.points[1].has_large_buffer), (2, true));
    }

    #[test]
    fn one_process_at_a_time_has_the_lock_of_a_table() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("baseline.json");
        let held = lock(&path).unwrap();
        let said = lock(&path).unwrap_err().to_string();
        let holder = format!("another process measures this table (process {})", std::process::id());
        assert!(said.contains("baseline.json: ") && said.ends_with(&holder), "{said}");
        assert!(lock(&folder.path().join("other.json")).is_ok());
        drop(held);
        assert!(lock(&path).is_ok());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "no file is left");
        let said = lock(&folder.path().join("absent/baseline.json")).unwrap_err().to_string();
        assert!(said.contains("absent/baseline.json.lock: "), "{said}");
    }

    #[test]
    fn damaged_and_foreign_files_are_refused_with_the_place() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("baseline.json");
        save(&path, &document()).unwrap();
        let good = fs::read_to_string(&path).unwrap();
        let error = |text: &str| {
            fs::write(&path, text).unwrap();
            load(&path).unwrap_err().to_string()
        };
        for (text, expected) in [
            (good[..good.len() / 2].to_owned(), "EOF while parsing"),
            ("[]".to_owned(), "it has no `format`"),
            ("\u{1b}[2J".to_owned(), "damaged"),
            (
                good.replace("\"format\": 1", "\"format\": 7"),
                "it has format 7, and this program reads format 1",
            ),
            (
                good.replacen("\"loss_ratio\": 0.05", "\"loss_ratio\": 5.0", 1),
                "rows[0].loss_ratio = 5: must be 0..1",
            ),
            (good.replacen("\"block\": 8192", "\"block\": 0", 1), "rows[0].block = 0: must be 1..1000000000"),
            (good.replacen("10000000", "0", 1), "rows[0].load_bps = 0: must be 1..1000000000000000"),
            (good.replacen("\"large\"", "\"default\"", 1), "is there twice"),
            (good.replacen("\"blocks\": 0", "\"blocks\": -1", 1), "line"),
            (good.replacen("\"rows\"", "\"more\": 1, \"rows\"", 1), "unknown field `more`"),
        ] {
            let said = error(&text);
            assert!(said.contains(expected) && said.contains("baseline.json"), "{said}");
            assert!(!said.contains('\u{1b}'));
        }
        fs::write(&path, "").unwrap();
        assert_eq!(load(&path).unwrap(), None, "an empty file is what work that failed has left");
        let folder_error = load(folder.path()).unwrap_err().to_string();
        assert!(folder_error.contains("no regular file"), "{folder_error}");
    }

    #[test]
    fn nothing_is_written_through_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let (link, other) = (folder.path().join("link"), folder.path().join("other"));
        symlink(&other, &link).unwrap();
        assert!(save(&link, &document()).unwrap_err().to_string().contains("symbolic link"));
        assert!(!other.exists());
    }
}
