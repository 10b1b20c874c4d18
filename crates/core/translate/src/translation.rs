//! The whole translation: the one place where application, protocol and service come together.

use crate::application::ApplicationProfile;
use crate::baseline::Baseline;
use crate::decision::{Chosen, Decision, Decisions, Layer};
use crate::path::Path;
use crate::protocol::{Ends, Protocol, selection};
use crate::service::{self, Service, Traffic};
use crate::settings::{EndSystemSettings, NetworkSettings};
use crate::stream::Stream;
use cutline_params::{ParameterError, Parameters as _};
use cutline_quality::spec::{ConnectionSpecification, SpecParameter};
use std::sync::Arc;

/// Request for a translation.
#[derive(Clone, Debug, PartialEq)]
pub struct TranslationRequest {
    /// Requirements on both directions.
    pub specification: ConnectionSpecification,
    /// The protocol; `None`: the one that fits.
    pub protocol: Option<Protocol>,
    /// The service; `None`: a reservation for a protocol with one, else hints.
    pub service: Option<Service>,
    /// Properties of the path.
    pub path: Path,
    /// Measurements of this host and the path; `None` if there are none.
    pub baseline: Option<Arc<Baseline>>,
    /// Reasons for the specification; they come first among the decisions. Empty unless an application has
    /// been translated.
    pub reasons: Vec<Decision>,
}

/// The settings that a specification requests, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct Translation {
    /// Requirements on both directions.
    pub specification: ConnectionSpecification,
    /// The protocol.
    pub protocol: Protocol,
    /// The service of the network.
    pub service: Service,
    /// Settings of this host.
    pub end_system: EndSystemSettings,
    /// Marks and requests.
    pub network: NetworkSettings,
    /// Every setting with its reason, from the application to the network.
    pub decisions: Vec<Decision>,
    /// Demands that these settings cannot meet, whatever happens on the path.
    pub unmet: Vec<Unmet>,
}

/// A demand that cannot be met.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unmet {
    /// The direction: `send` or `receive`.
    pub direction: &'static str,
    /// The parameter.
    pub parameter: SpecParameter,
    /// Reason why the demand cannot be met.
    pub reason: String,
}

impl TranslationRequest {
    /// A request for a connection. Protocol and service are open, nothing is known of the path.
    pub fn new(specification: ConnectionSpecification) -> Self {
        Self {
            specification,
            protocol: None,
            service: None,
            path: Path::default(),
            baseline: None,
            reasons: Vec::new(),
        }
    }

    /// A request for an application that sends and receives alike.
    ///
    /// # Errors
    /// When a parameter of the application is not allowed.
    pub fn from_application(application: &ApplicationProfile) -> Result<Self, ParameterError> {
        let (spec, reasons) = application.specification()?;
        let both = ConnectionSpecification { send: spec.clone(), receive: spec, profile: None };
        Ok(Self { reasons, ..Self::new(both) })
    }
}

/// Translates the needs of an application into settings of its host and requests to the network.
///
/// # Errors
/// When a parameter of the path or of a specification was set in code to a value that is not allowed.
pub fn translate(request: &TranslationRequest) -> Result<Translation, ParameterError> {
    let TranslationRequest { specification, path, .. } = request;
    path.validate()?;
    specification.send.validate()?;
    specification.receive.validate()?;

    let mut log = Decisions(request.reasons.clone());
    let protocol = choose_protocol(request, &mut log);
    let service = choose_service(request, protocol, &mut log);
    let ends =
        Ends::new(protocol, &specification.send, &specification.receive, path, request.baseline.as_deref());
    let end_system = protocol.translator().settings(&ends, &mut log);
    let traffic = Traffic { ends, protocol, profile: specification.profile };
    let mut network = service.translator().settings(&traffic, &mut log);
    if protocol.is_reserved() && service != Service::Reservation {
        network.reservation = service::request(&traffic, &mut log);
    }
    Ok(Translation {
        specification: specification.clone(),
        protocol,
        service,
        end_system,
        network,
        decisions: log.0,
        unmet: unmet(protocol, &ends),
    })
}

/// The protocol that the request states, or the one that fits; with a reservation if that is requested.
fn choose_protocol(request: &TranslationRequest, log: &mut Decisions) -> Protocol {
    let wants_reservation = request.service == Some(Service::Reservation);
    let rule = selection::decide(&request.specification);
    let (found, reason) = match request.protocol {
        Some(protocol) => (protocol, "the caller states it"),
        None => (rule.protocol, rule.reason),
    };
    let protocol = if wants_reservation { found.reserved() } else { found };
    let reserved = if protocol == found { "" } else { "; a reservation is wanted" };
    let chosen = Chosen::set(protocol, "", format!("{reason}{reserved}"));
    log.take(Layer::Selection, "protocol", chosen).unwrap_or(protocol)
}

fn choose_service(request: &TranslationRequest, protocol: Protocol, log: &mut Decisions) -> Service {
    let (service, reason) = match request.service {
        Some(service) => (service, "the caller states it"),
        None if protocol.is_reserved() => (Service::Reservation, "the protocol comes with a reservation"),
        None => (Service::Hint, "routers that know hints keep to them, others treat the packets as unmarked"),
    };
    log.take(Layer::Selection, "service", Chosen::set(service, "", reason)).unwrap_or(service)
}

/// The demands that cannot be met.
fn unmet(protocol: Protocol, ends: &Ends<'_>) -> Vec<Unmet> {
    let directions = [("send", &ends.send), ("receive", &ends.receive)];
    let found = directions.into_iter().flat_map(|(direction, stream)| unmet_of(direction, stream, protocol));
    found.chain(beyond_the_host(protocol, ends)).collect()
}

/// The least rate to send, if this host and the path carried less when they were measured.
fn beyond_the_host(protocol: Protocol, ends: &Ends<'_>) -> Option<Unmet> {
    let (least, most) = ends.send.spec.min_throughput().zip(ends.measured?.ceiling(protocol.unreserved()))?;
    let reason =
        format!("it is {least}, and the most that this host has sent without loss is {most} (measured)");
    (least > most).then_some(Unmet { direction: "send", parameter: SpecParameter::MinRate, reason })
}

fn unmet_of(direction: &'static str, stream: &Stream<'_>, protocol: Protocol) -> Vec<Unmet> {
    let mut found = Vec::new();
    let mut add = |parameter, reason| found.push(Unmet { direction, parameter, reason });
    if stream.is_too_far() {
        let known = if stream.path.rtt.is_some() { "" } else { " if the round-trip time is as assumed" };
        let reason = format!("propagation alone takes {}{known}", stream.path.propagation());
        add(SpecParameter::MaxDelay, reason);
    }
    if let Some((least, path)) = stream.beyond_the_path() {
        add(SpecParameter::MinRate, format!("it is {least} with headers, and the path carries {path}"));
    }
    if !protocol.translator().is_complete() {
        if stream.spec.loss == Some(0.0) {
            add(SpecParameter::Loss, format!("{protocol} does not repeat lost data"));
        }
        if stream.spec.reordering == Some(false) {
            add(
                SpecParameter::Reordering,
                format!("{protocol} does not put messages in order: the receiver must"),
            );
        }
    }
    found
}
