//! Published rows, their owners, and the memory that rows take.

use super::{Process, PublisherId};
use cutline_publish::{DirectionRow, LimitRow, ProgramRow, RowKind, SocketRow, ViolationRow};
use cutline_router_service::Statistics;
use std::sync::Arc;

/// Memory of a row beside the row itself, bytes: its place in the map and its reference count.
const ENTRY: usize = 128;
/// Memory of a router's lists for a byte of its line, at most, bytes: a number of one digit and its comma are eight bytes.
const ROUTER_LISTS: usize = 4;

/// A published row.
#[derive(Clone, Debug)]
pub enum PublishedRow {
    /// A socket.
    Socket(Arc<SocketRow>),
    /// A program that runs under `cutline exec`.
    Program(Arc<ProgramRow>),
    /// A router.
    Router(Arc<Statistics>),
}

/// Owner of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowOwner<'r> {
    /// The publisher.
    pub publisher: PublisherId,
    /// Its process.
    pub process: Process,
    /// Name of the program, as the process states it.
    pub program: &'r str,
}

impl PublishedRow {
    pub(super) const fn kind(&self) -> RowKind {
        match self {
            Self::Socket(_) => RowKind::Socket,
            Self::Program(_) => RowKind::Program,
            Self::Router(_) => RowKind::Router,
        }
    }

    /// Returns the memory that it takes at most, bytes; its line has `length` bytes, and its texts have no more.
    pub(super) fn memory(&self, length: usize) -> usize {
        let own = match self {
            Self::Socket(row) => {
                size_of::<SocketRow>() + [&row.send, &row.receive].map(memory_of_lists).iter().sum::<usize>()
            }
            Self::Program(_) => size_of::<ProgramRow>(),
            Self::Router(_) => size_of::<Statistics>() + ROUTER_LISTS * length,
        };
        own + ENTRY + length
    }
}

/// Returns the memory of a direction's lists, bytes.
fn memory_of_lists(direction: &DirectionRow) -> usize {
    let buckets = direction.delay_buckets_ms.as_ref();
    let numbers = buckets.map_or(0, |buckets| buckets.counts.len() + buckets.bounds.len());
    direction.limits.len() * size_of::<LimitRow>()
        + direction.violations.len() * size_of::<ViolationRow>()
        + numbers * size_of::<u64>()
}
