//! The end of a run: turns the parts of a network into an outcome.

use super::parts::Parts;
use crate::fifo_link::LinkCounts;
use crate::flow;
use crate::measure::Window;
use crate::outcome::{BacklogOutcome, FlowOutcome, LinkOutcome, SimulationOutcome, Work};
use crate::queued_link::QueuedLink;
use crate::route::{EventKind, Hop};
use cutline_units::Instant;

impl Parts {
    /// Completes the measures and returns the outcome; `work` is the engine's part of the accounting.
    pub(super) fn settle(mut self, work: Work) -> SimulationOutcome {
        let links = self.all_links().map(|link| self.settle_link(link)).collect();
        self.settle_flows(links, work)
    }

    /// Completes the measures of the flows and returns the outcome with the links' measures.
    pub(super) fn settle_flows(self, links: Vec<LinkOutcome>, mut work: Work) -> SimulationOutcome {
        // The outcome has as much memory as they had.
        drop((self.fifo_links, self.queued_links, self.routes, self.waiting));
        let end = Instant::ZERO + self.settings.duration;
        (work.hops, work.simulated) = (self.hops, self.settings.duration);
        let groups = self.delays;
        let mut own_delays = self.own_delays;
        let (mut background, mut series) = (self.background, self.series);
        background.resize_with(self.sending.len(), || None);
        series.resize_with(self.sending.len(), || None);
        let ends = self.sending.iter().zip(&self.receiving);
        let flows: Vec<FlowOutcome> = ends
            .zip(background.into_iter().zip(series))
            .map(|((sending, receiving), (background, series))| {
                let own = (receiving.delays as usize).checked_sub(groups.len());
                let delays = own.map(|index| std::mem::take(&mut own_delays[index]));
                let delays = delays.map(|delays| Box::new(delays.finish(&receiving.record)));
                flow::finish(sending, receiving, background, series, delays, end)
            })
            .collect();
        for totals in flows.iter().map(|flow| flow.record.totals) {
            work.data_packets += totals.sent;
            work.under_way += totals.sent - totals.received - totals.dropped;
        }
        SimulationOutcome { flows, groups, links, work }
    }

    /// Completes the measures of a link, by its [place](Parts::all_links).
    pub(super) fn settle_link(&mut self, link: Hop) -> LinkOutcome {
        let (window, end) = (self.settings.window, Instant::ZERO + self.settings.duration);
        match link.kind() {
            EventKind::QueuedLink => finish_queued_link(&mut self.queued_links[link.index()], end, window),
            _ => self.settle_fifo_link(link.index(), end, window),
        }
    }

    fn settle_fifo_link(&mut self, index: usize, end: Instant, window: Window) -> LinkOutcome {
        let dropped = self.fifo_drops.get(&index).copied().unwrap_or(0);
        let fifo_link = &mut self.fifo_links[index];
        let counts = fifo_link.counts(&self.fifo_classes[fifo_link.class_index()], &self.sizes, dropped);
        let queue = fifo_link.finish(&mut self.waiting, end, window);
        let backlog = queue.as_ref().map(|queue| BacklogOutcome::from_meter(&queue.meter, window));
        let waited = queue.map(|queue| Box::new(queue.waits));
        // A FIFO link does not record the packets that did not wait.
        let recorded = waited.as_ref().map_or(0, |waits| waits.count());
        LinkOutcome {
            counts,
            utilisation: utilisation(&counts, window),
            backlog: backlog.unwrap_or_default(),
            waited,
            unwaited: counts.sent.saturating_sub(recorded),
            probability: None,
            impairment: None,
            series: None,
        }
    }
}

fn finish_queued_link(queued_link: &mut QueuedLink, end: Instant, window: Window) -> LinkOutcome {
    queued_link.finish(end);
    LinkOutcome {
        counts: queued_link.counts,
        utilisation: match &mut queued_link.deliveries {
            None => utilisation(&queued_link.counts, window),
            Some(deliveries) => deliveries.utilisation(end),
        },
        backlog: BacklogOutcome::from_meter(&queued_link.meter, window),
        waited: Some(Box::new(std::mem::take(&mut queued_link.waits))),
        unwaited: 0,
        probability: queued_link.probability.mean_and_deviation(),
        impairment: queued_link.impairment.as_ref().map(|impaired| impaired.counts),
        series: queued_link.take_series(),
    }
}

fn utilisation(counts: &LinkCounts, window: Window) -> f64 {
    counts.busy.as_secs_f64() / window.length().as_secs_f64()
}
