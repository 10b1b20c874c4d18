//! Identity of the agent: the engine's number, and the number of its starts (RFC 3414, section 2.2.2).
//!
//! Keys of users depend on the number, and replayed messages are refused by the count, so both outlive a restart in a file:
//!
//! ```toml
//! engine-id = "80001f8804..."
//! boots = 3
//! ```

use crate::error::SnmpError;
use async_snmp::v3::{AuthoritativeEngine, PersistedAuthoritativeEngine, generate_engine_id};
use cutline_config::{Document, kind};
use cutline_files::write_whole;
use cutline_service::regular_file;
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

/// The largest count of starts (RFC 3414, section 2.2.2).
const MOST_BOOTS: i64 = 0x7fff_ffff;

/// Starts the engine whose identity is in the file at `path`, or makes a new one there.
///
/// # Errors
/// When the file cannot be read or written, or is not such a file.
pub fn start(path: &Path) -> Result<AuthoritativeEngine, SnmpError> {
    let wrong = |why: String| SnmpError::Engine { file: path.display().to_string(), why };
    let kept = match path.try_exists() {
        Ok(false) => None,
        Ok(true) => Some(read(path).map_err(wrong)?),
        Err(error) => return Err(wrong(error.to_string())),
    };
    let file = path.to_owned();
    let persist = move |engine: &PersistedAuthoritativeEngine| write(&file, engine);
    let started = match kept {
        Some(kept) => AuthoritativeEngine::restart(kept, persist),
        None => generate_engine_id().and_then(|id| AuthoritativeEngine::install(id, persist)),
    };
    started.map_err(|error| wrong(error.to_string()))
}

/// Returns an engine that sends informs alone. Its identity does not matter, as that of the receiver is used (RFC 3414, section 1.5.1).
///
/// # Errors
/// When the system has no random numbers.
pub fn of_notifier() -> Result<AuthoritativeEngine, SnmpError> {
    let made =
        generate_engine_id().and_then(|id| AuthoritativeEngine::install(id, |_| Ok::<(), io::Error>(())));
    made.map_err(|error| SnmpError::Engine {
        file: "the identity of a notifier".to_owned(),
        why: error.to_string(),
    })
}

fn read(path: &Path) -> Result<PersistedAuthoritativeEngine, String> {
    let text = regular_file::read(path)?;
    let name = path.display().to_string();
    let document = Document::parse(&text, &name).map_err(|errors| errors.to_string())?;
    let read = cutline_config::read(&document, |root| {
        let id = root.required(
            "engine-id",
            &kind::text().only("an even number of hexadecimal digits", |text| bytes(text).is_some()),
        );
        let boots = root.required("boots", &kind::integer(1, MOST_BOOTS));
        root.finish();
        Some((bytes(&id?)?, u32::try_from(boots?).ok()?))
    });
    let (id, boots) = read.map_err(|errors| errors.to_string())?;
    PersistedAuthoritativeEngine::new(id, boots).map_err(|error| error.to_string())
}

fn bytes(digits: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> = digits.chars().map(|c| c.to_digit(16).map(|digit| digit as u8)).collect();
    let digits = digits.filter(|digits| digits.len().is_multiple_of(2))?;
    Some(digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}

fn write(path: &Path, engine: &PersistedAuthoritativeEngine) -> io::Result<()> {
    let mut id = String::new();
    for byte in engine.engine_id() {
        let _ = write!(id, "{byte:02x}");
    }
    let text = format!(
        "# Identity of the SNMP agent of this host. It is written at each start.\nengine-id = \"{id}\"\nboots = {}\n",
        engine.engine_boots()
    );
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder)?;
    }
    let temporary: PathBuf = path.with_extension("new");
    write_whole(path, &temporary, text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_identity_outlives_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state/snmp.toml");
        let first = start(&path).unwrap();
        assert_eq!(first.engine_boots(), 1);
        let second = start(&path).unwrap();
        assert_eq!((second.engine_id(), second.engine_boots()), (first.engine_id(), 2));
        std::fs::write(&path, "engine-id = \"80\"\n").unwrap();
        let why = start(&path).unwrap_err().to_string();
        assert!(why.contains("boots"), "{why}");
        std::fs::write(&path, "engine-id = \"zz\"\nboots = 0\n").unwrap();
        let why = start(&path).unwrap_err().to_string();
        assert!(why.contains("hexadecimal") && why.contains("boots"), "{why}");
    }
}
