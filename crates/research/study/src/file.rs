//! `study.toml`: the name of a study, and its experiments.
//!
//! ```toml
//! title = "How long may the queue be?"
//! about = "the target of PIE from 5 to 100 ms"      # one line, for lists of studies
//! intro = "One call among ten transfers. Numbers are means over seeds with their 95 % confidence interval."
//! heading = "The question"                          # above the statement on each figure
//! papers = ["TSQ"]                                  # sources: one of Cutline's four papers by its name, or any citation
//! quick = { duration = "10 s", seeds = 2 }          # what `--quick` sets
//!
//! [settings]
//! ecn = { "flow.bulk.transport.ecn" = true }        # settings with a name, for several experiments
//!
//! [[experiment]]
//! id = "targets"                                    # the folder of its results, and the first part of its claims' ids
//! label = "drops"                                   # in the titles of charts
//! file = "targets.toml"                             # a scenario, relative to this file
//!
//! [[experiment]]
//! id = "targets-ecn"
//! label = "marks"
//! file = "targets.toml"
//! with = ["ecn"]                                    # settings by name, in this order
//! set = { seeds = 20 }                              # and settings of its own
//! quick = { duration = "5 s", seeds = 2 }           # instead of the study's
//! platform = "simulator"                            # where it is run
//! ```
//!
//! Values of settings are those of the scenario file. A text without quotes of its own is written as after `--set`: `"4 Mbit/s"`.

use crate::experiment::{Experiment, Overrides};
use crate::papers::citation;
use crate::platform::Platform;
use serde::Deserialize;
use std::collections::BTreeMap;

/// Default settings of `--quick`.
const QUICK: [(&str, &str); 3] = [("duration", "30 s"), ("warm-up", "15 s"), ("seeds", "2")];

/// Content of `study.toml`.
pub(crate) struct StudyText {
    pub(crate) title: String,
    pub(crate) about: String,
    pub(crate) intro: String,
    pub(crate) heading: String,
    pub(crate) papers: Vec<String>,
    pub(crate) experiments: Vec<Experiment>,
}

/// Finds a scenario by the name that `study.toml` gives it. Returns the full name, for messages and results, and the text.
pub type FindScenario<'t> = &'t dyn Fn(&str) -> Result<(String, String), String>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StudyToml {
    title: String,
    #[serde(default)]
    about: String,
    #[serde(default)]
    intro: String,
    #[serde(default = "the_question")]
    heading: String,
    #[serde(default)]
    papers: Vec<String>,
    quick: Option<toml::Table>,
    #[serde(default)]
    settings: BTreeMap<String, toml::Table>,
    experiment: Vec<ExperimentToml>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExperimentToml {
    id: String,
    label: String,
    file: String,
    #[serde(default)]
    with: Vec<String>,
    #[serde(default)]
    set: toml::Table,
    quick: Option<toml::Table>,
    #[serde(default = "the_simulator")]
    platform: String,
}

fn the_question() -> String {
    "The question".to_owned()
}

fn the_simulator() -> String {
    "simulator".to_owned()
}

impl StudyText {
    /// Reads `study.toml`. `scenario` finds a scenario file by the name that the file gives it, and returns its full name and text.
    ///
    /// # Errors
    /// Error, with the experiment's name.
    pub(crate) fn parse(
        text: &str,
        platforms: &[&'static dyn Platform],
        scenario: FindScenario<'_>,
    ) -> Result<Self, String> {
        let file: StudyToml = toml::from_str(text).map_err(|error| error.to_string())?;
        let quick = file.quick.as_ref().map_or_else(default_quick, overrides);
        let mut experiments: Vec<Experiment> = Vec::new();
        for one in file.experiment {
            let about = |what: String| format!("experiment `{}`: {what}", one.id);
            check_id(&one.id).map_err(about)?;
            if experiments.iter().any(|other| other.id == one.id) {
                return Err(about("there is another one of this name".to_owned()));
            }
            let mut set = Overrides::new();
            for name in &one.with {
                let named =
                    file.settings.get(name).ok_or_else(|| about(format!("[settings] has no `{name}`")))?;
                set.extend(overrides(named));
            }
            set.extend(overrides(&one.set));
            let known = || platforms.iter().map(|platform| platform.name()).collect::<Vec<_>>().join(", ");
            let platform = platforms.iter().find(|platform| platform.name() == one.platform);
            let platform = platform
                .ok_or_else(|| about(format!("no platform `{}`; there are {}", one.platform, known())))?;
            let (name, text) = scenario(&one.file).map_err(about)?;
            experiments.push(Experiment {
                id: one.id,
                label: one.label,
                file: name,
                text,
                set,
                quick: one.quick.as_ref().map_or_else(|| quick.clone(), overrides),
                platform: *platform,
            });
        }
        Ok(Self {
            title: file.title,
            about: file.about,
            intro: file.intro.trim().to_owned(),
            heading: file.heading,
            papers: file.papers.iter().map(|paper| citation(paper)).collect(),
            experiments,
        })
    }
}

fn default_quick() -> Overrides {
    QUICK.map(|(path, value)| (path.to_owned(), value.to_owned())).to_vec()
}

/// The settings of a table, as after `--set`.
fn overrides(table: &toml::Table) -> Overrides {
    let text = |value: &toml::Value| match value {
        toml::Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    table.iter().map(|(path, value)| (path.clone(), text(value))).collect()
}

/// A name becomes that of a folder.
fn check_id(id: &str) -> Result<(), String> {
    let is_allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if id.is_empty() || id.starts_with('-') || !id.chars().all(is_allowed) {
        return Err(
            "an `id` has small letters, digits and hyphens, and does not begin with a hyphen".to_owned()
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::Simulator;

    fn parse(text: &str) -> Result<StudyText, String> {
        StudyText::parse(text, &[&Simulator], &|name| match name {
            "a.toml" => Ok(("mine/a.toml".to_owned(), "duration = \"1 s\"".to_owned())),
            _ => Err(format!("{name} cannot be read")),
        })
    }

    const HEAD: &str = "title = 'T'\n";

    #[test]
    fn settings_are_joined_in_their_order() {
        let study = parse(
            "title = 'T'\nquick = { seeds = 1 }\n[settings]\nrate = { 'link.a.rate' = '4 Mbit/s', x = 1.5 }\n\
             [[experiment]]\nid = 'one'\nlabel = 'One'\nfile = 'a.toml'\nwith = ['rate']\nset = { x = 2, t = { p = 'tcp', n = true } }\n\
             [[experiment]]\nid = 'two'\nlabel = 'Two'\nfile = 'a.toml'\nquick = {}",
        )
        .unwrap();
        let [one, two] = &study.experiments[..] else { panic!("two experiments") };
        let pairs =
            |set: &Overrides| set.iter().map(|(path, value)| format!("{path}={value}")).collect::<Vec<_>>();
        assert_eq!(pairs(&one.set), ["link.a.rate=4 Mbit/s", "x=1.5", "x=2", "t={ p = \"tcp\", n = true }"]);
        assert_eq!((pairs(&one.quick), two.quick.len()), (vec!["seeds=1".to_owned()], 0));
        assert_eq!((one.file.as_str(), study.heading.as_str()), ("mine/a.toml", "The question"));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let error = |experiment: &str| {
            parse(&format!("{HEAD}[[experiment]]\nlabel = 'L'\n{experiment}")).err().expect("it is refused")
        };
        assert!(error("id = 'a/b'\nfile = 'a.toml'").contains("experiment `a/b`: an `id` has small letters"));
        assert!(error("id = 'a'\nfile = 'b.toml'").contains("b.toml cannot be read"));
        assert!(error("id = 'a'\nfile = 'a.toml'\nwith = ['x']").contains("[settings] has no `x`"));
        assert!(error("id = 'a'\nfile = 'a.toml'\nplatform = 'moon'").contains("there are simulator"));
        assert!(error("id = 'a'\nfile = 'a.toml'\nlenght = 1").contains("lenght"));
        let twice = "[[experiment]]\nid = 'a'\nlabel = 'L'\nfile = 'a.toml'\n".repeat(2);
        assert!(parse(&format!("{HEAD}{twice}")).err().unwrap().contains("another one"));
    }
}
