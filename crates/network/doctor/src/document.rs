//! Documents that are printed as JSON: a report with its findings in one list, and a judgement with its
//! observations.

use crate::bottleneck::{Judgement, Observations};
use crate::finding::{Finding, Findings, State, Use};
use schemars::JsonSchema;
use serde::Serialize;

/// A machine's capabilities: which uses are ready, and every finding with its group.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ReportDocument<'r> {
    /// True for each use that has everything it needs.
    ready: Ready,
    /// The number of findings in each state.
    count: Counts,
    /// All findings, in the order of looking.
    findings: Vec<GroupedFinding<'r>>,
}

/// True for each use that has everything it needs.
#[derive(Debug, Serialize, JsonSchema)]
struct Ready {
    /// `cutline router`.
    router: bool,
    /// Experiments in network namespaces.
    laboratory: bool,
}

/// The number of findings in each state.
#[derive(Debug, Serialize, JsonSchema)]
struct Counts {
    /// No fault.
    ok: usize,
    /// Good to know; nothing has to be done.
    note: usize,
    /// Number of findings that could not be examined.
    unknown: usize,
    /// Number of findings that work, but not as well as they should.
    warning: usize,
    /// A requirement is missing.
    missing: usize,
}

/// A finding with its group.
#[derive(Debug, Serialize, JsonSchema)]
struct GroupedFinding<'r> {
    /// The title of its group.
    group: &'r str,
    #[serde(flatten)]
    finding: &'r Finding,
}

/// Place of the bottleneck, and the observations.
#[derive(Debug, Serialize, JsonSchema)]
pub struct BottleneckDocument<'o> {
    /// The judgement.
    pub judgement: &'o Judgement,
    /// The observations.
    pub observed: &'o Observations,
}

impl<'r> ReportDocument<'r> {
    /// Returns the document of a report.
    pub fn new(report: &'r Findings) -> Self {
        let ready = |of| report.missing(of).is_empty();
        let [ok, note, unknown, warning, missing] = State::ALL.map(|state| report.count(state));
        let grouped = report.groups.iter().flat_map(|group| {
            group.findings.iter().map(|finding| GroupedFinding { group: &group.title, finding })
        });
        Self {
            ready: Ready { router: ready(Use::Router), laboratory: ready(Use::Laboratory) },
            count: Counts { ok, note, unknown, warning, missing },
            findings: grouped.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::FindingGroup;
    use serde_json::json;

    #[test]
    fn a_report_has_readiness_and_every_finding_with_its_group() {
        let findings = vec![
            Finding::warning("clock", "slow", "choose another"),
            Finding::missing("iproute2", "gone", &[Use::Laboratory], "install it"),
        ];
        let document =
            json!(ReportDocument::new(&Findings { groups: vec![FindingGroup::new("host", findings)] }));
        assert_eq!(document["ready"], json!({ "router": true, "laboratory": false }));
        assert_eq!((&document["count"]["missing"], &document["count"]["ok"]), (&json!(1), &json!(0)));
        let first = json!({ "group": "host", "subject": "clock", "state": "warning", "what": "slow",
            "do_next": "choose another", "needed_for": [] });
        assert_eq!(document["findings"][0], first);
    }

    #[test]
    fn every_state_and_use_has_its_place() {
        let document = json!(ReportDocument::new(&Findings { groups: Vec::new() }));
        let names = |value: &serde_json::Value| value.as_object().unwrap().len();
        assert_eq!(
            (names(&document["count"]), names(&document["ready"])),
            (State::ALL.len(), Use::ALL.len())
        );
        assert!(State::ALL.iter().all(|state| document["count"].get(state.name()).is_some()));
        assert!(Use::ALL.iter().all(|of| document["ready"].get(of.name()).is_some()));
    }
}
