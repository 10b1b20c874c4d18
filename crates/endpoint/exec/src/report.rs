//! Report of the delivered traffic, as a document and as lines of text.

use crate::ending::ProgramEnding;
use crate::{ExecOptions, MarkingChoice};
use cutline_marking::table::{Snapshot, SocketKind, SocketRecord, Total};
use cutline_records::record;
use cutline_text::Printable;
use cutline_units::{DscpPool2, Duration, HintCodec as _, Rate};
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt::Write as _;

/// A program that ran under `cutline exec`: the settings of its sockets, and its traffic.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ExecDocument {
    /// The program.
    pub program: String,
    /// The method that marks its sockets: `preload` or `cgroup`.
    pub by: &'static str,
    /// The reason for this method.
    pub because: String,
    /// The limits of this method.
    pub limits: &'static [&'static str],
    /// The code point of every packet, 0..63; null if it is the program's own.
    pub dscp: Option<u8>,
    /// The delay hint that the code point carries; null if it carries none.
    pub hint: Option<u16>,
    /// The priority in the host's own queues; null if it is the program's own.
    pub priority: Option<u8>,
    /// The highest rate of each socket, bit/s of payload; null if there is none.
    pub rate_bps: Option<u64>,
    /// The exit code of the program; null if a signal ended it.
    pub exit_code: Option<i32>,
    /// The signal that ended the program; null if none did.
    pub signal: Option<i32>,
    /// The duration of the run, seconds.
    pub elapsed_s: f64,
    /// The counters; null where nothing is counted.
    pub counted: Option<SocketTotals>,
    /// The sockets of IPv4 and IPv6 that have a record, in the order of their opening.
    pub sockets: Vec<SocketDocument>,
}

record! {
    /// Counters over all sockets of a program and its children.
    pub struct SocketTotals {
        processes: u64, counter("processes"), "Processes that loaded the library.";
        tcp_sockets: u64, counter("sockets"), "TCP sockets.";
        udp_sockets: u64, counter("sockets"), "UDP sockets.";
        other_sockets: u64, counter("sockets"), "Other sockets of IPv4 and IPv6.";
        without_record: u64, counter("sockets"), "Sockets beyond the table of records; they are in the totals.";
        marked: u64, counter("sockets"), "Sockets that got the code point.";
        refused: u64, counter("options"), "Options that the kernel refused.";
        replaced: u64, counter("marks"), "Options and control messages of the program that were replaced.";
        unreplaced: u64, counter("messages"), "Messages whose control messages were too long to replace a mark in.";
        tcp_sent_bytes: u64, counter("B"), "Payload that TCP sent, with retransmissions.";
        tcp_received_bytes: u64, counter("B"), "Payload that TCP received; the kernel counts the end of a stream as a byte.";
        tcp_segments: u64, counter("packets"), "Segments with payload that TCP sent.";
        tcp_retransmissions: u64, counter("packets"), "Segments that TCP retransmitted.";
        udp_messages: u64, counter("messages"), "Messages passed to the kernel.";
        udp_bytes: u64, counter("B"), "Payload of these messages.";
        udp_waits: u64, counter("messages"), "Messages that waited for their time.";
        udp_waited_s: f64, counter("s"), "Total time that these messages waited.";
        udp_early: u64, counter("messages"), "Messages that a non-blocking socket sent before their time.";
        udp_uncounted_sockets: u64, counter("sockets"), "UDP sockets to which libc may have written by itself (stdio, dprintf): these messages were neither paced nor counted.";
    }

    /// A socket.
    pub struct SocketDocument {
        transport: &'static str, label, "The transport: `tcp`, `udp` or `other`.";
        process: u32, label, "The process that opened it.";
        peer: Option<String>, label, "The peer's address; null if it is not known.";
        sent_bytes: u64, counter("B"), "Payload sent; of TCP with retransmissions.";
        received_bytes: u64, counter("B"), "Payload that TCP received; the kernel counts the end of a stream as a byte.";
        packets: u64, counter("packets"), "Messages of UDP; segments with payload of TCP.";
        retransmissions: u64, counter("packets"), "Segments that TCP retransmitted.";
        rtt_ms: Option<f64>, gauge("ms"), "Smoothed round-trip time of TCP; null if it is not known.";
        min_rtt_ms: Option<f64>, gauge("ms"), "Smallest round-trip time of TCP; null if it is not known.";
        is_complete: bool, part, "True if the counters are complete. Those of a TCP connection are read when it is closed or its process exits; those of a UDP socket miss the messages that libc writes by itself.";
    }
}

impl From<&Snapshot> for SocketTotals {
    fn from(read: &Snapshot) -> Self {
        let total = |total| read.total(total);
        Self {
            processes: total(Total::Processes),
            tcp_sockets: total(Total::TcpSockets),
            udp_sockets: total(Total::UdpSockets),
            other_sockets: total(Total::OtherSockets),
            without_record: read.without_record(),
            marked: total(Total::Marked),
            refused: total(Total::Refused),
            replaced: total(Total::Replaced),
            unreplaced: total(Total::Unreplaced),
            tcp_sent_bytes: total(Total::TcpSent),
            tcp_received_bytes: total(Total::TcpReceived),
            tcp_segments: total(Total::TcpSegments),
            tcp_retransmissions: total(Total::TcpRetransmissions),
            udp_messages: total(Total::UdpMessages),
            udp_bytes: total(Total::UdpBytes),
            udp_waits: total(Total::Waits),
            udp_waited_s: Duration::from_nanos(total(Total::WaitedNanos)).as_secs_f64(),
            udp_early: total(Total::Early),
            udp_uncounted_sockets: total(Total::Uncounted),
        }
    }
}

impl From<SocketRecord> for SocketDocument {
    fn from(socket: SocketRecord) -> Self {
        let transport = match socket.kind {
            SocketKind::Tcp => "tcp",
            SocketKind::Udp => "udp",
            SocketKind::Other => "other",
        };
        Self {
            transport,
            process: socket.process,
            peer: socket.peer.map(|peer| peer.to_string()),
            sent_bytes: socket.sent,
            received_bytes: socket.received,
            packets: socket.messages,
            retransmissions: socket.retransmissions,
            rtt_ms: socket.rtt.map(Duration::as_millis_f64),
            min_rtt_ms: socket.min_rtt.map(Duration::as_millis_f64),
            is_complete: if socket.kind == SocketKind::Tcp {
                socket.is_sampled
            } else {
                !socket.is_uncounted
            },
        }
    }
}

impl ExecDocument {
    pub(crate) fn new(
        program: String,
        choice: &MarkingChoice,
        options: &ExecOptions,
        ending: ProgramEnding,
        elapsed: Duration,
        table: Option<&Snapshot>,
    ) -> Self {
        let settings = &options.settings;
        let (exit_code, signal) = match ending {
            ProgramEnding::Code(code) => (Some(code), None),
            ProgramEnding::Signal(signal) => (None, Some(signal)),
        };
        Self {
            program,
            by: choice.method.name(),
            because: choice.because.clone(),
            limits: choice.method.limits(),
            dscp: settings.dscp.map(cutline_units::Dscp::get),
            hint: settings.dscp.and_then(|dscp| DscpPool2.decode(dscp)).map(cutline_units::Hint::level),
            priority: settings.priority,
            rate_bps: settings.rate.map(Rate::as_bps),
            exit_code,
            signal,
            elapsed_s: elapsed.as_secs_f64(),
            counted: table.map(SocketTotals::from),
            sockets: table
                .map(|table| table.sockets().map(SocketDocument::from).collect())
                .unwrap_or_default(),
        }
    }

    /// Returns the report as lines for a person.
    pub fn lines(&self) -> String {
        let mut text = String::new();
        let ending = match (self.exit_code, self.signal) {
            (Some(code), _) => format!("exit code {code}"),
            (_, signal) => format!("ended by signal {}", signal.unwrap_or_default()),
        };
        let _infallible =
            write!(text, "{}: {ending} after {:.1} s", Printable(&self.program), self.elapsed_s);
        if let Some(counted) = &self.counted {
            counted.write(&mut text, self.elapsed_s);
        }
        let rtts: Vec<f64> = self.sockets.iter().filter_map(|socket| socket.min_rtt_ms).collect();
        if let Some(smallest) = rtts.iter().copied().min_by(f64::total_cmp) {
            let smoothed = self.sockets.iter().filter_map(|socket| socket.rtt_ms).fold(0.0, f64::max);
            let _infallible = write!(
                text,
                "\n  RTT    at least {smallest:.1} ms; the largest smoothed one of a connection {smoothed:.1} ms"
            );
        }
        let is_unread = |socket: &&SocketDocument| socket.transport == "tcp" && !socket.is_complete;
        let incomplete = self.sockets.iter().filter(is_unread).count();
        if incomplete > 0 {
            let _infallible = write!(
                text,
                "\n  TCP    the counters of {incomplete} sockets are missing: they were not closed"
            );
        }
        text
    }
}

impl SocketTotals {
    fn write(&self, text: &mut String, elapsed_s: f64) {
        let sockets = self.tcp_sockets + self.udp_sockets + self.other_sockets;
        let rate = |bytes: u64| kbps(bytes, elapsed_s);
        let mut line = |words: String| {
            text.push_str("\n  ");
            text.push_str(&words);
        };
        if self.processes == 0 {
            return line(
                "no process has loaded the library: nothing was marked, paced or counted".to_owned(),
            );
        }
        line(format!(
            "marks  {} of {sockets} sockets; {} of the program replaced",
            self.marked, self.replaced
        ));
        if self.refused + self.unreplaced > 0 {
            let (refused, unreplaced) = (self.refused, self.unreplaced);
            line(format!(
                "       {refused} options refused; {unreplaced} messages with marks of the program"
            ));
        }
        if self.tcp_sockets > 0 {
            line(format!(
                "TCP    {} sockets; sent {} KB ({}), received {} KB ({}); {} of {} segments retransmitted",
                self.tcp_sockets,
                self.tcp_sent_bytes / 1000,
                rate(self.tcp_sent_bytes),
                self.tcp_received_bytes / 1000,
                rate(self.tcp_received_bytes),
                self.tcp_retransmissions,
                self.tcp_segments,
            ));
        }
        if self.udp_sockets > 0 {
            line(format!(
                "UDP    {} sockets; sent {} messages, {} KB ({}); {} waited for the rate, {} could not wait",
                self.udp_sockets,
                self.udp_messages,
                self.udp_bytes / 1000,
                rate(self.udp_bytes),
                self.udp_waits,
                self.udp_early,
            ));
        }
        if self.udp_uncounted_sockets > 0 {
            line(format!(
                "       incomplete: libc wrote to {} UDP sockets by itself (stdio, dprintf, aio_write); these messages are marked, but neither counted \
                 nor paced; a queue `fq` paces them with --by cgroup",
                self.udp_uncounted_sockets
            ));
        }
    }
}

/// A mean rate in words.
fn kbps(bytes: u64, elapsed_s: f64) -> String {
    if elapsed_s > 0.0 { format!("{:.0} kbit/s", bytes as f64 * 8e-3 / elapsed_s) } else { "-".to_owned() }
}
