//! Checks the headers of a column's pages before the Parquet library reads them.
//!
//! The library trusts two numbers of a header: the uncompressed size of the page, for which it allocates memory, and the
//! length of a list, for which it loops even beyond the end of the file. This module checks every length against the bytes
//! of the file. A header is a struct of Thrift's compact protocol. Only the fields with sizes are relevant:
//!
//! | field | type | content |
//! | --- | --- | --- |
//! | 2 | i32 | uncompressed size of the page, bytes |
//! | 3 | i32 | size of the page in the file, header not included, bytes |
//!
//! Sources: the Thrift compact protocol's specification, and `PageHeader` in parquet-format's `parquet.thrift`.

/// The largest uncompressed page that is read, bytes. Our pages have about 1 MiB.
const LARGEST_PAGE: u64 = 64 << 20;
/// The largest depth of structs and lists in a header. Our headers have three levels.
const DEEPEST: u32 = 8;

/// Returns whether a column chunk consists of complete pages, none of them too large.
pub(crate) fn are_whole(chunk: &[u8]) -> bool {
    let mut rest = chunk;
    while !rest.is_empty() {
        let Some(behind) = page(rest) else { return false };
        rest = behind;
    }
    true
}

/// Returns the bytes after the first page; `None` if the page is incomplete.
fn page(bytes: &[u8]) -> Option<&[u8]> {
    let mut thrift = Thrift(bytes);
    let (mut unpacked, mut stored, mut id) = (None, None, 0);
    while let Field::Value(kind) = thrift.field(&mut id)? {
        match (id, kind) {
            (2, Kind::Integer) => unpacked = Some(thrift.integer()?),
            (3, Kind::Integer) => stored = Some(thrift.integer()?),
            _ => thrift.skip(kind, DEEPEST)?,
        }
    }
    let is_small = u64::try_from(unpacked?).is_ok_and(|unpacked| unpacked <= LARGEST_PAGE);
    thrift.0.get(usize::try_from(stored?).ok()?..).filter(|_| is_small)
}

/// The types of values, as far as they differ in how they are skipped.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A flag, whose value is its type.
    Flag,
    Byte,
    Integer,
    Double,
    Binary,
    List,
    Map,
    Struct,
    Uuid,
}

/// The next element of a struct.
enum Field {
    /// A field with a value of this type.
    Value(Kind),
    /// The struct's end.
    End,
}

/// Bytes in Thrift's compact protocol. The readers return `None` for incomplete values.
struct Thrift<'b>(&'b [u8]);

impl Thrift<'_> {
    /// Reads the next field of a struct and sets `id` to its number.
    fn field(&mut self, id: &mut i64) -> Option<Field> {
        let head = self.byte()?;
        if head == 0 {
            return Some(Field::End);
        }
        *id = if head >> 4 == 0 { self.integer()? } else { id.checked_add(i64::from(head >> 4))? };
        Kind::from_code(head & 0x0f).map(Field::Value)
    }

    fn skip(&mut self, kind: Kind, deepest: u32) -> Option<()> {
        let deepest = deepest.checked_sub(1)?;
        match kind {
            Kind::Flag => Some(()),
            Kind::Byte => self.take(1),
            Kind::Integer => self.varint().map(drop),
            Kind::Double => self.take(8),
            Kind::Uuid => self.take(16),
            Kind::Binary => {
                let length = self.varint()?;
                self.take(length)
            }
            Kind::List => self.skip_list(deepest),
            Kind::Map => self.skip_map(deepest),
            Kind::Struct => {
                let mut id = 0;
                while let Field::Value(kind) = self.field(&mut id)? {
                    self.skip(kind, deepest)?;
                }
                Some(())
            }
        }
    }

    fn skip_list(&mut self, deepest: u32) -> Option<()> {
        let head = self.byte()?;
        let length = if head >> 4 == 15 { self.varint()? } else { u64::from(head >> 4) };
        self.skip_all(&[Kind::from_code(head & 0x0f)?], length, deepest)
    }

    fn skip_map(&mut self, deepest: u32) -> Option<()> {
        let length = self.varint()?;
        if length == 0 {
            return Some(());
        }
        let kinds = self.byte()?;
        self.skip_all(&[Kind::from_code(kinds >> 4)?, Kind::from_code(kinds & 0x0f)?], length, deepest)
    }

    /// Skips `count` groups of values. Each value has at least one byte, so a count above the number of bytes is an error.
    fn skip_all(&mut self, kinds: &[Kind], length: u64, deepest: u32) -> Option<()> {
        for _ in 0..length {
            for &kind in kinds {
                // In a list, a flag has a byte of its own.
                let kind = if kind == Kind::Flag { Kind::Byte } else { kind };
                self.skip(kind, deepest)?;
            }
        }
        Some(())
    }

    /// A signed number, in zigzag order.
    fn integer(&mut self) -> Option<i64> {
        let bits = self.varint()?;
        Some((bits >> 1) as i64 ^ -((bits & 1) as i64))
    }

    fn varint(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    fn byte(&mut self) -> Option<u8> {
        let (&byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(byte)
    }

    fn take(&mut self, bytes: u64) -> Option<()> {
        self.0 = self.0.get(usize::try_from(bytes).ok()?..)?;
        Some(())
    }
}

impl Kind {
    const fn from_code(code: u8) -> Option<Self> {
        Some(match code {
            1 | 2 => Self::Flag,
            3 => Self::Byte,
            4..=6 => Self::Integer,
            7 => Self::Double,
            8 => Self::Binary,
            9 | 10 => Self::List,
            11 => Self::Map,
            12 => Self::Struct,
            13 => Self::Uuid,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A page of 3 bytes that unpack to 10, with a struct that has a flag, a list and a text: fields 1, 2, 3, 5.
    const PAGE: [u8; 21] = [
        0x15, 0, 0x15, 20, 0x15, 6, 0x2c, 0x11, 0x19, 0x25, 8, 9, 0x18, 2, b'a', b'b', 0, 0, b'x', b'y', b'z',
    ];

    #[test]
    fn pages_one_behind_the_other_are_whole() {
        assert!(are_whole(&PAGE) && are_whole(&[PAGE, PAGE].concat()) && are_whole(&[]));
    }

    #[test]
    fn a_truncated_page_is_not_whole() {
        for end in 1..PAGE.len() {
            assert!(!are_whole(&PAGE[..end]), "{end} B");
        }
    }

    #[test]
    fn a_page_above_the_largest_size_is_not_whole() {
        let page = |unpacked: &[u8]| [&PAGE[..3], unpacked, &PAGE[4..]].concat();
        // 64 MiB in zigzag order is 2^27, and one more byte is 2^27 + 2.
        assert!(are_whole(&page(&[0x80, 0x80, 0x80, 0x40])));
        assert!(!are_whole(&page(&[0x82, 0x80, 0x80, 0x40])));
        assert!(!are_whole(&page(&[1])), "a negative size");
    }

    #[test]
    fn a_list_that_is_longer_than_the_file_is_not_looped_over() {
        let endless =
            [0x15, 0, 0x15, 20, 0x15, 6, 0x29, 0xf5, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f];
        assert!(!are_whole(&endless));
        let deep = [&[0x1c; 100][..], &[0; 100]].concat();
        assert!(!are_whole(&deep));
    }
}
