//! A packet of the simulator: the transport's own header, and what the network needs to know.

use crate::calendar::Handle;
use cutline_transport::endpoint::{DataHeader, PackedHeader, ReplyHeader, WideHeader};
use cutline_units::{Duration, Ecn, Hint};

/// A packet on its way. Written once as the payload of its calendar entry, and moved by handle from then on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet {
    /// Time spent waiting in queues so far.
    pub(crate) queued: Duration,
    /// The transport's header; `None` where it lies in [`WideHeaders`].
    pub(crate) header: Option<PackedHeader>,
    /// On the wire, headers included, bytes.
    pub(crate) size: u32,
    /// Where it is on its way: an index into [`crate::route::Routes`].
    pub(crate) position: u32,
    pub(crate) hint: Hint,
    pub(crate) ecn: Ecn,
    /// Congestion experienced (RFC 3168).
    pub(crate) marked: bool,
}

// An event with its packet is one cache line.
const _: () = assert!(size_of::<Packet>() <= 48, "a packet shares a cache line with its calendar entry");

impl Packet {
    /// What an entry of the calendar holds before its first packet, and a timer's for ever.
    pub(crate) const NONE: Self = Self {
        queued: Duration::ZERO,
        header: None,
        size: 0,
        position: 0,
        hint: Hint::LEAST_DELAY,
        ecn: Ecn::NotEct,
        marked: false,
    };
}

/// The long headers, by the handles of their packets. Only as long as some such packet's handle.
#[derive(Default)]
pub(crate) struct WideHeaders {
    headers: Vec<Option<WideHeader>>,
}

impl WideHeaders {
    /// The header of a data packet.
    pub(crate) fn data(&self, handle: Handle) -> DataHeader {
        let WideHeader::Data(header) = self.get(handle) else { unreachable!("only data reaches a sink") };
        *header
    }

    /// The header of a reply.
    pub(crate) fn reply(&self, handle: Handle) -> ReplyHeader {
        let WideHeader::Reply(header) = self.get(handle) else { unreachable!("only replies reach a source") };
        *header
    }

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
