//! Rows to and from Parquet files, column by column.
//!
//! The bytes depend on the rows alone: no time, no host, a fixed `created_by`. Compression is Snappy, which every reader
//! supports and which needs no C compiler. Repeated names become dictionaries.

use crate::column::{CellKind, CellValue, Column, Row};
use crate::digest::Hashing;
use crate::error::StoreError;
use crate::pages::{column_reader, damaged};
use crate::version::SCHEMA_VERSION;
use bytes::Bytes;
use parquet::basic::{Compression, LogicalType, Repetition, Type as PhysicalType};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::metadata::{KeyValue, RowGroupMetaData};
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{ColumnDescriptor, Type, TypePtr};
use std::fs::{self, File};
use std::io::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Rows of a row group: enough to compress well, few enough to hold in memory many times over.
const GROUP: usize = 1 << 17;

/// Writes rows of one table to a file that appears only when it is complete.
pub struct TableWriter<R> {
    path: PathBuf,
    temporary: PathBuf,
    writer: SerializedFileWriter<Hashing<File>>,
    columns: Vec<Column<R>>,
    waiting: Vec<R>,
}

impl<R: Row> TableWriter<R> {
    /// A writer of the file at `path`.
    ///
    /// # Errors
    /// When the file cannot be created.
    pub fn create(path: &Path) -> Result<Self, StoreError> {
        let temporary = temporary(path);
        let file = cutline_files::temporary(&temporary).map_err(|error| StoreError::io(&temporary, error))?;
        let file = Hashing::new(file);
        let columns = R::columns();
        let writer = SerializedFileWriter::new(file, schema(&columns), Arc::new(properties(&columns)))
            .map_err(|error| StoreError::parquet(path, error))?;
        Ok(Self { path: path.to_owned(), temporary, writer, columns, waiting: Vec::new() })
    }

    /// Adds rows at the end.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn extend(&mut self, rows: impl IntoIterator<Item = R>) -> Result<(), StoreError> {
        for row in rows {
            self.waiting.push(row);
            if self.waiting.len() == GROUP {
                self.flush()?;
            }
        }
        Ok(())
    }

    /// Completes the file and gives it its name. Returns its SHA-256 digest, 64 hex digits.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn finish(mut self) -> Result<String, StoreError> {
        if !self.waiting.is_empty() {
            self.flush()?;
        }
        let path = self.path;
        let written = self.writer.into_inner().map_err(|error| StoreError::parquet(&path, error))?;
        fs::rename(&self.temporary, &path).map_err(|error| StoreError::io(&path, error))?;
        Ok(written.digest())
    }

    fn flush(&mut self) -> Result<(), StoreError> {
        let rows = std::mem::take(&mut self.waiting);
        self.write(&rows)
    }

    fn write(&mut self, rows: &[R]) -> Result<(), StoreError> {
        write_group(&mut self.writer, &self.columns, rows)
            .map_err(|error| StoreError::parquet(&self.path, error))
    }
}

/// Returns the path of a table until it is complete.
pub(crate) fn temporary(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".tmp");
    name.into()
}

/// Writes a whole table. Returns the SHA-256 digest of its file, 64 hex digits.
///
/// # Errors
/// When the file cannot be written.
pub fn write_table<R: Row>(path: &Path, rows: &[R]) -> Result<String, StoreError> {
    let mut writer = TableWriter::create(path)?;
    for group in rows.chunks(GROUP) {
        writer.write(group)?;
    }
    writer.finish()
}

/// Reads a whole table. Additional columns of the file are ignored. A missing optional column is null.
///
/// # Errors
/// When the file does not exist, is not a Parquet file, or lacks a column.
pub fn read_table<R: Row>(path: &Path) -> Result<Vec<R>, StoreError> {
    parse_table(path, fs::read(path).map_err(|error| StoreError::io(path, error))?)
}

/// Reads a whole table from the bytes of the file at `path`.
pub(crate) fn parse_table<R: Row>(path: &Path, bytes: Vec<u8>) -> Result<Vec<R>, StoreError> {
    let file = TableFile::<R>::open(path, bytes)?;
    let mut rows = Vec::new();
    for group in 0..file.groups() {
        let first = rows.len();
        file.read_group(group, |column, count, reader| {
            let Some(reader) = reader else { return Ok(()) };
            let target = (column, &mut rows, first..first + count);
            match reader {
                ColumnReader::ByteArrayColumnReader(reader) => read_column(reader, target, names()),
                ColumnReader::Int64ColumnReader(reader) => read_column(reader, target, count_of),
                ColumnReader::DoubleColumnReader(reader) => {
                    read_column(reader, target, |x| Ok(CellValue::Real(x)))
                }
                _ => Err(damaged(&format!("the column {} has another type", column.about.name))),
            }
        })?;
    }
    Ok(rows)
}

/// The file of a table whose columns have been checked.
pub(crate) struct TableFile<R> {
    path: PathBuf,
    bytes: Bytes,
    reader: SerializedFileReader<Bytes>,
    positions: Positions<R>,
}

impl<R: Row> TableFile<R> {
    /// Opens a table from the path of its file and the content of the file.
    pub(crate) fn open(path: &Path, bytes: Vec<u8>) -> Result<Self, StoreError> {
        let bytes = Bytes::from(bytes);
        let reader =
            SerializedFileReader::new(bytes.clone()).map_err(|error| StoreError::parquet(path, error))?;
        let positions = positions::<R>(path, &reader)?;
        Ok(Self { path: path.to_owned(), bytes, reader, positions })
    }

    /// Returns the number of row groups.
    pub(crate) fn groups(&self) -> usize {
        self.reader.num_row_groups()
    }

    /// Calls `each` for each column of `R`, with the number of rows and a reader of the cells of a row group. The reader is
    /// `None` for an optional column that the file lacks.
    pub(crate) fn read_group(
        &self,
        group: usize,
        mut each: impl FnMut(&Column<R>, usize, Option<ColumnReader>) -> ParquetResult<()>,
    ) -> Result<(), StoreError> {
        let mut read = || {
            let group = self.reader.get_row_group(group)?;
            let count = rows_of(group.metadata())?;
            for (column, at) in &self.positions {
                let reader = at.map(|at| column_reader(&self.bytes, &*group, at, count)).transpose()?;
                each(column, count, reader)?;
            }
            Ok(())
        };
        read().map_err(|error| StoreError::parquet(&self.path, error))
    }
}

fn schema<R>(columns: &[Column<R>]) -> TypePtr {
    let fields = columns.iter().map(|column| Arc::new(field(column))).collect();
    let schema = Type::group_type_builder("cutline").with_fields(fields).build();
    Arc::new(schema.expect("a list of named columns is a schema"))
}

fn field<R>(column: &Column<R>) -> Type {
    let repetition = if column.optional { Repetition::OPTIONAL } else { Repetition::REQUIRED };
    let logical = (column.kind == CellKind::Text).then_some(LogicalType::String);
    Type::primitive_type_builder(column.about.name, physical(column.kind))
        .with_repetition(repetition)
        .with_logical_type(logical)
        .build()
        .expect("every kind of cell has a column type")
}

const fn physical(kind: CellKind) -> PhysicalType {
    match kind {
        CellKind::Text => PhysicalType::BYTE_ARRAY,
        CellKind::Count | CellKind::Flag => PhysicalType::INT64,
        CellKind::Real => PhysicalType::DOUBLE,
    }
}

fn properties<R>(columns: &[Column<R>]) -> WriterProperties {
    let version = KeyValue::new("cutline.schema".to_owned(), SCHEMA_VERSION.to_string());
    let unit = |column: &Column<R>| {
        KeyValue::new(format!("unit.{}", column.about.name), column.about.unit.to_owned())
    };
    let units = columns.iter().filter(|column| column.about.unit != "-").map(unit);
    WriterProperties::builder()
        .set_created_by("cutline".to_owned())
        .set_compression(Compression::SNAPPY)
        .set_key_value_metadata(Some(std::iter::once(version).chain(units).collect()))
        .build()
}

fn write_group<R>(
    writer: &mut SerializedFileWriter<impl Write + Send>,
    columns: &[Column<R>],
    rows: &[R],
) -> ParquetResult<()> {
    let mut group = writer.next_row_group()?;
    for column in columns {
        let mut out =
            group.next_column()?.ok_or_else(|| ParquetError::General("a column is missing".to_owned()))?;
        match column.kind {
            CellKind::Text => write_column::<ByteArrayType, R>(&mut out, column, rows, texts())?,
            CellKind::Count | CellKind::Flag => {
                write_column::<Int64Type, R>(&mut out, column, rows, integer)?;
            }
            CellKind::Real => write_column::<DoubleType, R>(&mut out, column, rows, double)?,
        }
        out.close()?;
    }
    group.close().map(|_| ())
}

fn write_column<D: DataType, R>(
    out: &mut SerializedColumnWriter<'_>,
    column: &Column<R>,
    rows: &[R],
    mut convert: impl FnMut(CellValue) -> Option<D::T>,
) -> ParquetResult<()> {
    let mut values = Vec::with_capacity(rows.len());
    let mut levels = Vec::with_capacity(if column.optional { rows.len() } else { 0 });
    for row in rows {
        let cell = convert(column.value(row));
        if column.optional {
            levels.push(i16::from(cell.is_some()));
        }
        values.extend(cell);
    }
    let levels = column.optional.then_some(&*levels);
    out.typed::<D>().write_batch(&values, levels, None).map(|_| ())
}

/// Converts strings to the Parquet library's byte arrays. Consecutive rows often have the same name and share one copy.
fn texts() -> impl FnMut(CellValue) -> Option<ByteArray> {
    let mut last: Option<(Arc<str>, ByteArray)> = None;
    move |cell| {
        let CellValue::Text(text) = cell else { return None };
        if let Some((known, bytes)) = &last
            && Arc::ptr_eq(known, &text)
        {
            return Some(bytes.clone());
        }
        let bytes = ByteArray::from(&*text);
        last = Some((text, bytes.clone()));
        Some(bytes)
    }
}

#[expect(clippy::needless_pass_by_value, reason = "one of three functions of the same type")]
fn integer(cell: CellValue) -> Option<i64> {
    let CellValue::Count(count) = cell else { return None };
    Some(i64::try_from(count).expect("counts stay below 2^63"))
}

#[expect(clippy::needless_pass_by_value, reason = "one of three functions of the same type")]
fn double(cell: CellValue) -> Option<f64> {
    if let CellValue::Real(number) = cell { Some(number) } else { None }
}

/// The columns of `R`, each with its index in a file; `None` for an optional one that the file lacks.
type Positions<R> = Vec<(Column<R>, Option<usize>)>;

fn positions<R: Row>(path: &Path, reader: &SerializedFileReader<Bytes>) -> Result<Positions<R>, StoreError> {
    let schema = reader.metadata().file_metadata().schema_descr();
    let position = |column: Column<R>| {
        let at = schema.columns().iter().position(|stored| stored.name() == column.about.name);
        let fits = at.is_none_or(|at| holds(&schema.column(at), &column));
        if !fits || (at.is_none() && !column.optional) {
            let problem = if fits { "is missing" } else { "has another type" };
            return Err(StoreError::Column { path: path.to_owned(), column: column.about.name, problem });
        }
        Ok((column, at))
    };
    R::columns().into_iter().map(position).collect()
}

/// Returns whether a file's column can be read as this one. It must not have nulls if they are not allowed, and no lists.
fn holds<R>(stored: &ColumnDescriptor, column: &Column<R>) -> bool {
    stored.physical_type() == physical(column.kind)
        && stored.max_def_level() <= i16::from(column.optional)
        && stored.max_rep_level() == 0
}

/// Returns the number of rows in a row group. It is at most [`GROUP`], so a damaged number allocates no memory.
fn rows_of(group: &RowGroupMetaData) -> ParquetResult<usize> {
    let rows = usize::try_from(group.num_rows()).ok().filter(|rows| *rows <= GROUP);
    rows.ok_or_else(|| damaged(&format!("a row group has {} rows", group.num_rows())))
}

fn count_of(number: i64) -> ParquetResult<CellValue> {
    whole(number).map(CellValue::Count)
}

/// Returns a stored count, which is not negative.
pub(crate) fn whole(number: i64) -> ParquetResult<u64> {
    u64::try_from(number).map_err(|_| damaged(&format!("a count is {number}")))
}

/// Reads one column of a row group into its rows. The first column makes the rows, once it has been seen to have as many
/// cells.
fn read_column<D: DataType, R: Row>(
    reader: ColumnReaderImpl<D>,
    (column, rows, place): (&Column<R>, &mut Vec<R>, Range<usize>),
    mut convert: impl FnMut(D::T) -> ParquetResult<CellValue>,
) -> ParquetResult<()> {
    let (levels, values) = read_cells(reader, column, place.len())?;
    rows.resize(place.end, R::default());
    let mut values = values.into_iter();
    for (i, row) in rows[place].iter_mut().enumerate() {
        // A required column has no levels: all of its cells are there.
        if levels.get(i) == Some(&0) {
            (column.set)(row, CellValue::Null);
            continue;
        }
        let value = values.next().ok_or_else(|| damaged("a column is too short"))?;
        (column.set)(row, convert(value)?);
    }
    Ok(())
}

/// Reads the cells of one column of a row group: a level for each cell, which is 0 if it is null, and the values of the others. A
/// required column has no levels.
pub(crate) fn read_cells<D: DataType, R>(
    mut reader: ColumnReaderImpl<D>,
    column: &Column<R>,
    count: usize,
) -> ParquetResult<(Vec<i16>, Vec<D::T>)> {
    let (mut levels, mut values) = (Vec::new(), Vec::new());
    while reader.read_records(count, Some(&mut levels), None, &mut values)?.0 > 0 {}
    if levels.len().max(values.len()) != count {
        return Err(damaged(&format!(
            "the number of cells in the column {} differs from the number of rows",
            column.about.name
        )));
    }
    Ok((levels, values))
}

/// Converts byte arrays to cells of text. Equal consecutive ones share one copy.
fn names() -> impl FnMut(ByteArray) -> ParquetResult<CellValue> {
    let mut last: Arc<str> = Arc::from("");
    move |bytes| {
        let text = bytes.as_utf8()?;
        if *last != *text {
            last = Arc::from(text);
        }
        Ok(CellValue::Text(Arc::clone(&last)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::column::row;

    row! {
        /// A row with a count that is always there.
        Counted in "counts.parquet", one per "test" {
            count: u64, "-", "A count.";
        }
    }

    row! {
        /// The same with a count that may be missing.
        MaybeCounted in "counts.parquet", one per "test" {
            count: Option<u64>, "-", "A count, if there is one.";
        }
    }

    /// Returns the reason why a table of counts, written by `write`, is not read.
    fn why(write: impl FnOnce(&Path)) -> String {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(Counted::FILE);
        write(&path);
        read_table::<Counted>(&path).unwrap_err().to_string()
    }

    /// A file with these numbers in one row group, as no table of ours is.
    fn write_numbers(path: &Path, numbers: &[i64]) {
        let columns = Counted::columns();
        let file = File::create(path).unwrap();
        let mut writer =
            SerializedFileWriter::new(file, schema(&columns), Arc::new(properties(&columns))).unwrap();
        let mut group = writer.next_row_group().unwrap();
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<Int64Type>().write_batch(numbers, None, None).unwrap();
        column.close().unwrap();
        group.close().unwrap();
        writer.close().unwrap();
    }

    #[test]
    fn a_missing_cell_where_none_may_be_missing_is_an_error() {
        let rows = [MaybeCounted { count: Some(3) }, MaybeCounted { count: None }];
        let error = why(|path| drop(write_table(path, &rows).unwrap()));
        assert!(error.ends_with("counts.parquet: the column \"count\" has another type"), "{error}");
    }

    #[test]
    fn a_count_below_zero_is_an_error() {
        let error = why(|path| write_numbers(path, &[4, -3]));
        assert!(error.ends_with("the file is damaged: a count is -3"), "{error}");
    }

    #[test]
    fn a_row_group_larger_than_any_of_ours_is_an_error() {
        let error = why(|path| write_numbers(path, &vec![1; GROUP + 1]));
        assert!(error.ends_with("the file is damaged: a row group has 131073 rows"), "{error}");
    }
}
