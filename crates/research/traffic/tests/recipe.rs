//! The recipe of the guide that makes a trace of a capture.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// `udp.length` counts the header of 8 B (RFC 768), and the bytes of a trace are payload.
#[test]
fn the_recipe_for_a_capture_takes_off_the_header() {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/guide/tg.md");
    let guide = std::fs::read_to_string(guide).expect("the guide is there");
    let recipe = guide.split("-e udp.length").nth(1).expect("the recipe reads the length of datagrams");
    let program = recipe.split('\'').nth(1).expect("its lines go through awk");
    let mut awk = Command::new("awk");
    let mut awk = awk.arg(program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("awk starts");
    // As tshark writes fields.
    awk.stdin.take().unwrap().write_all(b"0.000000000\t180\n0.020000000\t8\n0.040000000\t1480\n").unwrap();
    let output = awk.wait_with_output().unwrap();
    assert_eq!(
        String::from_utf8(output.stdout).unwrap(),
        "0.000000000 172\n0.020000000 0\n0.040000000 1472\n"
    );
}
