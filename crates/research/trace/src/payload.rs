//! The first bytes of a datagram's payload: headers of senders and receivers, and messages of
//! agents.
//!
//! TCP has its own header. A transport over datagrams has a kind for its data and one for its replies
//! ([`cutline_transport::wire`]), and both are written as UDP payload. Numbers are big-endian. The port at the sink is 50,000
//! plus the kind of the data.
//!
//! | offset | bytes | data | reply | message |
//! | --- | --- | --- | --- | --- |
//! | 0 | 4 | `CUTL` | `CUTL` | `CUTL` |
//! | 4 | 1 | version, 2 | version, 2 | version, 2 |
//! | 5 | 1 | kind: 1 UDP, 2 TFRC | kind: 3 TFRC | kind, 0 |
//! | 6 | 2 | zero | zero | zero |
//! | 8 | 8 | sequence number | its fields, as on the wire | the agent's message |
//! | 16 | 8 | when it was sent, ns | | |
//! | 24 | 8 | TFRC: the sender's round-trip time, ns; 0 unknown | | |
//!
//! A transport without a wire format has the kind 255 and no fields.

use cutline_sim::AgentMessage;
use cutline_transport::endpoint::{DataHeader, ReplyHeader};

const MAGIC: [u8; 4] = *b"CUTL";
const VERSION: u8 = 2;
/// The kind of a message between agents.
const MESSAGE: u8 = 0;
/// The kind of a packet whose transport has no wire format.
const UNKNOWN: u8 = 255;
/// The port at the sink of a transport whose data has the kind 0. There is none.
const FIRST_PORT: u16 = 50_000;

/// Writes the header of a data packet after the contents of `out`. Returns the port at its sink.
pub(crate) fn data(header: &DataHeader, out: &mut Vec<u8>) -> u16 {
    let kind = header.datagram_kind().unwrap_or(UNKNOWN);
    begin(kind, out);
    header.write_captured(out);
    FIRST_PORT + u16::from(kind)
}

/// Writes the header of a reply. Returns the port at the sink, which sends it.
pub(crate) fn reply(header: &ReplyHeader, out: &mut Vec<u8>) -> u16 {
    let (data, reply) = header.datagram_kinds().unwrap_or((UNKNOWN, UNKNOWN));
    begin(reply, out);
    header.write_captured(out);
    FIRST_PORT + u16::from(data)
}

/// Writes a message between agents.
pub(crate) fn message(message: &AgentMessage, out: &mut Vec<u8>) {
    begin(MESSAGE, out);
    out.extend_from_slice(&message.payload);
}

fn begin(kind: u8, out: &mut Vec<u8>) {
    out.extend(MAGIC);
    out.extend([VERSION, kind, 0, 0]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutline_transport::{tcp, tfrc, udp};
    use cutline_units::{Duration, Instant};

    #[test]
    fn a_reply_has_its_fields_as_on_the_wire() {
        let (echo, t_delay) = (Instant::from_nanos(7), Duration::from_nanos(8));
        let feedback = tfrc::Feedback { echo, t_delay, x_recv: 16_000.5, p: 0.25 };
        let mut out = Vec::new();
        assert_eq!(reply(&ReplyHeader::Tfrc(feedback), &mut out), 50_002);
        assert_eq!(out[..8], *b"CUTL\x02\x03\0\0");
        assert_eq!(out[8..16], 7u64.to_be_bytes());
        assert_eq!(out[16..24], 8u64.to_be_bytes());
        assert_eq!(out[24..32], 16_000.5_f64.to_be_bytes());
        assert_eq!(out[32..], 0.25_f64.to_be_bytes());
    }

    #[test]
    fn data_says_its_number_and_when_it_was_sent() {
        let sent_at = Instant::from_nanos(1_000_000_007);
        let packet = tfrc::Packet { seq: 3, sent_at, rtt: Duration::from_nanos(9), len: 100 };
        let datagram = udp::Datagram { seq: 3, sent_at, len: 100 };
        let (mut tfrc, mut udp) = (Vec::new(), Vec::new());
        assert_eq!(data(&DataHeader::Tfrc(packet), &mut tfrc), 50_002);
        assert_eq!(data(&DataHeader::Udp(datagram), &mut udp), 50_001);
        assert_eq!((tfrc[5], udp[5], tfrc.len(), udp.len()), (2, 1, 32, 24));
        assert_eq!(udp[8..16], 3u64.to_be_bytes());
        assert_eq!(udp[16..], 1_000_000_007u64.to_be_bytes());
        assert_eq!(tfrc[8..24], udp[8..24]);
        assert_eq!(tfrc[24..], 9u64.to_be_bytes());
    }

    /// TCP represents any transport without a wire format: its frames have TCP's header, and it never comes here.
    #[test]
    fn a_transport_without_a_wire_format_has_no_fields() {
        let (sent_at, len) = (Instant::ZERO, 9);
        let segment = tcp::Segment { seq: 3, sent_at, len, retransmission: false, cwr: false, fin: false };
        let mut out = Vec::new();
        assert_eq!(data(&DataHeader::Tcp(segment), &mut out), 50_255);
        assert_eq!(out, *b"CUTL\x02\xff\0\0");
    }
}
