//! Writes the files of a report into a directory, each complete or not at all.

use super::claim::Claim;
use super::document::{Report, Section};
use super::html::html_page;
use crate::chart::{Figure, Format, FormatError, Theme, missing_scripts};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// The files of a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportFiles {
    /// The HTML page.
    pub report: PathBuf,
    /// The claims as JSON.
    pub claims: PathBuf,
    /// The figures that have values, each as SVG, PNG and PDF, and the pictures beside them, as PNG.
    pub figures: Vec<PathBuf>,
    /// The names of the scripts in figures that no font of this machine has: their characters are boxes in PNG and PDF.
    pub missing_scripts: Vec<&'static str>,
}

/// Reason why a report was not written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// A file or directory cannot be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// An id cannot be the name of a file.
    #[error("the id \"{0}\" is empty or has characters other than letters, digits, '-' and '_'")]
    InvalidId(String),
    /// An id is used twice.
    #[error("the id \"{0}\" is used twice")]
    DuplicateId(String),
    /// A figure cannot be drawn.
    #[error("figure {id}: {source}")]
    Figure {
        /// The id of the figure.
        id: String,
        /// The reason.
        source: FormatError,
    },
    /// The claims cannot be written as JSON or read.
    #[error("claims.json: {0}")]
    Json(#[from] serde_json::Error),
}

/// The claims of the report in `directory`; empty if there is no report.
///
/// # Errors
/// When `claims.json` cannot be read or is damaged.
pub fn read_claims(directory: &Path) -> Result<Vec<Claim>, WriteError> {
    let path = directory.join("claims.json");
    match fs::read(&path) {
        Ok(text) => Ok(serde_json::from_slice(&text)?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(source) => Err(WriteError::Io { path, source }),
    }
}

/// Writes `report.html`, `claims.json` and all figures and pictures into `directory`, which is created if it does not exist. A figure
/// without a value has no files.
///
/// # Errors
/// When an id is invalid or used twice, a figure cannot be drawn, or a file cannot be written.
pub fn write(directory: &Path, report: &Report) -> Result<ReportFiles, WriteError> {
    check_ids(report)?;
    let folder = directory.join("figures");
    fs::create_dir_all(&folder).map_err(|source| WriteError::Io { path: folder.clone(), source })?;
    let (mut figures, mut texts) = (Vec::new(), String::new());
    for (id, figure) in report.sections.iter().flat_map(Section::drawn) {
        figures.extend(write_figure(&folder, id, figure)?);
        texts += &figure.svg(id, Theme::Paper);
    }
    for section in &report.sections {
        for (name, (_, png)) in section.picture_files().zip(&section.pictures) {
            figures.push(write_file(folder.join(name), png)?);
        }
    }
    let claims: Vec<&Claim> = report.claims().collect();
    let json = serde_json::to_string_pretty(&claims)? + "\n";
    Ok(ReportFiles {
        claims: write_file(directory.join("claims.json"), json.as_bytes())?,
        report: write_file(directory.join("report.html"), html_page(report).as_bytes())?,
        figures,
        missing_scripts: missing_scripts(&texts),
    })
}

fn write_figure(folder: &Path, id: &str, figure: &Figure) -> Result<Vec<PathBuf>, WriteError> {
    let write = |format: Format| {
        let file = figure.file(id, format);
        let file = file.map_err(|source| WriteError::Figure { id: id.to_owned(), source })?;
        write_file(folder.join(format!("{id}.{}", format.extension())), &file)
    };
    Format::ALL.into_iter().map(write).collect()
}

fn check_ids(report: &Report) -> Result<(), WriteError> {
    let sections = report.sections.iter().map(|section| &section.id);
    let figures = report.sections.iter().flat_map(|section| &section.figures).map(|(id, _)| id);
    check_names(sections)?;
    check_names(figures)?;
    let mut claims = BTreeSet::new();
    let twice = report.claims().find(|claim| !claims.insert(&claim.id));
    twice.map_or(Ok(()), |claim| Err(WriteError::DuplicateId(claim.id.clone())))
}

fn check_names<'a>(names: impl Iterator<Item = &'a String>) -> Result<(), WriteError> {
    let mut seen = BTreeSet::new();
    for name in names {
        if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_') {
            return Err(WriteError::InvalidId(name.clone()));
        }
        if !seen.insert(name) {
            return Err(WriteError::DuplicateId(name.clone()));
        }
    }
    Ok(())
}

/// Writes a file under a temporary name, then renames it.
fn write_file(path: PathBuf, content: &[u8]) -> Result<PathBuf, WriteError> {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(format!(".{}.tmp", std::process::id()));
    let temporary = PathBuf::from(temporary);
    match cutline_files::write_whole(&path, &temporary, content) {
        Ok(()) => Ok(path),
        Err(source) => Err(WriteError::Io { path, source }),
    }
}
