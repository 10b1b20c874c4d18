//! The kernel's counters of a TCP connection, and its pacing rate (tcp(7), linux/tcp.h).

use crate::sockopt::{SO_MAX_PACING_RATE, SocketOption};
use cutline_units::{Duration, Rate};
use rustix::fd::AsFd;
use std::io;

/// The kernel's counters of a TCP connection. Fields that a kernel does not have are zero, except
/// [`TcpInfo::timeouts`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpInfo {
    /// Smoothed round-trip time.
    pub rtt: Duration,
    /// Mean deviation of the round-trip time.
    pub rtt_deviation: Duration,
    /// Smallest round-trip time seen recently.
    pub min_rtt: Duration,
    /// Retransmission timeout.
    pub rto: Duration,
    /// Congestion window, segments.
    pub congestion_window: u32,
    /// Slow-start threshold, segments.
    pub slow_start_threshold: u32,
    /// Payload of a full segment, bytes.
    pub max_segment: u32,
    /// True if the connection is closed in both directions.
    pub is_closed: bool,
    /// Segments sent and not acknowledged.
    pub unacknowledged: u32,
    /// Probes that were not answered: for room at the other end, or of a path without a route. A segment that no route leads to is not
    /// in [`TcpInfo::unacknowledged`].
    pub unanswered_probes: u8,
    /// The time since the last acknowledgement.
    pub since_acknowledgement: Duration,
    /// Data segments sent, including retransmissions.
    pub data_segments: u32,
    /// Segments retransmitted.
    pub retransmissions: u32,
    /// Retransmission timeouts; `None` where the kernel does not count them (before 6.7).
    pub timeouts: Option<u32>,
    /// Segments that the other end has acknowledged.
    pub delivered: u32,
    /// Delivered segments that were acknowledged with an ECN echo.
    pub delivered_ce: u32,
    /// Bytes sent, including retransmissions.
    pub bytes_sent: u64,
    /// Bytes retransmitted.
    pub bytes_retransmitted: u64,
    /// Bytes acknowledged.
    pub bytes_acked: u64,
    /// Bytes in the socket's buffer that have not been sent yet.
    pub not_sent: u32,
    /// The rate that segments are paced to, bit/s; zero if they are not paced.
    pub pacing_rate: Rate,
    /// The delivery rate measured last, bit/s.
    pub delivery_rate: Rate,
    /// True if both ends have agreed on ECN.
    pub ecn: bool,
    /// True if both ends have agreed on selective acknowledgements.
    pub sack: bool,
}

/// `TCP_FIN_WAIT2`, `TCP_TIME_WAIT` and `TCP_CLOSE` of `linux/tcp_states.h`, as `TCP_INFO` begins with.
const FIN_WAIT_2: u8 = 5;
const TIME_WAIT: u8 = 6;
const CLOSE: u8 = 7;

/// `TCP_INFO`: a struct that only grows at its end, 248 bytes in Linux 6.18.
const TCP_INFO: SocketOption<[u8; ROOM]> = SocketOption::new(libc::IPPROTO_TCP, libc::TCP_INFO);

/// Room for more than any kernel's struct so far, bytes.
const ROOM: usize = 512;

/// Returns the kernel's state of a connection.
///
/// # Errors
/// When it is not a TCP socket.
pub fn tcp_info(socket: impl AsFd) -> io::Result<TcpInfo> {
    Ok(parse(TCP_INFO.get_bytes(socket, &mut [0; ROOM])?))
}

/// Returns whether the other end has acknowledged everything, including the end of this direction (RFC 9293
/// section 3.6), or the connection is gone.
///
/// # Errors
/// When it is not a TCP socket.
pub fn is_delivered(socket: impl AsFd) -> io::Result<bool> {
    let state = TCP_INFO.get_bytes(socket, &mut [0; ROOM])?.first().copied();
    Ok(state.is_some_and(|state| matches!(state, FIN_WAIT_2 | TIME_WAIT | CLOSE)))
}

/// Limits the rate that a TCP socket is paced to (`SO_MAX_PACING_RATE`); UDP sockets accept it and ignore it.
///
/// # Errors
/// When the kernel refuses it.
pub fn set_max_pacing_rate(socket: impl AsFd, rate: Rate) -> io::Result<()> {
    SO_MAX_PACING_RATE.set(socket, rate.as_bps() / 8)
}

/// Reads the fields by their offsets in linux/tcp.h's `struct tcp_info`.
fn parse(bytes: &[u8]) -> TcpInfo {
    let word =
        |at: usize| bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |x| u32::from_ne_bytes(*x));
    let long =
        |at: usize| bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |x| u64::from_ne_bytes(*x));
    let half = |at: usize| bytes.get(at..).and_then(<[u8]>::first_chunk).map(|x| u16::from_ne_bytes(*x));
    let time = |at: usize| Duration::from_micros(u64::from(word(at)));
    let rate = |at: usize| Rate::from_bps(if long(at) == u64::MAX { 0 } else { long(at).saturating_mul(8) });
    let options = bytes.get(5).copied().unwrap_or_default();
    TcpInfo {
        rto: time(8),
        max_segment: word(16),
        is_closed: bytes.first() == Some(&CLOSE),
        unanswered_probes: bytes.get(3).copied().unwrap_or_default(),
        unacknowledged: word(24),
        since_acknowledgement: Duration::from_millis(u64::from(word(56))),
        rtt: time(68),
        rtt_deviation: time(72),
        slow_start_threshold: word(76),
        congestion_window: word(80),
        retransmissions: word(100),
        pacing_rate: rate(104),
        bytes_acked: long(120),
        not_sent: word(144),
        min_rtt: time(148),
        data_segments: word(156),
        delivery_rate: rate(160),
        delivered: word(192),
        delivered_ce: word(196),
        bytes_sent: long(200),
        bytes_retransmitted: long(208),
        timeouts: half(240).map(u32::from),
        // TCPI_OPT_SACK and TCPI_OPT_ECN.
        sack: options & 2 != 0,
        ecn: options & 8 != 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    #[test]
    #[cfg_attr(miri, ignore = "needs socket options of Linux, which Miri has not")]
    fn a_connection_has_counters() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        set_max_pacing_rate(&stream, Rate::from_mbps(8)).unwrap();
        let info = tcp_info(&stream).unwrap();
        assert!(info.congestion_window > 0 && info.max_segment > 0, "{info:?}");
        assert_eq!((info.retransmissions, info.bytes_acked <= 1), (0, true), "{info:?}");
    }

    #[test]
    #[cfg_attr(miri, ignore = "needs socket options of Linux, which Miri has not")]
    fn data_acknowledged_after_the_shutdown_is_delivered() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        assert!(!is_delivered(&stream).unwrap());
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        while !is_delivered(&stream).unwrap() {
            std::thread::yield_now();
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "needs socket options of Linux, which Miri has not")]
    fn a_socket_that_is_not_tcp_has_no_information() {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        assert!(tcp_info(&socket).is_err());
    }

    #[test]
    fn fields_that_an_older_kernel_lacks_are_zero_or_none() {
        let mut bytes = [0_u8; 104];
        bytes[100] = 7;
        let info = parse(&bytes);
        assert_eq!((info.retransmissions, info.timeouts, info.bytes_acked), (7, None, 0));
        assert_eq!(parse(&[0; 248]).timeouts, Some(0));
    }
}
