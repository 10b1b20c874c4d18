//! Traffic control at the ends of the links: the rate and the queue of each, reservations, and counters.
//!
//! All of it is the kernel's ([`cutline_netlink::traffic_control`]). Links without reservations have the same discipline, so
//! that cases with and without differ in the reservations alone.

use super::Signalling;
use super::agents::{AgentInterface, Agents, Shared};
use super::network::{Map, Nodes};
use crate::LabError;
use cutline_aqm::Limit;
use cutline_flow::{FlowSelector, TrafficSpec};
use cutline_netlink::traffic_control::ShaperOptions;
use cutline_netlink::{HtbShaper, Interface};
use cutline_provision::Access;
use cutline_scenario::spec::{GraphLinkSpec, GraphSpec};
use cutline_sim::measure::QueueInterval;
use cutline_sim::{BacklogOutcome, LinkCounts, LinkOutcome};
use cutline_sys::{lock, now};
use cutline_units::{Bytes, Duration, Instant, Rate};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// The shapers of all links, in the order of the scenario's.
#[derive(Debug)]
pub struct LinkShapers {
    ends: Vec<Shared>,
    /// The agents that reserve, if there are any.
    agents: Option<Agents>,
}

/// The kernel's counters at the end of a link, all classes together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Time of the reading, which may be later than the end of the interval.
    pub at: Instant,
    pub bytes: u64,
    pub packets: u64,
    pub drops: u64,
    pub backlog_bytes: u64,
    pub backlog_packets: u64,
}

impl LinkShapers {
    /// Sets the rate and queue of each link, and with `signalling` each node an agent.
    ///
    /// # Errors
    /// When the kernel has no such discipline, or the process may not.
    pub fn install(nodes: &Nodes, graph: &GraphSpec, signalling: Signalling) -> Result<Self, LabError> {
        let mut agents = (signalling == Signalling::Rsvp).then(Agents::new).transpose()?;
        let mut ends: BTreeMap<usize, Shared> = BTreeMap::new();
        for node in &graph.nodes {
            let links: Vec<(usize, &GraphLinkSpec)> =
                graph.links.iter().enumerate().filter(|(_, link)| link.from == node.name).collect();
            let install_all =
                || links.iter().map(|(_, link)| install(link)).collect::<Result<Vec<_>, LabError>>();
            let shapers = nodes.get(&node.name).within(install_all)??;
            if let Some(agents) = &mut agents {
                let interface = |((_, link), shaper): (&(usize, &GraphLinkSpec), &Shared)| AgentInterface {
                    name: Map::interface(&link.to),
                    rate: link.rate,
                    shaper: Arc::clone(shaper),
                };
                let interfaces: Vec<AgentInterface> = links.iter().zip(&shapers).map(interface).collect();
                agents.start(nodes, &node.name, &interfaces)?;
            }
            ends.extend(links.iter().map(|(index, _)| *index).zip(shapers));
        }
        Ok(Self { ends: ends.into_values().collect(), agents })
    }

    /// Returns the reserved rate of each link, as on the wire.
    #[cfg(test)]
    pub fn reserved(&self) -> Vec<Rate> {
        self.ends.iter().map(|shaper| lock(shaper).reserved()).collect()
    }

    /// Returns the access of a node's applications to reservations; `None` without signalling.
    pub fn access(&self, node: &str) -> Option<Access> {
        self.agents.as_ref().map(|agents| agents.access(node))
    }

    /// Reserves for the packets of a filter on these links.
    ///
    /// # Errors
    /// When a link has not enough left.
    pub fn reserve(
        &mut self,
        links: &[usize],
        traffic: &TrafficSpec,
        filter: FlowSelector,
    ) -> Result<(), LabError> {
        for link in links {
            lock(&self.ends[*link]).add(traffic, &[filter])?;
        }
        Ok(())
    }

    /// Reads the counters of all links.
    ///
    /// # Errors
    /// When the kernel cannot be queried.
    pub fn counted(&mut self) -> Result<Vec<Counted>, LabError> {
        let read = |shaper: &Shared| {
            let mut shaper = lock(shaper);
            let mut sum = Counted { at: now(), ..Counted::default() };
            let best_effort = shaper.best_effort()?;
            for class in shaper.counters()?.values().chain([&best_effort]) {
                sum.bytes += class.bytes;
                sum.packets += u64::from(class.packets);
                sum.drops += u64::from(class.drops);
                sum.backlog_bytes += u64::from(class.backlog);
                sum.backlog_packets += u64::from(class.waiting);
            }
            Ok(sum)
        };
        self.ends.iter().map(read).collect()
    }
}

/// Sets the rate and queue of the end of a link, in the namespace of the calling thread.
fn install(link: &GraphLinkSpec) -> Result<Shared, LabError> {
    let interface = Interface::named(&Map::interface(&link.to))?;
    let options = ShaperOptions { best_effort_delay: queue_delay(link), ..ShaperOptions::default() };
    Ok(Arc::new(Mutex::new(HtbShaper::install(&interface, link.rate, options)?)))
}

/// Returns the waiting time of the last packet in a full queue.
fn queue_delay(link: &GraphLinkSpec) -> Duration {
    let Limit::Bytes(bytes) = link.queue.limit else { unreachable!("other queues have been refused") };
    link.rate.transmission_time(Bytes::new(bytes))
}

/// The counters of a link over a run: one reading at the end of each interval.
#[derive(Clone, Debug, Default)]
pub struct LinkSamples(pub Vec<Counted>);

impl LinkSamples {
    /// Returns the measurements of a link. `window` are the numbers of the measured intervals, which are of
    /// this width.
    pub fn outcome(&self, rate: Rate, width: Duration, window: std::ops::Range<usize>) -> LinkOutcome {
        let since = |before: Option<&Counted>, now: &Counted| {
            let before = before.copied().unwrap_or_default();
            let [sent, sent_bytes, dropped] = [
                now.packets.saturating_sub(before.packets),
                now.bytes.saturating_sub(before.bytes),
                now.drops.saturating_sub(before.drops),
            ];
            let (arrived, backlog) = (sent + dropped + now.backlog_packets, before.backlog_packets);
            QueueInterval {
                backlog_packets: now.backlog_packets as u32,
                backlog_bytes: now.backlog_bytes,
                arrived: arrived.saturating_sub(backlog),
                dropped,
                sent,
                sent_bytes,
                ..QueueInterval::default()
            }
        };
        let before = |index: usize| index.checked_sub(1).and_then(|before| self.0.get(before));
        let series: Vec<QueueInterval> =
            self.0.iter().enumerate().map(|(index, now)| since(before(index), now)).collect();
        let measured = series.get(window.start..window.end.min(series.len())).unwrap_or_default();
        let sum = |of: fn(&QueueInterval) -> u64| measured.iter().map(of).sum::<u64>();
        let backlogs: Vec<_> = measured.iter().map(|one| (one.backlog_packets, one.backlog_bytes)).collect();
        let (sent_bytes, dropped) = (sum(|one| one.sent_bytes), sum(|one| one.dropped));
        let end = window.start + measured.len();
        let begun = before(window.start).map(|reading| reading.at);
        let elapsed = match (begun, before(end)) {
            (Some(begun), Some(last)) if last.at > begun => last.at.saturating_since(begun),
            // There was no reading when the run began.
            _ => width * measured.len().max(1) as u64,
        };
        LinkOutcome {
            counts: LinkCounts {
                arrived: sum(|one| one.arrived),
                dropped,
                overflowed: dropped,
                marked: 0,
                sent: sum(|one| one.sent),
                sent_bytes,
                busy: rate.transmission_time(Bytes::new(sent_bytes)),
            },
            utilisation: sent_bytes as f64 * 8.0 / (rate.as_bps() as f64 * elapsed.as_secs_f64()),
            backlog: BacklogOutcome::from_samples(&backlogs),
            // The kernel does not report the wait of each packet.
            waited: None,
            unwaited: 0,
            probability: None,
            impairment: None,
            series: Some(series),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_difference_of_two_readings_is_an_interval() {
        // The second reading in the window came 100 ms late.
        let counted = |at_ms, bytes, packets, drops, backlog_packets| Counted {
            at: Instant::ZERO + Duration::from_millis(at_ms),
            bytes,
            packets,
            drops,
            backlog_bytes: 1000 * backlog_packets,
            backlog_packets,
        };
        let samples = LinkSamples(vec![
            counted(500, 1000, 1, 0, 0),
            counted(1000, 11_000, 11, 0, 4),
            counted(1600, 61_000, 61, 2, 6),
            counted(2000, 61_000, 61, 2, 0),
        ]);
        let outcome = samples.outcome(Rate::from_kbps(1000), Duration::from_millis(500), 1..3);
        let counts = outcome.counts;
        assert_eq!((counts.sent, counts.sent_bytes, counts.dropped), (60, 60_000, 2));
        // 10 + 4 waiting, then 50 + 2 dropped + 6 waiting that are not the 4 from before.
        assert_eq!(counts.arrived, 14 + 54);
        assert!((outcome.utilisation - 480.0 / 1100.0).abs() < 1e-9, "{}", outcome.utilisation);
        let backlog = outcome.backlog;
        assert_eq!((backlog.mean_packets, backlog.max_packets, backlog.max_bytes), (5.0, 6, 6000));
        assert_eq!(outcome.series.unwrap().len(), 4);
    }
}
