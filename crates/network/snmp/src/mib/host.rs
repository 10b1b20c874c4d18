//! Totals of the host, and the programs that run under `cutline exec`.

use super::index;
use crate::object::Form::{Truth, Usual};
use crate::object::{Syntax, columns};
use crate::snapshot::{ProgramInstance, Snapshot};
use crate::table::{Definition, Scalars, Table};

/// Returns the totals of the host.
pub fn scalars() -> Scalars {
    let fields = [
        (1, "publishers", Usual),
        (2, "sockets", Usual),
        (3, "programs", Usual),
        (4, "routers", Usual),
        (5, "violations", Usual),
        (6, "violations_begun", Usual),
        (7, "send_throughput_bps", Usual),
        (8, "receive_throughput_bps", Usual),
        (9, "reserved_bps", Usual),
        (10, "refused_reservations", Usual),
        (11, "kernel_queues", Usual),
    ];
    Scalars {
        definition: Definition {
            arc: 1,
            name: "cqosHost",
            description: "Totals of the host.",
            row: "",
            index: Vec::new(),
        },
        objects: columns("cqosHost", |snapshot: &Snapshot| Some(&snapshot.totals), &fields),
    }
}

/// Returns the programs that run under `cutline exec`.
pub fn programs() -> Table<ProgramInstance> {
    let fields = [
        (3, "program", Usual),
        (4, "method", Usual),
        (5, "hint", Usual),
        (6, "is_counted", Truth),
        (7, "rate_bps", Usual),
        (8, "sockets", Usual),
        (9, "messages", Usual),
        (10, "bytes", Usual),
        (11, "waits", Usual),
    ];
    Table {
        definition: Definition {
            arc: 7,
            name: "cqosProgram",
            description: "Programs that run under 'cutline exec', which marks and paces their traffic.",
            row: "A program.",
            index: vec![
                index(1, "cqosProgramPublisher", Syntax::Unsigned32, "Number of the publisher."),
                index(2, "cqosProgramProcess", Syntax::Unsigned32, "Number of the program's process."),
            ],
        },
        columns: columns("cqosProgram", |row: &ProgramInstance| Some(&*row.row), &fields),
        rows: Snapshot::programs,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutline_monitor::HostTotals;
    use cutline_records::Record;

    #[test]
    fn every_total_is_an_object() {
        assert_eq!(scalars().objects.len(), HostTotals::fields().len());
    }
}
