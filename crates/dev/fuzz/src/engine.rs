//! The targets under libFuzzer. `CUTLINE_FUZZ_TARGET` names the one to run; the arguments are libFuzzer's own.
//!
//! `cutline-fuzz run` builds this program, with the instrumentation that reports the code reached by an input to libFuzzer, and
//! starts it.

#![no_main]

use cutline_fuzz::{Target, find};
use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;

static TARGET: LazyLock<&Target> = LazyLock::new(|| {
    let name = std::env::var("CUTLINE_FUZZ_TARGET").expect("CUTLINE_FUZZ_TARGET names a target");
    find(&name).unwrap_or_else(|| panic!("there is no target {name:?}"))
});

fuzz_target!(|input: &[u8]| {
    TARGET.check(input);
});
