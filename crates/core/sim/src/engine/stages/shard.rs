//! Shards: parts of one simulation that run at the same time, for several cores.
//!
//! The stages of a window do not depend on each other. Each shard has the whole network and runs its own stages. Its inboxes of the other
//! stages collect the packets for them. When a window has ended, those of the next window are posted to the shards of these stages:
//!
//! ```text
//! run_window     the own stages of the open window
//! open_window    the next one
//! post           its packets for the stages of another shard
//! receive        its packets of another shard
//! end            after the last window
//! ```
//!
//! The caller runs the shards, in threads of its own or one after the other, and posts between all of them. The outcome is the same to the
//! last bit with any number of shards: packets are sorted by arrival and position, all packets of a position come from one stage, and the
//! counts that several stages add to are integers.

use super::inbox::{Inbox, Parcel};
use super::{Inboxes, SimulationSettings, StageObstacle, StagePlan, Stages};
use crate::engine::parts::{Parts, is_fifo_link};
use crate::id::LinkId;
use crate::network::{Network, NetworkError};
use crate::outcome::{LinkOutcome, SimulationOutcome, Work};
use crate::route::{EventKind, Hop};
use cutline_transport::endpoint::WideHeader;
use cutline_units::Instant;

/// The time that a packet of a flow takes at its source, at a queue, at a FIFO link, and at its sink, relative to each other (10,000
/// flows, TCP).
const COSTS: [u64; 4] = [15, 12, 2, 8];

/// The number of places at which the first part of a cut may begin, of which the best one is taken.
const TURNS: u64 = 64;

/// The assignment of the stages of a network to shards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardPlan {
    stages: StagePlan,
    /// The number of shards.
    shards: usize,
    sources: usize,
    sinks: usize,
    /// The shard of each queued link, and then of each FIFO link that is a stage: so of each link's inbox.
    links: Vec<usize>,
}

/// The stages that run at one place.
#[derive(Clone, Debug, Default)]
pub(super) struct OwnStages {
    pub(super) sources: bool,
    pub(super) sinks: bool,
    /// Queued links, by index.
    pub(super) queues: Vec<usize>,
    /// FIFO links that are stages, by number.
    pub(super) fifo_links: Vec<usize>,
}

impl OwnStages {
    /// All stages of a network.
    pub(super) fn all(network: &Network, plan: &StagePlan) -> Self {
        let queues = (0..network.link_ids().filter(|link| !is_fifo_link(network, *link)).count()).collect();
        Self { sources: true, sinks: true, queues, fifo_links: (0..plan.fifo_stages.len()).collect() }
    }
}

/// The packets that one shard has for the stages of another one in the next window.
#[derive(Default)]
pub struct Mail {
    /// By the inboxes of the receiving shard.
    lists: Vec<(Vec<Parcel>, Vec<WideHeader>)>,
}

/// One of several parts of a simulation that run at the same time. See the description of the module.
pub struct Shard {
    stages: Stages,
    plan: ShardPlan,
    number: usize,
}

impl ShardPlan {
    /// Assigns the stages of a network to at most `most` shards with about the same work. There are fewer if there are not enough stages.
    ///
    /// # Errors
    /// The reason why the network is simulated event by event.
    pub fn new(network: &Network, most: usize) -> Result<Self, StageObstacle> {
        Ok(Self::of(network, StagePlan::new(network)?, most))
    }

    /// Assigns the stages of a plan, which must be the network's.
    pub fn of(network: &Network, stages: StagePlan, most: usize) -> Self {
        let mut links: Vec<LinkId> =
            network.link_ids().filter(|link| !is_fifo_link(network, *link)).collect();
        let queues = links.len();
        links.extend(&stages.fifo_stages);
        let crossings = crossings(network);
        let flows = network.flows().len() as u64;
        let [source, queue, fifo_link, sink] = COSTS;
        // Along the route of a packet and back, so that most packets stay in their shard: sources, links of data, sinks, links of replies.
        let of_links = |of_replies: bool| {
            let all = links.iter().map(|id| crossings[id.0 as usize]).enumerate();
            let some = all.filter(move |(_, [data, replies])| (replies > data) == of_replies);
            some.map(move |(place, [data, replies])| {
                let cost = if place < queues { queue } else { fifo_link };
                (Some(place), cost * (data + replies))
            })
        };
        let mut order = vec![(None, source * flows)];
        order.extend(of_links(false));
        let sinks = order.len();
        order.push((None, sink * flows));
        if stages.ends_together {
            order.pop();
            order[0].1 += sink * flows;
        }
        order.extend(of_links(true));
        let shards = cut(&order.iter().map(|(_, cost)| *cost).collect::<Vec<_>>(), most);
        let of_sinks = if stages.ends_together { shards[0] } else { shards[sinks] };
        let mut plan = Self {
            shards: shards.iter().max().map_or(1, |last| last + 1),
            sources: shards[0],
            sinks: of_sinks,
            links: vec![0; links.len()],
            stages,
        };
        for ((link, _), shard) in order.iter().zip(shards) {
            if let Some(link) = link {
                plan.links[*link] = shard;
            }
        }
        plan
    }

    /// Returns the number of shards.
    pub const fn shards(&self) -> usize {
        self.shards
    }

    /// Returns the stages of a shard; `queues` is the number of queued links.
    fn own(&self, shard: usize, queues: usize) -> OwnStages {
        let mine = |(place, owner): (usize, &usize)| (*owner == shard).then_some(place);
        let (of_queues, of_fifo_links) = self.links.split_at(queues);
        OwnStages {
            sources: self.sources == shard,
            sinks: self.sinks == shard,
            queues: of_queues.iter().enumerate().filter_map(mine).collect(),
            fifo_links: of_fifo_links.iter().enumerate().filter_map(mine).collect(),
        }
    }
}

/// Returns the number of flows that cross each link with their data, and with their replies.
fn crossings(network: &Network) -> Vec<[u64; 2]> {
    let mut crossings = vec![[0; 2]; network.links().len()];
    for flow in network.flows() {
        for (direction, route) in [&flow.route, &flow.return_route].into_iter().enumerate() {
            for link in route {
                crossings[link.0 as usize][direction] += 1;
            }
        }
    }
    crossings
}

/// Cuts a circle of costs into at most `most` parts with about the same sum. Returns the part of each; parts are numbered in the order of
/// their first costs.
fn cut(costs: &[u64], most: usize) -> Vec<usize> {
    let largest = |parts: &Vec<usize>| {
        let mut sums = vec![0; most];
        parts.iter().zip(costs).for_each(|(part, cost)| sums[*part] += cost);
        sums.into_iter().max()
    };
    // The first one of several that are as good.
    let found = (0..TURNS).map(|turn| cut_turned(costs, most as u64, turn)).min_by_key(largest);
    found.expect("there are several turns")
}

/// Cuts a circle of costs into parts of the same length, the first of which begins `turn / TURNS` of a part before the first cost. Each cost
/// belongs to the part of its middle.
fn cut_turned(costs: &[u64], most: u64, turn: u64) -> Vec<usize> {
    let total = costs.iter().sum::<u64>().max(1);
    let (mut before, mut numbers) = (0, Vec::new());
    let part = |cost: &u64| {
        let twice_middle = 2 * before + cost;
        before += cost;
        let place = (twice_middle * most * TURNS + 2 * total * turn) / (2 * total * TURNS) % most;
        // Usually that of the cost before. Parts without any are left out.
        numbers.iter().rposition(|known| *known == place).unwrap_or_else(|| {
            numbers.push(place);
            numbers.len() - 1
        })
    };
    costs.iter().map(part).collect()
}

impl Shard {
    /// Sets up a shard, by its number, at time zero. The plan must be the network's.
    ///
    /// # Errors
    /// When a queue cannot be built.
    pub fn new(
        network: &Network,
        settings: &SimulationSettings,
        plan: &ShardPlan,
        number: usize,
    ) -> Result<Self, NetworkError> {
        let queues = plan.links.len() - plan.stages.fifo_stages.len();
        let stages = Stages::with_stages(network, settings, &plan.stages, plan.own(number, queues))?;
        Ok(Self { stages, plan: plan.clone(), number })
    }

    /// Runs the own stages of the open window. Returns false at the end of the simulation, which is the same window for all shards.
    pub fn run_window(&mut self) -> bool {
        let until = Instant::ZERO + self.stages.parts.settings.duration;
        let end = self.stages.window_end();
        self.stages.run_stages(end.min(until));
        self.stages.clock = end.min(until);
        end <= until
    }

    /// Returns the time to which it has run.
    pub const fn time(&self) -> Instant {
        self.stages.time()
    }

    /// Opens the next window.
    pub fn open_window(&mut self) {
        self.stages.open_window();
    }

    /// Puts the packets of the window that has just been opened for the stages of another shard into its mail, which must be empty.
    pub fn post(&mut self, to: usize, mail: &mut Mail) {
        let Stages { inboxes, headers, .. } = &mut self.stages;
        for (number, inbox) in inboxes_of(inboxes, &self.plan, to).enumerate() {
            if mail.lists.len() == number {
                mail.lists.push((Vec::new(), Vec::new()));
            }
            let (list, long) = &mut mail.lists[number];
            inbox.export(list);
            if !headers.is_empty() {
                let wide = list.iter().filter(|parcel| parcel.packet.header().is_wide());
                long.extend(wide.map(|parcel| headers.take(parcel.packet.header())));
            }
        }
    }

    /// Takes the packets of the open window that another shard has posted. The mail is empty then.
    pub fn receive(&mut self, mail: &mut Mail) {
        let Stages { inboxes, headers, .. } = &mut self.stages;
        for (inbox, (list, long)) in inboxes_of(inboxes, &self.plan, self.number).zip(&mut mail.lists) {
            if !long.is_empty() {
                let wide = list.iter_mut().filter(|parcel| parcel.packet.header().is_wide());
                for (parcel, header) in wide.zip(long.drain(..)) {
                    parcel.packet.set_header(headers.put(header));
                }
            }
            inbox.import(list);
        }
    }

    /// Ends the run, and completes the measures of the links whose packets this shard has sent.
    pub fn end(self) -> EndedShard {
        let Self { stages, plan, number } = self;
        let (events, intervals) = (stages.events, stages.intervals());
        let mut parts = stages.into_parts();
        let is_own = |parts: &Parts, link: Hop| match link.kind() {
            EventKind::QueuedLink => plan.links[link.index()] == number,
            // All packets of a FIFO link enter it in one shard.
            _ => parts.fifo_links[link.index()].is_used(),
        };
        let own = parts.all_links().filter(|link| is_own(&parts, *link)).count();
        let mut links = Vec::with_capacity(own);
        for (place, link) in parts.all_links().enumerate() {
            if is_own(&parts, link) {
                links.push((place, parts.settle_link(link)));
            }
        }
        EndedShard { parts, links, plan, number, events, intervals }
    }
}

/// A shard that has run to its end.
pub struct EndedShard {
    parts: Parts,
    /// The outcomes of the links that it owns, with their places among all links of the network.
    links: Vec<(usize, LinkOutcome)>,
    plan: ShardPlan,
    number: usize,
    events: u64,
    intervals: u64,
}

impl EndedShard {
    /// Returns the measures of all shards together.
    ///
    /// # Panics
    /// When these are not all shards of one simulation, in the order of their numbers.
    pub fn outcome(shards: Vec<Self>) -> SimulationOutcome {
        let plan = shards.first().expect("a simulation has a shard").plan.clone();
        assert!(
            shards.len() == plan.shards && shards.iter().enumerate().all(|(place, its)| its.number == place),
            "all shards, in order"
        );
        let events = shards.iter().map(|shard| shard.events).sum::<u64>() + shards[0].intervals;
        let work = Work { events, ..Work::default() };
        let (mut all, links): (Vec<_>, Vec<_>) =
            shards.into_iter().map(|shard| (shard.parts, shard.links)).unzip();
        let hops = all.iter().map(|parts| parts.hops).sum();
        let links = all[0].merge_links(links);
        // The flows' measures are those of the sources' shard and of the sinks' shard, with the drops of all.
        let mut sources = all.swap_remove(plan.sources);
        sources.hops = hops;
        let at_sinks = if plan.sinks == plan.sources { None } else { Some(plan.sinks) };
        let dropped_here = at_sinks.map(|shard| {
            // The last one has taken the place of the sources' shard.
            let place = if shard == all.len() { plan.sources } else { shard };
            sources.delays = std::mem::take(&mut all[place].delays);
            sources.own_delays = std::mem::take(&mut all[place].own_delays);
            let sinks = std::mem::take(&mut all[place].receiving);
            std::mem::replace(&mut sources.receiving, sinks)
        });
        let elsewhere = all.iter().map(|parts| &parts.receiving).chain(&dropped_here);
        for receiving in elsewhere {
            for (sum, other) in sources.receiving.iter_mut().zip(receiving) {
                sum.record.add_drops(&other.record);
            }
        }
        for parts in &all {
            for (sum, other) in sources.series.iter_mut().zip(&parts.series) {
                if let (Some(sum), Some(other)) = (sum, other) {
                    sum.add(other);
                }
            }
        }
        sources.settle_flows(links, work)
    }
}

impl Parts {
    /// Returns the outcomes of all links in order, from those of each shard. Links without a packet have none.
    fn merge_links(&mut self, shards: Vec<Vec<(usize, LinkOutcome)>>) -> Vec<LinkOutcome> {
        let mut shards: Vec<_> = shards.into_iter().map(|links| links.into_iter().peekable()).collect();
        let merged = self.all_links().enumerate().map(|(place, link)| {
            let found = shards.iter_mut().find_map(|links| links.next_if(|(of, _)| *of == place));
            found.map_or_else(|| self.settle_link(link), |(_, outcome)| outcome)
        });
        merged.collect()
    }
}

/// Returns the inboxes of the stages of a shard, in an order that all shards have.
fn inboxes_of<'i>(
    inboxes: &'i mut Inboxes,
    plan: &'i ShardPlan,
    shard: usize,
) -> impl Iterator<Item = &'i mut Inbox> {
    let owners = plan.links.iter().copied().chain([plan.sinks, plan.sources]);
    inboxes.all().zip(owners).filter(move |(_, owner)| *owner == shard).map(|(inbox, _)| inbox)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Sources, the bottleneck, sinks, and the link of replies, whose packets go on to the sources.
    #[test]
    fn the_links_of_replies_may_be_in_the_shard_of_the_sources() {
        assert_eq!(cut(&[15, 12, 8, 2], 2), [0, 1, 1, 0]);
        assert_eq!(cut(&[15, 12, 8, 2], 4), [0, 1, 2, 2]);
        assert_eq!(cut(&[15, 12, 8, 2], 1), [0; 4]);
    }

    proptest! {
        #[test]
        fn a_packet_changes_shards_once_for_each_on_its_way(
            costs in prop::collection::vec(0_u64..20, 1..20),
            most in 1_usize..6,
        ) {
            let parts = cut(&costs, most);
            let count = parts.iter().max().unwrap() + 1;
            prop_assert!(count <= most);
            prop_assert!((0..count).all(|part| parts.contains(&part)));
            let next = parts.iter().cycle().skip(1);
            let changes = parts.iter().zip(next).filter(|(part, next)| part != next).count();
            prop_assert!(changes <= count, "{parts:?}");
            // A cut that begins with the first cost is one of those that are tried.
            let largest = |parts: &[usize]| {
                let mut sums = vec![0; most];
                parts.iter().zip(&costs).for_each(|(part, cost)| sums[*part] += cost);
                sums.into_iter().max()
            };
            prop_assert!(largest(&parts) <= largest(&cut_turned(&costs, most as u64, 0)));
        }
    }
}
