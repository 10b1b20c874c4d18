//! Transports: `transport = { protocol = "tcp" | "tfrc" | "udp", ... }`.

use crate::spec::{Bound, CongestionControl, Defaults, TcpSpec, TfrcSpec, TransportSpec, UdpSpec};
use cutline_config::{Kind, TableReader, kind};
use cutline_transport::ParamError;
use cutline_units::{Bytes, Duration};

const EXPECTED: &str = "a table such as { protocol = \"tcp\" }";

/// The papers' packet.
const DEFAULT_PAYLOAD: Bytes = Bytes::new(1000);

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
        Protocol::Udp => TransportSpec::Udp(UdpSpec { header: header(&reader) }),
    };
    if let Err(error) = transport.validate() {
        refuse(&reader, &error);
    }
    reader.finish();
    Some(transport)
}

/// Reports what each key allows by itself, but not together with the others.
fn refuse(reader: &TableReader<'_>, error: &ParamError) {
    let ParamError { field, value, allowed } = error;
    let key = field.replace('_', "-");
    if reader.has(&key) {
        reader.refuse(&key, &format!("expected {}", allowed.replace('_', "-")));
    } else {
        reader.refuse(
            &key,
            &format!("the default, {value}, is not allowed: expected {}", allowed.replace('_', "-")),
        );
    }
}

fn tcp(reader: &TableReader<'_>) -> TcpSpec {
    let flag = |key| reader.optional(key, &kind::flag());
    let bound = |key| reader.optional(key, &packets_or_none());
    let time = |key| reader.optional(key, &kind::positive_duration());
    let controls = [
        ("newreno", CongestionControl::NewReno),
        ("cubic", CongestionControl::Cubic),
        ("bbr", CongestionControl::Bbr),
    ];
    let control = kind::one_of("a congestion control", &controls);
    TcpSpec {
        defaults: defaults(reader),
        congestion_control: reader.or("congestion-control", &control, CongestionControl::NewReno),
        mss: reader.or("mss", &kind::packet_size(), DEFAULT_PAYLOAD),
        header: header(reader),
        ack_size: reader.optional("ack-size", &control_size()),
        sack: flag("sack"),
        delayed_ack: delayed_ack(reader),
        limited_transmit: flag("limited-transmit"),
        initial_window: reader.optional("initial-window", &kind::packets()),
        max_window: bound("max-window"),
        initial_ssthresh: bound("initial-ssthresh"),
        nagle: flag("nagle"),
        idle_restart: flag("idle-restart"),
        initial_rto: time("initial-rto"),
        min_rto: time("min-rto"),
        max_rto: time("max-rto"),
        clock_granularity: time("clock-granularity"),
        send_buffer: bound("send-buffer"),
    }
}

/// `false`, `true` for the usual 200 ms, or a time of at most 500 ms (RFC 1122 section 4.2.3.2).
fn delayed_ack(reader: &TableReader<'_>) -> Option<Duration> {
    let flag = kind::flag().map(|on| if on { Duration::from_millis(200) } else { Duration::ZERO });
    let most = Duration::from_millis(500);
    let time = kind::duration().only("at most 500 ms", move |time| *time <= most);
    reader.optional("delayed-ack", &flag.or(time))
}

fn tfrc(reader: &TableReader<'_>) -> TfrcSpec {
    TfrcSpec {
        defaults: defaults(reader),
        packet_size: reader.or("packet-size", &kind::packet_size(), DEFAULT_PAYLOAD),
        header: header(reader),
        feedback_size: reader.optional("feedback-size", &control_size()),
        rto_tick: reader.optional("rto-tick", &kind::duration()),
        send_buffer: reader.optional("send-buffer", &kind::packets()),
    }
}

fn defaults(reader: &TableReader<'_>) -> Defaults {
    let words = [("rfc", Defaults::Rfc), ("ns-2", Defaults::Ns2)];
    reader.or("defaults", &kind::one_of("a set of defaults", &words), Defaults::Rfc)
}

/// A header's size: at most 1000 B, so that a packet has room for payload.
fn header(reader: &TableReader<'_>) -> Option<Bytes> {
    let fits = |size: &Bytes| size.get() <= 1000;
    reader.optional("header", &kind::size().only("at most 1000 B", fits))
}

/// The size of a packet that carries no payload, 1..=1500 bytes.
fn control_size() -> Kind<Bytes> {
    kind::size().only("from 1 B to 1500 B", |size| (1..=1500).contains(&size.get()))
}

/// A number of packets, or `"none"` for no bound.
fn packets_or_none() -> Kind<Bound> {
    kind::packets().map(Bound::Packets).or(kind::word("none", Bound::None))
}
