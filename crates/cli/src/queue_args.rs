//! Options of queues that several commands share: rates of links, limits, parameters, hints of code points.

use crate::arguments::rate;
use crate::exit::Failure;
use cutline_aqm::registry::{self, AqmDescription};
use cutline_aqm::{AqmSpec, Limit, TsqParams};
use cutline_config::{parameter, quantity};
use cutline_params::{Parameter, ParameterError, ParameterValue, Parameters as _};
use cutline_router::ShaperParams;
use cutline_units::{Dscp, HintBits, HintTable, Rate};

/// Parses the rate of a link.
pub fn link_rate(text: &str) -> Result<Rate, String> {
    let allowed = ShaperParams::RATES;
    rate(text).and_then(|rate| {
        let is_allowed = allowed.contains(&rate);
        is_allowed.then_some(rate).ok_or_else(|| format!("from {} to {}", allowed.start(), allowed.end()))
    })
}

/// Parses a limit of packets or of bytes.
pub fn limit(text: &str) -> Result<Limit, String> {
    let packets =
        quantity::packets(text).ok().and_then(|packets| u32::try_from(packets).ok()).map(Limit::Packets);
    let bytes = || quantity::size(text).ok().map(|size| Limit::Bytes(size.get()));
    packets.or_else(bytes).ok_or_else(|| "write \"1000 packets\" or \"64 KB\"".to_owned())
}

/// Returns the AQM of this name with its parameters: those of `--set`, and some that are options of their own.
pub fn aqm_spec(
    name: &str,
    set: &[String],
    own: impl IntoIterator<Item = (&'static str, ParameterValue)>,
) -> Result<AqmSpec, Failure> {
    let is_it = |aqm: &AqmDescription| aqm.name == name;
    // An unknown name has no parameters. It is refused below.
    let known = registry::describe().into_iter().find(is_it);
    let set = set.iter().map(String::as_str);
    let mut values = known.map_or_else(|| Ok(Vec::new()), |aqm| values(set, &aqm.parameters, aqm.name))?;
    values.extend(own.into_iter().map(|(name, value)| (name.to_owned(), value)));
    let borrowed = values.iter().map(|(name, value)| (name.as_str(), value.clone()));
    AqmSpec::from_values(name, borrowed).map_err(usage)
}

/// Returns TSQ with the parameters of `--tsq`, such as `l=40ms,bits=4`.
pub fn tsq_params(text: &str) -> Result<TsqParams, Failure> {
    let pairs = text.split(',').filter(|pair| !pair.is_empty());
    let values = values(pairs, &TsqParams::describe(), "tsq")?;
    let borrowed = values.iter().map(|(name, value)| (name.as_str(), value.clone()));
    TsqParams::from_values(borrowed).map_err(usage)
}

/// Returns the standard table of hints, changed by the texts of `--hint`, such as `EF=4`.
pub fn hint_table(texts: &[String]) -> Result<HintTable, Failure> {
    let mut hints = HintTable::standard();
    for text in texts {
        let (dscp, level) = pair("--hint", text)?;
        let level =
            level.parse().map_err(|_| Failure::Usage(format!("--hint {text}: {level:?} is no level")))?;
        let hint = HintBits::PAPER.hint(level).map_err(|error| usage_of("--hint", text, &error))?;
        hints.set(code_point("--hint", text, dscp)?, hint);
    }
    Ok(hints)
}

/// Parses parameters by their kinds.
pub fn values<'t>(
    pairs: impl Iterator<Item = &'t str>,
    parameters: &[&'static Parameter],
    owner: &str,
) -> Result<Vec<(String, ParameterValue)>, Failure> {
    let read = |text: &str| {
        let (name, written) = pair("--set", text)?;
        let parameter = parameters.iter().find(|parameter| parameter.name == name).ok_or_else(|| {
            if let Some(why) = registry::former_parameter(owner, name) {
                return Failure::Usage(format!("parameter {name:?} of {owner} {why}"));
            }
            let names: Vec<_> = parameters.iter().map(|parameter| parameter.name).collect();
            let of_others =
                of_other_aqms(name, owner).map_or_else(String::new, |why| format!(", which {why}"));
            let known = names.join(", ");
            Failure::Usage(format!("{owner} has no parameter {name:?}{of_others}; it has: {known}"))
        })?;
        let value = parameter::parse(parameter, written)
            .map_err(|allowed| Failure::Usage(format!("{name} = {written}: allowed is {allowed}")))?;
        Ok((name.to_owned(), value))
    };
    pairs.map(read).collect()
}

/// Explains a parameter of other AQMs than this, in the words of a scenario's file; `None` if there are none, or this is no AQM.
fn of_other_aqms(name: &str, aqm: &str) -> Option<String> {
    let all = registry::describe();
    all.iter().find(|known| known.name == aqm)?;
    parameter::of_others(name, ("aqm", aqm), all.into_iter().map(|other| (other.name, other.parameters)))
}

/// Splits KEY=VALUE.
pub fn pair<'t>(option: &str, text: &'t str) -> Result<(&'t str, &'t str), Failure> {
    let trimmed = text.split_once('=').map(|(key, value)| (key.trim(), value.trim()));
    trimmed.ok_or_else(|| Failure::Usage(format!("{option} {text}: it must be of the form KEY=VALUE")))
}

/// Parses the code point of an option.
pub fn code_point(option: &str, text: &str, name: &str) -> Result<Dscp, Failure> {
    name.parse().map_err(|error| usage_of(option, text, &error))
}

fn usage_of(option: &str, text: &str, error: &impl std::fmt::Display) -> Failure {
    Failure::Usage(format!("{option} {text}: {error}"))
}

/// Returns the failure for a parameter that is not allowed.
#[expect(clippy::needless_pass_by_value, reason = "map_err passes it by value")]
pub fn usage(error: ParameterError) -> Failure {
    Failure::Usage(error.to_string())
}
