//! Set of the sequence numbers that have arrived.
//!
//! - A number is *missing* while it is below the highest number received and has not arrived.
//! - It is *late* if a higher one arrived before it (reordered: RFC 4737 section 3). It is missing no more.
//! - It is a *duplicate* if it has arrived before. The last 1024 numbers are remembered; an older one always counts as late.

/// The number of sequence numbers that are remembered.
const MEMORY: u64 = 1024;
/// The largest gap after the highest sequence number. A number after a larger gap is not counted.
const LARGEST_GAP: u64 = 1 << 20;

/// The sequence numbers that have arrived; the first is 0.
#[derive(Clone, Debug)]
pub struct Numbers {
    /// The highest number plus one.
    expected: u64,
    /// A bit for each of the last [`MEMORY`] numbers.
    seen: [u64; (MEMORY / 64) as usize],
}

/// Kind of an arrival, by its sequence number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageArrival {
    /// The number is the highest so far.
    InOrder {
        /// Count of missing numbers between it and the previous highest.
        missing: u64,
    },
    /// A higher number arrived before it.
    Late,
    /// The number has arrived before.
    Duplicate,
    /// The gap is too large for a message of this connection.
    Impossible,
}

impl Default for Numbers {
    fn default() -> Self {
        Self { expected: 0, seen: [0; (MEMORY / 64) as usize] }
    }
}

impl Numbers {
    /// Takes a number that has arrived.
    #[inline]
    pub fn arrive(&mut self, number: u64) -> MessageArrival {
        if number == self.expected {
            self.forget(number);
            self.note(number);
            self.expected = number.saturating_add(1);
            return MessageArrival::InOrder { missing: 0 };
        }
        self.arrive_out_of_order(number)
    }

    /// The highest number that has arrived plus one: the count of messages if none were missing.
    pub const fn expected(&self) -> u64 {
        self.expected
    }

    fn arrive_out_of_order(&mut self, number: u64) -> MessageArrival {
        if number >= self.expected.saturating_add(LARGEST_GAP) {
            return MessageArrival::Impossible;
        }
        if number >= self.expected {
            let missing = number - self.expected;
            if missing < MEMORY {
                (self.expected..=number).for_each(|number| self.forget(number));
            } else {
                self.seen.fill(0);
            }
            self.note(number);
            self.expected = number.saturating_add(1);
            return MessageArrival::InOrder { missing };
        }
        if self.expected - number > MEMORY {
            return MessageArrival::Late;
        }
        if self.note(number) { MessageArrival::Duplicate } else { MessageArrival::Late }
    }

    /// Remembers a number. Returns whether it was remembered already.
    #[inline]
    fn note(&mut self, number: u64) -> bool {
        let (word, bit) = Self::place(number);
        let was = self.seen[word] & bit != 0;
        self.seen[word] |= bit;
        was
    }

    #[inline]
    fn forget(&mut self, number: u64) {
        let (word, bit) = Self::place(number);
        self.seen[word] &= !bit;
    }

    const fn place(number: u64) -> (usize, u64) {
        ((number % MEMORY / 64) as usize, 1 << (number % 64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn numbers_are_in_order_late_duplicate_or_impossible() {
        let mut numbers = Numbers::default();
        let found = [0, 1, 4, 3, 3, 5, u64::MAX, 5 + LARGEST_GAP, 5].map(|number| numbers.arrive(number));
        let in_order = |missing| MessageArrival::InOrder { missing };
        let expected = [
            in_order(0),
            in_order(0),
            in_order(2),
            MessageArrival::Late,
            MessageArrival::Duplicate,
            in_order(0),
            MessageArrival::Impossible,
            in_order(LARGEST_GAP - 1),
            MessageArrival::Late,
        ];
        assert_eq!(found, expected, "the last one is too old to be remembered");
        assert_eq!(numbers.expected(), 6 + LARGEST_GAP);
    }

    proptest! {
        /// Compared with a set of all numbers.
        #[test]
        fn every_number_follows_from_a_set(steps in prop::collection::vec((0_u64..1500, any::<bool>()), 1..400)) {
            let (mut numbers, mut set) = (Numbers::default(), BTreeSet::new());
            for (step, back) in steps {
                let expected = set.last().map_or(0, |last: &u64| last + 1);
                let number = if back { expected.saturating_sub(step) } else { expected + step };
                let is_forgotten = expected.saturating_sub(number) > MEMORY;
                let arrival = match set.insert(number) {
                    true if number >= expected => MessageArrival::InOrder { missing: number - expected },
                    true => MessageArrival::Late,
                    false if is_forgotten => MessageArrival::Late,
                    false => MessageArrival::Duplicate,
                };
                prop_assert_eq!(numbers.arrive(number), arrival);
            }
        }
    }
}
