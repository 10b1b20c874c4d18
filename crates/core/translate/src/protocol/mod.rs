//! The protocol translators: from the generic specification to settings of the end system (QUANTA sections 3 and 5).

mod datagrams;
mod direct;
mod reserved;
pub mod selection;
mod tcp;
mod udp;

use crate::baseline::Baseline;
use crate::decision::{Chosen, Decisions};
use crate::list::translators;
use crate::path::Path;
use crate::settings::{EndSystemSettings, PacedBy, PacingSettings};
use crate::stream::{Packets, Stream};
use cutline_quality::spec::Specification;
use cutline_units::Bytes;
use std::fmt::Write as _;

/// Description of a protocol, and its settings for a specification.
pub(crate) trait ProtocolTranslator: Sync {
    /// The name, as the command line writes it.
    fn name(&self) -> &'static str;

    /// Returns the title, in a few words.
    fn title(&self) -> &'static str;

    /// Returns the packets of the protocol on a path.
    fn packets(&self, path: &Path) -> Packets;

    /// Returns whether it has acknowledgements, repeats lost data and keeps the order.
    fn is_complete(&self) -> bool;

    /// Returns whether its packets have an IP header.
    fn has_ip(&self) -> bool {
        true
    }

    /// Returns whether it comes with a reservation.
    fn is_reserved(&self) -> bool {
        false
    }

    /// The same protocol with a reservation, if it is another one.
    fn with_reservation(&self) -> Option<Protocol> {
        None
    }

    /// The room that its pace leaves above the application's own rate, as a factor.
    fn pace_margin(&self) -> f64;

    /// The settings, each noted with its reason.
    fn settings(&self, ends: &Ends<'_>, log: &mut Decisions) -> EndSystemSettings;
}

/// The two directions of a connection as one end sees them.
#[derive(Clone, Copy)]
pub(crate) struct Ends<'a> {
    /// Traffic that this end sends.
    pub(crate) send: Stream<'a>,
    /// Traffic that this end receives.
    pub(crate) receive: Stream<'a>,
    /// True if the rate is reserved.
    pub(crate) reserved: bool,
    /// Measurements of this host and the path.
    pub(crate) measured: Option<&'a Baseline>,
}

impl<'a> Ends<'a> {
    /// The directions in the packets of a protocol.
    pub(crate) fn new(
        protocol: Protocol,
        send: &'a Specification,
        receive: &'a Specification,
        path: &'a Path,
        measured: Option<&'a Baseline>,
    ) -> Self {
        let packets = protocol.translator().packets(path);
        let stream = |spec| Stream { spec, path, packets };
        Self { send: stream(send), receive: stream(receive), reserved: protocol.is_reserved(), measured }
    }
}

/// The sending pace.
fn pacing(ends: &Ends<'_>, by: PacedBy, margin: f64, how: &str) -> Chosen<PacingSettings> {
    let Stream { spec, path, .. } = ends.send;
    let path_payload = ends.send.path_payload();
    let Some(rate) = ends.send.pace(margin) else {
        return Chosen::leave("", "neither max-rate and size nor peak-rate and size say how much it will be");
    };
    let mut why = match (spec.peak_rate, ends.send.peak_throughput()) {
        (Some(_), Some(peak)) => format!("peak-rate times size is {peak}"),
        (_, peak) => format!("max-rate times size is {}", peak.unwrap_or_default()),
    };
    if path_payload == Some(rate) {
        let _ = write!(why, ", and the path carries {rate} of payload");
    } else if let Some(budget) =
        ends.send.budget().filter(|_| ends.send.pace(1.0) > ends.send.peak_throughput())
    {
        let _ = write!(
            why,
            "; faster, so that a message leaves within {}, {}",
            budget.share,
            budget.because(path)
        );
    }
    if ends.reserved {
        why += "; what exceeds the reservation is best effort";
    }
    let source = if ends.reserved { "RFC 2211 section 7" } else { "QUANTA section 5" };
    Chosen::set(PacingSettings { rate, by }, source, format!("{why}; {how}"))
}

/// A size for a buffer, within the kernel's limits.
fn buffer(bytes: u64) -> Bytes {
    Bytes::new(bytes.clamp(1, EndSystemSettings::LARGEST_BUFFER.get()))
}

impl Protocol {
    /// Returns whether it comes with a reservation.
    pub fn is_reserved(self) -> bool {
        self.translator().is_reserved()
    }

    /// The same protocol without a reservation.
    #[must_use]
    pub const fn unreserved(self) -> Self {
        match self {
            Self::RTcp => Self::Tcp,
            Self::RUdp => Self::Udp,
            Self::Tcp | Self::Udp | Self::Direct => self,
        }
    }

    /// The same protocol with a reservation.
    #[must_use]
    pub fn reserved(self) -> Self {
        self.translator().with_reservation().unwrap_or(self)
    }
}

translators! {
    /// A protocol of the end system.
    Protocol, "protocol", ProtocolTranslator;
    /// TCP.
    Tcp = &tcp::Tcp;
    /// UDP.
    Udp = &udp::Udp;
    /// TCP whose rate is reserved (QoSockets section II).
    RTcp = &reserved::Reserved { name: "r-tcp", title: "TCP whose rate is reserved", over: &tcp::Tcp };
    /// UDP whose rate is reserved (QoSockets section II).
    RUdp = &reserved::Reserved { name: "r-udp", title: "UDP whose rate is reserved", over: &udp::Udp };
    /// Frames of a link, without IP.
    Direct = &direct::Direct;
}
