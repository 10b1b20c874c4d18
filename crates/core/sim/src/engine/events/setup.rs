//! Setting up the event loop: flows, agents and the first events.

use super::EventLoop;
use super::agents::Agents;
use crate::adaptive::{AdaptiveHint, HintKeeper, Reporter};
use crate::agent::Address;
use crate::calendar::Calendar;
use crate::engine::SimulationSettings;
use crate::engine::endpoints::Endpoints as _;
use crate::engine::parts::Parts;
use crate::external::{External, ExternalEndpoint};
use crate::flow::{Background, Receiving, Sending};
use crate::id::LinkId;
use crate::network::{FlowSpec, Network, NetworkError};
use crate::packet::{Packet, WideHeaders};
use crate::queued_link::QueuedLink;
use crate::route::{EventKind, Hop};
use crate::watch::Watch;
use cutline_units::Instant;

impl EventLoop {
    pub(in crate::engine) fn new(
        network: &Network,
        settings: &SimulationSettings,
    ) -> Result<Self, NetworkError> {
        let mut events = Self {
            calendar: Calendar::new(Packet::NONE),
            wide_headers: WideHeaders::default(),
            parts: Parts::new(network, settings)?,
            watch: Watch::default(),
            external: External::default(),
            agents: Agents::default(),
        };
        events.watch_links(network);
        events.schedule_changes();
        for (id, spec) in network.flows().iter().enumerate() {
            if network.has_external_endpoints() {
                events.add_external_flow(spec);
            } else {
                events.parts.add_flow(spec, spec.adaptive.is_some() || network.is_observed(id));
                if let Some(adaptive) = &spec.adaptive {
                    events.add_hint_agents(network, spec, adaptive);
                }
                events.arm_app(id);
            }
        }
        events.add_agents(network);
        Ok(events)
    }

    fn watch_links(&mut self, network: &Network) {
        for (id, hop) in self.parts.links.iter().enumerate() {
            if matches!(hop.kind(), EventKind::QueuedLink | EventKind::Watched) {
                let id = LinkId(id as u32);
                self.watch.add_link(id, network.is_watched(id));
            }
        }
    }

    /// Schedules the changes of rates, and the end of the first interval.
    fn schedule_changes(&mut self) {
        for change in 0..self.parts.rate_changes.len() {
            let (at, ..) = self.parts.rate_changes[change];
            self.schedule_event(at, Hop::new(EventKind::RateChange, change));
        }
        if self.parts.queued_links.iter().any(QueuedLink::has_series) {
            let first = Instant::ZERO + self.parts.settings.interval;
            self.schedule_event(first, Hop::new(EventKind::Interval, 0));
        }
    }

    /// Adds a flow with external endpoints: routes for its packets, and the measures.
    fn add_external_flow(&mut self, spec: &FlowSpec) {
        let parts = &mut self.parts;
        let flow = parts.sending.len();
        let end = |is_data| Hop::new(EventKind::External, ExternalEndpoint { flow, is_data }.index());
        let route = parts.add_data_route(spec, end(true));
        let control = parts.add_data_route(spec, end(false));
        let back = parts.add_return_route(spec, end(false));
        let delays = parts.delays_of(spec);
        self.external.routes.push([control, back]);
        parts.sending.push(Sending::new(spec, Instant::ZERO, route));
        parts.receiving.push(Receiving::external(spec, delays));
        // Its application is never called.
        let random = parts.streams.stream(&spec.name, "app");
        parts.add_series(spec);
        parts.background.push(Some(Box::new(Background::new(spec, Instant::ZERO, random))));
    }

    /// Adds the two agents that adapt a flow's hint to the reports of its receiver. The reports take the links of the flow's
    /// acknowledgements.
    fn add_hint_agents(&mut self, network: &Network, spec: &FlowSpec, adaptive: &AdaptiveHint) {
        let id = self.parts.sending.len() - 1;
        let start = spec.start_with(self.parts.streams);
        let (first, last) = (spec.return_route[0], spec.return_route[spec.return_route.len() - 1]);
        let port = AdaptiveHint::port(id);
        let sink = Address { node: network.link(first).from, port };
        let source = Address { node: network.link(last).to, port };
        let random = self.parts.streams.stream(&spec.name, "hint");
        let reporter = self.add_agent(sink, Box::new(Reporter::new(id, source, adaptive.every, start)));
        let keeper = self.add_agent(source, Box::new(HintKeeper::new(id, adaptive, start, random)));
        self.add_agent_route(reporter, keeper, &spec.return_route);
        self.arm_agent(reporter);
    }
}
