//! Protection of a thread by a program in C: with the capability that it needs, and without it.

use crate::c;

use cutline_testbed::skip;
use std::path::Path;

const RUN: &str = "run the tests of cutline-ffi as root";

#[test]
fn a_thread_of_a_program_in_c_is_protected_until_it_ends_that() {
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:")).unwrap().trim();
    // The bit of CAP_SYS_NICE (linux/capability.h).
    if u64::from_str_radix(effective, 16).unwrap() >> 23 & 1 == 0 {
        return skip("this process lacks CAP_SYS_NICE", RUN);
    }
    let folder = tempfile::tempdir().unwrap();
    let program = c::build(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/protect.c"), folder.path());
    assert_eq!(c::run(&program, &[]), "protected\n");
    let without = ["--bounding-set=-sys_nice", "--inh-caps=-sys_nice"];
    let output = c::command("setpriv").args(without).arg(&program).arg("refused").output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!((String::from_utf8_lossy(&output.stdout).as_ref(), errors.as_ref()), ("refused\n", ""));
}
