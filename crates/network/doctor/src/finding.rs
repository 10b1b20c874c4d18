//! Findings: the subject, its state, a text, and the next step.

use crate::probe::Answer;
use schemars::JsonSchema;
use serde::Serialize;

/// State of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// No fault.
    Ok,
    /// Good to know; nothing has to be done.
    Note,
    /// Could not be examined.
    Unknown,
    /// Works, but not as well as it should.
    Warning,
    /// A requirement is missing.
    Missing,
}

/// Use of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Use {
    /// `cutline router`.
    Router,
    /// Experiments in network namespaces.
    Laboratory,
}

/// One examined property.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Finding {
    /// Subject of the finding.
    pub subject: String,
    /// State of the finding.
    pub state: State,
    /// The finding.
    pub what: String,
    /// Advice; null if nothing has to be done.
    pub do_next: Option<String>,
    /// Uses that are impossible as long as it is missing; empty if nothing depends on it.
    pub needed_for: Vec<Use>,
}

/// Findings about one subject.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FindingGroup {
    /// Title of the group.
    pub title: String,
    /// In the order of looking.
    pub findings: Vec<Finding>,
}

/// All of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Findings {
    /// About the host, then about interfaces.
    pub groups: Vec<FindingGroup>,
}

impl State {
    /// Every state, from good to bad.
    pub const ALL: [Self; 5] = [Self::Ok, Self::Note, Self::Unknown, Self::Warning, Self::Missing];

    /// The name of the state, as in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Note => "note",
            Self::Unknown => "unknown",
            Self::Warning => "warning",
            Self::Missing => "missing",
        }
    }
}

impl Use {
    /// Every use.
    pub const ALL: [Self; 2] = [Self::Router, Self::Laboratory];

    /// The name of the use, as in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Router => "router",
            Self::Laboratory => "laboratory",
        }
    }
}

impl Finding {
    /// A finding about something that is as it should be.
    pub fn ok(subject: impl Into<String>, what: impl Into<String>) -> Self {
        Self::new(State::Ok, subject, what)
    }

    /// A finding that needs no action.
    pub fn note(subject: impl Into<String>, what: impl Into<String>) -> Self {
        Self::new(State::Note, subject, what)
    }

    /// A finding about something that could not be examined.
    pub fn unknown(subject: impl Into<String>, what: impl Into<String>) -> Self {
        Self::new(State::Unknown, subject, what)
    }

    /// A finding about something that works, but not as well as it should, and the remedy.
    pub fn warning(subject: impl Into<String>, what: impl Into<String>, do_next: impl Into<String>) -> Self {
        Self::new(State::Warning, subject, what).then(do_next)
    }

    /// A finding about something that is missing, the uses that need it, and the remedy.
    pub fn missing(
        subject: impl Into<String>,
        what: impl Into<String>,
        needed_for: &[Use],
        do_next: impl Into<String>,
    ) -> Self {
        let finding = Self::new(State::Missing, subject, what).then(do_next);
        Self { needed_for: needed_for.to_vec(), ..finding }
    }

    /// Sets the remedy.
    pub fn then(self, do_next: impl Into<String>) -> Self {
        Self { do_next: Some(do_next.into()), ..self }
    }

    /// The finding from an answer about something that is not needed.
    pub(crate) fn optional(subject: &str, answer: &Answer, if_available: &str) -> Self {
        match answer {
            Answer::Yes => Self::ok(subject, if_available),
            Answer::No(why) => Self::note(subject, format!("not available: {why}")),
            Answer::Unknown(why) => Self::unknown(subject, why.clone()),
        }
    }

    fn new(state: State, subject: impl Into<String>, what: impl Into<String>) -> Self {
        Self { subject: subject.into(), state, what: what.into(), do_next: None, needed_for: Vec::new() }
    }
}

impl FindingGroup {
    pub(crate) fn new(title: impl Into<String>, findings: Vec<Finding>) -> Self {
        Self { title: title.into(), findings }
    }
}

impl Findings {
    /// All findings, in order.
    pub fn findings(&self) -> impl Iterator<Item = &Finding> {
        self.groups.iter().flat_map(|group| &group.findings)
    }

    /// The number of findings with a state.
    pub fn count(&self, state: State) -> usize {
        self.findings().filter(|finding| finding.state == state).count()
    }

    /// The findings about missing requirements of a use. A use without such findings is ready.
    pub fn missing(&self, of: Use) -> Vec<&Finding> {
        self.findings().filter(|finding| finding.needed_for.contains(&of)).collect()
    }

    /// Returns whether all uses are ready.
    pub fn is_ready(&self) -> bool {
        Use::ALL.iter().all(|&of| self.missing(of).is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_use_is_ready_when_nothing_is_missing_for_it() {
        let missing = Finding::missing("tools", "gone", &[Use::Laboratory], "install them");
        let report = Findings {
            groups: vec![
                FindingGroup::new("a", vec![Finding::ok("x", "y"), missing.clone()]),
                FindingGroup::new("b", vec![Finding::warning("z", "late", "spin")]),
            ],
        };
        assert_eq!(report.missing(Use::Laboratory), [&missing]);
        assert!(report.missing(Use::Router).is_empty() && !report.is_ready());
        assert_eq!(State::ALL.map(|state| report.count(state)), [1, 0, 0, 1, 1]);
    }

    #[test]
    fn words_are_the_same_in_json() {
        for state in State::ALL {
            assert_eq!(serde_json::to_value(state).unwrap(), state.name());
        }
        for of in Use::ALL {
            assert_eq!(serde_json::to_value(of).unwrap(), of.name());
        }
    }
}
