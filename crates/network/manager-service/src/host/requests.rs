//! Requests of sessions, and their answers.

use super::ManagedHost;
use crate::store::FlowPlace;
use cutline_allocation::protocol::{AllocationReply, AllocationRequest, FlowNeed};
use cutline_manager::FlowRoute;
use cutline_manager::feedback::FlowEdges;
use cutline_manager::resources::{
    AdmissionAnswer, Capacities, CarrierKind, ClientKey, CpuShare, FlowId, FlowRequest, InterfaceIndex,
    MOST_CPU, MOST_RATE, ResourceKind, Shortage, ShortageScope,
};
use cutline_units::{Instant, Rate};
use std::net::SocketAddr;

/// The most renewals of a client in a lease. Clients need four.
const RENEWALS: u64 = 16;
/// The unit of rates for which CPU time is stated, bit/s.
const GIGABIT: u128 = 1_000_000_000;

impl ManagedHost {
    /// Handles a request of a session; `hello` and `status` are handled elsewhere.
    pub fn handle(&mut self, now: Instant, key: ClientKey, request: &AllocationRequest) {
        match *request {
            AllocationRequest::Hello { .. } | AllocationRequest::Status {} => {}
            AllocationRequest::Admit { id, ref need } => self.admit(now, key, id, need),
            AllocationRequest::Change { id, desired_bps, minimum_bps, delay_ms, loss_percent } => {
                let edges = FlowEdges { delay: delay_ms, loss: loss_percent };
                self.change(now, key, id, (desired_bps, minimum_bps), edges);
            }
            AllocationRequest::Move { id, source } => self.move_flow(key, id, source),
            AllocationRequest::Report { id, report } => {
                if let Some(flow) = self.flow_of(key, id) {
                    self.manager.report(now, key, flow, &report.report());
                }
            }
            AllocationRequest::Missed { id, missed } => {
                if let Some(flow) = self.flow_of(key, id) {
                    self.missed.insert(flow, missed);
                }
            }
            AllocationRequest::Renew {} => {
                let Some(session) = self.sessions.get_mut(&key).filter(|its| now >= its.next_renewal) else {
                    return;
                };
                // A client with many flows could otherwise use all of the manager's time.
                session.next_renewal = now.saturating_add(self.spec.resources.lease / RENEWALS);
                for flow in session.flows.values() {
                    self.manager.renew(now, key, *flow);
                }
            }
            AllocationRequest::Release { id } => {
                if let Some(flow) = self.flow_of(key, id) {
                    self.manager.release(key, flow);
                    self.forget(flow);
                }
                self.replies.push_back((key, AllocationReply::Released { id }));
            }
        }
    }

    fn flow_of(&self, key: ClientKey, id: u64) -> Option<FlowId> {
        self.sessions.get(&key)?.flows.get(&id).copied()
    }

    fn refuse(&mut self, key: ClientKey, id: u64, reason: String) {
        self.replies.push_back((key, AllocationReply::Refused { id, reason }));
    }

    fn admit(&mut self, now: Instant, key: ClientKey, id: u64, need: &FlowNeed) {
        let Some(session) = self.sessions.get(&key) else { return };
        let user = session.user;
        if session.flows.contains_key(&id) {
            return self.refuse(
                key,
                id,
                format!("id = {id}: allowed is a number that no flow of the client has"),
            );
        }
        if let Some(why) = self.foreign_source(need.source) {
            return self.refuse(key, id, why);
        }
        let interface = self.interface_of(need);
        let (desired, minimum) = self.rates(need.carrier, interface, (need.desired_bps, need.minimum_bps));
        let is_reserved = interface.is_some_and(|index| self.is_held(index, need, desired));
        let request = FlowRequest {
            user,
            client: key,
            class: need.class,
            carrier: need.carrier,
            interface,
            is_reserved,
            desired,
            minimum,
            cpu: self.cpu(need.carrier, desired),
            priority: need.priority,
            weight: need.weight,
        };
        let route = self.path_of(need).map(|path| FlowRoute { path, edges: need.edges() });
        let answer = self.manager.request(now, request, route);
        match answer {
            Ok(answer) => {
                if let Some(flow) = answer.flow() {
                    let (source, destination) = (need.source, need.destination);
                    self.places.insert(flow, FlowPlace { key, id, source, destination });
                    if let Some(session) = self.sessions.get_mut(&key) {
                        session.flows.insert(id, flow);
                    }
                    self.touched.insert(flow);
                }
                self.answer(key, id, &answer, desired);
            }
            Err(error) => self.refuse(key, id, error.to_string()),
        }
    }

    fn change(&mut self, now: Instant, key: ClientKey, id: u64, rates: (Option<u64>, u64), edges: FlowEdges) {
        let Some(flow) = self.flow_of(key, id) else {
            return self.refuse(
                key,
                id,
                format!("id = {id}: allowed is the number of a flow that the client has"),
            );
        };
        let Some(FlowRequest { carrier, interface, is_reserved, .. }) =
            self.manager.resources().flow(flow).copied()
        else {
            return;
        };
        let (desired, minimum) = self.rates(carrier, interface, rates);
        if is_reserved {
            if let Some(shortage) = self.shortage_without_reservation(flow, desired, minimum) {
                let why = self.in_words(&shortage);
                return self.refuse(key, id, why);
            }
            let capacities = self.manager.resources().capacities().clone();
            // They are the present ones, which are allowed.
            let _is_charged = self.charge(capacities, Some((flow, desired)));
        }
        let cpu = self.cpu(carrier, desired);
        match self.manager.change(now, key, flow, (desired, minimum, cpu), edges) {
            Ok(answer) => {
                self.touched.insert(flow);
                self.answer(key, id, &answer, desired);
            }
            Err(error) => self.refuse(key, id, error.to_string()),
        }
    }

    /// Takes another source of a flow, whose connection was made again. The flow keeps its promise and its interface.
    fn move_flow(&mut self, key: ClientKey, id: u64, source: SocketAddr) {
        let Some(flow) = self.flow_of(key, id) else { return };
        if let Some(why) = self.foreign_source(source) {
            return self.refuse(key, id, why);
        }
        if let Some(place) = self.places.get_mut(&flow).filter(|place| place.source != source) {
            place.source = source;
            self.touched.insert(flow);
            self.kernel_classes.touch();
        }
    }

    fn answer(&mut self, key: ClientKey, id: u64, answer: &AdmissionAnswer, desired: Rate) {
        let reply = match answer {
            AdmissionAnswer::Admitted { .. } => {
                AllocationReply::Admitted { id, rate_bps: desired.as_bps(), reduced: None }
            }
            AdmissionAnswer::Reduced { rate, shortage, .. } => {
                let reduced = Some(self.in_words(shortage));
                AllocationReply::Admitted { id, rate_bps: rate.as_bps(), reduced }
            }
            AdmissionAnswer::Refused(shortage) => {
                AllocationReply::Refused { id, reason: self.in_words(shortage) }
            }
        };
        self.replies.push_back((key, reply));
    }

    /// A shortage in words, with the name of an interface.
    fn in_words(&self, shortage: &Shortage) -> String {
        let Shortage { resource, scope, needed, left } = shortage;
        let whose = match scope {
            ShortageScope::Host => "",
            ShortageScope::User => "the user's share of ",
        };
        let unit = resource.unit();
        format!("{whose}{} is exhausted: {needed} {unit} needed, {left} left", self.name_of(*resource))
    }

    /// A resource in words.
    pub fn name_of(&self, resource: ResourceKind) -> String {
        match resource {
            ResourceKind::Interface(index) => {
                let name = self.interfaces.get(&index).cloned();
                format!("interface {}", name.unwrap_or_else(|| index.to_string()))
            }
            other => other.to_string(),
        }
    }

    /// The highest useful rate, at most the host's capacity, and the minimum.
    fn rates(
        &self,
        carrier: CarrierKind,
        interface: Option<InterfaceIndex>,
        (desired, minimum): (Option<u64>, u64),
    ) -> (Rate, Rate) {
        let Capacities { tcp, datagrams, combined, interfaces, .. } = self.manager.resources().capacities();
        let own = match carrier {
            CarrierKind::Tcp => tcp,
            CarrierKind::Datagrams => datagrams,
        };
        let of_interface = interface.and_then(|index| interfaces.get(&index)).map(|its| its.rate);
        let ceiling = [*own, *combined, of_interface].into_iter().flatten().fold(MOST_RATE, Rate::min);
        let minimum = Rate::from_bps(minimum);
        let desired = desired.map_or(ceiling, |desired| Rate::from_bps(desired).min(ceiling.max(minimum)));
        (desired.max(minimum), minimum)
    }

    /// CPU time of a flow, if it is limited.
    fn cpu(&self, carrier: CarrierKind, rate: Rate) -> CpuShare {
        if self.spec.capacities.cpu.is_none() {
            return CpuShare::ZERO;
        }
        let [tcp, datagrams] = self.spec.cpu_per_gbit;
        let cost = match carrier {
            CarrierKind::Tcp => tcp,
            CarrierKind::Datagrams => datagrams,
        };
        let millionths = u128::from(cost.as_millionths()) * u128::from(rate.as_bps()) / GIGABIT;
        CpuShare::from_millionths(u64::try_from(millionths).unwrap_or(u64::MAX)).min(MOST_CPU)
    }
}
