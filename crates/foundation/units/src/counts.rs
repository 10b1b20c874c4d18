//! The counts of a histogram's buckets: pairs of a bucket and its count while few buckets have values, and then the counts of all buckets
//! from the least to the greatest one.
//!
//! The waits of an access link have 10 to 30 buckets with values among 200, or less than ten, and there are two such links for each flow of
//! a large network. Pairs are sorted, so a count is found in a few steps. Up to seven pairs are in place, without memory of their own. A
//! count of a range is found at once, so a range replaces pairs when they take more than two thirds of its memory, and pairs never replace
//! a range.

use std::fmt;
use std::ops::Range;

/// Counts are added to a range in steps of this number of buckets, which take whole bytes with every width.
const STEP: u32 = 16;
/// The largest count of four bits.
const NIBBLE: u8 = 0xf;
/// The bits of a bucket in a pair: a histogram has 1600 buckets.
const BUCKET_BITS: u32 = 11;
/// The width of pairs of 2 B. A width of pairs is below all widths of ranges.
const NARROW: u16 = 1;
/// The width of pairs of 4 B.
const WIDE: u16 = 2;
/// Bytes of the first pairs and of those added later. With the header of an allocation they are multiples of 16.
const PAIR_BYTES: [usize; 2] = [24, 16];

/// Counts of buckets.
#[derive(Clone)]
pub(crate) struct Counts(Store);

/// The memory of counts.
#[derive(Clone)]
enum Store {
    Few(Few),
    Many(Many),
}

// Few pairs have the place of a list's length and description.
const _: () = assert!(size_of::<Counts>() == 24, "counts take 24 bytes in place");

/// The number of pairs in place.
const FEW: usize = 7;

/// Up to [`FEW`] narrow pairs in place, sorted.
#[derive(Clone, Copy)]
struct Few {
    pairs: [[u8; 2]; FEW],
    /// The number of pairs.
    len: u8,
    /// Place of the pair that was counted last, as in [`Many`].
    recent: u8,
}

/// Counts in a list, with as many bits each as the largest of them needs.
#[derive(Clone)]
struct Many {
    /// Pairs, sorted, or the counts of a range; each with its low byte first. Of two counts in a byte the first one has the low bits.
    bytes: Box<[u8]>,
    /// Of pairs their number, of a range its first bucket.
    start: u32,
    /// The bits of a count in a range: 4, 8, 16 or 32. Of pairs, [`NARROW`] or [`WIDE`].
    width: u16,
    /// Place of the pair that was counted last, in which the next value often is.
    recent: u16,
}

impl Default for Counts {
    fn default() -> Self {
        Self(Store::Few(Few { pairs: [[0; 2]; FEW], len: 0, recent: 0 }))
    }
}

impl Default for Many {
    fn default() -> Self {
        Self { bytes: Box::default(), start: 0, width: NARROW, recent: 0 }
    }
}

/// Shows the buckets with values and their counts, no matter how they are stored.
impl fmt::Debug for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.hit()).finish()
    }
}

impl Counts {
    /// Returns counts with memory for any counts of the buckets up to `last`.
    pub(crate) fn with_room(last: u32) -> Self {
        let buckets = (last + 1).next_multiple_of(STEP);
        Self(Store::Many(Many {
            bytes: vec![0; buckets as usize * 4].into(),
            start: 0,
            width: 32,
            recent: 0,
        }))
    }

    /// Counts one value.
    #[inline]
    pub(crate) fn increment(&mut self, bucket: u32) {
        if let Store::Many(many) = &mut self.0
            && many.increment(bucket)
        {
            return;
        }
        self.increment_pair_or_add(bucket);
    }

    /// Counts one value in its pair, or makes room for it.
    #[inline(never)]
    fn increment_pair_or_add(&mut self, bucket: u32) {
        let is_counted = match &mut self.0 {
            Store::Many(many) => many.is_pairs() && many.increment_pair(bucket),
            Store::Few(few) => few.increment(bucket),
        };
        if !is_counted {
            self.add(bucket, 1);
        }
    }

    /// Returns the count of a bucket.
    pub(crate) fn get(&self, bucket: u32) -> u32 {
        match &self.0 {
            Store::Many(many) => many.get(bucket),
            Store::Few(few) => few.hit().find(|(hit, _)| *hit == bucket).map_or(0, |(_, count)| count),
        }
    }

    /// Returns a byte near the count of a bucket, whose reading brings the count into the cache.
    #[inline]
    pub(crate) fn read_near(&self, bucket: u32) -> u8 {
        match &self.0 {
            Store::Many(many) => many.read_near(bucket),
            Store::Few(few) => few.len,
        }
    }

    /// Counts values. A count that would overflow keeps its largest value.
    #[cold]
    pub(crate) fn add(&mut self, bucket: u32, values: u32) {
        match &mut self.0 {
            Store::Many(many) => many.add(bucket, values),
            Store::Few(few) => {
                if !few.add(bucket, values) {
                    let mut many = few.to_many();
                    many.add(bucket, values);
                    self.0 = Store::Many(many);
                }
            }
        }
    }

    /// Changes every count that is not zero to another one that is neither greater nor zero.
    pub(crate) fn reduce(&mut self, reduced: impl Fn(u32) -> u32) {
        match &mut self.0 {
            Store::Many(many) => many.reduce(reduced),
            Store::Few(few) => few.reduce(reduced),
        }
    }

    /// Forgets all counts. The memory is kept.
    pub(crate) fn clear(&mut self) {
        match &mut self.0 {
            Store::Many(many) => many.clear(),
            Store::Few(few) => few.len = 0,
        }
    }

    /// The buckets with values and their counts, from the least.
    pub(crate) fn hit(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        let (few, many) = match &self.0 {
            Store::Few(few) => (Some(few), None),
            Store::Many(many) => (None, Some(many)),
        };
        few.into_iter().flat_map(Few::hit).chain(many.into_iter().flat_map(Many::hit))
    }

    /// Returns the bytes of the counts, except those in place.
    #[cfg(test)]
    pub(crate) fn bytes(&self) -> usize {
        match &self.0 {
            Store::Many(many) => many.bytes.len(),
            Store::Few(_) => 0,
        }
    }

    /// Returns whether the counts are pairs.
    #[cfg(test)]
    fn is_pairs(&self) -> bool {
        match &self.0 {
            Store::Many(many) => many.is_pairs(),
            Store::Few(_) => true,
        }
    }
}

impl Few {
    fn list(&self) -> &[[u8; 2]] {
        &self.pairs[..usize::from(self.len)]
    }

    /// Counts one value in its pair. Returns false, and counts nothing, if the bucket has no pair, or its count has no room.
    fn increment(&mut self, bucket: u32) -> bool {
        let pairs = &mut self.pairs[..usize::from(self.len)];
        let place = increment_one(pairs, usize::from(self.recent), bucket);
        if let Some(place) = place {
            self.recent = place as u8;
        }
        place.is_some()
    }

    /// Counts values. Returns false, and counts nothing, if there is no room for them.
    fn add(&mut self, bucket: u32, values: u32) -> bool {
        let (pairs, place) = (usize::from(self.len), place_of(self.list(), bucket));
        let found =
            self.list().get(place).map(|pair| pair.bucket_and_count()).filter(|(other, _)| *other == bucket);
        let count = found.map_or(0, |(_, count)| count).saturating_add(values);
        let fits = count >> count_bits(NARROW) == 0 && (found.is_some() || pairs < FEW);
        if !fits {
            return false;
        }
        if found.is_none() {
            self.pairs.copy_within(place..pairs, place + 1);
            self.len += 1;
        }
        self.pairs[place] = Pair::of(bucket, count);
        true
    }

    fn reduce(&mut self, reduced: impl Fn(u32) -> u32) {
        for pair in &mut self.pairs[..usize::from(self.len)] {
            let (bucket, count) = pair.bucket_and_count();
            *pair = Pair::of(bucket, reduced(count));
        }
    }

    fn hit(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.list().iter().map(|pair| pair.bucket_and_count())
    }

    /// Returns the same pairs in a list.
    fn to_many(self) -> Many {
        let mut many = Many::default();
        self.hit().enumerate().for_each(|(place, (bucket, count))| many.insert_pair(place, bucket, count));
        many
    }
}

impl Many {
    /// Counts one value in a range. Returns false, and counts nothing, if the range has no room for it, and if the counts are pairs.
    #[inline]
    fn increment(&mut self, bucket: u32) -> bool {
        // A bucket below the range becomes a number above it.
        let place = bucket.wrapping_sub(self.start) as usize;
        match self.width {
            8 => {
                let Some(byte) = self.bytes.get_mut(place) else { return false };
                let count = byte.checked_add(1);
                count.map(|count| *byte = count).is_some()
            }
            4 => {
                let Some(pair) = self.bytes.get_mut(place / 2) else { return false };
                let one: u8 = if place.is_multiple_of(2) { 1 } else { 1 << 4 };
                let full = one * NIBBLE;
                if *pair & full == full {
                    return false;
                }
                *pair += one;
                true
            }
            16 => {
                let Some(bytes) = self.bytes.as_chunks_mut().0.get_mut(place) else { return false };
                let count = u16::from_le_bytes(*bytes).checked_add(1);
                count.map(|count| *bytes = count.to_le_bytes()).is_some()
            }
            // Not `32`: a fourth number would make a table of jumps.
            width if width > 16 => {
                let Some(bytes) = self.bytes.as_chunks_mut().0.get_mut(place) else { return false };
                let count = u32::from_le_bytes(*bytes).checked_add(1);
                count.map(|count| *bytes = count.to_le_bytes()).is_some()
            }
            _ => false,
        }
    }

    /// Returns the count of a bucket.
    fn get(&self, bucket: u32) -> u32 {
        let place = bucket.wrapping_sub(self.start) as usize;
        let count = match self.width {
            8 => self.bytes.get(place).map(|count| u32::from(*count)),
            4 => self.bytes.get(place / 2).map(|pair| u32::from(*pair >> (place % 2 * 4) & NIBBLE)),
            16 => self.bytes.as_chunks().0.get(place).map(|bytes| u32::from(u16::from_le_bytes(*bytes))),
            32 => self.bytes.as_chunks().0.get(place).map(|bytes| u32::from_le_bytes(*bytes)),
            _ => self.find(bucket).ok().map(|place| self.pair(place).1),
        };
        count.unwrap_or(0)
    }

    /// Returns a byte near the count of a bucket, whose reading brings the count into the cache.
    #[inline]
    fn read_near(&self, bucket: u32) -> u8 {
        let place = (bucket.wrapping_sub(self.start) as usize).wrapping_mul(self.width as usize) / 8;
        // A bucket may have no count yet, and pairs have other places.
        self.bytes.get(place).or(self.bytes.first()).copied().unwrap_or(0)
    }

    /// Counts values. A count that would overflow keeps its largest value.
    fn add(&mut self, bucket: u32, values: u32) {
        if !self.is_pairs() {
            self.put_in_range(bucket, self.get(bucket).saturating_add(values));
            return;
        }
        let found = self.find(bucket);
        let count = found.map_or(0, |place| self.pair(place).1).saturating_add(values);
        // All counts of narrow pairs fit in narrow ones.
        let width = if count >> count_bits(NARROW) == 0 { self.width } else { WIDE };
        let bytes = (self.start as usize + usize::from(found.is_err())) * pair_bytes(width);
        let buckets = self.range_with(bucket).len();
        let bytes_of_range = |bits: u16| buckets * bits as usize / 8;
        // Few pairs take less than any range, and the largest count does not matter.
        let are_many = 3 * bytes > 2 * bytes_of_range(4)
            && 3 * bytes > 2 * bytes_of_range(bits_of(self.counts_of_pairs() | count));
        if count >> count_bits(WIDE) > 0 || are_many {
            self.put_in_range(bucket, count);
            return;
        }
        if width != self.width {
            self.widen_pairs();
        }
        match found {
            Ok(place) => self.set_pair(place, bucket, count),
            Err(place) => self.insert_pair(place, bucket, count),
        }
    }

    /// Changes every count that is not zero to another one that is neither greater nor zero.
    fn reduce(&mut self, reduced: impl Fn(u32) -> u32) {
        if self.is_pairs() {
            for place in 0..self.start as usize {
                let (bucket, count) = self.pair(place);
                self.set_pair(place, bucket, reduced(count));
            }
            return;
        }
        for bucket in self.range() {
            let count = self.get(bucket);
            if count > 0 {
                self.set(bucket, reduced(count));
            }
        }
    }

    /// Forgets all counts. The memory is kept.
    fn clear(&mut self) {
        if self.is_pairs() {
            self.start = 0;
        } else {
            self.bytes.fill(0);
        }
    }

    /// The buckets with values and their counts, from the least.
    fn hit(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        let (pairs, range) = if self.is_pairs() { (self.start as usize, 0..0) } else { (0, self.range()) };
        let in_range = range.map(|bucket| (bucket, self.get(bucket))).filter(|(_, count)| *count > 0);
        (0..pairs).map(|place| self.pair(place)).chain(in_range)
    }

    /// Returns whether the counts are pairs.
    const fn is_pairs(&self) -> bool {
        self.width <= WIDE
    }
}

/// Pairs.
impl Many {
    /// Counts one value in its pair. Returns false, and counts nothing, if the bucket has no pair, or its count has no room.
    fn increment_pair(&mut self, bucket: u32) -> bool {
        let (pairs, recent) = (self.start as usize, usize::from(self.recent));
        let place = if self.width == NARROW {
            increment_one(&mut self.bytes.as_chunks_mut::<2>().0[..pairs], recent, bucket)
        } else {
            increment_one(&mut self.bytes.as_chunks_mut::<4>().0[..pairs], recent, bucket)
        };
        if let Some(place) = place {
            self.recent = place as u16;
        }
        place.is_some()
    }

    /// Returns the place of a bucket's pair, or else the place at which it would be.
    fn find(&self, bucket: u32) -> Result<usize, usize> {
        let pairs = self.start as usize;
        let place = if self.width == NARROW {
            place_of(&self.bytes.as_chunks::<2>().0[..pairs], bucket)
        } else {
            place_of(&self.bytes.as_chunks::<4>().0[..pairs], bucket)
        };
        if place < pairs && self.pair(place).0 == bucket { Ok(place) } else { Err(place) }
    }

    /// Returns the bucket and the count of a pair.
    fn pair(&self, place: usize) -> (u32, u32) {
        if self.width == NARROW {
            self.bytes.as_chunks::<2>().0[place].bucket_and_count()
        } else {
            self.bytes.as_chunks::<4>().0[place].bucket_and_count()
        }
    }

    /// Returns all counts joined by `or`: a number with as many bits as the largest one.
    fn counts_of_pairs(&self) -> u32 {
        let pairs = self.start as usize;
        let all = if self.width == NARROW {
            let pairs = &self.bytes.as_chunks::<2>().0[..pairs];
            u32::from(pairs.iter().fold(0_u16, |all, pair| all | u16::from_le_bytes(*pair)))
        } else {
            let pairs = &self.bytes.as_chunks::<4>().0[..pairs];
            pairs.iter().fold(0_u32, |all, pair| all | u32::from_le_bytes(*pair))
        };
        all & ((1 << count_bits(self.width)) - 1)
    }

    fn set_pair(&mut self, place: usize, bucket: u32, count: u32) {
        if self.width == NARROW {
            self.bytes.as_chunks_mut::<2>().0[place] = Pair::of(bucket, count);
        } else {
            self.bytes.as_chunks_mut::<4>().0[place] = Pair::of(bucket, count);
        }
    }

    /// Inserts a pair before the one at this place.
    fn insert_pair(&mut self, place: usize, bucket: u32, count: u32) {
        let (pairs, bytes) = (self.start as usize, pair_bytes(self.width));
        if (pairs + 1) * bytes > self.bytes.len() {
            let mut longer = std::mem::take(&mut self.bytes).into_vec();
            let more = PAIR_BYTES[usize::from(!longer.is_empty())];
            longer.reserve_exact(more);
            longer.resize(longer.len() + more, 0);
            self.bytes = longer.into_boxed_slice();
        }
        self.bytes.copy_within(place * bytes..pairs * bytes, (place + 1) * bytes);
        self.start += 1;
        self.set_pair(place, bucket, count);
    }

    /// Makes pairs wide.
    fn widen_pairs(&mut self) {
        let pairs = std::mem::replace(self, Self { width: WIDE, ..Self::default() });
        for (place, (bucket, count)) in pairs.hit().enumerate() {
            self.insert_pair(place, bucket, count);
        }
    }
}

/// Counts of a range.
impl Many {
    /// Returns the buckets that have counts in a range. Of pairs, the range that has all of their buckets.
    fn range(&self) -> Range<u32> {
        if !self.is_pairs() {
            return self.start..self.start + self.bytes.len() as u32 * 8 / u32::from(self.width);
        }
        let Some(last) = self.start.checked_sub(1) else { return 0..0 };
        let [first, last] = [0, last as usize].map(|place| self.pair(place).0 / STEP * STEP);
        first..last + STEP
    }

    /// Returns the range with this bucket, too.
    fn range_with(&self, bucket: u32) -> Range<u32> {
        let start = bucket / STEP * STEP;
        let range = self.range();
        if range.is_empty() {
            return start..start + STEP;
        }
        range.start.min(start)..range.end.max(start + STEP)
    }

    /// Sets the count of a bucket in a range. Pairs become a range.
    fn put_in_range(&mut self, bucket: u32, count: u32) {
        let range = self.range_with(bucket);
        let width = if self.is_pairs() {
            self.hit().map(|(_, count)| bits_of(count)).max().unwrap_or(4)
        } else {
            self.width
        };
        let width = width.max(bits_of(count));
        if width != self.width || range != self.range() {
            self.rebuild(&range, width);
        }
        self.set(bucket, count);
    }

    /// Copies the counts to a range that includes the present one, with this number of bits each.
    fn rebuild(&mut self, range: &Range<u32>, width: u16) {
        let bytes_of = |buckets: usize| buckets * width as usize / 8;
        let bytes = vec![0; bytes_of(range.len())].into();
        let mut rebuilt = Self { bytes, start: range.start, width, recent: 0 };
        if width == self.width {
            let offset = bytes_of((self.start - range.start) as usize);
            rebuilt.bytes[offset..offset + self.bytes.len()].copy_from_slice(&self.bytes);
        } else {
            self.hit().for_each(|(bucket, count)| rebuilt.set(bucket, count));
        }
        *self = rebuilt;
    }

    /// Sets the count of a bucket in the range, for which it has enough bits.
    fn set(&mut self, bucket: u32, count: u32) {
        let place = (bucket - self.start) as usize;
        if self.width == 4 {
            let (pair, shift) = (&mut self.bytes[place / 2], place % 2 * 4);
            *pair = *pair & !(NIBBLE << shift) | (count as u8) << shift;
        } else {
            let bytes = self.width as usize / 8;
            self.bytes[place * bytes..][..bytes].copy_from_slice(&count.to_le_bytes()[..bytes]);
        }
    }
}

/// A pair: one number, with the bucket in the upper bits and the count in the others.
trait Pair: Copy {
    /// The bits of the count.
    const COUNT_BITS: u32;

    fn number(self) -> u32;

    fn from_number(number: u32) -> Self;

    /// Returns the bucket and the count.
    fn bucket_and_count(self) -> (u32, u32) {
        let number = self.number();
        (number >> Self::COUNT_BITS, number & ((1 << Self::COUNT_BITS) - 1))
    }

    /// Returns the pair of a bucket and its count.
    fn of(bucket: u32, count: u32) -> Self {
        Self::from_number(bucket << Self::COUNT_BITS | count)
    }
}

impl Pair for [u8; 2] {
    const COUNT_BITS: u32 = count_bits(NARROW);

    #[inline]
    fn number(self) -> u32 {
        u32::from(u16::from_le_bytes(self))
    }

    #[inline]
    fn from_number(number: u32) -> Self {
        (number as u16).to_le_bytes()
    }
}

impl Pair for [u8; 4] {
    const COUNT_BITS: u32 = count_bits(WIDE);

    #[inline]
    fn number(self) -> u32 {
        u32::from_le_bytes(self)
    }

    #[inline]
    fn from_number(number: u32) -> Self {
        number.to_le_bytes()
    }
}

/// Returns the place of a bucket's pair among all pairs, or the place at which it would be.
#[inline]
fn place_of<P: Pair>(pairs: &[P], bucket: u32) -> usize {
    let least = bucket << P::COUNT_BITS;
    pairs.partition_point(|pair| pair.number() < least)
}

/// Counts one value in the pair of a bucket, which is often the one at the place `recent`. Returns the place; `None`, and counts nothing, if
/// the bucket has no pair, or its count has no room.
#[inline]
fn increment_one<P: Pair>(pairs: &mut [P], recent: usize, bucket: u32) -> Option<usize> {
    let least = bucket << P::COUNT_BITS;
    // The difference is the count, and more than that if the pair is another bucket's.
    let has_room = |pair: P| pair.number().wrapping_sub(least) < (1 << P::COUNT_BITS) - 1;
    let is_recent = pairs.get(recent).is_some_and(|pair| has_room(*pair));
    let place = if is_recent { recent } else { place_of(pairs, bucket) };
    let pair = pairs.get_mut(place).filter(|pair| has_room(**pair))?;
    *pair = P::from_number(pair.number() + 1);
    Some(place)
}

/// Returns the bits that a count needs in a range.
const fn bits_of(count: u32) -> u16 {
    match count {
        0..=0xf => 4,
        0x10..=0xff => 8,
        0x100..=0xffff => 16,
        _ => 32,
    }
}

/// Returns the bytes of a pair of this width.
const fn pair_bytes(width: u16) -> usize {
    2 * width as usize
}

/// Returns the bits of a count in a pair of this width.
const fn count_bits(width: u16) -> u32 {
    16 * width as u32 - BUCKET_BITS
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn count(counts: &mut Counts, bucket: u32, times: u32) {
        for _ in 0..times {
            counts.increment(bucket);
        }
    }

    /// Counts of buckets that are 10 apart, so many in each.
    fn sparse(buckets: u32, times: u32) -> Counts {
        let mut counts = Counts::default();
        (0..buckets).for_each(|number| count(&mut counts, 100 + 10 * number, times));
        counts
    }

    #[test]
    fn seven_pairs_need_no_memory_of_their_own() {
        for (buckets, times, bytes) in [(7, 31, 0), (8, 31, 24), (7, 32, 40), (1, 32, 24)] {
            let counts = sparse(buckets, times);
            assert!(counts.is_pairs() && counts.bytes() == bytes, "{buckets}: {} B", counts.bytes());
            assert!(counts.hit().eq((0..buckets).map(|number| (100 + 10 * number, times))), "{buckets}");
        }
    }

    #[test]
    fn few_buckets_with_values_are_pairs() {
        // A range of 200 buckets would have 100 B, and with more than 15 values in a bucket 200 B.
        for (times, bytes) in [(1, 40), (15, 40), (31, 40), (32, 88), (1000, 88)] {
            let counts = sparse(20, times);
            assert!(counts.is_pairs() && counts.bytes() == bytes, "{times}: {} B", counts.bytes());
            assert!(counts.hit().eq((0..20).map(|number| (100 + 10 * number, times))), "{times}");
            assert_eq!((counts.get(100), counts.get(101), counts.get(290)), (times, 0, times));
        }
    }

    #[test]
    fn many_buckets_with_values_are_a_range() {
        let mut counts = sparse(20, 3);
        for bucket in 100..300 {
            count(&mut counts, bucket, 2);
        }
        assert!(!counts.is_pairs());
        let expected = (100..300_u32).map(|bucket| (bucket, if bucket.is_multiple_of(10) { 5 } else { 2 }));
        assert!(counts.hit().eq(expected));
        assert_eq!(counts.bytes(), 208 / 2, "from bucket 96 to 304");
    }

    #[test]
    fn a_count_that_no_pair_has_room_for_makes_a_range() {
        let mut counts = sparse(20, 1);
        counts.add(100, (1 << 21) - 2);
        assert!(counts.is_pairs());
        counts.add(100, 1);
        assert!(!counts.is_pairs());
        assert_eq!((counts.get(100), counts.get(110)), (1 << 21, 1));
    }

    #[test]
    fn cleared_counts_count_again() {
        for mut counts in [sparse(5, 3), sparse(20, 3), Counts::with_room(500)] {
            let bytes = counts.bytes();
            counts.clear();
            assert_eq!(counts.hit().next(), None);
            count(&mut counts, 7, 2);
            assert_eq!((counts.hit().collect::<Vec<_>>(), counts.bytes()), (vec![(7, 2)], bytes));
        }
    }

    proptest! {
        /// Against a map, with few buckets and many, near each other and far apart.
        #[test]
        fn every_bucket_has_its_count(
            added in prop::collection::vec(
                (0u32..60, prop_oneof![Just(1u32), 1u32..40, Just(300), Just(70_000), Just(3_000_000)]),
                0..80,
            ),
            spread in prop_oneof![Just(1u32), Just(7), Just(26)],
        ) {
            let (mut counts, mut expected) = (Counts::default(), BTreeMap::new());
            for (number, values) in added {
                let bucket = number * spread;
                *expected.entry(bucket).or_insert(0_u32) += values;
                if values < 40 {
                    count(&mut counts, bucket, values);
                } else {
                    counts.add(bucket, values);
                }
                prop_assert_eq!(counts.get(bucket), expected[&bucket]);
            }
            prop_assert!(counts.hit().eq(expected.iter().map(|(bucket, count)| (*bucket, *count))));
            counts.reduce(|count| count.div_ceil(2));
            prop_assert!(counts.hit().eq(expected.iter().map(|(bucket, count)| (*bucket, count.div_ceil(2)))));
        }
    }
}
