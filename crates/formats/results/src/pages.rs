//! Checks the pages of a Parquet file before the Parquet library decodes them.
//!
//! The library does not check everything: a damaged file makes it panic, or allocate memory for a wrong number of values.
//! This module accepts only pages in the form that Cutline writes: complete plain values, or indices into an earlier
//! dictionary, and no more values than the row group has rows. Sizes and headers are checked first ([`page_header`]).

use crate::page_header;
use parquet::basic::{Encoding, Type};
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::column::reader::{ColumnReader, get_column_reader};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::reader::RowGroupReader;
use parquet::schema::types::ColumnDescPtr;

/// Returns a reader of the column with index `at` in a row group.
pub(crate) fn column_reader(
    file: &[u8],
    group: &dyn RowGroupReader,
    at: usize,
    rows: usize,
) -> Result<ColumnReader> {
    let chunk = group.metadata().columns().get(at).ok_or_else(|| damaged("a column is missing"))?;
    if !bytes_of(file, chunk).is_some_and(page_header::are_whole) {
        return Err(damaged("a column is not whole"));
    }
    let (column, pages) = (chunk.column_descr_ptr(), group.get_column_page_reader(at)?);
    let pages = CheckedPages { pages, column: column.clone(), rows, has_dictionary: false };
    Ok(get_column_reader(column, Box::new(pages)))
}

pub(crate) fn damaged(why: &str) -> ParquetError {
    ParquetError::General(format!("the file is damaged: {why}"))
}

/// The bytes of a column chunk; `None` if it lies outside the file.
fn bytes_of<'f>(file: &'f [u8], chunk: &ColumnChunkMetaData) -> Option<&'f [u8]> {
    let begin = chunk.dictionary_page_offset().unwrap_or(chunk.data_page_offset());
    let (begin, length) = (usize::try_from(begin).ok()?, usize::try_from(chunk.compressed_size()).ok()?);
    file.get(begin..begin.checked_add(length)?)
}

/// Returns valid pages, and an error for others.
struct CheckedPages {
    pages: Box<dyn PageReader>,
    column: ColumnDescPtr,
    /// The rows of the row group.
    rows: usize,
    has_dictionary: bool,
}

impl CheckedPages {
    fn check(&mut self, page: &Page) -> Result<()> {
        let fits = page.num_values() as usize <= self.rows;
        let is_right = match page {
            Page::DictionaryPage { buf, num_values, encoding, .. } => {
                self.has_dictionary = true;
                matches!(encoding, Encoding::PLAIN | Encoding::PLAIN_DICTIONARY)
                    && self.are_plain(buf, *num_values)
            }
            Page::DataPage { buf, num_values, encoding, def_level_encoding, .. } => self
                .without_levels(buf, *def_level_encoding)
                .is_some_and(|cells| self.are_cells(cells, *num_values, *encoding)),
            Page::DataPageV2 { .. } => false,
        };
        if fits && is_right { Ok(()) } else { Err(damaged("a page is not as we write pages")) }
    }

    /// Returns the part of a data page after the definition levels, which mark nulls and must be complete.
    fn without_levels<'p>(&self, page: &'p [u8], encoding: Encoding) -> Option<&'p [u8]> {
        if self.column.max_def_level() == 0 {
            return Some(page);
        }
        let (length, rest) = page.split_first_chunk().filter(|_| encoding == Encoding::RLE)?;
        rest.get(u32::from_le_bytes(*length) as usize..)
    }

    fn are_cells(&self, cells: &[u8], number: u32, encoding: Encoding) -> bool {
        match encoding {
            Encoding::PLAIN => self.are_plain(cells, number),
            // They begin with the width of an index, bits.
            Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY => {
                self.has_dictionary && cells.first().is_some_and(|width| *width <= 32)
            }
            _ => false,
        }
    }

    /// Returns whether `count` plain values are complete. Only texts are checked, because the library checks the others.
    fn are_plain(&self, values: &[u8], number: u32) -> bool {
        if self.column.physical_type() != Type::BYTE_ARRAY {
            return true;
        }
        let mut rest = values;
        (0..number).all(|_| {
            let text = rest
                .split_first_chunk()
                .and_then(|(length, behind)| behind.split_at_checked(u32::from_le_bytes(*length) as usize));
            text.is_some_and(|(_, behind)| {
                rest = behind;
                true
            })
        })
    }
}

impl PageReader for CheckedPages {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let page = self.pages.get_next_page()?;
        page.map(|page| self.check(&page).map(|()| page)).transpose()
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.pages.skip_next_page()
    }

    fn at_record_boundary(&mut self) -> Result<bool> {
        self.pages.at_record_boundary()
    }
}

impl Iterator for CheckedPages {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}
