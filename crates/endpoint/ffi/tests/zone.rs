//! Link-local addresses in programs in C.

use crate::c;

use cutline_sys::namespace::Namespace;
use std::path::{Path, PathBuf};

fn program(into: &Path) -> PathBuf {
    c::build(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/zone.c"), into)
}

#[test]
fn a_program_in_c_gets_an_error_for_a_link_local_address_without_zone() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(c::run(&program(folder.path()), &[]), "all is well\n");
}

#[test]
fn a_program_in_c_names_the_interface_of_a_link_local_address() {
    if !cutline_testbed::may_make_namespaces("run the tests of cutline-ffi as root") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = program(folder.path());
    let host = Namespace::create("zone").unwrap();
    host.ip(&["address", "add", "fe80::1/64", "dev", "lo", "nodad"]).unwrap();
    cutline_testbed::wait_for_own_addresses(&host, &["fe80::1%1"]);
    assert_eq!(host.within(|| c::run(&program, &["lo"])).unwrap(), "all is well\n");
}
