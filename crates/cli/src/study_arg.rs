//! The argument STUDY: a study of the program, all of them, or the folder of a user's study.

use crate::exit::Failure;
use clap::builder::{PossibleValue, TypedValueParser};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use cutline_reproduce::{PLATFORMS, is_real_time, studies, study};
use cutline_study::Study;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// The name of all studies that are simulated.
const ALL: &str = "all";

/// Kinds of the argument STUDY.
#[derive(Clone, Debug)]
pub enum StudyArg {
    /// All studies that are simulated.
    All,
    /// A study of the program.
    BuiltIn(&'static Study),
    /// A folder with `study.toml`, `figures.toml` and scenarios.
    Folder(PathBuf),
}

impl StudyArg {
    /// The studies. One of a folder is read into `opened`.
    ///
    /// # Errors
    /// When the folder's study is not valid.
    pub fn studies<'s>(&'s self, opened: &'s mut Option<Study>) -> Result<Vec<&'s Study>, Failure> {
        Ok(match self {
            Self::All => studies().iter().filter(|study| !is_real_time(study)).collect(),
            Self::BuiltIn(study) => vec![study],
            Self::Folder(folder) => vec![&*opened.insert(Study::open(folder, PLATFORMS)?)],
        })
    }
}

/// Reads STUDY.
#[derive(Clone)]
pub struct StudyParser;

impl TypedValueParser for StudyParser {
    type Value = StudyArg;

    fn parse_ref(
        &self,
        command: &clap::Command,
        _: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<StudyArg, clap::Error> {
        let name = value.to_string_lossy();
        if name == ALL {
            return Ok(StudyArg::All);
        }
        if let Some(found) = study(&name) {
            return Ok(StudyArg::BuiltIn(found));
        }
        if Study::is_in(Path::new(value)) {
            return Ok(StudyArg::Folder(value.into()));
        }
        let mut error = clap::Error::new(ErrorKind::InvalidValue).with_cmd(command);
        let names = studies().iter().map(|study| study.id.clone());
        let valid = names.chain([ALL.to_owned(), "a folder with study.toml".to_owned()]);
        error.insert(ContextKind::InvalidArg, ContextValue::String("<STUDY>".to_owned()));
        error.insert(ContextKind::InvalidValue, ContextValue::String(name.into_owned()));
        error.insert(ContextKind::ValidValue, ContextValue::Strings(valid.collect()));
        Err(error)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let all = PossibleValue::new(ALL).help("All studies that are simulated");
        let built_in =
            studies().iter().map(|study| PossibleValue::new(study.id.as_str()).help(study.about.as_str()));
        Some(Box::new(built_in.chain([all])))
    }
}
