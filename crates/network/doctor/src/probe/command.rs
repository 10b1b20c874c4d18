//! Runs `ip` and `tc` of iproute2. Their JSON output has the information of netlink.

use serde_json::Value;
use std::process::Command;

/// The versions of the commands of iproute2 that are installed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tools {
    /// The output of `ip -V`, if `ip` is installed.
    pub ip: Option<String>,
    /// The output of `tc -V`, if `tc` is installed.
    pub tc: Option<String>,
}

/// Looks for iproute2.
pub fn tools() -> Tools {
    let version = |program| run(program, &["-V"]).ok().map(|text| text.trim().to_owned());
    Tools { ip: version("ip"), tc: version("tc") }
}

/// The output of a command, or why it failed.
pub(super) fn run(program: &str, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(program).args(arguments).output();
    let output = output.map_err(|error| format!("`{program}`: {error} (it is part of iproute2)"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let message = String::from_utf8_lossy(&output.stderr);
    Err(message.trim().trim_start_matches("Error: ").trim_end_matches('.').to_owned())
}

/// The list that a command prints as JSON. Empty output is an empty list.
pub(super) fn list(program: &str, arguments: &[&str]) -> Result<Vec<Value>, String> {
    let text = run(program, arguments)?;
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    serde_json::from_str(&text).map_err(|error| format!("`{program}` printed no JSON: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_the_missing_package_and_invalid_output() {
        let error = run("cutline-no-such-program", &[]).unwrap_err();
        assert!(error.contains("part of iproute2"), "{error}");
        assert_eq!(list("true", &[]), Ok(Vec::new()));
        assert!(list("echo", &["words"]).unwrap_err().contains("no JSON"));
    }
}
