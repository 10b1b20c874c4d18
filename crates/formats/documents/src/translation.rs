//! Translations of an application's needs as documents.

use crate::specification::DirectionDocument;
use cutline_flow::TrafficSpec;
use cutline_quality::spec::CapacityProfile;
use cutline_translate::{Decision, EndSystemSettings, NetworkSettings, PacedBy, Translation, Unmet};
use cutline_units::{Bytes, Dscp, Hint};
use schemars::JsonSchema;
use serde::Serialize;

/// Consequences of an application's needs for its host and the network.
#[derive(Serialize, JsonSchema)]
pub struct TranslationDocument {
    /// The class or the file.
    name: String,
    /// The sending direction.
    send: DirectionDocument,
    /// The receiving direction.
    receive: DirectionDocument,
    /// The capacity profile that the file sets (RFC 9622 section 8.1.6); null if it sets none.
    capacity_profile: Option<&'static str>,
    /// The protocol.
    protocol: &'static str,
    /// The service of the network.
    service: &'static str,
    /// Settings of the host. Those that are null are left as the kernel has them.
    end_system: EndSystemDocument,
    /// Marks in packets and requests to the network. Those that are null are left as they are.
    network: NetworkDocument,
    /// Every setting with its reason, from the application to the network.
    decisions: Vec<DecisionDocument>,
    /// Demands that cannot be met.
    unmet: Vec<UnmetDocument>,
}

/// Settings of a host for one connection. Those that are null are left as the kernel has them.
#[derive(Serialize, JsonSchema)]
struct EndSystemDocument {
    /// `SO_SNDBUF` before the kernel doubles it, bytes.
    send_buffer_bytes: Option<u64>,
    /// `SO_RCVBUF` before the kernel doubles it, bytes.
    receive_buffer_bytes: Option<u64>,
    /// Number of bytes that the application passes to one write.
    block_bytes: u64,
    /// `TCP_NODELAY`.
    no_delay: Option<bool>,
    /// `TCP_NOTSENT_LOWAT`, bytes.
    not_sent_lowat_bytes: Option<u64>,
    /// `TCP_MAXSEG`, bytes.
    mss_bytes: Option<u64>,
    /// `TCP_CONGESTION`.
    congestion_control: Option<&'static str>,
    /// Largest rate of the payload, bit/s.
    pacing_bps: Option<u64>,
    /// Keeper of that rate: `kernel` (`SO_MAX_PACING_RATE`) or `sender`.
    paced_by: Option<&'static str>,
    /// `UDP_SEGMENT`, bytes.
    gso_segment_bytes: Option<u64>,
}

/// Marks in the packets of a connection, and requests to the network. Those that are null are left as they are.
#[derive(Serialize, JsonSchema)]
struct NetworkDocument {
    /// The delay hint, from 1 (as little delay as possible) to 16 (throughput only).
    hint: Option<u16>,
    /// The code point, 0 to 63.
    dscp: Option<u8>,
    /// The name of the code point.
    dscp_name: Option<String>,
    /// Reservation for the packets that are sent.
    reserve_send: Option<TrafficSpec>,
    /// Reservation for the packets that are received.
    reserve_receive: Option<TrafficSpec>,
}

/// A setting, and the reason for it.
#[derive(Serialize, JsonSchema)]
struct DecisionDocument {
    /// Layer of the setting: `application`, `selection`, `end system` or `network`.
    layer: &'static str,
    /// The setting.
    setting: &'static str,
    /// The value as text; null if the setting is left as it is.
    value: Option<String>,
    /// Reason for the value.
    reason: String,
    /// Source of the rule; empty if it is our own.
    source: &'static str,
}

/// A demand that cannot be met.
#[derive(Serialize, JsonSchema)]
struct UnmetDocument {
    /// `send` or `receive`.
    direction: &'static str,
    /// The parameter of the specification.
    parameter: &'static str,
    /// Reason why the demand cannot be met.
    reason: String,
}

impl TranslationDocument {
    /// Creates the document of a translation. `name` is a class or a file.
    pub fn new(name: &str, translation: &Translation) -> Self {
        let Translation { specification, protocol, service, end_system, network, decisions, unmet } =
            translation;
        Self {
            name: name.to_owned(),
            send: DirectionDocument::new(&specification.send),
            receive: DirectionDocument::new(&specification.receive),
            capacity_profile: specification.profile.map(CapacityProfile::name),
            protocol: protocol.name(),
            service: service.name(),
            end_system: EndSystemDocument::new(end_system),
            network: NetworkDocument::new(network),
            decisions: decisions.iter().map(DecisionDocument::new).collect(),
            unmet: unmet.iter().map(UnmetDocument::new).collect(),
        }
    }
}

impl EndSystemDocument {
    fn new(settings: &EndSystemSettings) -> Self {
        let bytes = |size: Option<Bytes>| size.map(Bytes::get);
        Self {
            send_buffer_bytes: bytes(settings.send_buffer),
            receive_buffer_bytes: bytes(settings.receive_buffer),
            block_bytes: settings.block.get(),
            no_delay: settings.no_delay,
            not_sent_lowat_bytes: bytes(settings.not_sent_lowat),
            mss_bytes: bytes(settings.mss),
            congestion_control: settings.congestion_control,
            pacing_bps: settings.pacing.map(|pacing| pacing.rate.as_bps()),
            paced_by: settings.pacing.map(|pacing| match pacing.by {
                PacedBy::Kernel => "kernel",
                PacedBy::Sender => "sender",
            }),
            gso_segment_bytes: bytes(settings.gso_segment),
        }
    }
}

impl NetworkDocument {
    fn new(network: &NetworkSettings) -> Self {
        let reservation = network.reservation.unwrap_or_default();
        Self {
            hint: network.hint.map(Hint::level),
            dscp: network.dscp.map(Dscp::get),
            dscp_name: network.dscp.map(|dscp| dscp.to_string()),
            reserve_send: reservation.send,
            reserve_receive: reservation.receive,
        }
    }
}

impl DecisionDocument {
    fn new(decision: &Decision) -> Self {
        let Decision { layer, setting, value, reason, source } = decision;
        Self { layer: layer.name(), setting, value: value.clone(), reason: reason.clone(), source }
    }
}

impl UnmetDocument {
    fn new(unmet: &Unmet) -> Self {
        let Unmet { direction, parameter, reason } = unmet;
        Self { direction, parameter: parameter.name(), reason: reason.clone() }
    }
}
