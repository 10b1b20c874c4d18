//! The queue of a sender: the lengths of the packets that the application has written and that have not left.

use std::collections::VecDeque;

/// Packet lengths in the order of writing, at most `limit` of them, and then possibly an endless supply.
#[derive(Clone, Debug)]
pub(crate) struct SendQueue {
    lengths: VecDeque<u32>,
    /// The longest packet, bytes; a longer write is split.
    largest: u32,
    limit: usize,
    unlimited: bool,
}

impl SendQueue {
    pub(crate) const fn new(largest: u32, limit: usize) -> Self {
        Self { lengths: VecDeque::new(), largest, limit, unlimited: false }
    }

    /// Appends `bytes` as packets. Drops packets that do not fit, and returns how many.
    pub(crate) fn write(&mut self, bytes: u64) -> u32 {
        let mut left = bytes;
        let mut dropped = 0;
        while left > 0 {
            let length = left.min(u64::from(self.largest)) as u32;
            left -= u64::from(length);
            if self.lengths.len() < self.limit {
                self.lengths.push_back(length);
            } else {
                dropped += 1;
            }
        }
        dropped
    }

    /// From now on there is always a packet of the largest size to send.
    pub(crate) fn write_unlimited(&mut self) {
        self.unlimited = true;
    }

    /// Ends the endless supply. Written data stays in the queue.
    pub(crate) fn end_supply(&mut self) {
        self.unlimited = false;
    }

    pub(crate) fn is_empty(&self) -> bool {
        !self.unlimited && self.lengths.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.lengths.len()
    }

    pub(crate) fn pop(&mut self) -> Option<u32> {
        self.lengths.pop_front().or_else(|| self.unlimited.then_some(self.largest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_write_is_split_and_the_excess_is_dropped() {
        let mut queue = SendQueue::new(1000, 3);
        assert_eq!(queue.write(2500), 0);
        assert_eq!(queue.write(10), 1);
        let left: Vec<u32> = std::iter::from_fn(|| queue.pop()).collect();
        assert_eq!(left, [1000, 1000, 500]);
    }

    #[test]
    fn an_unlimited_queue_never_ends() {
        let mut queue = SendQueue::new(1000, 1);
        queue.write(7);
        queue.write_unlimited();
        assert_eq!((queue.pop(), queue.pop(), queue.pop()), (Some(7), Some(1000), Some(1000)));
        assert!(!queue.is_empty());
        queue.end_supply();
        assert!(queue.is_empty());
    }
}
