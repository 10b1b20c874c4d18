//! Where the preloaded library is.

use crate::ExecError;
use std::path::{Path, PathBuf};

/// The environment variable that may have the library's path.
pub const LIBRARY_VARIABLE: &str = "CUTLINE_EXEC_LIBRARY";

/// The library's file name.
const NAME: &str = "libcutline_preload.so";

/// Finds the library: where [`LIBRARY_VARIABLE`] says, beside this command, or in `../lib/cutline` of its folder.
///
/// # Errors
/// When it is in none of these places.
pub fn find_library() -> Result<PathBuf, ExecError> {
    let beside = std::env::current_exe().ok();
    let said = std::env::var_os(LIBRARY_VARIABLE).map(PathBuf::from);
    let missing = ExecError::NoLibrary { name: NAME, variable: LIBRARY_VARIABLE };
    // A variable that names no file is an error: another library would be a surprise.
    let mut places = match said {
        Some(path) => vec![path],
        None => beside.as_deref().and_then(Path::parent).map(places).unwrap_or_default(),
    };
    places.retain(|place| place.is_file());
    let found = places.into_iter().next().ok_or(missing)?;
    // The dynamic linker splits LD_PRELOAD at colons and spaces, and takes no relative path in another folder.
    let found = found.canonicalize().unwrap_or(found);
    if found.as_os_str().as_encoded_bytes().iter().any(|byte| b": ".contains(byte)) {
        let path = cutline_text::Printable(found.display());
        return Err(ExecError::NoWay(format!(
            "the library's path {path} has a space or a colon, which LD_PRELOAD cannot have"
        )));
    }
    Ok(found)
}

fn places(folder: &Path) -> Vec<PathBuf> {
    vec![folder.join(NAME), folder.join("../lib/cutline").join(NAME)]
}
