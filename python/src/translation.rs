//! Translation of an application's needs into settings and requests, each with its reason.

use crate::errors;
use cutline_config::{Document, quantity};
use cutline_params::{Choice as _, ParameterValue, Parameters as _};
use cutline_tables::{application, specification};
use cutline_translate::{
    ApplicationProfile, Decision, Path, Protocol, Service, TranslationRequest, Unmet, translate,
};
use cutline_units::{Hint, IpVersion};
use pyo3::prelude::*;

/// Layer, name, value, reason and source of a setting.
type DecisionParts = (&'static str, &'static str, Option<String>, String, &'static str);
/// Direction, parameter and reason of a demand that cannot be met.
type UnmetParts = (&'static str, &'static str, String);
/// Protocol, service, delay hint, code point, decisions, and demands that cannot be met.
type TranslationParts =
    (&'static str, &'static str, Option<u16>, Option<u8>, Vec<DecisionParts>, Vec<UnmetParts>);

/// Translates the needs of a class of applications with settings, or of a specification, which is a document.
#[pyfunction]
#[pyo3(name = "translate")]
fn translated(
    class_: Option<&str>,
    settings: Vec<(String, String)>,
    document: &str,
    protocol: Option<&str>,
    service: Option<&str>,
    path: Vec<(String, String)>,
) -> PyResult<TranslationParts> {
    let request = match class_ {
        Some(class) => {
            let pairs: Vec<(&str, &str)> = settings.iter().map(|(key, value)| (&**key, &**value)).collect();
            application::request(class, &pairs)
                .map_err(|error| errors::parameter(&error.parameter, &error.to_string()))?
        }
        None => {
            let problems = |errors: &cutline_config::Errors| errors::keys(errors, "application");
            let document = Document::parse(document, "application").map_err(|errors| problems(&errors))?;
            let found = specification::specification(&document);
            TranslationRequest::new(found.map_err(|errors| problems(&errors))?)
        }
    };
    let protocol = protocol.map(Protocol::parse).transpose();
    let service = service.map(Service::parse).transpose();
    let request = TranslationRequest {
        protocol: protocol.map_err(|error| errors::argument("protocol", &error.to_string()))?,
        service: service.map_err(|error| errors::argument("service", &error.to_string()))?,
        path: path_of(&path)?,
        ..request
    };
    let found =
        translate(&request).map_err(|error| errors::parameter(&error.parameter, &error.to_string()))?;
    let decision = |one: Decision| (one.layer.name(), one.setting, one.value, one.reason, one.source);
    let unmet = |one: Unmet| (one.direction, one.parameter.name(), one.reason);
    Ok((
        found.protocol.name(),
        found.service.name(),
        found.network.hint.map(Hint::level),
        found.network.dscp.map(|dscp| dscp.get()),
        found.decisions.into_iter().map(decision).collect(),
        found.unmet.into_iter().map(unmet).collect(),
    ))
}

/// Returns the path with these properties.
fn path_of(texts: &[(String, String)]) -> PyResult<Path> {
    let value = |(name, text): &(String, String)| {
        let read = match name.as_str() {
            "rtt" => {
                quantity::duration(text).map(ParameterValue::Duration).map_err(|error| error.to_string())
            }
            "rate" => {
                let rate = quantity::rate(text).map_err(|error| error.to_string());
                rate.map(|rate| ParameterValue::Count(rate.as_bps()))
            }
            "mtu" => text.parse().map(ParameterValue::Count).map_err(|_| "expected bytes".to_owned()),
            "loss" => text.parse().map(ParameterValue::Number).map_err(|_| "expected per cent".to_owned()),
            _ => Ok(ParameterValue::Choice(IpVersion::V6.name().into())),
        };
        let read = read.map_err(|why| errors::parameter(name, &format!("{text:?} is not allowed: {why}")))?;
        // A path has these five names.
        let name = ["rtt", "rate", "mtu", "loss"].into_iter().find(|known| known == name).unwrap_or("ip");
        Ok((name, read))
    };
    let values = texts.iter().map(value).collect::<PyResult<Vec<_>>>()?;
    Path::from_values(values).map_err(|error| errors::parameter(&error.parameter, &error.to_string()))
}

/// Adds the function and the names of the classes.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("APPLICATIONS", ApplicationProfile::NAMES.to_vec())?;
    module.add_function(wrap_pyfunction!(translated, module)?)
}
