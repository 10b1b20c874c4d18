//! A program with QoS sockets does not build unused crates.

use std::process::Command;

#[test]
fn the_socket_library_needs_no_schemas_and_no_distributions() {
    let cargo = option_env!("CARGO").unwrap_or("cargo");
    let tree = ["tree", "--offline", "--package", "cutline-socket", "--edges", "normal", "--prefix", "none"];
    let output =
        Command::new(cargo).args(tree).current_dir(env!("CARGO_MANIFEST_DIR")).output().expect("Cargo runs");
    let (found, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && found.contains("cutline-signal"), "{errors}");
    for unwanted in ["schemars", "rand_distr", "clap", "tokio", "parquet"] {
        assert!(!found.lines().any(|line| line.starts_with(unwanted)), "{unwanted}:\n{found}");
    }
}
