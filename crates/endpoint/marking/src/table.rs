//! The counters that a program, its children and `cutline exec` share: a file of 64-bit numbers, mapped by each process.
//!
//! Words 0..32 are the head: kind of file, then totals. After them each socket has a record of 16 words, up to
//! [`RECORDS`]; further sockets are in the totals alone. Every word is an atomic, so a process that ends at any moment
//! leaves a table that can be read.

use cutline_units::Duration;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The largest number of sockets with a record.
pub const RECORDS: usize = 4096;
/// Length of the table, 64-bit words.
pub const WORDS: usize = HEAD + RECORDS * RECORD;
/// Length of the table, bytes.
pub const BYTES: usize = WORDS * size_of::<u64>();

const HEAD: usize = 32;
const RECORD: usize = 16;
/// The first word: "cutline" and the version of this layout.
const MAGIC: u64 = u64::from_be_bytes(*b"cutline\x01");
/// Place of the number of records in use.
const USED: usize = 1;

/// A total in the head, by its word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Total {
    /// Processes that loaded the library.
    Processes = 2,
    /// TCP sockets.
    TcpSockets,
    /// UDP sockets.
    UdpSockets,
    /// Other sockets of IPv4 and IPv6.
    OtherSockets,
    /// Sockets that got the code point.
    Marked,
    /// Options that the kernel refused.
    Refused,
    /// Marks of the program that were replaced: options and control messages.
    Replaced,
    /// Messages whose control messages were too long to replace a mark in.
    Unreplaced,
    /// UDP messages that waited for their time.
    Waits,
    /// Total waiting time, ns.
    WaitedNanos,
    /// UDP messages that were sent before their time, because the socket is non-blocking.
    Early,
    /// UDP messages sent.
    UdpMessages,
    /// Payload of the UDP messages sent, bytes.
    UdpBytes,
    /// TCP payload sent, with retransmissions, bytes.
    TcpSent,
    /// TCP payload received, bytes.
    TcpReceived,
    /// TCP segments with payload sent.
    TcpSegments,
    /// TCP segments retransmitted.
    TcpRetransmissions,
    /// UDP sockets that libc may write to by itself, such as those of stdio's streams.
    Uncounted,
}

/// The transport of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum SocketKind {
    /// TCP, and Multipath TCP.
    Tcp = 1,
    /// UDP.
    Udp = 2,
    /// Any other.
    Other = 3,
}

impl SocketKind {
    /// The kind of that number.
    pub const fn from_number(number: u32) -> Option<Self> {
        match number {
            1 => Some(Self::Tcp),
            2 => Some(Self::Udp),
            3 => Some(Self::Other),
            _ => None,
        }
    }

    /// The total that counts the sockets of this kind.
    const fn socket_total(self) -> Total {
        match self {
            Self::Tcp => Total::TcpSockets,
            Self::Udp => Total::UdpSockets,
            Self::Other => Total::OtherSockets,
        }
    }
}

/// A value in a record, by its word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
enum Field {
    Kind,
    Process,
    SentBytes,
    Messages,
    ReceivedBytes,
    Retransmissions,
    RttMicros,
    MinRttMicros,
    Segments,
    NextDeparture,
    Sampled,
    PeerHigh,
    PeerLow,
    PeerPort,
    IsUncounted,
}

/// The kernel's counters of a TCP connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpCounters {
    /// Payload sent, with retransmissions, bytes.
    pub sent: u64,
    /// Payload received, bytes.
    pub received: u64,
    /// Segments with payload sent.
    pub segments: u64,
    /// Segments retransmitted.
    pub retransmissions: u64,
    /// Smoothed round-trip time, us.
    pub rtt_micros: u64,
    /// Smallest round-trip time, us.
    pub min_rtt_micros: u64,
}

impl TcpCounters {
    /// Reads `struct tcp_info` of linux/tcp.h; fields that an older kernel lacks are zero.
    pub fn from_tcp_info(bytes: &[u8]) -> Self {
        let word =
            |at: usize| bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |x| u32::from_ne_bytes(*x));
        let long =
            |at: usize| bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |x| u64::from_ne_bytes(*x));
        // The smallest round-trip time is all ones until there is one.
        let min_rtt = Some(word(148)).filter(|&time| time != u32::MAX).unwrap_or(0);
        Self {
            sent: long(200),
            received: long(128),
            segments: word(156).into(),
            retransmissions: word(100).into(),
            rtt_micros: word(68).into(),
            min_rtt_micros: min_rtt.into(),
        }
    }
}

/// The table, in memory that processes share.
#[derive(Clone, Copy, Debug)]
pub struct SocketTable<'m>(&'m [AtomicU64]);

impl<'m> SocketTable<'m> {
    /// The table in zeroed or used memory; `None` if the memory has another length or content.
    pub fn new(words: &'m [AtomicU64]) -> Option<Self> {
        let first = words.first()?;
        let _is_used = first.compare_exchange(0, MAGIC, Relaxed, Relaxed);
        (words.len() == WORDS && first.load(Relaxed) == MAGIC).then_some(Self(words))
    }

    /// Adds to a total.
    pub fn add(self, total: Total, count: u64) {
        if let Some(word) = self.0.get(total as usize) {
            word.fetch_add(count, Relaxed);
        }
    }

    /// Counts a new socket. Returns the number of its record, `None` if all are in use.
    pub fn open(self, kind: SocketKind, process: u32) -> Option<u32> {
        self.add(kind.socket_total(), 1);
        let used = self.0.get(USED)?;
        let is_free = |used: u64| (used < RECORDS as u64).then_some(used + 1);
        let number = used.fetch_update(Relaxed, Relaxed, is_free).ok()?;
        let record = number as u32;
        self.word(record, Field::Process)?.store(process.into(), Relaxed);
        self.word(record, Field::Kind)?.store(kind as u64, Relaxed);
        Some(record)
    }

    /// The time at which a socket may send its next datagram, ns.
    pub fn next_departure(self, record: u32) -> Option<&'m AtomicU64> {
        self.word(record, Field::NextDeparture)
    }

    /// Counts datagrams of one call.
    pub fn sent(self, record: Option<u32>, messages: u64, bytes: u64) {
        self.add(Total::UdpMessages, messages);
        self.add(Total::UdpBytes, bytes);
        let Some(record) = record else { return };
        for (field, count) in [(Field::Messages, messages), (Field::SentBytes, bytes)] {
            if let Some(word) = self.word(record, field) {
                word.fetch_add(count, Relaxed);
            }
        }
    }

    /// Notes that libc may write datagrams to a socket by itself, which are neither paced nor counted.
    pub fn uncounted(self, record: Option<u32>) {
        let word = record.and_then(|record| self.word(record, Field::IsUncounted));
        if word.is_none_or(|word| word.swap(1, Relaxed) == 0) {
            self.add(Total::Uncounted, 1);
        }
    }

    /// Stores the kernel's counters of a connection so far; `is_complete` is true if nothing will follow. Of a connection with a record,
    /// only the increase is added to the totals, so two processes that share it count it once.
    pub fn sample(self, record: Option<u32>, now: &TcpCounters, is_complete: bool) {
        let counters = [
            (Field::SentBytes, Total::TcpSent, now.sent),
            (Field::ReceivedBytes, Total::TcpReceived, now.received),
            (Field::Segments, Total::TcpSegments, now.segments),
            (Field::Retransmissions, Total::TcpRetransmissions, now.retransmissions),
        ];
        for (field, total, count) in counters {
            let word = record.and_then(|record| self.word(record, field));
            let before = word.map_or(0, |word| word.fetch_max(count, Relaxed));
            self.add(total, count.saturating_sub(before));
        }
        let Some(record) = record else { return };
        let gauges = [
            (Field::RttMicros, now.rtt_micros),
            (Field::MinRttMicros, now.min_rtt_micros),
            (Field::Sampled, is_complete.into()),
        ];
        for (field, value) in gauges {
            if let Some(word) = self.word(record, field) {
                word.store(value, Relaxed);
            }
        }
    }

    /// Stores the peer's address.
    pub fn peer(self, record: u32, ip: Ipv6Addr, port: u16) {
        let bits = u128::from(ip);
        let halves = [
            (Field::PeerHigh, (bits >> 64) as u64),
            (Field::PeerLow, bits as u64),
            (Field::PeerPort, port.into()),
        ];
        for (field, value) in halves {
            if let Some(word) = self.word(record, field) {
                word.store(value, Relaxed);
            }
        }
    }

    fn word(self, record: u32, field: Field) -> Option<&'m AtomicU64> {
        let at = HEAD + record as usize * RECORD + field as usize;
        ((record as usize) < RECORDS).then(|| self.0.get(at))?
    }
}

/// A socket, as its record has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketRecord {
    /// The transport.
    pub kind: SocketKind,
    /// The process that opened it.
    pub process: u32,
    /// Payload sent, bytes.
    pub sent: u64,
    /// Payload received, bytes; of TCP alone.
    pub received: u64,
    /// Messages of UDP, segments of TCP.
    pub messages: u64,
    /// Segments of TCP retransmitted.
    pub retransmissions: u64,
    /// Smoothed round-trip time of TCP.
    pub rtt: Option<Duration>,
    /// Smallest round-trip time of TCP.
    pub min_rtt: Option<Duration>,
    /// The peer.
    pub peer: Option<SocketAddr>,
    /// True if a TCP connection's counters were read at its end. They are read when it is closed and when the
    /// process exits.
    pub is_sampled: bool,
    /// True if libc may have written datagrams by itself, which are not in the counters.
    pub is_uncounted: bool,
}

/// A table that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    words: Vec<u64>,
}

impl Snapshot {
    /// Reads a table's file; `None` if it is none.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let (words, rest) = bytes.as_chunks::<8>();
        let words: Vec<u64> = words.iter().map(|word| u64::from_ne_bytes(*word)).collect();
        // A file that no process has mapped is all zero.
        let is_table = words.first().is_some_and(|&first| first == MAGIC || first == 0);
        (is_table && rest.is_empty() && words.len() == WORDS).then_some(Self { words })
    }

    /// Returns a total.
    pub fn total(&self, total: Total) -> u64 {
        self.words.get(total as usize).copied().unwrap_or_default()
    }

    /// Returns the number of sockets that have no record.
    pub fn without_record(&self) -> u64 {
        let kinds = [Total::TcpSockets, Total::UdpSockets, Total::OtherSockets];
        kinds
            .into_iter()
            .fold(0, |sum: u64, kind| sum.saturating_add(self.total(kind)))
            .saturating_sub(self.words[USED])
    }

    /// The sockets that have a record, in the order of their opening.
    pub fn sockets(&self) -> impl Iterator<Item = SocketRecord> + '_ {
        let (records, _) = self.words[HEAD..].as_chunks::<RECORD>();
        let used = usize::try_from(self.words[USED]).unwrap_or(RECORDS).min(RECORDS);
        records[..used].iter().filter_map(SocketRecord::read)
    }
}

impl SocketRecord {
    fn read(words: &[u64; RECORD]) -> Option<Self> {
        let word = |field: Field| words[field as usize];
        let kind = SocketKind::from_number(word(Field::Kind) as u32)?;
        let time = |field| Some(word(field)).filter(|&time| time > 0).map(Duration::from_micros);
        let ip = Ipv6Addr::from(u128::from(word(Field::PeerHigh)) << 64 | u128::from(word(Field::PeerLow)));
        let ip = ip.to_ipv4_mapped().map_or(IpAddr::V6(ip), IpAddr::V4);
        let port = word(Field::PeerPort) as u16;
        Some(Self {
            kind,
            process: word(Field::Process) as u32,
            sent: word(Field::SentBytes),
            received: word(Field::ReceivedBytes),
            messages: word(if kind == SocketKind::Tcp { Field::Segments } else { Field::Messages }),
            retransmissions: word(Field::Retransmissions),
            rtt: time(Field::RttMicros),
            min_rtt: time(Field::MinRttMicros),
            peer: (port > 0).then_some(SocketAddr::new(ip, port)),
            is_sampled: word(Field::Sampled) > 0,
            is_uncounted: word(Field::IsUncounted) > 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory() -> Vec<AtomicU64> {
        (0..WORDS).map(|_| AtomicU64::new(0)).collect()
    }

    fn snapshot(memory: &[AtomicU64]) -> Snapshot {
        let bytes: Vec<u8> = memory.iter().flat_map(|word| word.load(Relaxed).to_ne_bytes()).collect();
        Snapshot::read(&bytes).unwrap()
    }

    #[test]
    fn counters_are_read_as_they_were_counted() {
        let memory = memory();
        let table = SocketTable::new(&memory).unwrap();
        let [tcp, udp] = [SocketKind::Tcp, SocketKind::Udp].map(|kind| table.open(kind, 77));
        table.sent(udp, 2, 3000);
        table.peer(tcp.unwrap(), std::net::Ipv4Addr::new(192, 0, 2, 1).to_ipv6_mapped(), 443);
        let mut counters = TcpCounters { sent: 100, received: 5, rtt_micros: 1500, ..TcpCounters::default() };
        table.sample(tcp, &counters, true);
        // A second process that closes the same socket later adds the increase.
        counters.sent = 140;
        SocketTable::new(&memory).unwrap().sample(tcp, &counters, true);
        let read = snapshot(&memory);
        let totals =
            [Total::TcpSockets, Total::UdpSockets, Total::TcpSent, Total::TcpReceived, Total::UdpBytes];
        assert_eq!(totals.map(|total| read.total(total)), [1, 1, 140, 5, 3000]);
        let sockets: Vec<SocketRecord> = read.sockets().collect();
        assert_eq!(sockets.len(), 2);
        assert_eq!((sockets[0].sent, sockets[0].rtt), (140, Some(Duration::from_micros(1500))));
        assert_eq!(sockets[0].peer.unwrap().to_string(), "192.0.2.1:443");
        assert_eq!((sockets[1].messages, sockets[1].sent, sockets[1].process), (2, 3000, 77));
        assert!(sockets[0].is_sampled && !sockets[1].is_sampled && sockets[0].min_rtt.is_none());
    }

    #[test]
    fn sockets_beyond_the_table_are_in_the_totals() {
        let memory = memory();
        let table = SocketTable::new(&memory).unwrap();
        let records = (0..RECORDS + 3).filter_map(|_| table.open(SocketKind::Tcp, 1)).count();
        assert_eq!(records, RECORDS);
        table.sample(None, &TcpCounters { sent: 9, ..TcpCounters::default() }, true);
        let read = snapshot(&memory);
        assert_eq!((read.without_record(), read.total(Total::TcpSent)), (3, 9));
        assert_eq!(read.sockets().count(), RECORDS);
        // A number that no table has is ignored.
        table.peer(u32::MAX, Ipv6Addr::LOCALHOST, 1);
        assert!(table.next_departure(RECORDS as u32).is_none());
    }

    #[test]
    fn other_memory_and_files_are_refused() {
        let memory = memory();
        assert!(SocketTable::new(&memory[1..]).is_none() && SocketTable::new(&[]).is_none());
        memory[0].store(5, Relaxed);
        assert!(SocketTable::new(&memory).is_none());
        assert_eq!(Snapshot::read(&[]), None);
        assert_eq!(Snapshot::read(&vec![0; BYTES - 1]), None);
        assert_eq!(Snapshot::read(&vec![1; BYTES]), None);
        // Whatever a program wrote there, it is read without panicking.
        let mut damaged = vec![0xff; BYTES];
        damaged[..8].copy_from_slice(&MAGIC.to_ne_bytes());
        let damaged = Snapshot::read(&damaged).unwrap();
        assert_eq!((damaged.sockets().count(), damaged.without_record()), (0, 0));
    }

    #[test]
    fn a_connection_s_counters_are_at_their_offsets() {
        let mut info = [0_u8; 232];
        for (at, value) in [(68, 40_000_u32), (100, 3), (148, 900), (156, 12)] {
            info[at..at + 4].copy_from_slice(&value.to_ne_bytes());
        }
        for (at, value) in [(128, 1_u64 << 33), (200, 1 << 34)] {
            info[at..at + 8].copy_from_slice(&value.to_ne_bytes());
        }
        let counters = TcpCounters::from_tcp_info(&info);
        let expected = TcpCounters {
            sent: 1 << 34,
            received: 1 << 33,
            segments: 12,
            retransmissions: 3,
            rtt_micros: 40_000,
            min_rtt_micros: 900,
        };
        assert_eq!(counters, expected);
        assert_eq!(TcpCounters::from_tcp_info(&info[..104]).sent, 0);
        info[148..152].fill(0xff);
        assert_eq!(TcpCounters::from_tcp_info(&info).min_rtt_micros, 0);
    }
}
