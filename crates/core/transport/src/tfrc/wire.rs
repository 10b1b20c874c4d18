//! The datagrams of TFRC on a real network. [`crate::wire`] defines their layout.

use super::{Feedback, Packet, Params, Sender, Tfrc};
use crate::wire::{DatagramTransport, Reader, Writer};
use cutline_units::{Duration, Instant};

/// The shortest nofeedback timer of a process. A process is seldom later than this. On paths of more than 25 ms it has no
/// effect.
const LEAST_NOFEEDBACK: Duration = Duration::from_millis(100);
/// The largest receive rate that is accepted, bytes per second.
const LARGEST_RATE: f64 = 1e15;
const HISTORY_DISCOUNTING: u32 = 1;
const ECN: u32 = 2;

/// The fields of a TFRC data header that other data headers do not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extension {
    /// The sender's estimate of the round-trip time; zero while it has none.
    pub rtt: Duration,
    /// The flow's segment size, 1 to 65,535 bytes.
    pub segment_size: u32,
    /// True if the receiver discounts old loss intervals (RFC 5348 section 5.5).
    pub history_discounting: bool,
    /// True if the sender responds to ECN marks.
    pub ecn: bool,
}

impl DatagramTransport for Tfrc {
    const DATA_KIND: u8 = 2;
    const REPLY_KIND: Option<u8> = Some(3);
    const EXTENSION_BYTES: usize = 12;
    const REPLY_BYTES: usize = 32;

    type Extension = Extension;

    fn largest_datagram(params: &Params) -> u32 {
        params.segment_size
    }

    /// Sets the segment size to that of the messages, because the throughput equation assumes packets of one size.
    fn set_message_size(params: &mut Params, bytes: u32) {
        params.segment_size = bytes;
    }

    fn tolerate_lateness(params: &mut Params) {
        params.least_nofeedback = params.least_nofeedback.max(LEAST_NOFEEDBACK);
    }

    fn packet(data: &Packet) -> (u64, u32) {
        (data.seq, data.len)
    }

    fn extension(sender: &Box<Sender>, data: &Packet) -> Extension {
        let Params { segment_size, history_discounting, ecn, .. } = *sender.params();
        Extension { rtt: data.rtt, segment_size, history_discounting, ecn }
    }

    fn receiver_params(extension: &Extension) -> Params {
        let Extension { segment_size, history_discounting, ecn, .. } = *extension;
        Params { segment_size, history_discounting, ecn, ..Params::default() }
    }

    fn data(seq: u64, sent_at: Instant, len: u32, extension: &Extension) -> Packet {
        Packet { seq, sent_at, rtt: extension.rtt, len }
    }

    fn write_extension(extension: &Extension, to: &mut Writer<'_>) {
        let Extension { rtt, segment_size, history_discounting, ecn } = *extension;
        let flags = (HISTORY_DISCOUNTING * u32::from(history_discounting)) | (ECN * u32::from(ecn));
        to.duration(rtt).u32(segment_size << 8 | flags);
    }

    fn read_extension(from: &mut Reader<'_>) -> Option<Extension> {
        let (rtt, word) = (from.duration()?, from.u32()?);
        let (segment_size, flags) = (word >> 8, word & 0xff);
        (1..=65_535).contains(&segment_size).then_some(Extension {
            rtt,
            segment_size,
            history_discounting: flags & HISTORY_DISCOUNTING != 0,
            ecn: flags & ECN != 0,
        })
    }

    fn echo(reply: &mut Feedback) -> &mut Instant {
        &mut reply.echo
    }

    fn write_reply(reply: &Feedback, to: &mut Writer<'_>) {
        let Feedback { echo, t_delay, x_recv, p } = *reply;
        to.instant(echo).duration(t_delay).number(x_recv).number(p);
    }

    fn read_reply(from: &mut Reader<'_>) -> Option<Feedback> {
        let (echo, t_delay) = (from.instant()?, from.duration()?);
        Some(Feedback { echo, t_delay, x_recv: from.number(LARGEST_RATE)?, p: from.number(1.0)? })
    }

    /// The sender's round-trip time, ns; 0 while it has none.
    fn write_captured(data: &Packet, to: &mut Vec<u8>) {
        to.extend(data.rtt.as_nanos().to_be_bytes());
    }
}
