//! What a router's file says: plain values, all checked.

use cutline_aqm::QueueSpec;
use cutline_router::Overhead;
use cutline_units::{Duration, HintTable, RemarkTable};
use std::path::PathBuf;

/// A router between two interfaces.
#[derive(Clone, Debug, PartialEq)]
pub struct RouterSpec {
    /// One interface.
    pub input: String,
    /// The other.
    pub output: String,
    /// From `input` to `output`.
    pub forth: DirectionSpec,
    /// From `output` to `input`.
    pub back: DirectionSpec,
    /// Where it lives in its process.
    pub process: ProcessSpec,
}

/// One direction of a router.
#[derive(Clone, Debug, PartialEq)]
pub struct DirectionSpec {
    /// The queue, with the rate of the link.
    pub queue: QueueSpec,
    /// What the link adds to a frame.
    pub overhead: Overhead,
    /// The hint that each code point stands for.
    pub hints: HintTable,
    /// What each code point becomes on the way out.
    pub remark: RemarkTable,
}

/// What is fixed when a router starts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessSpec {
    /// Whether the offloads of both interfaces are turned off while it runs.
    pub fix_offloads: bool,
    /// For how long before a departure it looks at the clock instead of sleeping.
    pub spin: Option<Duration>,
    /// The seed of the queues' random numbers; from the clock when it is not said.
    pub seed: Option<u64>,
    /// The local socket that statistics are asked for at.
    pub socket: Option<PathBuf>,
    /// The user that it goes on as once it has its interfaces.
    pub user: Option<String>,
}

impl RouterSpec {
    /// The keys in which `other` differs and that cannot change at work.
    pub fn fixed_differences(&self, other: &Self) -> Vec<&'static str> {
        let (old, new) = (&self.process, &other.process);
        let differ = [
            ("in", self.input != other.input),
            ("out", self.output != other.output),
            ("fix-offloads", old.fix_offloads != new.fix_offloads),
            ("spin", old.spin != new.spin),
            ("seed", old.seed != new.seed),
            ("socket", old.socket != new.socket),
            ("user", old.user != new.user),
        ];
        differ.into_iter().filter_map(|(key, differs)| differs.then_some(key)).collect()
    }
}
