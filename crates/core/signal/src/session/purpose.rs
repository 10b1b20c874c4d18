//! Purposes of the datagrams that arrive.

/// Purpose of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A new message for the application, which begins here in the datagram.
    Message(usize),
    /// A control message, for [`Session::on_control`](super::Session::on_control).
    Control(ControlKind),
    /// Nothing: a duplicate, or something that is not of this session.
    Nothing,
}

/// A kind of control message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlKind {
    /// Of a negotiation.
    Negotiation,
    /// A report.
    Report,
    /// Feedback of rate control.
    Feedback,
}
