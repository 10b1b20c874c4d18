//! Text tables. Words are left-aligned, numbers are right-aligned.

use crate::wrap;
use cutline_records::Record;
use cutline_report::stats::{Estimate, decimals, significant};
use cutline_text::Printable;
use serde_json::Value;

/// A table with a header line.
pub struct Table {
    rows: Vec<Vec<String>>,
    /// The number of columns with words. The columns after them hold numbers.
    words: usize,
}

impl Table {
    /// Returns an empty table whose first `words` columns hold words.
    pub fn new(words: usize, head: &[&str]) -> Self {
        Self { rows: vec![head.iter().map(|cell| (*cell).to_owned()).collect()], words }
    }

    /// Adds a row, each cell on one line. It must have as many cells as the header line.
    pub fn add(&mut self, row: Vec<String>) {
        assert_eq!(row.len(), self.rows[0].len(), "a row has a cell for each column");
        self.rows.push(row.into_iter().map(|cell| Printable(cell).to_string()).collect());
    }

    /// Returns whether the table has no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.len() == 1
    }

    /// Returns the table as text, with two spaces between columns and a rule below the header line. If it is wider than the terminal,
    /// each row is a paragraph instead.
    pub fn render(&self) -> String {
        self.render_within(crate::output::width())
    }

    fn render_within(&self, room: Option<usize>) -> String {
        let width =
            |column: usize| self.rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..self.rows[0].len()).map(width).collect();
        let total = widths.iter().sum::<usize>() + 2 * (widths.len() - 1);
        if room.is_some_and(|room| total > room) {
            return self.paragraphs(room.unwrap_or(total));
        }
        let mut lines: Vec<String> = self.rows.iter().map(|row| self.line(row, &widths)).collect();
        lines.insert(1, "-".repeat(total));
        lines.join("\n") + "\n"
    }

    /// Returns each row as a paragraph: its words, and below them as many titles with numbers on a line as there is room for.
    fn paragraphs(&self, room: usize) -> String {
        let (head, rows) = self.rows.split_first().expect("there is a header line");
        let longest = |texts: &[String]| texts.iter().map(|text| text.chars().count()).max().unwrap_or(0);
        let title = longest(&head[self.words..]);
        let number = rows.iter().map(|row| longest(&row[self.words..])).max().unwrap_or(0);
        let pair = title + 2 + number;
        let side_by_side = ((room.saturating_sub(2) + 4) / (pair + 4)).max(1);
        if self.words == head.len() {
            return self.entries(room);
        }
        let paragraph = |row: &Vec<String>| {
            let (words, numbers) = row.split_at(self.words);
            let named = || head[self.words..].iter().zip(numbers);
            // A cell without a title is a remark on the row.
            let remarks = named().filter(|(name, _)| name.is_empty()).map(|(_, remark)| remark);
            let is_said = |word: &&str| !word.is_empty() && *word != "-";
            let words: Vec<&str> = words.iter().chain(remarks).map(String::as_str).filter(is_said).collect();
            let pairs: Vec<String> = named()
                .filter(|(name, _)| !name.is_empty())
                .map(|(name, value)| format!("{name:<title$}  {value:>number$}"))
                .collect();
            let lines =
                pairs.chunks(side_by_side).map(|pairs| format!("  {}", pairs.join("    ").trim_end()));
            std::iter::once(words.join("  ")).chain(lines).collect::<Vec<_>>().join("\n") + "\n"
        };
        rows.iter().map(paragraph).collect::<Vec<_>>().join("\n")
    }

    /// Returns each row of words as an entry: the first word, and below it the others with their titles.
    fn entries(&self, room: usize) -> String {
        let (head, rows) = self.rows.split_first().expect("there is a header line");
        let entry = |row: &Vec<String>| {
            let others = head.iter().zip(row).skip(1).filter(|(_, cell)| !cell.is_empty());
            let others = others.map(|(title, cell)| format!("  {title}: {cell}"));
            let lines: Vec<String> = std::iter::once(row[0].clone()).chain(others).collect();
            wrap::within(&(lines.join("\n") + "\n"), Some(room))
        };
        rows.iter().map(entry).collect::<Vec<_>>().join("\n")
    }

    fn line(&self, row: &[String], widths: &[usize]) -> String {
        let cell = |(column, (text, &width)): (usize, (&String, &usize))| {
            if column < self.words { format!("{text:<width$}") } else { format!("{text:>width$}") }
        };
        let cells: Vec<String> = row.iter().zip(widths).enumerate().map(cell).collect();
        cells.join("  ").trim_end().to_owned()
    }
}

/// Returns the titles of the fields that have a heading.
pub fn titles<R: Record>() -> Vec<&'static str> {
    R::fields().iter().filter_map(|field| Some(field.about.heading?.title)).collect()
}

/// Returns the values of the fields that have a heading.
pub fn cells<R: Record>(record: &R) -> Vec<String> {
    let cell =
        |field: &cutline_records::Field<R>| Some(cell(&field.value(record), field.about.heading?.scale));
    R::fields().iter().filter_map(cell).collect()
}

/// Returns a value as text. A count of packets and bytes becomes the number of packets.
fn cell(value: &Value, scale: f64) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        Value::Number(count) if scale == 1.0 && !count.is_f64() => count.to_string(),
        Value::Object(counted) => {
            counted.get("packets").map_or_else(|| value.to_string(), |packets| cell(packets, scale))
        }
        _ => value.as_f64().map_or_else(|| value.to_string(), |value| number(value * scale)),
    }
}

/// Returns a mean with the half-width of its 95 % interval to two significant digits; `-` if there are no values.
pub fn estimate(values: &[f64], scale: f64) -> String {
    let scaled: Vec<f64> = values.iter().map(|value| value * scale).collect();
    match Estimate::from_values(&scaled) {
        None => "-".to_owned(),
        Some(found) if found.half_width() > 0.0 => {
            let decimals = decimals(found.half_width(), 2);
            format!("{:.decimals$} ±{:.decimals$}", found.mean, found.half_width())
        }
        Some(found) => number(found.mean),
    }
}

/// Returns a number with four significant digits.
pub fn number(value: f64) -> String {
    significant(value, 4)
}

/// Returns a rate of a document with its unit.
#[cfg(feature = "machine")]
pub fn rate(bps: u64) -> String {
    cutline_units::Rate::from_bps(bps).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_left_aligned_and_numbers_right_aligned() {
        let mut table = Table::new(1, &["link", "mean"]);
        table.add(vec!["r1->r2".to_owned(), "5".to_owned()]);
        assert_eq!(table.render(), "link    mean\n------------\nr1->r2     5\n");
    }

    #[test]
    fn a_table_that_does_not_fit_becomes_paragraphs() {
        let mut table = Table::new(2, &["point", "group", "goodput kbit/s", "loss %", "Q"]);
        for (group, goodput) in [("bulk", "526.1 ±2.1"), ("audio", "67 ±16")] {
            table.add(["hint=1", group, goodput, "1.14", "0.966"].map(str::to_owned).to_vec());
        }
        assert!(table.render_within(Some(80)).starts_with("point   group  goodput kbit/s  loss %"));
        let narrow = table.render_within(Some(40));
        let expected = "\
hint=1  bulk
  goodput kbit/s  526.1 ±2.1
  loss %                1.14
  Q                    0.966

hint=1  audio
  goodput kbit/s      67 ±16
  loss %                1.14
  Q                    0.966
";
        assert_eq!(narrow, expected);
    }

    #[test]
    fn a_table_of_words_that_does_not_fit_becomes_entries() {
        let mut table = Table::new(3, &["parameter", "allowed", "meaning"]);
        table.add(
            ["q-ref", "a number from 0 to 10000000 packets", "The length at which the queue is held"]
                .map(str::to_owned)
                .to_vec(),
        );
        let narrow = table.render_within(Some(30));
        let expected = "\
q-ref
  allowed: a number from 0 to
    10000000 packets
  meaning: The length at which
    the queue is held
";
        assert_eq!(narrow, expected);
    }

    #[test]
    fn cells_follow_the_description_of_a_record() {
        cutline_records::record! {
            /// A flow.
            pub struct Flow {
                name: String, label, "Its name.", shown("flow");
                sent_bps: f64, gauge("bit/s"), "What it sent.", shown("sent Mbit/s", 1e-6);
                lost: u64, counter("packets"), "What it lost.", shown("lost");
                marked: u64, counter("packets"), "Not shown.";
                delay_ms: Option<f64>, gauge("ms"), "Its delay.", shown("delay ms");
            }
        }
        let flow = Flow { name: "a".into(), sent_bps: 1.5e6, lost: 123_456, ..Flow::default() };
        assert_eq!(titles::<Flow>(), ["flow", "sent Mbit/s", "lost", "delay ms"]);
        assert_eq!(cells(&flow), ["a", "1.500", "123456", "-"]);
        assert_eq!(cell(&serde_json::json!({ "packets": 7, "bytes": 900 }), 1.0), "7");
    }

    #[test]
    fn numbers_have_their_significant_digits() {
        assert_eq!(number(148_123.4), "148123");
        assert_eq!(number(0.012_345_6), "0.01235");
        assert_eq!(number(0.0), "0");
        assert_eq!(estimate(&[1.0, 2.0, 3.0, 4.0, 5.0], 10.0), "30 ±20");
        assert_eq!(estimate(&[0.02, 0.021], 1.0), "0.0205 ±0.0064");
        assert_eq!(estimate(&[200.0], 1.0), "200.0");
        assert_eq!(estimate(&[], 1.0), "-");
    }
}
