//! Rates that reservations of RSVP hold on the interfaces of the host.

use cutline_flow::FlowSelector;
use cutline_manager::resources::CarrierKind;
use cutline_units::Rate;
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// Numbers of the protocols above IP.
pub const TCP: u8 = 6;
pub const UDP: u8 = 17;

/// Rates that reservations of RSVP hold on the interfaces of the host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReservedRates {
    /// All of them, by the name of the interface.
    pub interfaces: BTreeMap<String, Rate>,
    /// Reservations that hold the rate of one flow from this host, by the name of the interface and the flow's packets.
    pub flows: BTreeMap<String, BTreeMap<FlowSelector, Rate>>,
}

impl ReservedRates {
    /// Returns whether a reservation on an interface holds at least this rate for a flow.
    pub fn hold(&self, interface: &str, flow: &FlowSelector, rate: Rate) -> bool {
        self.flows.get(interface).and_then(|flows| flows.get(flow)).is_some_and(|held| *held >= rate)
    }
}

/// Number of the protocol above IP that carries a flow.
pub const fn protocol(carrier: CarrierKind) -> u8 {
    match carrier {
        CarrierKind::Tcp => TCP,
        CarrierKind::Datagrams => UDP,
    }
}

/// Selector of a flow's packets, as a reservation for this flow alone has it.
pub fn selector(carrier: CarrierKind, source: SocketAddr, destination: SocketAddr) -> FlowSelector {
    FlowSelector {
        protocol: Some(protocol(carrier)),
        destination_port: Some(destination.port()),
        source: Some(source.ip().to_canonical()),
        source_port: Some(source.port()),
        ..FlowSelector::to(destination.ip().to_canonical())
    }
}
