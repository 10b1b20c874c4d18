//! Items that a scenario chooses by name: AQMs, transports, sources of traffic.

use crate::ParameterDocument;
use cutline_aqm::registry::AqmDescription;
use cutline_params::{Parameter, ParameterValue};
use cutline_transport::app::ApplicationDescription;
use cutline_transport::endpoint::{Defaults, TransportDescription, TransportParams};
use cutline_transport::tcp::ControlDescription;
use schemars::JsonSchema;
use serde::Serialize;

/// An AQM, or TSQ, and its parameters.
#[derive(Serialize, JsonSchema)]
pub struct AqmDocument {
    /// The name in a scenario.
    name: &'static str,
    /// The title.
    title: &'static str,
    /// The paper or standard that defines the algorithm.
    source: &'static str,
    /// True if TSQ works on top of the algorithm.
    takes_tsq: bool,
    /// The parameters.
    parameters: Vec<ParameterDocument>,
}

/// All AQMs, and TSQ.
#[derive(Serialize, JsonSchema)]
pub struct AqmList(pub Vec<AqmDocument>);

/// A transport and its parameters.
#[derive(Serialize, JsonSchema)]
pub struct TransportDocument {
    /// The name in a scenario.
    name: &'static str,
    /// The title.
    title: &'static str,
    /// The standards that define the transport.
    source: &'static str,
    /// True if every byte is delivered, in order.
    reliable: bool,
    /// True if the sender adapts its rate.
    adapts: bool,
    /// The parameters.
    parameters: Vec<ParameterDocument>,
    /// The congestion controls that a scenario can choose; empty if the transport has no choice.
    congestion_controls: Vec<ControlDocument>,
}

/// A congestion control and its parameters.
#[derive(Serialize, JsonSchema)]
pub struct ControlDocument {
    /// The name in a scenario.
    name: &'static str,
    /// The title.
    title: &'static str,
    /// The paper or standard that defines the congestion control.
    source: &'static str,
    /// True if the response to marks is proportional to their share. Otherwise a mark counts as a loss, or not at all.
    scalable: bool,
    /// True if the control sets a pacing rate from samples of the delivery rate. It then turns on `sack` and `rack`.
    paced: bool,
    /// The parameters in addition to those of the transport.
    parameters: Vec<ParameterDocument>,
}

/// All transports.
#[derive(Serialize, JsonSchema)]
pub struct TransportList(pub Vec<TransportDocument>);

/// A source of traffic and its parameters.
#[derive(Serialize, JsonSchema)]
pub struct ApplicationDocument {
    /// The name in a scenario.
    name: &'static str,
    /// The title.
    title: &'static str,
    /// The paper or standard that defines the source; empty if there is none.
    source: &'static str,
    /// True if the source waits until every byte is delivered, and so needs a reliable transport.
    waits_for_delivery: bool,
    /// True if the supply of data is unlimited.
    endless: bool,
    /// The parameters.
    parameters: Vec<ParameterDocument>,
}

/// All sources of traffic.
#[derive(Serialize, JsonSchema)]
pub struct ApplicationList(pub Vec<ApplicationDocument>);

impl From<&AqmDescription> for AqmDocument {
    fn from(about: &AqmDescription) -> Self {
        let &AqmDescription { name, title, source, takes_tsq, ref parameters } = about;
        Self { name, title, source, takes_tsq, parameters: documents(parameters, &[]) }
    }
}

impl TransportDocument {
    /// Creates the document of a transport with the congestion controls among which it has a choice.
    pub fn new(about: &TransportDescription, controls: &[ControlDescription]) -> Self {
        let &TransportDescription { name, title, source, ref parameters, reliable, adapts } = about;
        Self {
            name,
            title,
            source,
            reliable,
            adapts,
            parameters: documents(parameters, &other_defaults(name)),
            congestion_controls: controls.iter().map(ControlDocument::from).collect(),
        }
    }
}

impl From<&ControlDescription> for ControlDocument {
    fn from(about: &ControlDescription) -> Self {
        let &ControlDescription { name, title, source, ref parameters, scalable, paced } = about;
        Self { name, title, source, scalable, paced, parameters: documents(parameters, &[]) }
    }
}

impl From<&ApplicationDescription> for ApplicationDocument {
    fn from(about: &ApplicationDescription) -> Self {
        let &ApplicationDescription { name, title, source, ref parameters, waits_for_delivery, endless } =
            about;
        Self { name, title, source, waits_for_delivery, endless, parameters: documents(parameters, &[]) }
    }
}

/// Returns the sets of defaults of a transport beside the usual one: the name of each set, and the value of each parameter.
pub fn other_defaults(transport: &str) -> Vec<(&'static str, Vec<ParameterValue>)> {
    let values = |(title, defaults)| {
        let params = TransportParams::from_values(transport, defaults, [])
            .expect("the defaults of a transport are valid");
        (title, params.values().into_iter().map(|(_, value)| value).collect())
    };
    let others = Defaults::ALL.into_iter().filter(|(_, defaults)| *defaults != Defaults::default());
    others.map(values).collect()
}

fn documents(
    parameters: &[&'static Parameter],
    other_defaults: &[(&'static str, Vec<ParameterValue>)],
) -> Vec<ParameterDocument> {
    let document = |(at, parameter): (usize, &&'static Parameter)| {
        ParameterDocument::new(parameter, other_defaults.iter().map(|(set, values)| (*set, &values[at])))
    };
    parameters.iter().enumerate().map(document).collect()
}
