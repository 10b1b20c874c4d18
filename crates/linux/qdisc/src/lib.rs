//! TSQ and Sieve as queueing disciplines of the Linux kernel: `bpf/` in Rust.
//!
//! ```text
//! kernel_queues  add, change, show, remove
//! settings       parameters of a queue in fixed point
//! object         object files: their places, loading, pins
//! pins           the pinned maps
//! layout         data shared by the programs and this crate, byte by byte
//! ```
//!
//! The programs stay in the kernel by their pins in a bpffs, so a queue outlives the process that has added it. Its configuration and its statistics are
//! in maps, which any process may open that has the privilege. The crate decides nothing: the settings come from its callers. It loads objects
//! that were compiled before, so no compiler is needed where it runs.

mod error;
mod kernel_queues;
pub mod layout;
mod object;
mod pins;
mod settings;

pub use error::QdiscError;
pub use kernel_queues::{BPFFS, ChangeOutcome, INSTANCES, KernelQueues, QdiscStatus, Removal};
pub use object::{OBJECTS_VARIABLE, find_object};
pub use settings::{KernelQueue, MOST_PACKETS, QdiscChange, QdiscSettings, default_limit, in_words};
