//! The session of a connection, from its options.

use crate::error::QosError;
use crate::options::{Marking, Peer, QosOptions};
use cutline_signal::negotiation::{Carrier, Nonce};
use cutline_signal::rate_control::RateControl;
use cutline_signal::session::{Policies, Session, SessionParams, SessionStart};
use cutline_sys::now;
use cutline_units::Streams;

/// Role of an end of a connection.
pub enum Role {
    /// The end that begins the negotiation.
    Initiator,
    /// The end that answers.
    Responder,
    /// The peer is a plain socket.
    Alone,
}

/// Unpredictable random bytes.
pub fn random<const N: usize>() -> Result<[u8; N], QosError> {
    cutline_sys::random().map_err(QosError::system("cannot get random numbers"))
}

/// Creates a session from the options, which begins now.
pub fn begin(options: &QosOptions, role: &Role, carrier: Carrier) -> Result<Session, QosError> {
    options.rate_control.check_carrier(carrier)?;
    if options.rate_control.needs_feedback() && options.peer == Peer::Plain {
        let why = "with peer = plain: a plain socket sends no feedback";
        return Err(RateControl::refusal(why).into());
    }
    let now = now();
    let seed = u64::from_ne_bytes(random()?);
    let adapt_hint = match &options.marking {
        Marking::Adaptive(class, params) => Some((*class, *params)),
        Marking::Translated | Marking::None | Marking::Fixed(_) | Marking::Dscp(_) => None,
    };
    let start = SessionStart {
        specification: options.specification.clone(),
        carrier,
        params: SessionParams {
            negotiation: options.negotiation.clone(),
            monitor: options.monitor.clone(),
            policies: Policies {
                adapt_hint,
                adapt_rate: options.operation.clone(),
                renegotiate: options.alternatives.clone(),
            },
            rate_control: options.rate_control.tolerating_lateness(),
            ..SessionParams::default()
        },
        key: options.key,
        random: Streams::new(seed).stream("socket", "policies"),
        trace: options.trace.clone(),
    };
    let nonce: Nonce = random()?;
    Ok(match role {
        Role::Initiator => Session::initiate(now, start, (u64::from_ne_bytes(random()?), nonce))?,
        Role::Responder => Session::respond(now, start, nonce)?,
        Role::Alone => Session::alone(now, start)?,
    })
}
