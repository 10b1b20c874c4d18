//! Errors of a datagram socket.
//!
//! The kernel reports a full queue of the interface only to sockets that queue their errors ([`cutline_sys::error_queue`]). Such a socket
//! also sees ICMP messages that other sockets do not: that a host or a network cannot be reached for the time being, or that a packet was
//! under way for too long. RFC 1122 section 4.1.3.3 calls them soft errors. They are counted and not shown.

use super::carrier::DatagramCarrier;
use crate::connection::Connection;
use cutline_sys::error_queue::{ErrorOrigin, QueuedError, enable, take};
use rustix::io::Errno;
use std::io;

/// Largest number of retransmissions of a datagram because of such errors.
const MOST_TRIES: usize = 8;

/// Errors of a socket.
pub struct Errors {
    /// True if the queue is ours. An application that has requested it before needs all errors and
    /// reads them itself.
    is_ours: bool,
}

/// An error of a call.
pub enum Judged {
    /// The application is to see it.
    Shown(io::Error),
    /// A socket that does not queue its errors would not have failed. The number of messages that reported it.
    Hidden(usize, io::Error),
}

impl Errors {
    /// Lets a socket queue its errors. One of frames has none: no router answers them.
    pub fn of(socket: &DatagramCarrier) -> io::Result<Self> {
        let is_ours = match socket {
            DatagramCarrier::Udp(socket) => enable(socket)?,
            DatagramCarrier::Direct(_) => false,
        };
        Ok(Self { is_ours })
    }

    /// Judges the error of a call, and empties the queue.
    pub fn judge(&self, socket: &DatagramCarrier, error: io::Error) -> Judged {
        let errno = Errno::from_io_error(&error);
        // Those are never in the queue.
        let is_of_call = matches!(errno, None | Some(Errno::AGAIN | Errno::NOBUFS | Errno::INTR));
        if !self.is_ours || is_of_call {
            return Judged::Shown(error);
        }
        let (mut soft, mut is_soft) = (0, matches!(errno, Some(Errno::HOSTUNREACH | Errno::NETUNREACH)));
        let mut hard = None;
        while let Ok(Some(queued)) = take(socket) {
            if queued.origin == ErrorOrigin::Other {
                continue;
            }
            if is_transient(queued) {
                soft += 1;
                is_soft |= Some(queued.errno) == error.raw_os_error();
            } else {
                hard = Some(queued.errno);
            }
        }
        match hard {
            Some(hard) => Judged::Shown(io::Error::from_raw_os_error(hard)),
            None if is_soft => Judged::Hidden(soft, error),
            None => Judged::Shown(error),
        }
    }

    /// Makes a call that sends, and again if it has failed because of an error of an earlier datagram.
    pub fn retry<T>(
        &self,
        (socket, connection): (&DatagramCarrier, &Connection),
        mut call: impl FnMut() -> io::Result<T>,
    ) -> io::Result<T> {
        let mut tries = 1;
        loop {
            let error = match call() {
                Ok(done) => return Ok(done),
                Err(error) => error,
            };
            match self.judge(socket, error) {
                Judged::Shown(error) => return Err(error),
                Judged::Hidden(messages, error) => {
                    count(connection, messages);
                    // Without a message it may come from this host, which has no route: then it comes again.
                    let is_over = messages == 0 && tries > 1 || tries == MOST_TRIES;
                    if is_over {
                        return Err(error);
                    }
                }
            }
            tries += 1;
        }
    }
}

/// Counts messages of ICMP that were not shown.
pub fn count(connection: &Connection, messages: usize) {
    if messages > 0 {
        connection.feed_back(|feedback| feedback.unreachable += messages as u64);
    }
}

/// Returns whether a connected socket that does not queue its errors does not see this one: the kernel's
/// tables of fatal errors (`icmp_err_convert`, `icmpv6_err_convert`).
const fn is_transient(error: QueuedError) -> bool {
    match error.origin {
        // Network or host unreachable, source route failed, and unreachable for this type of service (RFC 1122 section 3.2.2.1); time
        // exceeded.
        ErrorOrigin::Icmp { kind: 3, code } => matches!(code, 0 | 1 | 5 | 11 | 12),
        ErrorOrigin::Icmp { kind, .. } => kind == 11,
        // No route, beyond the scope of the source address, address unreachable (RFC 4443 section 3.1); time exceeded.
        ErrorOrigin::Icmp6 { kind: 1, code } => matches!(code, 0 | 2 | 3),
        ErrorOrigin::Icmp6 { kind, .. } => kind == 3,
        ErrorOrigin::Other => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_that_a_plain_socket_ignores_are_transient() {
        let is_transient = |origin| is_transient(QueuedError { errno: 113, origin });
        for (code, soft) in
            [(0, true), (1, true), (2, false), (3, false), (4, false), (10, false), (13, false)]
        {
            assert_eq!(is_transient(ErrorOrigin::Icmp { kind: 3, code }), soft, "ICMP 3/{code}");
        }
        for (code, soft) in [(0, true), (1, false), (2, true), (3, true), (4, false), (5, false)] {
            assert_eq!(is_transient(ErrorOrigin::Icmp6 { kind: 1, code }), soft, "ICMPv6 1/{code}");
        }
        assert!(
            is_transient(ErrorOrigin::Icmp { kind: 11, code: 0 })
                && !is_transient(ErrorOrigin::Icmp { kind: 12, code: 0 })
        );
        assert!(
            is_transient(ErrorOrigin::Icmp6 { kind: 3, code: 0 })
                && !is_transient(ErrorOrigin::Icmp6 { kind: 4, code: 0 })
        );
    }
}
