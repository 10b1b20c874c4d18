//! Capacities of a host: measured ceilings, CPU, and interfaces.

use cutline_params::ParameterError;
use cutline_units::Rate;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// The highest rate in capacities and requests, bit/s: 100 Tbit/s. Sums of all flows fit 64 bits.
pub const MOST_RATE: Rate = Rate::from_bps(100_000_000_000_000);
/// The largest CPU time per time: a million CPUs.
pub const MOST_CPU: CpuShare = CpuShare::from_millionths(1_000_000_000_000);
/// The most interfaces of a host.
pub const MOST_INTERFACES: usize = 64;

/// CPU time per time, in millionths of one CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CpuShare(u64);

impl CpuShare {
    /// No CPU time.
    pub const ZERO: Self = Self(0);

    /// This many millionths of one CPU.
    pub const fn from_millionths(millionths: u64) -> Self {
        Self(millionths)
    }

    /// This many per cent of one CPU.
    pub const fn from_percent(percent: u64) -> Self {
        Self(percent * 10_000)
    }

    /// Millionths of one CPU.
    pub const fn as_millionths(self) -> u64 {
        self.0
    }
}

/// A CPU share in per cent of one CPU: `2.5 %`.
impl fmt::Display for CpuShare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} %", self.0 as f64 / 1e4)
    }
}

/// Number of an interface, as the kernel counts them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct InterfaceIndex(pub u32);

impl fmt::Display for InterfaceIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Capacity of an interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InterfaceCapacity {
    /// Rate of the link, bit/s.
    pub rate: Rate,
    /// Rate that reservations of RSVP hold, bit/s. It is none of the manager's to give.
    pub reserved: Rate,
}

/// Capacities of a host. Ceilings are measured, as in QUANTA tables 1 to 3; `None` is not measured, and limits nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Capacities {
    /// The most that TCP alone delivers, bit/s.
    pub tcp: Option<Rate>,
    /// The most that datagrams alone deliver, bit/s.
    pub datagrams: Option<Rate>,
    /// The most that both together deliver, bit/s.
    pub combined: Option<Rate>,
    /// CPU time for communication.
    pub cpu: Option<CpuShare>,
    /// Interfaces, at most [`MOST_INTERFACES`].
    pub interfaces: BTreeMap<InterfaceIndex, InterfaceCapacity>,
}

/// Kind of protocol that carries a flow, as ceilings are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CarrierKind {
    /// TCP.
    Tcp,
    /// UDP, and QUANTA's direct transport.
    Datagrams,
}

/// A resource that can be exhausted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ResourceKind {
    /// Ceiling of TCP, bit/s.
    Tcp,
    /// Ceiling of datagrams, bit/s.
    Datagrams,
    /// Ceiling of both together, bit/s.
    Combined,
    /// CPU time, millionths of one CPU.
    Cpu,
    /// Rate of an interface, bit/s.
    Interface(InterfaceIndex),
    /// Number of flows.
    Flows,
}

impl ResourceKind {
    /// The unit of its amounts.
    pub const fn unit(self) -> &'static str {
        match self {
            Self::Tcp | Self::Datagrams | Self::Combined | Self::Interface(_) => "bit/s",
            Self::Cpu => "millionths of a CPU",
            Self::Flows => "flows",
        }
    }
}

impl fmt::Display for ResourceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp => f.write_str("the ceiling of TCP"),
            Self::Datagrams => f.write_str("the ceiling of datagrams"),
            Self::Combined => f.write_str("the ceiling of TCP and datagrams together"),
            Self::Cpu => f.write_str("the CPU"),
            Self::Interface(index) => write!(f, "interface {index}"),
            Self::Flows => f.write_str("the number of flows"),
        }
    }
}

impl Capacities {
    /// Checks ranges.
    ///
    /// # Errors
    /// When a rate, the CPU share or the number of interfaces is too large.
    pub fn validate(&self) -> Result<(), ParameterError> {
        let rates = [("tcp", self.tcp), ("datagrams", self.datagrams), ("combined", self.combined)];
        for (name, rate) in rates {
            check_rate(name, rate.unwrap_or_default())?;
        }
        check_cpu("cpu", self.cpu.unwrap_or_default())?;
        if self.interfaces.len() > MOST_INTERFACES {
            let most = format!("at most {MOST_INTERFACES}");
            return Err(ParameterError::new("interfaces", self.interfaces.len(), most));
        }
        for (index, InterfaceCapacity { rate, reserved }) in &self.interfaces {
            check_rate(&format!("interfaces.{index}.rate"), *rate)?;
            check_rate(&format!("interfaces.{index}.reserved"), *reserved)?;
        }
        Ok(())
    }
}

pub(super) fn check_rate(name: &str, rate: Rate) -> Result<(), ParameterError> {
    if rate <= MOST_RATE {
        Ok(())
    } else {
        Err(ParameterError::new(name, rate, format!("at most {MOST_RATE}")))
    }
}

pub(super) fn check_cpu(name: &str, cpu: CpuShare) -> Result<(), ParameterError> {
    if cpu <= MOST_CPU { Ok(()) } else { Err(ParameterError::new(name, cpu, format!("at most {MOST_CPU}"))) }
}
