//! The queue that a description asks for.

use crate::forward::forward_queue;
use crate::{AnyAqm, AnyDiscipline, AqmSpec, Fifo, Limit, Tsq, TsqParams, drop_tail};
use cutline_params::ParameterError;
use cutline_units::Rate;

/// The description of a queue.
#[derive(Clone, Debug, PartialEq)]
pub struct QueueSpec {
    /// How much may wait.
    pub limit: Limit,
    /// Whether packets that can be marked are marked instead of dropped early (RFC 3168).
    pub ecn: bool,
    /// The AQM.
    pub aqm: AqmSpec,
    /// TSQ on top of the AQM; without it the queue is first-in first-out.
    pub tsq: Option<TsqParams>,
    /// The rate of the link behind the queue.
    pub rate: Rate,
}

/// A queue built from a [`QueueSpec`]. Its tag is a separate number, as that of [`AnyAqm`] is.
#[derive(Clone, Debug)]
#[repr(u32)]
pub enum AnyQueue<P> {
    /// First in, first out.
    Fifo(Fifo<P, AnyAqm>),
    /// Cut in line and pay for it.
    Tsq(Tsq<P, AnyAqm>),
    /// A discipline, or any queue with an external AQM.
    Discipline(Box<AnyDiscipline<P>>),
}

impl QueueSpec {
    /// Drop-tail without ECN; change the fields for anything else.
    pub const fn drop_tail(limit: Limit, rate: Rate) -> Self {
        let aqm = AqmSpec::DropTail(drop_tail::DropTailParams {});
        Self { limit, ecn: false, aqm, tsq: None, rate }
    }

    /// An empty queue of this description.
    ///
    /// # Errors
    /// When limit or rate is zero, a parameter of AQM or TSQ is not allowed, or TSQ is set on a discipline.
    pub fn build<P: Copy>(&self) -> Result<AnyQueue<P>, ParameterError> {
        if matches!(self.limit, Limit::Packets(0) | Limit::Bytes(0)) {
            return Err(zero("limit", "at least 1 packet or 1 B"));
        }
        if self.rate == Rate::ZERO {
            return Err(zero("rate", "at least 1 bit/s"));
        }
        self.aqm.build(self.tsq.as_ref(), self.limit, self.ecn, self.rate)
    }
}

fn zero(parameter: &str, allowed: &str) -> ParameterError {
    ParameterError::new(parameter, 0, allowed)
}

forward_queue!(
    #[inline]
    AnyQueue { Fifo, Tsq, Discipline }
);
