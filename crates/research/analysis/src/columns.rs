//! The columns of the tables and the swept keys, by their name.

use crate::AnalysisError;
use cutline_params::nearest;
use cutline_results::{
    Column, DISTRIBUTED_QUANTITIES, DistributionRow, FlowRow, PointRow, QueueRow, QueueSeriesRow, Row,
    SeriesRow, TimingRow,
};
use cutline_text::Printable;

/// Returns the names of the quantities in two tables, each once.
pub fn quantities<A: Row, B: Row>() -> Vec<&'static str> {
    let mut names: Vec<&'static str> = quantities_of::<A>();
    for name in quantities_of::<B>() {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// Returns the names of the quantities in a table.
pub fn quantities_of<R: Row>() -> Vec<&'static str> {
    R::columns().into_iter().filter(Column::is_quantity).map(|column| column.about.name).collect()
}

/// Returns the measures of groups and queues: the quantities of both tables, and those of distributions.
pub fn measures() -> Vec<&'static str> {
    let mut names = quantities::<FlowRow, QueueRow>();
    names.extend(DISTRIBUTED_QUANTITIES.iter().map(|about| about.name));
    names
}

/// Fails if one of these is no measure of groups and queues.
///
/// # Errors
/// The table of a column that has other rows, or the likely measure.
pub fn check_measures<M: AsRef<str>>(asked: &[M]) -> Result<(), AnalysisError> {
    let known = measures();
    let Some(measure) = asked.iter().map(AsRef::as_ref).find(|name| !known.contains(name)) else {
        return Ok(());
    };
    let Some((file, one_per)) = table_of(measure) else {
        return Err(unknown("a column of flows or queues or a quantity of distributions", measure, &known));
    };
    let known = known.join(", ");
    Err(AnalysisError::choice(
        "measure",
        format_args!(
            "{measure}: a column of {file}, which has one row per {one_per}: it is not a measure of groups or queues; \
             expected one of: {known}"
        ),
    ))
}

/// The file of a table, and the subject of one of its rows.
type FileAndRow = (&'static str, &'static str);

/// Returns the table that has this column.
fn table_of(column: &str) -> Option<FileAndRow> {
    fn of<R: Row>(column: &str) -> Option<FileAndRow> {
        R::columns().iter().any(|one| one.about.name == column).then_some((R::FILE, R::ONE_PER))
    }
    let tables: [fn(&str) -> Option<FileAndRow>; 7] = [
        of::<FlowRow>,
        of::<QueueRow>,
        of::<SeriesRow>,
        of::<QueueSeriesRow>,
        of::<DistributionRow>,
        of::<TimingRow>,
        of::<PointRow>,
    ];
    tables.into_iter().find_map(|of| of(column))
}

/// Returns the error that a measure is unknown, with the likely one: one that begins with it, or that is spelt like it.
pub fn unknown(what: &str, measure: &str, known: &[&'static str]) -> AnalysisError {
    let longer =
        known.iter().find(|name| name.strip_prefix(measure).is_some_and(|rest| rest.starts_with('_')));
    let near = longer.copied().or_else(|| nearest(measure, known.iter().copied()));
    let meant = near.map_or_else(String::new, |near| format!("did you mean {near}? "));
    let measure = Printable(measure);
    let known = known.join(", ");
    AnalysisError::choice("measure", format_args!("{measure}: not {what}; {meant}expected one of: {known}"))
}

/// Returns the swept key whose path, or the end of whose path, is `by`.
///
/// # Errors
/// The names of the swept keys, if none of them matches.
pub fn swept_key<'k>(keys: &[&'k str], by: &str) -> Result<&'k str, AnalysisError> {
    let is_asked = |key: &&str| *key == by || key.strip_suffix(by).is_some_and(|rest| rest.ends_with('.'));
    if let Some(key) = keys.iter().copied().find(is_asked) {
        return Ok(key);
    }
    let there = if keys.is_empty() {
        "nothing is swept in these results".to_owned()
    } else {
        format!("not a swept key; expected one of: {}", keys.join(", "))
    };
    Err(AnalysisError::choice("by", format_args!("{by}: {there}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that each column of a table is a measure, or that the message names the table. Returns the number of measures.
    fn check<R: Row>() -> usize {
        let known = measures();
        let mut found = 0;
        for column in R::columns() {
            let name = column.about.name;
            match check_measures(&[name]) {
                Ok(()) => found += 1,
                Err(error) => {
                    let said = error.to_string();
                    assert!(
                        !known.contains(&name) && said.contains(&format!("{name}: a column of")),
                        "{said}"
                    );
                }
            }
        }
        found
    }

    #[test]
    fn every_column_and_every_quantity_is_known() {
        let numbers = [quantities_of::<FlowRow>().len(), quantities_of::<QueueRow>().len()];
        assert_eq!([check::<FlowRow>(), check::<QueueRow>()], numbers);
        check::<SeriesRow>();
        check::<QueueSeriesRow>();
        check::<DistributionRow>();
        check::<TimingRow>();
        check::<PointRow>();
        for about in DISTRIBUTED_QUANTITIES {
            assert!(check_measures(&[about.name]).is_ok(), "{}", about.name);
        }
        let said = check_measures(&["q", "hint_centre"]).unwrap_err().to_string();
        assert!(
            said.contains("hint_centre: a column of series.parquet, which has one row per interval"),
            "{said}"
        );
        let said = check_measures(&["flows_in_region"]).unwrap_err().to_string();
        assert!(
            said.contains("not a column of flows") && said.contains("mean flows_in_region_percent?"),
            "{said}"
        );
    }

    #[test]
    fn the_measure_that_is_meant_is_named() {
        let known = ["goodput_bps", "queuing_p50_ms", "queuing_p99_ms", "q"];
        for (given, meant) in [
            ("queuing_p99", "queuing_p99_ms"),
            ("goodput", "goodput_bps"),
            ("queuing_p90_ms", "queuing_p50_ms"),
        ] {
            let message = unknown("a column", given, &known).to_string();
            assert!(message.contains(&format!("did you mean {meant}?")), "{message}");
        }
        let message = unknown("a column", "zebra", &known).to_string();
        assert!(!message.contains("did you mean"), "{message}");
    }
}
