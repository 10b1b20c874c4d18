//! Memory of the waiting frames: one bounded allocation, in which a frame takes little more than its length.
//!
//! ```text
//! room     one allocation of the whole bound; the kernel provides its pages when they are first written
//!   block  a part of the room, for frames of one class
//!     cell as long as the longest frame of the class
//! ```
//!
//! A class is a range of lengths. From 128 B on, a cell is at most half as long again as its frame. The cell of a frame
//! that has left is used by the next frame of the class. If no block is unused, a block whose frames have all left may
//! change to another class. Each frame also counts [`FRAME_OVERHEAD`] bytes for its records in the router and the queue.
//! If there is no room, the arriving frame is dropped; stored frames are never affected.
//!
//! The queue allocates its own lists while it grows, and an allocation that fails would end the process. Before the
//! number of stored frames exceeds its previous maximum, this module therefore checks that the memory for these lists
//! can be allocated.

use crate::top_flows::FlowSlot;
use cutline_units::{Dscp, Hint};
use cutline_wire::{self as wire, Headers};

/// The number of a stored frame. The queue holds it instead of the frame.
pub(crate) type Slot = u32;

/// Record of a frame, or a free place for one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    /// Position of the frame's cell, in units from the start of the room.
    cell: u32,
    length: u32,
    headers: Headers,
    /// Hint with which the frame arrived.
    hint: Hint,
    /// The class of its cell.
    class: u8,
    /// Place of its flow among those that send most.
    place: FlowSlot,
    /// The next slot in the list of free ones.
    next: u32,
}

/// A frame that may be changed.
pub(crate) struct FrameMut<'f> {
    bytes: &'f mut [u8],
    headers: &'f mut Headers,
}

/// The frames of a shaper.
#[derive(Debug)]
pub(crate) struct Frames {
    places: Vec<Frame>,
    /// Number of stored frames.
    stored: usize,
    /// The first slot without a cell.
    unused: Slot,
    room: Box<[u8]>,
    /// The class of a length, by the number of units.
    class_of: Box<[u8]>,
    classes: Box<[Class]>,
    /// The blocks that have been used, in the order of the room.
    blocks: Vec<Block>,
    /// Blocks that had no frame when they were listed.
    empty: Vec<u32>,
    /// Base-2 logarithm of the number of units in a block.
    block_shift: u32,
    /// The bound for all of it, bytes.
    most: usize,
    /// Frames that are refused before another attempt to allocate.
    refusals: u32,
}

/// A class of lengths.
#[derive(Debug)]
struct Class {
    /// Units in a cell.
    units: u32,
    /// Cells in a block.
    cells: u32,
    /// The first free slot that has a cell of this class.
    free: Slot,
    /// Blocks with a free cell that has no slot.
    open: Vec<u32>,
}

/// A block of cells.
#[derive(Debug)]
struct Block {
    class: u8,
    /// True if it is in the list of empty blocks.
    is_listed: bool,
    /// Cells that have a slot.
    used: u32,
    /// Cells that have ever been used.
    cut: u32,
    /// The first free cell among these. Each free cell begins with the number of the next.
    free: u32,
    /// Its place in the class's list.
    place: u32,
}

/// Unit of the room, bytes: the shortest frames fit.
const UNIT: usize = 64;
/// Smallest size of a block, bytes.
const BLOCK: usize = 64 * 1024;
/// Stands for no cell and for no slot.
const NONE: u32 = u32::MAX;
/// Memory for the records of a frame here and in its queue, bytes. Lists grow by doubling.
const FRAME_OVERHEAD: usize = 128;
/// Number of frames that can be recorded at the start.
const FIRST: usize = 256;
/// Memory that must remain for the rest of the process when the records grow, bytes.
const RESERVE: usize = 4 << 20;
/// Number of frames that are dropped after a failed allocation, before the next attempt.
const REFUSALS: u32 = 1024;

impl FrameMut<'_> {
    /// Marks the frame with CE.
    pub(crate) fn set_ce(&mut self) {
        let ip = self.headers.ip.as_mut().expect("only an IP packet says that it may be marked");
        wire::set_ce(self.bytes, ip);
    }

    /// Sets the code point if the frame is an IP packet.
    pub(crate) fn set_dscp(&mut self, dscp: Dscp) {
        if let Some(ip) = &mut self.headers.ip {
            wire::set_dscp(self.bytes, ip, dscp);
        }
    }
}

impl Frames {
    /// Creates room of up to `most` bytes for frames of up to `largest` bytes. `None` if there is no such room.
    pub(crate) fn new(largest: usize, most: usize) -> Option<Self> {
        let sizes = classes(largest.div_ceil(UNIT).max(1) as u32);
        let block_units = (BLOCK / UNIT).max(*sizes.last()? as usize).next_power_of_two() as u32;
        // Lists of blocks never grow: an allocation that fails would end the process.
        let blocks = most / (UNIT * block_units as usize);
        let list = || Vec::with_capacity(blocks);
        let class = |&units: &u32| Class { units, cells: block_units / units, free: NONE, open: list() };
        let class_of = (0..=*sizes.last()?).map(|units| sizes.partition_point(|&size| size < units) as u8);
        Some(Self {
            places: Vec::with_capacity(FIRST),
            stored: 0,
            unused: NONE,
            room: zeroed(most)?,
            class_of: class_of.collect(),
            classes: sizes.iter().map(class).collect(),
            blocks: Vec::with_capacity(blocks),
            empty: list(),
            block_shift: block_units.trailing_zeros(),
            most,
            refusals: 0,
        })
    }

    /// Takes room for a frame of this length. Returns `None` if there is none. Its content is that of an earlier frame.
    #[inline]
    pub(crate) fn take(&mut self, length: usize) -> Option<Slot> {
        let class = self.class_of[length.div_ceil(UNIT)];
        let mut slot = self.classes[class as usize].free;
        if slot == NONE {
            slot = self.open(class)?;
        }
        self.classes[class as usize].free = self.places[slot as usize].next;
        self.stored += 1;
        Some(slot)
    }

    /// Copies a frame into room that was taken for it.
    #[inline]
    pub(crate) fn fill(
        &mut self,
        slot: Slot,
        bytes: &[u8],
        headers: Headers,
        (hint, place): (Hint, FlowSlot),
    ) {
        let frame = &mut self.places[slot as usize];
        (frame.length, frame.headers) = (bytes.len() as u32, headers);
        (frame.hint, frame.place) = (hint, place);
        let start = frame.cell as usize * UNIT;
        self.room[start..start + bytes.len()].copy_from_slice(bytes);
    }

    /// Frees room that was taken. The next frame of its class takes it.
    #[inline]
    pub(crate) fn release(&mut self, slot: Slot) {
        let frame = &mut self.places[slot as usize];
        let class = &mut self.classes[frame.class as usize];
        frame.next = class.free;
        class.free = slot;
        self.stored -= 1;
    }

    /// Returns a new slot with a cell for a class.
    #[cold]
    #[inline(never)]
    fn open(&mut self, class: u8) -> Option<Slot> {
        let cell = self.take_cell(class)?;
        if self.unused == NONE && (self.is_over(0, 1) || self.places.len() == self.places.capacity()) {
            self.gather();
        }
        if self.unused == NONE && !self.note() {
            self.free_cell(class, cell);
            return None;
        }
        let slot = self.unused;
        let frame = &mut self.places[slot as usize];
        self.unused = frame.next;
        (frame.cell, frame.class, frame.next) = (cell, class, NONE);
        Some(slot)
    }

    /// Adds a slot, if there may be more. Returns whether it did.
    fn note(&mut self) -> bool {
        if self.is_over(0, 1) || (self.places.len() == self.places.capacity() && !self.grow()) {
            return false;
        }
        self.unused = self.places.len() as Slot;
        let (headers, hint) = (Headers::default(), Hint::LEAST_DELAY);
        self.places.push(Frame {
            cell: 0,
            length: 0,
            headers,
            hint,
            class: 0,
            place: FlowSlot::NONE,
            next: NONE,
        });
        true
    }

    /// Takes the cells from all free slots, so that they serve any class.
    fn gather(&mut self) {
        for class in 0..self.classes.len() {
            let mut slot = std::mem::replace(&mut self.classes[class].free, NONE);
            while slot != NONE {
                let frame = &mut self.places[slot as usize];
                let (cell, next) = (frame.cell, std::mem::replace(&mut frame.next, self.unused));
                self.unused = slot;
                self.free_cell(class as u8, cell);
                slot = next;
            }
        }
    }

    /// Doubles the number of frames that can be recorded. Returns false if there is no memory for that, or if too little
    /// would remain for the lists of the queue.
    fn grow(&mut self) -> bool {
        if self.refusals > 0 {
            self.refusals -= 1;
            return false;
        }
        let more = self.places.len();
        let needed = 2 * FRAME_OVERHEAD * (self.places.len() + more) + RESERVE;
        let is_left = Vec::<u8>::new().try_reserve_exact(needed).is_ok();
        let has_grown = is_left && self.places.try_reserve_exact(more).is_ok();
        self.refusals = if has_grown { 0 } else { REFUSALS };
        has_grown
    }

    /// Returns whether so many further blocks and notes are too many.
    fn is_over(&self, blocks: usize, frames: usize) -> bool {
        let block = UNIT << self.block_shift;
        (self.blocks.len() + blocks) * block + (self.places.len() + frames) * FRAME_OVERHEAD > self.most
    }

    /// Takes a cell from the blocks of a class.
    fn take_cell(&mut self, number: u8) -> Option<u32> {
        let open = self.classes[number as usize].open.last().copied();
        let at = match open {
            Some(at) => at,
            None => self.open_block(number)?,
        };
        let (class, block) = (&mut self.classes[number as usize], &mut self.blocks[at as usize]);
        let cell = if block.free == NONE {
            let cell = (at << self.block_shift) + block.cut * class.units;
            block.cut += 1;
            cell
        } else {
            let cell = block.free;
            let start = cell as usize * UNIT;
            block.free = u32::from_ne_bytes(self.room[start..start + 4].try_into().expect("these are four"));
            cell
        };
        block.used += 1;
        if block.used == class.cells {
            class.open.pop();
        }
        Some(cell)
    }

    /// Opens a block for a class: an unused one, or one whose frames have left.
    fn open_block(&mut self, class: u8) -> Option<u32> {
        let at = if self.is_over(1, 1) {
            self.take_empty().or_else(|| {
                self.gather();
                self.take_empty()
            })?
        } else {
            self.blocks.len() as u32
        };
        let place = self.classes[class as usize].open.len() as u32;
        let block = Block { class, is_listed: false, used: 0, cut: 0, free: NONE, place };
        match self.blocks.get_mut(at as usize) {
            Some(old) => *old = block,
            None => self.blocks.push(block),
        }
        self.classes[class as usize].open.push(at);
        Some(at)
    }

    /// Takes a block without frames from its class.
    fn take_empty(&mut self) -> Option<u32> {
        while let Some(at) = self.empty.pop() {
            let block = &mut self.blocks[at as usize];
            block.is_listed = false;
            if block.used > 0 {
                continue;
            }
            let (place, open) = (block.place, &mut self.classes[block.class as usize].open);
            open.swap_remove(place as usize);
            if let Some(&moved) = open.get(place as usize) {
                self.blocks[moved as usize].place = place;
            }
            return Some(at);
        }
        None
    }

    /// Returns a cell to its block.
    fn free_cell(&mut self, number: u8, cell: u32) {
        let at = cell >> self.block_shift;
        let (class, block) = (&mut self.classes[number as usize], &mut self.blocks[at as usize]);
        let start = cell as usize * UNIT;
        self.room[start..start + 4].copy_from_slice(&block.free.to_ne_bytes());
        block.free = cell;
        if block.used == class.cells {
            block.place = class.open.len() as u32;
            class.open.push(at);
        }
        block.used -= 1;
        if block.used == 0 && !block.is_listed {
            block.is_listed = true;
            self.empty.push(at);
        }
    }

    /// Returns the bytes of a frame.
    #[inline]
    pub(crate) fn bytes(&self, slot: Slot) -> &[u8] {
        let Frame { cell, length, .. } = self.places[slot as usize];
        let start = cell as usize * UNIT;
        &self.room[start..start + length as usize]
    }

    /// Returns the length of a frame, bytes.
    #[inline]
    pub(crate) fn length(&self, slot: Slot) -> usize {
        self.places[slot as usize].length as usize
    }

    /// Returns the hint with which a frame arrived.
    #[inline]
    pub(crate) fn hint(&self, slot: Slot) -> Hint {
        self.places[slot as usize].hint
    }

    /// Returns the hash of a frame's flow, and the flow's place among those that send most.
    #[inline]
    pub(crate) fn flow(&self, slot: Slot) -> (u32, FlowSlot) {
        let frame = &self.places[slot as usize];
        (frame.headers.flow, frame.place)
    }

    /// Returns a frame to change it.
    #[inline]
    pub(crate) fn get_mut(&mut self, slot: Slot) -> FrameMut<'_> {
        let Frame { cell, length, headers, .. } = &mut self.places[slot as usize];
        let start = *cell as usize * UNIT;
        FrameMut { bytes: &mut self.room[start..start + *length as usize], headers }
    }

    /// Returns the number of stored frames.
    pub(crate) const fn stored(&self) -> usize {
        self.stored
    }
}

/// The lengths of the classes in units, up to `largest`: one, two, three, four, six, eight, twelve and so on.
fn classes(largest: u32) -> Vec<u32> {
    let powers = (0..).map(|power| 1_u32 << power);
    let steps = powers.flat_map(|power| [power, power + power / 2]).filter(|&units| units != 1);
    let below = std::iter::once(1).chain(steps).take_while(|&units| units < largest);
    below.chain([largest]).collect()
}

/// Allocates room whose pages the kernel gives when they are first written.
fn zeroed(bytes: usize) -> Option<Box<[u8]>> {
    // `vec!` would end the process where there is no such room.
    Vec::<u8>::new().try_reserve_exact(bytes).ok()?;
    Some(vec![0; bytes].into_boxed_slice())
}

#[cfg(test)]
#[path = "frames_tests.rs"]
mod tests;
