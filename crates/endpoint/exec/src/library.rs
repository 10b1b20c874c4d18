//! Location of the preloaded library.

use crate::ExecError;
use std::path::{Path, PathBuf};

/// The environment variable that may have the library's path.
pub const LIBRARY_VARIABLE: &str = "CUTLINE_EXEC_LIBRARY";

/// The library's file name.
const NAME: &str = "libcutline_preload.so";

/// Finds the library: at the path in [`LIBRARY_VARIABLE`], beside this command, in `../lib/cutline` of its folder, or, of a build that
/// is not installed, in `../preload`.
///
/// # Errors
/// When it is in none of these places, or the variable names no file.
pub fn find_library() -> Result<PathBuf, ExecError> {
    let beside = std::env::current_exe().ok();
    let configured = std::env::var_os(LIBRARY_VARIABLE).map(PathBuf::from);
    let missing = ExecError::NoLibrary { name: NAME, variable: LIBRARY_VARIABLE };
    let found = match configured {
        Some(path) if path.is_file() => path,
        // Another library would be a surprise.
        Some(path) => {
            let path = cutline_text::Printable(path.display());
            return Err(ExecError::Unreachable(format!("{LIBRARY_VARIABLE} is {path}, which is not a file")));
        }
        None => {
            let places = beside.as_deref().and_then(Path::parent).map(places).unwrap_or_default();
            places.into_iter().find(|place| place.is_file()).ok_or(missing)?
        }
    };
    // The dynamic linker splits LD_PRELOAD at colons and spaces, and takes no relative path in another folder.
    let found = found.canonicalize().unwrap_or(found);
    if found.as_os_str().as_encoded_bytes().iter().any(|byte| b": ".contains(byte)) {
        let path = cutline_text::Printable(found.display());
        return Err(ExecError::Unreachable(format!(
            "the library's path {path} has a space or a colon, which LD_PRELOAD cannot have"
        )));
    }
    Ok(found)
}

fn places(folder: &Path) -> Vec<PathBuf> {
    ["", "../lib/cutline", "../preload"].map(|place| folder.join(place).join(NAME)).to_vec()
}
