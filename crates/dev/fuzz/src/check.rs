//! One input, with bounds on time and memory.

use crate::Target;
use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// The longest time that one input may take: of the processor and not of the clock on the wall, so that a busy machine fails
/// no test.
const LONGEST: Duration = Duration::from_secs(2);

/// The memory that a target may hold at once, beside the input itself.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    /// For any input, bytes.
    pub fixed: u64,
    /// For each byte of the input, bytes.
    pub per_byte: u64,
}

impl Memory {
    /// The memory that an input of this length may take, bytes.
    const fn allowed(self, length: usize) -> u64 {
        self.fixed + self.per_byte * length as u64
    }
}

impl Target {
    /// Gives one input to the target and returns whether the parser accepted it.
    ///
    /// # Panics
    /// If the parser breaks one of its promises, or takes too much time or memory.
    pub fn check(&self, input: &[u8]) -> bool {
        let began = processor_time();
        let mut accepted = false;
        let held = allocation_counter::measure(|| accepted = (self.parse)(input)).bytes_max;
        let took = processor_time().saturating_sub(began);
        let allowed = self.memory.allowed(input.len());
        assert!(
            held <= allowed,
            "{} held {held} B of memory for an input of {} B: allowed are {allowed} B",
            self.name,
            input.len()
        );
        assert!(
            took <= LONGEST,
            "{} took {took:?} of the processor for an input of {} B: allowed are {LONGEST:?}",
            self.name,
            input.len()
        );
        accepted
    }
}

/// Processor time of this thread.
pub fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::find;
    use std::panic::catch_unwind;

    /// Returns the reason for refusing a target that gives its inputs to this parser.
    fn why(parse: fn(&[u8]) -> bool) -> String {
        let target =
            Target { parse, memory: Memory { fixed: 1000, per_byte: 2 }, ..*find("scenario").unwrap() };
        let panic = catch_unwind(|| target.check(&[0; 100])).unwrap_err();
        panic.downcast_ref::<String>().expect("the assertion has a message").clone()
    }

    #[test]
    fn a_parser_that_holds_too_much_memory_fails() {
        let said = why(|input| vec![1_u8; input.len() * 20].len() == 7);
        assert!(said.contains("held 2000 B of memory for an input of 100 B: allowed are 1200 B"), "{said}");
    }

    #[test]
    fn a_parser_that_takes_too_long_fails() {
        let said = why(|_| {
            let began = processor_time();
            while processor_time().saturating_sub(began) <= LONGEST {}
            true
        });
        assert!(said.contains("of the processor for an input of 100 B"), "{said}");
    }
}
