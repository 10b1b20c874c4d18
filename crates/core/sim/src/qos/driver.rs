//! A session with its two directions, and the actions that follow from its outputs. An agent drives it; [`replay`] gives it the inputs of another
//! session.

use cutline_params::ParameterError;
use cutline_quality::spec::Specification;
use cutline_signal::session::trace::{SessionTrace, TraceRecord};
use cutline_signal::session::{Inbound, Outbound, Session, SessionEvent};
use cutline_units::{Hint, Instant};

/// A session that has begun.
pub(super) struct Driver {
    pub(super) session: Session,
    pub(super) out: Outbound,
    pub(super) inbound: Inbound,
    hint: Hint,
    /// Effective specification of the sending direction.
    effective: Specification,
    /// The rate at which the application should send, messages/s, if the session requests one.
    target: Option<f64>,
}

impl Driver {
    /// A session that begins now. Its packets have this hint until it requests another one; this specification holds until
    /// both ends agree.
    pub(super) fn new(session: Session, now: Instant, hint: Hint, send: Specification) -> Self {
        let (out, inbound) = session.directions(now);
        let hint = session.hint().unwrap_or(hint);
        Self { session, out, inbound, hint, effective: send, target: None }
    }

    /// The hint of the packets.
    pub(super) const fn hint(&self) -> Hint {
        self.hint
    }

    /// Returns the effective specification of the sending direction.
    pub(super) const fn effective(&self) -> &Specification {
        &self.effective
    }

    /// The rate at which the application sends, messages/s, if there is one.
    pub(super) fn rate(&self) -> Option<f64> {
        self.target.or(self.effective.max_rate)
    }

    /// The next control message to send.
    pub(super) fn transmit(&mut self) -> Option<Vec<u8>> {
        self.session.transmit()
    }

    /// The next event, which is followed.
    pub(super) fn event(&mut self) -> Option<SessionEvent> {
        let event = self.session.event()?;
        match &event {
            SessionEvent::Agreed(agreed) => {
                self.effective = agreed.send.effective.clone();
                self.target = None;
            }
            SessionEvent::Hint(hint) => self.hint = *hint,
            SessionEvent::Rate(rate) => self.target = Some(*rate),
            SessionEvent::Refused { .. }
            | SessionEvent::OneSided(_)
            | SessionEvent::Requested(_)
            | SessionEvent::Violated(..)
            | SessionEvent::Restored { .. }
            | SessionEvent::Lost { .. }
            | SessionEvent::Recovered { .. }
            | SessionEvent::GaveUp { .. }
            | SessionEvent::Allocated { .. }
            | SessionEvent::Unallocated(_) => {}
        }
        Some(event)
    }
}

/// Decisions of an end that was given the inputs of another one.
#[derive(Clone, Debug)]
pub struct Replayed {
    /// Inputs and outputs of its session.
    pub record: TraceRecord,
    /// The control messages that it has sent.
    pub sent: Vec<Vec<u8>>,
    /// Events of its session.
    pub events: Vec<SessionEvent>,
    /// The hint of its packets at the end.
    pub hint: Hint,
    /// The rate of its application at the end, messages/s; `None` if no rate holds.
    pub rate: Option<f64>,
}

/// Starts an end of a connection in the simulator as the session of a record, such as that of a QoS socket, and gives it the same
/// inputs at the same times. Its packets have this hint, until the session requests another one.
///
/// # Errors
/// When the session began with a parameter that is not allowed.
pub fn replay(record: &TraceRecord, hint: Hint) -> Result<Replayed, ParameterError> {
    let (trace, beginning) = (SessionTrace::default(), &record.beginning);
    let session = beginning.session(&trace)?;
    let mut driver = Driver::new(session, beginning.at, hint, beginning.start.specification.send.clone());
    let (mut sent, mut events) = (Vec::new(), Vec::new());
    for step in &record.steps {
        step.repeat(&mut driver.session, &mut driver.out, &mut driver.inbound);
        sent.extend(std::iter::from_fn(|| driver.transmit()));
        events.extend(std::iter::from_fn(|| driver.event()));
    }
    let mut record = trace.records().remove(0);
    // The directions with which every end begins here.
    record.steps.remove(0);
    Ok(Replayed { record, sent, events, hint: driver.hint(), rate: driver.rate() })
}
