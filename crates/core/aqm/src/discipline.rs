//! Queues that are more than a law in front of a FIFO: they choose which packet goes next, or drop when packets leave.

use crate::Limit;
use cutline_params::{ParameterError, Parameters};
use cutline_units::{Duration, Rate};
use std::fmt::Debug;

/// A queue that the registry can name, describe and build. TSQ does not work on top of it: it has no drop probability, or
/// an order of its own.
pub trait Discipline: Sized {
    /// Parameters of the discipline.
    type Params: Parameters + Clone + Debug + PartialEq;
    /// The name in scenario files and on the command line, in kebab-case.
    const NAME: &'static str;
    /// The name as people write it.
    const TITLE: &'static str;
    /// The paper or RFC.
    const SOURCE: &'static str;

    /// An empty queue in front of a link of rate `rate`. With `ecn` a packet that can be marked is marked where
    /// it would be dropped early.
    ///
    /// # Errors
    /// When a parameter is outside its range, or two do not go together.
    fn build(params: &Self::Params, limit: Limit, ecn: bool, rate: Rate) -> Result<Self, ParameterError>;

    /// Returns the delay at which the queue settles for packets of a sparse flow without a hint while other flows fill the
    /// link, such as its target. `None` if such packets do not wait behind the others, or if it is not known.
    /// [`standing`](crate::standing) turns lengths into delays.
    fn standing_delay(_params: &Self::Params, _limit: Limit, _rate: Rate) -> Option<Duration> {
        None
    }
}

/// Returns the error for TSQ on a discipline.
pub(crate) fn tsq_on_a_discipline(name: &str) -> ParameterError {
    ParameterError::new("tsq", true, format!("false with {name}, which is a queue of its own"))
}
