//! A skip list with byte ranks, as a textbook has it: the TSQ paper's proposal for its queue.
//!
//! Source: W. Pugh, "Skip lists: a probabilistic alternative to balanced trees", CACM 33(6), 1990, with p = 1/4,
//! and the widths of his "A skip list cookbook" (1990), section 3.4, in bytes. An insertion answers the bytes in
//! front of it as it goes. Nodes and their towers are recycled, so that it does not allocate when warm.

use cutline_aqm::Entry;
use cutline_units::{Instant, RandomStream};

/// 4^12 packets are enough.
const LEVELS: usize = 12;
const NONE: u32 = u32::MAX;

/// A step to the right: the next node, and the bytes that the step covers, those of that node included.
#[derive(Clone, Copy)]
struct Link {
    next: u32,
    bytes: u64,
}

struct Node {
    entry: Entry<u32>,
    /// First index of the tower in `links`, and its height.
    tower: u32,
    height: u8,
}

/// Packets sorted by weight, equal ones in the order of arrival.
pub struct SkipList {
    nodes: Vec<Node>,
    links: Vec<Link>,
    head: [Link; LEVELS],
    /// Unused nodes by height.
    free: [Vec<u32>; LEVELS],
    random: RandomStream,
}

impl SkipList {
    /// An empty list.
    pub fn new(random: RandomStream) -> Self {
        let head = [Link { next: NONE, bytes: 0 }; LEVELS];
        Self { nodes: Vec::new(), links: Vec::new(), head, free: Default::default(), random }
    }

    /// Inserts a packet behind all that weigh no more, and answers their bytes.
    pub fn push(&mut self, entry: Entry<u32>) -> u64 {
        let (before, ranks) = self.path(entry.weight);
        let height = self.draw_height();
        let node = self.node(entry, height);
        let (ahead, size) = (ranks[0], u64::from(entry.size));
        for level in 0..LEVELS {
            let left = *self.link(before[level], level);
            if level < height {
                // The step is split; the left half ends with the new node.
                let covered = ahead - ranks[level];
                let right = Link { next: left.next, bytes: left.bytes.saturating_sub(covered) };
                *self.link(node, level) = right;
                *self.link(before[level], level) = Link { next: node, bytes: covered + size };
            } else if left.next != NONE {
                self.link(before[level], level).bytes += size;
            }
        }
        ahead
    }

    /// Takes the first packet.
    pub fn pop(&mut self) -> Option<Entry<u32>> {
        let first = self.head[0].next;
        if first == NONE {
            return None;
        }
        let (entry, height) =
            (self.nodes[first as usize].entry, usize::from(self.nodes[first as usize].height));
        for level in 0..LEVELS {
            if level < height {
                self.head[level] = *self.link(first, level);
            } else if self.head[level].next != NONE {
                self.head[level].bytes -= u64::from(entry.size);
            }
        }
        self.free[height - 1].push(first);
        Some(entry)
    }

    /// Per level the last node that weighs no more than `w`, and the bytes up to its end.
    fn path(&mut self, w: Instant) -> ([u32; LEVELS], [u64; LEVELS]) {
        let (mut before, mut ranks) = ([NONE; LEVELS], [0; LEVELS]);
        let (mut at, mut rank) = (NONE, 0);
        for level in (0..LEVELS).rev() {
            loop {
                let Link { next, bytes } = *self.link(at, level);
                if next == NONE || self.nodes[next as usize].entry.weight > w {
                    break;
                }
                (at, rank) = (next, rank + bytes);
            }
            (before[level], ranks[level]) = (at, rank);
        }
        (before, ranks)
    }

    /// The step to the right of a node, or of the head for [`NONE`].
    fn link(&mut self, node: u32, level: usize) -> &mut Link {
        match node {
            NONE => &mut self.head[level],
            node => &mut self.links[self.nodes[node as usize].tower as usize + level],
        }
    }

    /// 1 with probability 3/4, 2 with 3/16, ...
    fn draw_height(&mut self) -> usize {
        let draw = (self.random.uniform() * (1_u64 << 52) as f64) as u64;
        (draw.trailing_zeros() as usize / 2 + 1).min(LEVELS)
    }

    fn node(&mut self, entry: Entry<u32>, height: usize) -> u32 {
        if let Some(node) = self.free[height - 1].pop() {
            self.nodes[node as usize].entry = entry;
            return node;
        }
        let tower = self.links.len() as u32;
        self.links.resize(self.links.len() + height, Link { next: NONE, bytes: 0 });
        self.nodes.push(Node { entry, tower, height: height as u8 });
        self.nodes.len() as u32 - 1
    }
}
