//! Tables as data: each row type lists its columns with unit, meaning, and how a cell is read and set.
//!
//! Writing, reading and the documentation all follow this one list, so they cannot disagree.

use std::sync::Arc;

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CellKind {
    /// UTF-8 text.
    Text,
    /// A whole number from 0 to 2^63 - 1.
    Count,
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
    /// The name in the file; a number's unit is its last word where it has one.
    pub name: &'static str,
    /// The unit, or `-`.
    pub unit: &'static str,
    /// What it says.
    pub meaning: &'static str,
    /// What it holds.
    pub kind: CellKind,
    /// Whether it may be null, for what was not measured.
    pub optional: bool,
    pub(crate) get: fn(&R) -> CellValue,
    pub(crate) set: fn(&mut R, CellValue),
}

impl<R> Column<R> {
    /// The cell of a row.
    pub fn value(&self, row: &R) -> CellValue {
        (self.get)(row)
    }
}

/// A row of one of the result tables.
pub trait Row: Clone + Default + Send + 'static {
    /// The file it is stored in.
    const FILE: &'static str;
    /// What one row stands for.
    const ONE_PER: &'static str;
    /// Its columns in order.
    fn columns() -> Vec<Column<Self>>;
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

/// Declares a row type with its columns: `name: type, unit, meaning;`.
macro_rules! row {
    (
        $(#[$doc:meta])*
        $name:ident in $file:literal, one per $one:literal {
            $($field:ident: $type:ty, $unit:literal, $meaning:literal;)+
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
                vec![$(Column {
                    name: stringify!($field),
                    unit: $unit,
                    meaning: $meaning,
                    kind: <$type as Cell>::KIND,
                    optional: <$type as Cell>::OPTIONAL,
                    get: |row: &Self| Cell::get(&row.$field),
                    set: |row: &mut Self, value| Cell::set(&mut row.$field, value),
                }),+]
            }
        }
    };
}
pub(crate) use row;
