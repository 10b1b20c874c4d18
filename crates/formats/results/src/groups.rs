//! The measurements of a group of flows: sums over its flows, and percentiles over all packets of all of them.

use crate::rows::{DistributionRow, FlowRow};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// A group of flows in one run. Percentiles are those of all packets of the group together, not means over its flows.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct GroupDocument {
    /// The name of the group.
    pub group: String,
    /// The number of its flows.
    pub flows: usize,
    /// Payload that reached the applications, sum over the flows, bit/s.
    pub goodput_bps: f64,
    /// Data packets that left the sources.
    pub packets_sent: u64,
    /// Data packets that reached the sinks.
    pub packets_received: u64,
    /// Data packets dropped in a queue, or lost on a link with an impairment.
    pub packets_dropped: u64,
    /// Packets dropped or lost over those dropped, lost or received; null if there is none.
    pub loss_ratio: Option<f64>,
    /// Queuing delay of all packets, median, ms; null if there is no packet.
    pub queuing_p50_ms: Option<f64>,
    /// Queuing delay, 90th percentile, ms.
    pub queuing_p90_ms: Option<f64>,
    /// Queuing delay, 95th percentile, ms.
    pub queuing_p95_ms: Option<f64>,
    /// Queuing delay, 99th percentile, ms.
    pub queuing_p99_ms: Option<f64>,
    /// Queuing delay, largest, ms.
    pub queuing_max_ms: Option<f64>,
    /// One-way delay of all packets, median, ms; null if there is no packet.
    pub one_way_p50_ms: Option<f64>,
    /// One-way delay, 95th percentile, ms.
    pub one_way_p95_ms: Option<f64>,
    /// One-way delay, 99th percentile, ms.
    pub one_way_p99_ms: Option<f64>,
    /// One-way delay, largest, ms.
    pub one_way_max_ms: Option<f64>,
}

/// Returns the groups of a run in the order of their first flows. `distributions` are those of the run.
pub fn groups(flows: &[&FlowRow], distributions: &[&DistributionRow]) -> Vec<GroupDocument> {
    let mut names: Vec<&str> = Vec::new();
    for row in flows {
        if !names.contains(&&*row.group) {
            names.push(&row.group);
        }
    }
    let mut buckets: BTreeMap<(&str, &str), Vec<&DistributionRow>> = BTreeMap::new();
    let group_of: BTreeMap<&str, &str> = flows.iter().map(|row| (&*row.flow, &*row.group)).collect();
    for row in distributions {
        // A flow's packets are counted in its own distribution or in that of its group, never in both.
        let group = match &*row.subject_kind {
            "group" => Some(&*row.subject),
            "flow" => group_of.get(&*row.subject).copied(),
            _ => None,
        };
        if let Some(group) = group {
            buckets.entry((group, &row.quantity)).or_default().push(row);
        }
    }
    let none = Vec::new();
    let of = |name: &&str| {
        let members: Vec<&FlowRow> = flows.iter().copied().filter(|row| *row.group == **name).collect();
        let pooled = |quantity| Pooled::new(buckets.get(&(*name, quantity)).unwrap_or(&none));
        group(name, &members, &pooled("queuing_ms"), &pooled("one_way_ms"))
    };
    names.iter().map(of).collect()
}

fn group(name: &str, members: &[&FlowRow], queuing: &Pooled, one_way: &Pooled) -> GroupDocument {
    let sum = |count: fn(&FlowRow) -> u64| members.iter().map(|row| count(row)).sum::<u64>();
    let (received, dropped) = (sum(|row| row.packets_received), sum(|row| row.packets_dropped));
    let largest =
        |of: fn(&FlowRow) -> Option<f64>| members.iter().filter_map(|row| of(row)).max_by(f64::total_cmp);
    let queuing_max_ms = largest(|row| row.queuing_max_ms);
    let one_way_max_ms = largest(|row| row.one_way_max_ms);
    let at_most =
        |value: Option<f64>, max: Option<f64>| value.map(|value| max.map_or(value, |max| value.min(max)));
    let queuing = |share| at_most(queuing.quantile(share), queuing_max_ms);
    let one_way = |share| at_most(one_way.quantile(share), one_way_max_ms);
    GroupDocument {
        group: name.to_owned(),
        flows: members.len(),
        goodput_bps: members.iter().map(|row| row.goodput_bps).sum(),
        packets_sent: sum(|row| row.packets_sent),
        packets_received: received,
        packets_dropped: dropped,
        loss_ratio: (received + dropped > 0).then(|| dropped as f64 / (received + dropped) as f64),
        queuing_p50_ms: queuing(0.5),
        queuing_p90_ms: queuing(0.9),
        queuing_p95_ms: queuing(0.95),
        queuing_p99_ms: queuing(0.99),
        queuing_max_ms,
        one_way_p50_ms: one_way(0.5),
        one_way_p95_ms: one_way(0.95),
        one_way_p99_ms: one_way(0.99),
        one_way_max_ms,
    }
}

/// The distribution of all packets of a group: the ends of each bucket and its count, from the least.
struct Pooled {
    buckets: Vec<(f64, f64, u64)>,
    total: u64,
}

impl Pooled {
    fn new(rows: &[&DistributionRow]) -> Self {
        let mut buckets: Vec<(f64, f64, u64)> =
            rows.iter().map(|row| (row.low, row.high, row.count)).collect();
        buckets.sort_by(|one, other| one.0.total_cmp(&other.0));
        // All distributions have the same buckets.
        buckets.dedup_by(|next, kept| {
            let is_same = next.0 == kept.0;
            kept.2 += if is_same { next.2 } else { 0 };
            is_same
        });
        let total = buckets.iter().map(|(_, _, count)| count).sum();
        Self { buckets, total }
    }

    /// The value below which this share of all packets lies, interpolated within its bucket, as flows have it.
    fn quantile(&self, share: f64) -> Option<f64> {
        let rank = share * self.total as f64;
        let mut below = 0.0;
        for &(low, high, count) in &self.buckets {
            if below + count as f64 >= rank {
                return Some(low + (high - low) * (rank - below) / count as f64);
            }
            below += count as f64;
        }
        self.buckets.last().map(|(_, high, _)| *high)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(name: &str, received: u64, max: f64) -> FlowRow {
        FlowRow {
            flow: name.into(),
            group: "audio".into(),
            goodput_bps: 1000.0,
            packets_received: received,
            packets_dropped: 1,
            queuing_max_ms: Some(max),
            ..FlowRow::default()
        }
    }

    fn bucket(kind: &str, subject: &str, low: f64, count: u64) -> DistributionRow {
        DistributionRow {
            subject_kind: kind.into(),
            subject: subject.into(),
            quantity: "queuing_ms".into(),
            low,
            high: low + 1.0,
            count,
            ..DistributionRow::default()
        }
    }

    #[test]
    fn percentiles_are_those_of_all_packets() {
        // 99 packets of 0 to 1 ms, and a flow with a single packet of 10 ms: a mean over flows would be above 5 ms.
        let flows = [flow("a", 99, 0.9), flow("b", 1, 10.5)];
        let of_flows = [bucket("flow", "a", 0.0, 99), bucket("flow", "b", 10.0, 1)];
        let found = groups(&flows.iter().collect::<Vec<_>>(), &of_flows.iter().collect::<Vec<_>>());
        let [group] = &found[..] else { panic!("{found:?}") };
        assert_eq!((group.flows, group.goodput_bps, group.packets_received), (2, 2000.0, 100));
        assert_eq!(group.loss_ratio, Some(2.0 / 102.0));
        let median = group.queuing_p50_ms.unwrap();
        assert!((median - 50.0 / 99.0).abs() < 1e-12, "{median}");
        assert_eq!((group.queuing_p99_ms, group.queuing_max_ms), (Some(1.0), Some(10.5)));
        assert_eq!(group.one_way_p50_ms, None);
        // The distribution of the group is the same as those of its flows together.
        let of_group = [
            bucket("group", "audio", 0.0, 99),
            bucket("group", "audio", 10.0, 1),
            bucket("queue", "r1->r2", 0.0, 7),
        ];
        assert_eq!(groups(&flows.iter().collect::<Vec<_>>(), &of_group.iter().collect::<Vec<_>>()), found);
    }

    #[test]
    fn the_same_bucket_of_two_flows_is_one() {
        let rows = [bucket("flow", "a", 2.0, 3), bucket("flow", "b", 2.0, 1), bucket("flow", "b", 0.0, 4)];
        let pooled = Pooled::new(&rows.iter().collect::<Vec<_>>());
        assert_eq!((pooled.buckets.len(), pooled.total), (2, 8));
        assert_eq!(
            (pooled.quantile(0.5), pooled.quantile(0.75), pooled.quantile(1.0)),
            (Some(1.0), Some(2.5), Some(3.0))
        );
    }
}
