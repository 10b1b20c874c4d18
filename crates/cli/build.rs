//! Stores the commit in the program, for `cutline --version`, reports and summaries. Without git or its history, it has
//! the version alone. The package for Python is built with this, too.

use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    // Without git, no other file is named, and any change would run this again. A file that a package does not have would, too:
    // the package for Python has no build.rs.
    println!("cargo::rerun-if-changed=Cargo.toml");
    println!("cargo::rustc-env=CUTLINE_COMMIT={}", commit().unwrap_or_else(|| "commit unknown".to_owned()));
}

/// `commit 0123456789 of 2026-01-31`; `-changed` behind the commit if files differ from it.
fn commit() -> Option<String> {
    // Files that a commit, a checkout and `git add` change.
    for file in ["HEAD", "index"] {
        let path = git(&["rev-parse", "--git-path", file])?;
        if Path::new(&path).exists() {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    let branch = git(&["rev-parse", "--symbolic-full-name", "HEAD"])?;
    let reference = git(&["rev-parse", "--git-path", &branch])?;
    if Path::new(&reference).exists() {
        println!("cargo::rerun-if-changed={reference}");
    }
    let commit = git(&["log", "-1", "--abbrev=10", "--format=%h", "HEAD"])?;
    let date = git(&["log", "-1", "--date=format:%Y-%m-%d", "--format=%cd", "HEAD"])?;
    let changed = git(&["status", "--porcelain", "--untracked-files=no", "--", repository()?.to_str()?])?;
    let changed = if changed.is_empty() { "" } else { "-changed" };
    Some(format!("commit {commit}{changed} of {date}"))
}

/// Returns the folder of the repository. A repository around an unpacked package is not ours.
fn repository() -> Option<PathBuf> {
    let is_ours =
        |folder: &&Path| folder.join(".git").exists() && folder.join("crates/cli/build.rs").exists();
    std::env::current_dir().ok()?.ancestors().find(is_ours).map(Path::to_owned)
}

/// Returns the output of a question to git, which must not write the index: the next build would find it changed.
fn git(arguments: &[&str]) -> Option<String> {
    repository()?;
    let output = Command::new("git").arg("--no-optional-locks").args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
