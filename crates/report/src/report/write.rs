//! Puts a report's files in a directory, each whole or not at all.

use super::claim::Claim;
use super::document::Report;
use super::html::page;
use crate::chart::{Figure, RasterError, Theme};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// The files of a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// The page.
    pub report: PathBuf,
    /// The claims as JSON.
    pub claims: PathBuf,
    /// The figures, SVG and PNG.
    pub figures: Vec<PathBuf>,
}

/// Why a report was not written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// A file or directory.
    #[error("{}: {source}", path.display())]
    Io {
        /// What was to be written.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A name that is no file's name.
    #[error("the id \"{0}\" has other characters than letters, digits, '-' and '_'")]
    Id(String),
    /// A name given twice.
    #[error("the id \"{0}\" is there twice")]
    Twice(String),
    /// A figure that could not be drawn.
    #[error("figure {id}: {source}")]
    Figure {
        /// The figure's name.
        id: String,
        /// Why.
        source: RasterError,
    },
    /// The claims could not be written as JSON, or be read.
    #[error("claims.json: {0}")]
    Json(#[from] serde_json::Error),
}

/// The claims of the report in `directory`; none where there is no report.
///
/// # Errors
/// When `claims.json` cannot be read, or is damaged.
pub fn read_claims(directory: &Path) -> Result<Vec<Claim>, WriteError> {
    let path = directory.join("claims.json");
    match fs::read(&path) {
        Ok(text) => Ok(serde_json::from_slice(&text)?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(source) => Err(WriteError::Io { path, source }),
    }
}

/// Writes `report.html`, `claims.json` and all figures into `directory`, which is made if need be.
///
/// # Errors
/// When an id is none or given twice, a figure cannot be drawn, or a file cannot be written.
pub fn write(directory: &Path, report: &Report) -> Result<Written, WriteError> {
    check_ids(report)?;
    let folder = directory.join("figures");
    fs::create_dir_all(&folder).map_err(|source| WriteError::Io { path: folder.clone(), source })?;
    let mut figures = Vec::new();
    for (id, figure) in report.sections.iter().flat_map(|section| &section.figures) {
        figures.extend(write_figure(&folder, id, figure)?);
    }
    let claims: Vec<&Claim> = report.claims().collect();
    let json = serde_json::to_string_pretty(&claims)? + "\n";
    Ok(Written {
        claims: put(directory.join("claims.json"), json.as_bytes())?,
        report: put(directory.join("report.html"), page(report).as_bytes())?,
        figures,
    })
}

fn write_figure(folder: &Path, id: &str, figure: &Figure) -> Result<[PathBuf; 2], WriteError> {
    let svg = figure.svg(id, Theme::Paper);
    let png = figure.png().map_err(|source| WriteError::Figure { id: id.to_owned(), source })?;
    Ok([put(folder.join(format!("{id}.svg")), svg.as_bytes())?, put(folder.join(format!("{id}.png")), &png)?])
}

fn check_ids(report: &Report) -> Result<(), WriteError> {
    let sections = report.sections.iter().map(|section| &section.id);
    let figures = report.sections.iter().flat_map(|section| &section.figures).map(|(id, _)| id);
    check_names(sections)?;
    check_names(figures)?;
    let mut claims = BTreeSet::new();
    let twice = report.claims().find(|claim| !claims.insert(&claim.id));
    twice.map_or(Ok(()), |claim| Err(WriteError::Twice(claim.id.clone())))
}

fn check_names<'a>(names: impl Iterator<Item = &'a String>) -> Result<(), WriteError> {
    let mut seen = BTreeSet::new();
    for name in names {
        if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_') {
            return Err(WriteError::Id(name.clone()));
        }
        if !seen.insert(name) {
            return Err(WriteError::Twice(name.clone()));
        }
    }
    Ok(())
}

/// Writes a file beside its place, then puts it there in one step.
fn put(path: PathBuf, content: &[u8]) -> Result<PathBuf, WriteError> {
    let mut draft = path.as_os_str().to_owned();
    draft.push(format!(".{}.tmp", std::process::id()));
    let draft = PathBuf::from(draft);
    let done = fs::write(&draft, content).and_then(|()| fs::rename(&draft, &path));
    match done {
        Ok(()) => Ok(path),
        Err(source) => {
            // The draft may not exist; what matters is the first error.
            let _ = fs::remove_file(&draft);
            Err(WriteError::Io { path, source })
        }
    }
}
