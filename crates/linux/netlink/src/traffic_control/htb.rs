//! The messages of HTB, the hierarchical token bucket, and of fifos (`linux/pkt_sched.h`).

use crate::Error;
use cutline_units::{Bytes, Duration, Rate};
use netlink_packet_core::{DefaultNla, Nla, NlasIterator, parse_u32};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::tc::{TcAttribute, TcHandle, TcHeader, TcMessage, TcOption, TcStats2, TcXstats};

/// The kind of the queueing discipline.
pub(super) const KIND: &str = "htb";
/// A fifo whose limit is in bytes.
const FIFO: &str = "bfifo";

/// Attributes (`TCA_HTB_*`, `TCA_OPTIONS`).
const PARAMETERS: u16 = 1;
const GLOBAL: u16 = 2;
const RATE64: u16 = 6;
const CEILING64: u16 = 7;
const OPTIONS: u16 = 2;
/// The version that the kernel checks (`TC_HTB_PROTOVER`).
const VERSION: u32 = 3;
/// Frames are not padded to cells (`TC_LINKLAYER_ETHERNET`), so that the kernel needs no table of sizes.
const LINK_LAYER: u8 = 1;
/// The kernel counts time in buckets in this (`PSCHED_SHIFT`).
const TICK: Duration = Duration::from_nanos(64);

/// The parameters of a class, all sizes as on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Class {
    /// The rate at which it is served before all others.
    pub rate: Rate,
    /// Burst that the class can save up.
    pub burst: Bytes,
    /// The rate at which it is served at most.
    pub ceiling: Rate,
    /// The same for the ceiling.
    pub ceiling_burst: Bytes,
    /// Bytes that the class may send in its turn when it borrows.
    pub quantum: u32,
    /// Bytes that each packet takes in addition to those that the kernel counts.
    pub overhead: u16,
}

impl Class {
    /// Returns `TCA_OPTIONS`.
    pub(super) fn options(&self) -> Result<TcAttribute, Error> {
        let mut bytes = Vec::with_capacity(44);
        self.write_rate(self.rate, &mut bytes);
        self.write_rate(self.ceiling, &mut bytes);
        let buckets =
            [ticks("bucket", self.burst, self.rate)?, ticks("ceiling", self.ceiling_burst, self.ceiling)?];
        // Last are the level, which the kernel finds itself, and the priority.
        for word in [buckets[0], buckets[1], self.quantum, 0, 0] {
            bytes.extend(word.to_ne_bytes());
        }
        let mut options = vec![option(PARAMETERS, bytes)];
        for (attribute, rate) in [(RATE64, self.rate), (CEILING64, self.ceiling)] {
            if u32::try_from(bytes_per_second(rate)).is_err() {
                options.push(option(attribute, bytes_per_second(rate).to_ne_bytes().to_vec()));
            }
        }
        Ok(TcAttribute::Options(options))
    }

    /// `struct tc_ratespec`: the logarithm of cells, the link layer, overhead, alignment of cells, the least size, the rate.
    fn write_rate(&self, rate: Rate, bytes: &mut Vec<u8>) {
        bytes.extend([0, LINK_LAYER]);
        bytes.extend(self.overhead.to_ne_bytes());
        bytes.extend([0; 4]);
        bytes.extend(u32::try_from(bytes_per_second(rate)).unwrap_or(u32::MAX).to_ne_bytes());
    }
}

/// The kernel's rates are bytes per second.
const fn bytes_per_second(rate: Rate) -> u64 {
    rate.as_bps().div_ceil(8)
}

/// Longest time that a bucket's content may take at its rate.
pub(super) const LONGEST_BUCKET: Duration = Duration::from_nanos(TICK.as_nanos() * u32::MAX as u64);

/// A bucket is the time that its content takes at its rate.
fn ticks(field: &'static str, bucket: Bytes, rate: Rate) -> Result<u32, Error> {
    let time = rate.transmission_time(bucket);
    u32::try_from(time.as_nanos().div_ceil(TICK.as_nanos())).map_err(|_| {
        let most = rate.bytes_in(LONGEST_BUCKET);
        Error::invalid(field, bucket, format!("0 B to {most} at {rate}"))
    })
}

/// The discipline itself: `struct tc_htb_glob`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Discipline {
    /// Divisor of rates for quanta that are not given. Ours are all given, so this is free to be a mark.
    pub rate_to_quantum: u32,
    /// The class, its minor number, of packets that no filter picks.
    pub default_class: u32,
}

impl Discipline {
    /// Returns `TCA_OPTIONS`.
    pub(super) fn options(self) -> TcAttribute {
        let words = [VERSION, self.rate_to_quantum, self.default_class, 0, 0];
        TcAttribute::Options(vec![option(GLOBAL, words.map(u32::to_ne_bytes).concat())])
    }

    /// Reads it from the attributes of a discipline of kind [`KIND`].
    pub(super) fn read(attributes: &[TcAttribute]) -> Option<Self> {
        let options = attributes.iter().find_map(|attribute| match attribute {
            TcAttribute::Options(options) => Some(options),
            _ => None,
        })?;
        // The crate does not know this kind, so all of the options are one attribute.
        let TcOption::Other(nested) = options.first()? else { return None };
        let mut bytes = vec![0; nested.value_len()];
        nested.emit_value(&mut bytes);
        let global =
            NlasIterator::new(bytes.as_slice()).flatten().find(|attribute| attribute.kind() == GLOBAL)?;
        let word = |at: usize| parse_u32(global.value().get(at..at + 4)?).ok();
        Some(Self { rate_to_quantum: word(4)?, default_class: word(8)? })
    }
}

/// Returns the attributes of a fifo that holds this much.
pub(super) fn fifo(limit: Bytes) -> [TcAttribute; 2] {
    let limit = u32::try_from(limit.get()).unwrap_or(u32::MAX);
    // `struct tc_fifo_qopt` is in the attribute as it is.
    let options = TcAttribute::Other(DefaultNla::new(OPTIONS, limit.to_ne_bytes().to_vec()));
    [TcAttribute::Kind(FIFO.to_owned()), options]
}

fn option(kind: u16, bytes: Vec<u8>) -> TcOption {
    TcOption::Other(DefaultNla::new(kind, bytes))
}

/// Returns a message about traffic control.
pub(super) fn message(
    interface: u32,
    parent: TcHandle,
    handle: TcHandle,
    info: u32,
    attributes: impl IntoIterator<Item = TcAttribute>,
) -> TcMessage {
    let header = TcHeader { index: interface as i32, handle, parent, info, ..TcHeader::default() };
    TcMessage::from_parts(header, attributes.into_iter().collect())
}

/// The kernel's counters of a class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Bytes that have left, with the link's header, without [`ShaperOptions::overhead`](super::ShaperOptions::overhead).
    pub bytes: u64,
    /// Packets that have left; the kernel counts them in 32 bits.
    pub packets: u32,
    /// Packets that were dropped because the fifo was full.
    pub drops: u32,
    /// Bytes that wait.
    pub backlog: u32,
    /// Packets that wait.
    pub waiting: u32,
    /// Packets, segments of offloaded ones counted as one, that left as excess: with bandwidth that others did not use.
    pub excess: u32,
}

impl Counters {
    pub(super) fn read(attributes: &[TcAttribute]) -> Self {
        let mut counters = Self::default();
        let stats = attributes.iter().filter_map(|attribute| match attribute {
            TcAttribute::Stats2(stats) => Some(stats),
            _ => None,
        });
        for stats in stats.flatten() {
            match stats {
                TcStats2::Basic(basic) => (counters.bytes, counters.packets) = (basic.bytes, basic.packets),
                TcStats2::Queue(queue) => {
                    counters.drops = queue.drops;
                    counters.backlog = queue.backlog;
                    counters.waiting = queue.qlen;
                }
                // `struct tc_htb_xstats`: packets within the rate, packets that borrowed, and three without further information.
                TcStats2::App(TcXstats::Other(bytes)) => {
                    counters.excess =
                        bytes.get(4..8).and_then(|word| parse_u32(word).ok()).unwrap_or_default();
                }
                _ => {}
            }
        }
        counters
    }
}

/// Returns the class that an answer is about, and its attributes.
pub(super) fn read_class(answer: &RouteNetlinkMessage) -> Option<(TcHandle, &[TcAttribute])> {
    match answer {
        RouteNetlinkMessage::NewTrafficClass(class) => Some((class.header.handle, &class.attributes)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_is_a_time_in_ticks() {
        // 3000 B at 640 kbit/s are 37.5 ms.
        assert_eq!(ticks("bucket", Bytes::new(3000), Rate::from_kbps(640)).unwrap(), 585_938);
        let error = ticks("bucket", Bytes::new(1_000_000), Rate::from_kbps(8)).unwrap_err().to_string();
        assert_eq!(error, "bucket = 1000000 B: allowed is 0 B to 274877 B at 8 kbit/s");
    }

    #[test]
    fn rates_beyond_32_bits_have_attributes_of_their_own() {
        let class = |rate| Class {
            rate,
            burst: Bytes::new(1514),
            ceiling: Rate::from_mbps(40_000),
            ceiling_burst: Bytes::new(1514),
            quantum: 1514,
            overhead: 24,
        };
        let kinds = |rate| match class(rate).options().unwrap() {
            TcAttribute::Options(options) => options.iter().map(Nla::kind).collect::<Vec<_>>(),
            _ => Vec::new(),
        };
        assert_eq!(kinds(Rate::from_mbps(100)), [PARAMETERS, CEILING64]);
        assert_eq!(kinds(Rate::from_mbps(40_000)), [PARAMETERS, RATE64, CEILING64]);
    }
}
