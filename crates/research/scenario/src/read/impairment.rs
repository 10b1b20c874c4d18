//! Reads impairments: `impairment = { loss = 0.01, jitter = "2 ms" }`. The keys are the parameters of the model.

use cutline_config::{TableReader, parameter};
use cutline_params::Parameters as _;
use cutline_sim::ImpairmentParams;
use cutline_units::Duration;

const EXPECTED: &str = "a table such as { loss = 0.01 }";

/// Reads the impairment of a link of this delay; `None` if it is absent, or wrong, which is reported.
pub(super) fn read(reader: &TableReader<'_>, key: &str, delay: Option<Duration>) -> Option<ImpairmentParams> {
    let table = reader.table(key, EXPECTED)?;
    let values = parameter::values(&table, &ImpairmentParams::describe());
    table.finish();
    let params = ImpairmentParams::from_values(values);
    let delay = delay.unwrap_or(Duration::MAX);
    parameter::checked(&table, params.and_then(|params| params.validate_on(delay).map(|()| params)))
}

/// Reports losses of cells on a link that has none.
pub(super) fn check_unit(
    reader: &TableReader<'_>,
    key: &str,
    impairment: Option<&ImpairmentParams>,
    has_cells: bool,
) {
    if let Some(Err(error)) = impairment.map(|params| params.validate_unit(has_cells)) {
        reader.refuse(key, &error.to_string());
    }
}
