//! The capture file: pcapng (draft-ietf-opsawg-pcapng), raw IPv4, times in nanoseconds since the run's beginning.
//!
//! Every watched link has three interfaces: `LINK arrivals` (packets that arrive at the queue, with its verdict),
//! `LINK departures` (packets whose transmission starts, with their sojourn time) and `LINK shed` (packets that the queue
//! had stored and then dropped). Each packet has a comment of the form `key=value`, separated by spaces:
//!
//! | key | at | value |
//! | --- | --- | --- |
//! | `packet` | all | the packet's number at this link, by arrival; also IPv4's identification, modulo 2^16 |
//! | `flow` | all | the flow's name |
//! | `hint` | all | the delay hint's level |
//! | `sojourn_ms` | departures, shed | time in the queue |
//! | `verdict` | all | `passed`, `marked` by this queue, `dropped` |
//! | `reason` | where dropped | `early` by the AQM, `overflow` at the limit |
//! | `size` | where it differs | bytes on the wire as simulated, where IPv4's length is another |
//!
//! Complete blocks are written to the file, some tens of kilobytes at a time. So the file is valid after an interruption.

use crate::CaptureError;
use crate::frame::{CapturePoint, Frame};
use cutline_aqm::Verdict;
use cutline_sim::{LinkId, Network, Observation, QueueEvent};
use cutline_transport::endpoint::TransportParams;
use cutline_units::Duration;
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::blocks::section_header::{SectionHeaderBlock, SectionHeaderOption};
use pcap_file::pcapng::blocks::{Block, PcapNgBlock};
use pcap_file::{DataLink, Endianness, PcapError};
use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, Write};

/// Number of bytes that are collected before they are written to the file.
const CHUNK_BYTES: usize = 1 << 16;
/// Timestamps count units of 10^-9 s.
const NANOSECONDS: u8 = 9;
/// No packet's headers are longer: IPv4, TCP with options.
const SNAP_BYTES: u32 = 128;
const CAPTURE_POINTS: [(CapturePoint, &str, &str); 3] = [
    (CapturePoint::Arrival, "arrivals", "packets that come to the queue, and its verdict"),
    (CapturePoint::Departure, "departures", "packets whose sending begins, and their sojourn time"),
    (CapturePoint::Shed, "shed", "packets that the queue had stored and has thrown away since"),
];

/// Writes observations to a pcapng file.
pub(crate) struct Writer<W: Write> {
    out: W,
    blocks: PcapNgWriter<Vec<u8>>,
    /// The watched links, in the order of their interfaces.
    links: Vec<LinkId>,
    flows: Vec<FlowLabel>,
    /// Of messages between agents.
    messages: FlowLabel,
    frame: Frame,
    comment: String,
}

/// The properties of a flow that the capture needs.
struct FlowLabel {
    name: String,
    /// The TCP receiver's window, where it has one.
    window: Option<u64>,
}

impl<W: Write> Writer<W> {
    /// Begins a file: `about` describes the run, `application` names the program.
    pub(crate) fn new(
        out: W,
        network: &Network,
        links: &[LinkId],
        about: &str,
        application: &str,
    ) -> Result<Self, CaptureError> {
        let section = SectionHeaderBlock {
            // The same bytes on every machine.
            endianness: Endianness::Little,
            options: vec![
                SectionHeaderOption::Comment(Cow::Owned(about.to_owned())),
                SectionHeaderOption::UserApplication(Cow::Owned(application.to_owned())),
            ],
            ..SectionHeaderBlock::default()
        };
        let blocks = PcapNgWriter::with_section_header(Vec::new(), section).map_err(io_error)?;
        let flows = network.flows().iter().map(FlowLabel::new).collect();
        let (frame, comment) = (Frame::default(), String::new());
        let messages = FlowLabel { name: "message".to_owned(), window: None };
        let mut writer = Self { out, blocks, links: links.to_vec(), flows, messages, frame, comment };
        for &link in links {
            for (_, name, description) in CAPTURE_POINTS {
                writer.describe_interface(network, link, name, description)?;
            }
        }
        Ok(writer)
    }

    fn describe_interface(
        &mut self,
        network: &Network,
        link: LinkId,
        place: &str,
        description: &'static str,
    ) -> Result<(), CaptureError> {
        let options = vec![
            InterfaceDescriptionOption::IfName(Cow::Owned(format!("{} {place}", network.link_name(link)))),
            InterfaceDescriptionOption::IfDescription(Cow::Borrowed(description)),
            InterfaceDescriptionOption::IfSpeed(network.link(link).rate.as_bps()),
            InterfaceDescriptionOption::IfTsResol(NANOSECONDS),
        ];
        let block = InterfaceDescriptionBlock { linktype: DataLink::IPV4, snaplen: SNAP_BYTES, options };
        self.put(&block.into_block())
    }

    /// Writes one observation.
    pub(crate) fn record(&mut self, seen: &Observation) -> Result<(), CaptureError> {
        let place = capture_point(seen.event);
        let flow = seen.packet.flow.map_or(&self.messages, |flow| &self.flows[flow as usize]);
        self.frame
            .fill(&seen.packet, place, flow.window, seen.number)
            .map_err(|size| CaptureError::too_long(&flow.name, size))?;
        self.comment.clear();
        write_comment(&mut self.comment, seen, &flow.name, self.frame.length);
        let link = self.links.iter().position(|&link| link == seen.link);
        let link = link.expect("the links that are watched are those of the file");
        let block = EnhancedPacketBlock {
            interface_id: (link * CAPTURE_POINTS.len() + place as usize) as u32,
            timestamp: std::time::Duration::from_nanos(seen.at.as_nanos()),
            original_len: self.frame.length,
            data: Cow::Borrowed(&self.frame.bytes),
            options: vec![EnhancedPacketOption::Comment(Cow::Borrowed(&self.comment))],
        };
        self.blocks.write_block(&Block::EnhancedPacket(block)).map_err(io_error)?;
        self.flush_beyond(CHUNK_BYTES)
    }

    /// Writes the collected bytes.
    pub(crate) fn finish(mut self) -> Result<(), CaptureError> {
        self.flush_beyond(0)?;
        Ok(self.out.flush()?)
    }

    fn put(&mut self, block: &Block<'_>) -> Result<(), CaptureError> {
        self.blocks.write_block(block).map_err(io_error)?;
        Ok(())
    }

    fn flush_beyond(&mut self, bytes: usize) -> Result<(), CaptureError> {
        let gathered = self.blocks.get_mut();
        if gathered.len() > bytes {
            self.out.write_all(gathered)?;
            gathered.clear();
        }
        Ok(())
    }
}

impl FlowLabel {
    fn new(flow: &cutline_sim::FlowSpec) -> Self {
        let window = match &flow.transport {
            TransportParams::Tcp(params) => params.max_window.map(|segments| params.bytes_of(segments)),
            _ => None,
        };
        Self { name: flow.name.clone(), window }
    }
}

fn capture_point(event: QueueEvent) -> CapturePoint {
    match event {
        QueueEvent::Arrived(_) => CapturePoint::Arrival,
        QueueEvent::Departed { .. } => CapturePoint::Departure,
        QueueEvent::Shed { .. } => CapturePoint::Shed,
    }
}

fn write_comment(out: &mut String, seen: &Observation, flow: &str, length: u32) {
    let packet = &seen.packet;
    let written = write!(out, "packet={} flow={flow} hint={}", seen.number, packet.hint)
        .and_then(|()| write_event(out, seen.event))
        .and_then(|()| if packet.size == length { Ok(()) } else { write!(out, " size={}", packet.size) });
    written.expect("a String takes whatever is written");
}

fn write_event(out: &mut String, event: QueueEvent) -> std::fmt::Result {
    match event {
        QueueEvent::Arrived(Verdict::Pass) => write!(out, " verdict=passed"),
        QueueEvent::Arrived(Verdict::Mark) => write!(out, " verdict=marked"),
        QueueEvent::Arrived(Verdict::Drop(reason)) => {
            write!(out, " verdict=dropped reason={}", reason.name())
        }
        QueueEvent::Departed { waited, marked } => {
            write_sojourn(out, waited)?;
            write!(out, " verdict={}", if marked { "marked" } else { "passed" })
        }
        QueueEvent::Shed { waited, reason } => {
            write_sojourn(out, waited)?;
            write!(out, " verdict=dropped reason={}", reason.name())
        }
    }
}

/// To the nanosecond.
fn write_sojourn(out: &mut String, waited: Duration) -> std::fmt::Result {
    const PER_MS: u64 = 1_000_000;
    write!(out, " sojourn_ms={}.{:06}", waited.as_nanos() / PER_MS, waited.as_nanos() % PER_MS)
}

/// Writing into memory fails for no other reason than the format's own limits.
fn io_error(error: PcapError) -> CaptureError {
    match error {
        PcapError::IoError(error) => error.into(),
        other => io::Error::other(other).into(),
    }
}
