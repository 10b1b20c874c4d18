//! Storage of the frames that are in the network.

/// Frames by number. Buffers are reused.
#[derive(Default)]
pub struct Frames {
    buffers: Vec<Vec<u8>>,
    free: Vec<u32>,
}

impl Frames {
    /// Stores a copy of a frame, and returns its number.
    pub fn store(&mut self, frame: &[u8]) -> u32 {
        let number = self.free.pop().unwrap_or_else(|| {
            self.buffers.push(Vec::new());
            self.buffers.len() as u32 - 1
        });
        let buffer = &mut self.buffers[number as usize];
        buffer.clear();
        buffer.extend_from_slice(frame);
        number
    }

    /// The frame with this number.
    pub fn get(&self, number: u32) -> &[u8] {
        &self.buffers[number as usize]
    }

    /// The frame with this number, mutable.
    pub fn get_mut(&mut self, number: u32) -> &mut [u8] {
        &mut self.buffers[number as usize]
    }

    /// Frees the number for another frame.
    pub fn release(&mut self, number: u32) {
        self.free.push(number);
    }
}
