//! The commands `list` and `show` for everything that scenarios choose by name: AQMs, transports, applications.

use crate::exit::Failure;
use crate::output;
use crate::table::Table;
use clap::Subcommand;
use cutline_params::{Parameter, ParameterValue};
use serde::Serialize;
use std::fmt::Write as _;

#[derive(Subcommand)]
pub enum Command {
    /// List all
    List {
        /// Print JSON instead of a table
        #[arg(long)]
        json: bool,
    },
    /// Show the source and the parameters of one
    Show {
        /// The name, as in a scenario
        name: String,
        /// Print JSON instead of a table
        #[arg(long)]
        json: bool,
    },
}

/// All items of one kind.
pub struct Catalogue<D> {
    /// The word for one item, such as `AQM`.
    pub noun: &'static str,
    pub items: Vec<CatalogueItem>,
    /// The JSON documents of the items, in the same order.
    pub documents: Vec<D>,
}

/// An item that a scenario chooses by name.
pub struct CatalogueItem {
    pub name: &'static str,
    pub title: &'static str,
    /// The paper or RFC that defines the item.
    pub source: &'static str,
    pub parameters: Vec<&'static Parameter>,
    /// Properties that are true or false, with the headings of their columns. All items of a kind have the same headings.
    pub properties: Vec<(&'static str, bool)>,
    /// Other sets of defaults: the name of each set, and the value of each parameter.
    pub other_defaults: Vec<(&'static str, Vec<ParameterValue>)>,
    /// The key of a parameter that chooses one of several items, and these items.
    pub choices: Option<(&'static str, Vec<Self>)>,
}

impl<D: Serialize> Catalogue<D> {
    /// Executes a command. `list` makes the document of all items.
    pub fn execute<L: Serialize>(
        mut self,
        command: &Command,
        list: impl FnOnce(Vec<D>) -> L,
    ) -> Result<(), Failure> {
        match command {
            Command::List { json: true } => output::print_json(&list(self.documents)),
            Command::List { json: false } => output::print_wrapped(&table(&self.items)),
            Command::Show { name, json } => {
                let at = self.find(name)?;
                if *json {
                    output::print_json(&self.documents.swap_remove(at))
                } else {
                    output::print_wrapped(&self.items[at].show())
                }
            }
        }
    }

    fn find(&self, name: &str) -> Result<usize, Failure> {
        let names: Vec<_> = self.items.iter().map(|item| item.name).collect();
        let unknown = || {
            Failure::Usage(format!("unknown {} {name:?}; expected one of: {}", self.noun, names.join(", ")))
        };
        names.iter().position(|other| *other == name).ok_or_else(unknown)
    }
}

fn table(items: &[CatalogueItem]) -> String {
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

impl CatalogueItem {
    /// An item with one set of defaults and without choices.
    pub fn new(
        [name, title, source]: [&'static str; 3],
        parameters: Vec<&'static Parameter>,
        properties: Vec<(&'static str, bool)>,
    ) -> Self {
        Self { name, title, source, parameters, properties, other_defaults: Vec::new(), choices: None }
    }

    /// Returns the source, the parameters and the choices as text.
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

    /// Returns the parameters as a table.
    pub fn parameters_table(&self) -> String {
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
}
