#![doc = include_str!("../README.md")]

mod changes;
mod check;
mod claims;
mod contents;
mod data;
mod error;
mod evaluation;
mod experiment;
mod figures;
mod file;
mod measure;
mod options;
mod origin;
mod over_time;
mod panels;
pub mod papers;
mod platform;
mod run_details;
mod settings;
mod study;
mod timing;

pub use changes::ExperimentChanges;
pub use claims::{Evidence, Measured, Own};
pub use data::{
    Data, ExperimentData, Point, difference, mean, ratio, results_of, unpaired_difference, unpaired_ratio,
};
pub use error::{StudyError, UnknownFigure};
pub use evaluation::{Evaluation, EvaluationEvent};
pub use experiment::{Experiment, Override, Overrides};
pub use figures::{FigureText, FindOwn, section, sections};
pub use file::FindScenario;
pub use measure::{StudyMeasure, call_voice, kbps, lost};
pub use options::EvaluationOptions;
pub use platform::{Platform, Run, Simulator};
pub use study::{Code, ReadyStudy, Study, Texts};
