//! Lines of publishers: parsing, with limits of their lists and texts.

use cutline_publish::{DirectionRow, ProgramRow, RowKind, SocketRow, VERSION};
use cutline_router_service::{DirectionStatistics, Statistics};
use serde::Deserialize;

/// The most measures in a direction of a row.
const MOST_MEASURES: usize = 16;
/// The most buckets in a direction of a row.
const MOST_BUCKETS: usize = 64;
/// The most reasons of losses in a direction of a router.
const MOST_REASONS: usize = 32;
/// The most hints in a direction of a router.
const MOST_HINTS: usize = cutline_router::HINTS;
/// The most flows, and the most hosts, in a direction of a router.
const MOST_FLOWS: usize = 32;
/// The most interfaces of a router.
const MOST_INTERFACES: usize = 16;
/// The longest name, bytes. Longer ones are cut.
const LONGEST_NAME: usize = 256;
/// The longest other text, such as a specification in words or a reason, bytes. Longer ones are cut.
const LONGEST_TEXT: usize = 1024;

/// Reason why a publisher is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PublishedLineError {
    /// A line is not of the protocol.
    #[error("a line is not of the protocol: {0}")]
    Malformed(String),
    /// The publisher's protocol has another version.
    #[error("the version of the protocol is {0}, allowed is {VERSION}")]
    Version(u32),
    /// Too many publishers.
    #[error("there are too many publishers, in total or of this user")]
    Full,
}

/// A line of a publisher.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Content {
    Hello { version: u32, program: String },
    Socket(Box<SocketRow>),
    Program(Box<ProgramRow>),
    Router(Box<Statistics>),
    Gone { kind: RowKind, number: u64 },
}

/// A line of a publisher, and its length.
#[derive(Debug)]
pub struct PublishedLine {
    pub(super) content: Content,
    pub(super) length: usize,
}

impl PublishedLine {
    /// Parses a line, without its end.
    ///
    /// # Errors
    /// When it is not of the protocol, or its lists are longer than a publisher's.
    pub fn parse(line: &[u8]) -> Result<Self, PublishedLineError> {
        let mut content: Content =
            serde_json::from_slice(line).map_err(|error| PublishedLineError::Malformed(error.to_string()))?;
        let has_long_lists = match &content {
            Content::Socket(row) => [&row.send, &row.receive].into_iter().any(has_long_lists),
            Content::Router(statistics) => has_long_router_lists(statistics),
            Content::Hello { .. } | Content::Program(_) | Content::Gone { .. } => false,
        };
        if has_long_lists {
            return Err(PublishedLineError::Malformed("a list is too long".to_owned()));
        }
        cut_texts(&mut content);
        Ok(Self { content, length: line.len() })
    }
}

/// Returns whether a router states more than a router has.
fn has_long_router_lists(statistics: &Statistics) -> bool {
    let is_long = |direction: &DirectionStatistics| {
        let buckets = &direction.waits_us;
        direction.dropped.len() > MOST_REASONS
            || direction.dropped.keys().any(|reason| reason.len() > LONGEST_NAME)
            || direction.hints.len() > MOST_HINTS
            || direction.flows.len().max(direction.hosts.len()) > MOST_FLOWS
            || buckets.counts.len().max(buckets.bounds.len()) > MOST_BUCKETS
    };
    is_long(&statistics.forward)
        || is_long(&statistics.reverse)
        || statistics.interfaces.len() > MOST_INTERFACES
}

/// Cuts texts: the names among them are labels of metrics, each of which is repeated in many lines.
fn cut_texts(content: &mut Content) {
    match content {
        Content::Socket(row) => {
            let SocketRow { transport, local, peer, state, reservation, refusal, .. } = &mut **row;
            [transport, local, peer, state, reservation].into_iter().for_each(cut);
            if let Some(refusal) = refusal {
                cut_to(LONGEST_TEXT, refusal);
            }
            for direction in [&mut row.send, &mut row.receive] {
                let DirectionRow { offered, requested, effective, .. } = direction;
                for specification in [offered, requested, effective] {
                    cut_to(LONGEST_TEXT, specification);
                }
                direction.limits.iter_mut().for_each(|limit| cut(&mut limit.measure));
                for violation in &mut direction.violations {
                    [&mut violation.measure, &mut violation.origin].into_iter().for_each(cut);
                }
            }
        }
        Content::Program(row) => {
            let ProgramRow { program, method, .. } = &mut **row;
            [program, method].into_iter().for_each(cut);
        }
        Content::Router(statistics) => {
            for direction in [&mut statistics.forward, &mut statistics.reverse] {
                [&mut direction.name, &mut direction.queue].into_iter().for_each(cut);
                for flow in &mut direction.flows {
                    [&mut flow.source, &mut flow.destination].into_iter().for_each(cut);
                }
                for host in &mut direction.hosts {
                    [&mut host.host, &mut host.side].into_iter().for_each(cut);
                }
            }
            for interface in &mut statistics.interfaces {
                [&mut interface.name, &mut interface.kind].into_iter().for_each(cut);
            }
            if let Some(error) = statistics.reload.as_mut().and_then(|reload| reload.error.as_mut()) {
                cut_to(LONGEST_TEXT, error);
            }
        }
        // The name of a program is cut where it is kept.
        Content::Hello { .. } | Content::Gone { .. } => {}
    }
}

/// Cuts a name that is too long.
fn cut(name: &mut String) {
    cut_to(LONGEST_NAME, name);
}

/// Cuts a text to at most so many bytes.
fn cut_to(longest: usize, text: &mut String) {
    if text.len() > longest {
        let most = longest - "…".len();
        let end = (0..=most).rfind(|end| text.is_char_boundary(*end)).unwrap_or_default();
        text.truncate(end);
        text.push('…');
    }
}

/// Returns whether a direction has more measures or buckets than there are. A short line could take much memory with them.
fn has_long_lists(direction: &DirectionRow) -> bool {
    let buckets = direction.delay_buckets_ms.as_ref();
    let counts = buckets.map_or(0, |buckets| buckets.counts.len().max(buckets.bounds.len()));
    direction.limits.len().max(direction.violations.len()) > MOST_MEASURES || counts > MOST_BUCKETS
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutline_router_service::{FlowStatistics, HintStatistics, HostStatistics, Interface, PacketCount};
    use serde_json::json;

    /// A router has 9 reasons, 16 hints, 16 flows and 2 interfaces. Each of those would be lines of metrics and rows of tables.
    #[test]
    fn a_router_states_no_more_than_a_router_has() {
        let parsed = |change: &dyn Fn(&mut Statistics)| {
            let mut statistics = Statistics::default();
            change(&mut statistics);
            PublishedLine::parse(json!({ "router": statistics }).to_string().as_bytes())
        };
        let reasons = |direction: &mut DirectionStatistics, number: usize| {
            let reasons = (0..number).map(|reason| (reason.to_string(), PacketCount::default()));
            direction.dropped = reasons.collect();
        };
        parsed(&|it| reasons(&mut it.forward, MOST_REASONS)).unwrap();
        parsed(&|it| it.reverse.hints.resize(MOST_HINTS, HintStatistics::default())).unwrap();
        for change in [
            &(|it: &mut Statistics| reasons(&mut it.reverse, MOST_REASONS + 1)) as &dyn Fn(&mut Statistics),
            &|it| it.forward.dropped.extend([("x".repeat(LONGEST_NAME + 1), PacketCount::default())]),
            &|it| it.forward.hints.resize(MOST_HINTS + 1, HintStatistics::default()),
            &|it| it.reverse.flows.resize(MOST_FLOWS + 1, FlowStatistics::default()),
            &|it| it.forward.hosts.resize(MOST_FLOWS + 1, HostStatistics::default()),
            &|it| it.forward.waits_us.counts.resize(MOST_BUCKETS + 1, 1),
            &|it| it.interfaces.resize(MOST_INTERFACES + 1, Interface::default()),
        ] {
            assert!(matches!(parsed(change), Err(PublishedLineError::Malformed(_))));
        }
    }
}
