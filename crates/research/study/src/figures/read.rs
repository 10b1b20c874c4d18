//! Reads `figures.toml`.

use super::FigureText;
use crate::claims::{Names, Points, Rows, name_in, read_claims, read_points, read_rows};
use crate::panels::{Panel, read_panels};
use cutline_config::{Document, Errors, TableReader, Value, kind, read};
use std::collections::BTreeMap;

/// Most charts side by side.
const MOST_COLUMNS: i64 = 12;

/// Names that all figures of a file use.
struct Shared<'d> {
    points: Points,
    rows: Rows<'d>,
    /// Panels that several figures have.
    panels: BTreeMap<String, Vec<TableReader<'d>>>,
    /// The experiments of the study.
    experiments: &'d [String],
}

/// Reads the figures of `figures.toml`. `experiments` are those of the study.
///
/// # Errors
/// All problems of the file.
pub(crate) fn read_figures(document: &Document, experiments: &[String]) -> Result<Vec<FigureText>, Errors> {
    read(document, |root| {
        let shared = Shared {
            points: read_points(root),
            rows: read_rows(root),
            panels: shared_panels(root),
            experiments,
        };
        let figures = root.required_tables("figure");
        let figures = figures.iter().map(|reader| figure(reader, &shared)).collect();
        root.finish();
        Some(figures)
    })
}

/// The panels of `[panels]` by their names.
fn shared_panels<'d>(root: &TableReader<'d>) -> BTreeMap<String, Vec<TableReader<'d>>> {
    let Some(panels) = root.table("panels", "lists of panels, by name") else { return BTreeMap::new() };
    panels.entries().map(|(name, _)| (name.to_owned(), panels.tables(name))).collect()
}

fn figure(reader: &TableReader<'_>, shared: &Shared<'_>) -> FigureText {
    let text = |key: &str| reader.required(key, &kind::text());
    let number =
        reader.required("number", &kind::integer(0, i64::from(u32::MAX)).map(|number| number as u32));
    let (heading, says) = (text("heading"), text("says"));
    let experiment = name_in("an experiment of study.toml", shared.experiments);
    let listed = |key: &str| reader.list(key, &experiment).unwrap_or_default();
    let (experiments, beside) = (listed("experiments"), listed("beside"));
    let needed = needed(reader, &experiments, &beside).unwrap_or_else(|| shared.experiments.to_vec());
    let names = Names { points: &shared.points, rows: &shared.rows, experiments: &needed };
    let claims = read_claims(reader, names, !experiments.is_empty());
    let figure = FigureText {
        number: number.unwrap_or_default(),
        has_variants: reader.or("variants", &kind::flag(), false),
        claims,
        title: reader.optional("title", &kind::text()),
        panels: panels(reader, names, shared),
        columns: reader.or("columns", &kind::integer(1, MOST_COLUMNS), 1) as usize,
        names_on_lines: reader.or("names-on-lines", &kind::flag(), false),
        notes: reader.list("notes", &kind::text()).unwrap_or_default(),
        heading: heading.unwrap_or_default(),
        says: says.unwrap_or_default(),
        experiments,
        beside,
    };
    reader.finish();
    figure
}

/// The experiments that a figure lists; `None` if some of the names are wrong, so that those meant are not known.
fn needed(reader: &TableReader<'_>, experiments: &[String], beside: &[String]) -> Option<Vec<String>> {
    let written = |key: &str| match reader.node(key).map(|node| &node.value) {
        Some(Value::List(names)) => names.len(),
        _ => 0,
    };
    let all = [experiments, beside].concat();
    (all.len() == written("experiments") + written("beside")).then_some(all)
}

/// The panels of a figure: those that other figures have, too, and its own.
fn panels(reader: &TableReader<'_>, names: Names<'_>, shared: &Shared<'_>) -> Vec<Panel> {
    let known: Vec<String> = shared.panels.keys().cloned().collect();
    let named = reader.list("panels", &name_in("a list of [panels]", &known)).unwrap_or_default();
    let own = reader.tables("panel");
    let tables = named.iter().flat_map(|name| &shared.panels[name]).chain(&own);
    tables.flat_map(|table| read_panels(table, names)).collect()
}
