//! Configuration of one direction.

use crate::overhead::Overhead;
use cutline_aqm::QueueSpec;
use cutline_params::ParameterError;
use cutline_units::{Duration, HintTable, Rate, RemarkTable};
use cutline_wire::FlowKeys;
use std::ops::RangeInclusive;

/// The configuration of one direction.
#[derive(Clone, Debug)]
pub struct ShaperParams {
    /// The queue, with the rate of the link.
    pub queue: QueueSpec,
    /// Overhead of the link for each frame.
    pub overhead: Overhead,
    /// The longest frame that the outgoing port accepts, Ethernet header included, bytes.
    pub largest_frame: u32,
    /// The longest IP packet that it accepts, bytes. A reservation cannot be for longer ones.
    pub largest_packet: u32,
    /// The hint of each code point.
    pub hints: HintTable,
    /// The new code point of each code point in outgoing frames.
    pub remark: RemarkTable,
    /// The longest time by which the link may be behind its schedule and still catch up. The default is 10 ms, about the
    /// delay of a process that waits for two time slices on a busy machine.
    pub burst: Duration,
    /// The salt of the hashes of flows and hosts.
    pub salt: u64,
    /// The leading bits of an IPv6 address that name a host, within [`FlowKeys::HOST_PREFIXES`].
    pub host_prefix: u8,
    /// The most memory for stored frames, bytes. A frame that finds no room is lost.
    pub memory: usize,
    /// The most reservations; 0 allows none.
    pub reservations: usize,
}

impl ShaperParams {
    /// The default of [`ShaperParams::burst`].
    pub const BURST: Duration = Duration::from_millis(10);
    /// The default of [`ShaperParams::memory`]: that of FQ-CoDel in Linux (tc-fq_codel(8): `memory_limit`).
    pub const MEMORY: usize = 32 << 20;
    /// The allowed values of [`ShaperParams::memory`].
    pub const MEMORIES: RangeInclusive<usize> = 2 << 20..=8 << 30;
    /// The allowed rates. A slower link would take minutes for a frame; of a faster one, a frame would take no nanosecond.
    pub const RATES: RangeInclusive<Rate> = Rate::from_kbps(1)..=Rate::from_mbps(10_000_000);

    /// Returns the default configuration: frames of up to 1500 B of payload with a VLAN tag over Ethernet, standard hints,
    /// nothing re-marked.
    pub fn new(queue: QueueSpec) -> Self {
        Self {
            queue,
            overhead: Overhead::Ethernet,
            largest_frame: 1518,
            largest_packet: 1500,
            hints: HintTable::standard(),
            remark: RemarkTable::unchanged(),
            burst: Self::BURST,
            salt: 0,
            host_prefix: FlowKeys::HOST_PREFIX,
            memory: Self::MEMORY,
            reservations: 0,
        }
    }

    /// Checks the settings that no queue checks.
    pub(crate) fn check(&self) -> Result<(), ParameterError> {
        check_rate(self.queue.rate)?;
        if !FlowKeys::HOST_PREFIXES.contains(&self.host_prefix) {
            return Err(ParameterError::new("host_prefix", self.host_prefix, "from 1 to 128"));
        }
        if Self::MEMORIES.contains(&self.memory) {
            return Ok(());
        }
        let allowed = format!("from {} to {} B", Self::MEMORIES.start(), Self::MEMORIES.end());
        Err(ParameterError::new("memory", format!("{} B", self.memory), allowed))
    }
}

pub(crate) fn check_rate(rate: Rate) -> Result<(), ParameterError> {
    if ShaperParams::RATES.contains(&rate) {
        return Ok(());
    }
    let (least, most) = (ShaperParams::RATES.start(), ShaperParams::RATES.end());
    Err(ParameterError::new("rate", rate, format!("from {least} to {most}")))
}
