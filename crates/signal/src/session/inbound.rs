//! What an end receives: what each datagram is for, counters, delays, jitter.

use super::{CHECKED, Standing};
use crate::clock::ClockOffset;
use crate::frame::{self, DATAGRAM_HEADER, Frame};
use crate::monitor::{Arrival, Arrivals, MonitorParams};
use cutline_units::Instant;

/// What a datagram is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A new message for the application, which begins here in the datagram.
    Message(usize),
    /// A control message, for [`Session::on_control`](super::Session::on_control).
    Control(Control),
    /// Nothing: a duplicate, or something that is not of this session.
    Nothing,
}

/// A kind of control message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// Of a negotiation.
    Negotiation,
    /// A report.
    Report,
}

/// What an end receives.
#[derive(Clone, Debug)]
pub struct Inbound {
    pub(super) arrivals: Arrivals,
    /// The other end's clock minus ours; `None` while it is unknown.
    pub(super) offset: Option<ClockOffset>,
}

impl Inbound {
    pub(super) fn new(now: Instant, monitor: &MonitorParams) -> Self {
        Self { arrivals: Arrivals::new(now, monitor).expect(CHECKED), offset: None }
    }

    /// A datagram has arrived. Returns what it is for; a message is measured.
    #[inline]
    pub fn on_datagram(&mut self, arrived: Instant, bytes: &[u8], standing: Standing) -> Purpose {
        match frame::datagram(bytes, standing.token()) {
            Frame::Data { number, sent } => {
                let length = bytes.len() - DATAGRAM_HEADER;
                match self.on_message(arrived, number, sent, length as u64) {
                    Arrival::InOrder { .. } | Arrival::Late => Purpose::Message(DATAGRAM_HEADER),
                    Arrival::Duplicate | Arrival::Impossible => Purpose::Nothing,
                }
            }
            Frame::Plain => {
                self.on_plain(arrived, bytes.len() as u64);
                Purpose::Message(0)
            }
            Frame::Negotiation => Purpose::Control(Control::Negotiation),
            Frame::Report => Purpose::Control(Control::Report),
            Frame::Foreign => Purpose::Nothing,
        }
    }

    /// A message has arrived that was sent at a time of the sender's clock.
    #[inline]
    pub fn on_message(&mut self, arrived: Instant, number: u64, sent: Instant, bytes: u64) -> Arrival {
        self.arrivals.on_message(arrived, number, sent, bytes, self.offset)
    }

    /// A message of an end that takes no part has arrived.
    #[inline]
    pub fn on_plain(&mut self, arrived: Instant, bytes: u64) {
        self.arrivals.on_plain(arrived, bytes);
    }
}
