//! Fields of messages in order. All numbers are big-endian.

use cutline_units::{Duration, Instant};

/// The longest time that is accepted from a peer.
pub const LONGEST_TIME: Duration = Duration::from_secs(3600);

/// Reads fields. Each method returns `None` if the bytes end before the field does, or the value is impossible.
#[derive(Clone, Debug)]
pub struct Reader<'b>(&'b [u8]);

impl<'b> Reader<'b> {
    /// Creates a reader that starts at the first byte.
    pub const fn new(bytes: &'b [u8]) -> Self {
        Self(bytes)
    }

    /// Reads `N` bytes.
    pub fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }

    /// Reads this many bytes, without copying them.
    pub fn bytes(&mut self, length: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    /// Reads a number of one byte.
    pub fn u8(&mut self) -> Option<u8> {
        self.take().map(|[byte]| byte)
    }

    /// Reads a number of two bytes.
    pub fn u16(&mut self) -> Option<u16> {
        self.take().map(u16::from_be_bytes)
    }

    /// Reads a number of four bytes.
    pub fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_be_bytes)
    }

    /// Reads a number of eight bytes.
    pub fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_be_bytes)
    }

    /// Reads a time on some clock, in nanoseconds.
    pub fn instant(&mut self) -> Option<Instant> {
        self.u64().map(Instant::from_nanos)
    }

    /// Reads a length of time in nanoseconds, at most [`LONGEST_TIME`].
    pub fn duration(&mut self) -> Option<Duration> {
        self.u64().map(Duration::from_nanos).filter(|time| *time <= LONGEST_TIME)
    }

    /// Reads a floating-point number from 0 to `most`.
    pub fn number(&mut self, most: f64) -> Option<f64> {
        self.u64().map(f64::from_bits).filter(|number| (0.0..=most).contains(number))
    }

    /// Returns whether all bytes have been read.
    pub const fn is_at_end(&self) -> bool {
        self.0.is_empty()
    }
}

/// Writes fields into a message.
///
/// # Panics
/// Every method panics where the message has no room for the field.
#[derive(Debug)]
pub struct Writer<'b> {
    bytes: &'b mut [u8],
    length: usize,
}

impl<'b> Writer<'b> {
    /// Creates a writer that starts at the first byte.
    pub const fn new(bytes: &'b mut [u8]) -> Self {
        Self { bytes, length: 0 }
    }

    /// Writes bytes.
    pub fn put(&mut self, bytes: &[u8]) -> &mut Self {
        let end = self.length + bytes.len();
        self.bytes[self.length..end].copy_from_slice(bytes);
        self.length = end;
        self
    }

    /// Writes a number of one byte.
    pub fn u8(&mut self, number: u8) -> &mut Self {
        self.put(&[number])
    }

    /// Writes a number of two bytes.
    pub fn u16(&mut self, number: u16) -> &mut Self {
        self.put(&number.to_be_bytes())
    }

    /// Writes a number of four bytes.
    pub fn u32(&mut self, number: u32) -> &mut Self {
        self.put(&number.to_be_bytes())
    }

    /// Writes a number of eight bytes.
    pub fn u64(&mut self, number: u64) -> &mut Self {
        self.put(&number.to_be_bytes())
    }

    /// Writes a time on some clock, in nanoseconds.
    pub fn instant(&mut self, time: Instant) -> &mut Self {
        self.u64(time.as_nanos())
    }

    /// Writes a length of time in nanoseconds.
    pub fn duration(&mut self, time: Duration) -> &mut Self {
        self.u64(time.as_nanos())
    }

    /// Writes a floating-point number.
    pub fn number(&mut self, number: f64) -> &mut Self {
        self.u64(number.to_bits())
    }

    /// Returns the number of written bytes.
    pub const fn length(&self) -> usize {
        self.length
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_as_they_were_written() {
        let mut bytes = [0; 31];
        let time = Duration::from_millis(7);
        let mut writer = Writer::new(&mut bytes);
        writer.u8(1).u16(0x0203).u32(0x0405_0607).u64(8).duration(time).number(0.5);
        assert_eq!(writer.length(), 31);
        assert_eq!(bytes[..7], [1, 2, 3, 4, 5, 6, 7]);
        let mut reader = Reader::new(&bytes);
        assert_eq!((reader.u8(), reader.u16(), reader.u32()), (Some(1), Some(0x0203), Some(0x0405_0607)));
        assert_eq!((reader.u64(), reader.duration(), reader.number(1.0)), (Some(8), Some(time), Some(0.5)));
        assert!(reader.is_at_end() && reader.u8().is_none());
        let mut reader = Reader::new(&bytes[..3]);
        assert_eq!(
            (reader.bytes(2), reader.bytes(2), reader.bytes(1)),
            (Some(&[1, 2][..]), None, Some(&[3][..]))
        );
    }

    #[test]
    fn impossible_values_are_refused() {
        for (bytes, most) in
            [(f64::NAN.to_bits(), 1.0), ((-0.5_f64).to_bits(), 1.0), (2.0_f64.to_bits(), 1.0)]
        {
            assert_eq!(Reader::new(&bytes.to_be_bytes()).number(most), None);
        }
        let long = (LONGEST_TIME.as_nanos() + 1).to_be_bytes();
        assert_eq!((Reader::new(&long).duration(), Reader::new(&long[..7]).u64()), (None, None));
    }
}
