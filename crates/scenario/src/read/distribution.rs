//! Random quantities: `"58 KB"`, or `{ distribution = "pareto", minimum = "4 KB", shape = 1.2 }`.

use crate::spec::Distribution;
use cutline_config::{Kind, TableReader, kind};
use std::fmt::Display;

const NAMES: [&str; 4] = ["fixed", "exponential", "lognormal", "pareto"];

/// The distribution at `key`, which must be there; its values are of the kind that `quantity` makes.
pub(super) fn required<T>(
    reader: &TableReader<'_>,
    key: &str,
    quantity: impl Fn() -> Kind<T>,
) -> Option<Distribution<T>>
where
    T: Copy + PartialOrd + Display + 'static,
{
    let quantity = quantity();
    let expected =
        format!("{}, or a table such as {{ distribution = \"exponential\", mean = ... }}", quantity.expected);
    let Some(node) = reader.node(key) else {
        reader.lacks(key, &expected);
        return None;
    };
    if node.as_table().is_some() {
        return reader.table_in(node, key, &expected).and_then(|table| table_of(&table, &quantity));
    }
    match quantity.read(node) {
        Ok(value) => Some(Distribution::Fixed(value)),
        Err(reason) => {
            reader.wrong(key, node, &expected, &reason);
            None
        }
    }
}

/// The distribution at `key`; always `default` when it is absent.
pub(super) fn or<T>(
    reader: &TableReader<'_>,
    key: &str,
    quantity: impl Fn() -> Kind<T>,
    default: T,
) -> Option<Distribution<T>>
where
    T: Copy + PartialOrd + Display + 'static,
{
    match reader.node(key) {
        Some(_) => required(reader, key, quantity),
        None => Some(Distribution::Fixed(default)),
    }
}

fn table_of<T>(table: &TableReader<'_>, quantity: &Kind<T>) -> Option<Distribution<T>>
where
    T: Copy + PartialOrd + Display + 'static,
{
    let kind = kind::one_of("a distribution", &NAMES.map(|name| (name, name)));
    let Some(name) = table.required("distribution", &kind) else {
        table.report_missing();
        return None;
    };
    let distribution = match name {
        "fixed" => table.required("value", quantity).map(Distribution::Fixed),
        "exponential" => table.required("mean", quantity).map(|mean| Distribution::Exponential { mean }),
        "lognormal" => log_normal(table, quantity),
        _ => pareto(table, quantity),
    };
    table.finish();
    distribution
}

fn log_normal<T: Copy + 'static>(table: &TableReader<'_>, quantity: &Kind<T>) -> Option<Distribution<T>> {
    let median = table.required("median", quantity);
    let sigma = table.required("sigma", &positive_number());
    Some(Distribution::LogNormal { median: median?, sigma: sigma? })
}

fn pareto<T>(table: &TableReader<'_>, quantity: &Kind<T>) -> Option<Distribution<T>>
where
    T: Copy + PartialOrd + Display + 'static,
{
    let minimum = table.required("minimum", quantity);
    let shape = table.required("shape", &positive_number());
    let maximum = table.optional("maximum", quantity);
    let (minimum, shape) = (minimum?, shape?);
    if maximum.is_some_and(|maximum| maximum <= minimum) {
        table.refuse("maximum", &format!("it must be larger than minimum, {minimum}"));
    }
    Some(Distribution::Pareto { minimum, shape, maximum })
}

fn positive_number() -> Kind<f64> {
    kind::number().only("above 0", |number| *number > 0.0)
}
