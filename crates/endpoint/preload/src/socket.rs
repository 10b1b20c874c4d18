//! Treatment of a socket: marks, pacing, counting. All functions leave `errno` as it is.

use crate::libc_functions as real;
use crate::sandbox::{self, Group};
use crate::state::{self, Errno, File, pointer};
use cutline_marking::MarkSettings;
use cutline_marking::pacer;
use cutline_marking::table::{SocketKind, TcpCounters, Total};
use cutline_units::{Bytes, Instant, Rate};
use libc::{c_int, c_uint, c_void, socklen_t, ssize_t};
use std::mem::{size_of, size_of_val};
use std::net::{Ipv4Addr, Ipv6Addr};

/// Room for more than any kernel's `struct tcp_info` so far, bytes.
const TCP_INFO_ROOM: usize = 512;

/// A value that replaces the program's.
pub(crate) struct Value {
    bytes: [u8; 8],
    length: usize,
}

impl std::ops::Deref for Value {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }
}

/// Properties of a descriptor that sends: its kind, and the rate of its datagrams.
#[derive(Clone, Copy)]
pub(crate) struct Sender {
    record: Option<u32>,
    is_udp: bool,
    rate: Option<Rate>,
}

impl Sender {
    const NONE: Self = Self { record: None, is_udp: false, rate: None };

    /// For a function that sockets alone accept. A socket that was not seen before is marked.
    pub(crate) fn of(fd: c_int) -> Self {
        if matches!(state::file(fd), File::Unknown | File::Inherited) {
            opened(fd);
        }
        Self::known(fd)
    }

    /// For a function that accepts any file: one that is not known to be a socket is left alone. A number that was reused without our notice
    /// must not be paced.
    pub(crate) fn of_any_file(fd: c_int) -> Self {
        if state::file(fd) == File::Unknown {
            return Self::NONE;
        }
        let sender = Self::of(fd);
        if sender.is_udp
            && sandbox::allows(Group::Options)
            && option::<c_int>(fd, libc::SOL_SOCKET, libc::SO_TYPE) != Some(libc::SOCK_DGRAM)
        {
            state::set_file(fd, File::Unknown);
            return Self::NONE;
        }
        sender
    }

    fn known(fd: c_int) -> Self {
        match (state::file(fd), state::settings()) {
            (File::Socket(SocketKind::Udp, record), Some(settings)) => {
                Self { record, is_udp: true, rate: settings.rate.filter(|_| record.is_some()) }
            }
            _ => Self::NONE,
        }
    }

    /// Returns whether datagrams may have to wait.
    pub(crate) const fn is_paced(self) -> bool {
        self.rate.is_some()
    }
}

/// Marks a socket that the process has got.
pub(crate) fn opened(fd: c_int) {
    let Some(settings) = state::settings() else { return };
    if !sandbox::allows(Group::Options) {
        state::add(Total::Refused, 1);
        state::set_file(fd, File::Other);
        return;
    }
    let errno = Errno::save();
    let family = option::<c_int>(fd, libc::SOL_SOCKET, libc::SO_DOMAIN);
    let file = match family {
        Some(family @ (libc::AF_INET | libc::AF_INET6)) => {
            set(fd, family == libc::AF_INET6, &settings);
            let kind = kind(fd);
            let record = state::table().and_then(|table| table.open(kind, state::process()));
            File::Socket(kind, record)
        }
        _ => File::Other,
    };
    if state::is_owner() {
        state::set_file(fd, file);
    }
    errno.restore();
}

/// Returns whether a descriptor is a socket of IPv4 or IPv6.
pub(crate) fn is_of_a_network(fd: c_int) -> bool {
    let family = option::<c_int>(fd, libc::SOL_SOCKET, libc::SO_DOMAIN);
    matches!(family, Some(libc::AF_INET | libc::AF_INET6))
}

fn kind(fd: c_int) -> SocketKind {
    match option::<c_int>(fd, libc::SOL_SOCKET, libc::SO_PROTOCOL) {
        Some(libc::IPPROTO_TCP | libc::IPPROTO_MPTCP) => SocketKind::Tcp,
        Some(libc::IPPROTO_UDP | libc::IPPROTO_UDPLITE) => SocketKind::Udp,
        _ => SocketKind::Other,
    }
}

/// Applies the settings, after the program has set its own options.
fn set(fd: c_int, is_v6: bool, settings: &MarkSettings) {
    if settings.dscp.is_some() {
        let level =
            if is_v6 { (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) } else { (libc::IPPROTO_IP, libc::IP_TOS) };
        let is_marked = mark(fd, level, settings);
        state::add(if is_marked { Total::Marked } else { Total::Refused }, 1);
        if is_v6 {
            // For packets to IPv4 addresses. A socket that is for IPv6 alone may refuse it.
            mark(fd, (libc::IPPROTO_IP, libc::IP_TOS), settings);
        }
    }
    set_priority(fd, settings);
    if let Some(rate) = settings.rate {
        // UDP accepts it, and only the queue `fq` obeys; datagrams are paced here.
        let rate = rate.as_bps() / 8;
        set_option(fd, libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, &rate);
    }
    if let Some(unsent) = settings.unsent.filter(|_| kind(fd) == SocketKind::Tcp) {
        let unsent = u32::try_from(unsent.get()).unwrap_or(u32::MAX);
        set_option(fd, libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT, &unsent);
    }
}

/// Sets the code point, with the ECN bits that the socket has.
fn mark(fd: c_int, (level, name): (c_int, c_int), settings: &MarkSettings) -> bool {
    let asked = option::<c_int>(fd, level, name).unwrap_or(0);
    let octet = settings.traffic_class(asked);
    // SAFETY: libc's function with a value of ours and its length.
    unsafe { real::setsockopt(fd, level, name, pointer(&octet), size_of::<c_int>() as socklen_t) == 0 }
}

/// The kernel changes the priority whenever `IP_TOS` is set.
fn set_priority(fd: c_int, settings: &MarkSettings) {
    if let Some(priority) = settings.priority {
        set_option(fd, libc::SOL_SOCKET, libc::SO_PRIORITY, &c_int::from(priority));
    }
}

/// Sets an option, and counts if it is refused.
fn set_option<T: Copy>(fd: c_int, level: c_int, name: c_int, value: &T) {
    // SAFETY: libc's function with a value of ours and its length.
    let code = unsafe { real::setsockopt(fd, level, name, pointer(value), size_of::<T>() as socklen_t) };
    if code != 0 {
        state::add(Total::Refused, 1);
    }
}

/// An integer option.
fn option<T: Copy + Default>(fd: c_int, level: c_int, name: c_int) -> Option<T> {
    let mut value = T::default();
    let mut length = size_of::<T>() as socklen_t;
    let errno = Errno::save();
    // SAFETY: there is room for `length` bytes; any bits are an integer.
    let code = unsafe { libc::getsockopt(fd, level, name, (&raw mut value).cast(), &raw mut length) };
    errno.restore();
    (code == 0).then_some(value)
}

/// Returns the value that replaces a program's own value; `None` if that stays.
pub(crate) fn replace_option(level: c_int, name: c_int, value: &[u8]) -> Option<Value> {
    let settings = state::settings()?;
    let int = |value: &[u8]| value.first_chunk().map(|bytes| c_int::from_ne_bytes(*bytes));
    let replaced = |value: c_int| {
        let mut bytes = [0; 8];
        bytes.first_chunk_mut::<4>()?.copy_from_slice(&value.to_ne_bytes());
        Some(Value { bytes, length: 4 })
    };
    match (level, name) {
        (libc::IPPROTO_IP, libc::IP_TOS) if settings.dscp.is_some() => {
            // The kernel takes an octet, too.
            let asked = int(value).or_else(|| value.first().map(|&octet| octet.into()))?;
            replaced(settings.traffic_class(asked & 0xff))
        }
        (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) if settings.dscp.is_some() => {
            let asked = int(value).filter(|asked| (-1..256).contains(asked))?;
            replaced(settings.traffic_class(asked))
        }
        (libc::SOL_SOCKET, libc::SO_PRIORITY) => {
            int(value)?;
            replaced(settings.priority?.into())
        }
        (libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE) if settings.rate.is_some() => {
            // Four or eight bytes; all ones is no limit.
            let asked = match value.first_chunk() {
                Some(bytes) => u64::from_ne_bytes(*bytes),
                None => int(value)
                    .map(|rate| rate as u32)
                    .filter(|&rate| rate != u32::MAX)
                    .map_or(u64::MAX, u64::from),
            };
            Some(Value { bytes: settings.pacing_rate(asked).to_ne_bytes(), length: 8 })
        }
        _ => None,
    }
}

/// Counts that an option of the program was replaced, and sets the options again that the kernel has changed with it.
pub(crate) fn mark_replaced(fd: c_int) {
    let Some(settings) = state::settings() else { return };
    let errno = Errno::save();
    if sandbox::allows(Group::Options) {
        set_priority(fd, &settings);
    }
    state::add(Total::Replaced, 1);
    errno.restore();
}

/// Waits until a datagram may be sent. A non-blocking socket does not wait: its datagram is sent at once, and counted. Its time
/// is taken all the same.
pub(crate) fn wait(sender: Sender, fd: c_int, length: usize, flags: c_int) {
    let Sender { record: Some(record), rate: Some(rate), .. } = sender else { return };
    let Some(next) = state::table().and_then(|table| table.next_departure(record)) else { return };
    if !sandbox::allows(Group::Waiting) {
        state::add(Total::Early, 1);
        return;
    }
    let errno = Errno::save();
    let wait = pacer::reserve(next, rate, Bytes::new(length as u64), now());
    if !wait.is_zero() {
        if flags & libc::MSG_DONTWAIT != 0 || is_non_blocking(fd) {
            state::add(Total::Early, 1);
        } else {
            state::add(Total::Waits, 1);
            state::add(Total::WaitedNanos, wait.as_nanos());
            sleep(wait.as_nanos());
        }
    }
    errno.restore();
}

fn is_non_blocking(fd: c_int) -> bool {
    // SAFETY: this command takes no argument.
    let flags = unsafe { real::fcntl(fd, libc::F_GETFL, 0) };
    flags >= 0 && flags & libc::O_NONBLOCK != 0
}

fn now() -> Instant {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: there is room for the time.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Instant::from_nanos(
        seconds.saturating_mul(1_000_000_000).saturating_add(u64::try_from(time.tv_nsec).unwrap_or(0)),
    )
}

/// A signal ends it early, so that the program can react. The datagram is then sent before its time, and later ones wait for it.
fn sleep(nanos: u64) {
    let time = libc::timespec {
        tv_sec: libc::time_t::try_from(nanos / 1_000_000_000).unwrap_or(libc::time_t::MAX),
        tv_nsec: (nanos % 1_000_000_000) as libc::c_long,
    };
    // SAFETY: the time is valid, and nothing is written where the second pointer is null.
    unsafe { libc::nanosleep(&raw const time, std::ptr::null_mut()) };
}

/// Counts datagrams that one call has sent, with as many bytes.
pub(crate) fn count(sender: Sender, messages: u64, bytes: ssize_t) {
    if let Some(table) = state::table().filter(|_| sender.is_udp)
        && let Ok(bytes) = u64::try_from(bytes)
    {
        table.sent(sender.record, messages, bytes);
    }
}

/// `copy`, if it is not negative, is now the same file as `fd`.
pub(crate) fn copied(fd: c_int, copy: c_int) {
    let is_noted = [fd, copy].iter().any(|&fd| state::file(fd) != File::Unknown);
    if copy >= 0 && copy != fd && is_noted && state::settings().is_some() {
        let errno = Errno::save();
        if state::is_owner() {
            state::set_file(copy, state::file(fd));
        }
        if [libc::STDOUT_FILENO, libc::STDERR_FILENO].contains(&copy) {
            written_by_libc(copy);
        }
        errno.restore();
    }
}

/// A descriptor is about to be closed.
pub(crate) fn closing(fd: c_int) {
    match state::file(fd) {
        File::Unknown => {}
        File::Other => state::set_file(fd, File::Unknown),
        File::Inherited | File::Socket(..) => {
            let errno = Errno::save();
            if state::is_owner() {
                sample(fd, true);
                state::set_file(fd, File::Unknown);
            }
            errno.restore();
        }
    }
}

/// All descriptors from `first` to `last` are about to be closed.
pub(crate) fn closing_range(first: c_uint, last: c_uint) {
    let is_in = |&fd: &c_int| (first..=last).contains(&(fd as c_uint));
    state::descriptors().filter(is_in).for_each(closing);
}

/// A number that dup2(2) is about to use: its descriptor is closed.
pub(crate) fn replacing(fd: c_int, by: c_int) {
    if fd != by && matches!(state::file(fd), File::Socket(SocketKind::Tcp, _)) && state::is_owner() {
        sample(fd, true);
    }
}

/// A message has brought a descriptor.
pub(crate) fn passed(fd: c_int) {
    if state::settings().is_some() {
        state::set_file(fd, File::Inherited);
    }
}

/// Libc may from now on write to this descriptor by itself. Datagrams that it writes are neither paced nor counted.
pub(crate) fn written_by_libc(fd: c_int) {
    let errno = Errno::save();
    if state::file(fd) == File::Inherited {
        opened(fd);
    }
    if let (File::Socket(SocketKind::Udp, record), Some(table)) = (state::file(fd), state::table()) {
        table.uncounted(record);
    }
    errno.restore();
}

/// Reads the kernel's counters of a socket. `is_complete` is true if it is counted to its end.
pub(crate) fn sample(fd: c_int, is_complete: bool) {
    let File::Socket(kind, record) = state::file(fd) else { return };
    let Some(table) = state::table() else { return };
    let errno = Errno::save();
    if kind == SocketKind::Tcp && sandbox::allows(Group::Options) {
        let mut info = [0_u8; TCP_INFO_ROOM];
        let mut length = info.len() as socklen_t;
        let to: *mut c_void = info.as_mut_ptr().cast();
        // SAFETY: there is room for `length` bytes.
        let code = unsafe { libc::getsockopt(fd, libc::IPPROTO_TCP, libc::TCP_INFO, to, &raw mut length) };
        if let Some(info) = info.get(..length as usize).filter(|_| code == 0) {
            table.sample(record, &TcpCounters::from_tcp_info(info), is_complete);
        }
    }
    errno.restore();
}

/// Marks a socket that was accepted, and notes its peer.
pub(crate) fn accepted(fd: c_int) {
    if fd < 0 || state::settings().is_none() {
        return;
    }
    opened(fd);
    if !sandbox::allows(Group::Options) {
        return;
    }
    let errno = Errno::save();
    let mut name = [0_u8; size_of::<libc::sockaddr_in6>()];
    let mut length = size_of_val(&name) as socklen_t;
    // SAFETY: there is room for as many bytes as `length` says.
    let code = unsafe { libc::getpeername(fd, name.as_mut_ptr().cast(), &raw mut length) };
    if code == 0 {
        connected(fd, &name);
    }
    errno.restore();
}

/// Notes the peer of a socket, an address as the kernel reads it.
pub(crate) fn connected(fd: c_int, address: &[u8]) {
    if let File::Socket(_, Some(record)) = state::file(fd)
        && let (Some(table), Some((ip, port))) = (state::table(), peer(address))
    {
        table.peer(record, ip, port);
    }
}

/// Reads an address: family, port, then an IPv4 address, or a flow label and an IPv6 address.
fn peer(address: &[u8]) -> Option<(Ipv6Addr, u16)> {
    let port = u16::from_be_bytes(*address.get(2..)?.first_chunk()?);
    let ip = match c_int::from(u16::from_ne_bytes(*address.first_chunk()?)) {
        libc::AF_INET => Ipv4Addr::from(*address.get(4..)?.first_chunk::<4>()?).to_ipv6_mapped(),
        libc::AF_INET6 => Ipv6Addr::from(*address.get(8..)?.first_chunk::<16>()?),
        _ => return None,
    };
    Some((ip, port))
}
