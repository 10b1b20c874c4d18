//! Frames of a link, without IP: the protocol that QUANTA measured as "direct", over ATM's AAL5; here over Ethernet.
//!
//! Nothing is repeated or put in order, and no router carries them. QUANTA section 4.1.3: such an application must balance block
//! size and bandwidth itself.

use super::datagrams::{receive_buffer, send_buffer};
use super::{Ends, Protocol, ProtocolTranslator, pacing};
use crate::baseline;
use crate::decision::{Chosen, Decisions};
use crate::path::Path;
use crate::settings::{EndSystemSettings, PacedBy};
use crate::stream::{Packets, Stream};
use cutline_units::Bytes;

/// The header of an Ethernet frame, and that of a part of a message behind it, B.
const HEADERS: u64 = 14 + OWN_HEADER;
const OWN_HEADER: u64 = 20;
/// Room for the checksum of a message, B.
const CHECKSUM: u64 = 4;

pub(super) struct Direct;

impl ProtocolTranslator for Direct {
    fn name(&self) -> &'static str {
        "direct"
    }

    fn title(&self) -> &'static str {
        "frames of the link, without IP"
    }

    fn packets(&self, path: &Path) -> Packets {
        Packets { headers: HEADERS, payload: path.packet() - OWN_HEADER - CHECKSUM }
    }

    fn is_complete(&self) -> bool {
        false
    }

    fn has_ip(&self) -> bool {
        false
    }

    fn pace_margin(&self) -> f64 {
        1.0
    }

    fn settings(&self, ends: &Ends<'_>, log: &mut Decisions) -> EndSystemSettings {
        let how = "by the sender itself: a packet socket has no pacing";
        let buffer = baseline::receive_buffer(ends, Protocol::Direct, receive_buffer(&ends.receive));
        EndSystemSettings {
            send_buffer: log.end_system("send-buffer", send_buffer(&ends.send)),
            receive_buffer: log.end_system("receive-buffer", buffer),
            block: log.end_system("block", block(&ends.send)).unwrap_or_default(),
            pacing: log.end_system("pacing", pacing(ends, PacedBy::Sender, self.pace_margin(), how)),
            ..EndSystemSettings::default()
        }
    }
}

fn block(send: &Stream<'_>) -> Chosen<Bytes> {
    let why = match send.spec.size {
        Some(size) if size.get() <= send.packets.payload => "a message, which fits a frame".to_owned(),
        _ => format!(
            "the longest payload of a frame ({} B): a longer block is lost with any of its frames",
            send.packets.payload
        ),
    };
    Chosen::set(Bytes::new(send.longest_payload()), "QUANTA section 4.1.3", why)
}
