//! Reads the cells of a link of ATM: `aal5 = {}`, or `aal5 = { encapsulation = 0 }`. The keys are the parameters of AAL5.

use cutline_config::{TableReader, parameter};
use cutline_params::Parameters as _;
use cutline_sim::Aal5Params;

/// The key in the table of a link.
pub(super) const KEY: &str = "aal5";
const EXPECTED: &str = "a table such as {} or { encapsulation = 0 }";

/// Reads the cells of a link; `None` if they are absent, or invalid, which is reported. A link that follows a record of deliveries
/// (`has_deliveries`) must not have cells.
pub(super) fn read(reader: &TableReader<'_>, has_deliveries: bool) -> Option<Aal5Params> {
    let table = reader.table(KEY, EXPECTED)?;
    let values = parameter::values(&table, &Aal5Params::describe());
    table.finish();
    if has_deliveries {
        reader.refuse(
            KEY,
            "the record of the link's deliveries counts bytes of packets: leave one of them out",
        );
        return None;
    }
    parameter::checked(&table, Aal5Params::from_values(values))
}
