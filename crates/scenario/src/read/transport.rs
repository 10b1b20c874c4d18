//! Transports: `transport = { protocol = "tcp" | "tfrc" | "udp", ... }`.

use crate::kind;
use crate::reader::TableReader;
use crate::spec::{CongestionControl, TcpSpec, TfrcSpec, TransportSpec, UdpSpec};
use cutline_units::{Bytes, Duration};

const EXPECTED: &str = "a table such as { protocol = \"tcp\" }";

#[derive(Clone, Copy)]
enum Protocol {
    Tcp,
    Tfrc,
    Udp,
}

pub(super) fn read(flow: &TableReader<'_>) -> Option<TransportSpec> {
    if !flow.has("transport") {
        flow.lacks("transport", EXPECTED);
    }
    let reader = flow.table("transport", EXPECTED)?;
    let words = [("tcp", Protocol::Tcp), ("tfrc", Protocol::Tfrc), ("udp", Protocol::Udp)];
    let Some(protocol) = reader.required("protocol", &kind::one_of("a protocol", &words)) else {
        // Which other keys are right depends on the protocol.
        reader.report_missing();
        return None;
    };
    let transport = match protocol {
        Protocol::Tcp => TransportSpec::Tcp(tcp(&reader)),
        Protocol::Tfrc => TransportSpec::Tfrc(tfrc(&reader)),
        Protocol::Udp => TransportSpec::Udp(UdpSpec { header: header(&reader, 28) }),
    };
    reader.finish();
    Some(transport)
}

fn tcp(reader: &TableReader<'_>) -> TcpSpec {
    let off = |key| reader.or(key, &kind::flag(), false);
    let controls = [("newreno", CongestionControl::NewReno), ("cubic", CongestionControl::Cubic)];
    let control = kind::one_of("a congestion control", &controls);
    let mss = reader.or("mss", &kind::packet_size(), Bytes::new(1000));
    TcpSpec {
        congestion_control: reader.or("congestion-control", &control, CongestionControl::NewReno),
        sack: off("sack"),
        delayed_ack: off("delayed-ack"),
        mss,
        header: header(reader, 40),
        initial_window: reader.or("initial-window", &kind::packets(), rfc_6928_window(mss)),
        max_window: reader.or("max-window", &kind::packets_or_none(), None),
        initial_ssthresh: reader.or("initial-ssthresh", &kind::packets_or_none(), None),
        min_rto: reader.or("min-rto", &kind::positive_duration(), Duration::from_secs(1)),
        limited_transmit: off("limited-transmit"),
        ack_size: reader.or("ack-size", &kind::packet_size(), Bytes::new(40)),
        send_buffer: reader.or("send-buffer", &kind::packets_or_none(), None),
    }
}

fn tfrc(reader: &TableReader<'_>) -> TfrcSpec {
    TfrcSpec {
        packet_size: reader.or("packet-size", &kind::packet_size(), Bytes::new(1000)),
        header: header(reader, 40),
        feedback_size: reader.or("feedback-size", &kind::packet_size(), Bytes::new(44)),
        send_buffer: reader.or("send-buffer", &kind::packets(), 2),
    }
}

fn header(reader: &TableReader<'_>, default: u64) -> Bytes {
    reader.or("header", &kind::header_size(), Bytes::new(default))
}

/// RFC 6928 section 2: `min(10 MSS, max(2 MSS, 14600 B))`, in whole segments.
fn rfc_6928_window(mss: Bytes) -> u64 {
    (14_600 / mss.get()).clamp(2, 10)
}
