//! Tables as Arrow's record batches, for other languages.
//!
//! The columns have the names and types of the Parquet files: whole numbers and flags are 64-bit integers. A field has its
//! unit (unless it is `-`) and its meaning as metadata. Texts are views, so that a name of many rows is in memory once.

use crate::column::{CellKind, CellValue, Column, Row};
use crate::error::StoreError;
use crate::store::Store;
use crate::table::{TableFile, whole};
use arrow_array::builder::StringViewBuilder;
use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, RecordBatchOptions};
use arrow_buffer::{NullBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, DataType as ParquetType};
use parquet::errors::Result as ParquetResult;
use std::path::Path;
use std::sync::Arc;

/// Returns the schema of a table.
pub fn schema<R: Row>() -> SchemaRef {
    let metadata = [("cutline.schema".to_owned(), crate::SCHEMA_VERSION.to_string())];
    let fields: Vec<Field> = R::columns().iter().map(field).collect();
    Arc::new(Schema::new_with_metadata(fields, metadata.into_iter().collect::<arrow_schema::Metadata>()))
}

fn field<R>(column: &Column<R>) -> Field {
    let kind = match column.kind {
        CellKind::Text => DataType::Utf8View,
        CellKind::Count | CellKind::Flag => DataType::Int64,
        CellKind::Real => DataType::Float64,
    };
    let about = &column.about;
    let unit = (about.unit != "-").then(|| ("unit".to_owned(), about.unit.to_owned()));
    let meaning = Some(("meaning".to_owned(), about.meaning.to_owned()));
    Field::new(about.name, kind, column.optional)
        .with_metadata(unit.into_iter().chain(meaning).collect::<arrow_schema::Metadata>())
}

/// Returns rows as one batch.
pub fn batch<R: Row>(rows: &[R]) -> RecordBatch {
    let columns = R::columns().iter().map(|column| array(column, rows)).collect();
    assemble::<R>(columns, rows.len())
}

fn assemble<R: Row>(columns: Vec<ArrayRef>, rows: usize) -> RecordBatch {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(schema::<R>(), columns, &options)
        .expect("every column has the type and the length of the table")
}

fn array<R>(column: &Column<R>, rows: &[R]) -> ArrayRef {
    let cells = rows.iter().map(|row| column.value(row));
    match column.kind {
        CellKind::Text => {
            let mut texts = StringViewBuilder::with_capacity(rows.len()).with_deduplicate_strings();
            for cell in cells {
                texts.append_option(if let CellValue::Text(text) = cell { Some(text) } else { None });
            }
            Arc::new(texts.finish())
        }
        CellKind::Count | CellKind::Flag => {
            let count =
                |cell| if let CellValue::Count(count) = cell { Some(count.cast_signed()) } else { None };
            Arc::new(cells.map(count).collect::<Int64Array>())
        }
        CellKind::Real => {
            let real = |cell| if let CellValue::Real(number) = cell { Some(number) } else { None };
            Arc::new(cells.map(real).collect::<Float64Array>())
        }
    }
}

impl Store {
    /// Returns a table as record batches, one for each row group of its file. The digest of the file is compared with that in the
    /// summary.
    ///
    /// # Errors
    /// When it does not exist or is damaged.
    pub fn read_batches<R: Row>(&self) -> Result<Vec<RecordBatch>, StoreError> {
        self.read_as::<R, _>(parse_batches::<R>)
    }
}

fn parse_batches<R: Row>(path: &Path, bytes: Vec<u8>) -> Result<Vec<RecordBatch>, StoreError> {
    let file = TableFile::<R>::open(path, bytes)?;
    (0..file.groups()).map(|group| read_group(&file, group)).collect()
}

fn read_group<R: Row>(file: &TableFile<R>, group: usize) -> Result<RecordBatch, StoreError> {
    let (mut columns, mut rows) = (Vec::new(), 0);
    file.read_group(group, |column, count, reader| {
        rows = count;
        columns.push(match reader {
            None => arrow_array::new_null_array(field(column).data_type(), count),
            Some(ColumnReader::ByteArrayColumnReader(reader)) => texts(&read_column(reader, column, count)?)?,
            Some(ColumnReader::Int64ColumnReader(reader)) => {
                let Cells { values, valid } = read_column(reader, column, count)?;
                values.iter().try_for_each(|number| whole(*number).map(drop))?;
                Arc::new(Int64Array::new(spread(values, valid.as_ref()), valid))
            }
            Some(ColumnReader::DoubleColumnReader(reader)) => {
                let Cells { values, valid } = read_column(reader, column, count)?;
                Arc::new(Float64Array::new(spread(values, valid.as_ref()), valid))
            }
            Some(_) => unreachable!("the types of the columns are checked when the file is opened"),
        });
        Ok(())
    })?;
    Ok(assemble::<R>(columns, rows))
}

/// The cells of a column: the present values, and which cells have one.
struct Cells<T> {
    values: Vec<T>,
    /// `None` if every cell has a value.
    valid: Option<NullBuffer>,
}

fn read_column<D: ParquetType, R>(
    reader: ColumnReaderImpl<D>,
    column: &Column<R>,
    count: usize,
) -> ParquetResult<Cells<D::T>> {
    let (levels, values) = crate::table::read_cells(reader, column, count)?;
    let valid = levels.contains(&0);
    let valid = valid.then(|| levels.iter().map(|level| *level != 0).collect());
    Ok(Cells { values, valid })
}

/// Returns the values with a gap for each cell without one.
fn spread<T: Copy + Default + arrow_buffer::ArrowNativeType>(
    values: Vec<T>,
    valid: Option<&NullBuffer>,
) -> ScalarBuffer<T> {
    let Some(valid) = valid else { return values.into() };
    let mut values = values.into_iter();
    let cell = |is_there: bool| if is_there { values.next().unwrap_or_default() } else { T::default() };
    valid.iter().map(cell).collect::<Vec<T>>().into()
}

fn texts(cells: &Cells<ByteArray>) -> ParquetResult<ArrayRef> {
    let count = cells.valid.as_ref().map_or(cells.values.len(), NullBuffer::len);
    let mut texts = StringViewBuilder::with_capacity(count).with_deduplicate_strings();
    let mut values = cells.values.iter();
    for i in 0..count {
        if cells.valid.as_ref().is_some_and(|valid| valid.is_null(i)) {
            texts.append_null();
        } else if let Some(text) = values.next() {
            texts.append_value(text.as_utf8()?);
        }
    }
    Ok(Arc::new(texts.finish()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::FlowRow;
    use crate::table::write_table;
    use arrow_array::Array;

    #[test]
    fn a_file_and_its_rows_are_the_same_batch() {
        let row = |flow: &str, q| FlowRow { flow: flow.into(), hint: 6, q, ..FlowRow::default() };
        let rows = [
            row("a flow with a long name", Some(0.5)),
            row("a flow with a long name", None),
            row("b", Some(0.25)),
        ];
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FlowRow::FILE);
        write_table(&path, &rows).unwrap();
        let read = parse_batches::<FlowRow>(&path, std::fs::read(&path).unwrap()).unwrap();
        assert_eq!(read, [batch(&rows)]);
        let q = read[0].column_by_name("q").unwrap();
        assert_eq!((q.len(), q.null_count()), (3, 1));
        let schema = read[0].schema();
        let hint = schema.field_with_name("hint").unwrap();
        assert_eq!((hint.metadata()["unit"].as_str(), hint.is_nullable()), ("level", false));
    }

    #[test]
    fn an_empty_table_has_no_batches_and_a_schema() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FlowRow::FILE);
        write_table::<FlowRow>(&path, &[]).unwrap();
        assert_eq!(parse_batches::<FlowRow>(&path, std::fs::read(&path).unwrap()).unwrap(), []);
        assert_eq!(schema::<FlowRow>().fields().len(), FlowRow::columns().len());
    }
}
