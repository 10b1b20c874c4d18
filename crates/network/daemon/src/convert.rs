//! Values of the engine and of clients.

use cutline_provision::{Flow, RefusalReason, TransportProtocol};
use cutline_rsvp::object::{Selector, Sender, Session, code};
use std::net::SocketAddr;

/// Returns the session of a flow.
pub fn session(transport: TransportProtocol, destination: SocketAddr) -> Session {
    Session { destination: destination.ip(), protocol: transport.number(), port: destination.port() }
}

/// Returns the sender of a flow.
pub const fn sender(source: SocketAddr) -> Sender {
    Sender::new(source.ip(), source.port())
}

/// The session and the sender of a flow.
pub fn of_flow(flow: &Flow) -> (Session, Sender) {
    (session(flow.transport, flow.destination), sender(flow.source))
}

/// The socket address of a sender; a flow label has no port.
pub const fn address(sender: &Sender) -> SocketAddr {
    let port = match sender.selector {
        Selector::Port(port) => port,
        Selector::FlowLabel(_) => 0,
    };
    SocketAddr::new(sender.address, port)
}

/// Returns the meaning of an error (RFC 2205 appendix B).
pub fn reason(code: u8, value: u16) -> RefusalReason {
    match (code, value) {
        (code::ADMISSION, code::BANDWIDTH) => RefusalReason::Bandwidth,
        (code::ADMISSION, code::DELAY_BOUND) => RefusalReason::Burst,
        (code::ADMISSION, code::PACKET_SIZE) => RefusalReason::PacketSize,
        (code::NO_PATH | code::NO_SENDER, _) => RefusalReason::NoPath,
        (
            code::CONFLICTING_STYLE
            | code::UNKNOWN_STYLE
            | code::CONFLICTING_PORTS
            | code::CONFLICTING_SENDER_PORTS,
            _,
        ) => RefusalReason::Conflict,
        (code::PREEMPTED, _) => RefusalReason::Preempted,
        (code::RSVP_SYSTEM, code::NO_ROOM) => RefusalReason::Other(
            "a node on the path has as many flows of this neighbour or link as it may".to_owned(),
        ),
        (code, value) => {
            RefusalReason::Other(format!("RSVP error {code}, value {value} (RFC 2205 appendix B)"))
        }
    }
}
