//! New inputs from old ones: a few random changes to an input of the corpus, as fuzzers without coverage make them.
//!
//! The same seed makes the same inputs on every machine.

use cutline_units::RandomStream;
use rand_core::Rng as _;

/// Numbers at the ends of ranges, as a header or a document has them.
const NUMBERS: [u64; 12] =
    [0, 1, 0x7f, 0x80, 0xff, 0x7fff, 0xffff, 0x7fff_ffff, 0xffff_ffff, 1 << 53, i64::MAX as u64, u64::MAX];
/// Texts that break parsers: numbers that are too large, nesting, quotes, other alphabets.
const TEXTS: [&str; 24] = [
    "0",
    "-1",
    "1e999",
    "-0.0",
    "nan",
    "18446744073709551616",
    "9223372036854775807",
    "0.0000000001",
    "\"",
    "'",
    "[",
    "]",
    "{",
    "}",
    "[[",
    "\n",
    "=",
    ",",
    "\\u0000",
    "\u{1b}[2J",
    "\u{e9}",
    "\u{1f600}",
    "true",
    "null",
];
/// The most changes to one input. Half of all inputs have one change, a quarter two, and so on.
const MOST_CHANGES: u32 = 8;
/// The longest run of bytes that is copied, inserted or taken out.
const LONGEST_RUN: u64 = 64;

/// An input that others are made of.
#[derive(Clone, Copy, Debug)]
pub struct Seed<'c> {
    /// The bytes.
    pub input: &'c [u8],
    /// True if the parser accepts them.
    pub accepted: bool,
}

/// Makes inputs of a corpus.
#[derive(Debug)]
pub struct Mutator<'c> {
    corpus: Vec<&'c [u8]>,
    accepted: Vec<&'c [u8]>,
    words: Vec<Vec<u8>>,
    longest: usize,
    random: RandomStream,
}

impl<'c> Mutator<'c> {
    /// A mutator that changes the inputs of `corpus`, puts `words` into them, and makes none that is longer than `longest`
    /// bytes. Three of four inputs are made of those that the parser accepts, which reach the code behind its first checks.
    pub fn new(corpus: &'c [Seed<'c>], words: Vec<Vec<u8>>, longest: usize, random: RandomStream) -> Self {
        let accepted = corpus.iter().filter(|seed| seed.accepted).map(|seed| seed.input).collect();
        Self { corpus: corpus.iter().map(|seed| seed.input).collect(), accepted, words, longest, random }
    }

    /// The next input.
    pub fn next_input(&mut self) -> Vec<u8> {
        let mut input = self.choose().to_vec();
        input.truncate(self.longest);
        let changes = 1 + self.random.next_u64().trailing_ones().min(MOST_CHANGES - 1);
        for _ in 0..changes {
            self.change(&mut input);
            input.truncate(self.longest);
        }
        input
    }

    fn change(&mut self, input: &mut Vec<u8>) {
        match self.below(11) {
            0 => self.overwrite(input, |old, random| old ^ 1 << (random % 8)),
            1 => self.overwrite(input, |_, random| random as u8),
            2 => self.overwrite(input, |old, random| old.wrapping_add((random % 33) as u8).wrapping_sub(16)),
            3 => self.number(input),
            4 => {
                let run = self.run(input);
                input.drain(run);
            }
            5 => {
                let run = self.run(input);
                let copied = input[run].to_vec();
                self.insert(input, &copied);
            }
            6 => {
                let random: Vec<u8> =
                    (0..=self.below(LONGEST_RUN)).map(|_| self.random.next_u64() as u8).collect();
                self.insert(input, &random);
            }
            7 => {
                let at = self.below(input.len() as u64 + 1);
                input.truncate(at as usize);
            }
            8 => self.splice(input),
            9 => {
                let word = self.word();
                self.insert(input, &word);
            }
            _ => self.replace_word(input),
        }
    }

    fn overwrite(&mut self, input: &mut [u8], new: impl Fn(u8, u64) -> u8) {
        let (at, random) = (self.below(input.len() as u64) as usize, self.random.next_u64());
        if let Some(byte) = input.get_mut(at) {
            *byte = new(*byte, random);
        }
    }

    /// Overwrites bytes by a number of 1, 2, 4 or 8 bytes, in either order of bytes.
    fn number(&mut self, input: &mut [u8]) {
        let number = NUMBERS[self.below(NUMBERS.len() as u64) as usize];
        let width = 1 << self.below(4);
        let mut bytes = number.to_le_bytes()[..width].to_vec();
        if self.below(2) == 0 {
            bytes.reverse();
        }
        let at = self.below(input.len() as u64) as usize;
        input.iter_mut().skip(at).zip(bytes).for_each(|(old, new)| *old = new);
    }

    /// Continues with the rest of another input.
    fn splice(&mut self, input: &mut Vec<u8>) {
        let other = self.choose();
        let (at, from) = (self.below(input.len() as u64 + 1), self.below(other.len() as u64 + 1));
        input.truncate(at as usize);
        input.extend_from_slice(&other[from as usize..]);
    }

    /// Puts another word in the place of one.
    fn replace_word(&mut self, input: &mut Vec<u8>) {
        let is_word = |byte: u8| byte.is_ascii_alphanumeric();
        let at = self.below(input.len() as u64) as usize;
        let Some(start) = (at..input.len()).find(|&at| is_word(input[at])) else { return };
        let length = input[start..].iter().take_while(|byte| is_word(**byte)).count();
        let word = self.word();
        input.splice(start..start + length, word);
    }

    fn word(&mut self) -> Vec<u8> {
        let at = self.below((self.words.len() + TEXTS.len()) as u64) as usize;
        self.words.get(at).cloned().unwrap_or_else(|| TEXTS[at - self.words.len()].into())
    }

    fn insert(&mut self, input: &mut Vec<u8>, bytes: &[u8]) {
        let at = self.below(input.len() as u64 + 1) as usize;
        input.splice(at..at, bytes.iter().copied());
    }

    /// Some bytes that follow each other.
    fn run(&mut self, input: &[u8]) -> std::ops::Range<usize> {
        let start = self.below(input.len() as u64) as usize;
        let length = self.below(LONGEST_RUN) as usize + 1;
        start..(start + length).min(input.len())
    }

    fn choose(&mut self) -> &'c [u8] {
        let from_accepted = !self.accepted.is_empty() && self.below(4) > 0;
        let at = self.random.next_u64();
        let from = if from_accepted { &self.accepted } else { &self.corpus };
        at.checked_rem(from.len() as u64).map_or(&[], |at| from[at as usize])
    }

    /// A number below `end`; 0 if there is none.
    fn below(&mut self, end: u64) -> u64 {
        self.random.next_u64().checked_rem(end).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutline_units::Streams;

    const CORPUS: [Seed<'_>; 2] = [
        Seed { input: b"rate = \"15 Mbit/s\"\n", accepted: true },
        Seed { input: b"%%%%%%%%", accepted: false },
    ];

    fn mutator(seed: u64) -> Mutator<'static> {
        let random = Streams::new(seed).stream("test", "mutations");
        Mutator::new(&CORPUS, vec![b"limit".to_vec()], 30, random)
    }

    #[test]
    fn a_seed_makes_the_same_inputs_and_another_makes_others() {
        let inputs = |seed| {
            let mut mutator = mutator(seed);
            (0..200).map(|_| mutator.next_input()).collect::<Vec<_>>()
        };
        assert_eq!(inputs(1), inputs(1));
        assert_ne!(inputs(1), inputs(2));
    }

    #[test]
    fn inputs_differ_keep_to_their_length_and_hold_words() {
        let mut mutator = mutator(1);
        let inputs: std::collections::BTreeSet<_> = (0..2000).map(|_| mutator.next_input()).collect();
        assert!(inputs.len() > 1000, "{}", inputs.len());
        assert!(inputs.iter().all(|input| input.len() <= 30));
        assert!(inputs.iter().any(|input| input.windows(5).any(|part| part == b"limit")));
        let of_accepted = inputs.iter().filter(|input| !input.contains(&b'%')).count();
        assert!(of_accepted * 2 > inputs.len(), "{of_accepted} of {}", inputs.len());
    }
}
