//! Service of a stream by the threads of the process: control messages, events, its row and its share.

use super::Inner;
use super::redial::Met;
use crate::connection::Connection;
use crate::connection_handle::SharedCalls;
use crate::hint_mark::hint_of;
use crate::mib::Mib;
use crate::recovery::Recovery;
use crate::service_thread::ServedConnection;
use cutline_allocation::{FlowHandler, FlowNotice};
use cutline_manager::feedback::FlowReport;
use cutline_quality::spec::ConnectionSpecification;
use cutline_signal::mib::TcpFigures;
use cutline_signal::session::Participation;
use cutline_sys::now;
use cutline_sys::tcp::tcp_info;
use cutline_units::{Bytes, Duration, Instant};
use std::io;
use std::net::SocketAddr;

/// Interval of checks of an accepted stream until the peer has begun.
const JOINING_EVERY: Duration = Duration::from_millis(10);
/// Interval of checks of a stream whose directions both ended, until the peer has everything.
const ENDING_EVERY: Duration = Duration::from_millis(20);

impl SharedCalls for Inner {
    fn connection(&self) -> &Connection {
        &self.connection
    }

    fn transport(&self) -> &'static str {
        "tcp"
    }

    fn addresses(&self) -> io::Result<[SocketAddr; 2]> {
        Ok([self.socket.local_addr()?, self.peer])
    }

    fn mib(&self) -> Mib {
        let figures = tcp_info(&self.socket).ok().map(|info| TcpFigures {
            rtt: info.rtt,
            rtt_deviation: info.rtt_deviation,
            min_rtt: info.min_rtt,
            congestion_window: info.congestion_window,
            retransmissions: info.retransmissions,
            not_sent: Bytes::new(u64::from(info.not_sent)),
            delivery_rate: info.delivery_rate,
            pacing_rate: info.pacing_rate,
        });
        self.connection.mib(&self.socket, || hint_of(&self.socket, self.peer), figures)
    }

    fn renegotiate(&self, specification: ConnectionSpecification) {
        if let Some(recovery) = &self.recovery {
            recovery.specify(&specification);
        }
        self.act(|session, out, _| session.renegotiate(now(), specification, out));
    }

    fn is_reconnecting(&self) -> bool {
        self.recovery.as_ref().is_some_and(Recovery::is_under_way)
    }
}

impl FlowHandler for Inner {
    fn on_notice(&self, notice: FlowNotice) {
        if let Some(allocator) = &self.connection.allocator {
            self.act(allocator.change(notice));
        }
    }

    fn report(&self) -> Option<FlowReport> {
        self.connection.flow_report(&self.socket)
    }

    fn missed(&self) -> u64 {
        self.connection.missed_deadlines()
    }
}

impl ServedConnection for Inner {
    fn shared_calls(&self) -> Option<&dyn SharedCalls> {
        Some(self)
    }

    fn serve(&self, now: Instant) -> Instant {
        if let Some(due) = self.recovery.as_ref().and_then(|recovery| recovery.serve(self)) {
            return due;
        }
        // While the application reads, it reads control messages, too.
        if let (Participation::Joined(token), Ok(mut receive_buffer)) =
            (self.connection.participation(), self.receive_buffer.try_lock())
        {
            loop {
                match receive_buffer.control(&self.socket, token) {
                    Ok(Some(control)) => self.handle(&control),
                    Ok(None) => break,
                    Err(error) => {
                        self.notice(Some(&error), Met::ByControl);
                        break;
                    }
                }
            }
            // Control messages were taken, so that the rest is for the application.
            // They may have come only just now.
            let is_unread = receive_buffer.has_payload(token) || self.has_unread_in_kernel();
            self.connection.note_unread(is_unread.then_some(now));
        }
        if self.connection.participation() == Participation::Joining {
            // An end that was accepted answers also while the application does not read yet. It may have refused already.
            if self.connection.outcome(self.demands_peer).is_none()
                && let Ok(mut receive_buffer) = self.receive_buffer.try_lock()
            {
                let _later = receive_buffer
                    .early_negotiation(&self.socket)
                    .map(|message| self.on_negotiation(message));
            }
            let is_new = now.saturating_since(self.since) < self.patience || self.end_reading();
            return now.saturating_add(if is_new { JOINING_EVERY } else { self.patience });
        }
        self.listen(now);
        if let Ok(mut send_buffer) = self.send_buffer.try_lock() {
            send_buffer.notice_room(&self.socket, &self.connection);
        }
        let due = self.act(|session, out, inbound| session.advance(now, out, inbound));
        let due = if self.end_reading() { due.min(now.saturating_add(ENDING_EVERY)) } else { due };
        if self.is_up() { due } else { now }
    }
}
