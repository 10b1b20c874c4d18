//! `list` and `show` of what scenarios choose by name: AQMs, transports, applications.

use crate::exit::Failure;
use crate::output;
use crate::table::Table;
use clap::Subcommand;
use cutline_params::{Parameter, Value};
use serde_json::{Value as Json, json};
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
pub struct Catalogue {
    /// What one is called.
    pub noun: &'static str,
    pub items: Vec<Item>,
}

/// What a scenario can choose by name.
pub struct Item {
    pub name: &'static str,
    pub title: &'static str,
    /// The paper or RFC.
    pub source: &'static str,
    pub parameters: Vec<&'static Parameter>,
    /// What is so or not: the same for all of a kind.
    pub properties: Vec<Property>,
    /// Other sets of defaults: a set's name, and the value of each parameter.
    pub other_defaults: Vec<(&'static str, Vec<Value>)>,
    /// The key of a parameter that chooses among things that are described, too, and those.
    pub choices: Option<(&'static str, Vec<Self>)>,
}

/// What is so or not.
pub struct Property {
    /// The heading of its column.
    pub heading: &'static str,
    /// Its key in JSON.
    pub key: &'static str,
    pub holds: bool,
}

impl Catalogue {
    pub fn execute(&self, command: &Command) -> Result<(), Failure> {
        match command {
            Command::List { json: true } => {
                output::print_json(&self.items.iter().map(Item::as_json).collect::<Vec<_>>())
            }
            Command::List { json: false } => output::print(&list(&self.items)),
            Command::Show { name, json } => {
                let item = self.find(name)?;
                if *json { output::print_json(&item.as_json()) } else { output::print(&item.show()) }
            }
        }
    }

    fn find(&self, name: &str) -> Result<&Item, Failure> {
        let names: Vec<_> = self.items.iter().map(|item| item.name).collect();
        let unknown =
            || Failure::Usage(format!("there is no {} {name:?}; there are: {}", self.noun, names.join(", ")));
        self.items.iter().find(|item| item.name == name).ok_or_else(unknown)
    }
}

fn list(items: &[Item]) -> String {
    let properties = items.first().map(|item| &item.properties[..]).unwrap_or_default();
    let mut headings = vec!["name", "title"];
    headings.extend(properties.iter().map(|property| property.heading));
    headings.push("source");
    let mut table = Table::new(headings.len(), &headings);
    for item in items {
        let mut cells = vec![item.name, item.title];
        cells.extend(item.properties.iter().map(|property| if property.holds { "yes" } else { "no" }));
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
            let _ = write!(text, "\n{key}:\n\n{}", list(choices));
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

    fn as_json(&self) -> Json {
        let parameters: Vec<_> = (0..self.parameters.len()).map(|at| self.parameter_as_json(at)).collect();
        let mut json = json!({
            "name": self.name,
            "title": self.title,
            "source": self.source,
            "parameters": parameters,
        });
        for Property { key, holds, .. } in &self.properties {
            json[*key] = json!(holds);
        }
        if let Some((key, choices)) = &self.choices {
            json[*key] = choices.iter().map(Self::as_json).collect();
        }
        json
    }

    fn parameter_as_json(&self, at: usize) -> Json {
        let parameter = self.parameters[at];
        let default = if parameter.required { Json::Null } else { value(&parameter.default) };
        let mut json = json!({
            "name": parameter.name,
            "unit": parameter.unit,
            "kind": parameter.kind.name(),
            "allowed": parameter.kind.to_string(),
            "required": parameter.required,
            "default": default,
            "source": parameter.source,
            "doc": parameter.doc,
        });
        for (set, values) in &self.other_defaults {
            json[format!("default {set}")] = value(&values[at]);
        }
        json
    }
}

/// Numbers and switches as such; times and frequencies as a scenario writes them; null for what is off.
fn value(value: &Value) -> Json {
    match value {
        Value::Number(x) => json!(x),
        Value::Count(n) => json!(n),
        Value::Flag(flag) => json!(flag),
        Value::Durations(times) => json!(times.iter().map(ToString::to_string).collect::<Vec<_>>()),
        Value::Counts(counts) => json!(counts),
        Value::Duration(_) | Value::Frequency(_) | Value::Choice(_) | Value::Distribution(_) => {
            json!(value.to_string())
        }
        Value::Off => Json::Null,
    }
}
