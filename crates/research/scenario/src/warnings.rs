//! Warnings: scenarios that are allowed and hardly meant, and results that lack values.

use crate::spec::Scenario;
use cutline_aqm::Limit;
use cutline_results::DistributionRow;
use cutline_sim::{FlowSpec, LinkId, Network};
use cutline_units::Histogram;
use std::collections::BTreeSet;

impl Scenario {
    /// Returns warnings of allowed settings that are hardly meant: queues whose limit is smaller than a packet that
    /// crosses them.
    pub fn warnings(&self) -> Vec<String> {
        // A network that cannot be built is an error, which the check of the scenario reports.
        let Ok(network) = self.network() else { return Vec::new() };
        let mut known = BTreeSet::new();
        let mut found = Vec::new();
        for flow in network.flows() {
            let group = &network.groups()[flow.group.0 as usize];
            let routes = [
                (&flow.route, "packets", data_size(flow)),
                (&flow.return_route, "replies", flow.transport.reply_size()),
            ];
            for (route, what, size) in routes {
                for link in route {
                    let Some(limit) = too_small(&network, *link, size) else { continue };
                    // Access links have the same queue for every flow of a group.
                    if known.insert((flow.group.0, what, limit)) {
                        let link = network.link_name(*link);
                        found.push(format!(
                            "the queue of {link} holds {limit} B, and the {what} of {group} have {size} B: it drops all of them"
                        ));
                    }
                }
            }
        }
        found
    }
}

/// Returns warnings of distributions of runs in which a bucket has its largest count. Its further values are not counted, so that the
/// percentiles of the distribution are wrong.
pub fn saturated_distributions(rows: &[DistributionRow]) -> Vec<String> {
    let most = Histogram::MOST_IN_BUCKET;
    let warning = |row: &DistributionRow| {
        let DistributionRow { point, seed, subject_kind, subject, quantity, .. } = row;
        format!(
            "{point} with seed {seed}: {quantity} of the {subject_kind} {subject} has {most} values in a bucket, which counts no \
             more: its percentiles are wrong; shorten the measured time"
        )
    };
    let found: BTreeSet<String> = rows.iter().filter(|row| row.count >= most).map(warning).collect();
    found.into_iter().collect()
}

/// Returns the size of a flow's data packets on the wire, bytes: the largest if they differ.
fn data_size(flow: &FlowSpec) -> u32 {
    let payload = flow.transport.largest_payload();
    let message = flow.app.message_size().and_then(|size| u32::try_from(size).ok());
    // A reliable transport puts several messages into a packet.
    let payload = message.filter(|_| !flow.transport.is_reliable()).map_or(payload, |size| size.min(payload));
    payload + flow.transport.header_size()
}

/// Returns the limit of a link's queue if it is smaller than a packet, bytes.
fn too_small(network: &Network, link: LinkId, packet: u32) -> Option<u64> {
    match network.link(link).queue.limit {
        Limit::Bytes(limit) if limit < u64::from(packet) => Some(limit),
        _ => None,
    }
}
