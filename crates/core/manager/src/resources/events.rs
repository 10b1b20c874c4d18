//! Events of flows.

use super::request::{ClientKey, FlowId};
use cutline_units::Rate;
use serde::{Deserialize, Serialize};

/// Reason why the rate of a flow has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AllocationCause {
    /// Other flows of the host have come, gone or changed.
    Share,
    /// The capacities of the host have changed.
    Capacity,
    /// The path would be, or is no longer, overloaded ([`crate::feedback`]).
    Path,
    /// Nothing was reported for longer than the lease.
    Lease,
    /// The client requested another rate.
    Request,
}

/// Change of a flow's rate. Decreases come before increases, so at any time the rates of all events
/// together are within the capacities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AllocationEvent {
    /// A new flow may send.
    Granted {
        /// The flow.
        flow: FlowId,
        /// Its rate.
        rate: Rate,
    },
    /// A flow may send less from now on.
    Lowered {
        /// The flow.
        flow: FlowId,
        /// The rate before.
        from: Rate,
        /// The rate from now on, at least its minimum.
        to: Rate,
        /// Reason.
        cause: AllocationCause,
    },
    /// A flow may send more from now on.
    Raised {
        /// The flow.
        flow: FlowId,
        /// The rate before.
        from: Rate,
        /// The rate from now on, at most the desired rate.
        to: Rate,
        /// Reason.
        cause: AllocationCause,
    },
    /// A flow has ended: it may no longer send.
    Revoked {
        /// The flow.
        flow: FlowId,
        /// The client that held it.
        client: ClientKey,
        /// Reason.
        cause: AllocationCause,
    },
}

impl AllocationEvent {
    /// The flow.
    pub const fn flow(&self) -> FlowId {
        match self {
            Self::Granted { flow, .. }
            | Self::Lowered { flow, .. }
            | Self::Raised { flow, .. }
            | Self::Revoked { flow, .. } => *flow,
        }
    }

    /// The rate from now on; zero if the flow has ended.
    pub const fn rate(&self) -> Rate {
        match self {
            Self::Granted { rate, .. } => *rate,
            Self::Lowered { to, .. } | Self::Raised { to, .. } => *to,
            Self::Revoked { .. } => Rate::ZERO,
        }
    }
}
