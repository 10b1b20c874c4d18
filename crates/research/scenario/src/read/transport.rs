//! Reads transports: `transport = { protocol = "tcp" | "tfrc" | "udp" | "nada" | "abr", ... }`. The other keys are the transport's parameters.

use crate::spec::TransportSpec;
use cutline_config::{TableReader, kind, parameter};
use cutline_params::{Parameter, ParameterValue};
use cutline_transport::endpoint::{Defaults, TransportParams};

const EXPECTED: &str = "a table such as { protocol = \"tcp\" }";

const CONGESTION_CONTROL: &str = "congestion-control";

pub(super) fn read(flow: &TableReader<'_>) -> Option<TransportSpec> {
    if !flow.has("transport") {
        flow.lacks("transport", EXPECTED);
    }
    let reader = flow.table("transport", EXPECTED)?;
    let words = TransportParams::NAMES.iter().map(|&name| ((*name).to_owned(), name)).collect();
    let Some(protocol) = reader.required("protocol", &kind::choice("a protocol", words)) else {
        // The protocol determines which other keys are allowed.
        reader.report_missing();
        return None;
    };
    let mut parameters =
        TransportParams::describe(protocol).expect("the name is one of `TransportParams::NAMES`");
    let control = parameters.iter().position(|parameter| parameter.name == CONGESTION_CONTROL);
    let control = control.and_then(|index| congestion_control(&reader, parameters.remove(index)));
    let mut values = parameter::values(&reader, &parameters);
    let chosen = control.map(|name| (CONGESTION_CONTROL, choice(name)));
    let besides = TransportParams::chosen(protocol, chosen.as_slice());
    values.extend(parameter::values(&reader, &besides));
    let given = values.iter().map(|(name, _)| *name).collect();
    values.extend(chosen);
    let params =
        parameter::checked(&reader, TransportParams::from_values(protocol, defaults(&reader), values));
    let others =
        || TransportParams::NAMES.iter().filter_map(|name| Some((*name, TransportParams::describe(name)?)));
    reader.finish_explaining(|key| parameter::of_others(key, ("protocol", protocol), others()));
    Some(TransportSpec { params: params?, given })
}

/// Reads the name of a congestion control.
fn congestion_control(reader: &TableReader<'_>, parameter: &Parameter) -> Option<&'static str> {
    let cutline_params::ParameterKind::Registered(table) = parameter.kind else {
        unreachable!("a congestion control is a registered name")
    };
    let words = table.names().into_iter().map(|name| (name.to_owned(), name)).collect();
    reader.optional(CONGESTION_CONTROL, &kind::choice("a congestion control", words))
}

fn choice(name: &'static str) -> ParameterValue {
    ParameterValue::Choice(name.into())
}

fn defaults(reader: &TableReader<'_>) -> Defaults {
    reader.or("defaults", &kind::one_of("a set of defaults", &Defaults::ALL), Defaults::Rfc)
}
