//! The first bytes of a datagram's payload: what TFRC and UDP senders say to their receivers, and receivers to them; and
//! the messages of agents.
//!
//! TCP has its header for that. TFRC (RFC 5348) leaves the format to the protocol that uses it, and a simulated UDP
//! datagram is numbered; both are written as UDP payload. Numbers are big-endian.
//!
//! | offset | bytes | datagram | TFRC data | TFRC feedback | message |
//! | --- | --- | --- | --- | --- | --- |
//! | 0 | 4 | `CUTL` | `CUTL` | `CUTL` | `CUTL` |
//! | 4 | 1 | version, 1 | version, 1 | version, 1 | version, 1 |
//! | 5 | 1 | kind, 0 | kind, 1 | kind, 2 | kind, 3 |
//! | 6 | 2 | zero | zero | zero | zero |
//! | 8 | 8 | sequence number | sequence number | `t_recvdata`: when the packet echoed was sent, ns | what the agent says |
//! | 16 | 8 | when it was sent, ns | when it was sent, ns | `t_delay`, ns | |
//! | 24 | 8 | - | the sender's round-trip time, ns; 0 unknown | `X_recv`, bytes/s | |
//! | 32 | 4 | - | - | p, in units of 10^-9 | |

use cutline_sim::Message;
use cutline_transport::{tfrc, udp};

const MAGIC: [u8; 4] = *b"CUTL";
const VERSION: u8 = 1;

/// What a datagram's payload begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Datagram = 0,
    TfrcData = 1,
    TfrcFeedback = 2,
    Message = 3,
}

/// Writes a UDP datagram's header behind what `out` holds.
pub(crate) fn datagram(datagram: &udp::Datagram, out: &mut Vec<u8>) {
    begin(Kind::Datagram, out);
    numbers(&[datagram.seq, datagram.sent_at.as_nanos()], out);
}

/// Writes a TFRC data packet's header.
pub(crate) fn tfrc_data(packet: &tfrc::Packet, out: &mut Vec<u8>) {
    begin(Kind::TfrcData, out);
    numbers(&[packet.seq, packet.sent_at.as_nanos(), packet.rtt.as_nanos()], out);
}

/// Writes a TFRC receiver's report.
pub(crate) fn tfrc_feedback(feedback: &tfrc::Feedback, out: &mut Vec<u8>) {
    begin(Kind::TfrcFeedback, out);
    numbers(&[feedback.echo.as_nanos(), feedback.t_delay.as_nanos(), feedback.x_recv.round() as u64], out);
    out.extend(((feedback.p * 1e9).round() as u32).to_be_bytes());
}

/// Writes a message between agents.
pub(crate) fn message(message: &Message, out: &mut Vec<u8>) {
    begin(Kind::Message, out);
    out.extend_from_slice(&message.payload);
}

fn begin(kind: Kind, out: &mut Vec<u8>) {
    out.extend(MAGIC);
    out.extend([VERSION, kind as u8, 0, 0]);
}

fn numbers(numbers: &[u64], out: &mut Vec<u8>) {
    out.extend(numbers.iter().flat_map(|number| number.to_be_bytes()));
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutline_units::{Duration, Instant};

    #[test]
    fn every_field_is_where_the_table_says() {
        let mut out = Vec::new();
        tfrc_feedback(
            &tfrc::Feedback {
                echo: Instant::from_nanos(7),
                t_delay: Duration::from_nanos(8),
                x_recv: 16_000.4,
                p: 0.25,
            },
            &mut out,
        );
        assert_eq!(out[..8], *b"CUTL\x01\x02\0\0");
        assert_eq!(out[8..16], 7u64.to_be_bytes());
        assert_eq!(out[16..24], 8u64.to_be_bytes());
        assert_eq!(out[24..32], 16_000u64.to_be_bytes());
        assert_eq!(out[32..], 250_000_000u32.to_be_bytes());
    }

    #[test]
    fn data_says_its_number_and_when_it_was_sent() {
        let sent_at = Instant::from_nanos(1_000_000_007);
        let (mut tfrc, mut udp) = (Vec::new(), Vec::new());
        tfrc_data(&tfrc::Packet { seq: 3, sent_at, rtt: Duration::from_nanos(9), len: 100 }, &mut tfrc);
        datagram(&udp::Datagram { seq: 3, sent_at, len: 100 }, &mut udp);
        assert_eq!((tfrc[5], udp[5], tfrc.len(), udp.len()), (1, 0, 32, 24));
        assert_eq!(tfrc[8..24], udp[8..24]);
        assert_eq!(tfrc[24..], 9u64.to_be_bytes());
    }
}
