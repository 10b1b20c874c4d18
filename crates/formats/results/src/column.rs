//! Tables as data: each row type lists its columns with their units, meanings and accessors.
//!
//! Everything that names a column follows this one list: Parquet files, JSON documents and their schemas, the measures that
//! are compared, the tables that are printed, and the documentation.

use cutline_records::Description;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// Kind of a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CellKind {
    /// UTF-8 text.
    Text,
    /// A whole number from 0 to 2^63 - 1.
    Count,
    /// A flag, stored as the count 1 or 0.
    Flag,
    /// A double.
    Real,
}

/// One cell's value.
#[derive(Clone, Debug, PartialEq)]
pub enum CellValue {
    /// Not measured.
    Null,
    /// UTF-8 text.
    Text(Arc<str>),
    /// A whole number.
    Count(u64),
    /// A double.
    Real(f64),
}

/// A type that a column can hold.
pub(crate) trait Cell {
    const KIND: CellKind;
    const OPTIONAL: bool = false;
    fn get(&self) -> CellValue;
    /// Sets the cell. The value is of this kind: the reader of a file checks its schema first.
    fn set(&mut self, value: CellValue);
}

/// A column of a table of `R`.
pub struct Column<R> {
    /// Its description.
    pub about: Description,
    /// The kind of the cells.
    pub kind: CellKind,
    /// True if cells may be null, for values that were not measured.
    pub optional: bool,
    /// True if the column identifies the run of a row.
    pub of_run: bool,
    /// True if the column is a measure, a number whose mean over flows and seeds has a meaning.
    pub measure: bool,
    pub(crate) get: fn(&R) -> CellValue,
    pub(crate) set: fn(&mut R, CellValue),
}

/// The columns that identify the run of a row.
const OF_RUN: [&str; 3] = ["run", "point", "seed"];

impl<R> Column<R> {
    pub(crate) fn new<T: Cell>(
        description: [&'static str; 3],
        get: fn(&R) -> CellValue,
        set: fn(&mut R, CellValue),
    ) -> Self {
        let about = Description::new(description);
        let of_run = OF_RUN.contains(&about.name);
        let (kind, optional) = (T::KIND, T::OPTIONAL);
        Self { about, kind, optional, of_run, measure: false, get, set }
    }

    /// Makes the column a measure.
    pub(crate) fn measure(self) -> Self {
        Self { measure: true, ..self }
    }

    /// Makes the column a measure that printed tables show.
    pub(crate) fn shown(self, title: &'static str, scale: f64) -> Self {
        Self { measure: true, about: self.about.shown(title, scale), ..self }
    }

    /// Returns whether the column holds measured numbers, not the key of a run or the time of an interval.
    pub fn is_quantity(&self) -> bool {
        !self.of_run && self.kind != CellKind::Text && !matches!(self.about.name, "start_s" | "end_s")
    }

    /// The cell of a row.
    pub fn value(&self, row: &R) -> CellValue {
        (self.get)(row)
    }

    /// Returns the cell of a row as a number; `None` if it was not measured, or is a text.
    pub fn number(&self, row: &R) -> Option<f64> {
        match self.value(row) {
            CellValue::Real(number) => Some(number).filter(|number| number.is_finite()),
            CellValue::Count(count) => Some(count as f64),
            CellValue::Null | CellValue::Text(_) => None,
        }
    }

    /// Returns the cell of a row for a JSON document; null if it was not measured or is not finite.
    pub fn json(&self, row: &R) -> Value {
        match self.value(row) {
            CellValue::Null => Value::Null,
            CellValue::Text(text) => json!(&*text),
            CellValue::Count(count) if self.kind == CellKind::Flag => json!(count != 0),
            CellValue::Count(count) => json!(count),
            CellValue::Real(number) => json!(number),
        }
    }
}

/// A row of one of the result tables.
pub trait Row: Clone + Default + Send + 'static {
    /// The name of the table's file.
    const FILE: &'static str;
    /// The subject of one row.
    const ONE_PER: &'static str;
    /// Returns the columns in order.
    fn columns() -> Vec<Column<Self>>;

    /// Returns the row as a JSON object with a property for each column, except the columns of the run.
    fn json(&self) -> Value {
        let columns = Self::columns().into_iter().filter(|column| !column.of_run);
        Value::Object(
            columns.map(|column| (column.about.name.to_owned(), column.json(self))).collect::<Map<_, _>>(),
        )
    }
}

impl Cell for Arc<str> {
    const KIND: CellKind = CellKind::Text;
    fn get(&self) -> CellValue {
        CellValue::Text(Arc::clone(self))
    }
    fn set(&mut self, value: CellValue) {
        let CellValue::Text(text) = value else { unreachable!("a text column holds {value:?}") };
        *self = text;
    }
}

impl Cell for u64 {
    const KIND: CellKind = CellKind::Count;
    fn get(&self) -> CellValue {
        CellValue::Count(*self)
    }
    fn set(&mut self, value: CellValue) {
        let CellValue::Count(count) = value else { unreachable!("a column of counts holds {value:?}") };
        *self = count;
    }
}

impl Cell for bool {
    const KIND: CellKind = CellKind::Flag;
    fn get(&self) -> CellValue {
        CellValue::Count(u64::from(*self))
    }
    fn set(&mut self, value: CellValue) {
        let CellValue::Count(count) = value else { unreachable!("a column of flags holds {value:?}") };
        *self = count != 0;
    }
}

impl Cell for f64 {
    const KIND: CellKind = CellKind::Real;
    fn get(&self) -> CellValue {
        CellValue::Real(*self)
    }
    fn set(&mut self, value: CellValue) {
        let CellValue::Real(number) = value else { unreachable!("a column of numbers holds {value:?}") };
        *self = number;
    }
}

impl<T: Cell + Default> Cell for Option<T> {
    const KIND: CellKind = T::KIND;
    const OPTIONAL: bool = true;
    fn get(&self) -> CellValue {
        self.as_ref().map_or(CellValue::Null, Cell::get)
    }
    fn set(&mut self, value: CellValue) {
        *self = (value != CellValue::Null).then(|| {
            let mut cell = T::default();
            cell.set(value);
            cell
        });
    }
}

/// Declares a row type with its columns: `name: type, unit, meaning;`. The meaning may be followed by `measure`, or by
/// `shown(title, scale)` for a measure that printed tables show.
macro_rules! row {
    (
        $(#[$doc:meta])*
        $name:ident in $file:literal, one per $one:literal {
            $($field:ident: $type:ty, $unit:literal, $meaning:literal
                $(, $role:ident $(($($argument:expr),+))?)?;)+
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct $name {
            $(#[doc = $meaning] pub $field: $type,)+
        }

        impl $crate::column::Row for $name {
            const FILE: &'static str = $file;
            const ONE_PER: &'static str = $one;

            fn columns() -> Vec<$crate::column::Column<Self>> {
                use $crate::column::{Cell, Column};
                vec![$(
                    Column::new::<$type>(
                        [stringify!($field), $unit, $meaning],
                        |row: &Self| Cell::get(&row.$field),
                        |row: &mut Self, value| Cell::set(&mut row.$field, value),
                    )$(.$role($($($argument),+)?))?,
                )+]
            }
        }
    };
}
pub(crate) use row;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::{FlowRow, QueueRow, TimingRow};

    #[test]
    fn a_document_has_every_column_except_those_of_the_run() {
        let row = QueueRow { link: "r1->r2".into(), tsq: true, arrived: 9, ..QueueRow::default() };
        let document = row.json();
        assert_eq!(document.as_object().unwrap().len(), QueueRow::columns().len() - OF_RUN.len());
        assert_eq!(
            (&document["link"], &document["tsq"], &document["arrived"]),
            (&json!("r1->r2"), &json!(true), &json!(9))
        );
        assert_eq!((&document["drop_ratio"], &document["run"]), (&Value::Null, &Value::Null));
        let late = TimingRow { departure_bound_ms: f64::NAN, ..TimingRow::default() };
        assert_eq!(late.json()["departure_bound_ms"], Value::Null, "JSON has no such number");
    }

    #[test]
    fn shown_columns_are_measures() {
        let columns = FlowRow::columns();
        let goodput = columns.iter().find(|column| column.about.name == "goodput_bps").unwrap();
        assert!(goodput.measure && goodput.about.heading.unwrap().scale == 1e-3);
        assert!(columns.iter().all(|column| column.about.heading.is_none() || column.measure));
        assert!(columns.iter().all(|column| !column.measure || column.kind != CellKind::Text));
    }
}
