//! UDP: datagrams that leave as the application writes them.
//!
//! UDP has no congestion control: the application must keep to the rate that it has requested, and send less when that is lost
//! (RFC 8085 section 3.1). The kernel accepts `SO_MAX_PACING_RATE` on UDP sockets, and ignores it unless the interface has
//! the queue `fq`, so the sender paces itself.
//!
//! Worked, for video (peak 200 datagrams/s of 1200 B, 400 ms) over a round-trip time of 50 ms: in a share of 46.875 ms, 11,250 B
//! leave, nine datagrams. The kernel counts 2304 B for each, so the send buffer is 20,736 B, of which half is requested.

use super::datagrams::{receive_buffer, send_buffer};
use super::{Ends, Protocol, ProtocolTranslator, pacing};
use crate::baseline;
use crate::decision::{Chosen, Decisions};
use crate::path::Path;
use crate::settings::{EndSystemSettings, PacedBy};
use crate::stream::{Packets, Stream};
use cutline_units::{Bytes, Duration};

/// The header, B.
const HEADER: u64 = 8;
/// The longest write that the kernel cuts into datagrams, B, and the most datagrams (udp(7), `UDP_SEGMENT`).
const LONGEST_WRITE: u64 = 65_000;
const MOST_SEGMENTS: u64 = 64;
/// A burst that any path takes: the initial window of TCP (RFC 6928 section 2), packets.
const INITIAL_WINDOW: u64 = 10;
/// Interval between a sender's wake-ups at high rates.
const TICK: Duration = Duration::from_millis(1);

pub(super) struct Udp;

impl ProtocolTranslator for Udp {
    fn name(&self) -> &'static str {
        "udp"
    }

    fn title(&self) -> &'static str {
        "UDP: datagrams, without congestion control"
    }

    fn packets(&self, path: &Path) -> Packets {
        let headers = path.ip_header() + HEADER;
        Packets { headers, payload: path.packet() - headers }
    }

    fn is_complete(&self) -> bool {
        false
    }

    fn with_reservation(&self) -> Option<Protocol> {
        Some(Protocol::RUdp)
    }

    /// No margin: nothing is repeated.
    fn pace_margin(&self) -> f64 {
        1.0
    }

    fn settings(&self, ends: &Ends<'_>, log: &mut Decisions) -> EndSystemSettings {
        let how = "by the sender itself: the kernel ignores SO_MAX_PACING_RATE of UDP without the queue fq";
        let segments = segments(&ends.send);
        let buffer = baseline::receive_buffer(ends, Protocol::Udp, receive_buffer(&ends.receive));
        EndSystemSettings {
            send_buffer: log.end_system("send-buffer", send_buffer(&ends.send)),
            receive_buffer: log.end_system("receive-buffer", buffer),
            block: log.end_system("block", block(&ends.send, segments)).unwrap_or_default(),
            pacing: log.end_system("pacing", pacing(ends, PacedBy::Sender, self.pace_margin(), how)),
            gso_segment: log.end_system("gso-segment", gso_segment(&ends.send, segments)),
            ..EndSystemSettings::default()
        }
    }
}

/// Returns the number of datagrams that leave together: those of a message, at most ten, or of a millisecond.
fn segments(send: &Stream<'_>) -> u64 {
    let message = send.spec.size.map_or(1, |size| send.packets_of(size));
    let tick = send.drain_rate().map_or(0, |rate| rate.bytes_in(TICK).get() / send.longest_payload());
    let most = (LONGEST_WRITE / send.longest_payload()).clamp(1, MOST_SEGMENTS);
    message.min(INITIAL_WINDOW).max(tick).clamp(1, most)
}

fn block(send: &Stream<'_>, segments: u64) -> Chosen<Bytes> {
    let source = "RFC 8085 section 3.2";
    let (payload, longest) = (send.longest_payload(), send.packets.payload);
    if segments > 1 {
        let block = Bytes::new(payload * segments);
        return Chosen::set(
            block,
            source,
            format!("{segments} datagrams of {payload} B, which leave together"),
        );
    }
    let why = match send.spec.size {
        Some(size) if size.get() <= longest => "a message, which fits a packet of the path".to_owned(),
        _ => format!("the longest datagram that fits a packet of the path ({} B)", send.path.packet()),
    };
    Chosen::set(Bytes::new(payload), source, why)
}

fn gso_segment(send: &Stream<'_>, segments: u64) -> Chosen<Bytes> {
    let source = "udp(7), UDP_SEGMENT";
    if segments > 1 {
        let why = "those of a message (at most ten) or of a millisecond leave together, by one system call";
        return Chosen::set(Bytes::new(send.longest_payload()), source, why);
    }
    Chosen::leave(source, "datagrams leave one by one")
}
