//! A TCP socket's options and counters that `rustix` has no safe face for (tcp(7), linux/tcp.h).
#![expect(unsafe_code, reason = "socket options that no safe crate wraps")]

use cutline_units::{Duration, Rate};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd};
use std::io;
use std::mem::size_of;
use std::ptr::from_ref;

/// What the kernel has counted of a TCP connection (`TCP_INFO`). Fields that a kernel does not have are zero, but for
/// [`TcpInfo::timeouts`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpInfo {
    /// Smoothed round-trip time.
    pub rtt: Duration,
    /// Its mean deviation.
    pub rtt_deviation: Duration,
    /// Least round-trip time seen lately.
    pub min_rtt: Duration,
    /// The retransmission timeout.
    pub rto: Duration,
    /// Congestion window, segments.
    pub congestion_window: u32,
    /// Slow-start threshold, segments.
    pub slow_start_threshold: u32,
    /// Payload of a full segment, bytes.
    pub max_segment: u32,
    /// Data segments sent, retransmissions among them.
    pub data_segments: u32,
    /// Segments retransmitted.
    pub retransmissions: u32,
    /// Retransmission timeouts; `None` where the kernel does not count them (before 6.7).
    pub timeouts: Option<u32>,
    /// Segments that the other end has acknowledged.
    pub delivered: u32,
    /// Of these, acknowledged with an ECN echo.
    pub delivered_ce: u32,
    /// Bytes sent, retransmissions among them.
    pub bytes_sent: u64,
    /// Bytes retransmitted.
    pub bytes_retransmitted: u64,
    /// Bytes acknowledged.
    pub bytes_acked: u64,
    /// Bytes in the socket's buffer that have not been sent.
    pub not_sent: u32,
    /// The rate at which segments are paced, bit/s; zero if they are not.
    pub pacing_rate: Rate,
    /// The rate of delivery last measured, bit/s.
    pub delivery_rate: Rate,
    /// Whether both ends have agreed on ECN.
    pub ecn: bool,
    /// Whether both ends have agreed on selective acknowledgements.
    pub sack: bool,
}

/// More than any kernel's `struct tcp_info` so far (248 bytes in 6.18).
const ROOM: usize = 512;

/// What the kernel knows of a connection.
///
/// # Errors
/// When it is not a TCP socket.
pub fn tcp_info(socket: impl AsFd) -> io::Result<TcpInfo> {
    let mut bytes = [0; ROOM];
    let mut length = ROOM as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes into `bytes`, which is that long, and says how many.
    let code = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            bytes.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    if code < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(parse(&bytes[..length as usize]))
}

/// The places of linux/tcp.h's `struct tcp_info`, which only grows at its end.
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

/// The largest payload of a segment, bytes (`TCP_MAXSEG`); set before connecting or listening.
///
/// # Errors
/// When the kernel does not take it: it must lie in 88..32,767.
pub fn set_max_segment(socket: impl AsFd, bytes: u32) -> io::Result<()> {
    set(socket.as_fd(), libc::IPPROTO_TCP, libc::TCP_MAXSEG, &bytes)
}

/// A socket takes more only while less than this waits in it unsent (`TCP_NOTSENT_LOWAT`).
///
/// # Errors
/// When the kernel does not take it.
pub fn set_not_sent_lowat(socket: impl AsFd, bytes: u32) -> io::Result<()> {
    set(socket.as_fd(), libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT, &bytes)
}

/// A TCP socket sends no faster than this (`SO_MAX_PACING_RATE`); UDP sockets accept it and ignore it.
///
/// # Errors
/// When the kernel does not take it.
pub fn set_max_pacing_rate(socket: impl AsFd, rate: Rate) -> io::Result<()> {
    set(socket.as_fd(), libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, &(rate.as_bps() / 8))
}

fn set<T: SocketOption>(socket: BorrowedFd<'_>, level: i32, option: i32, value: &T) -> io::Result<()> {
    let length = size_of::<T>() as libc::socklen_t;
    // SAFETY: the kernel reads `length` bytes from `value`, which are there and initialised: T is an integer.
    let code = unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, from_ref(value).cast(), length) };
    if code < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// What the options above are set to: an integer.
trait SocketOption: Copy {}
impl SocketOption for u32 {}
impl SocketOption for u64 {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn a_connection_tells_what_it_was_told() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        set_not_sent_lowat(&stream, 16_384).unwrap();
        set_max_pacing_rate(&stream, Rate::from_mbps(8)).unwrap();
        let info = tcp_info(&stream).unwrap();
        assert!(info.congestion_window > 0 && info.max_segment > 0, "{info:?}");
        assert_eq!((info.retransmissions, info.bytes_acked <= 1), (0, true), "{info:?}");
    }

    #[test]
    fn a_socket_that_is_not_tcp_has_no_information() {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        assert!(tcp_info(&socket).is_err());
    }

    #[test]
    fn an_older_kernel_s_shorter_answer_leaves_the_rest_out() {
        let mut bytes = [0_u8; 104];
        bytes[100] = 7;
        let info = parse(&bytes);
        assert_eq!((info.retransmissions, info.timeouts, info.bytes_acked), (7, None, 0));
        assert_eq!(parse(&[0; 248]).timeouts, Some(0));
    }
}
