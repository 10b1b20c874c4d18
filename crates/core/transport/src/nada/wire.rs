//! The datagrams of NADA on a real network. [`crate::wire`] defines their layout.

use super::{Feedback, Nada, Packet, Params, Sender};
use crate::wire::{DatagramTransport, Reader, Writer};
use cutline_units::{Duration, Instant, Rate};

/// The largest rate that is accepted in a report, bit/s.
const LARGEST_RATE: u64 = 1_000_000_000_000_000;
/// The largest loss interval that is accepted in a report, packets.
const LARGEST_INTERVAL: f64 = 1e15;

/// The fields of a NADA data header that other data headers do not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extension {
    /// The sender's estimate of the round-trip time; zero while it has none.
    pub rtt: Duration,
    /// Interval between reports, 10 to 1000 ms.
    pub feedback_ms: u32,
    /// Time over which the receiver measures, `feedback_ms` to 10,000 ms.
    pub window_ms: u32,
}

fn ms(time: Duration) -> u32 {
    (time.as_nanos() / 1_000_000) as u32
}

impl DatagramTransport for Nada {
    const DATA_KIND: u8 = 4;
    const REPLY_KIND: Option<u8> = Some(5);
    const EXTENSION_BYTES: usize = 16;
    const REPLY_BYTES: usize = 72;

    type Extension = Extension;

    fn largest_datagram(params: &Params) -> u32 {
        params.packet_size
    }

    fn packet(data: &Packet) -> (u64, u32) {
        (data.seq, data.len)
    }

    fn extension(sender: &Box<Sender>, data: &Packet) -> Extension {
        let Params { feedback_interval, log_window, .. } = *sender.params();
        Extension { rtt: data.rtt, feedback_ms: ms(feedback_interval), window_ms: ms(log_window) }
    }

    fn receiver_params(extension: &Extension) -> Params {
        let time = |ms: u32| Duration::from_millis(u64::from(ms));
        Params {
            feedback_interval: time(extension.feedback_ms),
            log_window: time(extension.window_ms),
            ..Params::default()
        }
    }

    fn data(seq: u64, sent_at: Instant, len: u32, extension: &Extension) -> Packet {
        Packet { seq, sent_at, rtt: extension.rtt, len }
    }

    fn write_extension(extension: &Extension, to: &mut Writer<'_>) {
        let Extension { rtt, feedback_ms, window_ms } = *extension;
        to.duration(rtt).u32(feedback_ms).u32(window_ms);
    }

    fn read_extension(from: &mut Reader<'_>) -> Option<Extension> {
        let (rtt, feedback_ms, window_ms) = (from.duration()?, from.u32()?, from.u32()?);
        let is_allowed = (10..=1000).contains(&feedback_ms) && (feedback_ms..=10_000).contains(&window_ms);
        is_allowed.then_some(Extension { rtt, feedback_ms, window_ms })
    }

    fn echo(reply: &mut Feedback) -> &mut Instant {
        &mut reply.echo
    }

    fn write_reply(reply: &Feedback, to: &mut Writer<'_>) {
        let Feedback {
            echo,
            since_arrival,
            queuing_delay,
            largest_delay,
            lost,
            marked,
            received,
            loss_interval,
            since_loss,
        } = *reply;
        to.instant(echo).duration(since_arrival).duration(queuing_delay).duration(largest_delay);
        to.number(lost).number(marked).u64(received.as_bps()).number(loss_interval).u64(since_loss);
    }

    fn read_reply(from: &mut Reader<'_>) -> Option<Feedback> {
        let (echo, since_arrival) = (from.instant()?, from.duration()?);
        let (queuing_delay, largest_delay) = (from.duration()?, from.duration()?);
        let (lost, marked) = (from.number(1.0)?, from.number(1.0)?);
        let received = Rate::from_bps(from.u64().filter(|bps| *bps <= LARGEST_RATE)?);
        let (loss_interval, since_loss) = (from.number(LARGEST_INTERVAL)?, from.u64()?);
        Some(Feedback {
            echo,
            since_arrival,
            queuing_delay,
            largest_delay,
            lost,
            marked,
            received,
            loss_interval,
            since_loss,
        })
    }

    /// The sender's round-trip time, ns; 0 while it has none.
    fn write_captured(data: &Packet, to: &mut Vec<u8>) {
        to.extend(data.rtt.as_nanos().to_be_bytes());
    }
}
