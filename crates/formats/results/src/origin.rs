//! The origin of a set of results. Two sets with the same origin have the same runs of the same program.

use crate::key::RunKey;
use crate::summary::Summary;
use crate::version::SCHEMA_VERSION;
use sha2::{Digest, Sha256};
use std::fmt::Write as _;

/// The identity of a set of results: 16 hex digits of a hash over the version of the tables, the version of the program,
/// and the point, seed and identifier of every run, in the order of the tables.
///
/// A run's identifier ([`RunKey::run`]) is a hash of the scenario that it simulates, so the scenario is included as it is
/// after `--set`. Title and description are not: they change no row.
pub fn origin(keys: &[RunKey], version: &str) -> String {
    let mut text = format!("{SCHEMA_VERSION}\n{version}\n");
    for key in keys {
        let _ = writeln!(text, "{}\n{}\n{}", key.point, key.seed, key.run);
    }
    let digest = Sha256::digest(text.as_bytes());
    digest.iter().take(8).fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"))
}

impl Summary {
    /// Returns the origin of these results on one line: version, scenario file, seeds, points and settings.
    pub fn story(&self) -> String {
        let seeds = match (self.seeds.first(), self.seeds.last()) {
            (Some(first), Some(last)) if first != last => format!("seeds {first} to {last}"),
            (Some(seed), _) => format!("seed {seed}"),
            _ => "no seeds".to_owned(),
        };
        let points = match self.points.len() {
            1 => "1 point".to_owned(),
            points => format!("{points} points"),
        };
        let set = |text: String, (key, value): &(String, String)| text + &format!(", {key}={value}");
        let settings = self.overrides.iter().fold(String::new(), set);
        format!("version {}, {}, {seeds}, {points}{settings}", self.version, self.scenario_file)
    }

    /// Returns the differences between the origins of these results and `other` in words; empty if there are none.
    pub fn differences(&self, other: &Self) -> Vec<&'static str> {
        let settings = |summary: &Self| {
            let mut settings = summary.overrides.clone();
            settings.retain(|(key, _)| !["seed", "seeds"].contains(&key.as_str()));
            settings
        };
        let facts = [
            (self.schema == other.schema, "the version of the tables"),
            (self.version == other.version, "the version of Cutline"),
            (self.seeds == other.seeds, "the seeds"),
            (settings(self) == settings(other), "the settings"),
            (self.scenario == other.scenario, "the text of the scenario"),
        ];
        facts.into_iter().filter(|(same, _)| !same).map(|(_, what)| what).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(run: &str, point: &str, seed: u64) -> RunKey {
        RunKey { run: run.into(), point: point.into(), seed }
    }

    #[test]
    fn every_part_of_the_origin_changes_it() {
        let keys = [key("a", "base", 1), key("b", "base", 2)];
        let others = [
            origin(&[key("a", "base", 1)], "1"),
            origin(&[key("c", "base", 1), key("b", "base", 2)], "1"),
            origin(&[key("a", "base", 1), key("b", "base", 3)], "1"),
            origin(&[key("a", "hint=1", 1), key("b", "base", 2)], "1"),
            origin(&keys, "2"),
        ];
        let own = origin(&keys, "1");
        assert_eq!((own.len(), own == origin(&keys.clone(), "1")), (16, true));
        assert!(others.iter().all(|other| *other != own));
    }
}
