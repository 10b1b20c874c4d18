//! Requests of flows, and the manager's answers.

use super::capacity::{CarrierKind, CpuShare, InterfaceIndex, ResourceKind, check_cpu, check_rate};
use cutline_params::ParameterError;
use cutline_units::Rate;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The highest priority.
pub const HIGHEST_PRIORITY: u8 = 15;
/// The largest weight of a flow or a user.
pub const MOST_WEIGHT: u32 = 1000;

/// A user of the host, such as the user ID of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UserId(pub u32);

/// A client: the process, or the connection of a process to the daemon, that holds flows. They end with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ClientKey(pub u64);

/// A flow. Later ones have higher numbers, and no number is used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FlowId(pub u64);

impl fmt::Display for FlowId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Class of a flow (QUANTA section 5, resource allocation).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SchedulingClass {
    /// Data have deadlines: the rate that was admitted is kept when others come.
    RealTime,
    /// A throughput is requested: the minimum is kept, and the rest of the host is shared.
    TimeShared,
}

/// Request for a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowRequest {
    /// The user who owns the flow.
    pub user: UserId,
    /// The client that holds the flow.
    pub client: ClientKey,
    /// Class.
    pub class: SchedulingClass,
    /// Protocol that carries it.
    pub carrier: CarrierKind,
    /// Interface that the flow leaves by; `None` if it stays on the host.
    pub interface: Option<InterfaceIndex>,
    /// True if a reservation of RSVP holds its rate at the interface: it is in
    /// [`InterfaceCapacity::reserved`](super::InterfaceCapacity::reserved) already, and is not charged again.
    pub is_reserved: bool,
    /// The highest useful rate, 1 bit/s to [`MOST_RATE`](super::MOST_RATE).
    pub desired: Rate,
    /// The lowest acceptable rate, at most `desired`; of a real-time flow at least 1 bit/s.
    pub minimum: Rate,
    /// CPU time at the desired rate, in proportion at lower rates, at most [`MOST_CPU`](super::MOST_CPU).
    pub cpu: CpuShare,
    /// Importance, 0 to [`HIGHEST_PRIORITY`]; it counts up to the limit of the user's policy.
    pub priority: u8,
    /// Weight among the flows of the same user, 1 to [`MOST_WEIGHT`]. It takes nothing from other users.
    pub weight: u32,
}

/// Policy for a user.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UserPolicy {
    /// Weight among users, 1 to [`MOST_WEIGHT`].
    pub weight: u32,
    /// Share of the promisable part that this user may hold, 0 to 1; `None` is `user-share` of the manager's parameters.
    pub share: Option<f64>,
    /// The highest priority that the user's flows may have; higher ones count as this one.
    pub priority_limit: u8,
}

impl Default for UserPolicy {
    fn default() -> Self {
        Self { weight: 1, share: None, priority_limit: HIGHEST_PRIORITY }
    }
}

/// Party whose part of a resource is exhausted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShortageScope {
    /// The host.
    Host,
    /// The user: other users still get some of it.
    User,
}

/// An exhausted resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shortage {
    /// The resource.
    pub resource: ResourceKind,
    /// Party whose part is exhausted.
    pub scope: ShortageScope,
    /// Amount needed, in the resource's unit: for the minimum if the request was refused, else for the desired rate.
    pub needed: u64,
    /// Amount left for this flow, in the resource's unit.
    pub left: u64,
}

impl fmt::Display for Shortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { resource, scope, needed, left } = self;
        let whose = match scope {
            ShortageScope::Host => "",
            ShortageScope::User => "the user's share of ",
        };
        write!(f, "{whose}{resource} is exhausted: {needed} {} needed, {left} left", resource.unit())
    }
}

/// Answer to a request. Its flow may send from its [`Granted`](super::AllocationEvent::Granted) event on, which comes
/// after the events by which others make room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdmissionAnswer {
    /// Admitted with the desired rate.
    Admitted {
        /// The flow.
        flow: FlowId,
    },
    /// Admitted with less.
    Reduced {
        /// The flow.
        flow: FlowId,
        /// The rate, at least the minimum. That of a time-shared flow changes with the others.
        rate: Rate,
        /// Resource that limits it.
        shortage: Shortage,
    },
    /// Refused; a request for a change leaves the flow as it was.
    Refused(Shortage),
}

impl AdmissionAnswer {
    /// The flow; `None` if the request was refused.
    pub const fn flow(&self) -> Option<FlowId> {
        match self {
            Self::Admitted { flow } | Self::Reduced { flow, .. } => Some(*flow),
            Self::Refused(_) => None,
        }
    }
}

impl FlowRequest {
    /// Checks everything but the interface, which the manager knows.
    ///
    /// # Errors
    /// When a value is not allowed.
    pub fn validate(&self) -> Result<(), ParameterError> {
        check_rate("desired", self.desired)?;
        if self.desired == Rate::ZERO {
            return Err(ParameterError::new("desired", self.desired, "at least 1 bit/s"));
        }
        if self.minimum > self.desired {
            let most = format!("at most desired, which is {}", self.desired);
            return Err(ParameterError::new("minimum", self.minimum, most));
        }
        if self.minimum == Rate::ZERO && self.class == SchedulingClass::RealTime {
            return Err(ParameterError::new(
                "minimum",
                self.minimum,
                "at least 1 bit/s for a real-time flow",
            ));
        }
        check_cpu("cpu", self.cpu)?;
        if self.priority > HIGHEST_PRIORITY {
            return Err(ParameterError::new("priority", self.priority, format!("0 to {HIGHEST_PRIORITY}")));
        }
        check_weight(self.weight)
    }

    /// Returns the CPU time at a rate, in millionths of one CPU, rounded up.
    pub(super) const fn cpu_at(&self, bps: u64) -> u64 {
        let (cpu, desired) = (self.cpu.as_millionths(), self.desired.as_bps());
        match cpu.checked_mul(bps) {
            Some(product) => product.div_ceil(desired),
            None => (cpu as u128 * bps as u128).div_ceil(desired as u128) as u64,
        }
    }

    /// Returns the highest rate whose CPU time is at most this, bit/s.
    pub(super) const fn bps_with(&self, cpu: u64) -> u64 {
        let (all, desired) = (self.cpu.as_millionths() as u128, self.desired.as_bps() as u128);
        if all <= cpu as u128 { self.desired.as_bps() } else { (cpu as u128 * desired / all) as u64 }
    }
}

impl UserPolicy {
    /// Checks ranges.
    ///
    /// # Errors
    /// When a value is not allowed.
    pub fn validate(&self) -> Result<(), ParameterError> {
        check_weight(self.weight)?;
        if let Some(share) = self.share.filter(|share| !(0.0..=1.0).contains(share)) {
            return Err(ParameterError::new("share", share, "a number from 0 to 1"));
        }
        if self.priority_limit > HIGHEST_PRIORITY {
            let range = format!("0 to {HIGHEST_PRIORITY}");
            return Err(ParameterError::new("priority-limit", self.priority_limit, range));
        }
        Ok(())
    }
}

fn check_weight(weight: u32) -> Result<(), ParameterError> {
    if (1..=MOST_WEIGHT).contains(&weight) {
        return Ok(());
    }
    Err(ParameterError::new("weight", weight, format!("1 to {MOST_WEIGHT}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> FlowRequest {
        FlowRequest {
            user: UserId(1),
            client: ClientKey(1),
            class: SchedulingClass::RealTime,
            carrier: CarrierKind::Tcp,
            interface: None,
            is_reserved: false,
            desired: Rate::from_mbps(10),
            minimum: Rate::from_mbps(1),
            cpu: CpuShare::from_percent(3),
            priority: 3,
            weight: 1,
        }
    }

    #[test]
    fn an_error_names_field_value_and_range() {
        let good = request();
        let error = |request: FlowRequest| request.validate().unwrap_err().to_string();
        assert_eq!(good.validate(), Ok(()));
        let zero = FlowRequest { desired: Rate::ZERO, minimum: Rate::ZERO, ..good };
        assert_eq!(error(zero), "desired = 0 bit/s: allowed is at least 1 bit/s");
        let more = FlowRequest { minimum: Rate::from_mbps(11), ..good };
        assert_eq!(error(more), "minimum = 11 Mbit/s: allowed is at most desired, which is 10 Mbit/s");
        let open = FlowRequest { minimum: Rate::ZERO, ..good };
        assert_eq!(error(open), "minimum = 0 bit/s: allowed is at least 1 bit/s for a real-time flow");
        assert_eq!(FlowRequest { class: SchedulingClass::TimeShared, ..open }.validate(), Ok(()));
        let important = FlowRequest { priority: 16, ..good };
        assert_eq!(error(important), "priority = 16: allowed is 0 to 15");
        assert_eq!(error(FlowRequest { weight: 0, ..good }), "weight = 0: allowed is 1 to 1000");
        let policy = UserPolicy { share: Some(f64::NAN), ..UserPolicy::default() };
        let error = policy.validate().unwrap_err().to_string();
        assert_eq!(error, "share = NaN: allowed is a number from 0 to 1");
    }

    #[test]
    fn cpu_time_is_rounded_up_and_rates_down() {
        let request = FlowRequest { cpu: CpuShare::from_millionths(3), ..request() };
        assert_eq!([0, 1, 10_000_000].map(|bps| request.cpu_at(bps)), [0, 1, 3]);
        assert_eq!(
            [0, 1, 2, 3, 9].map(|cpu| request.bps_with(cpu)),
            [0, 3_333_333, 6_666_666, 10_000_000, 10_000_000]
        );
        for cpu in 0..4 {
            assert!(request.cpu_at(request.bps_with(cpu)) <= cpu);
        }
    }
}
