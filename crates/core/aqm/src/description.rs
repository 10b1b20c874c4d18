//! Description of an AQM: its names, source and parameters.

use crate::{Aqm, Discipline};
use cutline_params::{Parameter, Parameters as _};

/// The description of an AQM.
#[derive(Clone, Debug)]
pub struct AqmDescription {
    /// The name in scenario files and on the command line.
    pub name: &'static str,
    /// The name as people write it.
    pub title: &'static str,
    /// The paper or RFC.
    pub source: &'static str,
    /// The parameters.
    pub parameters: Vec<&'static Parameter>,
    /// True if the AQM is a law, over which TSQ can work.
    pub takes_tsq: bool,
}

impl AqmDescription {
    pub(crate) fn from_law<A: Aqm>() -> Self {
        let parameters = A::Params::describe();
        Self { name: A::NAME, title: A::TITLE, source: A::SOURCE, parameters, takes_tsq: true }
    }

    pub(crate) fn from_discipline<D: Discipline>() -> Self {
        let parameters = D::Params::describe();
        Self { name: D::NAME, title: D::TITLE, source: D::SOURCE, parameters, takes_tsq: false }
    }
}
