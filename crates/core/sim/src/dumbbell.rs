//! The dumbbell topology of the papers: every flow has separate access links, and all flows share one bottleneck.
//!
//! ```text
//! s1 ──┐                  ┌── d1
//! s2 ──┤ r1 ══════════ r2 ├── d2
//! s3 ──┘                  └── d3
//! ```

use crate::deliveries::Deliveries;
use crate::id::{LinkId, NodeId};
use crate::impairment::ImpairmentParams;
use crate::network::{LinkSpec, Network};
use cutline_aqm::QueueSpec;
use cutline_units::{Duration, Instant, Rate};
use std::sync::Arc;

/// The links of a dumbbell, the same for every flow (TSQ section 4.1; RED-Worcester section 3).
#[derive(Clone, Debug)]
pub struct Dumbbell {
    /// Rate of the bottleneck in each direction.
    pub rate: Rate,
    /// One-way propagation delay of the bottleneck.
    pub delay: Duration,
    /// Rate of each access link in each direction.
    pub access_rate: Rate,
    /// One-way propagation delay of each access link.
    pub access_delay: Duration,
    /// The queue of the bottleneck in the forward direction, towards the sinks.
    pub queue: QueueSpec,
    /// The queue of the bottleneck in the reverse direction, towards the sources.
    pub reverse_queue: QueueSpec,
    /// The queue of each access link, in both directions and on both sides.
    pub access_queue: QueueSpec,
    /// Changes of the bottleneck's rate in the forward direction.
    pub rate_changes: Vec<(Instant, Rate)>,
    /// The times at which the bottleneck delivers in the forward direction, in place of sending at its rate.
    pub deliveries: Option<Arc<Deliveries>>,
    /// Loss, reordering and jitter.
    pub impairments: Impairments,
}

/// The impairments of a dumbbell's links; `None` for links without one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Impairments {
    /// Impairment of the bottleneck in the forward direction.
    pub forward: Option<ImpairmentParams>,
    /// Impairment of the bottleneck in the reverse direction.
    pub reverse: Option<ImpairmentParams>,
    /// Impairment of each access link, in both directions and on both sides.
    pub access: Option<ImpairmentParams>,
}

/// The two links of a dumbbell's bottleneck, to which flows are attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bottleneck {
    left: NodeId,
    right: NodeId,
    /// From r1 to r2.
    pub forward: LinkId,
    /// From r2 to r1.
    pub reverse: LinkId,
}

/// The routes of one flow through a dumbbell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// Source, r1, r2, sink.
    pub route: Vec<LinkId>,
    /// Sink, r2, r1, source.
    pub return_route: Vec<LinkId>,
}

impl Dumbbell {
    /// Adds the bottleneck: nodes `r1` and `r2` and the links between them. The forward link keeps interval series.
    pub fn lay(&self, network: &mut Network) -> Bottleneck {
        let (left, right) = (network.add_node("r1"), network.add_node("r2"));
        let middle = |from, to, queue: &QueueSpec, impairment: &Option<ImpairmentParams>, series| LinkSpec {
            impairment: impairment.clone().map(Box::new),
            series,
            ..LinkSpec::new(from, to, self.rate, self.delay, queue.clone())
        };
        let mut forward = middle(left, right, &self.queue, &self.impairments.forward, true);
        forward.rate_changes.clone_from(&self.rate_changes);
        forward.deliveries.clone_from(&self.deliveries);
        Bottleneck {
            left,
            right,
            forward: network.add_link(forward),
            reverse: network.add_link(middle(
                right,
                left,
                &self.reverse_queue,
                &self.impairments.reverse,
                false,
            )),
        }
    }

    /// Adds the `number`-th pair of hosts, `sN` and `dN`, with its four access links.
    pub fn add_pair(&self, network: &mut Network, middle: Bottleneck, number: usize) -> Pair {
        let (source, sink) = (network.add_node(format!("s{number}")), network.add_node(format!("d{number}")));
        let mut access = |from, to| {
            network.add_link(LinkSpec {
                impairment: self.impairments.access.clone().map(Box::new),
                ..LinkSpec::new(from, to, self.access_rate, self.access_delay, self.access_queue.clone())
            })
        };
        let (up, down) = (access(source, middle.left), access(middle.right, sink));
        let (up_back, down_back) = (access(sink, middle.right), access(middle.left, source));
        Pair { route: vec![up, middle.forward, down], return_route: vec![up_back, middle.reverse, down_back] }
    }
}
