//! The guide's page about the tables matches the list of columns.

use cutline_results::schema_page;
use std::fs;
use std::path::Path;

/// `CUTLINE_BLESS=1` writes the page again.
#[test]
fn the_documented_schema_is_the_stored_one() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/guide/results.md");
    if std::env::var_os("CUTLINE_BLESS").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, schema_page()).unwrap();
    }
    let (stored, page) = (fs::read_to_string(&path).unwrap(), schema_page());
    let differs = stored.lines().zip(page.lines()).find(|(stored, generated)| stored != generated);
    assert!(stored == page, "run this test with CUTLINE_BLESS=1; the first lines that differ: {differs:?}");
}
