//! The specification of a router as plain, checked values, from its file or the command line.

use cutline_aqm::QueueSpec;
use cutline_router::{Overhead, ShaperParams};
use cutline_sys::address::ZonedIp;
use cutline_units::{Bytes, Duration, HintTable, Rate, RemarkTable};
use cutline_wire::ETHERNET;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;

/// A router between two interfaces.
#[derive(Clone, Debug, PartialEq)]
pub struct RouterSpec {
    /// The first interface.
    pub input: String,
    /// The second interface.
    pub output: String,
    /// From `input` to `output`.
    pub forward: DirectionSpec,
    /// From `output` to `input`.
    pub reverse: DirectionSpec,
    /// Specification of rates that follow the link, for directions that have a range of rates.
    pub autorate: Option<AutorateSpec>,
    /// The settings of the process.
    pub process: ProcessSpec,
}

/// One direction of a router.
#[derive(Clone, Debug, PartialEq)]
pub struct DirectionSpec {
    /// The queue, with the rate of the link.
    pub queue: QueueSpec,
    /// The rates between which it follows the link; `None` for a constant rate.
    pub autorate: Option<RangeInclusive<Rate>>,
    /// Overhead of the link for each frame.
    pub overhead: Overhead,
    /// The leading bits of an IPv6 address that name a host.
    pub host_prefix: u8,
    /// The hint of each code point.
    pub hints: HintTable,
    /// The new code point of each code point in outgoing frames.
    pub remark: RemarkTable,
}

/// Specification of rates that follow the link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AutorateSpec {
    /// Reflectors: hosts that get echo requests, from 1 to [`AutorateSpec::MOST`]. Their replies must come through the link.
    pub reflectors: Vec<ZonedIp>,
    /// A reply that takes longer than usual by more than this is delayed.
    pub delay: Duration,
}

impl AutorateSpec {
    /// The most reflectors.
    pub const MOST: usize = 16;

    /// The usual limit of the delay.
    pub const DELAY: Duration = Duration::from_millis(15);

    /// Returns whether these can be the reflectors: some, not too many, and none twice.
    ///
    /// # Errors
    /// Description of the error.
    pub fn check(reflectors: &[ZonedIp]) -> Result<(), String> {
        let twice = |(at, address): (usize, &ZonedIp)| reflectors[..at].contains(address);
        match reflectors.len() {
            1..=Self::MOST if !reflectors.iter().enumerate().any(twice) => Ok(()),
            1..=Self::MOST => Err("a reflector is named twice".to_owned()),
            number => Err(format!("{number} reflectors; allowed is 1 to {}", Self::MOST)),
        }
    }

    /// Returns whether a rate can follow the link within a range that begins with it.
    ///
    /// # Errors
    /// Description of the error.
    pub fn check_range(rate: Rate, range: &RangeInclusive<Rate>) -> Result<(), String> {
        let (least, most) = (range.start(), range.end());
        if least < most && range.contains(&rate) {
            return Ok(());
        }
        Err(format!("the rate is {rate}, and autorate from {least} to {most} must contain it"))
    }
}

/// The settings that cannot change while a router runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessSpec {
    /// True if the offloads of both interfaces are turned off while it runs.
    pub fix_offloads: bool,
    /// Time before a departure in which it polls the clock instead of sleeping.
    pub spin: Option<Duration>,
    /// The seed of the queues' random numbers; `None` draws one at random.
    pub seed: Option<u64>,
    /// The path of the local socket that answers requests for statistics.
    pub socket: Option<PathBuf>,
    /// The address at which Prometheus scrapes the statistics.
    pub metrics: Option<SocketAddr>,
    /// The most memory for the frames of both directions; `None` is the default.
    pub memory: Option<Bytes>,
    /// The user it runs as once its interfaces are open.
    pub user: Option<String>,
    /// True if interfaces are bridged that the host uses itself.
    pub force_bridge: bool,
    /// The most reservations that clients of the socket may make in each direction; `None` allows none.
    pub reservations: Option<usize>,
}

impl ProcessSpec {
    /// The allowed values of [`ProcessSpec::memory`].
    pub const MEMORY: RangeInclusive<Bytes> = {
        let each = ShaperParams::MEMORIES;
        Bytes::new(2 * *each.start() as u64)..=Bytes::new(2 * *each.end() as u64)
    };

    /// The most reservations in a direction if they are allowed and no limit is given.
    pub const RESERVATIONS: usize = 1000;

    /// Returns the most memory for the frames of one direction, bytes.
    pub fn memory_each(&self) -> usize {
        self.memory.map_or(ShaperParams::MEMORY, |both| both.get() as usize / 2)
    }
}

impl RouterSpec {
    /// Returns the specification for interfaces with these longest packets, of the first and of the second one, bytes: they
    /// determine the queues' size of a full frame.
    #[must_use]
    pub fn at_interfaces(mut self, [input, output]: [u32; 2]) -> Self {
        for (direction, largest) in [(&mut self.forward, output), (&mut self.reverse, input)] {
            direction.queue = direction.queue.at_interface(u64::from(largest) + ETHERNET as u64);
        }
        self
    }

    /// Returns the keys that differ in `other` and cannot change while the router runs.
    pub fn fixed_differences(&self, other: &Self) -> Vec<&'static str> {
        let (old, new) = (&self.process, &other.process);
        let differ = [
            ("in", self.input != other.input),
            ("out", self.output != other.output),
            ("autorate", self.autorate != other.autorate),
            ("fix-offloads", old.fix_offloads != new.fix_offloads),
            ("spin", old.spin != new.spin),
            ("seed", old.seed != new.seed),
            ("socket", old.socket != new.socket),
            ("metrics", old.metrics != new.metrics),
            ("memory", old.memory != new.memory),
            ("user", old.user != new.user),
            ("reservations", old.reservations != new.reservations),
        ];
        differ.into_iter().filter_map(|(key, differs)| differs.then_some(key)).collect()
    }
}
