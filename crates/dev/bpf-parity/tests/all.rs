//! The tests of the kernel's arithmetic, in one program.

mod arithmetic;
mod layout;
mod leaves;
mod load;
mod queue;
mod sieve;

use cutline_bpf_parity::Peer;
use std::path::Path;

/// Returns the program, compiled for one test, which runs beside others.
fn peer(test: &str) -> Peer {
    Peer::compile("parity", &Path::new(env!("CARGO_TARGET_TMPDIR")).join(test))
        .expect("tools/setup.sh base installs a C compiler")
}
