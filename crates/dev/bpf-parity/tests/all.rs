//! The tests of the kernel's arithmetic, in one program.

mod arithmetic;
mod layout;
mod leaves;
mod load;
mod queue;
mod sieve;

use cutline_bpf_parity::Peer;
use std::path::Path;
use std::sync::LazyLock;

/// The programs, each compiled once: a compilation takes longer than most tests.
static PARITY: LazyLock<Peer> = LazyLock::new(|| compiled("parity"));
static LEAVES: LazyLock<Peer> = LazyLock::new(|| compiled("leaves"));

fn compiled(name: &str) -> Peer {
    Peer::compile(name, &Path::new(env!("CARGO_TARGET_TMPDIR")).join(name))
        .expect("tools/setup.sh base installs a C compiler")
}

/// Runs commands of one test, whose name no other test has.
fn answers(peer: &Peer, test: &str, commands: &str) -> Vec<Vec<i128>> {
    peer.run(test, commands).unwrap()
}
