//! The tables of stored results: `cutline_results::read_table`.
//!
//! - A table that was read and is written again reads the same.
//! - A damaged file is an error that names the file.

use super::folder::Folder;
use cutline_results::{
    DistributionRow, FlowRow, PointRow, QueueRow, QueueSeriesRow, Row, SeriesRow, StoreError, TimingRow,
    read_table, write_table,
};
use std::fs;
use std::path::Path;

/// The file that is read, and that it is written to again.
const FILE: &str = "table.parquet";

pub fn parse(bytes: &[u8]) -> bool {
    Folder::with(FILE, bytes, |root| {
        let path = root.join(FILE);
        let tables = [
            read::<PointRow>,
            read::<TimingRow>,
            read::<DistributionRow>,
            read::<SeriesRow>,
            read::<QueueSeriesRow>,
            read::<FlowRow>,
            read::<QueueRow>,
        ];
        for read in tables {
            match read(&path) {
                Ok(()) => return true,
                // Another table's row may fit.
                Err(error @ StoreError::Column { .. }) => {
                    assert!(error.to_string().contains(FILE), "{error}");
                }
                Err(error) => {
                    assert!(error.to_string().contains(FILE), "{error}");
                    return false;
                }
            }
        }
        false
    })
}

/// Reads a table, and if it is one writes and reads it again.
fn read<R: Row>(path: &Path) -> Result<(), StoreError> {
    let rows = read_table::<R>(path)?;
    let written = write(path, &rows);
    let again = read_table::<R>(path).expect("what we write can be read");
    assert_eq!(again.len(), rows.len());
    // Bytes and not rows: a number may be none, which equals nothing.
    assert!(write(path, &again) == written, "the same again");
    Ok(())
}

fn write<R: Row>(path: &Path, rows: &[R]) -> Vec<u8> {
    write_table(path, rows).expect("what was read can be written");
    fs::read(path).expect("the file is there")
}
