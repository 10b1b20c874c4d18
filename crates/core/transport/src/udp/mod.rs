//! Unresponsive UDP: datagrams leave when they are written, at any rate and under any loss.
//!
//! There is no feedback and no timer. The receiver only counts.

mod transport;

pub use transport::{NoExtension, NoReply, Udp};

use crate::queue::SendQueue;
use cutline_params::Parameters;
use cutline_units::{Bytes, Ecn, Instant};

/// The parameters of a UDP flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Parameters)]
pub struct Params {
    /// The largest payload of a datagram; a longer write is split.
    #[param(default = 1472, range = (1, 65_507), unit = "B", source = "fills 1500 B of IPv4")]
    pub max_datagram: u32,
    /// The size of a datagram's headers on the wire.
    #[param(name = "header", default = 28, range = (0, 1000), unit = "B", source = "IPv4 and UDP; ns-2: 0")]
    pub header_bytes: u32,
    /// The ECN code point of datagrams. Nothing responds to marks: that is left to the application (RFC 8085 section 3.1.7).
    #[param(default = Ecn::NotEct, skip)]
    pub ecn: Ecn,
}

/// The header of a datagram: 24 bytes, `Copy`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// The sequence number: 0, 1, 2, ... in the order of departure.
    pub seq: u64,
    /// Time at which the datagram left.
    pub sent_at: Instant,
    /// Payload, bytes.
    pub len: u32,
}

/// The sending end.
#[derive(Clone, Debug)]
pub struct Sender {
    params: Params,
    queue: SendQueue,
    next: u64,
    bytes: u64,
}

/// The receiving end.
#[derive(Clone, Copy, Debug, Default)]
pub struct Receiver {
    /// One more than the highest sequence number that has arrived.
    expected: u64,
    datagrams: u64,
    bytes: u64,
    reordered: u64,
    marked: u64,
}

impl Params {
    /// Returns the size of a datagram on the wire.
    pub const fn wire_bytes(&self, datagram: &Datagram) -> Bytes {
        Bytes::new(datagram.len as u64 + self.header_bytes as u64)
    }
}

impl Sender {
    /// Creates a flow with nothing to send yet. `params` must be valid ([`Params::validate`]).
    pub fn new(params: &Params) -> Self {
        debug_assert_eq!(params.validate(), Ok(()), "validate parameters where they are read");
        let queue = SendQueue::new(params.max_datagram, usize::MAX);
        Self { params: *params, queue, next: 0, bytes: 0 }
    }

    /// Takes a message of `bytes` from the application: one datagram, or several if it is too long.
    pub fn write(&mut self, bytes: u64) {
        self.queue.write(bytes);
    }

    /// Returns the next datagram to leave. The caller must call this until it returns `None`.
    pub fn transmit(&mut self, now: Instant) -> Option<Datagram> {
        let len = self.queue.pop()?;
        let seq = self.next;
        self.next += 1;
        self.bytes += u64::from(len);
        Some(Datagram { seq, sent_at: now, len })
    }

    /// Returns the parameters.
    pub const fn params(&self) -> &Params {
        &self.params
    }

    /// Returns the number of sent datagrams.
    pub const fn datagrams(&self) -> u64 {
        self.next
    }

    /// Returns the number of sent payload bytes.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Receiver {
    /// Handles a datagram, which a router marked if `ce`.
    #[inline]
    pub fn on_datagram(&mut self, datagram: &Datagram, ce: bool) {
        self.datagrams += 1;
        self.bytes += u64::from(datagram.len);
        self.marked += u64::from(ce);
        self.reordered += u64::from(datagram.seq < self.expected);
        self.expected = self.expected.max(datagram.seq.saturating_add(1));
    }

    /// Returns the number of datagrams that arrived.
    pub const fn datagrams(&self) -> u64 {
        self.datagrams
    }

    /// Returns the number of payload bytes that arrived.
    pub const fn delivered(&self) -> u64 {
        self.bytes
    }

    /// Returns the number of datagrams that arrived after one that was sent later, or twice.
    pub const fn reordered(&self) -> u64 {
        self.reordered
    }

    /// Returns the number of datagrams that a router marked.
    pub const fn marked(&self) -> u64 {
        self.marked
    }

    /// Returns the number of datagrams that are missing below the highest that arrived.
    pub const fn lost(&self) -> u64 {
        self.expected.saturating_sub(self.datagrams)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_leave_in_the_order_of_writing_and_long_messages_are_split() {
        let mut sender = Sender::new(&Params { max_datagram: 1000, ..Params::default() });
        sender.write(160);
        sender.write(2500);
        let lengths: Vec<u32> =
            std::iter::from_fn(|| sender.transmit(Instant::ZERO)).map(|datagram| datagram.len).collect();
        assert_eq!(lengths, [160, 1000, 1000, 500]);
        assert_eq!((sender.datagrams(), sender.bytes()), (4, 2660));
    }

    #[test]
    fn the_receiver_counts_missing_and_reordered_datagrams() {
        let mut receiver = Receiver::default();
        for seq in [0, 1, 4, 3, 5] {
            receiver.on_datagram(&Datagram { seq, sent_at: Instant::ZERO, len: 100 }, seq == 4);
        }
        assert_eq!((receiver.datagrams(), receiver.delivered()), (5, 500));
        assert_eq!((receiver.lost(), receiver.reordered(), receiver.marked()), (1, 1, 1));
    }

    #[test]
    fn a_bad_size_is_named() {
        let error = Params { max_datagram: 0, ..Params::default() }.validate().unwrap_err();
        assert_eq!(error.to_string(), "max-datagram = 0: allowed is a whole number from 1 to 65507 B");
        let error = Params { header_bytes: 2000, ..Params::default() }.validate().unwrap_err();
        assert_eq!(error.parameter, "header");
    }
}
