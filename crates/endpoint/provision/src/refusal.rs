//! Refusals, and their reasons.

use cutline_text::Printable;
use cutline_units::Rate;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::IpAddr;

/// Reason for a refusal or a loss.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum RefusalReason {
    /// The bandwidth is not there.
    Bandwidth,
    /// The buckets of all reservations together would be too deep.
    Burst,
    /// The packets are larger than the MTU.
    PacketSize,
    /// No route, or no sender.
    NoPath,
    /// Another reservation for the same packets has another style, or other ports.
    Conflict,
    /// The resources were given to another reservation.
    Preempted,
    /// The reservation was not refreshed, or the node that had it has gone.
    Ended,
    /// No answer in time.
    Unanswered,
    /// This host's `cutlined` cannot be reached.
    NoAgent(String),
    /// A value is not allowed.
    Invalid(String),
    /// Another reason, which the text gives.
    Other(String),
}

impl fmt::Display for RefusalReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bandwidth => f.write_str("the bandwidth is not available"),
            Self::Burst => f.write_str("the buckets of all reservations would be too deep"),
            Self::PacketSize => f.write_str("the packets are larger than the link's MTU"),
            Self::NoPath => f.write_str("there is no path"),
            Self::Conflict => f.write_str("another reservation for these packets has another style or ports"),
            Self::Preempted => f.write_str("it was given to another one"),
            Self::Ended => f.write_str("the network no longer has it"),
            Self::Unanswered => f.write_str("there was no answer in time"),
            Self::NoAgent(why) => write!(f, "cutlined cannot be reached: {}", Printable(why)),
            Self::Invalid(what) | Self::Other(what) => write!(f, "{}", Printable(what)),
        }
    }
}

/// A refusal: its reason, its place, and the available rate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[error("{reason}{}{}", at(node.as_ref()), would(*available_bps))]
pub struct Refusal {
    /// The reason.
    pub reason: RefusalReason,
    /// The node that has refused; `null` if that is not known.
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub node: Option<IpAddr>,
    /// The rate that would be granted, bits per second; `null` if that is not known.
    pub available_bps: Option<u64>,
}

fn at(node: Option<&IpAddr>) -> String {
    node.map(|node| format!(" at {node}")).unwrap_or_default()
}

fn would(available_bps: Option<u64>) -> String {
    available_bps.map(|bps| format!("; {} would be granted", Rate::from_bps(bps))).unwrap_or_default()
}

impl Refusal {
    /// A refusal of which nothing but the reason is known.
    pub const fn new(reason: RefusalReason) -> Self {
        Self { reason, node: None, available_bps: None }
    }

    /// The rate that would be granted, if that is known.
    pub fn available(&self) -> Option<Rate> {
        self.available_bps.map(Rate::from_bps)
    }
}
