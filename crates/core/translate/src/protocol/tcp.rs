//! TCP: a stream of bytes, complete and in order.
//!
//! A byte is delayed by the backlog before it: unsent data in the sender's buffer (`TCP_NOTSENT_LOWAT`), a window larger than
//! the path (`SO_SNDBUF`), Nagle's algorithm, and a segment on a slow link (`TCP_MAXSEG`). These are set if the
//! specification bounds the delay. Otherwise the kernel's own tuning is better than any fixed value.
//!
//! Worked, for video (peak 200 messages/s of 1200 B, 400 ms) over a round-trip time of 50 ms: a share is
//! (400 - 25) / 8 = 46.875 ms, in which 1.92 Mbit/s are 11,250 B: the unsent data. The send buffer has the bytes that leave in a
//! round trip and the longest delay, 450 ms: 108,000 B.

use super::{Ends, Protocol, ProtocolTranslator, buffer, pacing};
use crate::baseline;
use crate::decision::{Chosen, Decisions};
use crate::path::Path;
use crate::settings::{EndSystemSettings, PacedBy};
use crate::stream::{Packets, Stream};
use cutline_units::{Bytes, IpVersion, Rate};

/// The header, B.
const HEADER: u64 = 20;
/// The option with time stamps that data segments have (RFC 7323 section 3.2), B.
const TIME_STAMPS: u64 = 12;
/// A write without a limit of delay, B.
const LARGE_BLOCK: u64 = 65_536;
/// A write with a limit of delay whose message size is not known, B.
const SMALL_BLOCK: u64 = 8_192;
/// The initial window, segments.
const INITIAL_WINDOW: u64 = 10;
/// Overhead that the kernel counts in a buffer for each segment, B (measured with Linux 6.18).
const BOOKKEEPING: u64 = 832;
/// Upper bound of `SO_SNDBUF` unless the host has been configured (`net.core.wmem_max`), B.
const LARGEST_SEND_BUFFER: u64 = 212_992;
/// The largest packet that is common; a larger MTU is the interface's own.
const ETHERNET: u64 = 1500;

pub(super) struct Tcp;

impl ProtocolTranslator for Tcp {
    fn name(&self) -> &'static str {
        "tcp"
    }

    fn title(&self) -> &'static str {
        "TCP: a stream of bytes, complete and in order"
    }

    fn packets(&self, path: &Path) -> Packets {
        let headers = path.ip_header() + HEADER + TIME_STAMPS;
        Packets { headers, payload: path.packet() - headers }
    }

    fn is_complete(&self) -> bool {
        true
    }

    fn with_reservation(&self) -> Option<Protocol> {
        Some(Protocol::RTcp)
    }

    /// A tenth, for repetitions.
    fn pace_margin(&self) -> f64 {
        1.1
    }

    fn settings(&self, ends: &Ends<'_>, log: &mut Decisions) -> EndSystemSettings {
        let send = &ends.send;
        let paced =
            pacing(ends, PacedBy::Kernel, self.pace_margin(), "a tenth more leaves room for repetitions");
        EndSystemSettings {
            send_buffer: log.end_system("send-buffer", send_buffer(send)),
            receive_buffer: log.end_system("receive-buffer", receive_buffer()),
            block: log
                .end_system("block", baseline::block(ends, Protocol::Tcp, block(send)))
                .unwrap_or_default(),
            no_delay: log.end_system("no-delay", no_delay(send)),
            not_sent_lowat: log.end_system("not-sent-lowat", not_sent_lowat(send)),
            mss: log.end_system("mss", mss(send)),
            congestion_control: log.end_system("congestion-control", congestion_control(ends)),
            pacing: log.end_system("pacing", paced),
            gso_segment: log.end_system("gso-segment", gso_segment()),
        }
    }
}

/// `SO_SNDBUF`: the bytes that leave in a round trip and the longest delay. More would be late.
fn send_buffer(send: &Stream<'_>) -> Chosen<Bytes> {
    let autotuning = "tcp(7), tcp_wmem";
    let Some(budget) = send.budget() else {
        return Chosen::leave(
            autotuning,
            "no delay is demanded: the kernel tunes it, and a fixed value would end that",
        );
    };
    let (Some(rtt), Some(rate)) = (send.path.rtt, send.drain_rate()) else {
        let why = "the kernel tunes it: without a known round-trip time and rate a fixed value could limit the throughput";
        return Chosen::leave(autotuning, why);
    };
    let window = rate.bytes_in(rtt + budget.limit).get();
    let counted = window + window.div_ceil(send.longest_payload()) * BOOKKEEPING;
    // Two messages or four segments: less would let the sender wait for each acknowledgement.
    let least = (4 * send.packets.payload).max(2 * send.spec.size.unwrap_or_default().get());
    let size = window.max(counted / 2).max(least);
    if size > LARGEST_SEND_BUFFER {
        let why = format!(
            "the kernel tunes it: {size} B would be needed, and it cuts the requested size to {LARGEST_SEND_BUFFER} B"
        );
        return Chosen::leave("socket(7), net.core.wmem_max", why);
    }
    let why = format!(
        "the data that leaves at {rate} in a round trip ({rtt}) and max-delay ({}); more would be late. This ends the kernel's own \
         tuning; the kernel doubles the value and counts {BOOKKEEPING} B more for each segment",
        budget.limit
    );
    Chosen::set(buffer(size), "socket(7), SO_SNDBUF", why)
}

fn receive_buffer() -> Chosen<Bytes> {
    let why = "the kernel tunes it: data waits there only if the application does not read, and a fixed value would limit the window";
    Chosen::leave("tcp(7), tcp_rmem", why)
}

fn block(send: &Stream<'_>) -> Chosen<Bytes> {
    match (send.spec.size, send.spec.max_delay) {
        (_, None) => Chosen::set(
            Bytes::new(LARGE_BLOCK),
            "QUANTA table 1",
            "no delay is demanded: large blocks take fewer system calls",
        ),
        (Some(size), Some(_)) => Chosen::set(
            Bytes::new(size.get().min(LARGE_BLOCK)),
            "QUANTA section 4.1.3",
            "a message in one write, up to 64 KiB, so that it leaves as a whole and nothing waits for another one",
        ),
        (None, Some(_)) => Chosen::set(
            Bytes::new(SMALL_BLOCK),
            "QUANTA section 4.1.3",
            "the size of messages is open: blocks of 8 KB had a delay of 49 ms there, those of 64 KB 128 ms",
        ),
    }
}

fn no_delay(send: &Stream<'_>) -> Chosen<bool> {
    let source = "RFC 9293 section 3.7.4";
    if send.is_timely() {
        let why = "the time of messages matters: Nagle's algorithm would keep a short one back until others are acknowledged";
        return Chosen::set(true, source, why);
    }
    Chosen::leave(source, "no delay is demanded: Nagle's algorithm keeps the number of small packets down")
}

/// `TCP_NOTSENT_LOWAT`: the bytes that leave within a share of the delay, at least a segment.
fn not_sent_lowat(send: &Stream<'_>) -> Chosen<Bytes> {
    let source = "tcp(7), TCP_NOTSENT_LOWAT";
    let Some(budget) = send.budget() else {
        return Chosen::leave(source, "no delay is demanded: data may wait unsent");
    };
    let segment = send.packets.payload;
    let Some(rate) = send.drain_rate() else {
        let why = format!(
            "the rate is open: an initial window of {INITIAL_WINDOW} segments waits, so that sending never stops for want of data"
        );
        return Chosen::set(buffer(INITIAL_WINDOW * segment), "RFC 6928 section 2", why);
    };
    let (waiting, because) = budget.in_the_sender(rate, send.path);
    let least = if waiting < segment { "; at least a segment" } else { "" };
    let why = format!("{because}{least}. The rest stays with the application, which can still change it");
    Chosen::set(buffer(waiting.max(segment)), source, why)
}

fn mss(send: &Stream<'_>) -> Chosen<Bytes> {
    let source = "RFC 9293 section 3.7.1";
    let headers = send.path.ip_header() + HEADER;
    let (packet, smallest) = match send.path.ip {
        IpVersion::V4 => (send.path.packet(), 536),
        IpVersion::V6 => (send.path.packet(), 1220),
    };
    let fits = packet.min(ETHERNET) - headers;
    if let (Some(rate), Some(budget)) = (send.path.rate, send.budget()) {
        let within = rate.bytes_in(budget.share).get().saturating_sub(headers);
        if within < fits {
            let why = format!(
                "at {rate} a packet of {packet} B takes {}, more than {}, {}",
                rate.transmission_time(Bytes::new(packet)),
                budget.share,
                budget.because(send.path)
            );
            return Chosen::set(Bytes::new(within.max(smallest).min(fits)), source, why);
        }
    }
    if packet < ETHERNET {
        let why = format!(
            "the path's packets have {packet} B: so no segment is lost before TCP has found that out"
        );
        return Chosen::set(Bytes::new(fits), source, why);
    }
    Chosen::leave(source, "TCP takes it from the interface and the path")
}

/// `TCP_CONGESTION`: BBR where loss alone would keep others below the least rate.
fn congestion_control(ends: &Ends<'_>) -> Chosen<&'static str> {
    let Stream { spec, path, packets } = ends.send;
    if ends.reserved {
        return Chosen::leave(
            "",
            "below the reserved rate hardly anything is lost, so any control keeps the rate",
        );
    }
    let source = "RFC 5348 section 3.1";
    let (Some(rtt), Some(loss), Some(least)) = (path.rtt, path.loss, spec.min_throughput()) else {
        let why = "the host's own choice: no least rate, loss and round-trip time say that it would not do";
        return Chosen::leave("", why);
    };
    // The first term of the throughput equation, for an acknowledgement of each packet: s / (R sqrt(2 p / 3)).
    let allows = packets.payload as f64 * 8.0 / (rtt.as_secs_f64() * (2.0 * (loss / 100.0) / 3.0).sqrt());
    if allows < least.as_bps() as f64 {
        let why = format!(
            "with {loss} % lost and a round trip of {rtt}, a control that takes loss for congestion has {}, and {least} is the \
             least that is demanded",
            Rate::from_bps(allows as u64)
        );
        return Chosen::set("bbr", source, why);
    }
    Chosen::leave(
        source,
        format!("the host's own choice: with {loss} % lost it can have more than the {least} demanded"),
    )
}

fn gso_segment() -> Chosen<Bytes> {
    Chosen::leave("", "the kernel cuts TCP's segments itself, and paces them")
}
