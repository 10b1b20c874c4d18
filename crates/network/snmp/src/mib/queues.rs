//! Queues of routers and of the kernel: load, waits, drops by reason and by hint.

use super::buckets::{self, BucketWords};
use super::index;
use crate::object::Form::{Named, Number, Usual};
use crate::object::{MibColumn, Object, Syntax, columns, computed, gauge, text};
use crate::snapshot::{LOSSES, QueueInstance, QueueItem, Snapshot};
use crate::table::{Definition, Table};
use async_snmp::Value;
use cutline_router_service::DirectionStatistics;

/// Directions of a router.
const DIRECTIONS: &[(&str, i32)] = &[("forward", 1), ("reverse", 2)];

/// Returns the queues.
pub fn queues() -> Table<QueueInstance> {
    let prefix = "cqosQueue";
    let process = Object {
        arc: 3,
        name: "cqosQueuePid".to_owned(),
        syntax: Syntax::Unsigned32,
        units: "",
        description: "Number of the router's process; absent of a queue in the kernel.".to_owned(),
    };
    let of_direction = [
        (4, "direction", Usual),
        (5, "rate_bps", Usual),
        (7, "received.packets", Usual),
        (8, "received.bytes", Usual),
        (9, "sent.packets", Usual),
        (10, "sent.bytes", Usual),
        (11, "queued_packets", Usual),
        (12, "backlog.packets", Usual),
        (13, "backlog.bytes", Usual),
        (14, "probability", Usual),
        (15, "marked.packets", Usual),
        (16, "marked.bytes", Usual),
        (17, "remarked.packets", Usual),
        (18, "remarked.bytes", Usual),
        (19, "not_ip.packets", Usual),
        (20, "not_ip.bytes", Usual),
        (21, "slipped_ms", Usual),
    ];
    let of_sieve = [
        (27, "below_fair_share.packets", Usual),
        (28, "below_fair_share.bytes", Usual),
        (29, "above_fair_share.packets", Usual),
        (30, "above_fair_share.bytes", Usual),
        (31, "fair_share_bps", Usual),
        (32, "load", Usual),
    ];
    let of_reserved = [
        (33, "reservations", Usual),
        (34, "rate_bps", Usual),
        (35, "conforming.packets", Usual),
        (36, "conforming.bytes", Usual),
        (37, "excess.packets", Usual),
        (38, "excess.bytes", Usual),
        (39, "dropped.packets", Usual),
        (40, "dropped.bytes", Usual),
        (41, "departed.packets", Usual),
        (42, "departed.bytes", Usual),
        (43, "waiting_packets", Usual),
        (44, "mean_wait_ms", Usual),
        (45, "longest_wait_ms", Usual),
    ];
    let discipline = Object {
        arc: 6,
        name: "cqosQueueDiscipline".to_owned(),
        syntax: Syntax::Text,
        units: "",
        description: "Name of the queue, such as 'TSQ over pie'.".to_owned(),
    };
    let mut all = vec![computed(process, |row: &QueueInstance| Some(gauge(row.pid()?.into())))];
    all.extend(columns(prefix, |row: &QueueInstance| Some(row.direction()), &of_direction));
    all.push(computed(discipline, |row: &QueueInstance| Some(text(&row.direction().queue))));
    all.extend([
        percentile(22, "WaitP50", "Median", 0.5),
        percentile(23, "WaitP90", "90th percentile", 0.9),
        percentile(24, "WaitP99", "99th percentile", 0.99),
        dropped(25, "DroppedPackets", "Frames lost, for any reason.", "packets", |direction| {
            direction.dropped_packets()
        }),
        dropped(26, "DroppedBytes", "Bytes of the frames lost, for any reason.", "bytes", |direction| {
            direction.dropped_bytes()
        }),
    ]);
    all.extend(columns(prefix, |row: &QueueInstance| row.direction().sieve.as_ref(), &of_sieve));
    all.extend(columns("cqosQueueRsv", QueueInstance::reserved, &of_reserved));
    all.sort_by_key(|column| column.object.arc);
    Table {
        definition: Definition {
            arc: 8,
            name: prefix,
            description: "Queues: the two directions of each router, and the queues in the kernel.",
            row: "A queue.",
            index: queue_index(),
        },
        columns: all,
        rows: Snapshot::queues,
    }
}

/// Returns a percentile of the waiting times since the router's start.
fn percentile(arc: u32, name: &str, which: &str, q: f64) -> MibColumn<QueueInstance> {
    let object = Object {
        arc,
        name: format!("cqosQueue{name}"),
        syntax: Syntax::Gauge32,
        units: "microseconds",
        description: format!(
            "{which} of the waiting times in the queue since its start, within a bucket of cqosQueueWaitTable; absent before the first."
        ),
    };
    computed(object, move |row: &QueueInstance| {
        Some(gauge(row.direction().waits_us.quantile(q)?.round() as u64))
    })
}

/// Returns a total of drops.
fn dropped(
    arc: u32,
    name: &str,
    description: &str,
    units: &'static str,
    total: fn(&DirectionStatistics) -> u64,
) -> MibColumn<QueueInstance> {
    let object = Object {
        arc,
        name: format!("cqosQueue{name}"),
        syntax: Syntax::Counter64,
        units,
        description: description.to_owned(),
    };
    computed(object, move |row: &QueueInstance| Some(Value::Counter64(total(row.direction()))))
}

/// Returns the index of a queue.
fn queue_index() -> Vec<Object> {
    vec![
        index(
            1,
            "cqosQueuePublisher",
            Syntax::Unsigned32,
            "Number of the publisher: the router. Of a queue in the kernel, the sum of 2147483648 and the number of its interface (ifIndex).",
        ),
        index(
            2,
            "cqosQueueNumber",
            Syntax::Enumeration(DIRECTIONS),
            "The direction of the router: from its first to its second interface, or back. Of a queue in the kernel, forward(1).",
        ),
    ]
}

/// Returns the index of an item of a queue.
fn index_in_queue(name: &str, syntax: Syntax, description: &str) -> Vec<Object> {
    [queue_index(), vec![index(1, name, syntax, description)]].concat()
}

/// Returns the drops of all queues by reason.
pub fn drops() -> Table<QueueItem> {
    Table {
        definition: Definition {
            arc: 9,
            name: "cqosQueueDrop",
            description: "Frames lost, by reason.",
            row: "A reason of drops.",
            index: index_in_queue(
                "cqosQueueDropReason",
                Syntax::Enumeration(LOSSES),
                "The reason: the AQM, a full queue, a frame longer than the outgoing interface can take, a frame without a header, the outgoing interface, or no memory.",
            ),
        },
        columns: columns("cqosQueueDrop", QueueItem::lost, &[(2, "packets", Usual), (3, "bytes", Usual)]),
        rows: Snapshot::drops,
    }
}

/// Returns the hints of all queues.
pub fn hints() -> Table<QueueItem> {
    let fields = [
        (2, "departed.packets", Usual),
        (3, "departed.bytes", Usual),
        (4, "dropped.packets", Usual),
        (5, "dropped.bytes", Usual),
        (6, "mean_wait_ms", Usual),
        (7, "longest_wait_ms", Usual),
    ];
    Table {
        definition: Definition {
            arc: 10,
            name: "cqosQueueHint",
            description: "Frames by their delay hint.",
            row: "A hint that has been seen.",
            index: index_in_queue("cqosQueueHintLevel", Syntax::Unsigned32, "The delay hint, 1 to 16."),
        },
        columns: columns("cqosQueueHint", QueueItem::hint, &fields),
        rows: Snapshot::hints,
    }
}

/// Returns the buckets of waiting times.
pub fn waits() -> Table<QueueItem> {
    let words = BucketWords {
        prefix: "cqosQueueWait",
        times: "waiting times",
        counts: "Packets",
        units: "packets",
        meaning: "Frames whose waiting time is in the bucket.",
    };
    Table {
        definition: Definition {
            arc: 11,
            name: "cqosQueueWait",
            description: "Waiting times in queues by buckets.",
            row: "A bucket of waiting times.",
            index: index_in_queue(
                "cqosQueueWaitBucket",
                Syntax::Unsigned32,
                "Number of the bucket, from 1 on.",
            ),
        },
        columns: buckets::columns(&words, QueueItem::bucket),
        rows: Snapshot::waits,
    }
}

/// Returns the flows that send most through each queue.
pub fn flows() -> Table<QueueItem> {
    let fields = [
        (2, "source", Usual),
        (3, "source_port", Number),
        (4, "destination", Usual),
        (5, "destination_port", Number),
        (6, "protocol", Number),
        (7, "code_point", Usual),
        (8, "hint", Usual),
        (9, "recent_bps", Usual),
        (10, "received.packets", Usual),
        (11, "received.bytes", Usual),
        (12, "departed.packets", Usual),
        (13, "departed.bytes", Usual),
        (14, "dropped.packets", Usual),
        (15, "dropped.bytes", Usual),
        (16, "marked.packets", Usual),
        (17, "marked.bytes", Usual),
        (18, "mean_wait_ms", Usual),
        (19, "longest_wait_ms", Usual),
        (20, "wait_p50_ms", Usual),
        (21, "wait_p99_ms", Usual),
    ];
    Table {
        definition: Definition {
            arc: 12,
            name: "cqosQueueFlow",
            description: "The flows that sent most through each queue in the last two seconds.",
            row: "A flow. Its number is its rank.",
            index: index_in_queue(
                "cqosQueueFlowRank",
                Syntax::Unsigned32,
                "Rank of the flow by its rate, from 1 on.",
            ),
        },
        columns: columns("cqosQueueFlow", QueueItem::flow, &fields),
        rows: Snapshot::queue_flows,
    }
}

/// Returns the hosts whose flows send or receive most through each queue.
pub fn hosts() -> Table<QueueItem> {
    const SIDES: &[(&str, i32)] = &[("source", 1), ("destination", 2)];
    let fields = [
        (2, "host", Usual),
        (3, "side", Named(SIDES)),
        (4, "flows", Usual),
        (5, "recent_bps", Usual),
        (6, "dropped_percent", Usual),
        (7, "mean_wait_ms", Usual),
    ];
    Table {
        definition: Definition {
            arc: 13,
            name: "cqosQueueHost",
            description: "The hosts whose flows sent or received most through each queue in the last two seconds.",
            row: "A host. Its number is its rank.",
            index: index_in_queue(
                "cqosQueueHostRank",
                Syntax::Unsigned32,
                "Rank of the host by its rate, from 1 on.",
            ),
        },
        columns: columns("cqosQueueHost", QueueItem::host, &fields),
        rows: Snapshot::queue_hosts,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutline_router::Loss;

    #[test]
    fn every_field_of_flows_and_hosts_is_a_column() {
        use cutline_records::Record as _;
        // Counters of packets and bytes have two columns.
        assert_eq!(flows().columns.len(), cutline_router_service::FlowStatistics::fields().len() + 4);
        assert_eq!(hosts().columns.len(), cutline_router_service::HostStatistics::fields().len());
    }

    #[test]
    fn every_reason_of_drops_has_a_number() {
        for loss in Loss::ALL {
            assert!(crate::snapshot::number_of(LOSSES, loss.name()).is_some(), "{}", loss.name());
        }
    }
}
