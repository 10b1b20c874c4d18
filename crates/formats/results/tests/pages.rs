//! The guide's page about the tables matches the list of columns.

use cutline_results::schema_page;
use cutline_testbed::pages::check_page;
use cutline_testbed::repository::root;

/// `CUTLINE_BLESS=1` writes the page again.
#[test]
fn the_documented_schema_is_the_stored_one() {
    check_page(&root().join("docs/guide/results.md"), &schema_page());
}
