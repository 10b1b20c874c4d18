//! A program with QoS sockets, in Rust, in C or with tokio, does not build unused crates.

use std::process::Command;

/// Crates for documents, simulations and commands.
const UNWANTED: [&str; 4] = ["schemars", "rand_distr", "clap", "parquet"];

#[test]
fn the_socket_library_needs_no_schemas_and_no_distributions() {
    for package in ["cutline-socket", "cutline-ffi", "cutline-tokio"] {
        let found = dependencies(package);
        for unwanted in UNWANTED {
            assert!(!found.lines().any(|line| line.starts_with(unwanted)), "{package}: {unwanted}:\n{found}");
        }
        let has_tokio = found.lines().any(|line| line.starts_with("tokio "));
        assert_eq!(has_tokio, package == "cutline-tokio", "{package}:\n{found}");
    }
}

/// Returns the packages that a package is built with, a line each.
fn dependencies(package: &str) -> String {
    let cargo = option_env!("CARGO").unwrap_or("cargo");
    let tree = ["tree", "--offline", "--package", package, "--edges", "normal", "--prefix", "none"];
    let output =
        Command::new(cargo).args(tree).current_dir(env!("CARGO_MANIFEST_DIR")).output().expect("Cargo runs");
    let (found, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && found.contains("cutline-signal"), "{errors}");
    found.into_owned()
}
