//! A packet of the simulator: the transport's own header, and what the network needs to know.

use crate::calendar::Handle;
use cutline_quality::Report;
use cutline_transport::{tcp, tfrc, udp};
use cutline_units::{Duration, Hint, Instant};

/// A packet on its way. Written once as the payload of its calendar entry, and moved by handle from then on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet {
    /// Time spent waiting in queues so far.
    pub(crate) queued: Duration,
    pub(crate) header: Header,
    /// On the wire, headers included, bytes.
    pub(crate) size: u32,
    /// Where it is on its way: an index into [`crate::route::Routes`].
    pub(crate) position: u32,
    pub(crate) hint: Hint,
    pub(crate) ecn_capable: bool,
    /// Congestion experienced (RFC 3168).
    pub(crate) marked: bool,
}

// An event with its packet is one cache line.
const _: () = assert!(size_of::<Packet>() <= 48, "a packet shares a cache line with its calendar entry");

impl Packet {
    /// What an entry of the calendar holds before its first packet, and a timer's for ever.
    pub(crate) const NONE: Self = Self {
        queued: Duration::ZERO,
        header: Header::WIDE,
        size: 0,
        position: 0,
        hint: Hint::LEAST_DELAY,
        ecn_capable: false,
        marked: false,
    };
}

/// The transport's part, flat: 24 bytes whatever the protocol. [`Header::read`] says what it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Header {
    /// A sequence or acknowledgement number.
    number: u64,
    /// When a data packet left; an acknowledgement's echo of that.
    time: Instant,
    /// Payload, bytes.
    len: u32,
    form: Form,
    flags: [bool; 3],
}

#[derive(Clone, Copy, Debug)]
enum Form {
    Segment,
    Ack,
    Datagram,
    Wide,
}

/// What a header says.
pub(crate) enum Reading {
    Segment(tcp::Segment),
    /// Without SACK blocks: most acknowledgements have none.
    Ack(tcp::Ack),
    Datagram(udp::Datagram),
    /// It lies in [`WideHeaders`].
    Wide,
}

impl Header {
    /// Of a packet whose header lies in [`WideHeaders`].
    pub(crate) const WIDE: Self =
        Self { number: 0, time: Instant::ZERO, len: 0, form: Form::Wide, flags: [false; 3] };

    #[inline]
    pub(crate) fn of_segment(segment: &tcp::Segment) -> Self {
        let tcp::Segment { seq, sent_at, len, retransmission, cwr, fin } = *segment;
        Self { number: seq, time: sent_at, len, form: Form::Segment, flags: [retransmission, cwr, fin] }
    }

    #[inline]
    pub(crate) fn of_datagram(datagram: &udp::Datagram) -> Self {
        let udp::Datagram { seq, sent_at, len } = *datagram;
        Self { number: seq, time: sent_at, len, form: Form::Datagram, flags: [false; 3] }
    }

    /// `None` when there are SACK blocks, for which there is no room.
    #[inline]
    pub(crate) fn of_ack(ack: &tcp::Ack) -> Option<Self> {
        let tcp::Ack { ack, echo, sack, ece } = *ack;
        let flags = [ece, false, false];
        sack.is_empty().then_some(Self { number: ack, time: echo, len: 0, form: Form::Ack, flags })
    }

    #[inline]
    pub(crate) fn read(&self) -> Reading {
        let Self { number, time, len, form, flags } = *self;
        match form {
            Form::Segment => {
                let [retransmission, cwr, fin] = flags;
                Reading::Segment(tcp::Segment { seq: number, sent_at: time, len, retransmission, cwr, fin })
            }
            Form::Ack => {
                Reading::Ack(tcp::Ack { ack: number, echo: time, sack: tcp::SackBlocks::NONE, ece: flags[0] })
            }
            Form::Datagram => Reading::Datagram(udp::Datagram { seq: number, sent_at: time, len }),
            Form::Wide => Reading::Wide,
        }
    }
}

/// A header too long for a packet.
#[derive(Clone, Copy, Debug)]
pub(crate) enum WideHeader {
    Ack(tcp::Ack),
    TfrcPacket(tfrc::Packet),
    TfrcFeedback(tfrc::Feedback),
    /// To what changes the sender's hint.
    Report(Report),
}

/// The long headers, by the handles of their packets. Only as long as some such packet's handle.
#[derive(Default)]
pub(crate) struct WideHeaders {
    headers: Vec<Option<WideHeader>>,
}

impl WideHeaders {
    #[inline]
    pub(crate) fn get(&self, handle: Handle) -> &WideHeader {
        self.headers[handle as usize].as_ref().expect("a packet whose header is wide has put it here")
    }

    pub(crate) fn put(&mut self, handle: Handle, header: WideHeader) {
        if handle as usize >= self.headers.len() {
            self.headers.resize(handle as usize + 1, None);
        }
        self.headers[handle as usize] = Some(header);
    }
}
