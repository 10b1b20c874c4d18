//! Files beside the scenario file.

use cutline_config::{TableReader, kind};
use std::path::Path;

/// The largest file, bytes.
const LARGEST: u64 = 64 << 20;

/// Reads the file that a key names and parses it; `None` without the key. A relative path starts at the
/// folder of the scenario file. Faults are reported to the reader.
pub(super) fn optional<T>(
    reader: &TableReader<'_>,
    key: &str,
    parse: impl FnOnce(&str) -> Result<T, String>,
) -> Option<T> {
    let name = reader.optional(key, &kind::text())?;
    let folder = Path::new(reader.document().name()).parent().unwrap_or(Path::new(""));
    let path = folder.join(name);
    let read = load(&path).and_then(|text| parse(&text));
    read.map_err(|why| reader.refuse(key, &format!("{}: {why}", path.display()))).ok()
}

/// Returns the text of a regular file, without a byte order mark.
pub(super) fn load(path: &Path) -> Result<String, String> {
    // A pipe or a device may never end.
    let about = std::fs::metadata(path).map_err(|error| error.to_string())?;
    if !about.is_file() || about.len() > LARGEST {
        return Err(format!("it must be a regular file of at most {} MiB", LARGEST >> 20));
    }
    let mut text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    // Spreadsheets and editors for Windows write it.
    if text.starts_with('\u{feff}') {
        text.replace_range(..'\u{feff}'.len_utf8(), "");
    }
    Ok(text)
}
