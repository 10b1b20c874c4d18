//! QoS specifications, and the agreement of two ends, as documents.

use crate::parameter::{ParameterDocument, SettingDocument};
use cutline_params::{Choice as _, ParameterValue, Parameters as _};
use cutline_quality::spec::{
    Agreement, AgreementItem as Agreed, Axis, CapacityProfile, Conflict, Conflicts, ConnectionSpecification,
    Preset, Region, SpecParameter, Specification, TapsProperties,
};
use cutline_units::{Duration, Rate};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// A QoS specification.
#[derive(Serialize, JsonSchema)]
pub struct SpecificationDocument {
    /// The class or the file.
    name: String,
    /// The sending direction.
    send: DirectionDocument,
    /// The receiving direction.
    receive: DirectionDocument,
    /// The capacity profile that the file sets (RFC 9622 section 8.1.6); null if it sets none.
    capacity_profile: Option<&'static str>,
}

/// Requirements on one direction of a connection.
#[derive(Serialize, JsonSchema)]
pub(crate) struct DirectionDocument {
    /// The parameters that are set.
    parameters: BTreeMap<&'static str, SettingDocument>,
    /// The parameters that this end is willing to weaken.
    coerced: Vec<&'static str>,
    /// The lowest acceptable throughput, bit/s; null if rate or size are open.
    min_throughput_bps: Option<u64>,
    /// The highest useful throughput, bit/s; null if rate or size are open.
    max_throughput_bps: Option<u64>,
    /// The throughput of a burst, bit/s; null if rate or size are open.
    peak_throughput_bps: Option<u64>,
    /// The region of operation: the measures that have limits.
    region: Vec<AxisDocument>,
    /// The same as properties of a TAPS connection (RFC 9622).
    taps: TapsDocument,
}

/// The acceptable values of a measure.
#[derive(Serialize, JsonSchema)]
struct AxisDocument {
    /// Name of the measure.
    measure: &'static str,
    /// The unit of the values.
    unit: &'static str,
    /// The best value; a better one has no further use.
    best: f64,
    /// The worst acceptable value.
    worst: f64,
}

/// Properties of a TAPS connection (RFC 9622). Those that are null are not set.
#[derive(Serialize, JsonSchema)]
struct TapsDocument {
    /// `minSendRate` or `minRecvRate`, bit/s.
    min_rate_bps: Option<u64>,
    /// `maxSendRate` or `maxRecvRate`, bit/s.
    max_rate_bps: Option<u64>,
    /// `reliability`: whether every message must arrive.
    reliability: Option<bool>,
    /// `preserveOrder`.
    preserve_order: Option<bool>,
    /// `connTimeout`, seconds.
    conn_timeout_s: Option<f64>,
    /// `connCapacityProfile`.
    conn_capacity_profile: &'static str,
}

/// The specifications of all classes of applications.
#[derive(Serialize, JsonSchema)]
pub struct SpecificationList(Vec<SpecificationDocument>);

/// The parameters of specifications.
#[derive(Serialize, JsonSchema)]
pub struct SpecificationParameters(Vec<ParameterDocument>);

/// Agreement of two ends.
#[derive(Serialize, JsonSchema)]
pub struct AgreementDocument {
    /// True if the ends agree on both directions.
    agreed: bool,
    /// Traffic that the first end sends.
    send: AgreedDirection,
    /// Traffic that the first end receives.
    receive: AgreedDirection,
}

/// Agreement of two ends for one direction, or their conflicts.
#[derive(Serialize, JsonSchema)]
struct AgreedDirection {
    /// Every parameter that an end has set; empty if the ends do not agree.
    parameters: Vec<AgreedParameter>,
    /// Conflicts; empty if they agree.
    conflicts: Vec<ConflictDocument>,
}

/// A parameter on which both ends agree.
#[derive(Serialize, JsonSchema)]
struct AgreedParameter {
    /// The parameter.
    parameter: &'static str,
    /// The first end's value; null if it leaves the parameter open.
    offered: SettingDocument,
    /// The other end's value; null if it leaves the parameter open.
    requested: SettingDocument,
    /// The value that holds.
    effective: SettingDocument,
}

/// A parameter that one end would have to weaken, and does not coerce.
#[derive(Serialize, JsonSchema)]
struct ConflictDocument {
    /// The parameter.
    parameter: &'static str,
    /// Value of the parameter.
    value: SettingDocument,
    /// The parameter of the other end that it contradicts.
    against: &'static str,
    /// The value of that parameter.
    against_value: SettingDocument,
}

impl SpecificationDocument {
    /// Creates the document of a specification. `name` is a class or a file.
    pub fn new(name: &str, spec: &ConnectionSpecification) -> Self {
        let ConnectionSpecification { send, receive, profile } = spec;
        Self {
            name: name.to_owned(),
            send: DirectionDocument::new(send),
            receive: DirectionDocument::new(receive),
            capacity_profile: profile.map(CapacityProfile::name),
        }
    }
}

impl SpecificationList {
    /// Returns the specifications of all classes.
    pub fn of_classes() -> Self {
        let document = |preset: Preset| {
            let spec = preset.specification();
            let both = ConnectionSpecification { send: spec.clone(), receive: spec, profile: None };
            SpecificationDocument::new(preset.name(), &both)
        };
        Self(Preset::ALL.map(document).into())
    }
}

impl SpecificationParameters {
    /// Returns the parameters in the order of a specification.
    pub fn new() -> Self {
        let parameters = Specification::describe().into_iter();
        Self(parameters.map(|parameter| ParameterDocument::new(parameter, std::iter::empty())).collect())
    }
}

impl Default for SpecificationParameters {
    fn default() -> Self {
        Self::new()
    }
}

impl DirectionDocument {
    pub(crate) fn new(spec: &Specification) -> Self {
        let set = spec.values().into_iter().filter(|(_, value)| *value != ParameterValue::Off);
        let bps = |rate: Option<Rate>| rate.map(Rate::as_bps);
        let axis = |axis: &Axis| AxisDocument {
            measure: axis.measure.name(),
            unit: axis.measure.unit(),
            best: axis.best,
            worst: axis.worst,
        };
        let taps = TapsProperties::from_specification(spec);
        Self {
            parameters: set.map(|(name, value)| (name, SettingDocument::from(&value))).collect(),
            coerced: spec.coerced.iter().map(SpecParameter::name).collect(),
            min_throughput_bps: bps(spec.min_throughput()),
            max_throughput_bps: bps(spec.max_throughput()),
            peak_throughput_bps: bps(spec.peak_throughput()),
            region: Region::new(spec).axes().iter().map(axis).collect(),
            taps: TapsDocument {
                min_rate_bps: bps(taps.min_send_rate),
                max_rate_bps: bps(taps.max_send_rate),
                reliability: taps.reliability,
                preserve_order: taps.preserve_order,
                conn_timeout_s: taps.conn_timeout.map(Duration::as_secs_f64),
                conn_capacity_profile: taps.conn_capacity_profile.name(),
            },
        }
    }
}

impl AgreementDocument {
    /// Creates the document of two directions: those that the first end sends and receives.
    pub fn new(agreements: &[Result<Agreement, Conflicts>; 2]) -> Self {
        let [send, receive] = agreements.each_ref().map(AgreedDirection::new);
        Self { agreed: agreements.iter().all(Result::is_ok), send, receive }
    }
}

impl AgreedDirection {
    fn new(agreed: &Result<Agreement, Conflicts>) -> Self {
        let end = |value: &Option<ParameterValue>| {
            value.as_ref().map_or(SettingDocument::Off, SettingDocument::from)
        };
        let parameter = |item: &Agreed| AgreedParameter {
            parameter: item.parameter.name(),
            offered: end(&item.offered),
            requested: end(&item.requested),
            effective: SettingDocument::from(&item.effective),
        };
        let conflict = |conflict: &Conflict| ConflictDocument {
            parameter: conflict.parameter.name(),
            value: SettingDocument::from(&conflict.kept),
            against: conflict.against.name(),
            against_value: SettingDocument::from(&conflict.value),
        };
        match agreed {
            Ok(agreement) => {
                Self { parameters: agreement.items.iter().map(parameter).collect(), conflicts: Vec::new() }
            }
            Err(Conflicts(conflicts)) => {
                Self { parameters: Vec::new(), conflicts: conflicts.iter().map(conflict).collect() }
            }
        }
    }
}
