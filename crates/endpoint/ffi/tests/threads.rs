//! A program in C to which the system refuses a thread.

use crate::c;
use crate::fork::echoes;

use std::path::Path;

#[test]
fn a_refused_thread_loses_no_connection() {
    let places = echoes();
    let folder = tempfile::tempdir().unwrap();
    let program = c::build(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/threads.c"), folder.path());
    for (kind, place) in ["streams", "datagrams"].into_iter().zip(&places) {
        for action in ["accept", place.as_str()] {
            assert_eq!(c::run(&program, &[kind, action]), "all is well\n", "{kind}, {action}");
        }
    }
}
