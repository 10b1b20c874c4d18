//! `list` and `show` of what scenarios choose by name: AQMs, transports, applications.

use crate::exit::Failure;
use crate::output;
use crate::table::Table;
use clap::Subcommand;
use cutline_params::{Parameter, Value};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;

#[derive(Subcommand)]
pub enum Command {
    /// All of them
    List {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// One of them: its source and its parameters
    Show {
        /// Its name, as in a scenario
        name: String,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
}

/// Everything of a kind.
pub struct Catalogue<D> {
    /// What one is called.
    pub noun: &'static str,
    pub items: Vec<Item>,
    /// The same as JSON documents, in the same order.
    pub documents: Vec<D>,
}

/// What a scenario can choose by name.
pub struct Item {
    pub name: &'static str,
    pub title: &'static str,
    /// The paper or RFC.
    pub source: &'static str,
    pub parameters: Vec<&'static Parameter>,
    /// Yes or no, each under the heading of its column. All of a kind have the same headings.
    pub properties: Vec<(&'static str, bool)>,
    /// Other sets of defaults: a set's name, and the value of each parameter.
    pub other_defaults: Vec<(&'static str, Vec<Value>)>,
    /// The key of a parameter that chooses among things that are described, too, and those.
    pub choices: Option<(&'static str, Vec<Self>)>,
}

impl<D: Serialize> Catalogue<D> {
    /// Executes a command; `list` makes the document of all items.
    pub fn execute<L: Serialize>(
        mut self,
        command: &Command,
        list: impl FnOnce(Vec<D>) -> L,
    ) -> Result<(), Failure> {
        match command {
            Command::List { json: true } => output::print_json(&list(self.documents)),
            Command::List { json: false } => output::print(&table(&self.items)),
            Command::Show { name, json } => {
                let at = self.find(name)?;
                if *json {
                    output::print_json(&self.documents.swap_remove(at))
                } else {
                    output::print(&self.items[at].show())
                }
            }
        }
    }

    fn find(&self, name: &str) -> Result<usize, Failure> {
        let names: Vec<_> = self.items.iter().map(|item| item.name).collect();
        let unknown =
            || Failure::Usage(format!("there is no {} {name:?}; there are: {}", self.noun, names.join(", ")));
        names.iter().position(|other| *other == name).ok_or_else(unknown)
    }
}

fn table(items: &[Item]) -> String {
    let properties = items.first().map(|item| &item.properties[..]).unwrap_or_default();
    let mut headings = vec!["name", "title"];
    headings.extend(properties.iter().map(|(heading, _)| *heading));
    headings.push("source");
    let mut table = Table::new(headings.len(), &headings);
    for item in items {
        let mut cells = vec![item.name, item.title];
        cells.extend(item.properties.iter().map(|(_, holds)| if *holds { "yes" } else { "no" }));
        cells.push(item.source);
        table.add(cells.into_iter().map(str::to_owned).collect());
    }
    table.render()
}

impl Item {
    /// Its source and its parameters, and what one of them chooses among.
    fn show(&self) -> String {
        let Self { name, title, source, .. } = self;
        let mut text = format!("{name}: {title} ({source})\n\n{}", self.parameters_table());
        if let Some((key, choices)) = &self.choices {
            let _ = write!(text, "\n{key}:\n\n{}", table(choices));
            for choice in choices.iter().filter(|choice| !choice.parameters.is_empty()) {
                let _ = write!(text, "\n{key} = {:?}:\n\n{}", choice.name, choice.parameters_table());
            }
        }
        text
    }

    fn parameters_table(&self) -> String {
        let mut headings = vec!["parameter", "allowed", "default"];
        headings.extend(self.other_defaults.iter().map(|(set, _)| *set));
        headings.extend(["default from", "meaning"]);
        let mut table = Table::new(headings.len(), &headings);
        for (at, parameter) in self.parameters.iter().enumerate() {
            let mut cells = vec![parameter.name.to_owned(), parameter.allowed(), parameter.default_text()];
            cells.extend(self.other_defaults.iter().map(|(_, values)| parameter.text(&values[at])));
            cells.extend([parameter.source, parameter.doc].map(str::to_owned));
            table.add(cells);
        }
        if table.is_empty() { "It has no parameters.\n".to_owned() } else { table.render() }
    }

    /// The documents of its parameters.
    pub fn parameter_documents(&self) -> Vec<ParameterDocument> {
        let document = |(at, parameter): (usize, &&'static Parameter)| ParameterDocument {
            name: parameter.name,
            unit: parameter.unit,
            kind: parameter.kind.name(),
            allowed: parameter.kind.to_string(),
            required: parameter.required,
            default: if parameter.required { Setting::Off } else { Setting::from(&parameter.default) },
            other_defaults: self
                .other_defaults
                .iter()
                .map(|(set, values)| (*set, Setting::from(&values[at])))
                .collect(),
            source: parameter.source,
            doc: parameter.doc,
        };
        self.parameters.iter().enumerate().map(document).collect()
    }
}

/// A parameter.
#[derive(Serialize, JsonSchema)]
pub struct ParameterDocument {
    /// Its key in a scenario.
    name: &'static str,
    /// The unit of its value; empty for values that are written with a unit, and for plain numbers.
    unit: &'static str,
    /// The kind of its value.
    kind: &'static str,
    /// The values that are allowed, in words.
    allowed: String,
    /// Whether a scenario must set it.
    required: bool,
    /// The default; null also if a scenario must set it.
    default: Setting,
    /// The defaults of other sets, such as `ns-2`.
    other_defaults: BTreeMap<&'static str, Setting>,
    /// The source of the default.
    source: &'static str,
    /// Its meaning.
    doc: &'static str,
}

/// The value of a parameter.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Setting {
    /// A count.
    Count(u64),
    /// A number.
    Number(f64),
    /// Yes or no.
    Flag(bool),
    /// A time, a frequency, a choice or a distribution, as a scenario writes it.
    Text(String),
    /// Times, as a scenario writes them.
    Texts(Vec<String>),
    /// Counts.
    Counts(Vec<u64>),
    /// Off.
    Off,
}

/// Numbers and switches as such; times and frequencies as a scenario writes them; null for what is off.
impl From<&Value> for Setting {
    fn from(value: &Value) -> Self {
        match value {
            Value::Number(x) => Self::Number(*x),
            Value::Count(n) => Self::Count(*n),
            Value::Flag(flag) => Self::Flag(*flag),
            Value::Durations(times) => Self::Texts(times.iter().map(ToString::to_string).collect()),
            Value::Counts(counts) => Self::Counts(counts.to_vec()),
            Value::Duration(_) | Value::Frequency(_) | Value::Choice(_) | Value::Distribution(_) => {
                Self::Text(value.to_string())
            }
            Value::Off => Self::Off,
        }
    }
}
