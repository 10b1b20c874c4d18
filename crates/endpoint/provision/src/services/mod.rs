//! The services, and the table of their names.

mod agent;
mod mark;

use crate::demand::Demand;
use crate::grant::Grant;
use crate::refusal::Refusal;
use cutline_params::{Registry, RegistryError};
use cutline_text::Printable;
use std::fmt;
use std::path::PathBuf;

/// Default path of the socket of `cutlined`.
pub const DEFAULT_SOCKET: &str = "/run/cutline/cutlined.sock";

/// Access to a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// The socket of `cutlined`.
    pub socket: PathBuf,
}

impl Default for Access {
    fn default() -> Self {
        Self { socket: DEFAULT_SOCKET.into() }
    }
}

/// A reservation service.
pub trait Provisioner: fmt::Debug + Send + Sync {
    /// The name of the service.
    fn name(&self) -> &'static str;

    /// Requests a service for a flow. It waits only for this host's `cutlined`; [`Grant::wait`] waits for the network.
    ///
    /// # Errors
    /// An immediate refusal, with the reason.
    fn request(&self, demand: &Demand) -> Result<Grant, Refusal>;
}

/// A service: its name, its title, and the function that opens it.
pub trait ReservationService: fmt::Debug + Send + Sync {
    /// The name, in kebab-case.
    fn name(&self) -> &'static str;

    /// Returns the title, in a few words.
    fn title(&self) -> &'static str;

    /// Returns whether the network keeps a rate for the flow.
    fn is_reserved(&self) -> bool;

    /// Opens the service, which is reached as `access` specifies. Nothing is requested yet.
    fn open(&self, access: &Access) -> Box<dyn Provisioner>;
}

/// No service of this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("service = {}: allowed is {}", Printable(name), allowed.join(", "))]
pub struct UnknownService {
    /// The name that was given.
    pub name: String,
    /// The names of the existing services.
    pub allowed: Vec<&'static str>,
}

static OWN: [&dyn ReservationService; 3] = [&mark::Mark, &agent::Local, &agent::Rsvp];
static OTHERS: Registry<dyn ReservationService> = Registry::new(&["mark", "local", "rsvp"], &[]);

/// Adds a service of another crate for as long as the process runs.
///
/// # Errors
/// When a service has that name already, or the name is not in kebab-case.
pub fn register(service: Box<dyn ReservationService>) -> Result<(), RegistryError> {
    OTHERS.add(service.name(), &[], service)
}

/// Returns all services: the built-in ones, then the registered ones.
pub fn services() -> Vec<&'static dyn ReservationService> {
    OWN.into_iter().chain(OTHERS.all()).collect()
}

/// Opens the service of this name.
///
/// # Errors
/// When there is no service of this name; the error lists the existing ones.
pub fn open(name: &str, access: &Access) -> Result<Box<dyn Provisioner>, UnknownService> {
    let found = services().into_iter().find(|service| service.name() == name);
    found.map(|service| service.open(access)).ok_or_else(|| UnknownService {
        name: name.to_owned(),
        allowed: services().iter().map(|service| service.name()).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Flow, TransportProtocol};
    use cutline_units::Duration;

    fn demand() -> Demand {
        let address = |text: &str| text.parse().unwrap();
        let flow = Flow {
            transport: TransportProtocol::Tcp,
            source: address("10.0.0.1:1"),
            destination: address("10.0.0.2:2"),
        };
        Demand { flow, send: None, receive: None }
    }

    #[test]
    fn services_are_found_by_name() {
        for service in services() {
            assert_eq!(open(service.name(), &Access::default()).unwrap().name(), service.name());
        }
        let error = open("atm", &Access::default()).unwrap_err().to_string();
        assert_eq!(error, "service = atm: allowed is mark, local, rsvp");
    }

    #[test]
    fn marking_reserves_nothing_and_needs_no_agent() {
        let mut grant = open("mark", &Access::default()).unwrap().request(&demand()).unwrap();
        assert!(grant.is_complete() && grant.fd().is_none() && grant.event().is_none());
        grant.wait(Duration::ZERO).unwrap();
    }

    #[test]
    fn a_missing_agent_is_a_refusal_that_names_its_socket() {
        let access = Access { socket: "/nosuch/cutlined.sock".into() };
        for name in ["local", "rsvp"] {
            let refusal = open(name, &access).unwrap().request(&demand()).unwrap_err();
            assert!(refusal.to_string().contains("/nosuch/cutlined.sock"), "{refusal}");
        }
    }
}
