//! Parameters and initial values of a session.

use super::trace::SessionTrace;
use crate::authentication::Key;
use crate::clock::ClockParams;
use crate::monitor::MonitorParams;
use crate::negotiation::{Carrier, NegotiationParams};
use crate::operation::OperationParams;
use crate::rate_control::RateControl;
use crate::renegotiation::Alternatives;
use crate::violation::WatchParams;
use cutline_quality::spec::ConnectionSpecification;
use cutline_quality::{Class, HintParams};
use cutline_units::RandomStream;

/// Automatic actions of a session.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Policies {
    /// The hint follows the quality that the peer reports, judged for this class of application, within the limit of the loss that
    /// was agreed on. The paper's goal, quality at any loss, is [`HintGoal::Quality`](cutline_quality::HintGoal::Quality).
    pub adapt_hint: Option<(Class, HintParams)>,
    /// The rate moves inside the region of operation.
    pub adapt_rate: Option<OperationParams>,
    /// Alternatives that are requested when the other policies cannot keep the limits; the better one is
    /// requested again later.
    pub renegotiate: Option<Alternatives>,
}

/// Parameters of a session.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SessionParams {
    /// Of its negotiation.
    pub negotiation: NegotiationParams,
    /// Of its measurements.
    pub monitor: MonitorParams,
    /// Of the comparison with the specification.
    pub watch: WatchParams,
    /// Of the offset between the clocks.
    pub clock: ClockParams,
    /// Limit of the rate at which this end sends, once the peer takes part. Streams have
    /// [`RateControl::Agreed`].
    pub rate_control: RateControl,
    /// Automatic actions.
    pub policies: Policies,
}

/// Initial values of an end.
#[derive(Clone, Debug)]
pub struct SessionStart {
    /// Requirements of the application.
    pub specification: ConnectionSpecification,
    /// Carrier of the messages.
    pub carrier: Carrier,
    /// Parameters of the session.
    pub params: SessionParams,
    /// The key that both ends share, if there is one.
    pub key: Option<Key>,
    /// Source of random decisions.
    pub random: RandomStream,
    /// Trace of the session's inputs and outputs.
    pub trace: Option<SessionTrace>,
}
