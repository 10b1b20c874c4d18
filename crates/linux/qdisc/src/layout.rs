//! Layouts shared by the kernel's programs and their loader: `bpf/include/cutline/qdisc.h`, field by field.
//!
//! Every field is aligned to its size, and there is no padding, so a value is the bytes of its fields one after another. A test of `bpf-parity`
//! compares sizes and places with those of the C compiler.

use cutline_units::HintBits;

/// Version of these layouts: `CUTLINE_LAYOUT`.
pub const LAYOUT: u32 = 3;
/// Number of code points.
pub const CODE_POINTS: usize = 64;
/// Number of levels of hints.
pub const LEVELS: usize = HintBits::PAPER.levels() as usize;
/// Number of buckets of waits: those below 1, 2, 4, ... 2^23 us, and one for longer waits.
pub const WAITS: usize = 25;
/// Fractional bits of probabilities and gains.
pub const PROBABILITY_BITS: u32 = 60;
/// Fractional bits of numbers of packets.
pub const PACKET_BITS: u32 = 20;
/// Fractional bits of ratios of delays.
pub const RATIO_BITS: u32 = 23;
/// Cells in a set of Sieve's table of flows.
pub const CELLS: usize = 8;
/// Sets with filters in the place of cells, among so many sets of Sieve's table: the last ones, rounded down.
pub const FILTER_SETS: (u32, u32) = (3, 20);
/// Most flows of Sieve's table.
pub const PLACES: u32 = 1 << 20;
/// Most hardware queues of an interface with an instance each.
pub const QUEUES: u32 = 256;

/// A type with a fixed layout, in the byte order of the machine.
pub trait Layout: Sized {
    /// Size of the type, B.
    const SIZE: usize;

    /// Appends its bytes.
    fn write(&self, to: &mut Vec<u8>);

    /// Reads it and moves on; `None` if there are too few bytes.
    fn read(from: &mut &[u8]) -> Option<Self>;

    /// Returns its bytes.
    fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(Self::SIZE);
        self.write(&mut bytes);
        bytes
    }

    /// Reads it from exactly its bytes; `None` for any other number of bytes.
    fn from_bytes(mut bytes: &[u8]) -> Option<Self> {
        let value = Self::read(&mut bytes)?;
        bytes.is_empty().then_some(value)
    }
}

/// A field: its name in C, its place and its size, B.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldPlace {
    /// The name.
    pub name: &'static str,
    /// Bytes before it.
    pub at: usize,
    /// Its bytes.
    pub size: usize,
}

macro_rules! numbers {
    ($($number:ty),+) => {$(
        impl Layout for $number {
            const SIZE: usize = size_of::<$number>();

            fn write(&self, to: &mut Vec<u8>) {
                to.extend_from_slice(&self.to_ne_bytes());
            }

            fn read(from: &mut &[u8]) -> Option<Self> {
                let (bytes, rest) = from.split_first_chunk()?;
                *from = rest;
                Some(Self::from_ne_bytes(*bytes))
            }
        }
    )+};
}

numbers!(u8, u16, u32, i32, u64);

/// Returns the sets with cells in a table of Sieve's with so many sets.
pub fn sets_of_flows(sets: u32) -> u32 {
    let (filters, of) = FILTER_SETS;
    sets - (u64::from(sets) * u64::from(filters) / u64::from(of)) as u32
}

/// Returns the sets of a table of Sieve's that has so many sets with cells.
pub fn sets_with_filters(sets_of_flows: u32) -> u32 {
    let (filters, of) = FILTER_SETS;
    (u64::from(sets_of_flows) * u64::from(of) / u64::from(of - filters)) as u32
}

impl<T: Layout, const N: usize> Layout for [T; N] {
    const SIZE: usize = N * T::SIZE;

    fn write(&self, to: &mut Vec<u8>) {
        for item in self {
            item.write(to);
        }
    }

    fn read(from: &mut &[u8]) -> Option<Self> {
        let items: Option<Vec<T>> = (0..N).map(|_| T::read(from)).collect();
        items?.try_into().ok()
    }
}

macro_rules! layout {
    ($($(#[$doc:meta])* pub struct $name:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty,)+ })+) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: $type,)+
        }

        impl Layout for $name {
            const SIZE: usize = 0 $(+ <$type as Layout>::SIZE)+;

            fn write(&self, to: &mut Vec<u8>) {
                $(self.$field.write(to);)+
            }

            fn read(from: &mut &[u8]) -> Option<Self> {
                Some(Self { $($field: Layout::read(from)?,)+ })
            }
        }

        impl $name {
            /// Returns the places of its fields.
            pub fn places() -> Vec<FieldPlace> {
                let mut end = 0;
                let mut place = |name, size| {
                    end += size;
                    FieldPlace { name, at: end - size, size }
                };
                vec![$(place(stringify!($field), <$type as Layout>::SIZE),)+]
            }
        }
    )+};
}

layout! {
    /// Key of `cutline_interfaces`.
    pub struct InterfaceKey {
        /// Inode of the network namespace, as in the link `/proc/self/ns/net`.
        namespace_inode: u32,
        /// Number of the interface in it.
        index: u32,
    }

    /// Value of `cutline_interfaces`.
    pub struct InstanceAssignment {
        /// The instance of the queueing discipline at the root, or of the first hardware queue.
        instance: u32,
        /// Number of hardware queues that have an instance each, from that one on; 1 without `mq`.
        queues: u32,
    }

    /// PI in fixed point.
    pub struct PiLayout {
        /// Gain on the present error, 2^-60 per packet.
        a: u64,
        /// Gain on the error one sample ago, 2^-60 per packet.
        b: u64,
        /// Reference length, 2^-20 packets.
        q_ref: u64,
        /// Time between samples, ns.
        period: u64,
        /// Bytes that count as a packet; 0 counts whole packets.
        mean_packet: u32,
        /// 0.
        reserved: u32,
    }

    /// PI2 in fixed point.
    pub struct Pi2Layout {
        /// Gain on the distance from the target, 2^-60 per ns.
        alpha: u64,
        /// Gain on the change since the last update, 2^-60 per ns.
        beta: u64,
        /// Queuing delay to hold, ns.
        target: u64,
        /// Time between updates, ns.
        t_update: u64,
    }

    /// RED-Worcester and Adaptive RED in fixed point.
    pub struct RedWorcesterLayout {
        /// Lower threshold, 2^-20 packets.
        min_th: u64,
        /// Upper threshold, 2^-20 packets.
        max_th: u64,
        /// First probability at `max_th`, 2^-60.
        max_p: u64,
        /// Weight of an arrival in the average, 2^-60.
        w_q: u64,
        /// -ln(1 - `w_q`), 2^-60.
        ln_keep: u64,
        /// Weight of an arrival in the moving target, 2^-60; 0 for Adaptive RED.
        w_t: u64,
        /// Time between changes of `max_p`, ns.
        interval: u64,
        /// Increment of `max_p`, 2^-60; 0 for min(0.01, `max_p` / 4).
        alpha: u64,
        /// Factor of a decrease, 2^-60.
        beta: u64,
        /// Deviation of the average from its target, part of `max_th` - `min_th`, 2^-60.
        range: u64,
        /// Least `max_p`, 2^-60.
        floor: u64,
        /// Largest `max_p`, 2^-60.
        ceiling: u64,
        /// Bytes of a packet for idle times.
        mean_packet: u32,
        /// 1 if the probability rises from `max_p` to 1 between `max_th` and twice that; 0 if it jumps.
        gentle: u32,
        /// Delay that each level requests, ns.
        delays: [u64; LEVELS],
    }

    /// TSQ in fixed point.
    pub struct TsqLayout {
        /// Delay outside the queue that the charge assumes, ns.
        l: u64,
        /// Square root of the largest p' / p, 2^-23; 0 for no bound.
        ratio_root: u64,
        /// Number of hint bits.
        bits: u32,
        /// 0.
        reserved: u32,
    }

    /// Sieve in fixed point.
    pub struct SieveLayout {
        /// Round-trip time of most flows that fill the link, ns.
        rtt: u64,
        /// Time for which an unused share is kept, ns.
        tau: u64,
        /// Age below which a flow counts as new, ns.
        newcomer_age: u64,
    }

    /// Cell of Sieve's table of flows, of which a set has [`CELLS`].
    pub struct AccountLayout {
        /// Finish of the flow's last packet in virtual time, from the epoch on, 2^-4 B: its lower 32 bits.
        finish: u32,
        /// Its upper 16 bits.
        upper_finish: u16,
        /// Time of its last packet, 2^22 ns of the monotonic clock.
        at: u16,
        /// Hash of the flow.
        id: u32,
        /// Lag of all new flows in the finish, 1024 B.
        lag: u16,
        /// Time until which a drop is not yet known, 2^20 ns.
        warned_until: u16,
        /// Its packets that wait.
        waiting: u16,
        /// Bit 15: the cell is in use. The others: the age of the flow, and the kind of its arrival.
        state: u16,
    }

    /// Value of `cutline_configs`.
    pub struct QdiscConfig {
        /// [`LAYOUT`].
        layout: u32,
        /// Number of this configuration.
        generation: u32,
        /// Rate of the link for the laws, bit/s.
        link_bps: u64,
        /// Rate to shape to, bit/s; 0 for none.
        shape_bps: u64,
        /// Time by which the schedule of shaping may be late and still catch up, ns.
        burst: u64,
        /// Most bytes that wait, overhead included; 0 for no such limit.
        limit_bytes: u64,
        /// Most packets that wait.
        limit_packets: u32,
        /// Bytes that the link adds to each packet and segment.
        overhead: i32,
        /// Least bytes of a packet or segment on the link, overhead included.
        least_bytes: u32,
        /// Number of the law under TSQ.
        law: u32,
        /// Salt of hashes of flows.
        salt: u64,
        /// Level of each code point.
        hints: [u8; CODE_POINTS],
        /// TSQ.
        tsq: TsqLayout,
        /// Parameters of the law.
        law_parameters: LawBytes,
        /// Sieve.
        sieve: SieveLayout,
    }

    /// Packets and their bytes.
    pub struct CountLayout {
        /// Packets.
        packets: u64,
        /// Their bytes.
        bytes: u64,
    }

    /// Packets of one hint.
    pub struct HintLayout {
        /// Handed to the interface.
        departed: CountLayout,
        /// Dropped by the queue.
        dropped: CountLayout,
        /// Sum of the waits of those departed, ns.
        waited: u64,
        /// The longest of these, ns.
        longest_wait: u64,
    }

    /// Value of `cutline_statistics`. At any time received = sent + early + overflow + unsent + backlog.
    pub struct QdiscCounters {
        /// [`LAYOUT`] once the queueing discipline has been added.
        layout: u32,
        /// Generation of the configuration in use.
        generation: u32,
        /// Generation of the last configuration that was out of range; 0 for none.
        refused_generation: u32,
        /// 1 from adding to removing, else 0.
        running: u32,
        /// Time at which it was added, ns of the monotonic clock.
        since: u64,
        /// Received.
        received: CountLayout,
        /// Sent.
        sent: CountLayout,
        /// Dropped by a probability.
        early: CountLayout,
        /// Dropped by a full queue.
        overflow: CountLayout,
        /// Dropped because the interface went down, or the queueing discipline was removed.
        unsent: CountLayout,
        /// Received without an IP header.
        not_ip: CountLayout,
        /// Marked.
        marked: CountLayout,
        /// Waiting; its bytes are without overhead.
        backlog: CountLayout,
        /// p of TSQ's law, 2^-60.
        probability: u64,
        /// Average queue of Adaptive RED, 2^-20 packets.
        average: u64,
        /// Its `max_p`, 2^-60.
        max_p: u64,
        /// Its target, 2^-20 packets.
        target: u64,
        /// Time by which the schedule of shaping has slipped, ns.
        slipped: u64,
        /// Sum of all waits, ns.
        waits_sum: u64,
        /// Packets that departed, by wait.
        waits: [u64; WAITS],
        /// By level - 1.
        hints: [HintLayout; LEVELS],
        /// Sieve: received from flows below the fair share.
        below_fair_share: CountLayout,
        /// Sieve: received from flows above it.
        above_fair_share: CountLayout,
        /// Sieve: the fair share of a flow, bit/s.
        fair_share_bps: u64,
        /// Time at which the last packet came or left, ns of the monotonic clock; 0 if none has come.
        latest: u64,
    }
}

/// Parameters of a law as they are in a configuration: a union, with the size of the largest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LawBytes([u8; RedWorcesterLayout::SIZE]);

impl Layout for LawBytes {
    const SIZE: usize = RedWorcesterLayout::SIZE;

    fn write(&self, to: &mut Vec<u8>) {
        self.0.write(to);
    }

    fn read(from: &mut &[u8]) -> Option<Self> {
        Layout::read(from).map(Self)
    }
}

/// Law under TSQ with its parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LawLayout {
    /// Nothing is dropped early.
    None,
    /// PI.
    Pi(PiLayout),
    /// PI2.
    Pi2(Pi2Layout),
    /// RED-Worcester, or Adaptive RED if `w_t` is 0.
    RedWorcester(Box<RedWorcesterLayout>),
}

impl LawLayout {
    /// Returns the law's number: `enum cutline_law`.
    pub const fn number(&self) -> u32 {
        match self {
            Self::None => 0,
            Self::Pi(_) => 1,
            Self::Pi2(_) => 2,
            Self::RedWorcester(_) => 3,
        }
    }

    /// Returns the law's parameters as they are in a configuration.
    pub fn parameters(&self) -> LawBytes {
        let mut bytes = match self {
            Self::None => Vec::new(),
            Self::Pi(pi) => pi.bytes(),
            Self::Pi2(pi2) => pi2.bytes(),
            Self::RedWorcester(red) => red.bytes(),
        };
        bytes.resize(LawBytes::SIZE, 0);
        LawBytes(bytes.try_into().expect("it has just got this size"))
    }

    /// Reads the law of a configuration; `None` if its number is not known.
    pub fn of(config: &QdiscConfig) -> Option<Self> {
        let mut bytes = &config.law_parameters.0[..];
        match config.law {
            0 => Some(Self::None),
            1 => Layout::read(&mut bytes).map(Self::Pi),
            2 => Layout::read(&mut bytes).map(Self::Pi2),
            3 => Layout::read(&mut bytes).map(|red| Self::RedWorcester(Box::new(red))),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_read_as_it_is_written() {
        let law =
            LawLayout::Pi(PiLayout { a: 3, b: 2, q_ref: 1 << 63, period: 4, mean_packet: 5, reserved: 0 });
        let config = QdiscConfig {
            layout: LAYOUT,
            generation: 7,
            link_bps: 1,
            shape_bps: 2,
            burst: 3,
            limit_bytes: 4,
            limit_packets: 5,
            overhead: -14,
            least_bytes: 64,
            law: law.number(),
            salt: u64::MAX,
            hints: std::array::from_fn(|number| number as u8),
            tsq: TsqLayout { l: 8, ratio_root: 9, bits: 4, reserved: 0 },
            law_parameters: law.parameters(),
            sieve: SieveLayout { rtt: 10, tau: 11, newcomer_age: 12 },
        };
        let bytes = config.bytes();
        assert_eq!(bytes.len(), QdiscConfig::SIZE);
        let read = QdiscConfig::from_bytes(&bytes).unwrap();
        assert_eq!((LawLayout::of(&read), &read), (Some(law), &config));
        assert_eq!(QdiscConfig::from_bytes(&bytes[1..]), None);
        assert_eq!(QdiscConfig::from_bytes(&[bytes, vec![0]].concat()), None);
    }

    /// The program finds the sets with cells by the number of all.
    #[test]
    fn a_table_has_the_sets_of_flows_that_it_is_made_for() {
        for sets in 1..100_000 {
            assert_eq!(sets_of_flows(sets_with_filters(sets)), sets);
        }
        assert_eq!([1, 84, 149, 298].map(sets_with_filters), [1, 98, 175, 350]);
        assert_eq!(CELLS * AccountLayout::SIZE, 160);
    }

    #[test]
    fn every_field_is_aligned_to_its_size() {
        // What makes a value the bytes of its fields: no field of eight bytes is at a multiple of four alone.
        let config = QdiscConfig::places();
        let place = |name| config.iter().find(|place| place.name == name).unwrap().at;
        assert_eq!(
            [place("link_bps") % 8, place("salt") % 8, place("sieve") % 8, QdiscConfig::SIZE % 8],
            [0; 4]
        );
        assert_eq!((QdiscCounters::SIZE % 8, RedWorcesterLayout::SIZE), (0, 232));
    }
}
