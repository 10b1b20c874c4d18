//! TSQ and Sieve as queueing disciplines of the Linux kernel: `bpf/` in Rust.
//!
//! ```text
//! kernel_queues  add, change, show, remove
//! settings       parameters of a queue in fixed point
//! pins           the pinned programs and maps
//! leaves         statistics of the hardware queues of an interface
//! idle           gauges of an empty queue
//! testing        a queue for tests of other crates (feature `testing`)
//! layout         data shared by the programs and this crate, byte by byte
//! ```
//!
//! The programs stay in the kernel by their pins in a bpffs, so a queue outlives the process that has added it. Its configuration and its statistics are
//! in maps, which any process may open that has the privilege. The crate decides nothing: the settings come from its callers. The objects, compiled
//! before, are loaded by a [`QdiscLoader`], which only [`KernelQueues::add`] needs.

mod error;
mod idle;
mod kernel_queues;
pub mod layout;
mod leaves;
mod pins;
mod settings;
#[cfg(any(test, feature = "testing"))]
pub mod testing;

pub use error::QdiscError;
pub use kernel_queues::{BPFFS, ChangeOutcome, KernelQueues, QdiscLoader, QdiscStatus, Removal};
pub use pins::LINK;
pub use settings::{
    KernelQueue, MOST_PACKETS, QdiscChange, QdiscSettings, default_limit, default_sieve_memory, in_words,
};
