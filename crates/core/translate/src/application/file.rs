//! Files: complete and in order, at any rate unless they must be there in time.
//!
//! Worked: 100 MB within 80 s are 1.25 MB/s, in messages of 64 KiB 1,250,000 / 65,536 = 19.07 messages/s.

use super::{ApplicationTranslator, transfer};
use crate::demand::Demand;
use cutline_params::{ParameterError, Parameters};
use cutline_quality::spec::SpecParameter;
use cutline_units::{Bytes, Duration};

/// Time that a person waits for files before giving up.
const PATIENCE: Duration = Duration::from_secs(60);

/// A transfer of files in its own words.
#[derive(Clone, Debug, PartialEq, Parameters)]
#[parameters(check = FileParams::check)]
pub struct FileParams {
    /// The size of the file, or of all of them.
    #[param(default = None, range = (1, 100_000_000_000), unit = "B", source = "any size")]
    pub size: Option<Bytes>,
    /// Time until the whole file must have arrived; requires size.
    #[param(
        default = None,
        range = (Duration::from_secs(1), Duration::from_secs(86_400)),
        source = "any time will do"
    )]
    pub within: Option<Duration>,
}

impl FileParams {
    fn check(&self) -> Result<(), ParameterError> {
        match (self.size, self.within) {
            (None, Some(time)) => Err(ParameterError::new("within", time, "off while size is off")),
            _ => Ok(()),
        }
    }
}

impl ApplicationTranslator for FileParams {
    const NAME: &'static str = "file";
    const TITLE: &'static str = "transfer of files";

    fn demands(&self) -> Vec<Demand> {
        let mut demands = Vec::new();
        if let (Some(size), Some(within)) = (self.size, self.within) {
            demands.extend(transfer(size, within, ""));
        }
        demands.extend(Demand::complete());
        let recovery = self.within.map_or(PATIENCE, |within| within.min(PATIENCE));
        let why = "a transfer that stops for longer is given up";
        demands.push(Demand::new(SpecParameter::Recovery, recovery, "ITU-T G.1010 table I.2", why));
        demands
    }
}
