//! Where frames lie while they are under way.

/// Frames by number. What is free is used again.
#[derive(Default)]
pub struct Frames {
    places: Vec<Vec<u8>>,
    free: Vec<u32>,
}

impl Frames {
    /// Keeps a copy, and answers its number.
    pub fn keep(&mut self, frame: &[u8]) -> u32 {
        let number = self.free.pop().unwrap_or_else(|| {
            self.places.push(Vec::new());
            self.places.len() as u32 - 1
        });
        let place = &mut self.places[number as usize];
        place.clear();
        place.extend_from_slice(frame);
        number
    }

    /// The frame of that number.
    pub fn get(&self, number: u32) -> &[u8] {
        &self.places[number as usize]
    }

    /// The frame of that number, to change it.
    pub fn get_mut(&mut self, number: u32) -> &mut [u8] {
        &mut self.places[number as usize]
    }

    /// The number is free.
    pub fn release(&mut self, number: u32) {
        self.free.push(number);
    }
}
