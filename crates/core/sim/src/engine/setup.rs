//! Setting up a simulation: turns a network into arrays.

use super::agents::Agents;
use super::{Simulation, SimulationSettings};
use crate::adaptive::{AdaptiveHint, HintKeeper, Reporter};
use crate::agent::Address;
use crate::calendar::Calendar;
use crate::deliveries::DeliveryClock;
use crate::external::{External, ExternalEndpoint};
use crate::fifo_link::{FifoClass, FifoLink};
use crate::flow::{Background, Receiving, Sending};
use crate::id::LinkId;
use crate::impairment::Impairment;
use crate::measure::DelayRecord;
use crate::network::{Distributions, FlowSpec, LinkSpec, Network, NetworkError};
use crate::packet::{Packet, WideHeaders};
use crate::queued_link::{Impaired, QueuedLink};
use crate::route::{EventKind, Hop, Routes};
use crate::transmitter::Transmitter;
use crate::watch::Watch;
use cutline_aqm::{AqmSpec, QueueSpec};
use cutline_units::{Instant, Streams};
use std::sync::Arc;

impl Simulation {
    pub(super) fn set_up(network: &Network, settings: &SimulationSettings) -> Result<Self, NetworkError> {
        let streams = Streams::new(settings.seed);
        let flows = network.flows();
        let hops = flows.iter().map(|flow| flow.route.len() + flow.return_route.len() + 2).sum();
        let mut simulation = Self {
            calendar: Calendar::new(Packet::NONE),
            wide_headers: WideHeaders::default(),
            routes: Routes::with_capacity(hops),
            fifo_links: Vec::with_capacity(network.links().iter().filter(|link| is_fifo_link(link)).count()),
            fifo_classes: Vec::new(),
            queued_links: Vec::new(),
            links: Vec::with_capacity(network.links().len()),
            sending: Vec::with_capacity(flows.len()),
            receiving: Vec::with_capacity(flows.len()),
            background: Vec::with_capacity(flows.len()),
            delays: vec![DelayRecord::default(); network.groups().len()],
            groups: network.groups().len(),
            rate_changes: Vec::new(),
            settings: *settings,
            hops: 0,
            watch: Watch::default(),
            external: External::default(),
            agents: Agents::default(),
            streams,
        };
        simulation.add_links(network, streams)?;
        for spec in flows {
            if network.has_external_endpoints() {
                simulation.add_external_flow(spec, streams);
            } else {
                simulation.add_flow(network, spec, streams);
            }
        }
        simulation.add_agents(network);
        Ok(simulation)
    }

    fn add_links(&mut self, network: &Network, streams: Streams) -> Result<(), NetworkError> {
        let fed_by_one_link = network.fed_by_one_link();
        for (id, spec) in network.links().iter().enumerate() {
            let watched = network.is_watched(LinkId(id as u32));
            let has_cells = network.cells(LinkId(id as u32)).is_some();
            let hop = if is_fifo_link(spec) && !watched && !has_cells {
                let kind = if fed_by_one_link[id] { EventKind::FoldedFifoLink } else { EventKind::FifoLink };
                Hop::new(kind, self.add_fifo_link(spec))
            } else {
                let kind = if watched { EventKind::Watched } else { EventKind::QueuedLink };
                Hop::new(kind, self.add_queued_link(network, LinkId(id as u32), streams)?)
            };
            self.links.push(hop);
        }
        if self.queued_links.iter().any(QueuedLink::has_series) {
            let handle = self.calendar.allocate();
            let first = Instant::ZERO + self.settings.interval;
            self.calendar.schedule(first, handle, Hop::new(EventKind::Interval, 0).tag());
        }
        Ok(())
    }

    fn add_fifo_link(&mut self, spec: &LinkSpec) -> usize {
        let (rate, delay, limit) = (spec.rate, spec.delay, spec.queue.limit);
        // Starts with the last one, because equal links of a network usually follow each other.
        let found = self.fifo_classes.iter().rposition(|class| class.is(rate, delay, limit));
        let class = found.unwrap_or_else(|| {
            self.fifo_classes.push(FifoClass::new(rate, delay, limit));
            self.fifo_classes.len() - 1
        });
        self.fifo_links.push(FifoLink::new(class as u32));
        self.fifo_links.len() - 1
    }

    fn add_queued_link(
        &mut self,
        network: &Network,
        id: LinkId,
        streams: Streams,
    ) -> Result<usize, NetworkError> {
        let (spec, name) = (network.link(id), network.link_name(id));
        let index = self.queued_links.len();
        for &(at, rate) in &spec.rate_changes {
            let handle = self.calendar.allocate();
            let change = Hop::new(EventKind::RateChange, self.rate_changes.len());
            self.calendar.schedule(at, handle, change.tag());
            self.rate_changes.push((index, rate));
        }
        let random = streams.stream(&name, "drop");
        let queue = spec.queue.build().map_err(|error| NetworkError::Queue { link: name, error })?;
        let SimulationSettings { window, .. } = self.settings;
        let watched = network.is_watched(id);
        self.watch.add_link(id, watched);
        let free = Hop::new(if watched { EventKind::WatchedFree } else { EventKind::LinkFree }, index);
        let transmitter = Transmitter::new(spec.rate, &spec.rate_changes);
        let mut queued_link =
            QueuedLink::new(queue, random, transmitter, spec.delay, window, spec.series, free);
        queued_link.deliveries =
            spec.deliveries.as_ref().map(|record| Box::new(DeliveryClock::new(Arc::clone(record), window)));
        queued_link.pass_on = spec.pass_on;
        queued_link.cells = network.cells(id).cloned();
        if let Some(params) = &spec.impairment {
            let link = network.link_name(id);
            let model = params.validate_unit(network.cells(id).is_some());
            let model = model.and_then(|()| Impairment::new(params, spec.delay, streams, &link));
            let model = model.map_err(|error| NetworkError::Impairment { link, error })?;
            queued_link.impairment = Some(Impaired::new(model, params.unit, network.cells(id)));
        }
        self.queued_links.push(queued_link);
        Ok(index)
    }

    fn add_flow(&mut self, network: &Network, spec: &FlowSpec, streams: Streams) {
        let id = self.sending.len();
        let start = spec.start_with(streams);
        let random = streams.stream(&spec.name, "app");
        let route = self.add_data_route(spec, Hop::new(EventKind::Sink, id));
        let return_route = self.add_return_route(spec, Hop::new(EventKind::Source, id));
        let delays = self.delays_of(spec);
        self.sending.push(Sending::new(spec, start, route));
        self.receiving.push(Receiving::new(spec, return_route, delays));
        let observed = spec.adaptive.is_some() || network.is_observed(id);
        self.receiving[id].is_noted |= observed;
        let mut background = Background::new(spec, start, random, self.settings.interval);
        background.observed = observed.then(Box::default);
        self.background.push(background);
        if let Some(adaptive) = &spec.adaptive {
            self.add_hint_agents(network, spec, adaptive, start);
        }
        self.arm_app(id);
    }

    /// Adds a flow with external endpoints: routes for its packets, and the measures.
    fn add_external_flow(&mut self, spec: &FlowSpec, streams: Streams) {
        let flow = self.sending.len();
        let end = |is_data| Hop::new(EventKind::External, ExternalEndpoint { flow, is_data }.index());
        let route = self.add_data_route(spec, end(true));
        let control = self.add_data_route(spec, end(false));
        let back = self.add_return_route(spec, end(false));
        let delays = self.delays_of(spec);
        self.external.routes.push([control, back]);
        self.sending.push(Sending::new(spec, Instant::ZERO, route));
        self.receiving.push(Receiving::external(spec, delays));
        // Its application is never called.
        let random = streams.stream(&spec.name, "app");
        self.background.push(Background::new(spec, Instant::ZERO, random, self.settings.interval));
    }

    /// Adds the two agents that adapt a flow's hint to the reports of its receiver. The reports take the links of the flow's
    /// acknowledgements.
    fn add_hint_agents(
        &mut self,
        network: &Network,
        spec: &FlowSpec,
        adaptive: &AdaptiveHint,
        start: Instant,
    ) {
        let id = self.background.len() - 1;
        let (first, last) = (spec.return_route[0], spec.return_route[spec.return_route.len() - 1]);
        let port = AdaptiveHint::port(id);
        let sink = Address { node: network.link(first).from, port };
        let source = Address { node: network.link(last).to, port };
        let random = self.streams.stream(&spec.name, "hint");
        let reporter = self.add_agent(sink, Box::new(Reporter::new(id, source, adaptive.every, start)));
        let keeper = self.add_agent(source, Box::new(HintKeeper::new(id, adaptive, start, random)));
        self.add_agent_route(reporter, keeper, &spec.return_route);
        self.arm_agent(reporter);
    }

    /// Returns the index of the record of a flow's delays.
    fn delays_of(&mut self, spec: &FlowSpec) -> u32 {
        match spec.distributions {
            Distributions::PerGroup => spec.group.0,
            Distributions::PerFlow => {
                self.delays.push(DelayRecord::default());
                self.delays.len() as u32 - 1
            }
        }
    }

    /// Adds the way of a flow's data, from its host.
    fn add_data_route(&mut self, spec: &FlowSpec, end: Hop) -> u32 {
        let start = self.add_route(&spec.route, end);
        if let Some(host) = spec.host {
            self.routes.name_host(start, true, host);
        }
        start
    }

    /// Adds the way of a flow's acknowledgements, to its host.
    fn add_return_route(&mut self, spec: &FlowSpec, end: Hop) -> u32 {
        let start = self.add_route(&spec.return_route, end);
        if let Some(host) = spec.host {
            self.routes.name_host(start, false, host);
        }
        start
    }

    pub(super) fn add_route(&mut self, route: &[LinkId], end: Hop) -> u32 {
        self.routes.add(route.iter().map(|link| self.links[link.0 as usize]), end)
    }
}

/// Returns whether a link has a plain drop-tail queue, a constant rate, no series, no change of hints and no impairment, so
/// that it can be simulated as a FIFO link.
fn is_fifo_link(link: &LinkSpec) -> bool {
    is_drop_tail(&link.queue)
        && link.rate_changes.is_empty()
        && link.deliveries.is_none()
        && link.pass_on.is_none()
        && link.impairment.is_none()
        && !link.series
}

fn is_drop_tail(queue: &QueueSpec) -> bool {
    matches!(queue.aqm, AqmSpec::DropTail(_)) && queue.tsq.is_none()
}
