//! `study.toml`: the name of a study, and its experiments.
//!
//! ```toml
//! title = "How long may the queue be?"
//! about = "the target of PIE from 5 to 100 ms"      # one line, for lists of studies
//! intro = "One call among ten transfers. Numbers are means over seeds with their 95 % confidence interval."
//! heading = "The question"                          # above the statement on each figure
//! papers = ["TSQ"]                                  # sources: one of Cutline's four papers by its name, or any citation
//! quick = { duration = "10 s", seeds = 2 }          # settings of `--quick`
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

use crate::experiment::{Experiment, Override, Overrides};
use crate::papers::citation;
use crate::platform::Platform;
use cutline_config::{Document, Errors, Node, TableEntry, TableReader, Value, ValueKind, kind, read};
use std::collections::BTreeMap;

/// Default settings of `--quick`.
const QUICK: [(&str, &str); 3] = [("duration", "30 s"), ("warm-up", "15 s"), ("seeds", "2")];

/// Expectation of a table of settings, in messages.
const SETTINGS: &str = "a table of settings such as { seeds = 2 }";

/// Content of `study.toml`.
#[derive(Debug)]
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

/// Context for reading an experiment.
struct Context<'c> {
    quick: Overrides,
    settings: BTreeMap<String, Overrides>,
    platforms: &'c [&'static dyn Platform],
    scenario: FindScenario<'c>,
}

impl StudyText {
    /// Reads `study.toml`. `scenario` finds a scenario file by the name that the file gives it, and returns its full name and text.
    ///
    /// # Errors
    /// All problems of the file.
    pub(crate) fn read(
        document: &Document,
        platforms: &[&'static dyn Platform],
        scenario: FindScenario<'_>,
    ) -> Result<Self, Errors> {
        read(document, |root| study(root, platforms, scenario))
    }

    /// The names of the experiments, also of a file with problems.
    pub(crate) fn experiment_ids(document: &Document) -> Vec<String> {
        let Some(Value::List(list)) = document.root().get("experiment").map(|node| &node.value) else {
            return Vec::new();
        };
        let id = |node: &Node| node.as_table()?.get("id")?.as_text().map(str::to_owned);
        list.iter().filter_map(id).collect()
    }
}

fn study(
    root: &TableReader<'_>,
    platforms: &[&'static dyn Platform],
    scenario: FindScenario<'_>,
) -> Option<StudyText> {
    let text = |key: &str, default: &str| root.or(key, &kind::text(), default.to_owned());
    let title = root.required("title", &kind::text());
    let (about, intro, heading) = (text("about", ""), text("intro", ""), text("heading", "The question"));
    let papers = root.list("papers", &kind::text()).unwrap_or_default();
    let quick = overrides(root, "quick").unwrap_or_else(default_quick);
    let context = Context { quick, settings: named_settings(root), platforms, scenario };
    let experiments = experiments(root, &context);
    root.finish();
    Some(StudyText {
        title: title?,
        about,
        intro: intro.trim().to_owned(),
        heading,
        papers: papers.iter().map(|paper| citation(paper)).collect(),
        experiments,
    })
}

fn default_quick() -> Overrides {
    let set = |(path, value): (&str, &str)| Override {
        path: path.to_owned(),
        value: value.to_owned(),
        place: "--quick".to_owned(),
    };
    QUICK.map(set).to_vec()
}

/// The tables of `[settings]` by their names.
fn named_settings(root: &TableReader<'_>) -> BTreeMap<String, Overrides> {
    let Some(tables) = root.table("settings", "tables of settings, by name") else { return BTreeMap::new() };
    let names = tables.entries().map(|(name, _)| name);
    names.filter_map(|name| Some((name.to_owned(), overrides(&tables, name)?))).collect()
}

/// The experiments without problems. The problems of others are reported.
fn experiments(root: &TableReader<'_>, context: &Context<'_>) -> Vec<Experiment> {
    let mut experiments: Vec<Experiment> = Vec::new();
    for reader in root.required_tables("experiment") {
        let Some(one) = experiment(&reader, context) else { continue };
        if experiments.iter().any(|other| other.id == one.id) {
            reader.refuse("id", "there is another experiment of this name");
        }
        experiments.push(one);
    }
    experiments
}

fn experiment(reader: &TableReader<'_>, context: &Context<'_>) -> Option<Experiment> {
    let id = reader.required("id", &id_kind());
    let label = reader.required("label", &kind::text());
    let file = reader.required("file", &kind::text());
    let scenario =
        file.and_then(|file| (context.scenario)(&file).map_err(|why| reader.refuse("file", &why)).ok());
    let words = context.settings.iter().map(|(name, set)| (name.clone(), set.clone())).collect();
    let with = reader.list("with", &kind::choice("a table of [settings]", words)).unwrap_or_default();
    let own = overrides(reader, "set").unwrap_or_default();
    let quick = overrides(reader, "quick").unwrap_or_else(|| context.quick.clone());
    let platform = platform(reader, context.platforms);
    reader.finish();
    let (file, text) = scenario?;
    let set = with.into_iter().flatten().chain(own).collect();
    Some(Experiment { id: id?, label: label?, file, text, set, quick, platform: platform? })
}

/// The platform; the simulator by default.
fn platform(reader: &TableReader<'_>, platforms: &[&'static dyn Platform]) -> Option<&'static dyn Platform> {
    let words = platforms.iter().map(|platform| (platform.name().to_owned(), *platform)).collect();
    let platform = reader.optional("platform", &kind::choice("a platform", words));
    if reader.has("platform") {
        return platform;
    }
    let simulator = platforms.iter().find(|platform| platform.name() == "simulator").copied();
    if simulator.is_none() {
        reader.refuse("platform", "there is no simulator here: name a platform");
    }
    simulator
}

/// The settings of a table, as after `--set`, in the order of the file; `None` if there is none, or it is wrong and reported.
fn overrides(reader: &TableReader<'_>, key: &str) -> Option<Overrides> {
    let table = reader.table(key, SETTINGS)?;
    let text = |node: &Node| node.as_text().map_or_else(|| node.value.inline(), str::to_owned);
    let entries = table.contents().in_file_order().into_iter();
    let set = |(path, entry): (&str, &TableEntry)| Override {
        path: path.to_owned(),
        value: text(&entry.node),
        place: table.document().position(&entry.key),
    };
    Some(entries.map(set).collect())
}

/// The name of an experiment, which becomes that of a folder.
fn id_kind() -> ValueKind<String> {
    let is_allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    kind::text().only("of small letters, digits and hyphens, that does not begin with a hyphen", move |id| {
        !id.is_empty() && !id.starts_with('-') && id.chars().all(is_allowed)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::Simulator;

    fn parse(text: &str) -> Result<StudyText, Errors> {
        let document = Document::parse(text, "mine/study.toml")?;
        StudyText::read(&document, &[&Simulator], &|name| match name {
            "a.toml" => Ok(("mine/a.toml".to_owned(), "duration = \"1 s\"".to_owned())),
            _ => Err(format!("{name} cannot be read")),
        })
    }

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
            |set: &Overrides| set.iter().map(|one| format!("{}={}", one.path, one.value)).collect::<Vec<_>>();
        assert_eq!(pairs(&one.set), ["link.a.rate=4 Mbit/s", "x=1.5", "x=2", "t={ p = \"tcp\", n = true }"]);
        assert_eq!((pairs(&one.quick), two.quick.len()), (vec!["seeds=1".to_owned()], 0));
        assert_eq!((one.file.as_str(), study.heading.as_str()), ("mine/a.toml", "The question"));
    }

    #[test]
    fn a_wrong_setting_is_named_where_it_was_written() {
        let with = |settings: &str| {
            let study = parse(&format!(
                "title = 'T'\n[settings]\nslow = {{ 'flow.a.hint' = 3 }}\n[[experiment]]\nid = 'a'\nlabel = 'A'\nfile = 'a.toml'\n{settings}\n",
            ));
            study.unwrap().experiments[0].scenario_file(true).map(|_| ()).unwrap_err().to_string()
        };
        let why = "key \"flow.a.hint\": the file has no [[flow]]";
        assert_eq!(with("with = ['slow']"), format!("mine/study.toml:3:10: flow.a.hint=3: {why}"));
        assert_eq!(
            with("quick = { 'flow.a.hint' = 4 }"),
            format!("mine/study.toml:8:11: flow.a.hint=4: {why}")
        );
    }

    fn error(experiment: &str) -> String {
        let errors = parse(&format!("title = 'T'\n[[experiment]]\nlabel = 'L'\n{experiment}\n")).unwrap_err();
        errors.to_string()
    }

    #[test]
    fn errors_name_the_wrong_key_or_value() {
        assert_eq!(
            error("id = 'a/b'\nfile = 'a.toml'"),
            "mine/study.toml:4:6: key \"experiment.a/b.id\": value 'a/b' is not allowed: expected a text in quotes, of small \
             letters, digits and hyphens, that does not begin with a hyphen"
        );
        assert_eq!(
            error("id = 'a'\nfile = 'b.toml'"),
            "mine/study.toml:5:8: key \"experiment.a.file\": value 'b.toml' is not allowed: b.toml cannot be read"
        );
        assert_eq!(
            error("id = 'a'\nfile = 'a.toml'\nwith = ['x']"),
            "mine/study.toml:6:9: key \"experiment.a.with\": value 'x' is not allowed: expected a table of [settings]; there \
             is none"
        );
        assert_eq!(
            error("id = 'a'\nfile = 'a.toml'\nplatform = 'simulatr'"),
            "mine/study.toml:6:12: key \"experiment.a.platform\": value 'simulatr' is not allowed: expected a platform: \
             \"simulator\"; did you mean \"simulator\"?"
        );
        let twice =
            error("id = 'a'\nfile = 'a.toml'\n[[experiment]]\nlabel = 'L'\nid = 'a'\nfile = 'a.toml'");
        assert_eq!(
            twice,
            "mine/study.toml:8:6: key \"experiment[2].id\": value 'a' is not allowed: there is another experiment of this name"
        );
    }

    #[test]
    fn all_errors_are_reported_with_their_lines() {
        let errors =
            parse("titel = 'T'\n[[experiment]]\nid = 'a'\nlabel = 7\nfile = 'a.toml'\nplatfrom = 'x'\n")
                .unwrap_err();
        assert_eq!(
            errors.render(),
            "mine/study.toml:1:1: key \"titel\" is not known here: did you mean \"title\"?\n   |\n 1 | titel = 'T'\n   | ^^^^^\n\n\
             mine/study.toml:4:9: key \"experiment.a.label\": value 7 is not allowed: expected a text in quotes\n   |\n 4 | label = \
             7\n   |         ^\n\n\
             mine/study.toml:6:1: key \"experiment.a.platfrom\" is not known here: did you mean \"platform\"?\n   |\n 6 | platfrom \
             = 'x'\n   | ^^^^^^^^"
        );
    }
}
