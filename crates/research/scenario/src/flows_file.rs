//! A file of flows without a network, for the traffic generator.
//!
//! Its `[[flow]]` tables have the keys of a scenario's flows, except `from` and `to`, and `direction` in addition. The file may also have `name`,
//! `title`, `description`, `seed`, `duration` and `interval`. Scenarios use the same reader for flows.

use crate::read::flow;
use crate::spec::FlowGroupSpec;
use cutline_config::{Document, Errors, TableReader, kind};
use cutline_units::Duration;
use std::path::Path;

/// The flows of a file, their duration and their seed.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowsFile {
    /// Seed of the random numbers.
    pub seed: Option<u64>,
    /// Time for which the flows send.
    pub duration: Option<Duration>,
    /// Width of the interval series.
    pub interval: Option<Duration>,
    /// Groups of flows with the same parameters, at least one.
    pub flows: Vec<FlowGroupSpec>,
}

impl FlowsFile {
    /// Reads the file at `path`.
    ///
    /// # Errors
    /// All problems of the file.
    pub fn load(path: &Path) -> Result<Self, Errors> {
        Self::from_document(&Document::load(path)?)
    }

    /// Reads the text of a file. Messages call the file `name`.
    ///
    /// # Errors
    /// All problems of the text.
    pub fn parse(text: &str, name: &str) -> Result<Self, Errors> {
        Self::from_document(&Document::parse(text, name)?)
    }

    fn from_document(document: &Document) -> Result<Self, Errors> {
        cutline_config::read(document, |root| Some(read(root)))
    }
}

fn read(root: &TableReader<'_>) -> FlowsFile {
    root.optional("name", &kind::name());
    root.optional("title", &kind::text());
    root.optional("description", &kind::text());
    let file = FlowsFile {
        seed: root.optional("seed", &kind::integer(0, i64::MAX)),
        duration: root.optional("duration", &kind::positive_duration()),
        interval: root.optional("interval", &kind::positive_duration()),
        flows: flow::read_all(root, &flow::Surroundings::nowhere()),
    };
    root.finish();
    file
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::FlowDirection;
    use cutline_transport::app::Params;
    use cutline_units::Distribution;

    const FLOW: &str = "[[flow]]\nname = 'a'\ncount = 2\nhint = 3\ntransport = { protocol = 'udp' }\n\
                        app = { kind = 'poisson', rate = '1 Mbit/s', size = { distribution = 'exponential', mean = '500 B' } }\n";

    fn why(text: &str) -> String {
        FlowsFile::parse(text, "f.toml").unwrap_err().to_string()
    }

    #[test]
    fn a_flows_file_needs_no_network() {
        let file = FlowsFile::parse(&format!("seed = 4\nduration = '9 s'\n{FLOW}"), "f.toml").unwrap();
        assert_eq!((file.seed, file.duration, file.interval), (Some(4), Some(Duration::from_secs(9)), None));
        let [flow] = &file.flows[..] else { panic!("one group") };
        assert_eq!(
            (flow.member_names().collect::<Vec<_>>(), flow.hint.level()),
            (vec!["a.1".into(), "a.2".into()], 3)
        );
        let Params::Poisson(poisson) = &flow.app else { panic!("a Poisson source") };
        assert_eq!(poisson.size, Distribution::Exponential { mean: 500.0 });
    }

    #[test]
    fn flows_have_a_direction() {
        let direction = |key: &str| {
            let text = FLOW.replace("count = 2", key);
            FlowsFile::parse(&text, "f.toml").unwrap().flows[0].direction
        };
        assert_eq!(direction(""), FlowDirection::Forward);
        assert_eq!(direction("direction = 'reverse'"), FlowDirection::Reverse);
        assert_eq!(direction("direction = 'bidirectional'"), FlowDirection::Bidirectional);
        assert!(why(&FLOW.replace("count = 2", "direction = 'back'")).contains("\"bidirectional\""));
    }

    #[test]
    fn keys_of_a_network_are_refused() {
        assert!(why(&format!("{FLOW}from = 'x'\n")).contains("from the sender to the receiver"));
        assert!(
            why(&FLOW.replace("count = 2", "tunnel = 'vpn'")).contains("only the queues of a simulation")
        );
        assert!(why(&format!("[dumbbell]\n{FLOW}")).contains("dumbbell"));
        assert!(why("duration = '1 s'\n").contains("at least one [[flow]]"));
        assert!(why(&FLOW.replace("1 Mbit/s", "1")).contains("f.toml:6:"));
    }
}
