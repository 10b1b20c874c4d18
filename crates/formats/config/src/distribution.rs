//! Random quantities: `"58 KB"`, or `{ distribution = "pareto", minimum = "4 KB", shape = 1.2 }`.

use crate::kind::{self, ValueKind};
use crate::reader::TableReader;
use crate::value::Node;
use cutline_params::Parameter;
use cutline_units::{Bytes, Distribution, Duration};

const NAMES: [&str; 4] = ["fixed", "exponential", "lognormal", "pareto"];

/// The quantities that a parameter's unit makes: sizes for `B`, durations for `s`, else plain numbers.
pub(crate) fn quantity(unit: &'static str, least: f64, most: f64) -> ValueKind<f64> {
    let quantity = match unit {
        "B" => kind::size().map(|size| size.get() as f64),
        "s" => kind::duration().map(Duration::as_secs_f64),
        _ => kind::number(),
    };
    let range = format!("from {} to {}", shown(unit, least), shown(unit, most));
    quantity.only(&range, move |x| (least..=most).contains(x))
}

/// Returns the expectation of a parameter that may be drawn from a distribution, for messages.
pub(crate) fn expected(quantity: &ValueKind<f64>) -> String {
    format!("{}, or a table such as {{ distribution = \"exponential\", mean = ... }}", quantity.expected)
}

/// A quantity as a person writes it.
fn shown(unit: &str, x: f64) -> String {
    match unit {
        "B" => Bytes::new(x as u64).to_string(),
        "s" => Duration::from_secs_f64(x).to_string(),
        _ => x.to_string(),
    }
}

/// The distribution in a table at the parameter's key; `None` when it is wrong, which is reported.
pub(crate) fn read(
    reader: &TableReader<'_>,
    parameter: &Parameter,
    (least, most): (f64, f64),
    node: &Node,
) -> Option<Distribution> {
    let (key, unit) = (parameter.name, parameter.unit);
    let quantity = quantity(unit, least, most);
    let table = reader.table_in(node, key, &expected(&quantity))?;
    let names = kind::one_of("a distribution", &NAMES.map(|name| (name, name)));
    let Some(name) = table.required("distribution", &names) else {
        table.report_missing();
        return None;
    };
    let distribution = match name {
        "fixed" => table.required("value", &quantity).map(Distribution::Fixed),
        "exponential" => table.required("mean", &quantity).map(|mean| Distribution::Exponential { mean }),
        "lognormal" => lognormal(&table, &quantity),
        _ => pareto(&table, &quantity, unit),
    };
    table.finish();
    if let Some(distribution) = distribution.filter(|distribution| !distribution.is_sound()) {
        reader.refuse(key, &format!("{distribution} is no distribution of numbers above 0"));
        return None;
    }
    distribution
}

fn lognormal(table: &TableReader<'_>, quantity: &ValueKind<f64>) -> Option<Distribution> {
    let median = table.required("median", quantity);
    let sigma = kind::number().only("above 0, at most 10", |sigma| *sigma > 0.0 && *sigma <= 10.0);
    let sigma = table.required("sigma", &sigma);
    Some(Distribution::Lognormal { median: median?, sigma: sigma? })
}

fn pareto(table: &TableReader<'_>, quantity: &ValueKind<f64>, unit: &str) -> Option<Distribution> {
    let minimum = table.required("minimum", quantity);
    let shape = table.required("shape", &kind::number().only("above 0", |shape| *shape > 0.0));
    let maximum = table.optional("maximum", quantity);
    let (minimum, shape) = (minimum?, shape?);
    if maximum.is_some_and(|maximum| maximum <= minimum) {
        let least = shown(unit, minimum);
        table.refuse("maximum", &format!("it must be larger than minimum, {least}"));
        return None;
    }
    Some(Distribution::Pareto { minimum, shape, maximum })
}
